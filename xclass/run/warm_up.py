"""Compile kernels in several processes if a reduction or the reader has not run on this machine before.

numba compiles one kernel at a time in a process. The parts of a learner and the reader share few kernels, and the
compilation of each takes seconds, so processes that each compile a part shorten the wait. All write to the same cache
of compiled code (`jit`). A kernel that a process fails to compile is compiled when it is first called.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from ..api.configuration import Config, LearnerUse
from ..api.learner_core import LearnerCore
from ..kernels import compiling, jit
from ..reductions.core import base
from ..system import processors
from ..text.parser import Options, Parser

Parts = dict[str, Callable[[], None]]
MOST_PROCESSES = 4  # that compile for this one; no learner has more parts
LONGEST_WAIT = 120  # seconds until a process that compiles is given up
# raised by pickle for options of a reduction that is not part of the package, if it has functions without a name
UNSENDABLE = (pickle.PicklingError, AttributeError, TypeError)
READING = "reading"  # name by which `jit` remembers that the kernels of the reader are compiled
LINE = b"1 't |n:2 a:1 b c=d\n"


def prepare(config: Config, use: LearnerUse, learner: base.Learner, reads: bool) -> None:
    """Compile the kernels in several processes if the reduction or the reader has not run on this machine before.

    `reads` says whether the run reads text.
    """
    if not (jit.is_first_run(config.reduction.name) or (reads and jit.is_first_run(READING))):
        return
    others = min(processors.count() - 1, MOST_PROCESSES)
    if not jit.folder() or others < 1:
        return
    own, rest = _divided(parts(learner, not use.testing, reads), use.loaded)
    children: list[subprocess.Popen[bytes]] = []
    try:
        with contextlib.suppress(OSError, *UNSENDABLE):  # there may be no more processes
            for first in range(min(others, len(rest))):
                work = pickle.dumps((config, use, list(rest)[first::others]))
                children.append(_start())
                _send(children[-1], work)
                threading.Thread(target=_count, args=(children[-1].stdout,), daemon=True).start()
        with compiling.under_way(shown=False):
            for compile_part in own.values():
                compile_part()
            for child in children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(LONGEST_WAIT)
    finally:
        for child in children:
            child.kill()
            child.wait()


def parts(learner: base.Learner, learn: bool, reads: bool) -> Parts:
    """Return functions that each compile a part of the kernels of a run.

    `learn` says whether to compile the kernels for learning, `reads` whether the run reads text.
    """
    waits = learner.preview_size is not None  # it needs to see examples first
    of_learner = {} if waits else learner.warm_ups(learn)
    return {**of_learner, READING: compile_reading} if reads else of_learner


def _divided(all_parts: Parts, loaded: bool) -> tuple[Parts, Parts]:
    """Return the parts that this process compiles, and those that others compile.

    Another process can compile for a new learner, which it makes from options alone, but not for a loaded one.
    """
    names = list(all_parts)
    own = [name for name in names if name != READING] if loaded else names[:1]
    return {name: all_parts[name] for name in own}, {name: all_parts[name] for name in names if name not in own}


def _start() -> subprocess.Popen[bytes]:
    """Start a process that serves this one, see `serve`."""
    path = [os.path.abspath(folder) for folder in sys.path]  # the same modules, without those of the current folder
    code = f"import sys; sys.path = {path!a}; from xclass.run import warm_up; warm_up.serve()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(jit.folder())},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _send(child: subprocess.Popen[bytes], work: bytes) -> None:
    """Tell a process what to do, unless it has failed. The pipe stays open, because the process ends when it closes."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(work)
        child.stdin.flush()


def _count(output: BinaryIO) -> None:
    """Count the kernels that a process compiles, of which each is a byte of its output."""
    with output:
        while output.read(1):
            with compiling.under_way():
                compiling.add_one()


def serve() -> None:
    """Compile parts for another process, which sends the options and use of its learner and the names of the parts.

    A byte is written for each kernel.
    """
    pipe = sys.stdin.buffer
    compiling.tell(None)
    compiling.each = lambda: os.write(1, b".")
    config, use, names = pickle.load(pipe)

    def end_with_other_process() -> None:
        pipe.read()
        os._exit(1)

    threading.Thread(target=end_with_other_process, daemon=True).start()
    jit.activate()
    of_learner = [name for name in names if name != READING]
    if of_learner:
        with LearnerCore(config, use) as learner:
            functions = learner.reduction.warm_ups(not use.testing)
            for name in of_learner:
                functions[name]()
    if READING in names:
        compile_reading()
    os._exit(0)  # the thread may still wait


def compile_reading() -> None:
    """Compile the kernels of the parser by parsing a line."""
    jit.activate()
    parser = Parser(Options(), 18, "multiclass")
    text = np.zeros(len(LINE) + 64, np.uint8)
    text[: len(LINE)] = np.frombuffer(LINE, np.uint8)
    parser.parse(text, len(LINE), "")
