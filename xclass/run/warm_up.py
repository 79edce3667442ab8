"""Compile kernels in two processes in the first run on a machine: one for learning, one for reading and saving.

numba compiles one kernel at a time in a process. Reading and learning share hardly any kernels, and the compilation of
each takes seconds, so two processes halve the waiting time. Both write to the same cache of compiled code (`jit`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from ..data import batch_ops
from ..kernels import jit
from ..model.stored_arrays import pack_table, unpack_table
from ..reductions.core.base import Learner, Previews
from ..reductions.core.contract import BatchTask
from ..system import processors
from ..text.parser import Options, Parser

READING = "reading"  # name by which `jit` remembers that the kernels of the reader are compiled
LINE = b"1 't |n:2 a:1 b c=d\n"
SLOTS = 16  # slots of the table; all but one are empty, so that it is stored without empty rows


def prepare(learner: Learner, learning: bool, reads: bool) -> None:
    """Compile the kernels of the run in two processes if this is the first run that reads text.

    Parameters
    ----------
    learner, learning : as in `compile_stages`
    reads : whether the run reads text
    """
    if not (reads and jit.folder() and jit.is_first_run(READING) and processors.count() > 1):
        return
    try:
        child = _start()
    except OSError:  # without another process, kernels are compiled when they are first called
        return
    try:
        compile_stages(learner, learning)
        child.wait()
    finally:
        child.kill()
        child.wait()


def compile_stages(learner: Learner, learning: bool) -> None:
    """Compile the kernels of a learner by passing an empty batch through its stages.

    Parameters
    ----------
    learner : the learner; nothing is compiled if it needs to see examples first
    learning : whether to compile the kernels for learning, and not only those for prediction
    """
    if not isinstance(learner, Previews) or learner.preview_size is None:
        task = BatchTask(batch_ops.empty(0, 0, 0, 0), learning, np.empty(0))
        for stage in learner.stages:
            stage(task)


def _start() -> subprocess.Popen[bytes]:
    """Start the process that compiles the kernels for reading; if it fails, they are compiled when first called."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(word for word in (root, os.environ.get("PYTHONPATH")) if word)
    return subprocess.Popen(
        [sys.executable, "-m", "xclass.run.warm_up"],
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(jit.folder())},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


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
    compile_reading()
