"""Merge the weights of one-against-all, whose classes may have other numbers in each model."""

from __future__ import annotations

import numpy as np

from ...array_types import Int64s
from ...binary import merging
from ...errors import ModelError
from ...reductions.oaa.reduction import OneAgainstAll
from ...reductions.oaa.scorers import ClassScorers
from .sources import Sources, check_continued


def merge(learner: OneAgainstAll, sources: Sources) -> list[str]:
    """Fill a new learner with the merged state of others; the state of --oaa_subsample is that of the first model."""
    learners = sources.learners
    indexed = {one.indexing: path for one, path in zip(learners, sources.paths, strict=True)}
    if 0 in indexed and 1 in indexed:
        raise ModelError(
            f"{indexed[0]} has labels from 0 and {indexed[1]} has labels from 1, so their classes differ; train "
            "one of them again with other labels"
        )
    learner.indexing = min(indexed)  # UNDECIDED is the largest
    merge_scorers(learner, sources)
    learner.order[:] = learners[0].order
    learner.random[:] = learners[0].random
    learner.next_negative = learners[0].next_negative
    return []


def merge_scorers(learner: ClassScorers, sources: Sources) -> list[Int64s | None]:
    """Fill the table of a new learner with those of others; return the columns of its classes in each of them."""
    place = {key: column for column, key in enumerate(sources.merged_keys)}
    columns = [_columns([place[key] for key in keys], learner.classes) for keys in sources.keys]
    learner.table, k = merging.merge_tables(
        learner.table, [one.table for one in sources.learners], sources.base.table, learner.rule.adaptive,
        sources.examples, sources.live, columns,
    )  # fmt: skip
    learner.tables = [learner.table]
    check_continued(k, sources)
    return columns


def _columns(new: list[int], classes: int) -> Int64s | None:
    """Return for each class of the result its column in the table of a model, int64[classes], a permutation; None if
    all have the same columns.

    A class that the model has not seen gets a column that no class of the model uses: it has learned, as the column of
    the class would have, that no example is of this class. `new` is the column in the result of each named class of the
    model.
    """
    if new == list(range(len(new))):
        return None
    columns = np.full(classes, -1)
    columns[new] = np.arange(len(new))
    columns[columns < 0] = np.arange(len(new), classes)
    return columns
