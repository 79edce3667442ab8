"""Write the lines of -p and -r, digit for digit as C++ streams, and therefore VW, print them.

A kernel formats a batch as bytes. There are these kinds of lines; a space and the tag follow, if there is a tag:

    simple       0.302885          `%.6f`; no decimals where the number is whole
    multiclass   17
    multilabel   1,5,7             any number of labels, none on an empty line
    scores       1:0.302885 2:-0.5     `%g`, six digits (--scores, --probabilities, --top_k)
    raw_scores    1:0.302885 2:-0.5    the same after a space (-r)
    vw_labels    1,5,7             with a space at the end (--vw_exact with lists of labels)

The probability of all classes that a list does not name is the last, `:0.19`: no class has an empty name.

Differs   from VW: classes above 2**24 are printed exactly (VW rounds them to float32).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...api.configuration import Config
from ...array_types import Int
from ...data import class_names
from ...data.batch import Batch
from ...data.class_names import Names
from ...errors import UsageError
from ...reductions.core import probabilities
from ...reductions.core.contract import BatchTask
from ...system import output_file
from . import line_kernels

KINDS = ("simple", "multiclass", "multilabel", "scores", "raw_scores", "vw_labels")
BUFFER = 1 << 20  # bytes that are formatted before they are written


class Lines:
    """Format one line for each example of a batch.

    `kind` is one of KINDS, see the module. `names` are those of the classes 1, 2, ...; the list may grow; None writes
    numbers, and a class without a name is an empty string. With `rounded`, classes are rounded to float32, as in VW.
    `blank` is the byte that is written for a blank in a name.
    """

    def __init__(
        self, kind: str, names: Sequence[str] | None = None, rounded: bool = False, blank: bytes = b" "
    ) -> None:
        if kind not in KINDS:
            raise ValueError(kind)
        self.kind = kind
        self._rounded = rounded and kind == "multiclass"
        self._names, self._blank = () if names is None else names, blank
        self._encoded = 0  # number of names in `_class_names`
        named = names is not None and kind in ("multiclass", "multilabel", "scores")
        self._class_names = line_kernels.ClassNames(named, np.zeros(2, np.int64), np.empty(0, np.uint8))
        self._longest_name = 0  # bytes of the longest name
        self._out = np.empty(BUFFER, np.uint8)

    def pieces(
        self,
        batch: Batch,
        values: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        start: np.ndarray | None = None,
        has_rest: bool = False,
    ) -> Iterator[memoryview]:
        """Yield the lines of a batch in pieces, each of which is valid until the next one is asked for.

        `values`, float64[n], are numbers or classes (simple, multiclass). In the other kinds, example i has the scores
        and classes `start[i]:start[i + 1]` of `scores` and `labels`, of which the last is that of all other classes if
        `has_rest` is set; lists of labels have no scores.
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
                assert labels is not None and start is not None
                rest = (self._class_names, self._longest_name, *tags, row, self._out)
                if scores is None:
                    row, size = line_kernels.label_lines(labels, start, self.kind == "vw_labels", *rest)
                else:
                    row, size = line_kernels.score_lines(
                        scores, labels, start, has_rest, self.kind == "raw_scores", *rest
                    )
            yield self._out[:size].data

    def _encode_new_names(self) -> None:
        """Append the names that are new since the last batch to the arrays for the kernels."""
        new_names = [name.encode("utf-8", "surrogateescape") for name in self._names[self._encoded :]]
        if self._blank != b" ":
            new_names = [name.replace(b" ", self._blank) for name in new_names]
        self._encoded += len(new_names)
        old = self._class_names
        ends = old.start[-1] + np.cumsum([len(name) for name in new_names])
        text = np.concatenate((old.text, np.frombuffer(b"".join(new_names), np.uint8)))
        self._class_names = old._replace(start=np.concatenate((old.start, ends)), text=text)
        self._longest_name = max(self._longest_name, *map(len, new_names))


class Writer(Lines):
    """Write the lines of batches to a file; `description` says what it holds, for messages."""

    def __init__(
        self,
        path: str,
        kind: str,
        names: Sequence[str] | None = None,
        rounded: bool = False,
        description: str = "predictions",
    ) -> None:
        super().__init__(kind, names, rounded)
        self.path = path
        self.file = output_file.Output(path, description)

    def write(self, batch: Batch, **contents: Any) -> None:
        """Write the lines of a batch; BrokenPipeError is raised if the reader of the output has closed it.

        `contents` are the arguments of `pieces`.
        """
        for piece in self.pieces(batch, **contents):
            with self.file.explained():
                self.file.out.write(piece)
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

    def close(self) -> None:
        """Close the complete file, or flush standard output."""
        self.file.close()


def kind_of_predictions(c: Config, listing: probabilities.Options, lists_scores: bool) -> str:
    """Return the kind of the lines of -p.

    `listing` says which classes are listed, `lists_scores` whether predictions are the scores of all classes.
    """
    if c.run.vw_exact and c.reduction.labels == "multilabel":
        return "scores" if listing.probabilities else "vw_labels"
    return "scores" if listing.lists_classes or lists_scores else c.reduction.labels


def open_writers(c: Config, names: Names, lists_scores: bool) -> dict[str, Writer]:
    """Return the writers for -p and -r, as far as these are given, by their options.

    `lists_scores` says whether predictions are the scores of all classes.
    """
    o = c.run
    kind = kind_of_predictions(c, c.listing_options, lists_scores)
    writers = {}
    if o.predictions is not None:
        writers["predictions"] = Writer(o.predictions, kind, names.class_list, rounded=o.vw_exact)
    if o.raw_predictions is not None:
        if c.reduction.labels == "multilabel" and not c.reduction.class_scores:
            raise UsageError(
                f"-r has no scores of --{c.reduction.name} to write; --top_k N -p FILE writes the best labels with "
                "their probabilities"
            )
        raw = "simple" if c.reduction.labels == "simple" else "raw_scores"
        writers["raw_predictions"] = Writer(o.raw_predictions, raw, description="scores")
    return writers


def write(writers: dict[str, Writer], task: BatchTask, highest_seen: np.ndarray | None = None) -> None:
    """Write a line for each example of a task to each file of `open_writers`.

    `highest_seen` is the highest class that has a name at each example, float64[n]; None if all classes do.
    """
    for name, writer in writers.items():
        writer.write(task.batch, **contents(writer.kind, task, highest_seen, name == "raw_predictions"))


def contents(kind: str, task: BatchTask, highest_seen: np.ndarray | None, raw: bool = False) -> dict[str, Any]:
    """Return what the lines of a task hold, as arguments of `Lines.pieces`.

    `kind` is that of the lines, `highest_seen` as in `write`, and `raw` says whether they are those of -r.
    """
    class_lists = task.class_lists
    if kind in ("simple", "multiclass"):
        prediction = task.raw if raw else task.prediction
        if prediction is not None and highest_seen is not None and not raw:
            prediction = class_names.hide_unseen(prediction, highest_seen)
        return {"values": prediction}
    if not raw and (lists := class_lists or task.chosen) is not None:
        if highest_seen is not None:
            highest_of_label = np.repeat(highest_seen, np.diff(lists.start))
            lists = lists._replace(labels=class_names.hide_unseen(lists.labels, highest_of_label))
        return lists._asdict()
    has_rest = class_lists is not None and class_lists.has_rest and task.scores is class_lists.scores
    return {"scores": task.scores, "labels": task.score_labels, "start": task.score_start, "has_rest": has_rest}
