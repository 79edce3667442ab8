"""Assign the classes to the initial leaves of a softmax tree, so that similar classes share a leaf.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: section 4.2, algorithm 2.
Idea      `prototypes`  as in the paper: the prototype of a class is the mean of its rows. k-means clusters the
          prototypes, weighted by their rows, into as many clusters as there are leaves. Then the two clusters with the
          nearest means become siblings, then the nearest two of the others, until every cluster has a sibling; the
          pairs are the clusters of the next level up.
          `whole`  as in the paper's figure 3: k-means clusters the rows instead of the prototypes.
          `clusters`  the classes are halved repeatedly by 2-means (`two_means`).
          `random`  the weights of routers are drawn from the normal distribution and scaled to length 1. These routers
          decide in which leaf a row begins, whatever its class (`reduction`).
Cost      k-means: O(nonzeros of the prototypes or rows * leaves) per round, up to ROUNDS rounds.
Names     k classes | F features | L clusters, one per leaf | n rows
Differs   from the paper (docs/differences_from_papers.md says why, and what it costs):
          * the first leaves are balanced clusters of classes
          * k-means runs once, for up to 30 rounds
          * random routers have no intercept
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int64s
from ...data.batch import Batch
from ..clusters import two_means
from ..clusters.two_means import Share
from . import row_store

ROUNDS = 30  # most rounds of k-means


class Prototypes(NamedTuple):
    """Hold the mean rows of k classes as compressed sparse rows."""

    row: Int64s  # int64[z], row of each entry
    feature: Int64s  # int64[z], 0..F-1, ascending within a row
    value: Float64s  # float64[z]


def prototypes(rows: row_store.Rows) -> tuple[Int64s, Float64s, Prototypes]:
    """Return the labels that occur (int64[k]), the weight of the rows of each (float64[k]), and their mean rows."""
    label, class_of = np.unique(rows.label, return_inverse=True)
    total: Float64s = np.bincount(class_of, rows.weight).astype(np.float64, copy=False)
    row = np.repeat(np.arange(len(rows.label)), np.diff(rows.start))
    features = int(rows.feature.max(initial=0)) + 1
    pair, entry = np.unique(class_of[row] * features + rows.feature, return_inverse=True)
    value = np.bincount(entry, rows.weight[row] * rows.value, len(pair))
    owner = pair // features
    return label, total, Prototypes(owner, pair % features, value / total[owner])


def k_means(proto: Prototypes, size: Float64s, features: int, clusters: int, seed: int) -> tuple[Int64s, Float64s]:
    """Cluster prototypes, or rows, by k-means, with initial centres drawn as in k-means++.

    `size` is float64[k], weight of each prototype. Return the cluster of each prototype, int64[k], and the means of the
    clusters, float64[F, L].
    """
    row, feature, value = proto
    k = len(size)
    rng = np.random.default_rng(seed)
    centre = np.zeros((features, clusters))
    square = np.bincount(row, value**2, k)

    def distances(c: int) -> Float64s:
        products = np.bincount(row, centre[feature, c] * value, k)
        return square - 2.0 * products + float(centre[:, c] @ centre[:, c])

    nearest = np.ones(k)
    for c in range(clusters):
        p = nearest * size
        pick = int(rng.choice(k, p=p / p.sum())) if p.sum() > 0 else int(rng.integers(k))
        own = row == pick
        centre[feature[own], c] = value[own]
        distance = np.maximum(distances(c), 0.0)
        nearest = distance if c == 0 else np.minimum(nearest, distance)
    cluster, last_loss = np.zeros(k, np.int64), np.inf
    for _ in range(ROUNDS):
        distance, cluster = distances(0), np.zeros(k, np.int64)
        for c in range(1, clusters):
            other = distances(c)
            cluster[other < distance] = c
            np.minimum(distance, other, out=distance)
        if not distance.sum() < last_loss:
            break
        last_loss = distance.sum()
        mass = np.bincount(cluster, size, clusters)
        sums = np.bincount(feature * clusters + cluster[row], size[row] * value, features * clusters)
        used = mass > 0.0  # empty clusters keep their centre
        centre[:, used] = sums.reshape(features, clusters)[:, used] / mass[used]
    return cluster, centre


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


def by_k_means(rows: row_store.Rows, features: int, leaves: int, seed: int, whole: bool) -> Int64s:
    """Return the leaf, from left to right, where each row begins by algorithm 2, by `whole` if true (int64[n])."""
    if whole:  # each row is a prototype
        rows = rows._replace(label=np.arange(len(rows.label)))
    label, size, proto = prototypes(rows)
    cluster, centre = k_means(proto, size, features, leaves, seed)
    order = pair_clusters(centre, np.bincount(cluster, size, minlength=leaves))
    place = np.empty(leaves, np.int64)
    place[order] = np.arange(leaves)
    return place.take(cluster).take(np.searchsorted(label, rows.label))


def by_halves(rows: row_store.Rows, leaves: int, seed: int, share: Share) -> np.ndarray:
    """Return the leaf, numbered from left to right, where each row begins by balanced clusters (int64[n])."""
    n = len(rows.label)
    zeros = np.zeros(n, np.int64)
    batch = Batch(
        rows.start, rows.feature, rows.value, rows.label.astype(np.float64), rows.weight.astype(np.float32),
        np.zeros(n, np.float32), np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64), zeros, zeros,
        zeros, np.zeros(0, np.uint8),
    )  # fmt: skip
    sample = two_means.Sample(0)
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
    sorted_labels = order[rank]
    if not len(order):
        return np.zeros(n, np.int64)
    at = np.minimum(np.searchsorted(sorted_labels, rows.label), len(order) - 1)
    return np.where(
        sorted_labels[at] == rows.label, number[rank[at]], 0
    )  # labels without features begin in the first leaf
