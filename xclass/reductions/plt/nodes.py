"""Score, search, grow and train the nodes of a probabilistic label tree.

Names     m nodes of the binary tree | block: up to three levels of it, see `label_tree`; its top is the node that is
          not inside another block | lane: one of the eight regressors of a block | row: what is known about a block
          while an example is processed | s score | p probability of a node, given its parent.
Idea      A block of the binary tree is one node of the label tree, with up to eight children: the nodes that leave the
          block, which are leaves and tops of blocks below. A child has the lane to which its path leads, with 0 for the
          levels that it lacks. So a leaf that is split keeps its lane and its regressor, if the block has room. One
          pass over the features of an example scores all children.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt32s, UInt64s
from ...binary import arow, document_frequency, tagged_words
from ...data.batch import Batch
from ...kernels import fast_math, rng, top_k
from ...kernels.constants import GOLDEN, HALF, ONE, TWO, ZERO
from ...kernels.jit import bare
from ..core import label_arrays
from ..cpt import binary_nodes, label_tree
from ..multilabel import features
from . import search
from .search import FoundLabels, LabelSearch

NODES = label_tree.NODES
LANES = 8  # children of a block
SLOPE = np.float32(3)  # of the logistic function of scores, which are 1 or -1 at the margin
LARGEST_EXPONENT = np.float32(30)
OPEN, MARKED = 0, 1  # indices into Rows.size
BIAS_SQUARE, TOLERANCE = np.float32(0.3), np.float32(0.1)  # see `arow.ArowRule`
LEAST_R, MOST_R = 1.0, 4.0  # between which r is learned
ROOT_BLOCK = 0  # the root's own regressor is in lane 0 of a block that has no other


class Nodes(NamedTuple):
    """Hold the regressors of the nodes; node a belongs to those of the lane that leads to it."""

    words: tagged_words.Words
    bias: Float32s  # float32[m]
    seen: Float32s  # float32[m], G of the bias
    regularisation: Float64s  # float64[2], log r, and its sum of squared slopes, see `arow`


class OpenedBlocks(NamedTuple):
    """Hold what is known about the blocks that were opened for an example."""

    of_top: Int64s  # int64[m], row of the block whose top the node is, plus 1; 0 between examples
    top: Int64s  # int64[rows]
    score: Float32s  # float32[8 * rows]
    node: Int64s  # int64[8 * rows], children, -1 where there is none
    positive: Int64s  # int64[rows], bits of the lanes above labels of the example
    marked: Int64s  # int64[rows], the rows that have such lanes, in the order in which they learn
    size: Int64s  # int64[2], rows, and rows that are marked


class Growth(NamedTuple):
    """Say where a new label is inserted, and whether r learns."""

    alpha: float  # weight of balance; binary_nodes.RANDOM for a random place
    random: UInt64s  # uint64[1], state of the random numbers
    adapts_r: bool


class PltScratch(NamedTuple):
    """Hold one thread's scratch for an example."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    feature: UInt32s  # uint32[s], as the features are in the batch
    change: Float32s  # float32[s], scratch
    rows: OpenedBlocks
    heap_p: Float32s  # float32[m + 8], probabilities of the nodes in the heap
    heap_node: Int64s  # int64[m + 8]
    best: Int64s  # int64[least], scratch for the most probable labels that the heap has
    best_p: Float32s  # float32[least]
    label: Int64s  # int64[(m + 1) / 2], labels found
    p: Float32s  # float32[(m + 1) / 2], their probabilities
    y: Float32s  # float32[8]
    own: Float32s  # float32[8], score of the root
    at_root: Int64s  # int64[8], 0
    block: arow.ArowScratch


def new_nodes(tree: label_tree.ClassTree, words: tagged_words.Words) -> Nodes:
    """Return regressors of a tree that have learned nothing."""
    m = len(tree.left)
    bias = np.full(m, -ONE)
    bias[0] = ONE
    return Nodes(words, bias, np.zeros(m, np.float32), arow.new_regularisation())


def with_capacity(nodes: Nodes, tree: label_tree.ClassTree) -> Nodes:
    """Return the same regressors with space for the nodes of a larger tree."""
    larger = new_nodes(tree, nodes.words)._replace(regularisation=nodes.regularisation)
    larger.bias[: len(nodes.bias)], larger.seen[: len(nodes.seen)] = nodes.bias, nodes.seen
    return larger


def new_scratch(tree: label_tree.ClassTree, size: int, least: int) -> PltScratch:
    """Return scratch for examples of at most `size` features, and searches for at most `least` labels or all."""
    m = len(tree.left)
    rows = m // 2 + 2
    labels = m // 2 + 1
    return PltScratch(
        np.empty(size, np.uint64), np.empty(size, np.float32), np.empty(size, np.uint32), np.empty(size, np.float32),
        OpenedBlocks(
            np.zeros(m, np.int64), np.empty(rows, np.int64), np.empty(8 * rows, np.float32),
            np.empty(8 * rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64), np.zeros(2, np.int64),
        ),
        np.empty(m + LANES, np.float32), np.empty(m + LANES, np.int64),
        np.empty(max(1, min(least, labels)), np.int64), np.empty(max(1, min(least, labels)), np.float32),
        np.empty(labels, np.int64), np.empty(labels, np.float32),
        np.empty(LANES, np.float32), np.empty(LANES, np.float32), np.zeros(LANES, np.int64),
        arow.block_scratch(size),
    )  # fmt: skip


# -- kernels


@bare
def load(weighted: document_frequency.Weighted, i: int, scratch: PltScratch) -> Int:
    """Load the features of example i that have a value; return their number."""
    count: Int = np.int64(features.load(weighted, i, 1.0, scratch.feature, scratch.x, scratch.change))
    for f in range(count):
        scratch.h[f] = np.uint64(scratch.feature[f]) * GOLDEN
    return count


@bare
def probability(s: np.float32) -> np.float32:
    """Return the probability of a score."""
    x = min(max(SLOPE * s, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    p: np.float32 = ONE / (ONE + fast_math.exp32(-x))
    return p


@bare
def lane_of(tree: label_tree.ClassTree, a: Int) -> Int:
    """Return the lane of a child of a block."""
    q: Int = tree.place[a] & 7
    if q == 1:
        above = tree.parent[a]
        q = 2 * (tree.place[above] & 7) + (a - tree.left[above])
    while q < LANES:
        q *= 2
    return q - LANES


@bare
def top_of(tree: label_tree.ClassTree, a: Int) -> Int:
    """Return the top of the block that has a node as a child, or inside; that of the root is the root."""
    if a > 0:
        a = np.int64(tree.parent[a])
    while tree.place[a] & 7 != 1:
        a = np.int64(tree.parent[a])
    return a


@bare
def _list_children(tree: label_tree.ClassTree, top: Int, node: Int64s, first: Int) -> None:
    """Write the children of a block to `node[first:first + 8]`, by lane."""
    for q in range(LANES):
        node[first + q] = -1
    node[first] = top
    for level in range(3):  # a child at lane q is replaced by its own children, if it is inside the block
        step = 4 >> level
        for q in range(0, LANES, 2 * step):
            a = node[first + q]
            if a >= 0 and tree.left[a] > 0:
                node[first + q] = tree.left[a]
                node[first + q + step] = tree.left[a] + 1


@bare
def open_row(tree: label_tree.ClassTree, nodes: Nodes, scratch: PltScratch, count: Int, top: Int) -> Int:
    """Return the row of a block, which is scored if it was not yet."""
    rows = scratch.rows
    if rows.of_top[top] > 0:
        known: Int = rows.of_top[top] - 1
        return known
    row: Int = rows.size[OPEN]
    rows.size[OPEN] += 1
    rows.of_top[top] = row + 1
    rows.top[row] = top
    rows.positive[row] = 0
    first = LANES * row
    _list_children(tree, top, rows.node, first)
    tagged_words.score_block(
        nodes.words, scratch.h, scratch.x, count, tree.place[top] >> 3, scratch.block.at, rows.score, first
    )
    for q in range(first, first + LANES):
        if rows.node[q] >= 0:
            rows.score[q] += nodes.bias[rows.node[q]]
    return row


@bare
def close_rows(scratch: PltScratch) -> None:
    """Forget what is known, at the end of an example."""
    rows = scratch.rows
    for row in range(rows.size[OPEN]):
        rows.of_top[rows.top[row]] = 0
    rows.size[:] = 0


@bare
def root_score(nodes: Nodes, scratch: PltScratch, count: Int) -> np.float32:
    """Return the score of the root, which has no weights before an example without a label."""
    s: np.float32 = nodes.bias[0]
    if nodes.seen[0] > ZERO:
        tagged_words.score_block(
            nodes.words, scratch.h, scratch.x, count, np.int64(ROOT_BLOCK), scratch.block.at, scratch.own, np.int64(0)
        )
        s += scratch.own[0]
    return s


@bare
def find_best(
    tree: label_tree.ClassTree, nodes: Nodes, scratch: PltScratch, count: Int, wanted: LabelSearch, i: Int
) -> int:
    """Find the best labels of example i, which is loaded; return how many.

    `scratch.label` and `scratch.p` are written, best first. Nodes are opened in falling order of their probabilities;
    what cannot be found any more is left out of the heap.
    """
    heap_p, heap_node, rows = scratch.heap_p, scratch.heap_node, scratch.rows
    if tree.size[NODES] == 0:
        return 0
    heap_p[0], heap_node[0] = probability(root_score(nodes, scratch, count)), 0
    least = scratch.best.shape[0]
    waiting: Any = np.int64(0)  # of the most probable labels found or in the heap
    size, found = 1, 0
    while size > 0:
        p, a = heap_p[0], heap_node[0]
        if found >= wanted.least and not p > wanted.threshold:
            break
        size -= 1
        search.remove_first(heap_p, heap_node, size)
        if tree.left[a] == 0:
            if tree.label[a] <= wanted.known[i]:
                scratch.label[found], scratch.p[found] = tree.label[a], p
                found += 1
            continue
        first = LANES * open_row(tree, nodes, scratch, count, a)
        for q in range(first, first + LANES):
            child = rows.node[q]
            if child < 0:
                continue
            below = p * probability(rows.score[q])
            if waiting == least and below < scratch.best_p[least - 1] and not below > wanted.threshold:
                continue
            if tree.left[child] == 0:
                if tree.label[child] > wanted.known[i]:
                    continue
                waiting = top_k.insert(scratch.best, scratch.best_p, waiting, child, below)
            search.rise(heap_p, heap_node, size, below, child)
            size += 1
    return found


@bare
def mark(tree: label_tree.ClassTree, nodes: Nodes, scratch: PltScratch, count: Int, leaf: Int) -> None:
    """Mark the lanes on the path to a leaf as positive, opening their rows."""
    rows, a = scratch.rows, leaf
    while a > 0:
        top = top_of(tree, a)
        row = open_row(tree, nodes, scratch, count, top)
        bit = np.int64(1) << lane_of(tree, a)
        if rows.positive[row] & bit != 0:
            return
        if rows.positive[row] == 0:
            rows.marked[rows.size[MARKED]] = row
            rows.size[MARKED] += 1
            _begin(nodes, rows, LANES * row, lane_of(tree, a))
        rows.positive[row] |= bit
        a = top


@bare
def _begin(nodes: Nodes, rows: OpenedBlocks, first: Int, lane: Int) -> None:
    """Let the child in a lane be sure of 1, if the block has never learned: so far all examples of it are below it."""
    for q in range(first, first + LANES):
        a = rows.node[q]
        if a >= 0 and (nodes.bias[a] != -ONE or nodes.seen[a] != ZERO):
            return
    nodes.bias[rows.node[first + lane]] = ONE
    rows.score[first + lane] += TWO


@bare
def _side(rows: OpenedBlocks, first: Int, last: Int) -> float:
    """Return the sum of the probabilities of the children in some lanes."""
    total = 0.0
    for q in range(first, last):
        if rows.node[q] >= 0:
            total += np.float64(probability(rows.score[q]))
    return total


@bare
def insert(
    tree: label_tree.ClassTree, nodes: Nodes, growth: Growth, scratch: PltScratch, count: Int, label: Int
) -> Int:
    """Insert a new label into the tree; return its leaf.

    It descends as `binary_nodes.objective` says. The probability of right is the share of the children on the right.
    The regressors of both leaves begin with what is true of the labels so far: the old one is below their parent in
    all examples, and the new one in none.
    """
    alpha, random, _ = growth
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        return np.int64(0)
    rows = scratch.rows
    a: Int = np.int64(0)
    first: Int = np.int64(0)
    step: Int = np.int64(0)
    while tree.left[a] > 0:
        if tree.place[a] & 7 == 1:
            first, step = LANES * open_row(tree, nodes, scratch, count, a), np.int64(LANES)
        step //= 2
        left, p = np.int64(tree.left[a]), 0.5
        if 0.0 <= alpha < 1.0:
            sides = _side(rows, first, first + step), _side(rows, first + step, first + 2 * step)
            p = sides[1] / (sides[0] + sides[1]) if sides[0] + sides[1] > 0.0 else 0.5
        if alpha < 0.0:
            right: bool | np.bool_ = rng.draw(random) >= HALF
        else:
            leaves = np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1])
            right = binary_nodes.objective(alpha, p, leaves[0], leaves[1]) > 0.0
        tree.leaves[a] += 1
        a = left + 1 if right else left
        first += step if right else 0
    tree.leaves[a] += 1
    bias, seen = nodes.bias[a], nodes.seen[a]
    leaf: Int = label_tree.split(tree, a, label)
    inside = tree.place[a] & 7 != 1
    nodes.bias[leaf - 1], nodes.seen[leaf - 1] = (bias, seen) if inside else (ONE, ZERO)
    nodes.bias[leaf], nodes.seen[leaf] = -ONE, ZERO
    if inside:
        row = rows.of_top[top_of(tree, a)] - 1
        _list_children(tree, rows.top[row], rows.node, LANES * row)
        rows.score[LANES * row + lane_of(tree, leaf)] += nodes.bias[leaf]
    return leaf


@bare
def train(
    tree: label_tree.ClassTree, nodes: Nodes, scratch: PltScratch, count: Int, weight: np.float32, empty: bool
) -> None:  # fmt: skip
    """Train the children of the blocks that `mark` has marked; if the example is `empty`, the root learns -1."""
    rows, y = scratch.rows, scratch.y
    rule = arow.ArowRule(arow.r_of(nodes.regularisation), BIAS_SQUARE, TOLERANCE)
    if empty or nodes.seen[0] > ZERO:
        scratch.own[0] = root_score(nodes, scratch, count)
        y[:] = ZERO
        y[0] = -ONE if empty else ONE
        arow.learn_block(
            nodes.words, scratch.h, scratch.x, count, np.int64(ROOT_BLOCK), scratch.own, np.int64(0), y,
            arow.Biases(nodes.bias, nodes.seen, scratch.at_root), weight, rule, scratch.block,
        )  # fmt: skip
    for j in range(rows.size[MARKED]):
        row = rows.marked[j]
        first = LANES * row
        for q in range(LANES):
            y[q] = ZERO if rows.node[first + q] < 0 else ONE if rows.positive[row] >> q & 1 else -ONE
        arow.learn_block(
            nodes.words, scratch.h, scratch.x, count, tree.place[rows.top[row]] >> 3, rows.score, first, y,
            arow.Biases(nodes.bias, nodes.seen, rows.node), weight, rule, scratch.block,
        )  # fmt: skip


@bare
def process_batch(
    tree: label_tree.ClassTree, nodes: Nodes, growth: Growth, wanted: LabelSearch, batch: Batch,
    weighted: document_frequency.Weighted, label: Int64s, learned: Bools, begin: int, end: int, scratch: PltScratch,
    found: FoundLabels,
) -> int:  # fmt: skip
    """Search the best labels of examples begin..end-1, and train on those that are learned.

    Return the first example for which something lacks room, or `end`. `label` has the 1-based labels of all examples,
    0 for those that are not learned, and `learned` is bool[n].
    """
    for i in range(begin, end):
        first, last = label_arrays.span(batch, label, i)
        if learned[i] and (not label_tree.has_capacity(tree, last - first) or tagged_words.is_full(nodes.words)):
            return i
        count = load(weighted, i, scratch)
        if not search.has_room(found, scratch, find_best(tree, nodes, scratch, count, wanted, i), i):
            close_rows(scratch)
            return i
        if learned[i]:
            for j in range(first, last):
                if label[j] > 0 and label_tree.find(tree, label[j]) < 0:
                    insert(tree, nodes, growth, scratch, count, label[j])
            empty = True
            for j in range(first, last):
                if label[j] > 0:
                    mark(tree, nodes, scratch, count, label_tree.find(tree, label[j]))
                    empty = False
            train(tree, nodes, scratch, count, batch.weight[i], empty)
            if growth.adapts_r:
                arow.adapt_r(nodes.regularisation, scratch.block, LEAST_R, MOST_R)
        close_rows(scratch)
    return end
