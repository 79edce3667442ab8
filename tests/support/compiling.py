"""Divide the compilation of kernels among the processes of a test run that starts without compiled kernels.

Otherwise every process would compile all kernels, because the processes need the same kernels at about the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import zlib
from pathlib import Path

from streams import multiclass
from variants import AT_THE_END, BY_NAME, VARIANTS, K, learner

from xclass.kernels import jit
from xclass.run import warm_up


def compile_shared(folder: Path) -> None:
    """Compile the kernels of the reader and of each reduction, except those that another process has begun to compile.

    Parameters
    ----------
    folder : folder of this test run, in which processes mark what they have begun to compile
    """
    for name in (warm_up.READING, *BY_NAME):
        mark = f"tests-{name}"
        if jit.folder() and jit.is_first_run(mark) and _claim(folder / mark):
            warm_up.compile_reading() if name == warm_up.READING else _learn(name)
            jit.note_compiled(mark)


def compile_once(path: Path) -> None:
    """Let this process wait for a kernel that another process of the test run is compiling, and then load it.

    `path` is a file that the processes have in common; each version of a kernel has a byte of it, which is locked while
    the version is compiled or loaded. Kernels do not call each other in a circle, so no two processes wait for each
    other. In a run of the command, the lock would be a risk: a process that was stopped would stop all others.
    """
    compile_or_load = jit._Versions._compiled_or_loaded
    file = path.open("wb")

    def alone(versions, types):
        place = zlib.crc32(repr((versions._dispatcher._cache._cache_file._index_name, types)).encode())
        with contextlib.suppress(OSError):  # a circle after all
            fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
        try:
            return compile_or_load(versions, types)
        finally:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)

    jit._Versions._compiled_or_loaded = alone


def _claim(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _learn(name: str) -> None:
    """Compile the kernels of a reduction by passing an empty batch to a learner of each of its variants.

    Reductions that learn at the end of the data get a few examples.
    """
    for options in [{}, *VARIANTS.get(name, [])]:
        with learner(name, **options) as model:
            if name in AT_THE_END:
                model.learn_many(multiclass(1, K, 60))
                model.end_pass()
            else:
                for part in warm_up.parts(model.core.reduction, True, False).values():
                    part()
