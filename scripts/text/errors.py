"""Error, time and memory on raw texts: ways to read them, beside other programs, each as whole processes.

    python -m scripts.text.sets --out SETS
    python -m scripts.text.errors SETS --json errors.json
    python -m scripts.text.errors --table errors.json
    python -m scripts.text.errors SETS --part held_out --methods VARIANTS --json variants.json
    python -m scripts.text.errors SETS --speed

The methods of a package that is not installed (`scikit-learn`, `fasttext-wheel`) are left out; run the command again
with a Python that has it, and the file is completed. `--part held_out` tests on the part to choose options on.
`--speed` prints how fast texts are read, in MB per second of processor time.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import shlex
import sys
import time
from functools import cache
from pathlib import Path

from scripts.lib import command_line
from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import ResultStore, geometric_mean, summary_loss, table

TODAY = "xclass --text_split spaces"
MAIN = (
    "xclass", TODAY, "xclass --text_chars 3-5", "TfidfVectorizer, LinearSVC", "fastText, wordNgrams 2, epoch 5",
    "fastText, wordNgrams 2, epoch 25",
)  # fmt: skip
VARIANTS = (
    "xclass", TODAY, "xclass --text_split spaces --text_ngram 2", "xclass --text_split words",
    "xclass --text_case fold", "xclass --text_case keep", "xclass --text_ngram 1", "xclass --text_ngram 3",
    "xclass --text_chars 4-4",
)  # fmt: skip
PACKAGES = {"TfidfVectorizer": "sklearn", "fastText": "fasttext"}
FASTTEXT = ["loss=softmax", "lr=0.5", "minCount=1", "wordNgrams=2"]
PEERS = [sys.executable, str(Path(__file__).parents[1] / "lib" / "peer_process.py")]


def rows(path: Path) -> list[tuple[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return [(label, text) for label, text in list(csv.reader(file))[1:]]


def to_fasttext(source: Path, target: Path) -> None:
    with open(target, "w", encoding="utf-8") as file:
        file.writelines(f"__label__{label} {' '.join(text.split())}\n" for label, text in rows(source))


@cache
def compiled(data: Path, work: Path) -> None:
    """Let xclass compile its kernels, unless it did before."""
    measure([*TOOLS["xclass"], str(data), "-f", "m"], work)
    measure([*TOOLS["xclass"], str(data), "-t", "-i", "m"], work)


def run(method: str, folder: Path, part: str, work: Path) -> dict[str, float]:
    """Train and test by a method; return the error, processor seconds of training, and the peak memory in MB."""
    train, test = folder / "train.csv", folder / f"{part}.csv"
    if method.startswith("xclass"):
        command = [*TOOLS["xclass"], *shlex.split(method)[1:]]
        compiled(test, work)
        learned = measure([*command, str(train), "-f", "m"], work)
        tested = measure([*TOOLS["xclass"], str(test), "-t", "-i", "m"], work)
        error = summary_loss(tested.stderr)
    elif method.startswith("TfidfVectorizer"):
        learned = tested = measure(
            [sys.executable, "-m", "scripts.text.errors", "--tfidf", str(train), str(test)], work
        )
        error = json.loads(tested.stderr.splitlines()[-1])["error"]
    else:
        child = [*PEERS, "fasttext"]
        to_fasttext(train, work / "train.ft")
        to_fasttext(test, work / "test.ft")
        learned = measure([*child, "train", "train.ft", "m", *FASTTEXT, f"epoch={method.split()[-1]}"], work)
        tested = measure([*child, "test", "test.ft", "m"], work)
        error = json.loads(tested.stderr.splitlines()[-1])["error"]
    return {"error": error, "cpu": learned.cpu, "memory": max(learned.memory, tested.memory) / 1e6}


def tables(records: list[dict], brief: bool) -> str:
    """Return the errors in percent and the geometric mean of the errors over those of today.

    Unless `brief`, seconds and MB stand behind an error.
    """
    sets = list(dict.fromkeys(record["key"]["set"] for record in records))
    found = {(record["key"]["set"], record["key"]["method"]): record["found"] for record in records}
    lines = []
    for method in dict.fromkeys(record["key"]["method"] for record in records):
        cells = [found.get((name, method)) for name in sets]
        costs = ["" if brief or not one else f" ({one['cpu']:.0f}, {one['memory']:.0f})" for one in cells]
        shown = [f"{100 * one['error']:.1f}{cost}" if one else "" for one, cost in zip(cells, costs, strict=True)]
        ratios = [
            one["error"] / found[name, TODAY]["error"]
            for name, one in zip(sets, cells, strict=True) if one and (name, TODAY) in found
        ]  # fmt: skip
        lines.append([method, *shown, f"{geometric_mean(ratios):.3f}"])
    return table(["error %" if brief else "error % (s, MB)", *sets, "mean ratio"], lines)


def speeds(folders: list[Path], work: Path) -> str:
    """Return a table of MB per second of processor time, by set and format, as xclass reads and with TODAY."""
    from xclass.formats import detect
    from xclass.kernels import jit
    from xclass.text import parser, reader

    jit.activate(hide_scipy=False)

    def read(path: str, **options: str) -> None:
        source = reader.Options(data=(path,))
        parse = parser.Options(learn_names=True, **options)
        for _ in reader.Reader(source, parse, 24, "multiclass", choose=detect.chooser(source)):
            pass

    def speed(path: Path, **options: str) -> float:
        best = math.inf
        for _ in range(5):
            begin = time.process_time()
            read(str(path), **options)
            best = min(best, time.process_time() - begin)
        return path.stat().st_size / 1e6 / best

    lines = []
    for folder in folders:
        to_fasttext(folder / "train.csv", work / "train.ft")
        for kind, path in (("CSV", folder / "train.csv"), ("fastText", work / "train.ft")):
            ours, today = speed(path), speed(path, text_split="spaces")
            lines.append([f"{folder.name}, {kind}", f"{ours:.0f}", f"{today:.0f}"])
    return table(["MB/s", "xclass", TODAY], lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", type=Path, nargs="?", metavar="SETS", help="folder of scripts.text.sets")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print a table of what was measured")
    parser.add_argument("--brief", action="store_true", help="print errors alone")
    parser.add_argument("--speed", action="store_true", help="print how fast texts are read")
    parser.add_argument("--part", default="test", choices=("test", "held_out"))
    parser.add_argument("--methods", default="MAIN", help="MAIN, VARIANTS or methods, separated by semicolons")
    parser.add_argument("--only", metavar="SET,SET", help="sets to measure; all by default")
    given = parser.parse_args()
    if given.table:
        print(tables(json.loads(given.table.read_text()), given.brief))
        return 0
    if given.sets is None:
        parser.error("give the folder of the sets")
    methods = {"MAIN": MAIN, "VARIANTS": VARIANTS}.get(given.methods) or given.methods.split(";")
    store = ResultStore(given.json)
    with command_line.work_folder(None) as work:
        folders = sorted(path for path in given.sets.absolute().iterdir() if path.is_dir())
        if given.speed:
            print(speeds(folders, work))
        for folder in folders if not given.speed else ():
            for method in methods if not given.only or folder.name in given.only.split(",") else ():
                package = PACKAGES.get(method.replace(",", " ").split()[0])
                if package is None and importlib.util.find_spec("numba") is None:
                    continue
                if package is None or importlib.util.find_spec(package) is not None:
                    key = {"set": folder.name, "method": method, "part": given.part}
                    store.get(key, lambda method=method, folder=folder: run(method, folder, given.part, work))
    return 0


if __name__ == "__main__":
    command_line.run(main)
