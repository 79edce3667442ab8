"""Run VW many times without paying for its start each time: a process that has loaded it forks for every command line.

`python -m vowpalwabbit` takes a fifth of a second to start, a fork a hundredth. The process is another one than that
of xclass, so that a crash of either is an exit status of one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SECONDS = 30  # after which a run of VW counts as hanging


class CompletedRun(NamedTuple):
    """How a run ended and what it wrote."""

    status: int
    out: str
    err: str


class VW:
    """VW in a process of its own; to be used in a `with` statement."""

    def __enter__(self) -> VW:
        words = [sys.executable, str(Path(__file__).with_name("vw_server.py")), str(SECONDS)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
