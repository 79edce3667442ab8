"""Compare models that were spread over workers with those of one process, byte for byte, while workers are killed.

    python -m scripts.cluster.exactness [--lines N] [--kills N] [--workers 1 2 4] NAME...

NAME is one of the data sets in `CASES`, which the folder of --data has as NAME.train.vw. Each is learned by one process
and with each number of workers, and the models and predictions are compared. Then it is learned with the last number of
workers until in --kills runs a worker chosen at random was killed, as by `kill -9`, at a random time.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

CASES = {
    "panlex": ["--oaa", "2111"],
    "wordnet": ["--multiclass"],
    "ptb": ["--multiclass"],
    "clinc150": ["--softmax_tree", "150"],
}
WORKER = b"ray::Worker"  # how the processes of the workers begin their command line


class Run(NamedTuple):
    """Hold what a run of the command has left, and what it took."""

    model: Path
    predictions: Path
    messages: list[str]
    cpu: float  # seconds, of the process and, if there are any, of its workers
    seconds: float
    killed: int  # number of workers that were killed


def learn(name: str, words: list[str], data: Path, folder: Path, kill_after: float | None = None) -> Run:
    """Learn in a process of its own.

    Parameters
    ----------
    name : of the run, for its files
    words : options
    kill_after : seconds after which a worker is killed, counted from when there are workers; None for never
    """
    model, predictions = folder / f"{name}.bin", folder / f"{name}.txt"
    command = [sys.executable, "-m", "xclass", *words, "-d", str(data), "-f", str(model), "-p", str(predictions)]
    begin, before, killed = time.perf_counter(), os.times(), 0
    with open(folder / f"{name}.err", "w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        if kill_after is not None:
            killed = _kill_one(process, kill_after)
        status = process.wait()
        errors.seek(0)
        messages = errors.read().splitlines()
    if status:
        raise SystemExit(f"{' '.join(command)} ended with status {status}:\n" + "\n".join(messages))
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    workers = [line.partition("CPU seconds = ")[2].partition(",")[0] for line in messages if line.startswith("worker ")]
    return Run(model, predictions, messages, cpu + sum(map(float, filter(None, workers))),
               time.perf_counter() - begin, killed)  # fmt: skip


def _kill_one(process: subprocess.Popen[bytes], kill_after: float) -> int:
    """Kill a worker of a run some seconds after there are workers; return 0 if the run ended before."""
    while process.poll() is None and not workers_of(process.pid):
        time.sleep(0.05)
    deadline = time.perf_counter() + kill_after
    while process.poll() is None and time.perf_counter() < deadline:
        time.sleep(0.01)
    pids = workers_of(process.pid) if process.poll() is None else []
    if not pids:
        return 0
    os.kill(random.choice(pids), signal.SIGKILL)
    return 1


def workers_of(pid: int) -> list[int]:
    """Return the process ids of the workers that descend from a process."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                names[int(entry.name)] = (entry / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue
    own = {pid}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return sorted(child for child in own if names.get(child, b"").startswith(WORKER))


def same(first: Run, second: Run) -> bool:
    """Return whether two runs have the same model and the same predictions."""
    pairs = ((first.model, second.model), (first.predictions, second.predictions))
    return all(filecmp.cmp(a, b, shallow=False) for a, b in pairs)


def compare(name: str, options: argparse.Namespace, folder: Path) -> bool:
    """Compare the runs on a data set, print a line for each, and return whether all are equal."""
    data, words = Path(options.data) / f"{name}.train.vw", CASES[name] + options.more
    if options.lines:
        with data.open("rb") as whole:
            part = [whole.readline() for _ in range(options.lines)]
        data = folder / f"{name}.vw"
        data.write_bytes(b"".join(part))
    one = learn("one", words, data, folder)
    print(f"{name} {' '.join(words)}: one process, {one.cpu:.1f} CPU s, {one.seconds:.1f} s", flush=True)
    equal = True
    for count in options.workers:
        cluster = ["--workers", str(count), *(["--ray", options.ray] if options.ray else [])]
        many = learn("many", [*words, *cluster], data, folder)
        equal &= same(one, many)
        print(
            f"  {count} workers: {'equal' if same(one, many) else 'DIFFERENT'}, {many.cpu:.1f} CPU s "
            f"({many.cpu / one.cpu:.2f} x), {many.seconds:.1f} s",
            *(f"    {line}" for line in many.messages if line.startswith("worker ")), sep="\n", flush=True,
        )  # fmt: skip
    rng, runs, kills, differ = random.Random(options.seed), 0, 0, 0
    while kills < options.kills:  # a run may end before its worker is killed
        after = rng.random() * max(0.5, many.seconds - options.start_seconds)
        killed = learn("killed", [*words, "--workers", str(options.workers[-1])], data, folder, after)
        runs += 1
        kills += killed.killed
        differ += not same(one, killed)
    if options.kills:
        print(f"  {runs} runs, in {kills} of which a worker was killed: {differ} different", flush=True)
    return equal and not differ


def main(words: list[str] | None = None) -> int:
    """Compare the runs on the data sets that are named; return 1 if any differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=CASES, metavar="NAME")
    parser.add_argument("--data", default="/tmp/data", help="folder of the data sets")
    parser.add_argument("--lines", type=int, help="number of lines of each data set; all by default")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=0, help="number of runs in which a worker has to be killed")
    parser.add_argument("--start_seconds", type=float, default=4.0, help="time before and after the learning of a run")
    parser.add_argument("--ray", help="address of a cluster that is running, without which each run starts its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of the command")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        return int(not all([compare(name, options, Path(folder)) for name in options.names]))


if __name__ == "__main__":
    sys.exit(main())
