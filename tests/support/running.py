"""Run commands of scripts/ in tests: `tool(...)` in this process, which is faster, `process(...)` in a fork of it.

Under `tool`, the runs of xclass that the command measures are executed in this process, too, with a weight table of at
most 2^MOST_BITS slots. Their results are real, but their CPU time is computed from the number of examples, so that it
does not depend on the machine.
"""

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

from command import run_forked, xclass

from scripts.lib import command_line, processes

ROOT = Path(__file__).resolve().parents[2]
MOST_BITS = 18
START, EXAMPLE = 0.5, 1e-4  # computed CPU seconds: of the start of a run, and of each of its examples
carry_out = processes.carry_out


def process(name: str, *words) -> subprocess.CompletedProcess:
    """Run a command of scripts/, such as `bench.table`, in a fork of this process in the current folder."""
    code = f"import runpy; runpy.run_module('scripts.{name}', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", code, *map(str, words)]
    return run_forked(command, capture_output=True, text=True, timeout=900, env=environment(), stdin=subprocess.DEVNULL)


def environment(**more: str) -> dict[str, str]:
    """Return this environment, with the project's folder first on the import path."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def tool(name: str, *words, cwd: str | os.PathLike | None = None) -> subprocess.CompletedProcess:
    """Execute a command of scripts/, and the runs of xclass that it measures, in this process."""
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
    if isinstance(status, str):  # `sys.exit` with text writes it to standard error and ends with status 1
        status = print(status, file=err) or 1
    return subprocess.CompletedProcess([name, *words], status or 0, out.getvalue(), err.getvalue())


def measuring_here() -> contextlib.AbstractContextManager:
    """Return a context manager in which the measured runs of xclass are executed in this process."""
    return mock.patch.object(processes, "carry_out", _carry_out_here)


def _carry_out_here(command, folder, out, err):
    """Replace `processes.carry_out`: run xclass in this process, and other commands as before."""
    words = list(command)
    for at, word in enumerate(words[:-1]):
        if word == "-b" and int(words[at + 1]) <= 30:  # a larger value is an error, which must not be hidden
            words[at + 1] = str(min(int(words[at + 1]), MOST_BITS))
    start = processes.TOOLS["xclass"]
    if words[: len(start)] != start:
        return carry_out(words, folder, out, err)
    result = xclass(*words[len(start) :], cwd=folder)
    out.write(result.out.encode())
    err.write(result.err.encode())
    examples = sum(map(int, re.findall(r"^number of examples = (\d+)", result.err, re.MULTILINE)))
    return result.status, SimpleNamespace(ru_utime=START + EXAMPLE * examples, ru_stime=0.0, ru_maxrss=100_000)
