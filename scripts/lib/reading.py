"""Read all of a file and do nothing with it: `python scripts/lib/reading.py FILE`, in any folder."""

from __future__ import annotations

import sys

from xclass.kernels import jit
from xclass.text import parser, reader


def main() -> None:
    """Read the file that the command line names."""
    jit.activate()
    found = reader.Reader(reader.Options(data=(sys.argv[1],)), parser.Options(), 24, True)
    print(sum(batch.n for batch in found), "examples")


if __name__ == "__main__":
    main()
