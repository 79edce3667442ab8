"""Merge learners of lists of labels: scorers, the combination, the index, frequencies and near examples.

Idea      Words and biases of scorers are averaged by what each model has added to G, as those of AdaGrad: AROW's G is
          a sum of squares, too, and the surer a model is of a weight, the more it counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...array_types import Float64s
from ...binary import merged_words, merging
from ...kernels.constants import LARGEST
from ...model import stored_arrays
from ...reductions.multilabel import frequent, ranking
from ...reductions.multilabel.frequent import Labels
from ...reductions.multilabel.ranking import Scorers
from ...reductions.multilabel.reduction import Multilabel
from . import index as merged_index
from . import neighbours as merged_neighbours
from .sources import Sources, check_names


def listed_tables(one: Multilabel) -> dict[str, tuple[str, ...]]:
    return {"scorers": (merged_words.WORD,), "index": merged_index.PLANES}


def merge(target: Multilabel, sources: Sources) -> list[str]:
    """Fill a new learner with the merged state of others; return notes for the user."""
    learners, base = sources.learners, sources.base
    check_names(sources)
    merged_index.merge_frequencies(target.frequencies, [one.frequencies for one in learners], base.frequencies)
    merged_index.merge(
        target.index, [one.index for one in learners], base.index,
        [target.frequencies, *(one.frequencies for one in learners)], sources.changes_of("index"),
    )  # fmt: skip
    labels = max(len(one.counts) - 1 for one in (base, *learners))
    target.scorers = _merged_scorers(target.scorers, [one.scorers for one in learners], base.scorers, labels, sources)
    target.labels = _merged_labels([one.labels for one in learners], base.labels, labels)
    models = [one.neighbours for one in learners]
    target.neighbours = merged_neighbours.merged(target.neighbours, models, base.neighbours)
    counts = [_resized(one.counts, labels) for one in (base, *learners)]
    target.counts = merging.added_counts(counts[1:], counts[0])
    return target.merge_threshold(learners)


def _resized(counts: np.ndarray, labels: int) -> np.ndarray:
    """Return counts of so many labels, and of the examples at their end."""
    return np.concatenate([counts[:-1], np.zeros(labels + 1 - len(counts), counts.dtype), counts[-1:]])


def _merged_scorers(
    target: Scorers, models: Sequence[Scorers], base: Scorers, labels: int, sources: Sources
) -> Scorers:
    words = merged_words.merged([one.words for one in models], base.words, sources.changes_of("scorers"))
    merging.average_parameters(target.state, [one.state for one in models], base.state)
    merging.average_parameters(
        target.regularisation[:, None], [one.regularisation[:, None] for one in models], base.regularisation[:, None]
    )
    target = ranking.with_labels(target._replace(words=words), labels)
    every = [ranking.with_labels(one, labels) for one in (base, *models)]
    first, *others = ([one.bias[: labels + 1], one.bias_g[: labels + 1]] for one in every)
    own = np.zeros((2, labels + 1))
    merging.average_parameters(own, [np.array(one, np.float64) for one in others], np.array(first, np.float64))
    target.bias[: labels + 1], target.bias_g[: labels + 1] = np.minimum(own, LARGEST)
    examples = [one.examples[: labels + 1] for one in every]
    target.examples[: labels + 1] = np.minimum(merging.added_counts(examples[1:], examples[0]), stored_arrays.MAX_SUM)
    return target


def _merged_labels(models: Sequence[Labels], base: Labels, highest: int) -> Labels:
    every = [frequent.with_labels(one, highest) for one in (base, *models)]
    weight: list[Float64s] = [one.weight[: highest + 1] for one in every]
    merged = frequent.with_labels(frequent.new_labels(), highest)
    merged.weight[: highest + 1] = np.minimum(merging.added_counts(weight[1:], weight[0]), stored_arrays.MAX_SUM)
    first = list(dict.fromkeys(y for one in every for y in one.first.tolist() if y))[: frequent.MOST_ALL]
    merged.first[: len(first)] = first
    # of equally frequent labels, those that a model lists come first
    listed = list(dict.fromkeys(y for one in models for y in one.frequent.tolist() if y))
    order = sorted(
        [*listed, *(np.setdiff1d(np.flatnonzero(merged.weight), listed).tolist())], key=lambda y: -merged.weight[y]
    )[: frequent.FREQUENT]
    merged.frequent[: len(order)] = order
    merged.state[frequent.SEEN] = np.count_nonzero(merged.weight)
    return merged
