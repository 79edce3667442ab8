"""Run the command on a Ray cluster and read what its workers have spent."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from scripts.lib.processes import TOOLS, BenchError

WORKER = b"ray::Worker"  # the beginning of the command line of a worker in exact mode,
PART_LEARNER = b"ray::PartLearner"  # and of one in averaging mode
LOOK_SECONDS = 1.0  # between two readings of the CPU seconds of all processes of a run
COST = re.compile(
    r"^worker (\d+): examples = (\d+), CPU seconds = ([\d.]+), bytes sent = (\d+), bytes received = (\d+), "
    r"seconds waiting = ([\d.]+)$"
)


class WorkerCost(NamedTuple):
    """Hold what a worker has spent in a run, from a line of the summary."""

    number: int
    examples: int
    cpu: float  # seconds
    sent: int  # bytes
    received: int
    waiting: float  # seconds without work


class Run(NamedTuple):
    """Hold the files and the costs of a run of the command."""

    model: Path
    predictions: Path
    messages: list[str]
    own_cpu: float  # seconds of the process that was started, without its workers and Ray's services
    seconds: float  # from start to end
    killed: int  # number of workers that were killed
    services_cpu: float = 0.0  # seconds of the other processes that it has started: Ray's services, idle workers

    @property
    def costs(self) -> list[WorkerCost]:
        """Return what each worker has spent, nothing for a run of one process."""
        return costs_of(self.messages)

    @property
    def cpu(self) -> float:
        """Return the CPU seconds of the process that was started and of its workers."""
        return self.own_cpu + sum(cost.cpu for cost in self.costs)


def costs_of(messages: list[str]) -> list[WorkerCost]:
    """Return what each worker has spent, from the lines of a run."""
    found = [match for match in map(COST.match, messages) if match]
    return [WorkerCost(int(m[1]), int(m[2]), float(m[3]), int(m[4]), int(m[5]), float(m[6])) for m in found]


def learn(
    name: str,
    words: list[str],
    data: Path,
    folder: Path,
    kill_after: float | None = None,
    rng: random.Random | None = None,
    node: int | None = None,
) -> Run:
    """Learn in a process of its own.

    Parameters
    ----------
    name : of the run, for its files
    words : options
    data : file to learn from
    folder : for the files
    kill_after : seconds after which a worker is killed, counted from when there are workers; None for never
    rng : chooses the worker
    node : process of the node whose workers are killed; by default the process that is started, which starts a Ray

    Raises
    ------
    BenchError
        if the run fails.
    """
    model, predictions = folder / f"{name}.bin", folder / f"{name}.txt"
    command = [*TOOLS["xclass"], *words, "-d", str(data), "-f", str(model)]
    if "--sync_every" not in words:
        command += ["-p", str(predictions)]
    begin, killed, cpu = time.perf_counter(), 0, 0.0
    looked = begin
    others: dict[int, float] = {}  # process -> its CPU seconds
    with open(folder / f"{name}.err", "w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        if kill_after is not None:
            killed = _kill_one(process, node or process.pid, kill_after, rng or random.Random(0))
        while process.poll() is None:
            cpu = max(cpu, cpu_of(process.pid))
            if time.perf_counter() - looked >= LOOK_SECONDS:
                others |= {pid: cpu_of(pid) for pid in descendants(process.pid)}
                for pid in workers_of(process.pid):
                    others[pid] = 0.0  # it counts its CPU seconds itself
                looked = time.perf_counter()
            time.sleep(0.02)
        errors.seek(0)
        messages = errors.read().splitlines()
    if process.returncode:
        raise BenchError("\n".join([f"{' '.join(command)} ended with status {process.returncode}:", *messages]))
    seconds = time.perf_counter() - begin
    return Run(model, predictions, messages, cpu, seconds, killed, sum(others.values()))


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used, without its children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _kill_one(process: subprocess.Popen[bytes], root: int, kill_after: float, rng: random.Random) -> int:
    """Kill a descendant of `root` some seconds after it has workers; return 0 if the run ended before."""
    while process.poll() is None and not workers_of(root):
        time.sleep(0.05)
    deadline = time.perf_counter() + kill_after
    while process.poll() is None and time.perf_counter() < deadline:
        time.sleep(0.01)
    pids = workers_of(root) if process.poll() is None else []
    if not pids:
        return 0
    os.kill(rng.choice(pids), signal.SIGKILL)
    return 1


def descendants(pid: int) -> dict[int, bytes]:
    """Return the processes that descend from a process, which is not among them, and their command lines."""
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
    return {child: names[child] for child in own - {pid} if child in names}


def workers_of(pid: int) -> list[int]:
    """Return the process ids of the workers that descend from a process."""
    return sorted(child for child, name in descendants(pid).items() if name.startswith((WORKER, PART_LEARNER)))


def train_file(data_dir: Path, name: str, kind: str = "train") -> Path:
    """Return the file of a set, DATA_DIR/NAME/train.vw; raise BenchError if it is missing or empty."""
    path = data_dir / name / f"{kind}.vw"
    if not path.is_file() or not path.stat().st_size:
        raise BenchError(f"{path} is missing or empty; give the folder that has {name}/{kind}.vw")
    return path.absolute()


def head(data: Path, lines: int | None, folder: Path) -> Path:
    """Return a file with the first lines of another one, or the other one if all are wanted."""
    if not lines:
        return data
    part = folder / f"{data.parent.name}.vw"
    with data.open("rb") as whole, part.open("wb") as out:
        out.writelines(line for _, line in zip(range(lines), whole, strict=False))
    return part
