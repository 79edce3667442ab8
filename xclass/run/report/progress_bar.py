"""Show how far a run is in one line of a terminal, at most 79 characters wide in a window of 80 columns."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, TextIO

READING = "{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"
READING_UNKNOWN = "{n_fmt}B in {elapsed}{postfix}"  # if the size of the data is not known
STEPS = "{percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} {unit}, {elapsed}, {remaining} left"


def of_reading(size: int | None, file: TextIO) -> Any:
    """Return a bar for the reading of `size` bytes in all passes, None if it is not known.

    It shows the share that is read, the time so far and an estimate of the time left, both in minutes and seconds, the
    speed and the memory in use. Without a size, there are neither share nor time left.
    """
    layout = READING_UNKNOWN if size is None else READING
    return _bar(file, total=size, bar_format=layout, unit_scale=True, unit_divisor=1000)


def of_steps(count: int, unit: str, file: TextIO) -> Any:
    """Return a bar for `count` steps, whose name is `unit`, of an activity other than reading."""
    return _bar(file, total=count, unit=unit.strip(), bar_format=STEPS)


def move(bar: Any, position: int, examples: int, memory: int) -> None:
    """Move a bar of reading to a position in bytes, and show the speed and the memory in use."""
    elapsed = max(bar.format_dict["elapsed"], 1e-3)
    bar.set_postfix_str(f"{examples / elapsed:,.0f} examples/s, {memory / 2**20:,.0f} MB", refresh=False)
    bar.update(position - bar.n)


def hidden(bar: Any) -> AbstractContextManager[None]:
    """Return a `with` block in which no bar is shown, so that lines can be written."""
    block: AbstractContextManager[None] = bar.external_write_mode(file=bar.fp)
    return block


def _bar(file: TextIO, **settings: Any) -> Any:
    """Return a bar of tqdm with settings."""
    from tqdm import tqdm  # only terminals need it

    return tqdm(leave=False, file=file, mininterval=0.2, dynamic_ncols=True, smoothing=0.1, **settings)
