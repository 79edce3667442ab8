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

from ...array_types import Float32s, Float64s, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from ...kernels import fast_math, hash_table, top_k
from ...kernels.jit import jit
from ...model import stored_arrays

NODE = np.uint64(32)
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)  # an empty cell


class Paths(NamedTuple):
    """A tree, ready for walking. Node 0 is the root."""

    left: Int32s  # int32[m], a child; below 0: the node is leaf -1 - left
    right: Int32s  # int32[m]
    bias: Float32s  # float32[m], of routers
    secret: np.uint64  # of the hash of keys
    key: UInt64s  # uint64[cells], node << 32 | feature
    at: Int64s  # int64[cells]
    weight: Float32s  # float32[...], of routers
    entry: Int64s  # int64[rows + 1]
    owner: Int32s  # int32[...], class of a weight, its number within the leaf
    value: Float32s  # float32[...], the weight
    first: Int64s  # int64[leaves + 1], a leaf's classes in the arrays below
    label: Int64s  # int64[...], rising within a leaf
    score: Float32s  # float32[...], intercepts
    order: Int32s  # int32[...], classes of a leaf by falling intercept, numbers within the leaf
    mass: Float64s  # float64[leaves], sum of the exponentials of the intercepts


class Found(NamedTuple):
    """What walks find, by row."""

    leaf: Int32s  # int32[n]
    answer: Int64s  # int64[n], the most probable label, 0 where a leaf has none
    log_p: Float64s  # float64[n], of the row's label; NaN where the leaf lacks it
    size: Int64s  # int64[n], classes of the leaf
    top: Int64s  # int64[n, t], the best labels, then 0
    top_p: Float64s  # float64[n, t]


class Scratch(NamedTuple):
    """OptionGroup for the largest leaf."""

    z: Float64s  # float64[k], 0 between rows
    mark: UInt8s  # uint8[k], 0 between rows
    touched: Int32s  # int32[k]
    candidate: Int32s  # int32[k], classes that may be among the best
    p: Float64s  # float64[k], their scores
    place: Int64s  # int64[t]


def new_found(n: int, most: int) -> Found:
    """OptionGroup for what n rows find, with `most` labels each."""
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
def _cell(key, wanted, secret):
    """Where `wanted` is, or the empty cell where it belongs."""
    return hash_table.probe(key, wanted, NOTHING, secret)


@jit
def fill(key, at, node, feature, secret):
    """Enter features of nodes, int64[q] and uint32[q], whose places are 0 and on."""
    for i in range(node.shape[0]):
        wanted = np.uint64(node[i]) << NODE | np.uint64(feature[i])
        cell = _cell(key, wanted, secret)
        key[cell] = wanted
        at[cell] = i


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
    size = top_k.rank(scratch.p, 0, size, scratch.place)
    for j in range(most):
        found.top[r, j] = 0
        found.top_p[r, j] = 0.0
    for j in range(size):
        c = scratch.candidate[scratch.place[j]]
        p = fast_math.exp(scratch.p[scratch.place[j]]) / total
        at = j  # not `top_k.insert`: only labels of equal probability change places
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
        cell = _cell(paths.key, high | np.uint64(feature[i]), paths.secret)
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

    `start`, `feature`, `value` : rows as in `row_store.Rows`, from feature 0 on; `label` : int64[n].
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
            cell = _cell(paths.key, high | np.uint64(feature[i]), paths.secret)
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
            taken += fast_math.exp(s)
            if rest > 0.0:
                rest -= fast_math.exp(b)
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
    router_node: Int32s  # int32[...]
    router_feature: UInt32s  # uint32[...]
    weight: np.ndarray
    leaf_node: Int32s  # int32[rows]
    leaf_feature: UInt32s  # uint32[rows]
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
    """Make a stored tree ready for walking."""
    keys = len(parts.router_node) + len(parts.leaf_node)
    cells = 1 << max(4, (2 * keys).bit_length())
    key, at, secret = np.full(cells, NOTHING), np.zeros(cells, np.int64), hash_table.new_secret()
    fill(key, at, parts.router_node, parts.router_feature, secret)
    fill(key, at, parts.leaf_node, parts.leaf_feature, secret)
    first, score = parts.first, parts.score
    order, mass = np.zeros(len(score), np.int32), np.zeros(len(first) - 1)
    for leaf in range(len(first) - 1):
        own = score[first[leaf] : first[leaf + 1]].astype(np.float64)
        order[first[leaf] : first[leaf + 1]] = np.argsort(-own, kind="stable")
        mass[leaf] = np.exp(own).sum()
    return Paths(
        parts.left, parts.right, parts.bias, secret, key, at, parts.weight, parts.entry, parts.owner, parts.value,
        first, parts.label, score, order, mass,
    )  # fmt: skip


def nothing() -> Parts:
    """The tree of one leaf without classes."""
    found = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    found |= {"left": np.array([-1], np.int32), "right": np.array([-1], np.int32), "bias": np.zeros(1, np.float32)}
    found |= {"entry": np.zeros(1, np.int64), "first": np.zeros(2, np.int64)}
    return Parts(**found)


def check(parts: Parts, classes: int, deepest: int) -> None:
    """Refuse arrays that came from a file and are no softmax tree of so many classes and levels of routers.

    `walk` and `sides` go from node to node, to a leaf's classes in `label` and `score`, and from a key's place to
    `weight` or by `entry` to `owner` and `value`: all of these are in range, and a walk ends since children have higher
    numbers. Keys are all different, so `fill` makes a cell for each and leaves half of the cells empty. What trains a
    tree goes on with it by recursion: it is as shallow as --depth allows. Intercepts and weights are finite.

    Raises
    ------
    ModelError
        naming the array that is wrong.
    """
    nodes, leaves, rows = len(parts.left), len(parts.first) - 1, len(parts.leaf_node)
    for name, like in LENGTHS.items():
        if len(getattr(parts, name)) != len(getattr(parts, like)):
            _refuse(name, f"it has another length than 'tree.{like}'")
    for name in ("bias", "weight", "value", "score"):
        if not np.isfinite(getattr(parts, name)).all():
            _refuse(name, "it holds numbers that are not finite")
    _check_nodes(parts.left, parts.right, leaves, deepest)
    for name, size, last in (("first", leaves + 1, len(parts.label)), ("entry", rows + 1, len(parts.value))):
        ends = getattr(parts, name)
        if len(ends) != size or ends[0] != 0 or ends[-1] != last or (np.diff(ends) < 0).any():
            _refuse(name, f"it does not rise from 0 to {last} in {size} numbers")
    stored_arrays.check_range("tree.label", parts.label, 1, classes)
    falls = np.flatnonzero(np.diff(parts.label) <= 0) + 1
    if not np.isin(falls, parts.first).all():
        _refuse("label", "the classes of a leaf do not rise")
    inner = parts.left >= 0
    _check_keys("router", parts.router_node, parts.router_feature, inner, np.arange(nodes))
    leaf = np.where(inner, -1, -1 - parts.left.astype(np.int64))
    _check_keys("leaf", parts.leaf_node, parts.leaf_feature, ~inner, leaf)
    stored_arrays.check_range("tree.owner", parts.owner, 0, len(parts.label))
    most = np.repeat(np.diff(parts.first)[leaf[parts.leaf_node]], np.diff(parts.entry))
    if (parts.owner >= most).any():
        _refuse("owner", "it names a class that the leaf does not have")
    falls = np.flatnonzero(np.diff(parts.owner) <= 0) + 1
    if not np.isin(falls, parts.entry).all():  # training has room for each class once
        _refuse("owner", "the classes of a weight do not rise")


LENGTHS = {  # arrays that are as long as another one
    "right": "left",
    "bias": "left",
    "router_feature": "router_node",
    "weight": "router_node",
    "leaf_feature": "leaf_node",
    "owner": "value",
    "score": "label",
}


def _check_nodes(left: np.ndarray, right: np.ndarray, leaves: int, deepest: int) -> None:
    """Refuse nodes unless each but the root is the child of one with a lower number, and leaves are numbered."""
    nodes = len(left)
    inner = np.flatnonzero(left >= 0)
    children = np.concatenate([left[inner], right[inner]])
    if nodes == 0 or not np.array_equal(np.sort(children), np.arange(1, nodes)):
        _refuse("left", "it describes no tree: every node but the root is the child of one node")
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        _refuse("left", "it describes no tree: a child has a lower number than its parent")
    if not np.array_equal(np.sort(-1 - left[left < 0].astype(np.int64)), np.arange(leaves)):
        _refuse("left", f"its leaves are not numbered from 0 to {leaves - 1}")
    level, depth = np.zeros(1, np.int64), 0
    while len(level := level[left[level] >= 0]):
        depth += 1
        if depth > deepest:
            _refuse("left", f"it has more than {deepest} levels of routers")
        level = np.concatenate([left[level], right[level]])


def _check_keys(kind: str, node: np.ndarray, feature: np.ndarray, wanted: np.ndarray, order: np.ndarray) -> None:
    """Refuse keys of nodes that are not `wanted` (bool[m]), or that do not rise by `order` of node, then feature."""
    stored_arrays.check_range(f"tree.{kind}_node", node, 0, len(wanted) - 1)
    if not wanted[node].all():
        _refuse(f"{kind}_node", f"it names a node that is no {kind}")
    rank = order[node]
    if ((rank[1:] < rank[:-1]) | ((rank[1:] == rank[:-1]) & (feature[1:] <= feature[:-1]))).any():
        _refuse(f"{kind}_feature", "the features of a node do not rise, or its node is named twice")


def _refuse(name: str, why: str) -> None:
    raise stored_arrays.unfit(f"tree.{name}", why)
