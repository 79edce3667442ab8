"""Run processes and measure their time and memory from start to end."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {"xclass": [sys.executable, "-m", "xclass"], "vw": [sys.executable, "-m", "vowpalwabbit"]}


def environment() -> dict[str, str]:
    """Return the environment in which Python finds the xclass of this project in any folder."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class BenchError(Exception):
    """Report, by a message without a traceback, that a measurement cannot be made."""


@dataclass
class Run:
    """Hold the measurements of a process from its start to its end."""

    wall: float  # seconds
    cpu: float  # seconds, of all threads
    memory: float  # bytes, peak
    stderr: str  # what it wrote to standard error


def measure(command: list[str], folder: Path, limit: int | None = None) -> Run:
    """Run a command in a folder and return its measurements; raise BenchError if it fails.

    The peak memory includes that of the forked copy of this process before it executes the command, so a peak below the
    memory of this process (some 20 MB) is not visible. A `limit` is of CPU seconds.
    """
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "w+b") as err:
        start = time.perf_counter()
        status, usage = carry_out(limited(command, limit), folder, out, err)
        wall = time.perf_counter() - start
        err.seek(0)
        text = err.read().decode(errors="replace")
    if status != 0:
        raise BenchError(f"exit status {status} from: {shlex.join(command)}\n{text[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, text)


def limited(command: list[str], limit: int | None) -> list[str]:
    """Return a command that is ended by a signal after so many CPU seconds."""
    return command if limit is None else ["sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", *command]


def carry_out(command: list[str], folder: Path, out: BinaryIO, err: BinaryIO) -> tuple[int, resource.struct_rusage]:
    """Start a command and wait for its end; return its exit status and its resource usage."""
    child = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except BaseException:
        child.kill()
        raise
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used, without its children; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, str | int]:
    """Return the date, processor, number of cores and versions of packages, to store with measurements."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        match = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = match.group(1).strip() if match else cpu
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {"python": platform.python_version()}
    for package in ("xclass", "vowpalwabbit", "napkinxc", "fasttext-wheel", "numba", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    with contextlib.suppress(OSError):
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
        versions["commit"] = commit or "unknown"
    return {"date": datetime.date.today().isoformat(), "cpu": cpu, "cores": cores, "versions": versions}
