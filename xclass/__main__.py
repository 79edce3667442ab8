"""The command `xclass`, also as `python -m xclass`."""

import sys

from . import address_space
from .errors import XclassError


def main() -> None:
    """Run the command, if there is room for what it imports."""
    try:
        address_space.check_command()
    except XclassError as error:
        sys.exit(f"xclass: {error}")
    from . import cli

    cli.main()


if __name__ == "__main__":
    main()
