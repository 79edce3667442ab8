"""Merge learners of lists of labels: scorers, the combination, the index, frequencies and near examples.

Idea      Words and biases of scorers are averaged by what each model has added to G, as those of AdaGrad: AROW's G is
          a sum of squares, too, and the surer a model is of a weight, the more it counts.

          The examples that the models have kept since the base get numbers in turn, as if one learner had seen the data
          of all of them side by side, so that none is older than those of another model. Each row keeps the newest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...array_types import Float64s, Int64s
from ...binary import merged_words, merging
from ...kernels.constants import LARGEST
from ...model import stored_arrays
from ...reductions.multilabel import frequent, ranking
from ...reductions.multilabel.frequent import FrequentLabels
from ...reductions.multilabel.neighbours import EXAMPLES, KEPT, LABEL_MASK, LABELS, SLOTS, Neighbours
from ...reductions.multilabel.ranking import RankingScorers
from ...reductions.multilabel.reduction import Multilabel
from . import parts
from .sources import Sources, average, check_names


def merge(target: Multilabel, sources: Sources) -> list[str]:
    """Fill a new learner with the merged state of others; return notes for the user."""
    learners, base = sources.learners, sources.base
    check_names(sources)
    parts.merge_frequencies(target.frequencies, sources.of("frequencies"))
    parts.merge_of(target, sources)
    labels = max(len(one.counts) - 1 for one in (base, *learners))
    target.scorers = _merged_scorers(target.scorers, sources.of("scorers"), labels)
    target.labels = _merged_labels([one.labels for one in learners], base.labels, labels)
    neighbours = sources.of("neighbours")
    target.neighbours = merged_neighbours(target.neighbours, neighbours.learners, neighbours.base)
    target.merge_counts(learners, base)
    return target.merge_threshold(learners)


def _merged_scorers(target: RankingScorers, sources: Sources, labels: int) -> RankingScorers:
    words = sources.of("words")
    merged = merged_words.merged(words.learners, words.base, sources.live)
    average(target, sources, "state")
    average(target, sources, "regularisation")
    target = ranking.with_labels(target._replace(words=merged), labels)
    every = [ranking.with_labels(one, labels) for one in (sources.base, *sources.learners)]
    first, *others = ([one.bias[: labels + 1], one.bias_g[: labels + 1]] for one in every)
    own = np.zeros((2, labels + 1))
    merging.average_parameters(own, [np.array(one, np.float64) for one in others], np.array(first, np.float64))
    target.bias[: labels + 1], target.bias_g[: labels + 1] = np.minimum(own, LARGEST)
    examples = [one.examples[: labels + 1] for one in every]
    target.examples[: labels + 1] = np.minimum(merging.added_counts(examples[1:], examples[0]), stored_arrays.MAX_SUM)
    return target


def _merged_labels(models: Sequence[FrequentLabels], base: FrequentLabels, highest: int) -> FrequentLabels:
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


def merged_neighbours(target: Neighbours, models: Sequence[Neighbours], base: Neighbours) -> Neighbours:
    """Return new rows, filled with the newest examples of a base and of models that have continued from it.

    If a single model has learned any since the base, these are its own.
    """
    before = int(base.state[EXAMPLES])
    added = [max(int(one.state[EXAMPLES]) - before, 0) for one in models]
    if np.count_nonzero(added) < 2:
        return models[int(np.argmax(added))] if any(added) else base
    # the i-th of n examples of a model has the place (i + 1/2) / n among all that were added
    place = np.concatenate([(np.arange(n) + 0.5) / max(n, 1) for n in added])
    number = np.empty(len(place), np.int64)
    number[np.argsort(place, kind="stable")] = before + 1 + np.arange(len(place))
    ends = np.cumsum(added)[:-1]
    numbers = [np.arange(1, before + 1), *np.split(number, ends)]  # of the examples of each source, in their order
    _fill_rows(target, [base, *models], numbers, before)
    _fill_labels(target, [base, *models], numbers, before)
    return target


def _fill_rows(target: Neighbours, sources: Sequence[Neighbours], numbers: Sequence[Int64s], before: int) -> None:
    """Fill the rows; `numbers` are those of the examples of each source, the base and what models have added to it."""
    row, number, value = [], [], []
    for source, renumbered in zip(sources, numbers, strict=True):
        first = 0 if source is sources[0] else before
        filled = np.flatnonzero(source.used)
        pair = source.pair.reshape(-1, SLOTS, 2)[filled]
        own = pair[:, :, 0].astype(np.int64)
        kept = (np.arange(SLOTS) < source.used[filled][:, None]) & (own > first)
        row.append(np.broadcast_to(filled[:, None], kept.shape)[kept])
        number.append(renumbered[own[kept] - first - 1])
        value.append(pair[:, :, 1][kept])
    every_row, every_number = np.concatenate(row), np.concatenate(number)
    order = np.lexsort((every_number, every_row))
    every_row, every_number, every_value = every_row[order], every_number[order], np.concatenate(value)[order]
    size = np.bincount(every_row, minlength=len(target.used))
    end = np.cumsum(size)
    place = np.arange(len(every_row)) - (end - np.minimum(size, SLOTS))[every_row]  # below 0 for those that are dropped
    newest = place >= 0
    pair = target.pair.reshape(-1, SLOTS, 2)
    pair[every_row[newest], place[newest], 0] = every_number[newest]
    pair[every_row[newest], place[newest], 1] = every_value[newest]
    target.used[:] = np.minimum(size, SLOTS)


def _fill_labels(target: Neighbours, sources: Sequence[Neighbours], numbers: Sequence[Int64s], before: int) -> None:
    """Fill the labels of the newest examples, as `_fill_rows` fills the rows."""
    total = sum(map(len, numbers))
    oldest = max(total - KEPT, 0)
    begin, size, own_number = [], [], []
    own_source: list[Int64s] = []
    for source, renumbered in zip(sources, numbers, strict=True):
        first = 0 if source is sources[0] else before
        own = np.arange(max(first, int(source.state[EXAMPLES]) - KEPT) + 1, int(source.state[EXAMPLES]) + 1)
        own = own[renumbered[own - first - 1] > oldest]
        known = source.place[own & KEPT - 1] + LABEL_MASK + 1 >= source.state[LABELS]
        own_number.append(renumbered[own - first - 1])
        size.append(np.where(known, source.size[own & KEPT - 1], 0).astype(np.int64))
        begin.append(source.place[own & KEPT - 1])
        own_source.append(np.full(len(own), len(own_source)))
    order = np.argsort(np.concatenate(own_number))
    number, count = np.concatenate(own_number)[order], np.concatenate(size)[order]
    start, of_source = np.concatenate(begin)[order], np.concatenate(own_source)[order]
    place = np.cumsum(count) - count
    inside = np.arange(int(count.sum())) - np.repeat(place, count)
    at, of_label = np.repeat(start, count) + inside & LABEL_MASK, np.repeat(of_source, count)
    label = np.empty(len(at), np.uint32)
    for k, source in enumerate(sources):
        label[of_label == k] = source.label[at[of_label == k]]
    e = number & KEPT - 1
    target.place[e], target.size[e] = place, count
    newest = label[-(LABEL_MASK + 1) :]
    target.label[np.arange(len(label) - len(newest), len(label)) & LABEL_MASK] = newest
    target.state[[EXAMPLES, LABELS]] = total, len(label)
