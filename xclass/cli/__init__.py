"""Read the command line, show help, and start a run of the command."""

import gc
import importlib.util
import os
import sys

from .. import NOT_ON_WINDOWS

PACKAGES = ("numpy", "numba", "click", "mmh3", "tqdm")  # which every command may need


def main() -> None:
    """Run the command `xclass`, or exit with a message if it lacks a package, or the address space for its imports."""
    if os.name == "nt":
        sys.exit(f"xclass: {NOT_ON_WINDOWS}")
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"xclass: {' and '.join(missing)}, which xclass needs, cannot be imported by {sys.executable}; install "
            f"with `{sys.executable} -m pip install {' '.join(missing)}`"
        )
    from ..errors import XclassError
    from ..system import memory

    try:
        memory.check_address_space(memory.COMMAND, memory.RUN)
    except XclassError as error:
        sys.exit(f"xclass: {error}")
    # the threads of BLAS would take time and memory in every run, and no kernel uses BLAS
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # imports create many objects and no garbage, so collecting after every 700 objects would take a tenth of a start
    gc.set_threshold(100_000, *gc.get_threshold()[1:])
    from . import command

    command.main()
