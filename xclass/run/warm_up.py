"""Compile kernels in several processes in the first run of a reduction on a machine.

numba compiles one kernel at a time in a process. The parts of a learner and the reader share few kernels, and the
compilation of each takes seconds, so processes that each compile a part shorten the wait. All write to the same cache
of compiled code (`jit`). A process that fails is ignored: a kernel that is missing is compiled when it is first called.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..api.configuration import Config, LearnerUse
from ..api.learner import Learner
from ..kernels import jit
from ..model.stored_arrays import pack_table, unpack_table
from ..reductions.core import base
from ..system import processors
from ..text.parser import Options, Parser

READING = "reading"  # name by which `jit` remembers that the kernels of the reader are compiled
LINE = b"1 't |n:2 a:1 b c=d\n"
SLOTS = 16  # slots of the table; all but one are empty, so that it is stored without empty rows


def prepare(config: Config, use: LearnerUse, learner: base.Learner, reads: bool) -> None:
    """Compile the kernels of a run in several processes if it is the first run of its reduction or of the reader.

    Parameters
    ----------
    config, use : options and use of the learner, with which another process makes it
    reads : whether the run reads text
    """
    if not (jit.is_first_run(config.reduction.name) or (reads and jit.is_first_run(READING))):
        return
    tasks = parts(learner, not use.testing, reads)
    count = min(processors.count(), len(tasks))
    if not jit.folder() or count < 2:
        return
    children: list[subprocess.Popen[bytes]] = []
    try:
        for first in range(1, count):
            try:
                children.append(_start(pickle.dumps((config, use, reads, range(first, len(tasks), count - 1)))))
            except OSError:  # there can be no more processes
                break
        tasks[0]()
        for child in children:
            child.wait()
    finally:
        for child in children:
            child.kill()
            child.wait()


def parts(learner: base.Learner, learn: bool, reads: bool) -> list[Callable[[], None]]:
    """Return functions that each compile a part of the kernels of a run, the one that takes longest first.

    Parameters
    ----------
    learn : whether to compile the kernels for learning, and not only those for prediction
    reads : whether the run reads text
    """
    waits = isinstance(learner, base.Previews) and learner.preview_size is not None  # it needs to see examples first
    of_learner = [] if waits else learner.warm_ups(learn)
    return [*of_learner, compile_reading] if reads else of_learner


def _start(work: bytes) -> subprocess.Popen[bytes]:
    """Start a process that does what `work` says, see `_serve`."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(word for word in (root, os.environ.get("PYTHONPATH")) if word)
    child = subprocess.Popen(
        [sys.executable, "-m", "xclass.run.warm_up"],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(jit.folder())},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdin is not None
    with child.stdin as pipe:
        pipe.write(work)
    return child


def _serve(pipe: BinaryIO) -> None:
    """Make the learner of another process, and run some of the tasks of that process."""
    config, use, reads, numbers = pickle.load(pipe)
    jit.activate()
    with Learner.from_config(config, use._replace(loaded=False), None) as learner:
        tasks = parts(learner.reduction, not use.testing, reads)
        for number in numbers:
            tasks[number]()


def compile_reading() -> None:
    """Compile the kernels of the parser and of model files by parsing a line and storing a table."""
    jit.activate()
    parser = Parser(Options(), 18, True)
    text = np.zeros(len(LINE) + 64, np.uint8)
    text[: len(LINE)] = np.frombuffer(LINE, np.uint8)
    parser.parse(text, len(LINE), "")
    _compile_tables()


def _compile_tables() -> None:
    """Convert a weight table to its stored form and back, as saving and loading a model do."""
    table = np.zeros((SLOTS, 4), np.float32)
    table[0] = 1
    planes = {"w": table[:, 0]}
    unpack_table("table", {name: np.asarray(array) for name, array in pack_table("table", planes).items()}, planes)


if __name__ == "__main__":
    _serve(sys.stdin.buffer)
