"""Assign the classes to the initial leaves of a softmax tree, so that similar classes share a leaf.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: section 4.2, algorithm 2.
Idea      `prototypes`  as in the paper: the prototype of a class is the mean of its rows. k-means clusters the
          prototypes, weighted by their rows, into as many clusters as there are leaves. Then the two clusters with the
          nearest means become siblings, then the nearest two of the others, until every cluster has a sibling; the
          pairs are the clusters of the next level up.
          `clusters`  balanced clusters: the classes are halved repeatedly by 2-means (`two_means`). All leaves begin
          with equally many classes, whereas k-means on sparse text tends to put most of them into one cluster.
          `random`  the weights of routers are drawn from the normal distribution and scaled to length 1. These routers
          decide in which leaf a row begins, whatever its class (`reduction`).
Cost      k-means: O(nonzeros of the prototypes * leaves) per round, up to ROUNDS rounds.
Names     k classes | F features | L clusters, one per leaf | n rows
Differs   from the paper: `clusters` is the default.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s, Float64s, Int32s, Int64s, UInt32s
from ...data.batch import Batch
from ...kernels.jit import jit
from ..clusters import two_means
from ..clusters.two_means import Share
from . import row_store

ROUNDS = 30  # most rounds of k-means


# -- kernels


@jit
def nearest(
    start: Int64s, feature: Int32s, value: Float32s, centre: Float64s, square: Float64s, cluster: Int64s
) -> float:
    """Find the nearest of L centres for every prototype.

    Prototypes are as in `row_store.Rows`. `centre` is float64[F, L], and `square` float64[L], squared lengths of the
    centres; `cluster` is int64[k], written. Return the sum of the squared distances, without the squared lengths of the
    prototypes.
    """
    count = square.shape[0]
    distance = np.zeros(count)
    total = 0.0
    for r in range(start.shape[0] - 1):
        distance[:] = square
        for i in range(start[r], start[r + 1]):
            x = 2.0 * np.float64(value[i])
            f = feature[i]
            for c in range(count):
                distance[c] -= x * centre[f, c]
        best = 0
        for c in range(count):
            if distance[c] < distance[best]:
                best = c
        cluster[r] = best
        total += distance[best]
    return total


@jit
def means(
    start: Int64s, feature: Int32s, value: Float32s, size: Float64s, cluster: Int64s, centre: Float64s, mass: Float64s
) -> None:
    """Compute the weighted mean of the prototypes of every cluster; empty clusters keep their centre.

    `size` and `cluster` are float64[k] and int64[k], weight and cluster of each prototype. `centre` is float64[F, L],
    and `mass` is float64[L], weight of each cluster; both are written.
    """
    mass[:] = 0.0
    for r in range(start.shape[0] - 1):
        mass[cluster[r]] += size[r]
    for f in range(centre.shape[0]):
        for c in range(mass.shape[0]):
            if mass[c] > 0.0:
                centre[f, c] = 0.0
    for r in range(start.shape[0] - 1):
        c = cluster[r]
        for i in range(start[r], start[r + 1]):
            centre[feature[i], c] += size[r] / mass[c] * np.float64(value[i])


@jit
def class_means(
    start: Int64s, feature: UInt32s, value: Float32s, weight: Float64s, order: Int64s, class_of: Int64s,
    out_start: Int64s, out_feature: Int32s, out_value: Float32s, place: Float64s, total: Float64s,
) -> int:  # fmt: skip
    """Compute the mean row of every class and return the number of its nonzeros over all classes.

    `order` and `class_of` are int64[n], rows sorted by class, and the class of each row in this order. `out_start`,
    `out_feature` and `out_value`, int64[k + 1], int32[z] and float32[z], are the mean rows, written. `place` is
    float64[F], scratch, 0 before and after; `total` is float64[k], weight of the rows of each class.
    """
    used = 0
    begin = 0
    n = order.shape[0]
    for c in range(total.shape[0]):
        out_start[c] = used
        first = used
        while begin < n and class_of[begin] == c:
            r = order[begin]
            for i in range(start[r], start[r + 1]):
                f = np.int64(feature[i])
                if place[f] == 0.0:
                    out_feature[used] = f
                    used += 1
                place[f] += weight[r] * np.float64(value[i]) + 1e-300
            begin += 1
        for j in range(first, used):
            out_value[j] = place[out_feature[j]] / total[c]
            place[out_feature[j]] = 0.0
    out_start[total.shape[0]] = used
    return used


# -- Python


def prototypes(rows: row_store.Rows, features: int) -> tuple[Int64s, Float64s, tuple[Int64s, Int32s, Float32s]]:
    """Return the labels that occur (int64[k]), the weight of the rows of each (float64[k]), and their mean rows."""
    label, class_of = np.unique(rows.label, return_inverse=True)
    total: Float64s = np.bincount(class_of, rows.weight).astype(np.float64, copy=False)
    order = np.argsort(class_of, kind="stable")
    start = np.zeros(len(label) + 1, np.int64)
    feature, value = np.empty(len(rows.feature), np.int32), np.empty(len(rows.feature), np.float32)
    used = class_means(
        rows.start, rows.feature, rows.value, rows.weight, order, class_of[order].astype(np.int64), start, feature,
        value, np.zeros(features), total,
    )  # fmt: skip
    return label, total, (start, feature[:used].copy(), value[:used].copy())


def k_means(
    proto: tuple[Int64s, Int32s, Float32s], size: np.ndarray, features: int, clusters: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster prototypes by k-means, with initial centres drawn as in k-means++.

    `size` is float64[k], weight of each prototype. Return the cluster of each prototype, int64[k], and the means of the
    clusters, float64[F, L].
    """
    start, feature, value = proto
    k = len(size)
    rng = np.random.default_rng(seed)
    centre = np.zeros((features, clusters))
    own_square = np.add.reduceat(np.append(value.astype(np.float64) ** 2, 0.0), np.minimum(start[:-1], len(value)))
    own_square[np.diff(start) == 0] = 0.0
    cluster = np.zeros(k, np.int64)
    nearest_distance = np.ones(k)
    for c in range(clusters):
        probability = nearest_distance * size
        pick = int(rng.choice(k, p=probability / probability.sum())) if probability.sum() > 0 else int(rng.integers(k))
        entries = slice(start[pick], start[pick + 1])
        picked = np.zeros((features, 1))
        picked[feature[entries], 0] = value[entries]
        centre[:, c] = picked[:, 0]
        picked_square = np.array([own_square[pick]])
        cross = picked[feature, 0] * value
        dots = np.add.reduceat(np.append(cross, 0.0), np.minimum(start[:-1], len(cross)))
        dots[np.diff(start) == 0] = 0.0
        distance = np.maximum(own_square + picked_square - 2.0 * dots, 0.0)
        nearest_distance = distance if c == 0 else np.minimum(nearest_distance, distance)
    mass = np.zeros(clusters)
    last_loss = np.inf
    for _ in range(ROUNDS):
        loss = nearest(start, feature, value, centre, (centre**2).sum(axis=0), cluster)
        if not loss < last_loss:
            break
        last_loss = loss
        means(start, feature, value, size, cluster, centre, mass)
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


def by_prototypes(rows: row_store.Rows, features: int, leaves: int, seed: int) -> Int64s:
    """Return the leaf, numbered from left to right, where each row begins by algorithm 2 (int64[n])."""
    label, size, proto = prototypes(rows, features)
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
