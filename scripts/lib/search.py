"""Find good options for a row of a paper's table by `xclass tune --method random`.

The steps and sizes are those that the LOMTree paper tries. The ranges of the recall tree and of one-against-all are
those of Vowpal Wabbit's demo for 20,000 classes; those of its other sets stand in `experiments`. The Recall Tree paper
compares settings by the progressive error of the first tenth, `tune` by the last tenth of that part.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from scripts.lib.processes import TOOLS, BenchError, measure

STEPS = "-l one 0.25 0.5 0.75 1 2 4 8"  # the learning rates that the LOMTree paper tries
OF_A_RUN = ("--shuffle",)  # options with a value that a search does not have; it reads the data in their order
TIME = "30d"  # more than any search takes; the number of settings is what ends it


def ranges(words: list[str], k: int, own: Mapping[str, str], replacing: bool = False) -> list[str]:
    """Return the ranges for the reduction that a command line chooses.

    Parameters
    ----------
    words : words of the command line
    k : number of classes
    own : option -> range that an experiment has in place of the default one; an empty one leaves the option out
    replacing : whether options that the command line has are searched, too
    """
    reduction = next((name for name in RANGES if "--" + name in words), None)
    if reduction is None:
        raise BenchError(f"no ranges are known for this command line, which has none of --{', --'.join(RANGES)}")
    found = dict(text.split(None, 1) for text in RANGES[reduction](max(2, k)))
    if reduction == "oaa" and "--passes" in words:  # a row of the LOMTree paper; the other papers make one pass
        found = dict([STEPS.split(None, 1)])
    if reduction == "recall_tree":
        found |= own
    without = {*([] if replacing else words), *(["--cpt_alpha"] if "--cpt_tree" in words else [])}
    return [f"{name} {text}" for name, text in found.items() if text and name not in without]


def _recall_tree(k: int) -> list[str]:
    levels = math.ceil(math.log2(k))  # 15 in the demo, which tries 11 to 16
    return [
        "-l linear 0.1 4",
        f"--max_depth int {max(1, levels - 4)} {levels + 1}",
        f"--max_candidates int {min(20, k)} {min(99, k)}",
        "--bern_hyper log 0.01 10",
        "--randomized_routing flag",
        "--node_only flag",
    ]


def _log_multi(k: int) -> list[str]:
    sizes = " ".join(str((k << i) - 1) for i in range(7))
    return [STEPS, "--swap_resistance one 4 8 16 32 64 128 256", f"--max_predictors one {sizes}"]


RANGES: dict[str, Callable[[int], list[str]]] = {
    "oaa": lambda k: ["-l linear 0.1 4"],
    "recall_tree": _recall_tree,
    "log_multi": _log_multi,
    "ect": lambda k: [STEPS],
    "random_tree": lambda k: [STEPS],
    "cpt": lambda k: ["-l log 0.05 5", "--cpt_alpha linear 0.1 1"],
    "softmax_tree": lambda k: ["--l1 log 0.01 10"],
    "hsm": lambda k: ["-l log 0.005 5"],
}


@cache
def known_options() -> set[str]:
    """Return the options that `xclass --help_all` lists."""
    here = Path(__file__).parent  # the current folder might contain another xclass
    text = subprocess.run([*TOOLS["xclass"], "--help_all"], capture_output=True, text=True, check=True, cwd=here).stdout
    return set(re.findall(r"(?<![\w-])--?[a-z]\w*", text, re.IGNORECASE))


def unknown(words: list[str], known: set[str] | None = None) -> list[str]:
    """Return the options among the words that xclass does not have."""
    known = known or known_options()
    return [word for word in words if re.fullmatch(r"--?[a-zA-Z]\w*", word) and word not in known]


def best(train: Path, options: list[str], ranges: list[str], settings: int, share: float, state: Path) -> list[str]:
    """Return the options of the best of some random settings, without those that all settings have.

    Parameters
    ----------
    train : file of the training examples
    options : words of the command line that all settings have, the reduction among them
    ranges : what is searched, each as `xclass tune --range` takes it
    settings : number of settings
    share : share of the data that they are compared on, from its beginning
    state : file by which a search that was interrupted continues
    """
    fixed = list(options)
    for flag in OF_A_RUN:
        if flag in fixed:
            at = fixed.index(flag)
            del fixed[at : at + 2]
    chosen = [word for text in ranges for word in ("--range", text)]
    how = ["--method", "random", "--settings", str(settings), "--share", str(share), "--time", TIME, "--quiet"]
    words = ["tune", "-d", train.name, "--state", state.name, *how, *chosen, *fixed]
    measure([*TOOLS["xclass"], *words], train.parent)  # writes its output to a file
    typed = shlex.split((train.parent / "stdout").read_text(encoding="utf-8").splitlines()[-1])
    reduction = next("--" + name for name in RANGES if "--" + name in typed)
    found = typed[typed.index(reduction) + 2 : typed.index("-f")]
    return [word for word in found if word != "--holdout_off"]
