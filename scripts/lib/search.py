"""Find good options for a row of a paper's table by random settings.

The steps and sizes are those that the LOMTree paper tries. The ranges of the recall tree and of one-against-all are
those of Vowpal Wabbit's demo for 20,000 classes; those of its other sets stand in `experiments`. As in the papers,
settings are compared by the progressive error of the first tenth (Recall Tree, large sets), by the error of a held-out
tenth (Recall Tree on ALOI, LOMTree) or by the squared loss while training (CPT).
"""

from __future__ import annotations

import gzip
import json
import math
import random
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.lib.papers import measured
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import test_error

STEPS = "-l one 0.25 0.5 0.75 1 2 4 8"  # the learning rates that the LOMTree paper tries
HELD_OUT = "held out"
TAIL = 10  # the last examples of the share, one in so many, are held out


def ranges(words: list[str], k: int, own: Mapping[str, str], replacing: bool = False) -> list[str]:
    """Return the ranges for the reduction that a command line chooses.

    `own` are ranges that an experiment has in place of the default ones, also of an option that can be repeated and
    that the words have; an empty one leaves the option out. With `replacing`, options that the command line has are
    searched, too.
    """
    reduction = next((name for name in RANGES if "--" + name in words), None)
    if reduction is None:
        raise BenchError(f"no ranges are known for this command line, which has none of --{', --'.join(RANGES)}")
    found = dict(text.split(None, 1) for text in RANGES[reduction](max(2, k)))
    if reduction == "oaa" and "--passes" in words:  # a row of the LOMTree paper; the other papers make one pass
        found = dict([STEPS.split(None, 1)])
    elif reduction == "oaa" and "--sgd" in words:  # the row of the CPT paper, whose rate falls with the examples
        found = {"-l": "log 0.5 50"}
    if reduction == "recall_tree":
        found |= own
    without = {*([] if replacing else words), *(["--cpt_alpha"] if "--cpt_tree" in words else [])}
    return [f"{name} {text}" for name, text in found.items() if text and (name in own or name not in without)]


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


def draw(text: str, rng: random.Random) -> list[str]:
    """Return the words of an option with a value that is drawn from its range, `--bern_hyper log 0.01 10` for example.

    A flag is given or not.
    """
    flag, kind, *values = text.split()
    if kind == "flag":
        return [flag] * rng.randrange(2)
    if kind == "one":
        return [flag, rng.choice(values)]
    low, high = map(float, values)
    if kind == "int":
        return [flag, str(rng.randint(int(low), int(high)))]
    return [flag, f"{low * (high / low) ** rng.random() if kind == 'log' else rng.uniform(low, high):.4g}"]


def best(
    train: Path, options: list[str], ranges: list[str], settings: int, share: float, criterion: str, state: Path
) -> list[str]:
    """Return the options of the best of some random settings, without those that all settings have.

    They are compared on a share of the data, from its beginning, by a criterion: "held out", the error of the last
    tenth of that share, or "progressive" or "squared", of training. By the errors in `state`, a search that was
    interrupted continues.
    """
    folder = train.parent
    with gzip.open(train) if train.suffix == ".gz" else open(train, "rb") as file:
        lines = file.readlines()
    used = max(2, math.ceil(len(lines) * share))
    tail = max(1, used // TAIL) if criterion == HELD_OUT else 0
    (folder / "probe.vw").write_bytes(b"".join(lines[: used - tail]))
    (folder / "probe.test.vw").write_bytes(b"".join(lines[used - tail : used]))
    errors: dict[str, float] = json.loads(state.read_text()) if state.exists() else {}
    for number in range(1, settings + 1):
        rng = random.Random(f"0 {number}")
        drawn = [word for text in ranges for word in draw(text, rng)]
        if shlex.join(drawn) not in errors:
            summary = measure(
                [*TOOLS["xclass"], "-d", "probe.vw", *options, *drawn, "-f", "probe.model"], folder
            ).stderr
            if tail:
                predict = ["-d", "probe.test.vw", "-t", "-i", "probe.model", "-p", "probe.predictions", "--quiet"]
                measure([*TOOLS["xclass"], *predict], folder)
                errors[shlex.join(drawn)] = test_error(folder / "probe.test.vw", folder / "probe.predictions")
            else:
                errors[shlex.join(drawn)] = measured(summary, criterion)
            state.write_text(json.dumps(errors))
    return shlex.split(min(errors, key=errors.__getitem__))
