"""Train and test xclass in the way of the papers' figures, and find the cost of one example.

Costs are CPU seconds of all threads, less those of a few lines: other work on the machine changes them little.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from scripts.lib.processes import TOOLS, Run, measure
from scripts.lib.results import test_error

MOST = 1024  # passes of a run that is timed
SHORTEST = 0.001  # seconds, of such a run


def learn(folder: Path, words: list[str], data: str = "train.vw") -> Run:
    """Train once, the model going to `f.model`."""
    return measure([*TOOLS["xclass"], "-d", data, *words, "-f", "f.model"], folder)


def error_of(folder: Path) -> float:
    """Return the share of wrong answers of `f.model` on the test file."""
    measure([*TOOLS["xclass"], "-d", "test.vw", "-t", "-i", "f.model", "-p", "f.predictions", "--quiet"], folder)
    return test_error(folder / "test.vw", folder / "f.predictions")


def start(folder: Path, words: list[str]) -> float:
    """Return the CPU seconds of a run over a few lines, with nothing left to compile."""
    learn(folder, words, "few.vw")
    return learn(folder, words, "few.vw").cpu


def cost(folder: Path, words: list[str], long: float, whole: int) -> float:
    """Return the CPU seconds of one look at an example.

    An eighth of the file is gone through, then all of it, then 4, 16, ... times, until that takes `long` seconds, since
    the start of a process, which is taken off, is not the same from run to run.
    """
    begin = start(folder, words)
    lines, passes = max(1, whole // 8), 1
    while True:
        more = ["--passes", str(passes), "--holdout_off"] if passes > 1 else []
        took = learn(folder, [*words, *more], head(folder, lines)).cpu - begin
        if took >= long or passes >= MOST:
            return max(took, SHORTEST) / (lines * passes)
        lines, passes = whole, passes if lines < whole else 4 * passes


def head(folder: Path, lines: int) -> str:
    """Write the first lines of train.vw; return the file's name."""
    with open(folder / "train.vw", "rb") as whole, open(folder / "head.vw", "wb") as part:
        part.writelines(islice(whole, lines))
    return "head.vw"


def lines_of(folder: Path) -> int:
    """Return the number of training examples."""
    with open(folder / "train.vw", "rb") as file:
        return sum(1 for _ in file)
