"""Where the classes of a softmax tree begin: alike ones in one leaf, alike leaves near each other.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: section 4.2, algorithm 2.
          `prototypes`  as printed: a class's prototype is the mean of its rows; k-means makes as many clusters of
          the prototypes as there are leaves, a prototype counting as many times as it has rows; then, level
          by level, the two clusters whose means are nearest become one, until each has met another.
          `clusters`    the same aim, balanced: halves of halves of the classes by 2-means, `two_means`. All leaves
          begin with equally many classes, where k-means on sparse text tends to put most into one.
          `random`      routers are drawn from the normal distribution, scaled to length 1; no class begins anywhere.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s, Float64s, Int32s, Int64s, UInt32s
from ...data.batch import Batch
from ...kernels.jit import jit
from ..clusters import two_means
from ..clusters.two_means import Share
from . import row_store

ROUNDS = 30


# -- kernels


@jit
def nearest(
    start: Int64s, feature: Int32s, value: Float32s, centre: Float64s, square: Float64s, where: Int64s
) -> float:
    """The nearest of L centres for every prototype, and the sum of what distances are without prototypes' own parts.

    `centre` : float64[F, L]; `square` : float64[L], squared lengths of the centres; `where` : int64[k], the answer.
    """
    count = square.shape[0]
    near = np.zeros(count)
    total = 0.0
    for r in range(start.shape[0] - 1):
        near[:] = square
        for i in range(start[r], start[r + 1]):
            x = 2.0 * np.float64(value[i])
            f = feature[i]
            for c in range(count):
                near[c] -= x * centre[f, c]
        best = 0
        for c in range(count):
            if near[c] < near[best]:
                best = c
        where[r] = best
        total += near[best]
    return total


@jit
def means(
    start: Int64s, feature: Int32s, value: Float32s, size: Float64s, where: Int64s, centre: Float64s, mass: Float64s
) -> None:
    """The weighted mean of the prototypes of every cluster; clusters without any stay as they are."""
    mass[:] = 0.0
    for r in range(start.shape[0] - 1):
        mass[where[r]] += size[r]
    for f in range(centre.shape[0]):
        for c in range(mass.shape[0]):
            if mass[c] > 0.0:
                centre[f, c] = 0.0
    for r in range(start.shape[0] - 1):
        c = where[r]
        for i in range(start[r], start[r + 1]):
            centre[feature[i], c] += size[r] / mass[c] * np.float64(value[i])


@jit
def sums(
    start: Int64s, feature: UInt32s, value: Float32s, weight: Float64s, order: Int64s, class_of: Int64s,
    out_start: Int64s, out_feature: Int32s, out_value: Float32s, place: Float64s, total: Float64s,
) -> int:  # fmt: skip
    """The mean of the rows of every class, in rows; `order` has the rows by class, `class_of` their classes.

    `place` : float64[F], 0 before and after; `total` : float64[k], weight of the rows of a class. Returns the length.
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
    """Labels that occur (int64[k]), weight of each, and their mean rows: start, feature, value."""
    label, class_of = np.unique(rows.label, return_inverse=True)
    total: Float64s = np.bincount(class_of, rows.weight).astype(np.float64, copy=False)
    order = np.argsort(class_of, kind="stable")
    start = np.zeros(len(label) + 1, np.int64)
    feature, value = np.empty(len(rows.feature), np.int32), np.empty(len(rows.feature), np.float32)
    used = sums(
        rows.start, rows.feature, rows.value, rows.weight, order, class_of[order].astype(np.int64), start, feature,
        value, np.zeros(features), total,
    )  # fmt: skip
    return label, total, (start, feature[:used].copy(), value[:used].copy())


def k_means(
    proto: tuple[Int64s, Int32s, Float32s], size: np.ndarray, features: int, clusters: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster of every prototype, int64[k], and the means, float64[F, L]. First centres are drawn by distance."""
    start, feature, value = proto
    k = len(size)
    rng = np.random.default_rng(seed)
    centre = np.zeros((features, clusters))
    own = np.add.reduceat(np.append(value.astype(np.float64) ** 2, 0.0), np.minimum(start[:-1], len(value)))
    own[np.diff(start) == 0] = 0.0
    where = np.zeros(k, np.int64)
    far = np.ones(k)
    for c in range(clusters):
        chance = far * size
        pick = int(rng.choice(k, p=chance / chance.sum())) if chance.sum() > 0 else int(rng.integers(k))
        mine = slice(start[pick], start[pick + 1])
        one = np.zeros((features, 1))
        one[feature[mine], 0] = value[mine]
        centre[:, c] = one[:, 0]
        near = np.array([own[pick]])
        cross = one[feature, 0] * value
        dots = np.add.reduceat(np.append(cross, 0.0), np.minimum(start[:-1], len(cross)))
        dots[np.diff(start) == 0] = 0.0
        distance = np.maximum(own + near - 2.0 * dots, 0.0)
        far = distance if c == 0 else np.minimum(far, distance)
    mass = np.zeros(clusters)
    before = np.inf
    for _ in range(ROUNDS):
        now = nearest(start, feature, value, centre, (centre**2).sum(axis=0), where)
        if not now < before:
            break
        before = now
        means(start, feature, value, size, where, centre, mass)
    return where, centre


def paired(centre: np.ndarray, mass: np.ndarray) -> list[int]:
    """The order of the clusters (a power of two of them) as leaves from left to right: nearest ones meet, by level."""
    groups = [[c] for c in range(centre.shape[1])]
    mean, size = centre.T.copy(), mass.astype(np.float64).copy()
    while len(groups) > 1:
        gram = mean @ mean.T
        own = np.diag(gram)
        distance = own[:, None] + own[None, :] - 2.0 * gram
        distance[np.tril_indices(len(groups))] = np.inf
        met, means_of, sizes = [], [], []
        for _ in range(len(groups) // 2):
            a, b = np.unravel_index(np.argmin(distance), distance.shape)
            distance[[a, b], :] = np.inf
            distance[:, [a, b]] = np.inf
            total = size[a] + size[b]
            share = size[a] / total if total > 0 else 0.5
            met.append(groups[a] + groups[b])
            means_of.append(share * mean[a] + (1.0 - share) * mean[b])
            sizes.append(total)
        groups, mean, size = met, np.array(means_of), np.array(sizes)
    return groups[0]


def by_prototypes(rows: row_store.Rows, features: int, leaves: int, seed: int) -> Int64s:
    """Algorithm 2: the number of the leaf, from left to right, where each row begins: int64[n]."""
    label, size, proto = prototypes(rows, features)
    where, centre = k_means(proto, size, features, leaves, seed)
    order = paired(centre, np.bincount(where, size, minlength=leaves))
    place = np.empty(leaves, np.int64)
    place[order] = np.arange(leaves)
    return place.take(where).take(np.searchsorted(label, rows.label))


def by_halves(rows: row_store.Rows, leaves: int, seed: int, share: Share) -> np.ndarray:
    """Balanced clusters: the number of the leaf, from left to right, where each row begins: int64[n]."""
    n = len(rows.label)
    none = np.zeros(n, np.int64)
    batch = Batch(
        rows.start, rows.feature, rows.value, rows.label.astype(np.float64), rows.weight.astype(np.float32),
        np.zeros(n, np.float32), np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64), none, none,
        none, np.zeros(0, np.uint8),
    )  # fmt: skip
    sample = two_means.Sample(0)
    sample.add(batch, np.ones(n, bool))
    (order,) = sample.orders([seed], share)
    # by halves, the first one with the odd class, as `two_means` makes them
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
    return np.where(sorted_labels[at] == rows.label, number[rank[at]], 0)  # labels without features: the first leaf
