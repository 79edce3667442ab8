"""Route examples to a leaf of a softmax tree and evaluate the softmax of the leaf.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021.
Idea      A router sends an example right if w.x + b >= 0. A leaf has some classes, each with an intercept and sparse
          weights. Only the weights of the example's own features are read. Most classes of a large leaf have no weight
          for any of these features, so their score is their intercept: the sum of the exponentials of all intercepts is
          precomputed, and the best of these classes is found in a sorted list.

              (node, feature)  --hash map-->  router: index into `weight`
                                              leaf:   row q of `entry`; weights entry[q] .. entry[q + 1] - 1
Cost      One look-up for every feature at every node of the path, and one step for every weight found in the leaf.
Names     n rows | m nodes | k classes of the largest leaf | t labels listed per row
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from ...kernels import fast_math, hash_table, top_k
from ...kernels.jit import jit
from ...model import stored_arrays
from ..core import label_report

NODE_SHIFT = np.uint64(32)
EMPTY_KEY = np.uint64(0xFFFFFFFFFFFFFFFF)  # an empty cell


class TreeArrays(NamedTuple):
    """Hold a tree as it is stored; node 0 is the root. Features are hashes, or numbers while the tree is trained."""

    left: Int32s  # int32[m], left child; if negative, the node is leaf -1 - left
    right: Int32s  # int32[m], right child
    bias: Float32s  # float32[m], intercepts of routers
    router_node: Int32s  # int32[...], node of each router weight
    router_feature: UInt32s  # uint32[...], its feature
    weight: Float32s  # float32[...], weights of routers
    leaf_node: Int32s  # int32[rows], node of each row of `entry`
    leaf_feature: UInt32s  # uint32[rows], its feature
    entry: Int64s  # int64[rows + 1], first weight of each feature of each leaf
    owner: Int32s  # int32[...], class of a leaf's weight, numbered within the leaf
    value: Float32s  # float32[...], weights of leaves
    first: Int64s  # int64[leaves + 1], first class of each leaf in the arrays below
    label: Int64s  # int64[...], label of each class, ascending within a leaf
    score: Float32s  # float32[...], intercepts


class PreparedTree(NamedTuple):
    """Hold a tree prepared for routing."""

    tree: TreeArrays
    secret: np.uint64  # secret of the hash of keys, see `hash_table`
    key: UInt64s  # uint64[cells], node << 32 | feature
    at: Int64s  # int64[cells], index into `weight`, or row of `entry`
    order: Int32s  # int32[...], classes of a leaf by descending intercept, numbered within the leaf
    mass: Float64s  # float64[leaves], sum of the exponentials of a leaf's intercepts


class WalkResult(NamedTuple):
    """Hold the results of routing n rows."""

    leaf: Int32s  # int32[n], leaf that the row reaches
    predicted: Int64s  # int64[n], most probable label, 0 if the leaf has none
    log_p: Float64s  # float64[n], log probability of the row's label, NaN if the leaf lacks it
    size: Int64s  # int64[n], number of classes of the leaf
    top: Int64s  # int64[n, t], most probable labels, then 0
    top_p: Float64s  # float64[n, t], their probabilities


class InferenceScratch(NamedTuple):
    """Provide buffers for one thread and the largest leaf."""

    z: Float64s  # float64[k], scores without intercepts, 0 between rows
    mark: UInt8s  # uint8[k], 1 for touched classes, 0 between rows
    touched: Int32s  # int32[k], classes with a weight for a feature of the row
    candidate: Int32s  # int32[k], classes that may be among the best
    p: Float64s  # float64[k], their scores
    place: Int64s  # int64[t], positions of the best candidates


def new_walk_result(n: int, most: int) -> WalkResult:
    return WalkResult(
        np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64),
        np.zeros((n, most), np.int64), np.zeros((n, most)),
    )  # fmt: skip


def new_scratch(prepared: PreparedTree, most: int) -> InferenceScratch:
    k = int(np.diff(prepared.tree.first).max(initial=1))
    return InferenceScratch(
        np.zeros(k),
        np.zeros(k, np.uint8),
        np.zeros(k, np.int32),
        np.zeros(k, np.int32),
        np.zeros(k),
        np.zeros(most, np.int64),
    )


# -- kernels


@jit
def _cell(key: UInt64s, wanted: np.uint64, secret: np.uint64) -> np.int64:
    return hash_table.probe(key, wanted, EMPTY_KEY, secret)


@jit
def fill(key: UInt64s, at: Int64s, node: Int32s, feature: UInt32s, secret: np.uint64) -> None:
    """Enter keys into the hash map; key i gets the value i.

    `key` and `at`, uint64[cells] and int64[cells], are written; `node` and `feature` are int32[q] and uint32[q].
    """
    for i in range(node.shape[0]):
        wanted = np.uint64(node[i]) << NODE_SHIFT | np.uint64(feature[i])
        cell = _cell(key, wanted, secret)
        key[cell] = wanted
        at[cell] = i


@jit
def _rank_classes(
    prepared: PreparedTree, first: Int, last: Int, total: float, count: int, scratch: InferenceScratch, r: Int,
    output: WalkResult,
) -> None:  # fmt: skip
    """Rank the classes of a leaf for row r: the `count` touched ones and those of the largest intercepts."""
    most = output.top.shape[1]
    size = count
    for j in range(count):
        c = scratch.touched[j]
        scratch.candidate[j] = c
        scratch.p[j] = np.float64(prepared.tree.score[first + c]) + scratch.z[c]
    untouched = 0
    for j in range(first, last):
        if untouched == most:
            break
        c = prepared.order[j]
        if scratch.mark[c] == 0:
            scratch.candidate[size] = c
            scratch.p[size] = np.float64(prepared.tree.score[first + c])
            size += 1
            untouched += 1
    size = top_k.rank(scratch.p, 0, size, scratch.place)
    for j in range(most):
        output.top[r, j] = 0
        output.top_p[r, j] = 0.0
    for j in range(size):
        c = scratch.candidate[scratch.place[j]]
        p = fast_math.exp(scratch.p[scratch.place[j]]) / total
        at = j  # the order is right already, but labels of equal probability are put in ascending order
        while at > 0 and output.top_p[r, at - 1] == p and output.top[r, at - 1] > prepared.tree.label[first + c]:
            output.top[r, at] = output.top[r, at - 1]
            output.top_p[r, at] = p
            at -= 1
        output.top[r, at] = prepared.tree.label[first + c]
        output.top_p[r, at] = p


@jit
def _goes_right(prepared: PreparedTree, at: Int, start: Int64s, feature: UInt32s, value: Float32s, r: Int) -> np.bool_:
    s = np.float64(prepared.tree.bias[at])
    high = np.uint64(at) << NODE_SHIFT
    for i in range(start[r], start[r + 1]):
        cell = _cell(prepared.key, high | np.uint64(feature[i]), prepared.secret)
        if prepared.key[cell] != EMPTY_KEY:
            s += np.float64(prepared.tree.weight[prepared.at[cell]]) * np.float64(value[i])
    return s >= 0.0


@jit
def sides(
    prepared: PreparedTree, start: Int64s, feature: UInt32s, value: Float32s, node: Int32s, begin: int, end: int,
    right: Bools,
) -> None:  # fmt: skip
    """Find the side to which the routers of their nodes send the rows begin..end-1, as in `row_store.FeatureRows`.

    `node` is int32[n], node at which each row is; `right` is bool[n], written, False where the node is a leaf.
    """
    for r in range(begin, end):
        at = np.int64(node[r])
        right[r] = prepared.tree.left[at] >= 0 and _goes_right(prepared, at, start, feature, value, r)


@jit
def walk(
    prepared: PreparedTree, start: Int64s, feature: UInt32s, value: Float32s, label: Int64s, node: Int32s, begin: int,
    end: int, scratch: InferenceScratch, output: WalkResult,
) -> None:  # fmt: skip
    """Route the rows begin..end-1, as in `row_store.FeatureRows`, to a leaf and evaluate its softmax.

    `label` is int64[n], and `node` int32[n], node at which each row begins.
    """
    tree = prepared.tree
    most = output.top.shape[1]
    z, mark, touched = scratch.z, scratch.mark, scratch.touched
    for r in range(begin, end):
        at = np.int64(node[r])
        while tree.left[at] >= 0:
            at = np.int64(tree.right[at] if _goes_right(prepared, at, start, feature, value, r) else tree.left[at])
        leaf = -1 - np.int64(tree.left[at])
        first, last = tree.first[leaf], tree.first[leaf + 1]
        count = 0
        high = np.uint64(at) << NODE_SHIFT
        for i in range(start[r], start[r + 1]):
            cell = _cell(prepared.key, high | np.uint64(feature[i]), prepared.secret)
            if prepared.key[cell] != EMPTY_KEY:
                q = prepared.at[cell]
                x = np.float64(value[i])
                for j in range(tree.entry[q], tree.entry[q + 1]):
                    c = tree.owner[j]
                    if mark[c] == 0:
                        mark[c] = 1
                        touched[count] = c
                        count += 1
                    z[c] += np.float64(tree.value[j]) * x
        best = np.int64(-1)
        best_score = -np.inf
        rest = prepared.mass[leaf]
        if count == last - first:
            rest = 0.0
        else:
            for j in range(first, last):
                if mark[prepared.order[j]] == 0:
                    best = np.int64(prepared.order[j])
                    best_score = np.float64(tree.score[first + best])
                    break
        touched_mass = 0.0
        for j in range(count):
            c = touched[j]
            b = np.float64(tree.score[first + c])
            s = b + z[c]
            touched_mass += fast_math.exp(s)
            if rest > 0.0:
                rest -= fast_math.exp(b)
            if s > best_score or (s == best_score and c < best):
                best, best_score = np.int64(c), s
        total = max(touched_mass + max(rest, 0.0), 1e-300)
        output.leaf[r] = leaf
        output.size[r] = last - first
        output.predicted[r] = tree.label[first + best] if best >= 0 else 0
        own_place = label_report.place_of(tree.label, first, last, label[r])
        if own_place < 0:
            output.log_p[r] = np.nan
        else:
            output.log_p[r] = np.float64(tree.score[own_place]) + z[own_place - first] - math.log(total)
        if most > 0:
            _rank_classes(prepared, first, last, total, count, scratch, r, output)
        for j in range(count):
            z[touched[j]] = 0.0
            mark[touched[j]] = 0


# -- Python


DTYPES = {
    **dict.fromkeys(("left", "right", "router_node", "leaf_node", "owner"), np.int32),
    **dict.fromkeys(("router_feature", "leaf_feature"), np.uint32),
    **dict.fromkeys(("bias", "weight", "value", "score"), np.float32),
    **dict.fromkeys(("entry", "first", "label"), np.int64),
}
DTYPES = {name: DTYPES[name] for name in TreeArrays._fields}


def prepare(stored: TreeArrays) -> PreparedTree:
    keys = len(stored.router_node) + len(stored.leaf_node)
    cells = 1 << max(4, (2 * keys).bit_length())
    key, at, secret = np.full(cells, EMPTY_KEY), np.zeros(cells, np.int64), hash_table.new_secret()
    fill(key, at, stored.router_node, stored.router_feature, secret)
    fill(key, at, stored.leaf_node, stored.leaf_feature, secret)
    first, score = stored.first, stored.score
    order, mass = np.zeros(len(score), np.int32), np.zeros(len(first) - 1)
    for leaf in range(len(first) - 1):
        own = score[first[leaf] : first[leaf + 1]].astype(np.float64)
        order[first[leaf] : first[leaf + 1]] = np.argsort(-own, kind="stable")
        mass[leaf] = np.exp(own).sum()
    return PreparedTree(stored, secret, key, at, order, mass)


def empty_tree() -> TreeArrays:
    arrays = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    arrays |= {"left": np.array([-1], np.int32), "right": np.array([-1], np.int32), "bias": np.zeros(1, np.float32)}
    arrays |= {"entry": np.zeros(1, np.int64), "first": np.zeros(2, np.int64)}
    return TreeArrays(**arrays)


def check(stored: TreeArrays, classes: int, deepest: int) -> None:
    """Check that arrays from a file are a softmax tree, with labels up to `classes` and at most `deepest` levels.

    `walk` and `sides` go from node to node, to a leaf's classes in `label` and `score`, and from a key to `weight`, or
    through `entry` to `owner` and `value`. The check guarantees that all these indices are in range, and that a walk
    ends because children have higher numbers. Keys are distinct, so `fill` uses one cell for each and half of the cells
    stay empty. The depth is limited because training is recursive. Intercepts and weights are finite.
    """
    nodes, leaves, rows = len(stored.left), len(stored.first) - 1, len(stored.leaf_node)
    for name, like in LENGTHS.items():
        if len(getattr(stored, name)) != len(getattr(stored, like)):
            _refuse(name, f"its length is not that of 'tree.{like}'")
    for name in ("bias", "weight", "value", "score"):
        if not np.isfinite(getattr(stored, name)).all():
            _refuse(name, "it holds numbers that are not finite")
    _check_nodes(stored.left, stored.right, leaves, deepest)
    for name, size, last in (("first", leaves + 1, len(stored.label)), ("entry", rows + 1, len(stored.value))):
        ends = getattr(stored, name)
        if len(ends) != size or ends[0] != 0 or ends[-1] != last or (np.diff(ends) < 0).any():
            _refuse(name, f"it does not have {size} numbers that ascend from 0 to {last}")
    stored_arrays.check_range("tree.label", stored.label, 1, classes)
    falls = np.flatnonzero(np.diff(stored.label) <= 0) + 1
    if not np.isin(falls, stored.first).all():
        _refuse("label", "the classes of a leaf are not in ascending order")
    inner = stored.left >= 0
    _check_keys("router", stored.router_node, stored.router_feature, inner, np.arange(nodes))
    leaf = np.where(inner, -1, -1 - stored.left.astype(np.int64))
    _check_keys("leaf", stored.leaf_node, stored.leaf_feature, ~inner, leaf)
    stored_arrays.check_range("tree.owner", stored.owner, 0, len(stored.label))
    most = np.repeat(np.diff(stored.first)[leaf[stored.leaf_node]], np.diff(stored.entry))
    if (stored.owner >= most).any():
        _refuse("owner", "it contains a class that the leaf does not have")
    falls = np.flatnonzero(np.diff(stored.owner) <= 0) + 1
    if not np.isin(falls, stored.entry).all():  # training has space for each class once
        _refuse("owner", "the classes of a feature are not in ascending order")


LENGTHS = {  # arrays that must have the length of another one
    "right": "left",
    "bias": "left",
    "router_feature": "router_node",
    "weight": "router_node",
    "leaf_feature": "leaf_node",
    "owner": "value",
    "score": "label",
}


def _check_nodes(left: Int32s, right: Int32s, leaves: int, deepest: int) -> None:
    """Refuse nodes unless each but the root is the child of one with a lower number and leaves are numbered."""
    nodes = len(left)
    inner = np.flatnonzero(left >= 0)
    children = np.concatenate([left[inner], right[inner]])
    if nodes == 0 or not np.array_equal(np.sort(children), np.arange(1, nodes)):
        _refuse("left", "its nodes do not form a tree: every node but the root must be the child of one node")
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        _refuse("left", "its nodes do not form a tree: a child has a lower number than its parent")
    if not np.array_equal(np.sort(-1 - left[left < 0].astype(np.int64)), np.arange(leaves)):
        _refuse("left", f"its leaves are not numbered from 0 to {leaves - 1}")
    level, depth = np.zeros(1, np.int64), 0
    while len(level := level[left[level] >= 0]):
        depth += 1
        if depth > deepest:
            _refuse("left", f"it has more than {deepest} levels of routers")
        level = np.concatenate([left[level], right[level]])


def _check_keys(kind: str, node: Int32s, feature: UInt32s, right_kind: Bools, order: Int64s) -> None:
    """Refuse keys of the wrong kind of node, or in the wrong order.

    `right_kind` is bool[m], whether a node is of the right kind. Keys must ascend by the `order` (int64[m]) of their
    node, then by feature.
    """
    stored_arrays.check_range(f"tree.{kind}_node", node, 0, len(right_kind) - 1)
    if not right_kind[node].all():
        _refuse(f"{kind}_node", f"it contains a node that is no {kind}")
    rank = order[node]
    if ((rank[1:] < rank[:-1]) | ((rank[1:] == rank[:-1]) & (feature[1:] <= feature[:-1]))).any():
        _refuse(f"{kind}_feature", "the features of a node are not in ascending order, or do not follow each other")


def _refuse(name: str, problem: str) -> None:
    raise stored_arrays.unfit(f"tree.{name}", problem)
