"""Test error and time of training against the size of the table or the number of classes, of xclass and VW.

    python -m scripts.memory.memory_curve DATA_DIR --sets ptb,panlex --bits 18,20,22,24,26,28 --plot memory.png \
        --methods 'xclass --cpt {K};VW --recall_tree {K} --loss_function logistic'
    python -m scripts.memory.memory_curve --classes 1000,10000,100000 --examples 300000 --bits 24 --plot classes.png \
        --methods 'xclass --cpt {K};VW --log_multi {K}'

`--methods` are command lines, separated by semicolons; `{K}` is the number of classes. The first command learns data
sets as in compare.py, the second one the streams of scaling.py. Training is one pass; training and testing are whole
processes. Times are CPU times of all threads: of the whole process with data sets, which includes starting and saving
the model, and less those of a run over a few lines with streams. The bytes of the table are those in the summary of
xclass, and 16 times 2^b for VW. Prints Markdown tables; `--plot FILE` draws them (matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import re
import shlex
from functools import cache, partial
from itertools import product
from pathlib import Path

from scripts.lib.command_line import names, numbers, run, workspace
from scripts.lib.data_sets import WARM_UP_LINES, options_of, prepare
from scripts.lib.plots import PIXELS, log_axis, plotting
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import ResultStore, table, test_error
from scripts.lib.streams import folder_of
from scripts.lib.training import head, lines_of

VW_WEIGHT = 16  # bytes of a weight of VW with its adaptive and normalised update
UNITS = {"error": "test error %", "cpu": "CPU seconds of training", "micros": "CPU us an example in training"}
Point = dict[str, float]  # what was measured of one run
Results = dict[str, dict[tuple[str, int], Point]]  # set -> method and value -> point


@cache
def compile_kernels(folder: Path, options: str) -> None:
    """Train and test on a few lines, so that no run that is measured compiles."""
    command, few = TOOLS["xclass"], head(folder, WARM_UP_LINES)
    measure([*command, "-d", few, *shlex.split(options), "-b", "18", "-f", "m.model"], folder)
    measure([*command, "-d", few, "-t", "-i", "m.model", "-p", "p", "--quiet"], folder)


def xclass_tables(printed: str) -> float:
    """Return the megabytes of the tables of weights and of the index from the lines at the start of a run."""
    units = {"kB": 2**-10, "MB": 1.0}
    sizes = re.findall(r"^(?:Weights|Index): .*?([\d,]+) (kB|MB)", printed, re.MULTILINE)
    return sum(int(number.replace(",", "")) * units[unit] for number, unit in sizes)


def measured(folder: Path, method: str, classes: int, words: str, bits: int) -> Point:
    """Train and test once; return error, CPU seconds of training, CPU microseconds per example and megabytes."""
    program, *options = shlex.split(f"{method} {words}".replace("{K}", str(classes)))
    command = TOOLS[program.lower()]
    if program == "xclass":
        compile_kernels(folder, shlex.join(options))
    learning = [*options, "-b", str(bits), "-f", "m.model"]
    start = measure([*command, "-d", head(folder, WARM_UP_LINES), *learning], folder)
    train = measure([*command, "-d", "train.vw", *learning], folder)
    measure([*command, "-d", "test.vw", "-t", "-i", "m.model", "-p", "p", "--quiet"], folder)
    return {
        "error": test_error(folder / "test.vw", folder / "p"),
        "cpu": train.cpu,
        "micros": 1e6 * (train.cpu - start.cpu) / max(1, lines_of(folder) - WARM_UP_LINES),
        "peak": train.memory / 1e6,
        "table": xclass_tables(train.stderr) if program == "xclass" else VW_WEIGHT * 2**bits / 2**20,
    }


def measure_all(given: argparse.Namespace, work: Path, store: ResultStore) -> Results:
    """Measure all methods on all sets with every number of bits, or on streams with every number of classes."""
    results: Results = {}
    for data in given.classes or given.sets:
        if given.classes:
            title, words, where = "streams", "", {"examples": given.examples, "features": given.features}
            folder, classes = folder_of(work, "even", data, **where), data
        else:
            title, words, where = data, options_of(data), {"set": data}
            folder, classes = prepare(given.data_dir, data, work)
        for method, bits in product(given.methods, given.bits):
            key = {**where, "classes": classes, "method": method, "bits": bits}
            found = store.get(key, partial(measured, folder, method, classes, words, bits))
            results.setdefault(title, {})[method, classes if given.classes else bits] = found
    return results


def rows_of(points: dict[tuple[str, int], Point], time: str) -> list[list[str]]:
    """Return the rows of a table, a method in each; `time` is the key of the time in the measurements."""
    rows: dict[str, list[str]] = {}
    for (method, _), at in points.items():
        cell = f"{100 * at['error']:.1f} ({at[time]:.1f}, {at['peak']:.0f})"
        rows.setdefault(method, [f"`{method}`"]).append(cell)
    return list(rows.values())


def draw(results: Results, time: str, title: str, file: Path) -> None:
    """Draw the error above and the time below, a column for each set and a line for each method."""
    size = (4 * len(results) + 2, 8)
    figure, areas = plotting().subplots(2, len(results), figsize=size, squeeze=False, layout="constrained")
    for column, (name, points) in zip(areas.T, results.items(), strict=True):
        for area, key, scale in zip(column, ("error", time), (100, 1), strict=True):
            for method in dict.fromkeys(method for method, _ in points):
                of_method = {value: at for (other, value), at in points.items() if other == method}
                across = [max(1, at["table"]) for at in of_method.values()] if time == "cpu" else list(of_method)
                up = [scale * at[key] for at in of_method.values()]
                area.plot(across, up, "o-" if method.startswith("xclass") else "s--", markersize=3, label=method)
            log_axis(area)
            area.set(title=name, xlabel=title, ylabel=UNITS[key], yscale="linear" if key == "error" else "log")
    figure.legend(*areas[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=min(3, len(results)))
    figure.savefig(file, dpi=PIXELS)


def main() -> None:
    """Measure what is not stored yet; print the tables and draw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path, nargs="?", metavar="DATA_DIR")
    options.add_argument("--sets", type=names, metavar="A,B")
    options.add_argument("--methods", required=True, type=lambda text: text.split(";"), metavar="METHOD;METHOD")
    options.add_argument("--bits", type=numbers, default=[18, 20, 22, 24], metavar="B,B")
    options.add_argument("--classes", type=numbers, metavar="K,K", help="on streams with one number of bits")
    options.add_argument("--examples", type=int, default=300_000, help="of a stream (default: 300000)")
    options.add_argument("--features", type=int, default=10, help="of an example of a stream (default: 10)")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--plot", type=Path, metavar="FILE")
    options.add_argument("--work", type=Path, help="folder for the data; a temporary one by default")
    given = options.parse_args()
    if bool(given.classes) == bool(given.data_dir and given.sets):
        raise BenchError("give either a folder of data and --sets, or --classes")
    if given.classes and len(given.bits) > 1:
        raise BenchError("--classes: give one number of --bits")
    strange = [method for method in given.methods if method.split(" ")[0].lower() not in TOOLS]
    if strange:
        raise BenchError(f"--methods: {strange[0]!r} begins with none of {', '.join(TOOLS)}")
    time = "micros" if given.classes else "cpu"
    with workspace(given) as (work, store):
        results = measure_all(given, work, store)
    print(f"Test error % ({UNITS[time]}, peak MB of training).\n")
    for name, points in results.items():
        values = dict.fromkeys(value for _, value in points)
        heads = [f"K = {value:,}" if given.classes else f"-b {value}" for value in values]
        print(table([name, *heads], rows_of(points, time)), end="\n\n", flush=True)
    if given.plot:
        draw(results, time, "classes" if given.classes else "MB of the table", given.plot)


if __name__ == "__main__":
    run(main)
