"""Train and test xclass for the figures of the papers, and measure the cost of one example.

Costs are CPU seconds of all threads, which depend little on other work on the machine. The cost of a run over a few
lines, which is mostly that of starting, is subtracted.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from scripts.lib.processes import TOOLS, Run, measure
from scripts.lib.results import test_error

MOST = 1024  # maximum number of passes of a measured run
SHORTEST = 0.001  # lower bound in seconds of the measured time, which could be negative after the subtraction


def learn(folder: Path, words: list[str], data: str = "train.vw") -> Run:
    """Train once and save the model as `f.model`."""
    return measure([*TOOLS["xclass"], "-d", data, *words, "-f", "f.model"], folder)


def error_of(folder: Path) -> float:
    """Return the fraction of the test file for which the prediction of `f.model` is wrong."""
    measure([*TOOLS["xclass"], "-d", "test.vw", "-t", "-i", "f.model", "-p", "f.predictions", "--quiet"], folder)
    return test_error(folder / "test.vw", folder / "f.predictions")


def testing_cost(folder: Path, most: int) -> float:
    """Return the CPU seconds in which `f.model` predicts one of the first examples of the training file."""
    lines = min(most, lines_of(folder))
    words = [*TOOLS["xclass"], "-t", "-i", "f.model", "-p", "f.predictions", "--quiet", "-d"]
    first, few, all_lines = (measure([*words, data], folder).cpu for data in ("few.vw", "few.vw", head(folder, lines)))
    return max(all_lines - min(first, few), SHORTEST) / lines


def start(folder: Path, words: list[str]) -> float:
    """Return the CPU seconds of a run over a few lines after all kernels are compiled."""
    learn(folder, words, "few.vw")
    return learn(folder, words, "few.vw").cpu


def cost(folder: Path, words: list[str], long: float, whole: int) -> float:
    """Return the CPU seconds of training for one example in one pass.

    The run learns an eighth of the file, then all of it, then 4, 16, ... passes over it, until it takes at least `long`
    seconds. Shorter runs would be inaccurate, because the time of starting, which is subtracted, varies.

    Parameters
    ----------
    folder : folder of the set
    words : options of xclass
    long : CPU seconds that a measured run takes at least, unless it has MOST passes
    whole : number of training examples
    """
    start_cost = start(folder, words)
    lines, passes = max(1, whole // 8), 1
    while True:
        more = ["--passes", str(passes), "--holdout_off"] if passes > 1 else []
        took = learn(folder, [*words, *more], head(folder, lines)).cpu - start_cost
        if took >= long or passes >= MOST:
            return max(took, SHORTEST) / (lines * passes)
        lines, passes = whole, passes if lines < whole else 4 * passes


def head(folder: Path, lines: int) -> str:
    """Write the first lines of train.vw to another file; return its name."""
    with open(folder / "train.vw", "rb") as whole, open(folder / "head.vw", "wb") as part:
        part.writelines(islice(whole, lines))
    return "head.vw"


def lines_of(folder: Path) -> int:
    """Return the number of training examples."""
    with open(folder / "train.vw", "rb") as file:
        return sum(1 for _ in file)
