"""Parse a file and do nothing else, to measure the time of reading.

Run it as `python scripts/lib/reading.py FILE`, in any folder.
"""

from __future__ import annotations

import sys

from xclass.kernels import jit
from xclass.text import parser, reader


def main() -> None:
    """Parse the file that the command line names, and print the number of its examples."""
    jit.activate()
    batches = reader.Reader(reader.Options(data=(sys.argv[1],)), parser.Options(), 24, "multiclass")
    print(sum(batch.n for batch in batches), "examples")


if __name__ == "__main__":
    main()
