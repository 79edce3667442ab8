"""Find examples that are predicted although none of their features was learned, and say so.

Such an example gets the answer of one without features, whatever it says. Most often it was written in another form
than those learned: in another namespace, as columns that count from another number, or as words instead of numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..array_types import Bools, Int64s
from ..data import feature_names
from ..data.batch import Batch
from ..data.feature_names import Hashing
from ..reductions.core.contract import BatchTask
from ..system.printable import short_repr

Core = Any  # `learner_core.LearnerCore`, which imports this module

MOST = 256  # examples that are looked at, the first ones of a call or run
MOST_KEPT = 1 << 16  # features of which it is kept that they were learned
FEWEST_COLUMNS, MOST_COLUMNS = 3, 0.9  # that seem to count from another number, and the share learned of those between
LEARNED = np.zeros(1, bool)  # of an example with a feature that was learned


class UnknownFeatures:
    """Look at the first examples that a learner predicts in a run, or since `begin` was called."""

    def __init__(self) -> None:
        self._learned: set[int] = set()  # features that were learned, so that single examples cost no time
        self.begin()

    def begin(self, looks_at_all: bool = False) -> None:
        """Begin with the examples that come; with `looks_at_all`, look at each of them, and have no message."""
        self._examples = self._unknown = 0
        self._most = math.inf if looks_at_all else MOST

    def look(self, core: Core, task: BatchTask) -> None:
        """Set `task.unknown` if its examples are among the first, and count them."""
        batch = task.batch
        if self._examples >= self._most or task.learn or not batch.n:
            return
        if batch.n == 1 and not self._learned.isdisjoint(batch.index.tolist()):
            task.unknown = LEARNED
            self._examples += 1
            return
        task.unknown = self._find(core, batch)
        if task.unknown is None or (batch.n == 1 and core.learns_singly):
            self._most = 0
            return
        self._examples += batch.n
        self._unknown += int(np.count_nonzero(task.unknown))

    def messages(self, core: Core, ended: bool = True) -> list[str]:
        """Return the message, once, if no feature of most of the examples was learned.

        Unless the examples have `ended`, there is none before all of the first ones were looked at.
        """
        examples, unknown = self._examples, self._unknown
        if self._most > MOST or (examples < self._most and not ended):
            return []
        self._most = self._unknown = 0
        return [message(core, unknown, examples)] if 2 * unknown > examples else []

    def _find(self, core: Core, batch: Batch) -> Bools | None:
        """Return bool[n], whether each example has features, none of which was learned; None if it is not known."""
        if core.spec.vw_exact or not core.examples:
            return None
        constants = int(core.spec.constant)
        has_features = np.diff(batch.start) > constants
        if batch.columns:
            has_features &= ~batch.dense.any(axis=1)
        rows = np.flatnonzero(has_features)
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


def shifted(core: Core, columns: Int64s, rule: Hashing, what: str, advice: str) -> str:
    """Return a note if columns seem to count from 0 where those learned from count from 1, or the reverse.

    `columns`, int64[c], are the first ones of the examples, rising; `what` is what has them.
    """
    if len(columns) < FEWEST_COLUMNS or not core.examples:
        return ""
    last = int(columns[-1])
    among = np.array([0, *columns[columns > 0][:-1], last, last + 1])
    found = core.reduction.find(feature_names.column_indices(among, rule))
    if found is None or found[1:-2].mean() < MOST_COLUMNS:
        return ""
    if columns[0] == 0 and not found[0] and found[-2] and found[-1]:
        learned, given = f"columns 1 to {last + 1} at least", 0
    elif columns[0] == 1 and found[0] and not found[-2]:
        learned, given = "columns from 0 on", 1
    else:
        return ""
    return (
        f"the model has learned from {learned}, and the {what} has columns {given} to {last}, as if they were counted "
        f"from {given}: each may be taken for another one; {advice}"
    )


def message(core: Core, unknown: int, examples: int, text: str | None = None) -> str:
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


def _cure(core: Core, text: str | None) -> str:
    space = core.namespace_of_words(text)
    if space is not None:
        where = f"in the namespace {short_repr(space)}" if space else "without a namespace"
        return f"; it has learned these words {where}: write `|{space} words of the text`"
    if core.schema.width:
        return f"; it has learned from rows of {core.schema.width} numbers"
    return ""
