"""What the figures' scripts share: the command line, measurements kept in a file, tables and pictures.

Times are processor time of all threads of a process, "CPU s", less what the same command takes for a few lines
where the text says so: other work on the machine changes them little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from bench import TOOLS, BenchError, Run, measure, test_error
from stand_in_sets import SETS

PIXELS = 80  # of an inch
MOST = 1024  # passes of a run that is timed
SHORTEST = 0.001  # seconds, of such a run


class Kept:
    """Measurements in a JSON file: one that stands there under the same key is not made again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.records = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else []

    def get(self, key: dict, make: Callable[[], dict]) -> dict:
        """Return what was found for a key, and make it where it is not there."""
        for record in self.records:
            if record["key"] == key:
                return record["found"]
        found = make()
        self.records.append({"key": key, "found": found})
        if self.path:
            self.path.write_text(json.dumps(self.records, indent=1) + "\n", encoding="utf-8")
        print(f"{key}: {found}"[:300], file=sys.stderr, flush=True)
        return found


def learn(folder: Path, words: list[str], data: str = "train.vw") -> Run:
    """Train once, the model going to `f.model`."""
    return measure([*TOOLS["xclass"], "-d", data, *words, "-f", "f.model"], folder)


def error_of(folder: Path) -> float:
    """Return the share of wrong answers of `f.model` on the test file."""
    measure([*TOOLS["xclass"], "-d", "test.vw", "-t", "-i", "f.model", "-p", "f.predictions", "--quiet"], folder)
    return test_error(folder / "test.vw", folder / "f.predictions")


def start(folder: Path, words: list[str]) -> float:
    """Return the CPU seconds of a run over a few lines, with nothing left to compile."""
    learn(folder, words, "few.vw")
    return learn(folder, words, "few.vw").cpu


def cost(folder: Path, words: list[str], long: float, whole: int) -> float:
    """Return the CPU seconds of one look at an example.

    An eighth of the file is gone through, then all of it, then 4, 16, ... times, until that takes `long` seconds, since
    the start of a process, which is taken off, is not the same from run to run.
    """
    begin = start(folder, words)
    lines, passes = max(1, whole // 8), 1
    while True:
        more = ["--passes", str(passes), "--holdout_off"] if passes > 1 else []
        took = learn(folder, [*words, *more], head(folder, lines)).cpu - begin
        if took >= long or passes >= MOST:
            return max(took, SHORTEST) / (lines * passes)
        lines, passes = whole, passes if lines < whole else 4 * passes


def head(folder: Path, lines: int) -> str:
    """Write the first lines of train.vw; return the file's name."""
    with open(folder / "train.vw", "rb") as whole, open(folder / "head.vw", "wb") as part:
        part.writelines(islice(whole, lines))
    return "head.vw"


def lines_of(folder: Path) -> int:
    """Return the number of training examples."""
    with open(folder / "train.vw", "rb") as file:
        return sum(1 for _ in file)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table, the first column to the left."""
    heads = list(heads)
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " --: |" * (len(heads) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def log_axis(area, ticks: Iterable[int] = ()) -> None:
    """Make the axis across a logarithmic one, with the names of powers of ten, or of `ticks`, alone."""
    area.set_xscale("log")
    if ticks:
        area.set_xticks(list(ticks), [str(one) for one in ticks])
    area.tick_params(axis="x", which="minor", labelbottom=False)


def name_axes(area, title: str, across: str, up: str) -> None:
    """Say what a panel shows."""
    area.set_title(title)
    area.set_xlabel(across)
    area.set_ylabel(up)
    area.legend(fontsize=8)


def save(figure, file: Path) -> None:
    """Write a picture."""
    figure.tight_layout()
    figure.savefig(file, dpi=PIXELS)


# -- the command line ------------------------------------------------------------------------------------------------


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser with what all figures understand."""
    found = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    found.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    found.add_argument("--plot", type=Path, metavar="FILE", help="the picture")
    found.add_argument("--seconds", type=float, default=2, help="a run that is timed takes, at least (default: 2)")
    found.add_argument("--work", type=Path, metavar="DIR", help="for the data, unpacked; a temporary one by default")
    return found


def with_data(found: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the data's options, as of stand_ins.py."""
    found.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    found.add_argument("--sets", type=lambda text: text.split(","), metavar="A,B")
    return found


def numbers(text: str) -> list[float]:
    """Return the numbers of a list by commas, whole ones as such."""
    return [float(word) if "." in word else int(word) for word in text.split(",")]


@contextlib.contextmanager
def place(given: argparse.Namespace) -> Iterator[tuple[Path, Kept]]:
    """Give the folder to work in and what was measured before."""
    with tempfile.TemporaryDirectory() as temporary:
        work = (given.work or Path(temporary)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        yield work, Kept(given.json)


def options_of(name: str) -> str:
    """Return the options that a set's methods all get."""
    return SETS[name].options if name in SETS else ""


def run(main: Callable[[], None], name: str) -> None:
    """Carry a script out and end it."""
    try:
        main()
    except BenchError as error:
        sys.exit(f"{name}: {error}")
