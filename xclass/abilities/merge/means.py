"""Merge class means: what they are estimated from are sums, which are added; corrections are averaged.

Idea      Each model is moved to the centre of all rows, where the sums are added, less those of the base for each
          model but one. The space estimated from the sums is, up to rounding, that of a single run. The correction of a
          class is the mean of those of the models, weighted by the examples of the class that each has learned since
          the base, and so are its sums of squares: with sums that were added, later steps would be too small.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float64s, Int64s
from ...reductions.means import space
from ...reductions.means.class_means import RING, ClassMeans
from ...reductions.means.kernels import LARGEST_SQUARES
from ...reductions.means.reduction import Means
from .sources import Sources, not_continued


def merge(target: Means, sources: Sources) -> list[str]:
    """Fill a new learner with the merged state of others; pending rows are learned first."""
    learners = [one for one in sources.learners if one.classes is not None]
    if not learners:
        return []
    d = learners[0].classes.d
    base = sources.base.classes or target.new_classes(d)
    for one in (*(learner.classes for learner in learners), base):
        one.finish_block()
    places = {key: number for number, key in enumerate(sources.merged_keys, 1)}
    labels = [_renumbered(one, keys, places) for one, keys in zip(sources.learners, sources.keys, strict=True)]
    base_labels = _renumbered(sources.base, sources.base_keys, places)
    merged = list(dict.fromkeys([*base_labels.tolist(), *(label for own in labels for label in own.tolist())]))
    target.set_labels(np.array(merged, np.int64))
    place = {label: number for number, label in enumerate(merged)}
    numbers = [np.array([place[label] for label in own.tolist()], np.int64) for own in labels]
    result = target.classes = target.new_classes(d)
    models = [(one.classes, own) for one, own in zip(sources.learners, numbers, strict=True) if one.classes is not None]
    base_numbers = np.array([place[label] for label in base_labels.tolist()], np.int64)
    weights = [one.weight - base.weight for one, _ in models]
    total = sum(weights) or 1.0
    centre = sum(weight * one.space.centre for weight, (one, _) in zip(weights, models, strict=True)) / total
    result.space = space.raw(d)._replace(centre=centre)
    size = len(merged)
    n, sums, scatter = np.zeros(size), np.zeros((size, d)), np.zeros((d, d))
    for factor, one, own in [*((1.0, *model) for model in models), (1.0 - len(models), base, base_numbers)]:
        of_one = _about(one, centre)
        n[own] += factor * of_one[0]
        sums[own] += factor * of_one[1]
        scatter += factor * of_one[2]
    if (n <= 0).any():
        raise not_continued(sources.paths[0], sources.base_path, "a class has fewer examples")
    _merge_counters(result, [one for one, _ in models], base, weights)
    result.reserve(size)
    result.size = size
    _average(result, models, base, base_numbers, n)
    _fill_ring(result, models, base, base_numbers)
    if n.sum() > 0:  # else all rows were skipped
        result.use(sums, n, scatter)
    result.pack()
    return []


def _renumbered(one: Means, keys: object, places: dict[str, int]) -> Int64s:
    """Return the labels of the classes of a model in the result, where names may have other numbers."""
    label = one.numbered.label[: one.classes_seen].copy()
    names = list(keys)  # type: ignore[call-overload]  # a sequence of texts
    return np.array([places[names[number - 1]] if 0 < number <= len(names) else number for number in label], np.int64)


def _about(one: ClassMeans, centre: Float64s) -> tuple[Float64s, Float64s, Float64s]:
    """Return weights, sums and scatter of a model about another centre."""
    n, sums, shift = one.classes.weight[: one.size], one.class_sums(), one.space.centre - centre
    cross = np.outer(sums.sum(axis=0), shift)
    return n, sums + n[:, None] * shift, one.scatter + cross + cross.T + float(n.sum()) * np.outer(shift, shift)


def _merge_counters(result: ClassMeans, models: list[ClassMeans], base: ClassMeans, weights: list[float]) -> None:
    """Set the numbers of the result that are sums or means of those of the models."""
    others = len(models) - 1
    for name in ("rows", "weight", "draws", "tau_square", "omega_square", "means_tau_square"):
        value = sum(getattr(one, name) for one in models) - others * getattr(base, name)
        setattr(result, name, max(value, 0))
    total = sum(weights)
    shares = [weight / total if total > 0 else 1 / len(models) for weight in weights]
    for name in ("log_tau", "omega", "log_means_tau"):
        setattr(result, name, sum(share * getattr(one, name) for share, one in zip(shares, models, strict=True)))
    result.hits = np.sum([share * one.hits for share, one in zip(shares, models, strict=True)], axis=0)


def _average(
    result: ClassMeans, models: list[tuple[ClassMeans, Int64s]], base: ClassMeans, base_numbers: Int64s, n: Float64s
) -> None:
    """Set the corrections of the classes, in the space of the rows as they are."""
    classes = result.classes
    before, squares_before = np.zeros(len(n)), np.zeros(len(n), np.float32)
    before[base_numbers] = base.classes.weight[: base.size]
    squares_before[base_numbers] = base.classes.squares[: base.size]
    share, total = [], np.zeros(len(n))
    for one, own in models:
        share.append(np.maximum(one.classes.weight[: one.size] - before[own], 0))
        total[own] += share[-1]
    classes.squares[: len(n)] = squares_before
    for (one, own), weight in zip(models, share, strict=True):
        new = total[own] > 0
        part = np.where(new, weight / np.where(new, total[own], 1), 1 / len(models)).astype(np.float32)
        step, offset, _ = one.moved(result.space)
        classes.step[own] += part[:, None] * step
        classes.offset[own] += part * offset
        classes.squares[own] += part * np.maximum(one.classes.squares[: one.size] - squares_before[own], 0)
    np.minimum(classes.squares, LARGEST_SQUARES, out=classes.squares)


def _fill_ring(
    result: ClassMeans, models: list[tuple[ClassMeans, Int64s]], base: ClassMeans, base_numbers: Int64s
) -> None:
    """Keep the latest rows: those that each model has learned since the base and, before them, those of the base."""
    count = [min(one.rows - base.rows, one.filled) for one, _ in models]
    if sum(count) > RING:
        count = [min(new, RING // len(models)) for new in count]
    kept_of = [min(base.filled, RING - sum(count)), *count]
    for (one, own), kept in zip([(base, base_numbers), *models], kept_of, strict=True):
        latest = (one.ring_at - kept + np.arange(kept)) % max(one.filled, 1)
        at = slice(result.filled, result.filled + kept)
        result.ring.z[at] = one.moved(result.space)[2][latest]
        result.ring.own[at] = own[one.ring.own[latest]]
        near = one.ring.near[latest]
        result.ring.near[at] = np.where(near >= 0, own[np.maximum(near, 0)], -1)
        result.filled += kept
    result.ring_at = result.filled % RING
