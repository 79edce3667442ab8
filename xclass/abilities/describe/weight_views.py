"""Define how the weight tables of a learner are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s
from ...binary import tagged_words
from ...data.batch import Batch


class WeightLookup(NamedTuple):
    """Identify one regressor that is scored for an example, by its table and its subproblem."""

    table: int  # position in `Learner.tables`
    sub: int  # number of the subproblem within its table
    number: int  # number of the subproblem among all of the learner
    extra: tuple[tuple[int, float], ...] = ()  # places and values of features the reduction adds


class TableView(NamedTuple):
    """Say which weights of the tables a learner uses."""

    # returns the regressors that are scored to predict the only example of a batch, then those that learn it
    lookups: Callable[[Batch], list[WeightLookup]]
    # whether a slot determines its subproblem and feature: slot i then belongs to subproblem `i % width` of the
    # features in row `i // width`. If not, names of features are found by following the lookups of every example
    rows_are_exclusive: bool = True
    # number of rows of each table if features are distributed over all rows; the place of a feature is then
    # `index % rows * width`, and otherwise `index * width`
    rows: np.uint64 | None = None
    limits: Float32s | None = None  # range to which scores are clipped, None for that of their table
    extra: Callable[[], list[WeightLookup]] = list  # features that the reduction itself adds, if rows are exclusive
    lines: Callable[[], list[str]] = list  # of the readable model, about what is learned beside the weights


class WordTable(NamedTuple):
    """Hold a table of tagged words and its name in a model as text."""

    name: str
    words: tagged_words.Words
    by_block: bool  # whether a word belongs to a regressor of a block, and not to a class
