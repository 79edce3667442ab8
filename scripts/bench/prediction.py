"""How fast large files are predicted: xclass and Vowpal Wabbit, on a test file that is repeated to a million lines.

    python -m scripts.bench.prediction DATA_DIR --sets clinc150,spelling

Data as in compare.py. Each reduction that both tools have is learned once by each, with the same options; then `-t`
runs in turns on the test file, repeated until it has --lines lines. Prints a Markdown table: median seconds from the
start of the process to its end, and VW's over those of xclass.
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, measure

REDUCTIONS = {  # name -> options that both tools get; {k} is the number of classes
    "--oaa": "--oaa {k}",
    "--recall_tree": "--recall_tree {k} --loss_function logistic",
    "--log_multi": "--log_multi {k}",
    "--ect": "--ect {k}",
}


def repeat(folder: Path, lines: int) -> None:
    """Write `many.vw`: the lines of test.vw, again and again."""
    test = (folder / "test.vw").read_bytes().splitlines(keepends=True)
    with open(folder / "many.vw", "wb") as file:
        for begin in range(0, lines, len(test)):
            file.writelines(test[: lines - begin])


def seconds(folder: Path, words: list[str], repetitions: int) -> tuple[float, float]:
    """Learn with both tools; return the median seconds in which xclass and VW predict the large file, in turns."""
    for tool, command in TOOLS.items():
        measure([*command, "-d", "train.vw", *words, "-f", f"{tool}.model", "--quiet"], folder)
        measure(_test(tool, "few.vw"), folder)  # compiles the kernels
    runs = [[measure(_test(tool, "many.vw"), folder).wall for tool in TOOLS] for _ in range(repetitions)]
    ours, theirs = (statistics.median(times) for times in zip(*runs, strict=True))
    return ours, theirs


def _test(tool: str, file: str) -> list[str]:
    """Return the command that predicts a file."""
    return [*TOOLS[tool], "-t", "-i", f"{tool}.model", "-p", f"{tool}.predictions", "--quiet", "-d", file]


def main() -> None:
    """Measure every reduction on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--reductions", type=names, default=list(REDUCTIONS), help="with dashes, by commas")
    options.add_argument("--lines", type=int, default=1_000_000)
    options.add_argument("--bits", type=int, default=24)
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    print("| set | reduction | xclass s | VW s | VW / xclass |")
    print("| --- | --- | --: | --: | --: |", flush=True)
    ratios = []
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            repeat(folder, given.lines)
            for reduction in given.reductions:
                words = [*REDUCTIONS[reduction].format(k=classes).split(), "-b", str(given.bits)]
                ours, theirs = seconds(folder, words, given.repetitions)
                ratios.append(theirs / ours)
                print(f"| {name} | `{reduction}` | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |", flush=True)
    print(f"\nGeometric mean: {math.exp(statistics.fmean(map(math.log, ratios))):.1f}")


if __name__ == "__main__":
    run(main)
