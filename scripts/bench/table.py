"""The table xclass is measured by, a part for each comparison.

    python -m scripts.bench.table DATA_DIR --repetitions 5
    python -m scripts.bench.table DATA_DIR --parts peers,reading --sets wordnet

    recall_tree   with VW's update and loss, and how soon xclass has the loss VW ends with; the same with --vw_exact,
                  every prediction VW's: equal work
    oaa
    log_multi     and --cpt beside the same tree of VW's, for as many classes
    peers         fastText and napkinXC, each beside what xclass has of its kind; lib/peers.py has the commands
    reading       text and gzip with nothing to learn, beside VW's --noop, with and without the start of the process
    start         ten lines, with everything compiled and with nothing

`--sets` takes other sets than a part's own; `--json FILE` keeps the measurements, a file for each part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path

from scripts.lib import peers, streams
from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, BenchError, machine, measure
from scripts.lib.results import geometric_mean
from scripts.lib.versus_vw import Comparison, compare, measured_on

LARGE = ["panlex", "wordnet", "wiki", "ptb", "spelling", "books"]
PARTS = {
    "recall_tree": {"sets": LARGE, "reduction": "recall_tree", "beside": ["recall_tree --vw_exact"], "reach": True},
    "oaa": {"sets": ["spelling", "panlex"], "reduction": "oaa"},
    "log_multi": {"sets": LARGE, "reduction": "log_multi", "beside": ["cpt"], "args": "-b 24"},
}
READ = ["panlex", "ptb", "wiki", "books"]
BESIDE = ["clinc150", "reuters", "spelling", "wordnet", "panlex", "ptb"]
RIVALS = {  # what is compared -> xclass's method and the other's, by their names in peers.py
    "xclass / napkinXC PLT": ("xclass", "napkinXC PLT"),
    "xclass --cpt / napkinXC HSM": ("xclass --cpt", "napkinXC HSM"),
    "xclass --cpt / fastText hierarchical": ("xclass --cpt", "fastText hierarchical"),
    "xclass / fastText softmax": ("xclass", "fastText softmax"),
}
DENSE = 1e9  # examples times classes, above which fastText's softmax takes from ten minutes to hours
LONG = 100  # seconds, above which a run is not repeated
STARTS = ("--multiclass", "--recall_tree", "--oaa", "--log_multi", "--cpt", "--softmax_tree")
TEN = 10  # lines


def reading(options: argparse.Namespace, work: Path, sets: list[str]) -> list[str]:
    """Time reading alone, whole processes and less what the same takes for a few lines; return the report's lines."""
    lines = ["| set | MB | file | xclass s | VW s | ratio | xclass s less the start | VW s | ratio |"]
    lines.append("| --- | --: | --- " + "| --: " * 6 + "|")
    ratios: dict[str, list[float]] = {"text": [], "gzip": []}
    for name in sets:
        folder, _ = prepare(options.data_dir, name, work)
        size = (folder / "train.vw").stat().st_size / 1e6
        packed = folder / "train.vw.gz"
        if not packed.exists():
            with open(folder / "train.vw", "rb") as plain, gzip.open(packed, "wb", 6) as small:
                shutil.copyfileobj(plain, small, 1 << 20)
        for kind, file in (("text", "train.vw"), ("gzip", "train.vw.gz")):
            ways = [streams.READ, [*TOOLS["vw"], "--noop", "-d"]]
            jobs = [(way, data) for way in ways for data in (file, "few.vw")]
            measure([*ways[0], file], folder)  # compiles
            taken: dict[int, list[float]] = {j: [] for j in range(len(jobs))}
            for _ in range(options.repetitions):
                for j, (way, data) in enumerate(jobs):
                    taken[j].append(measure([*way, data], folder).wall)
            wall, start_wall, vw_wall, vw_start_wall = (statistics.median(taken[j]) for j in range(len(jobs)))
            less = max(wall - start_wall, 1e-3), max(vw_wall - vw_start_wall, 1e-3)
            ratios[kind].append(less[0] / less[1])
            numbers = (wall, vw_wall, wall / vw_wall, *less, less[0] / less[1])
            lines.append(
                f"| {name} | {size:.0f} | {kind} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |"
            )
    means = ", ".join(f"{kind} {geometric_mean(values):.2f}" for kind, values in ratios.items())
    return [*lines, "", f"Geometric mean, less the start: {means}."]


def _methods(options: argparse.Namespace) -> list[str]:
    """The methods of `RIVALS` that are requested."""
    every = list(dict.fromkeys(method for pair in RIVALS.values() for method in pair))
    wanted = options.methods or every
    for method in wanted:
        if method not in every:
            raise BenchError(f"--methods: {method!r} is none of {', '.join(every)}")
    return wanted


def _rivals(options: argparse.Namespace, work: Path, name: str) -> dict[str, dict]:
    """Medians of the methods of `RIVALS` on one set, and of one run where that is long."""
    folder, classes = prepare(options.data_dir, name, work)
    examples = (folder / "train.vw").read_bytes().count(b"\n")
    left_out = {"fastText softmax"} if examples * classes > DENSE else set()
    results: dict[str, list[dict]] = {
        method: []
        for method in _methods(options)
        if method not in left_out and not peers.missing(peers.METHODS[method][0])
    }
    for _ in range(options.repetitions):
        for method, runs in results.items():
            if not runs or runs[0]["train"] < LONG:
                runs.append(peers.run(method, name, folder, classes))
    numbers = ("error", "train", "train_cpu", "test", "test_us", "memory")
    return {
        method: {
            **runs[0],
            **{field: statistics.median(run[field] for run in runs) for field in numbers},
            "runs": len(runs),
        }
        for method, runs in results.items()
    }


def beside_peers(options: argparse.Namespace, work: Path, sets: list[str]) -> list[str]:
    """Time xclass beside the batch learners; return the lines of the report."""
    lines = ["| set | K | method | test error | train s | CPU s | peak MB | test us an example | runs |"]
    lines.append("| --- | --: | --- " + "| --: " * 6 + "|")
    peers.say_what_is_missing(peers.METHODS[method][0] for method in _methods(options))
    results = {}
    for name in sets:
        results[name] = _rivals(options, work, name)
        if options.json:  # as peers.py keeps it, whose --table and --plot take it
            path = options.json.with_name(f"{options.json.stem}.peers{options.json.suffix}")
            runs = [medians for methods in results.values() for medians in methods.values()]
            path.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    for name, methods in results.items():
        for method, medians in methods.items():
            numbers = (
                medians["train"],
                medians["train_cpu"],
                medians["memory"] / 1e6,
                medians["test_us"],
                medians["runs"],
            )
            lines.append(
                f"| {name} | {medians['classes']} | {method} | {medians['error']:.4f} | "
                + " | ".join(f"{number:.{digits}f}" for number, digits in zip(numbers, (2, 2, 0, 1, 0), strict=True))
                + " |"
            )
    ratios_of = []
    for tool, (method_a, method_b) in RIVALS.items():
        pairs = [(methods.get(method_a), methods.get(method_b)) for methods in results.values()]
        ratios = [a["train"] / b["train"] if a and b else None for a, b in pairs]
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            cells = ["" if ratio is None else f"{ratio:.2f}" for ratio in [*ratios, geometric_mean(known)]]
            ratios_of.append(f"| {tool} | " + " | ".join(cells) + " |")
    if ratios_of:
        head = "| ratio of training s | " + " | ".join(sets) + " | geometric mean |"
        lines += ["", head, "| --- |" + " --: |" * (len(sets) + 1), *ratios_of]
    return lines


def start(options: argparse.Namespace, work: Path, sets: list[str]) -> list[str]:
    """Time runs over ten lines; return the lines of the report."""
    folder, classes = prepare(options.data_dir, sets[0], work)
    with open(folder / "few.vw", "rb") as few:
        (folder / "ten.vw").write_bytes(b"".join(line for line, _ in zip(few, range(TEN), strict=False)))
    lines = ["| | warm s | CPU s | MB | first run ever, s | CPU s |", "| --- | --: | --: | --: | --: | --: |"]
    for way in STARTS:
        command = [*TOOLS["xclass"], "-d", "ten.vw", way, str(classes), "-b", "18"]
        with tempfile.TemporaryDirectory(prefix="bench-") as cache:
            before = os.environ.get("XDG_CACHE_HOME")
            os.environ["XDG_CACHE_HOME"] = cache
            try:
                cold = measure(command, folder)
                warm = [measure(command, folder) for _ in range(max(3, options.repetitions))]
            finally:
                del os.environ["XDG_CACHE_HOME"]
                if before is not None:
                    os.environ["XDG_CACHE_HOME"] = before
        wall, cpu = (statistics.median(getattr(run, field) for run in warm) for field in ("wall", "cpu"))
        memory = max(run.memory for run in warm) / 1e6
        lines.append(f"| `{way}` | {wall:.2f} | {cpu:.2f} | {memory:.0f} | {cold.wall:.1f} | {cold.cpu:.1f} |")
    vw = [measure([*TOOLS["vw"], "-d", "ten.vw", "--oaa", str(classes)], folder) for _ in range(3)]
    wall, cpu = (statistics.median(getattr(run, field) for run in vw) for field in ("wall", "cpu"))
    return [*lines, f"| VW `--oaa` | {wall:.2f} | {cpu:.2f} | {max(run.memory for run in vw) / 1e6:.0f} | | |"]


OTHERS = {"peers": (beside_peers, BESIDE), "reading": (reading, READ), "start": (start, READ)}  # and their sets


def main() -> None:
    """Measure the requested parts, and print a report for each."""
    every = [*PARTS, *OTHERS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR", help="folder of data sets")
    parser.add_argument("--parts", type=names, default=every, metavar="A,B", help=f"of {', '.join(every)}")
    parser.add_argument("--sets", type=names, metavar="A,B", help="in place of a part's own")
    parser.add_argument("--methods", type=names, metavar="A,B", help="of the part peers")
    parser.add_argument("--repetitions", type=int, default=3, metavar="R", help="runs of each (default: 3)")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for unpacked data and models, kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements here")
    given = parser.parse_args()
    for name in given.parts:
        if name not in every:
            raise BenchError(f"--parts: {name!r} is none of {', '.join(every)}")
    if given.methods and "peers" not in given.parts:
        parser.error("--methods chooses from the part peers")
    if given.repetitions < 1:
        parser.error("--repetitions: at least 1")
    with work_folder(given.work) as work:
        for name in given.parts:
            print(f"\n## {name}\n", flush=True)
            if name in PARTS:
                part = {"repetitions": given.repetitions, **PARTS[name]}
                if given.sets:
                    part["sets"] = given.sets
                if given.json:
                    part["json"] = given.json.with_name(f"{given.json.stem}.{name}{given.json.suffix}")
                compare(Comparison(given.data_dir, **part), work)
            else:
                part, own = OTHERS[name]
                lines = part(given, work, given.sets or own)
                print("\n".join([*lines, "", measured_on(given.repetitions, machine())]), flush=True)


if __name__ == "__main__":
    run(main)
