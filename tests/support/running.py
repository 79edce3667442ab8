"""Commands of scripts/ for tests: `tool` in this process, which is quick, or `process` in one of its own.

What `tool` measures runs in this process too: xclass gives its real answers, with a table of at most 2^MOST_BITS
slots, and its CPU time is made up of the number of examples, so that it does not depend on the machine.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from command import xclass

from scripts.lib import command_line, processes

ROOT = Path(__file__).resolve().parents[2]
MOST_BITS = 18
START, EXAMPLE = 0.5, 1e-4  # CPU seconds of a run and of each of its examples
carry_out = processes.carry_out


def process(name: str, *words) -> subprocess.CompletedProcess:
    """Run a command of scripts/, such as `bench.compare`, in a process of its own and in this folder."""
    command = [sys.executable, "-m", f"scripts.{name}", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=environment(), stdin=subprocess.DEVNULL
    )


def environment(**more: str) -> dict[str, str]:
    """Return this environment, with the project's folder first on the path of imports."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def tool(name: str, *words, cwd: str | os.PathLike | None = None) -> subprocess.CompletedProcess:
    """Carry out a command of scripts/ in this process, and what it measures of xclass too."""
    main = importlib.import_module(f"scripts.{name}").main
    out, err = io.StringIO(), io.StringIO()
    before = os.getcwd()
    with (
        measuring_here(),
        mock.patch.object(sys, "argv", [name.rpartition(".")[2], *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            os.chdir(cwd or before)
            command_line.run(main)
        except SystemExit as end:
            status = end.code
        finally:
            os.chdir(before)
    if isinstance(status, str):  # as Python ends a process
        status = print(status, file=err) or 1
    return subprocess.CompletedProcess([name, *words], status or 0, out.getvalue(), err.getvalue())


def measuring_here() -> contextlib.AbstractContextManager:
    """Carry out in this process what is measured of xclass."""
    return mock.patch.object(processes, "carry_out", _carry_out_here)


def _carry_out_here(command, folder, out, err):
    """Do what `processes.carry_out` does."""
    words = list(command)
    for at, word in enumerate(words[:-1]):
        if word == "-b" and int(words[at + 1]) <= 30:  # more is an error
            words[at + 1] = str(min(int(words[at + 1]), MOST_BITS))
    start = processes.TOOLS["xclass"]
    if words[: len(start)] != start:
        return carry_out(words, folder, out, err)
    done = xclass(*words[len(start) :], cwd=folder)
    out.write(done.out.encode())
    err.write(done.err.encode())
    examples = sum(map(int, re.findall(r"^number of examples = (\d+)", done.err, re.MULTILINE)))
    return done.status, SimpleNamespace(ru_utime=START + EXAMPLE * examples, ru_stime=0.0, ru_maxrss=100_000)
