"""The lines of -p and -r, digit for digit as C++ streams and so VW print them.

A kernel turns a whole batch into bytes. Four kinds of line, each with a space and the tag after it if there is
one:

    simple       0.302885          `%.6f`; no decimals where the number is whole
    multiclass   17
    scores       1:0.302885 2:-0.5     `%g`, six digits (--scores, --probabilities, --top_k)
    raw_scores    1:0.302885 2:-0.5    the same after a space (-r)

`lines` has the digits.

Differs from VW: classes above 2**24 are printed in full (VW takes them through a float32).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO

import numpy as np

from ...array_types import Int
from ...data.batch import Batch
from ...errors import DataError
from ...system import terminal
from . import lines

STDOUT = "stdout"  # as a file name: standard output
KINDS = ("simple", "multiclass", "scores", "raw_scores")
BUFFER = 1 << 20  # bytes formatted before they are written


class Writer:
    """Writes one line for every example of a batch.

    Parameters
    ----------
    path : file to write; "stdout" is standard output.
    kind : one of KINDS, see the head of this file.
    names : written for the classes 1, 2, ... (multiclass, scores), may grow; None for numbers. Other classes have an
        empty name, but for 0 in a list, which is all others.
    rounded : whether classes are rounded to float32, as VW does before it writes them.
    """

    def __init__(self, path: str, kind: str, names: Sequence[str] | None = None, rounded: bool = False) -> None:
        if kind not in KINDS:
            raise ValueError(kind)
        self.kind = kind
        self.path = path
        self._rounded = rounded and kind == "multiclass"
        self._names = () if names is None else names
        self._laid_out = 0  # of the names
        named = names is not None and kind in ("multiclass", "scores")
        self._letters = lines.Letters(named, np.zeros(2, np.int64), np.empty(0, np.uint8))
        self._longest = 0  # of the names, in bytes
        self._own = path != STDOUT
        try:
            self._file: BinaryIO = open(path, "wb") if self._own else sys.stdout.buffer  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise DataError(f"{path}: predictions cannot be written there: {error.strerror}") from None
        self._shown = terminal.output_of(self._file)
        self._at_once = not _is_regular(self._file)  # somebody may be waiting at the other end
        self._out = np.empty(BUFFER, np.uint8)

    def write(
        self,
        batch: Batch,
        values: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        start: np.ndarray | None = None,
    ) -> None:
        """Write the lines of a batch.

        Parameters
        ----------
        values : float64[n], numbers or classes (simple, multiclass).
        scores, labels, start : float32[...], int64[...], int64[n + 1]; example i has the scores
            `start[i]:start[i + 1]` (scores, raw_scores).

        Raises
        ------
        BrokenPipeError
            when nobody reads any more.
        DataError
            when the disk is full or the like.
        """
        if batch.n == 0:
            return
        if self._letters.named and len(self._names) > self._laid_out:
            self._lay_out()
        tags = (batch.text, batch.tag_start, batch.tag_end)
        most = int((batch.tag_end - batch.tag_start).max()) + lines.NUMBER_ROOM + self._longest
        if start is not None:
            most += int((start[1:] - start[:-1]).max()) * (lines.SCORE_ROOM + self._longest)
        if most > len(self._out):
            self._out = np.empty(most, np.uint8)
        if self._rounded:
            values = np.asarray(values).astype(np.float32)
        row: Int = 0
        while row < batch.n:
            if self.kind == "simple":
                row, size = lines.simple_lines(np.asarray(values, np.float64), *tags, row, self._out)
            elif self.kind == "multiclass":
                row, size = lines.multiclass_lines(
                    np.asarray(values, np.float64), self._letters, self._longest, *tags, row, self._out
                )
            else:
                assert scores is not None and labels is not None and start is not None
                first = self.kind == "raw_scores"
                row, size = lines.score_lines(
                    scores, labels, start, first, self._letters, self._longest, *tags, row, self._out
                )
            self._do(self._shown.write, self._out[:size].data)
        if self._at_once:
            self._do(self._file.flush)

    def _lay_out(self) -> None:
        """Take in the names that have come since the last batch."""
        fresh = [name.encode("utf-8", "surrogateescape") for name in self._names[self._laid_out :]]
        self._laid_out += len(fresh)
        old = self._letters
        ends = old.start[-1] + np.cumsum([len(name) for name in fresh])
        letters = np.concatenate((old.letters, np.frombuffer(b"".join(fresh), np.uint8)))
        self._letters = old._replace(start=np.concatenate((old.start, ends)), letters=letters)
        self._longest = max(self._longest, *map(len, fresh))

    def close(self) -> None:
        """Finish the file."""
        self._do(self._file.close if self._own else self._file.flush)

    def _do(self, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise DataError(f"{self.path}: predictions cannot be written there: {error.strerror}") from None


def _is_regular(file: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):  # standard output replaced by something without a descriptor
        return False
