"""Read the command line, show help, and start a run of the command."""

import gc
import os
import sys

from .. import NOT_ON_WINDOWS


def main() -> None:
    """Run the command `xclass`, or exit with a message if the address space is too small for its imports."""
    if os.name == "nt":
        sys.exit(f"xclass: {NOT_ON_WINDOWS}")
    from ..errors import XclassError
    from ..system import address_space

    try:
        address_space.check(address_space.COMMAND, address_space.RUN)
    except XclassError as error:
        sys.exit(f"xclass: {error}")
    # the threads of BLAS would take time and memory in every run, and no kernel uses BLAS
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # imports create many objects and no garbage, so collecting after every 700 objects would take a tenth of a start
    gc.set_threshold(100_000, *gc.get_threshold()[1:])
    from . import command

    command.main()
