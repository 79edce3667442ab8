"""All methods on all sets that stand in for the papers' data: a table beside the papers' own figures.

    python -m scripts.paper.stand_ins DATA_DIR
    python -m scripts.paper.stand_ins DATA_DIR --sets isolet1,clinc150 --methods oaa,recall_tree
    python -m scripts.paper.stand_ins DATA_DIR --small

DATA_DIR/SET holds train.vw, test.vw and labels.txt, plain or .gz, or the words of a text, train.txt and test.txt. Each
cell is a training and a test by whole processes, one after the other. What was measured stands in a JSON file and is
not measured again, so that a run cut short goes on; a command that has changed is. The tables, in Markdown, are of
everything the file has: errors, then what the methods with probabilities tell, then processor time of training (of all
threads, from the start of the process to its end). In brackets stands the best figure that the papers have for a method
on the sets a set stands for, from scripts/paper/*.sh. On books one-against-all, with a table of 13 GB, and the softmax
tree, of two iterations there, take two to three hours of CPU time each.

--small takes the first 500 examples of each set, in a minute or two; its figures compare with nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
from pathlib import Path

from scripts.lib import papers
from scripts.lib.command_line import names, run, with_data
from scripts.lib.data_sets import (
    SETS,
    bits_of,
    classes_in,
    file_in,
    has_training_file,
    passes_of,
    path_crosses,
    prepare,
)
from scripts.lib.papers import best, measured, titles
from scripts.lib.processes import ROOT, TOOLS, BenchError, machine, measure

FIRST = 500  # examples of a set that --small takes
METHODS = {
    name: papers.METHODS[name]
    for name in ("oaa", "recall_tree", "log_multi", "filter_tree", "random_tree", "cpt", "hsm", "softmax_tree")
}
METHODS["multiclass"] = "--multiclass {K}"  # what is learned where nothing is named
PROBABLE = ("oaa", "recall_tree", "cpt", "hsm", "softmax_tree", "multiclass")  # methods that have probabilities
FIVE = ["--top_k", "5", "--perplexity"]
HEADS = {
    "oaa": "OAA",
    "recall_tree": "Recall Tree",
    "log_multi": "LOMTree",
    "filter_tree": "filter tree",
    "random_tree": "random tree",
    "cpt": "CPT",
    "hsm": "HSM",
    "softmax_tree": "softmax tree",
    "multiclass": "xclass",
}
TABLES = {  # measure -> title and decimals, three digits in all where it is None
    "error": ("Test error, %", 1),
    "top5": ("Test error of five answers, %", 1),
    "perplexity": ("Perplexity of the test labels", None),
    "squared": ("Squared loss on the test file, (1 - p)^2", 3),
    "cpu_seconds": ("Training, CPU s", 1),
}


# -- cells -----------------------------------------------------------------------------------------------------------


def words_of(name: str, method: str, classes: int | str) -> list[str]:
    """Return the options a method is given on a set."""
    data_set = SETS[name]
    words = [METHODS[method].replace("{K}", str(classes)), data_set.options]
    if method == "recall_tree":
        words.append(path_crosses(name))
    if method == "softmax_tree":
        words.append(data_set.softmax_tree)
    else:  # has a table of weights; that one keeps the examples, and its weights as they come
        bits = bits_of(name, method, classes)
        words.append(f"-b {min(bits + 1, 26) if method == 'multiclass' else bits}")
        words.append(passes_of(name))
    return shlex.split(" ".join(words))


def commands(name: str, method: str, classes: int | str, small: bool) -> tuple[list[str], list[str]]:
    """Return the words that train and test."""
    words = words_of(name, method, classes)
    words = papers.cut(words, papers.CUT_DOWN) if small else words
    predict = ["-t", "-i", f"{method}.model", "-p", f"{method}.predictions"]
    return [*words, "-f", f"{method}.model"], [*predict, *(FIVE if method in PROBABLE else [])]


def measured_cell(name: str, method: str, folder: Path, classes: int, small: bool) -> dict:
    """Measure a cell."""
    learn, predict = commands(name, method, classes, small)
    runs = {}
    for data in ("few", "whole") if not small else ("whole",):  # the first one compiles
        for part, words in (("train", learn), ("test", predict)):
            runs[part] = measure([*TOOLS["xclass"], "-d", f"{part if data == 'whole' else data}.vw", *words], folder)
    (folder / f"{method}.model").unlink()
    train, summary = runs["train"], runs["test"].stderr
    cell = {
        "error": measured(summary, "error"),
        "cpu_seconds": train.cpu,
        "seconds": train.wall,
        "memory": train.memory,
    }
    return cell | {one: measured(summary, one) for one in ("top5", "perplexity", "squared") if method in PROBABLE}


# -- the report ------------------------------------------------------------------------------------------------------


def figure(value: float, digits: int | None) -> str:
    """Return a figure as the tables show it."""
    if digits is None:
        digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"


def table(results: list[dict], measure: str) -> list[str]:
    """Return the lines of a measure's table, sets down and methods across; none where nothing has it."""
    title, digits = TABLES[measure]
    cells = {(result["set"], result["method"]): result[measure] for result in results if measure in result}
    methods = [method for method in METHODS if any(m == method for _, m in cells)]
    lines = [
        "| stands for | set | K | " + " | ".join(HEADS[method] for method in methods) + " |",
        "| --- | --- | --: |" + " --: |" * len(methods),
    ]
    for name in SETS:
        of_set = [value for (of, _), value in cells.items() if of == name]
        if not of_set:
            continue
        classes = next(result["classes"] for result in results if result["set"] == name)
        cells_shown = []
        for method in methods:
            cell = ""
            if (name, method) in cells:
                value = cells[name, method]
                mark = "**" if value == min(of_set) and measure != "cpu_seconds" else ""
                cell = mark + figure(value, digits) + mark
            published = best(name, method, measure)  # none for cpu_seconds
            if published:
                cell = f"{cell} ({', '.join(figure(value, digits) for value in published)})".strip()
            cells_shown.append(cell)
        lines.append(f"| {titles(name)} | {name} | {classes:,} | " + " | ".join(cells_shown) + " |")
    return [title, "", *lines, ""] if methods else []


def report(results: list[dict]) -> str:
    """Return all tables, and what is not in them."""
    lines = [line for measure in TABLES for line in table(results, measure)]
    classes = {cell["set"]: cell["classes"] for cell in results}
    there = {(cell["set"], cell["method"]) for cell in results}
    lacking = [
        f"{HEADS[method]} on {', '.join(missing)}"
        for method in METHODS
        if (missing := [name for name in classes if (name, method) not in there])
    ]
    if lacking:
        lines += [f"Not run: {'; '.join(lacking)}.", ""]
    return "\n".join(lines)


# -- the command line ------------------------------------------------------------------------------------------------


def chosen(given: list[str] | None, known: dict, option: str) -> list[str]:
    """Return the names that are given, in the order they are known in; all of them where none is given."""
    strange = [name for name in given or [] if name not in known]
    if strange:
        raise BenchError(f"--{option} {strange[0]}: must be one of {', '.join(known)}")
    return [name for name in known if not given or name in given]


def main() -> int:
    """Measure what is not there yet, write the tables; return 1 if a cell failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    with_data(parser)
    parser.add_argument("--methods", type=names, metavar="A,B", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--small", action="store_true", help=f"the first {FIRST} examples of each set")
    parser.add_argument("--dry_run", action="store_true", help="print the commands, do nothing")
    parser.add_argument("--work", type=Path, default=ROOT / "paper_data" / "stand_ins", metavar="DIR", help="for files")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured; the tables are beside it as .md")
    given = parser.parse_args()
    sets, methods = chosen(given.sets, SETS, "sets"), chosen(given.methods, METHODS, "methods")
    if not given.data_dir.is_dir():
        raise BenchError(f"{given.data_dir} is no folder")
    absent = [name for name in sets if not has_training_file(given.data_dir, name)]
    if absent and (given.sets or absent == sets):
        raise BenchError(f"{given.data_dir / absent[0]} has neither train.vw nor train.txt, plain or .gz")
    for name in absent:
        print(f"left out: {given.data_dir} has no {name}", flush=True)
    work = (given.work / "small" if given.small else given.work).absolute()
    path = given.json or work / "stand_ins.json"
    if not given.dry_run:
        work.mkdir(parents=True, exist_ok=True)
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    failed = []
    for name in sets:
        if name not in absent:
            failed += make_set(given, name, methods, work, path, results)
    if given.dry_run:
        return 0
    path.with_suffix(".md").write_text(report(results), encoding="utf-8")
    print("\n" + report(results) + f"\nThese tables are in {path.with_suffix('.md')}, all figures in {path}.")
    print(*failed, sep="\n")
    return 1 if failed else 0


def make_set(
    given: argparse.Namespace, name: str, methods: list[str], work: Path, path: Path, results: list[dict]
) -> list[str]:
    """Measure the cells of a set that `results` lacks, adding them to it and to its file; return what failed."""
    failed, where = [], machine()
    if given.dry_run:
        known = file_in(given.data_dir / name, "labels.txt") and not given.small
        classes = classes_in(given.data_dir / name) if known else "K"
        print(f"{name}, for {titles(name)}:")
    else:
        folder, classes = prepare(given.data_dir, name, work, FIRST if given.small else None)
    for method in methods:
        learn, predict = commands(name, method, classes, given.small)
        if given.dry_run:
            print(papers.as_typed(["-d", "train.vw", *learn]), papers.as_typed(["-d", "test.vw", *predict]), sep="\n")
            continue
        key = {"set": name, "classes": classes, "method": method, "command": f"xclass {shlex.join(learn)}"}
        old = next((result for result in results if (result["set"], result["method"]) == (name, method)), None)
        if old and old["command"] == key["command"]:
            print(f"{name} {method}: as measured before", flush=True)
            continue
        try:
            cell = measured_cell(name, method, folder, classes, given.small)
        except BenchError as error:
            failed.append(f"failed: {name} {method}: {str(error).strip().splitlines()[-1]}")
            print(failed[-1], flush=True)
            continue
        results[:] = [result for result in results if result is not old] + [{**key, **cell, **where}]
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"{name} {method}: error {cell['error']:.2f} %, {cell['cpu_seconds']:.1f} CPU s", flush=True)
    return failed


if __name__ == "__main__":
    run(main)
