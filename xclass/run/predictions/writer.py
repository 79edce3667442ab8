"""Write the lines of -p and -r, digit for digit as C++ streams, and therefore VW, print them.

A kernel formats a batch as bytes. There are four kinds of lines; a space and the tag follow, if there is a tag:

    simple       0.302885          `%.6f`; no decimals where the number is whole
    multiclass   17
    scores       1:0.302885 2:-0.5     `%g`, six digits (--scores, --probabilities, --top_k)
    raw_scores    1:0.302885 2:-0.5    the same after a space (-r)

The probability of all classes that a list does not name is the last, `:0.19`: no class has an empty name.

Differs   from VW: classes above 2**24 are printed exactly (VW rounds them to float32).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...array_types import Int
from ...data.batch import Batch
from ...system import output_file
from . import line_kernels

KINDS = ("simple", "multiclass", "scores", "raw_scores")
BUFFER = 1 << 20  # bytes that are formatted before they are written


class Writer:
    """Write one line for each example of a batch.

    Parameters
    ----------
    path : file to write; "stdout" is standard output
    kind : one of KINDS, see the module
    names : names of the classes 1, 2, ... (multiclass, scores); the list may grow; None to write numbers. Classes
        without a name are written as an empty string
    rounded : whether classes are rounded to float32, as in VW
    description : what the file holds, for messages

    Attributes
    ----------
    file : the file, see `output_file.Output`
    """

    def __init__(
        self,
        path: str,
        kind: str,
        names: Sequence[str] | None = None,
        rounded: bool = False,
        description: str = "predictions",
    ) -> None:
        if kind not in KINDS:
            raise ValueError(kind)
        self.kind = kind
        self.path = path
        self._rounded = rounded and kind == "multiclass"
        self._names = () if names is None else names
        self._encoded = 0  # number of names in `_class_names`
        named = names is not None and kind in ("multiclass", "scores")
        self._class_names = line_kernels.ClassNames(named, np.zeros(2, np.int64), np.empty(0, np.uint8))
        self._longest_name = 0  # bytes of the longest name
        self.file = output_file.Output(path, description)
        self._out = np.empty(BUFFER, np.uint8)

    def write(
        self,
        batch: Batch,
        values: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        start: np.ndarray | None = None,
        has_rest: bool = False,
    ) -> None:
        """Write the lines of a batch.

        Parameters
        ----------
        values : float64[n], numbers or classes (simple, multiclass)
        scores, labels : float32[m], int64[m], scores and their classes (scores, raw_scores)
        start : int64[n + 1], example i has the scores `start[i]:start[i + 1]` (scores, raw_scores)
        has_rest : whether the last score of each example is that of all other classes (scores)

        BrokenPipeError is raised if the reader of the output has closed it.
        """
        if batch.n == 0:
            return
        if self._class_names.named and len(self._names) > self._encoded:
            self._encode_new_names()
        tags = (batch.text, batch.tag_start, batch.tag_end)
        line_size = int((batch.tag_end - batch.tag_start).max()) + line_kernels.MAX_NUMBER_BYTES + self._longest_name
        if start is not None:
            line_size += int((start[1:] - start[:-1]).max()) * (line_kernels.MAX_SCORE_BYTES + self._longest_name)
        if line_size > len(self._out):
            self._out = np.empty(line_size, np.uint8)
        if self._rounded:
            values = np.asarray(values).astype(np.float32)
        row: Int = 0
        while row < batch.n:
            if self.kind == "simple":
                row, size = line_kernels.simple_lines(np.asarray(values, np.float64), *tags, row, self._out)
            elif self.kind == "multiclass":
                row, size = line_kernels.multiclass_lines(
                    np.asarray(values, np.float64), self._class_names, self._longest_name, *tags, row, self._out
                )
            else:
                assert scores is not None and labels is not None and start is not None
                space_first = self.kind == "raw_scores"
                row, size = line_kernels.score_lines(
                    scores, labels, start, has_rest, space_first, self._class_names, self._longest_name, *tags, row,
                    self._out,
                )  # fmt: skip
            with self.file.explained():
                self.file.out.write(self._out[:size].data)
        self._flush_if_awaited()

    def write_lines(self, lines: bytes) -> None:
        """Write complete lines that another writer of this kind has made; errors are as in `write`."""
        with self.file.explained():
            self.file.out.write(lines)
        self._flush_if_awaited()

    def _flush_if_awaited(self) -> None:
        """Flush after a batch if a reader may be waiting."""
        if self.file.streams:
            with self.file.explained():
                self.file.out.flush()

    def _encode_new_names(self) -> None:
        """Append the names that are new since the last batch to the arrays for the kernels."""
        new_names = [name.encode("utf-8", "surrogateescape") for name in self._names[self._encoded :]]
        self._encoded += len(new_names)
        old = self._class_names
        ends = old.start[-1] + np.cumsum([len(name) for name in new_names])
        text = np.concatenate((old.text, np.frombuffer(b"".join(new_names), np.uint8)))
        self._class_names = old._replace(start=np.concatenate((old.start, ends)), text=text)
        self._longest_name = max(self._longest_name, *map(len, new_names))

    def close(self) -> None:
        """Close the complete file, or flush standard output."""
        self.file.close()
