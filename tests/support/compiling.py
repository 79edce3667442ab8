"""Sharing out the compiling among the processes of a test run that begins with nothing compiled.

Left alone, each of them would compile all kernels: they come to the same tests at about the same time.
"""

from __future__ import annotations

from pathlib import Path

from streams import multiclass
from variants import AT_THE_END, BY_NAME, VARIANTS, K, learner

from xclass.kernels import jit
from xclass.run import warm_up


def compile_shared(folder: Path) -> None:
    """Compile what reads and what learns, except for what another process has begun to compile.

    Parameters
    ----------
    folder : of this test run, where processes leave word of what they have begun
    """
    for name in (warm_up.READING, *BY_NAME):
        mark = f"tests-{name}"
        if jit.folder() and jit.is_first_run(mark) and _claim(folder / mark):
            warm_up.read() if name == warm_up.READING else _learn(name)
            jit.note_compiled(mark)


def _claim(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _learn(name: str) -> None:
    """Have learners of each variant learn from a batch of no examples; they then begin without reading a line."""
    for options in [{}, *VARIANTS.get(name, [])]:
        with learner(name, **options) as model:
            if name in AT_THE_END:
                model.learn(multiclass(1, K, 60))
                model.end_pass()
            else:
                warm_up.go_through(model.reduction, learning=True)
