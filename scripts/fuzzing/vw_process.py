"""Run VW many times without paying for its start each time: a process that has loaded it forks for every command line.

`python -m vowpalwabbit` takes a fifth of a second to start, a fork a hundredth. The process is another one than that
of xclass, so that a crash of either is an exit status of one run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.lib.processes import ROOT

SECONDS = 30  # after which a run of VW counts as hanging


class CompletedRun(NamedTuple):
    """How a run ended and what it wrote."""

    status: int
    out: str
    err: str


class VW:
    """VW in a process of its own; to be used in a `with` statement."""

    def __enter__(self) -> VW:
        words = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, cwd=ROOT, text=True, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, args: Sequence[str], folder: Path) -> CompletedRun:
        """Carry out a command line in `folder`; its exit status is that of a shell."""
        self._process.stdin.write(json.dumps([list(args), str(folder)]) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            raise RuntimeError("the process that starts VW has ended; is vowpalwabbit installed?")
        written = [folder / name for name in (".out", ".err")]
        texts = [path.read_bytes().decode("utf-8", "backslashreplace") for path in written]
        for path in written:
            path.unlink()
        return CompletedRun(int(reply), *texts)


def serve() -> None:
    """Read command lines and folders as JSON, a line each; execute each in a fork and reply with its status."""
    import vowpalwabbit

    for line in sys.stdin:
        args, folder = json.loads(line)
        child = os.fork()
        if child == 0:
            _carry_out(vowpalwabbit.Workspace, args, folder)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _carry_out(workspace: type, args: list[str], folder: str) -> None:
    """Do what `python -m vowpalwabbit ARGS` does and end the process."""
    signal.alarm(SECONDS)
    os.chdir(folder)
    for number, name in ((1, ".out"), (2, ".err")):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
    status = 0
    try:
        workspace(arg_list=args).finish()
    except Exception as error:  # VW's message, as its last words
        os.write(2, f"{error}\n".encode("utf-8", "surrogateescape"))
        status = 1
    os._exit(status)
