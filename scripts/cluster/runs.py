"""Run the command on a Ray cluster and read what its workers have spent."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from scripts.lib.processes import TOOLS, BenchError

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
    messages: list[str]
    own_cpu: float  # seconds of the process that was started, without its workers and Ray's services

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


def learn(name: str, words: list[str], data: Path, folder: Path) -> Run:
    """Learn in a process of its own.

    Parameters
    ----------
    name : of the run, for its files
    words : options
    data : file to learn from
    folder : for the files

    Raises
    ------
    BenchError
        if the run fails.
    """
    model = folder / f"{name}.bin"
    command = [*TOOLS["xclass"], *words, "-d", str(data), "-f", str(model)]
    cpu = 0.0
    with open(folder / f"{name}.err", "w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while process.poll() is None:
            cpu = max(cpu, cpu_of(process.pid))
            time.sleep(0.02)
        errors.seek(0)
        messages = errors.read().splitlines()
    if process.returncode:
        raise BenchError("\n".join([f"{' '.join(command)} ended with status {process.returncode}:", *messages]))
    return Run(model, messages, cpu)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process has used, without its children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
