"""Compile kernels in several processes, because numba compiles one kernel at a time in a process.

`prepare` does so when a reduction or the reader has not run on this machine before. The parts of a learner and the
reader share few kernels, and the compilation of each takes seconds, so processes that each compile a part shorten the
wait. A kernel that a process fails to compile is compiled when it is first called.

`ahead` does so for `xclass warmup`, whose jobs use learners as users do. They share many kernels, and take turns.

All processes write to the same cache of compiled code (`jit`).
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..errors import XclassError
from ..kernels import compiling, jit
from ..reductions.core import base
from ..system import terminal, thread_limit
from ..text.parser import Parser, ParserOptions

Job = Callable[[], None]
Parts = dict[str, Job]
MOST_PROCESSES = 4  # that compile for this one; no learner has more parts
LONGEST_WAIT = 120  # seconds until a process that compiles is given up
# raised by pickle for options of a reduction that is not part of the package, if it has functions without a name
UNSENDABLE = (pickle.PicklingError, AttributeError, TypeError)
READING = "reading"  # name by which `jit` remembers that the kernels of the reader are compiled
LINE = b"1 |n a:1 b c=d\n"  # what few lines have is compiled when it occurs


def prepare(config: Config, learner: base.Reduction, reads: bool) -> None:
    """Compile the kernels in several processes if the reduction or the reader has not run on this machine before.

    `reads` says whether the run reads text. A process that compiles for another one starts no further ones.
    """
    if compiling.each is not None or not (
        jit.is_first_run(config.reduction.name) or (reads and jit.is_first_run(READING))
    ):
        return
    others = min(thread_limit.processors() - 1, MOST_PROCESSES)
    if not jit.is_kept() or others < 1:
        return
    own, rest = _divided(parts(learner, not config.use.testing, reads), config.use.loaded)
    children: list[subprocess.Popen[bytes]] = []
    try:
        with contextlib.suppress(OSError, *UNSENDABLE):  # there may be no more processes
            for first in range(min(others, len(rest))):
                children.append(_start(partial(_compile_parts, config, list(rest)[first::others])))
                threading.Thread(target=_count, args=(children[-1],), daemon=True).start()
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


def ahead(jobs: Mapping[str, Job]) -> Iterator[tuple[str, int]]:
    """Execute jobs, each in a process of its own, as many at a time as there are processors.

    Yield, in their order, the name of each job and the number of kernels that its process has compiled. Jobs are
    pickled. Raise XclassError if one fails, or a kernel cannot be kept.
    """
    children: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(thread_limit.processors()) as pool:

        def execute(job: Job) -> tuple[int, str]:
            with tempfile.TemporaryFile() as errors:
                child = _start(partial(_in_turns, folder, job), errors)
                children.append(child)
                count, status = _count(child), child.wait()
                errors.seek(0)
                lines = errors.read().decode(errors="replace").splitlines()
            return count, (lines or [f"status {status}"])[-1] if status else ""

        try:
            for name, (count, problem) in zip(jobs, pool.map(execute, jobs.values()), strict=True):
                if problem:
                    raise XclassError(f"{name}: its kernels could not be compiled: {problem}")
                yield name, count
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.kill()


def parts(learner: base.Reduction, learn: bool, reads: bool) -> Parts:
    """Return functions that each compile a part of the kernels of a run.

    `learn` says whether to compile the kernels for learning, `reads` whether the run reads text.
    """
    of_learner = {} if learner.awaited else learner.warm_ups(learn)
    return {**of_learner, READING: compile_reading} if reads else of_learner


def _divided(all_parts: Parts, loaded: bool) -> tuple[Parts, Parts]:
    """Return the parts that this process compiles, and those that others compile.

    Another process can compile for a new learner, which it makes from options alone, but not for a loaded one.
    """
    names = list(all_parts)
    own = [name for name in names if name != READING] if loaded else names[:1]
    return {name: all_parts[name] for name in own}, {name: all_parts[name] for name in names if name not in own}


def _start(job: Job, errors: int | BinaryIO = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a process that executes a job, see `serve`; what it writes to standard error goes to `errors`."""
    work = pickle.dumps(job)
    path = [os.path.abspath(folder) for folder in sys.path]  # the same modules, without those of the current folder
    code = f"import sys; sys.path = {path!a}; from xclass.run import warm_up; warm_up.serve()"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(jit.folder())},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    )  # fmt: skip
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has failed
        child.stdin.write(work)
        child.stdin.flush()  # the pipe stays open, because the process ends when it closes
    return child


def _count(child: subprocess.Popen[bytes]) -> int:
    """Count the kernels that a process compiles, of which each is a byte of its output, until it ends."""
    count = 0
    assert child.stdout is not None
    with child.stdout as output:
        while output.read(1):
            count += 1
            with compiling.under_way():
                compiling.add_one()
    return count


def serve() -> None:
    """Execute a job for another process, which sends it. A byte is written for each kernel that is compiled."""
    pipe, output = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)
    compiling.tell(None)
    compiling.each = lambda: os.write(output, b".")
    status = 1
    try:
        job = pickle.load(pipe)

        def end_with_other_process() -> None:
            pipe.read()
            os._exit(1)

        threading.Thread(target=end_with_other_process, daemon=True).start()
        jit.activate()
        job()
        status = 0
    except XclassError as error:
        terminal.error_line(str(error))
    except BaseException:
        for line in traceback.format_exc().splitlines():
            terminal.error_line(line)
    finally:
        os._exit(status)  # the thread may still wait


def _compile_parts(config: Config, names: Sequence[str]) -> None:
    """Compile parts of a new learner, and the reader if its name is among the names."""
    of_learner = [name for name in names if name != READING]
    if of_learner:
        with LearnerCore(config) as learner:
            functions = learner.reduction.warm_ups(not config.use.testing)
            for name in of_learner:
                functions[name]()
    if READING in names:
        compile_reading()


def _in_turns(folder: str, job: Job) -> None:
    """Execute a job, with temporary files in a folder that the other process removes even if it kills this one."""
    tempfile.tempdir = folder
    jit.take_turns(Path(folder, "turns"))
    job()
    if jit.save_problem():
        raise XclassError(jit.save_problem())


def compile_reading() -> None:
    """Compile the kernels of the parser by parsing a line."""
    jit.activate()
    parser = Parser(ParserOptions(), 18, "multiclass")
    text = np.zeros(len(LINE) + 64, np.uint8)
    text[: len(LINE)] = np.frombuffer(LINE, np.uint8)
    parser.parse(text, len(LINE), "")
