"""Parse the command lines of the commands in scripts/, and end the commands with an exit status."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.lib.data_sets import prepare
from scripts.lib.processes import BenchError
from scripts.lib.results import ResultStore


def run(main: Callable[[], int | None]) -> None:
    """Execute the main function of a command and end the process with its exit status."""
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"{Path(sys.argv[0]).stem}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options that most commands in scripts/figures have."""
    common = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    common.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    common.add_argument("--plot", type=Path, metavar="FILE", help="the picture")
    common.add_argument("--seconds", type=float, default=2, help="a run that is timed takes, at least (default: 2)")
    common.add_argument("--work", type=Path, metavar="DIR", help="for the data, unpacked; a temporary one by default")
    return common


def with_data(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options that name data sets."""
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    parser.add_argument("--sets", type=names, metavar="A,B")
    return parser


def names(text: str) -> list[str]:
    """Return the words of a comma-separated list."""
    return text.split(",")


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


@contextlib.contextmanager
def workspace(given: argparse.Namespace) -> Iterator[tuple[Path, ResultStore]]:
    """Yield the folder to work in and the results of earlier measurements, as the options say."""
    with work_folder(given.work) as work:
        yield work, ResultStore(given.json)


def print_changes(
    options: argparse.ArgumentParser, changes: Mapping[str, Any],
    cell: Callable[[str, str, Path, int, argparse.Namespace], str],
) -> None:  # fmt: skip
    """Parse the command line and print a Markdown table, a row for each change and a column for each set.

    A cell is what `cell(change, set, folder of its files, number of classes, the command line)` returns.
    """
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--changes", type=lambda text: text.split(";"), help="of those in the table, by semicolons")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    chosen = given.changes or list(changes)
    strange = [name for name in chosen if name not in changes]
    if strange:
        raise BenchError(f"--changes: {strange[0]!r} is none of {'; '.join(changes)}")
    with work_folder(given.work) as work:
        sets = [(name, *prepare(given.data_dir, name, work)) for name in given.sets]
        print("| | " + " | ".join(f"{name}, {classes:,}" for name, _, classes in sets) + " |")
        print("| --- |" + " --: |" * len(sets), flush=True)
        for change in chosen:
            print(f"| {change} | " + " | ".join(cell(change, *one, given) for one in sets) + " |", flush=True)
