"""Divide the compilation of kernels among the processes of a test run that starts without compiled kernels.

Otherwise every process would compile all kernels, because the processes need the same kernels at about the same time.
"""

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
