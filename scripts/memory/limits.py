"""How far each reduction is from what the memory of this machine allows.

    python -m scripts.memory.limits DATA_DIR --sets spelling,wordnet,panlex --json limits.json
    python -m scripts.memory.limits --classes 1000,1000000 --examples 1000000 --reductions cpt --args='-b 24'

With `--classes`, streams with these numbers of classes are generated, as `scripts.bench.scaling` does. A model is
trained on the first lines of each training file. The time achieved is the CPU time of all threads per example, less
that of a run over a few lines. Then 30 further examples are learned by the kernels as plain Python, and the different
cache lines of 64 bytes that each visits are counted: of weight tables, and others (`memory_accesses`). Then lines of a
table as large as the weights are read and changed: independent random lines, several of which are on their way at the
same time, consecutive lines, and dependent ones, whose addresses are known when the line before has arrived. The least
time is that of one thread with huge pages: of consecutive lines for those that follow another line of the same example,
of independent ones for the rest. New lines are those that none of the 10 examples before visited; others are probably
in a cache, and are free in the second ratio. Computing is in neither. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import mmap
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

from scripts.lib.command_line import names, numbers, run, workspace
from scripts.lib.data_sets import WARM_UP_LINES, options_of, prepare
from scripts.lib.memory_accesses import LINE, NEEDED, count_lines
from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import table
from scripts.lib.streams import write_stream
from scripts.lib.training import head, lines_of
from xclass.kernels import intrinsics

WORDS = LINE // 4  # numbers of a line
AHEAD = (0, 16, 32)  # how many runs ahead are prefetched; the fastest counts
STREAM_SEED, STREAM_FEATURES = 1, 10
TIMES, COUNT = 3, 1_000_000  # runs, of which the fastest counts, and lines that a loop visits
KINDS = {"independent": (1, 1), "2 threads": (2, 1), "consecutive": (1, 64), "dependent": (1, 1)}  # threads, run
HEADS = ["set", "reduction", "features", "weights", "other", "new", "us", "least us", "new", "ratio", "new"]


@njit(nogil=True)
def place(i, lines):
    """Return the position of a line that seems random."""
    x = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((x >> np.uint64(32)) * np.uint64(lines) >> np.uint64(32)) * WORDS


@njit(nogil=True)
def visit(numbers, lines, length, ahead, begin, end):
    """Change a number in each line of runs of lines; the runs begin at places that do not depend on one another."""
    for i in range(begin, end):
        if ahead:
            intrinsics.prefetch(numbers, place(i + ahead, lines))
        at = place(i, lines)
        for j in range(length):
            numbers[at + j * WORDS] += np.uint32(1)


@njit(nogil=True)
def chase(numbers, lines, begin, end):
    """Change a number in lines whose places depend on the number in the line before."""
    value = np.uint32(0)
    for i in range(begin, end):
        at = place(np.uint64(i) + np.uint64(value), lines)
        value = numbers[at] + np.uint32(1)
        numbers[at] = value


def per_run(job, threads: int, count: int) -> float:
    """Return the CPU nanoseconds of a thread for each of the numbers from a to b-1 in `job(a, b)`."""

    def timed(begin: int) -> int:
        start = time.thread_time_ns()
        job(begin, begin + count)
        return time.thread_time_ns() - start

    job(0, 1)  # compiles it
    with ThreadPoolExecutor(threads) as pool:
        return min(max(pool.map(timed, range(0, threads * count, count))) for _ in range(TIMES)) / count


def gather(size: int) -> dict[str, float]:
    """Return the nanoseconds per line of a table of so many bytes, by kind of accesses and pages."""
    intrinsics.install()
    lines, found = size // LINE, {}
    for pages in ("huge", "small"):
        memory = mmap.mmap(-1, lines * LINE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE if pages == "huge" else mmap.MADV_NOHUGEPAGE)
        numbers = np.frombuffer(memory, np.uint32)
        numbers[:] = 1
        for kind, (threads, length) in KINDS.items():
            jobs = [partial(visit, numbers, lines - length + 1, length, ahead) for ahead in AHEAD]
            jobs = [partial(chase, numbers, lines)] if kind == "dependent" else jobs
            found[f"{kind}, {pages}"] = min(per_run(job, threads, COUNT // length) for job in jobs) / length
    return found


def stream(work: Path, classes: int, examples: int) -> Path:
    """Return a folder with a generated stream as train.vw."""
    folder = work / f"{classes}_classes"
    folder.mkdir(exist_ok=True)
    write_stream(folder / "train.vw", STREAM_SEED, classes, examples + NEEDED, STREAM_FEATURES)
    return folder


def timed(folder: Path, words: list[str], examples: int) -> dict[str, float]:
    """Return the CPU microseconds per example of training; the first run compiles the kernels."""
    command, few = [*TOOLS["xclass"], *words, "-d"], min(WARM_UP_LINES, examples // 2)
    cpu = [min(measure([*command, head(folder, n)], folder).cpu for _ in range(TIMES)) for n in (few, examples)]
    return {"us": 1e6 * (cpu[1] - cpu[0]) / (examples - few)}


def row(at: dict[str, float]) -> list[str]:
    """Return the figures of a row of the table."""
    cost = {"apart": at["independent, huge"] / 1000, "following": at["consecutive, huge"] / 1000}
    possible = [sum(at[of + kind] * cost[kind] for kind in cost) for of in ("", "new_")]
    counts = at["features"], at["weights"], at["other"], at["new_apart"] + at["new_following"]
    times = at["us"], *possible, *(at["us"] / least for least in possible)
    return [*(f"{count:,.0f}" for count in counts), *(f"{us:.1f}" for us in times)]


def main() -> None:
    """Measure what is not stored yet and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path, metavar="DATA_DIR", nargs="?")
    options.add_argument("--sets", default=[], type=names, metavar="A,B")
    options.add_argument("--classes", default=[], type=numbers, metavar="K,...", help="numbers of classes of streams")
    options.add_argument("--reductions", type=names, default=names("oaa,log_multi,cpt,recall_tree,multiclass"))
    options.add_argument("--examples", type=int, default=50_000, help="lines to train on, at most (default: 50000)")
    options.add_argument("--args", default="", help="options of every run of xclass")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--work", type=Path, help="folder for the data; a temporary one by default")
    given = options.parse_args()
    if bool(given.sets) != bool(given.data_dir) or not (given.sets or given.classes):
        options.error("give DATA_DIR and --sets, or --classes, or all three")
    rows, loops = [], {}
    with workspace(given) as (work, store):
        for name in [*given.sets, *given.classes]:
            if isinstance(name, int):
                folder, classes = stream(work, name, given.examples), name
                name = f"{classes:,} classes"
            else:
                folder, classes = prepare(given.data_dir, name, work)
            examples = max(2, min(given.examples, lines_of(folder) - NEEDED))
            for reduction in given.reductions:
                text = f"--{reduction} {classes} {options_of(name)} {given.args}"
                key = {"set": name, "options": " ".join(text.split()), "examples": examples}
                job = folder, shlex.split(text), examples
                at = store.get({**key, "measured": "lines"}, partial(count_lines, *job))
                megabytes = -(-int(at["bytes"]) // 2**20)
                at = at | store.get({"measured": "memory", "megabytes": megabytes}, partial(gather, megabytes << 20))
                at = at | store.get({**key, "measured": "time"}, partial(timed, *job))
                rows.append([name, f"`--{reduction}`", *row(at)])
                both = [f"{at[f'{kind}, huge']:.1f} / {at[f'{kind}, small']:.1f}" for kind in KINDS]
                loops[megabytes] = [f"{megabytes:,}", *both]
    print(table(HEADS, rows), "\nNanoseconds per line, huge pages / small pages:\n", sep="\n")
    print(table(["MB of weights", *KINDS], (loops[size] for size in sorted(loops))))


if __name__ == "__main__":
    run(main)
