"""Parse the command lines of the commands in scripts/, and end the commands with an exit status."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from scripts.lib.processes import BenchError


def run(main: Callable[[], int | None]) -> None:
    """Execute the main function of a command and end the process with its exit status."""
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def new_parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser of a command whose module has this docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )


def names(text: str, separator: str = ",") -> list[str]:
    """Return the words of a comma-separated list."""
    return [word.strip() for word in text.split(separator)]


def numbers(text: str) -> list[float]:
    """Return the numbers of a comma-separated list; those without a decimal point become int."""
    return [float(word) if "." in word else int(word) for word in text.split(",")]


@contextlib.contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """Yield a folder to work in: the given one, which is kept, or a temporary one."""
    with tempfile.TemporaryDirectory() as temporary:
        work = (given or Path(temporary)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        yield work
