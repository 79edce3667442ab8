"""Give explanations the labels and the names of columns that the program of an estimator uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..explain.records import ExplainedClass, Explanation, Share, Turn
from .class_labels import ClassLabels


class Renaming:
    """Rename classes and features.

    Parameters
    ----------
    labels : labels of the estimator
    columns : names of the columns of a DataFrame of numbers, whose features are numbered; empty for other examples
    """

    def __init__(self, labels: ClassLabels, columns: Sequence[str]) -> None:
        self._labels, self._columns = labels, columns

    def of(self, explanation: Explanation) -> Explanation:
        """Return an explanation with the names of the program."""
        return replace(
            explanation,
            prediction=self._labels.value_of(explanation.prediction),
            label=self._labels.value_of(explanation.label),
            classes=tuple(map(self._of_class, explanation.classes)),
            others=tuple(map(self._of_class, explanation.others)),
        )

    def _of_class(self, explained: ExplainedClass) -> ExplainedClass:
        """Return a class with the names of the program."""
        path = tuple(map(self._of_turn, explained.path))
        label, shares = self._labels.value_of(explained.label), self._of_shares(explained.shares)
        return replace(explained, label=label, shares=shares, path=path)

    def _of_turn(self, turn: Turn) -> Turn:
        """Return a turn with the names of the program."""
        return replace(turn, shares=self._of_shares(turn.shares))

    def _of_shares(self, shares: Iterable[Share]) -> tuple[Share, ...]:
        """Return shares with the names of columns."""
        return tuple(share._replace(name=self._column(share.name)) for share in shares)

    def _column(self, name: str) -> str:
        """Return the name of a column if `name` is its number."""
        known = name.isdecimal() and int(name) < len(self._columns)
        return str(self._columns[int(name)]) if known else name
