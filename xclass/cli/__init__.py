"""The command line."""

import sys


def main() -> None:
    """Run the command `xclass`, if there is room for what it imports."""
    from ..errors import XclassError
    from ..system import address_space

    try:
        address_space.check_command()
    except XclassError as error:
        sys.exit(f"xclass: {error}")
    from . import command

    command.main()
