"""Assign the classes to the initial leaves of a softmax tree, so that similar classes share a leaf.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: section 4.2, algorithm 2.
Idea      `prototypes`  as in the paper: the prototype of a class is the mean of its rows. k-means clusters the
          prototypes, weighted by their rows, into as many clusters as there are leaves. Then the two clusters with the
          nearest means become siblings, then the nearest two of the others, until every cluster has a sibling; the
          pairs are the clusters of the next level up.
          `whole`  as in the paper's figure 3: k-means clusters the rows instead of the prototypes.
          `clusters`  the classes are halved repeatedly by 2-means (`two_means`).
          `random`  the weights of a router and its intercept are drawn from the normal distribution and scaled to
          length 1, as in the paper. These routers only decide in which leaf a row begins, whatever its class
          (`reduction`); training starts with others.
Cost      k-means: O(nonzeros of the prototypes or rows * leaves) per round, up to ROUNDS rounds in each of RUNS runs.
Names     k classes | F features | L clusters, one per leaf | n rows
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the first leaves are balanced clusters of classes
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int64s, UInt32s
from ...data.batch import Batch
from ...kernels.jit import jit
from ..clusters import two_means
from ..clusters.two_means import Share
from . import row_store

RUNS = 10  # of k-means, of which the best one is taken
ROUNDS = 300  # most rounds of a run


class Prototypes(NamedTuple):
    """Hold the mean rows of k classes as compressed sparse rows."""

    start: Int64s  # int64[k + 1]
    feature: UInt32s  # uint32[z], 0..F-1, ascending within a row
    value: Float64s  # float64[z]


# -- kernels


@jit
def means(
    rows: row_store.FeatureRows, order: Int64s, first: Int64s, total: Float64s, features: int
) -> tuple[Int64s, UInt32s, Float64s]:
    """Return the mean row of each class as `Prototypes`, but with features in the order in which they occur.

    The rows of class c are those of order[first[c]:first[c + 1]]; `total` is float64[k], their weight.
    """
    start = np.zeros(total.shape[0] + 1, np.int64)
    feature, value = np.empty(rows.feature.shape[0], np.uint32), np.empty(rows.feature.shape[0])
    place = np.full(features, -1)  # where the latest class with this feature has it
    used = 0
    for c in range(total.shape[0]):
        for r in order[first[c] : first[c + 1]]:
            for i in range(rows.start[r], rows.start[r + 1]):
                f = rows.feature[i]
                if place[f] < start[c]:
                    place[f] = used
                    feature[used] = f
                    value[used] = 0.0
                    used += 1
                value[place[f]] += rows.weight[r] * rows.value[i]
        for i in range(start[c], used):
            value[i] /= total[c]
        start[c + 1] = used
    return start, feature[:used], value[:used]


@jit
def nearest(proto: Prototypes, centre: Float64s, centre_square: Float64s) -> tuple[Int64s, Float64s]:
    """Return the nearest of the centres for each prototype, int64[k], and its squared distance, float64[k].

    `centre` is float64[F, L], and `centre_square` float64[L], the squared lengths of the centres.
    """
    start, feature, value = proto
    k = start.shape[0] - 1
    cluster, distance = np.zeros(k, np.int64), np.full(k, np.inf)
    product = np.empty(centre.shape[1])
    for r in range(k):
        product[:] = 0.0
        square = 0.0
        for i in range(start[r], start[r + 1]):
            square += value[i] * value[i]
            for c in range(centre.shape[1]):
                product[c] += centre[feature[i], c] * value[i]
        for c in range(centre.shape[1]):
            d = square - 2.0 * product[c] + centre_square[c]
            if d < distance[r]:
                cluster[r] = c
                distance[r] = d
    return cluster, distance


@jit
def add_rows(proto: Prototypes, size: Float64s, cluster: Int64s, sums: Float64s) -> None:
    """Add the prototypes, times `size` (float64[k]), to the sums of their clusters, float64[F, L]."""
    start, feature, value = proto
    for r in range(size.shape[0]):
        for i in range(start[r], start[r + 1]):
            sums[feature[i], cluster[r]] += size[r] * value[i]


# -- Python


def prototypes(rows: row_store.FeatureRows) -> tuple[Int64s, Float64s, Prototypes]:
    """Return the labels that occur (int64[k]), the weight of the rows of each (float64[k]), and their mean rows."""
    label, class_of, count = np.unique(rows.label, return_inverse=True, return_counts=True)
    total: Float64s = np.bincount(class_of, rows.weight).astype(np.float64, copy=False)
    first = np.concatenate([[0], np.cumsum(count)])
    order = np.argsort(class_of, kind="stable")
    proto = Prototypes(*means(rows, order, first, total, int(rows.feature.max(initial=0)) + 1))
    row_store.merge(proto.start, proto.feature, proto.value, proto.start)  # sorts the features, which are distinct
    return label, total, proto


def k_means(proto: Prototypes, size: Float64s, features: int, clusters: int, seed: int) -> tuple[Int64s, Float64s]:
    """Cluster prototypes, or rows, by k-means; of RUNS runs, take the one with the least sum of squared distances.

    `size` is float64[k], weight of each prototype. Return the cluster of each prototype, int64[k], and the means of the
    clusters, float64[F, L].
    """
    rng = np.random.default_rng(seed)
    runs = (_run(proto, size, features, clusters, rng) for _ in range(RUNS))
    return min(runs, key=lambda run: run[0])[1:]


def _run(
    proto: Prototypes, size: Float64s, features: int, clusters: int, rng: np.random.Generator
) -> tuple[float, Int64s, Float64s]:
    """Return the weighted sum of squared distances of one run of k-means, and what `k_means` returns.

    The initial centres are drawn as in scikit-learn's k-means++: after the first, each is the best of several draws.
    """
    centre = np.zeros((features, clusters))
    least, p = np.full(len(size), np.inf), size
    for c in range(clusters):
        if not p.sum() > 0.0:  # there are no more distinct prototypes
            break
        draws = []
        for pick in rng.choice(len(size), 2 + int(np.log(clusters)) if c else 1, p=p / p.sum()):
            own = slice(*proto.start[pick : pick + 2])
            drawn = np.zeros((features, 1))
            drawn[proto.feature[own], 0] = proto.value[own]
            _, distance = nearest(proto, drawn, _squares(drawn))
            draws.append((np.maximum(np.minimum(least, distance), 0.0), drawn))
        least, drawn = min(draws, key=lambda draw: float(size @ draw[0]))
        centre[:, c] = drawn[:, 0]
        p = least * size
    loss = np.inf
    for _ in range(ROUNDS):
        cluster, distance = nearest(proto, centre, _squares(centre))
        last_loss, loss = loss, float(size @ distance)
        if not loss < last_loss:
            break
        mass = np.bincount(cluster, size, clusters)
        sums = np.zeros((features, clusters))
        add_rows(proto, size, cluster, sums)
        used = mass > 0.0  # empty clusters keep their centre
        centre[:, used] = sums[:, used] / mass[used]
    return loss, cluster, centre


def _squares(centre: Float64s) -> Float64s:
    return np.array([column @ column for column in centre.T])


def pair_clusters(centre: np.ndarray, mass: np.ndarray) -> list[int]:
    """Return the order of the clusters as leaves from left to right, pairing the nearest clusters level by level.

    `centre` and `mass`, float64[F, L] and float64[L], are means and weights of the clusters; L is a power of two.
    """
    groups = [[c] for c in range(centre.shape[1])]
    mean, size = centre.T.copy(), mass.astype(np.float64).copy()
    while len(groups) > 1:
        gram = mean @ mean.T
        own = np.diag(gram)
        distance = own[:, None] + own[None, :] - 2.0 * gram
        distance[np.tril_indices(len(groups))] = np.inf
        pairs, means_of, sizes = [], [], []
        for _ in range(len(groups) // 2):
            a, b = np.unravel_index(np.argmin(distance), distance.shape)
            distance[[a, b], :] = np.inf
            distance[:, [a, b]] = np.inf
            total = size[a] + size[b]
            share = size[a] / total if total > 0 else 0.5
            pairs.append(groups[a] + groups[b])
            means_of.append(share * mean[a] + (1.0 - share) * mean[b])
            sizes.append(total)
        groups, mean, size = pairs, np.array(means_of), np.array(sizes)
    return groups[0]


def by_k_means(rows: row_store.FeatureRows, features: int, leaves: int, seed: int, whole: bool) -> Int64s:
    """Return the leaf, from left to right, where each row begins by algorithm 2, by `whole` if true (int64[n])."""
    if whole:  # each row is a prototype
        rows = rows._replace(label=np.arange(len(rows.label)))
    label, size, proto = prototypes(rows)
    cluster, centre = k_means(proto, size, features, leaves, seed)
    order = pair_clusters(centre, np.bincount(cluster, size, minlength=leaves))
    place = np.empty(leaves, np.int64)
    place[order] = np.arange(leaves)
    return place.take(cluster).take(np.searchsorted(label, rows.label))


def by_halves(rows: row_store.FeatureRows, leaves: int, seed: int, share: Share) -> np.ndarray:
    """Return the leaf, numbered from left to right, where each row begins by balanced clusters (int64[n])."""
    n = len(rows.label)
    zeros = np.zeros(n, np.int64)
    batch = Batch(
        rows.start, rows.feature, rows.value, rows.label.astype(np.float64), rows.weight.astype(np.float32),
        np.zeros(n, np.float32), np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64), zeros, zeros,
        zeros, np.zeros(0, np.uint8),
    )  # fmt: skip
    sample = two_means.ExampleSample(0)
    sample.add(batch, np.ones(n, bool))
    (order,) = sample.orders([seed], share)
    # Halve as `two_means` does: the first half gets the odd class.
    number = np.zeros(len(order), np.int64)
    parts = [(0, len(order))]
    while len(parts) < leaves:
        parts = [half for low, high in parts for half in ((low, (low + high + 1) // 2), ((low + high + 1) // 2, high))]
    for leaf, (low, high) in enumerate(parts):
        number[low:high] = leaf
    rank = np.argsort(order)
    at, present = row_store.positions(order[rank], rows.label)
    leaf_of = np.zeros(n, np.int64)  # labels without features begin in the first leaf
    leaf_of[present] = number[rank[at[present]]]
    return leaf_of
