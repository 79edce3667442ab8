"""Squared loss multiplier against work for nodes of 2, 4, 8, ... branches: the paper's curve, and measurements.

    python -m scripts.figures.pecoc DATA_DIR --sets clinc150,spelling --args='-b 24' --plot curve.png

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc": with nodes of m branches the squared regret of f(y|x) is at most
          4 (1 - 1/m)**2 (log_m K)**2 times the mean squared regret of the (m - 1) log_m K regressors asked. m = 2 is
          the tree, log2(K)**2; from m = K on there is one node.
Measured  Regrets need the true probabilities, which nobody has. But the proof holds for any of them, also for those
          that give the label drawn all probability, and then regrets are losses: (1 - f(y|x))**2 and the regressors'
          (f_i - b_i)**2. So the measured multiplier is the ratio of the two mean losses, progressive, over the
          examples whose label was known. The theory's is that of the worst example, of a tree whose depth is
          log_m K, and of estimates that are not scaled; "of this tree" takes the mean number of nodes on the
          labels' paths for the depth.

Data as in bench/compare.py. One run of `xclass --cpt K --cpt_arity m` each, with whole processes timed; test
error from test.vw. Prints a Markdown table; `--json FILE` keeps the numbers, `--plot FILE` draws them (matplotlib, the
extra `plot`).
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.plots import plotting
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import number, test_error


def theory(m: int, classes: int) -> tuple[float, float]:
    """The paper's multiplier and its number of regressors an example."""
    depth = max(1.0, math.log(classes, m))
    return 4 * (1 - 1 / m) ** 2 * depth**2, (m - 1) * depth


def arities_for(classes: int) -> list[int]:
    """2, 4, 8, ... up to the first that makes one node."""
    arities = [2]
    while arities[-1] < classes:
        arities.append(2 * arities[-1])
    return arities


def measured(folder: Path, name: str, classes: int, m: int, words: list[str]) -> dict:
    """Train and test once."""
    xclass = [*TOOLS["xclass"]]
    options = ["--cpt", str(classes), "--cpt_arity", str(m), *words]
    measure([*xclass, "-d", "few.vw", *options, "--quiet"], folder)  # compiles what is not compiled yet
    train = measure([*xclass, "-d", "train.vw", *options, "-f", "c.model"], folder)
    test = measure([*xclass, "-d", "test.vw", "-t", "-i", "c.model", "-p", "c.predictions"], folder)
    summary = train.stderr
    squared = number(summary, "^average squared loss =")
    n = number(summary, "weighted example sum =")
    new = number(summary, "labels seen for the first time =")  # the first example's label at least
    known = (squared * n - new) / (n - new)
    regressors = number(summary, "their average squared loss =")
    multiplier, bound_asked = theory(m, classes)
    really = number(summary, "regressors scored per label =")
    return {
        "set": name,
        "classes": classes,
        "m": m,
        "squared": squared,
        "log": number(summary, "^average log loss ="),
        "error": number(summary, "^average loss ="),
        "test_error": test_error(folder / "test.vw", folder / "c.predictions"),
        "regressors": regressors,
        "measured": known / regressors,
        "theory": multiplier,
        "theory_here": 4 * (1 - 1 / m) ** 2 * (really / (m - 1)) ** 2,
        "asked": really,
        "asked_theory": bound_asked,
        "search": number(test.stderr, "nodes opened by a search: mean") * (m - 1),
        "seconds": train.wall,
    }


COLUMNS = (  # head, cell
    ("set", "{set}"),
    ("K", "{classes}"),
    ("m", "{m}"),
    ("squared loss", "{squared:.3f}"),
    ("log loss", "{log:.3f}"),
    ("error", "{error:.3f}"),
    ("test error", "{test_error:.3f}"),
    ("regressors' squared loss", "{regressors:.4f}"),
    ("multiplier, measured", "{measured:.1f}"),
    ("multiplier, theory", "{theory:.1f}"),
    ("theory of this tree", "{theory_here:.1f}"),
    ("regressors of a label", "{asked:.1f}"),
    ("(m - 1) log_m K", "{asked_theory:.1f}"),
    ("regressors of a search", "{search:.1f}"),
    ("seconds", "{seconds:.1f}"),
)


def draw(pyplot, points: list[dict], file: Path) -> None:
    """Theory and measurement, a picture per set."""
    sets = list(dict.fromkeys(p["set"] for p in points))
    figure, axes = pyplot.subplots(1, len(sets), figsize=(4.5 * len(sets), 4), squeeze=False)
    for name, area in zip(sets, axes[0], strict=True):
        of_set = [p for p in points if p["set"] == name]
        area.loglog(
            [p["asked_theory"] for p in of_set],
            [p["theory"] for p in of_set],
            "--",
            color="grey",
            label="theory, at most",
        )
        area.loglog(
            [p["asked"] for p in of_set], [p["theory_here"] for p in of_set], ":", color="grey", label="of this tree"
        )
        area.loglog([p["asked"] for p in of_set], [p["measured"] for p in of_set], "o-", label="measured")
        for p in of_set:
            area.annotate(
                f"m = {p['m']}", (p["asked"], p["measured"]), textcoords="offset points", xytext=(4, 4), fontsize=8
            )
        area.set_title(f"{name}, K = {of_set[0]['classes']}")
        area.set_xlabel("regressors scored per label")
        area.set_ylabel("squared loss / regressors' squared loss")
        area.legend()
    figure.tight_layout()
    figure.savefig(file)


def powers(text: str) -> list[int]:
    """The arities of a list like 2,4,8."""
    arities = []
    for word in text.split(","):
        m = int(word)
        if m < 2 or m & (m - 1):
            raise BenchError(f"--arities: {m} is not a power of two from 2 on")
        arities.append(m)
    return arities


def main() -> None:
    """Measure all sets and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--arities", type=powers, metavar="M,M,...", help="default: all powers of two that differ")
    options.add_argument("--args", default="", help="more options for xclass, as one word")
    options.add_argument("--json", type=Path, metavar="FILE")
    options.add_argument("--plot", type=Path, metavar="FILE")
    options.add_argument("--work", type=Path, help="folder for the unpacked data; a temporary one by default")
    given = options.parse_args()
    pyplot = plotting() if given.plot else None
    points = []
    with work_folder(given.work) as work:
        folders = {name: prepare(given.data_dir, name, work) for name in given.sets}
        print("| " + " | ".join(head for head, _ in COLUMNS) + " |")
        print("| --- |" + " --: |" * (len(COLUMNS) - 1), flush=True)
        for name, (folder, classes) in folders.items():
            for m in given.arities or arities_for(classes):
                points.append(measured(folder, name, classes, m, shlex.split(given.args)))
                print("| " + " | ".join(cell.format(**points[-1]) for _, cell in COLUMNS) + " |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    if pyplot:
        draw(pyplot, points, given.plot)


if __name__ == "__main__":
    run(main)
