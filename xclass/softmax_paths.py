"""From an example to a leaf of a softmax tree and through its softmax: one path, few classes.

A router goes right where w.x + b >= 0. A leaf has some classes with an intercept each, and weights for some features:
of an example only the weights of its own features are looked at. Most classes of a large leaf have none among them:
their score is the intercept, their exponentials are summed beforehand, and the best one is found in a list.

    (node, feature)  --hash map-->  router: place in `weight`
                                    leaf:   place q in `entry`; weights entry[q] .. entry[q + 1] - 1, of `owner`
Cost      a look-up for every feature at every node of the path, and a step for every weight found in the leaf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from . import answers, elementary
from .errors import ModelError
from .jit import jit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NODE = np.uint64(32)
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # an empty cell


class Paths(NamedTuple):
    """A tree, ready for walking. Node 0 is the root."""

    left: np.ndarray  # int32[m], a child; below 0: the node is leaf -1 - left
    right: np.ndarray  # int32[m]
    bias: np.ndarray  # float32[m], of routers
    key: np.ndarray  # uint64[cells], node << 32 | feature
    at: np.ndarray  # int64[cells]
    weight: np.ndarray  # float32[...], of routers
    entry: np.ndarray  # int64[rows + 1]
    owner: np.ndarray  # int32[...], class of a weight, its number within the leaf
    value: np.ndarray  # float32[...], the weight
    first: np.ndarray  # int64[leaves + 1], a leaf's classes in the arrays below
    label: np.ndarray  # int64[...], rising within a leaf
    score: np.ndarray  # float32[...], intercepts
    order: np.ndarray  # int32[...], classes of a leaf by falling intercept, numbers within the leaf
    mass: np.ndarray  # float64[leaves], sum of the exponentials of the intercepts


class Found(NamedTuple):
    """What walks find, by row."""

    leaf: np.ndarray  # int32[n]
    answer: np.ndarray  # int64[n], the most probable label, 0 where a leaf has none
    log_p: np.ndarray  # float64[n], of the row's label; NaN where the leaf lacks it
    size: np.ndarray  # int64[n], classes of the leaf
    top: np.ndarray  # int64[n, t], the best labels, then 0
    top_p: np.ndarray  # float64[n, t]


class Scratch(NamedTuple):
    """Room for the largest leaf."""

    z: np.ndarray  # float64[k], 0 between rows
    mark: np.ndarray  # uint8[k], 0 between rows
    touched: np.ndarray  # int32[k]
    candidate: np.ndarray  # int32[k], classes that may be among the best
    p: np.ndarray  # float64[k], their scores
    place: np.ndarray  # int64[t]


def new_found(n: int, most: int) -> Found:
    """Room for what n rows find, with `most` labels each."""
    return Found(
        np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64),
        np.zeros((n, most), np.int64), np.zeros((n, most)),
    )  # fmt: skip


def new_scratch(paths: Paths, most: int) -> Scratch:
    """Scratch for one thread."""
    k = int(np.diff(paths.first).max(initial=1))
    return Scratch(
        np.zeros(k),
        np.zeros(k, np.uint8),
        np.zeros(k, np.int32),
        np.zeros(k, np.int32),
        np.zeros(k),
        np.zeros(most, np.int64),
    )


# -- kernels


@jit
def _cell(key, wanted):
    """Where `wanted` is, or the empty cell where it belongs."""
    last = np.int64(key.shape[0] - 1)
    z = wanted * GOLDEN
    at = np.int64((z ^ (z >> np.uint64(29))) >> np.uint64(7)) & last
    while key[at] != wanted and key[at] != NOTHING:
        at = (at + 1) & last
    return at


@jit
def fill(key, at, node, feature, first):
    """Enter features of nodes, int64[q] and uint32[q], whose places are `first` and on."""
    for i in range(node.shape[0]):
        wanted = np.uint64(node[i]) << NODE | np.uint64(feature[i])
        cell = _cell(key, wanted)
        key[cell] = wanted
        at[cell] = first + i


@jit
def _number(label, begin, end, wanted):
    """Where a label stands among label[begin:end], rising; -1 if it does not."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if label[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and label[low] == wanted else np.int64(-1)


@jit
def _best(paths, first, last, total, count, scratch, r, found):
    """The best classes of a leaf: some of the `count` touched ones, or those of the largest intercepts."""
    most = found.top.shape[1]
    size = count
    for j in range(count):
        c = scratch.touched[j]
        scratch.candidate[j] = c
        scratch.p[j] = np.float64(paths.score[first + c]) + scratch.z[c]
    untouched = 0
    for j in range(first, last):
        if untouched == most:
            break
        c = paths.order[j]
        if scratch.mark[c] == 0:
            scratch.candidate[size] = c
            scratch.p[size] = np.float64(paths.score[first + c])
            size += 1
            untouched += 1
    size = answers.rank(scratch.p, 0, size, scratch.place)
    for j in range(most):
        found.top[r, j] = 0
        found.top_p[r, j] = 0.0
    for j in range(size):
        c = scratch.candidate[scratch.place[j]]
        p = elementary.exp(scratch.p[scratch.place[j]]) / total
        at = j
        while at > 0 and found.top_p[r, at - 1] == p and found.top[r, at - 1] > paths.label[first + c]:
            found.top[r, at] = found.top[r, at - 1]
            found.top_p[r, at] = p
            at -= 1
        found.top[r, at] = paths.label[first + c]
        found.top_p[r, at] = p


@jit
def _goes_right(paths, at, start, feature, value, r):
    """Whether router `at` sends row r right."""
    s = np.float64(paths.bias[at])
    high = np.uint64(at) << NODE
    for i in range(start[r], start[r + 1]):
        cell = _cell(paths.key, high | np.uint64(feature[i]))
        if paths.key[cell] != NOTHING:
            s += np.float64(paths.weight[paths.at[cell]]) * np.float64(value[i])
    return s >= 0.0


@jit
def sides(paths, start, feature, value, node, begin, end, right):
    """`right[r]` = whether the router `node[r]` (int32[n]) sends row r right, for rows begin..end-1 that are at one."""
    for r in range(begin, end):
        at = np.int64(node[r])
        right[r] = paths.left[at] >= 0 and _goes_right(paths, at, start, feature, value, r)


@jit
def walk(paths, start, feature, value, label, node, begin, end, scratch, found):
    """Rows begin..end-1 from their `node` (int32[n]) to a leaf and through it.

    `start`, `feature`, `value` : rows as in `sparse_rows.Rows`, from feature 0 on; `label` : int64[n].
    """
    most = found.top.shape[1]
    z, mark, touched = scratch.z, scratch.mark, scratch.touched
    for r in range(begin, end):
        at = np.int64(node[r])
        while paths.left[at] >= 0:
            at = np.int64(paths.right[at] if _goes_right(paths, at, start, feature, value, r) else paths.left[at])
        leaf = -1 - np.int64(paths.left[at])
        first, last = paths.first[leaf], paths.first[leaf + 1]
        count = 0
        high = np.uint64(at) << NODE
        for i in range(start[r], start[r + 1]):
            cell = _cell(paths.key, high | np.uint64(feature[i]))
            if paths.key[cell] != NOTHING:
                q = paths.at[cell]
                x = np.float64(value[i])
                for j in range(paths.entry[q], paths.entry[q + 1]):
                    c = paths.owner[j]
                    if mark[c] == 0:
                        mark[c] = 1
                        touched[count] = c
                        count += 1
                    z[c] += np.float64(paths.value[j]) * x
        best = np.int64(-1)
        most_score = -np.inf
        rest = paths.mass[leaf]
        if count == last - first:
            rest = 0.0
        else:
            for j in range(first, last):
                if mark[paths.order[j]] == 0:
                    best = np.int64(paths.order[j])
                    most_score = np.float64(paths.score[first + best])
                    break
        taken = 0.0
        for j in range(count):
            c = touched[j]
            b = np.float64(paths.score[first + c])
            s = b + z[c]
            taken += elementary.exp(s)
            if rest > 0.0:
                rest -= elementary.exp(b)
            if s > most_score or (s == most_score and c < best):
                best, most_score = np.int64(c), s
        total = max(taken + max(rest, 0.0), 1e-300)
        found.leaf[r] = leaf
        found.size[r] = last - first
        found.answer[r] = paths.label[first + best] if best >= 0 else 0
        own = _number(paths.label, first, last, label[r])
        if own < 0:
            found.log_p[r] = np.nan
        else:
            found.log_p[r] = np.float64(paths.score[own]) + z[own - first] - math.log(total)
        if most > 0:
            _best(paths, first, last, total, count, scratch, r, found)
        for j in range(count):
            z[touched[j]] = 0.0
            mark[touched[j]] = 0


# -- Python


class Parts(NamedTuple):
    """A tree as it is stored: features are hashes, or numbers while it is trained."""

    left: np.ndarray  # as in Paths
    right: np.ndarray
    bias: np.ndarray
    router_node: np.ndarray  # int32[...]
    router_feature: np.ndarray  # uint32[...]
    weight: np.ndarray
    leaf_node: np.ndarray  # int32[rows]
    leaf_feature: np.ndarray  # uint32[rows]
    entry: np.ndarray
    owner: np.ndarray
    value: np.ndarray
    first: np.ndarray
    label: np.ndarray
    score: np.ndarray


DTYPES = {
    **dict.fromkeys(("left", "right", "router_node", "leaf_node", "owner"), np.int32),
    **dict.fromkeys(("router_feature", "leaf_feature"), np.uint32),
    **dict.fromkeys(("bias", "weight", "value", "score"), np.float32),
    **dict.fromkeys(("entry", "first", "label"), np.int64),
}
DTYPES = {name: DTYPES[name] for name in Parts._fields}


def new_paths(parts: Parts) -> Paths:
    """Make a stored tree ready."""
    keys = len(parts.router_node) + len(parts.leaf_node)
    cells = 1 << max(4, (2 * keys).bit_length())
    key, at = np.full(cells, NOTHING), np.zeros(cells, np.int64)
    fill(key, at, parts.router_node, parts.router_feature, 0)
    fill(key, at, parts.leaf_node, parts.leaf_feature, 0)
    first, score = parts.first, parts.score
    order, mass = np.zeros(len(score), np.int32), np.zeros(len(first) - 1)
    for leaf in range(len(first) - 1):
        own = score[first[leaf] : first[leaf + 1]].astype(np.float64)
        order[first[leaf] : first[leaf + 1]] = np.argsort(-own, kind="stable")
        mass[leaf] = np.exp(own).sum()
    return Paths(
        parts.left, parts.right, parts.bias, key, at, parts.weight, parts.entry, parts.owner, parts.value, first,
        parts.label, score, order, mass,
    )  # fmt: skip


def nothing() -> Parts:
    """The tree of one leaf without classes."""
    found = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    found |= {"left": np.array([-1], np.int32), "right": np.array([-1], np.int32), "bias": np.zeros(1, np.float32)}
    found |= {"entry": np.zeros(1, np.int64), "first": np.zeros(2, np.int64)}
    return Parts(**found)


def check(parts: Parts, classes: int) -> None:
    """Refuse arrays that came from a file and are no tree.

    Raises
    ------
    ModelError
        where a kernel could read beyond an array or walk in a circle.
    """
    nodes, leaves = len(parts.left), len(parts.first) - 1
    here = np.arange(nodes)
    inner = parts.left >= 0
    rows, weights = len(parts.leaf_node), len(parts.value)
    right = (
        nodes >= 1
        and leaves >= 1
        and len(parts.right) == len(parts.bias) == nodes
        and ((parts.left[inner] > here[inner]) & (parts.right[inner] > here[inner])).all()
        and ((parts.left[inner] < nodes) & (parts.right[inner] < nodes)).all()
        and sorted((-1 - parts.left[~inner]).tolist()) == list(range(leaves))
        and len(parts.router_node) == len(parts.router_feature) == len(parts.weight)
        and len(parts.leaf_feature) == rows
        and _rises(parts.entry, rows + 1, weights)
        and len(parts.owner) == weights
        and _rises(parts.first, leaves + 1, len(parts.label))
        and len(parts.score) == len(parts.label)
        and ((parts.label >= 1) & (parts.label <= classes)).all()
        and all(np.isfinite(one).all() for one in (parts.bias, parts.weight, parts.value, parts.score))
    )
    if right and len(parts.router_node):
        right = bool(((parts.router_node >= 0) & (parts.router_node < nodes)).all()) and bool(
            inner[parts.router_node].all() and (np.diff(parts.router_node) >= 0).all()
        )
    if right and rows:
        right = bool(((parts.leaf_node >= 0) & (parts.leaf_node < nodes)).all()) and not inner[parts.leaf_node].any()
    if right and weights:
        leaf = -1 - parts.left[parts.leaf_node]
        most = np.repeat(np.diff(parts.first)[leaf], np.diff(parts.entry))
        right = bool(((parts.owner >= 0) & (parts.owner < most)).all())
    if right:
        for low, high in zip(parts.first[:-1].tolist(), parts.first[1:].tolist(), strict=True):
            right = right and bool((np.diff(parts.label[low:high]) > 0).all())
    if not right:
        raise ModelError("the model's arrays 'tree.*' are no softmax tree; train the model again")


def _rises(ends: np.ndarray, size: int, last: int) -> bool:
    """Whether numbers go from 0 to `last` and never fall."""
    return len(ends) == size and ends[0] == 0 and ends[-1] == last and bool((np.diff(ends) >= 0).all())
