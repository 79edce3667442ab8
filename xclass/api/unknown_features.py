"""Find examples none of whose features was learned before, and say so.

If it is predicted, such an example gets the answer of one without features, whatever it says. If a model learns on
from such examples, what it has learned is of no use for them. Most often they were written in another form than those
learned: in another namespace, as columns that count from another number, or as words instead of numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..array_types import Bools, Int64s
from ..data import feature_names
from ..data.batch import Batch
from ..data.feature_names import Hashing
from ..reductions.core.contract import BatchTask
from ..system.printable import short_repr

if TYPE_CHECKING:  # which imports this module
    from .learner_core import LearnerCore

MOST = 256  # examples that are looked at, the first ones of a call or run
FEWEST = 16  # examples, learned and to learn from, without which nothing is said when a model learns on
MOST_KEPT = 1 << 16  # features of which it is kept that they were learned, and columns that are sought in a model
WIDEST_GAP = 16  # columns in a row that a model may lack before the last one
LEARNED = np.zeros(1, bool)  # of an example with a feature that was learned


class UnknownFeatures:
    """Look at the first examples that a learner predicts in a run, or since `begin` was called."""

    def __init__(self) -> None:
        # bool[n], whether no feature of each example of the last task was learned; None if that was not looked for
        self.found: Bools | None = None
        self._learned: set[int] = set()  # features that were learned, so that single examples cost no time
        self.begin()

    def begin(self, looks_at_all: bool = False) -> None:
        """Begin with the examples that come; with `looks_at_all`, look at each of them, and have no message."""
        self._examples = self._unknown = 0
        self._most = math.inf if looks_at_all else MOST

    def look(self, core: LearnerCore, task: BatchTask) -> None:
        """Set `found` if the examples of a task are among the first, and count them."""
        batch, self.found = task.batch, None
        if self._examples >= self._most or task.learn or not batch.n:
            return
        if batch.n == 1 and not self._learned.isdisjoint(batch.index.tolist()):
            self.found = LEARNED
            self._examples += 1
            return
        self.found = self._find(core, batch)
        if self.found is None or (batch.n == 1 and core.learns_singly):
            self._most = 0
            return
        self._examples += batch.n
        self._unknown += int(np.count_nonzero(self.found))

    def messages(self, core: LearnerCore, ended: bool = True) -> list[str]:
        """Return the message, once, if no feature of most of the examples was learned.

        Unless the examples have `ended`, there is none before all of the first ones were looked at.
        """
        examples, unknown = self._examples, self._unknown
        if self._most > MOST or (examples < self._most and not ended):
            return []
        self._most = self._unknown = 0
        return [message(core, unknown, examples)] if 2 * unknown > examples else []

    def when_continuing(self, core: LearnerCore, task: BatchTask) -> list[str]:
        """Return a message if no feature of most of the first examples was learned before the task is learned from."""
        unknown = self._find(core, task.batch, MOST)
        examples = min(task.batch.n, MOST)
        number = 0 if unknown is None else int(np.count_nonzero(unknown))
        if 2 * number <= examples or examples < FEWEST or core.examples < FEWEST:
            return []
        return [
            f"{number} of the first {examples} examples to learn from have no feature that the model has learned, so "
            f"what it has learned is of no use for them{_cure(core, None)}"
        ]

    def _find(self, core: LearnerCore, batch: Batch, most: int | None = None) -> Bools | None:
        """Return bool[n], whether each example has features, none of which was learned; None if it is not known.

        False stands for all examples behind the first `most`.
        """
        if core.spec.vw_exact or not core.examples:
            return None
        constants = int(core.spec.constant)
        has_features = np.diff(batch.start) > constants
        if batch.columns:
            has_features &= ~batch.dense.any(axis=1)
        rows = np.flatnonzero(has_features[:most])
        first = batch.index[batch.start[rows]]
        found = core.reduction.find(first)
        if found is None:
            return None
        self._keep(first[found])
        unknown = np.zeros(batch.n, bool)
        for i in rows[~found].tolist():
            others = batch.index[batch.start[i] + 1 : batch.start[i + 1] - constants]
            known = others[core.reduction.find(others)]
            unknown[i] = not len(known)
            self._keep(known)
        return unknown

    def _keep(self, features: np.ndarray) -> None:
        if len(self._learned) < MOST_KEPT:
            self._learned.update(features.tolist())


def shifted(
    core: LearnerCore, columns: Int64s, rule: Hashing, given: str, advice: str, model: str = "the model"
) -> str:
    """Return the note of `feature_names.shift_note` about columns, int64[c], that `given` has, or nothing."""
    if not core.examples:
        return ""

    def known(among: Int64s) -> Bools | None:
        found: Bools | None = core.reduction.find(feature_names.column_indices(among, rule))
        return found

    return feature_names.shift_note(columns, known, f"{model} has learned from", given, advice)


def learned_columns(core: LearnerCore, rule: Hashing) -> Int64s:
    """Return the numbers of the columns that a model seems to have learned from, int64[c], rising; none if unknown.

    The features of names that are no numbers may share places with columns, so the search ends at a gap.
    """
    found = core.reduction.find(feature_names.column_indices(np.arange(MOST_KEPT), rule))
    columns = np.flatnonzero(found if found is not None else ())
    gaps = np.flatnonzero(np.diff(columns, prepend=-1) > WIDEST_GAP)
    return columns[: gaps[0]] if len(gaps) else columns


def message(core: LearnerCore, unknown: int, examples: int, text: str | None = None) -> str:
    """Return the message that none of the features of `unknown` of some examples was learned.

    `text` is the first of them, None for the last text that was converted.
    """
    which, verb, pronoun = f"{unknown} of the first {examples} examples", "have", "they get"
    if examples == 1:
        which, verb, pronoun = "the example", "has", "it gets"
    return (
        f"{which} {verb} no feature that the model has learned, so {pronoun} the answer of an example without "
        f"features{_cure(core, text)}"
    )


def _cure(core: LearnerCore, text: str | None) -> str:
    space = core.namespace_of_words(text)
    if space is not None:
        where = f"in the namespace {short_repr(space)}" if space else "without a namespace"
        return f"; it has learned these words {where}: write `|{space} words of the text`"
    if core.schema.width:
        return f"; it has learned from rows of {core.schema.width} numbers"
    return ""
