"""Error and time of softmax trees against depth and classes of a leaf, and by where classes begin.

    python -m scripts.figures.softmax_tree DATA_DIR --sets spelling --depths 0,1,2,4 --leaf_classes all,500 --plot c.png

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: figures 2 and 4 (depth and k), and
          3 (--inits).
With --paper, the alpha, iterations and passes of the paper's appendix C for that set, which `--inits random` goes with:

    python -m scripts.figures.softmax_tree paper_data --paper odp --sets odp/vw --inits random --depths 7,8,9,11 \\
        --leaf_classes 50,100,1000                                          after sh scripts/paper/odp.sh, figure 2
    python -m scripts.figures.softmax_tree paper_data --paper aloi --sets aloi/vw/centred --inits random \\
        --depths 1,2,3,4,5,6,7,8 --leaf_classes all,30,50,100               figure 4
    python -m scripts.figures.softmax_tree paper_data --paper aloi --sets aloi/vw/centred --depths 3,5,7,8 \\
        --inits prototypes,whole,random                                     figure 3

Data as in bench/compare.py. One run of `xclass --softmax_tree K --depth D` each, whole processes; the time of a test
example is that of the test file, several times over where it is small, less that of its first example, so that the
start is not in it. Times are CPU s of all threads. Prints a Markdown table; `--json FILE` keeps the numbers, and what
stands there is not measured again; `--plot FILE` draws them (matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import math
import shlex
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.experiments import EXPERIMENTS
from scripts.lib.plots import plotting
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import ResultStore, number

ENOUGH = 30_000  # examples, to time a test
INITS = ("clusters", "prototypes", "whole", "random")


COLUMNS = (  # head, cell
    ("set", "{set}"),
    ("init", "{init}"),
    ("depth", "{depth}"),
    ("k", "{leaf_classes}"),
    ("test error", "{error:.3f}"),
    ("top 5", "{top_5:.3f}"),
    ("in leaf", "{covered:.3f}"),
    ("perplexity", "{perplexity:.4g}"),
    ("training error", "{train_error:.3f}"),
    ("leaves", "{leaves}"),
    ("weights", "{weights}"),
    ("training s", "{seconds:.1f}"),
    ("us an example", "{micro:.1f}"),
)


def measured(folder: Path, classes: int, setting: dict, words: list[str]) -> dict[str, float]:
    """Train and test once; return the figures of COLUMNS that `setting` does not have."""
    xclass = [*TOOLS["xclass"]]
    options = ["--softmax_tree", str(classes), "--depth", str(setting["depth"]), "--tree_init", setting["init"], *words]
    if setting["leaf_classes"] != "all":
        options += ["--leaf_classes", setting["leaf_classes"]]
    train = measure([*xclass, "-d", "train.vw", *options, "-f", "s.model"], folder)
    test = measure([*xclass, "-d", "test.vw", "-t", "-i", "s.model"], folder)
    examples = number(test.stderr, "number of examples =")
    turns = math.ceil(ENOUGH / examples)  # over a small file, so that it takes much longer than the start
    long = measure([*xclass, *["-d", "test.vw"] * turns, "-t", "-i", "s.model"], folder) if turns > 1 else test
    single = measure([*xclass, "-d", "test.vw", "-t", "-i", "s.model", "--examples", "1"], folder)
    return {
        "error": number(test.stderr, "average loss ="),
        "top_5": number(test.stderr, "top-5 error ="),
        "covered": number(test.stderr, "class is in the leaf ="),
        "perplexity": number(test.stderr, r"perplexity, smoothed by \S+ ="),
        "train_error": number(train.stderr, "training error ="),
        "leaves": int(number(test.stderr, "leaves =")),
        "weights": int(number(test.stderr, "weights that are not 0 =")),
        "seconds": train.cpu,
        "micro": 1e6 * max(long.cpu - single.cpu, 0.0) / (turns * examples),
    }


def draw(pyplot, points: list[dict], file: Path) -> None:
    """Error and time against depth, a line for every k and init, a row per set."""
    sets = list(dict.fromkeys(p["set"] for p in points))
    figure, axes = pyplot.subplots(len(sets), 2, figsize=(9, 3.2 * len(sets)), squeeze=False)
    for name, (error_area, time_area) in zip(sets, axes, strict=True):
        for init, most in dict.fromkeys((p["init"], p["leaf_classes"]) for p in points if p["set"] == name):
            curve = [p for p in points if (p["set"], p["init"], p["leaf_classes"]) == (name, init, most)]
            depth = [p["depth"] for p in curve]
            error_area.plot(depth, [100 * p["error"] for p in curve], "o-", label=f"{init}, k = {most}")
            error_area.plot(depth, [100 * p["train_error"] for p in curve], ":", color=error_area.lines[-1].get_color())
            time_area.plot(depth, [p["micro"] for p in curve], "o-", label=f"{init}, k = {most}")
        error_area.set_title(f"{name}: error %, test and (dotted) training")
        time_area.set_title(f"{name}: microseconds for a test example")
        for area in (error_area, time_area):
            area.set_xticks(sorted({p["depth"] for p in points if p["set"] == name}))
            area.set_ylim(bottom=0)
            area.set_xlabel("depth")
            area.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file)


def depths(text: str) -> list[int]:
    """Depths, of a list like 0,2,4."""
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 0 or max(numbers) > 20:
        raise BenchError("--depths: a depth is a whole number from 0 to 20")
    return numbers


def main() -> None:
    """Measure all sets and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--depths", default=[0, 1, 2, 4], type=depths, metavar="D,D,...")
    options.add_argument("--leaf_classes", default=["all"], type=names, metavar="all|K,...")
    options.add_argument("--inits", default=["clusters"], type=names, metavar=",".join(INITS))
    options.add_argument("--args", default="", help="more options for xclass, as one word")
    options.add_argument("--paper", choices=("aloi", "odp", "wiki_small"), help="settings of a set of the paper")
    options.add_argument("--json", type=Path, metavar="FILE")
    options.add_argument("--plot", type=Path, metavar="FILE")
    options.add_argument("--work", type=Path, help="folder for the unpacked data; a temporary one by default")
    given = options.parse_args()
    for init in given.inits:
        if init not in INITS:
            raise BenchError(f"--inits: {init!r} is none of {', '.join(INITS)}")
    if given.paper:
        given.args = f"{EXPERIMENTS[given.paper].names['tree']} {given.args}".strip()
    pyplot = plotting() if given.plot else None
    points, store = [], ResultStore(given.json)
    with work_folder(given.work) as work:
        folders = {name: prepare(given.data_dir, name, work) for name in given.sets}
        print("| " + " | ".join(head for head, _ in COLUMNS) + " |")
        print("| --- | --- |" + " --: |" * (len(COLUMNS) - 2), flush=True)
        for name, (folder, classes) in folders.items():
            for init in given.inits:
                for most in given.leaf_classes:
                    for depth in given.depths:
                        setting = {"set": name, "init": init, "depth": depth, "leaf_classes": most}
                        key = {**setting, "args": given.args}
                        arguments = folder, classes, setting, shlex.split(given.args)
                        points.append(setting | store.get(key, lambda a=arguments: measured(*a)))
                        print("| " + " | ".join(cell.format(**points[-1]) for _, cell in COLUMNS) + " |", flush=True)
    if pyplot:
        draw(pyplot, points, given.plot)


if __name__ == "__main__":
    run(main)
