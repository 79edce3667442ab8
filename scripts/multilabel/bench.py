"""Precision, time and memory of the learners of label lists, beside Vowpal Wabbit's, as whole processes.

    python -m scripts.multilabel.bench DATA_DIR --sets ml_bibtex,ml_cooking --passes 1,3

DATA_DIR/SET has train.vw, test.vw (`1,5,7 | words`, labels from 0) and labels.txt, plain or .gz. `--variant` adds a row
with other options of xclass: `--variant 'plt -l 1=--plt {K} -l 1'`. A method that xclass does not have is left out.
Prints a Markdown table: precision at 1, 3 and 5 on the test file in percent, over the examples that have a label; CPU
seconds and peak memory of training.

`--json FILE` keeps what was measured, so that a run cut short goes on. `--plot FILE` draws precision at 1 against the
CPU seconds, a panel for each set, a line through the passes of a method (matplotlib, the extra `plot`), and `--peers
FILE` adds figures of other programs, measured before: records {"set", "method", "precision": [P@1, P@3, P@5], "cpu"}.

Vowpal Wabbit runs with `--loss_function logistic`. Its `--multilabel_oaa --probabilities` repeats answers after 258
lines, so the test file is predicted in parts.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.lib import search
from scripts.lib.command_line import names, numbers, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.plots import PIXELS, label_points, log_axis, plotting
from scripts.lib.processes import TOOLS, BenchError, Run, measure
from scripts.lib.results import ResultStore
from scripts.multilabel.lists import RANKS, labels_of, precision

VW, XCLASS = "vw", "xclass"
METHODS = {
    "xclass --multilabel": (XCLASS, "--multilabel {K}"),
    "VW --plt": (VW, "--plt {K}"),
    "xclass --plt": (XCLASS, "--plt {K}"),
    "xclass --plt_tree online": (XCLASS, "--plt {K} --plt_tree online"),
    "VW --multilabel_oaa": (VW, "--multilabel_oaa {K}"),
    "xclass --multilabel_oaa": (XCLASS, "--multilabel_oaa {K}"),
}
LINES_OF_A_PART = 250


def main() -> None:
    """Run every method on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--passes", type=numbers, default=[1, 3])
    options.add_argument("--bits", type=int, default=24)
    options.add_argument("--methods", type=lambda text: text.split(";"), help="of those in the table, by semicolons")
    options.add_argument("--variant", action="append", default=[], metavar="NAME=ARGS")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--peers", type=Path, metavar="FILE", help="figures of other programs for the picture")
    options.add_argument("--plot", type=Path, metavar="FILE", help="the picture")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    pyplot = plotting() if given.plot else None
    strange = [name for name in given.methods or [] if name not in METHODS]
    if strange:
        raise BenchError(f"--methods: {strange[0]!r} is none of {'; '.join(METHODS)}")
    methods = {name: METHODS[name] for name in given.methods or METHODS}
    methods |= {name: (XCLASS, words) for name, words in (text.split("=", 1) for text in given.variant)}
    methods = without_unknown(methods)
    store, found = ResultStore(given.json), []
    print("| set, labels | method | passes | P@1 | P@3 | P@5 | CPU s | MB |\n| --- | --- |" + " --: |" * 6, flush=True)
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            for method, (tool, words) in methods.items():
                for passes in map(int, given.passes):
                    args = shlex.split(words.replace("{K}", str(classes)))
                    args += [] if "--multilabel" in args else ["-b", str(given.bits)]  # whose table grows without it
                    key = {"set": name, "method": method, "passes": passes, "command": shlex.join(args)}
                    cell = store.get(key, functools.partial(measured, tool, args, passes, folder))
                    found.append({**key, **cell})
                    figures = [str(passes), *(f"{p:.2f}" for p in cell["precision"])]
                    figures += [f"{cell['cpu']:.1f}", f"{cell['memory'] / 1e6:.0f}"]
                    print(f"| {name}, {classes:,} | {method} | {' | '.join(figures)} |", flush=True)
    if pyplot:
        peers = json.loads(given.peers.read_text(encoding="utf-8")) if given.peers else []
        draw(pyplot, found, [peer for peer in peers if peer["set"] in given.sets], given.plot)


def without_unknown(methods: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return the methods without those whose options xclass does not have, which are named on standard error."""
    lacking = {name: search.unknown(shlex.split(words)) for name, (tool, words) in methods.items() if tool == XCLASS}
    for name, options in lacking.items():
        if options:
            print(f"left out: {name}: xclass has no {' and no '.join(options)}", file=sys.stderr)
    return {name: method for name, method in methods.items() if not lacking.get(name)}


def measured(tool: str, args: list[str], passes: int, folder: Path) -> dict:
    """Train and test; return precision in percent, CPU seconds and bytes."""
    took = train(tool, args, passes, folder)
    true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
    shares = precision(true, list(predictions(tool, args, folder)))
    return {"precision": [100 * share for share in shares], "cpu": took.cpu, "memory": took.memory}


def draw(pyplot, found: list[dict], peers: list[dict], file: Path) -> None:
    """Draw a panel for each set."""
    sets = list(dict.fromkeys(cell["set"] for cell in found))
    across = min(3, len(sets))
    down = -(-len(sets) // across)
    figure, areas = pyplot.subplots(down, across, figsize=(6 * across, 4.5 * down), squeeze=False)
    for area in areas.flat[len(sets) :]:
        area.set_visible(False)
    texts = []
    for name, area in zip(sets, areas.flat, strict=False):
        labelled = []
        for method in dict.fromkeys(cell["method"] for cell in found if cell["set"] == name):
            cells = [cell for cell in found if (cell["set"], cell["method"]) == (name, method)]
            points = [(cell["cpu"], cell["precision"][0]) for cell in cells]
            colour = "tab:blue" if METHODS.get(method, (XCLASS,))[0] == VW else "tab:red"
            area.plot(*zip(*points, strict=True), "o-", color=colour, markersize=5, linewidth=0.8)
            labelled.append((points[0], method.removeprefix("xclass ")))
        for peer in [peer for peer in peers if peer["set"] == name]:
            point = (peer["cpu"], peer["precision"][0])
            area.plot(*point, "s", color="tab:grey", markersize=5)
            labelled.append((point, peer["method"]))
        texts.append((area, labelled))
        log_axis(area)
        area.margins(0.15)
        area.set_title(name)
        area.set_xlabel("CPU s of training")
        area.set_ylabel("precision at 1, %")
    figure.set_dpi(PIXELS)
    figure.tight_layout()
    for area, labelled in texts:
        label_points(area, [point for point, _ in labelled], [label for _, label in labelled])
    figure.savefig(file, dpi=PIXELS)


def train(tool: str, args: list[str], passes: int, folder: Path) -> Run:
    """Train a model, TOOL.bin, and return the measurements of the process."""
    command = [*TOOLS[tool], *args, "-d", "train.vw", "-f", f"{tool}.bin"]
    command += ["--loss_function", "logistic"] if tool == VW else []
    if passes > 1:
        command += ["--cache_file", f"{tool}.cache", "-k", "--passes", str(passes), "--holdout_off"]
    return measure(command, folder)


def predictions(tool: str, args: list[str], folder: Path) -> Iterator[list[bytes]]:
    """Yield the labels of each test example, best first."""
    command = [*TOOLS[tool], "-t", "-i", f"{tool}.bin", "-p", "predictions"]
    if tool == XCLASS:
        command += ["--top_k", str(RANKS[-1]), "--threshold", "0"]
    else:
        command += ["--loss_function", "logistic", "--probabilities"]
        command += ["--top_k", str(RANKS[-1])] if "--plt" in args else []
    lines = (folder / "test.vw").read_bytes().splitlines(keepends=True)
    part = LINES_OF_A_PART if "--multilabel_oaa" in args and tool == VW else len(lines)
    for first in range(0, len(lines), part):
        (folder / "part.vw").write_bytes(b"".join(lines[first : first + part]))
        measure([*command, "-d", "part.vw"], folder)
        answers = (folder / "predictions").read_bytes().splitlines()
        for line in answers[:: 2 if len(answers) == 2 * len(lines[first : first + part]) else 1]:
            pairs = [pair.rsplit(b":", 1) for pair in re.split(rb"[ ,]+", line) if pair]
            yield [label for label, _ in sorted(pairs, key=lambda pair: -float(pair[1]))[: RANKS[-1]]]


if __name__ == "__main__":
    run(main)
