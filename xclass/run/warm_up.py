"""The first run on a machine: while this process compiles what learns, another compiles what reads and saves.

numba compiles one kernel at a time in a process. Reading and learning have hardly a kernel in common and each takes
seconds, so that two processes halve the wait. They leave what they compiled in the one cache (`jit`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from ..data import batch_ops
from ..kernels import jit
from ..model.stored_arrays import dense, sparse
from ..reductions.core.base import Learner, Previews
from ..reductions.core.contract import BatchTask
from ..system import processors
from ..text.parser import Options, Parser

READING = "reading"  # under this name `jit` remembers that text can be read
LINE = b"1 't |n:2 a:1 b c=d\n"
SLOTS = 16  # of a table whose model takes fewer rows than that


def prepare(learner: Learner, learning: bool, reads: bool) -> None:
    """Compile at once what can be, if this is a first run; otherwise return at once.

    Parameters
    ----------
    learner, learning : as in `go_through`
    reads : whether text will be read
    """
    if not (reads and jit.folder() and jit.is_first_run(READING) and processors.count() > 1):
        return
    try:
        beside = _start()
    except OSError:  # no room for another process: this one compiles all, when it is needed
        return
    try:
        go_through(learner, learning)
        beside.wait()
    finally:
        beside.kill()
        beside.wait()


def go_through(learner: Learner, learning: bool) -> None:
    """Give a learner's stages a batch of no examples, which compiles them and teaches nothing.

    Parameters
    ----------
    learner : left alone if it wants to see examples before
    learning : whether the stages are to learn, or to predict only
    """
    if not isinstance(learner, Previews) or learner.preview_size is None:
        task = BatchTask(batch_ops.empty(0, 0, 0, 0), learning, np.empty(0))
        for stage in learner.stages:
            stage(task)


def _start() -> subprocess.Popen[bytes]:
    """Start the other process. What it fails to compile, this one compiles when it needs it."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(word for word in (root, os.environ.get("PYTHONPATH")) if word)
    return subprocess.Popen(
        [sys.executable, "-m", "xclass.run.warm_up"],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(jit.folder())},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def read() -> None:
    """Read a line and keep a table, so that every kernel of the parser and of model files gets compiled."""
    jit.activate()
    parser = Parser(Options(), 18, True)
    text = np.zeros(len(LINE) + 64, np.uint8)
    text[: len(LINE)] = np.frombuffer(LINE, np.uint8)
    parser.parse(text, len(LINE), "")
    _keep_and_take()


def _keep_and_take() -> None:
    """Take a weight table apart and put it together again, as a model file does."""
    table = np.zeros((SLOTS, 4), np.float32)
    table[0] = 1
    planes = {"w": table[:, 0]}
    dense("table", {name: np.asarray(array) for name, array in sparse("table", planes).items()}, planes)


if __name__ == "__main__":
    read()
