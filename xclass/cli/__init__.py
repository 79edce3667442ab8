"""Run the command line."""

import os
import sys

from .. import WINDOWS


def main() -> None:
    """Run the command `xclass`, if there is room for what it imports."""
    if os.name == "nt":
        sys.exit(f"xclass: {WINDOWS}")
    from ..errors import XclassError
    from ..system import address_space

    try:
        address_space.check_command()
    except XclassError as error:
        sys.exit(f"xclass: {error}")
    from . import command

    command.main()
