"""Keep the wrongly predicted lines whose labels have the lowest probabilities (`--errors`).

Lines whose label has no probability, because it occurs for the first time or the reduction gives no probabilities, come
after all others, in the order of the data.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from ...data import batch_ops
from ...data.batch import Batch
from .measured import Measured

COLUMNS = ("place", "label", "answer", "answer_probability", "label_probability", "line")
NOT_KNOWN = 2.0  # sorts labels without a probability after all others


class WrongLines:
    """Keep the lines with the least probable labels."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.clear()

    def clear(self) -> None:
        """Forget all lines."""
        # a heap with the first to be dropped on top: (-probability, -number of the line), then the columns
        self._kept: list[tuple[float, int, tuple[str, int, int, float, float, bytes]]] = []
        self._count = 0  # of lines that were compared with the kept ones
        self._wrong = 0

    def add(self, batch: Batch, examples: Measured, file: str, with_text: bool) -> None:
        """Add the wrong ones among the measured examples of a batch, with their lines if the batch contains its
        text.
        """
        probability = np.where(np.isnan(examples.label_probability), NOT_KNOWN, examples.label_probability)
        wrong = np.flatnonzero(examples.wrong)
        self._wrong += len(wrong)
        if len(wrong) > self.most:  # of one batch, those with the lowest probabilities are enough
            wrong = np.sort(wrong[np.argsort(probability[wrong], kind="stable")[: self.most]])
        for j in wrong.tolist():
            self._count += 1
            key = (-float(probability[j]), -self._count)
            if len(self._kept) == self.most and key < self._kept[0][:2]:
                continue
            i = int(examples.row[j])
            text = b""
            if with_text:
                begin, end = batch_ops.line_of(batch, i)
                text = batch.text[begin:end].tobytes()
            columns = (
                f"{file}:{batch.line[i]}",
                int(examples.label[j]),
                int(examples.answer[j]),
                float(examples.answer_probability[j]),
                float(examples.label_probability[j]),
                text,
            )
            change = heapq.heappush if len(self._kept) < self.most else heapq.heapreplace
            change(self._kept, (*key, columns))

    def left_out(self) -> str:
        """Return a note about the wrong lines that were not kept, an empty text if all were."""
        if self._wrong <= self.most:
            return ""
        return f"{self.most} of {self._wrong} wrong lines are written; --most_errors {self._wrong} writes all"

    def lines(self, name: Callable[[int], str]) -> Iterator[str]:
        """Yield a header and the lines, columns separated by tabs; the text of the line comes last."""
        yield "\t".join(COLUMNS)
        for _, _, (place, label, answer, of_answer, of_label, text) in sorted(self._kept, reverse=True):
            line = text.rstrip(b"\r").decode("utf-8", "surrogateescape")
            yield "\t".join((place, name(label), name(answer), _probability(of_answer), _probability(of_label), line))


def _probability(p: float) -> str:
    return "" if np.isnan(p) else f"{p:.6g}"
