"""Show the words of a probabilistic label tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...array_types import AnyArray, Int64s
from ...data import class_names
from ...reductions.core.contract import BatchTask
from ...reductions.cpt import label_tree
from ...reductions.plt import nodes
from ...reductions.plt.reduction import LabelTree
from ...system.printable import printable
from .views import WordTable


def word_tables(learner: LabelTree) -> list[WordTable]:
    return [WordTable("tree", learner.nodes.words, True)]


def word_keys(learner: LabelTree, task: BatchTask) -> list[Int64s]:
    """Return the blocks on the paths to the labels of n examples, int64[n, k]; -1 for none.

    A path only gets longer, so it has all blocks that ever learned the label. Examples without a label learn nothing
    but the root.
    """
    tree, batch = learner.tree, task.batch
    rows = []
    for i in range(batch.n):
        blocks = {nodes.ROOT_BLOCK}
        for label in batch.labels[batch.label_start[i] : batch.label_start[i + 1]].astype(np.int64).tolist():
            a = int(label_tree.find(tree, label + 1 - learner.lowest)) if label >= learner.lowest else -1
            while a > 0:
                a = int(nodes.top_of(tree, a))
                blocks.add(int(tree.place[a]) >> 3)
        rows.append(sorted(blocks))
    keys = np.full((batch.n, max(map(len, rows), default=1)), -1)
    for key, row in zip(keys, rows, strict=True):
        key[: len(row)] = row
    return [keys]


def word_places(learner: LabelTree, table: int, key: Int64s, number: Int64s) -> AnyArray:
    """Return the nodes of words as text in brackets, object[n] of bytes, empty if there is none.

    `key` are their blocks, and `number` their lanes.
    """
    tree = learner.tree
    of_lane = {(int(tree.place[nodes.top_of(tree, a)]) >> 3, int(nodes.lane_of(tree, a))): a for a in children(learner)}
    of_lane[nodes.ROOT_BLOCK, 0] = 0
    found = (of_lane.get(pair) for pair in zip(key.tolist(), number.tolist(), strict=True))
    return np.array([b"" if a is None else f"[node {a} depth {tree.depth[a]}]".encode() for a in found], object)


def word_lines(learner: LabelTree) -> Iterator[str]:
    """Yield lines of the readable model about the nodes that have a regressor."""
    tree = learner.tree
    for a in [0, *children(learner)] if tree.size[nodes.NODES] else []:
        label = int(tree.label[a]) - 1 + learner.lowest
        name = printable(class_names.text_of(label, learner.names)) if learner.lowest else label
        rest = f" label = {name}" if tree.left[a] == 0 else ""
        above = f" above = {nodes.top_of(tree, a)} lane = {nodes.lane_of(tree, a)}" if a else ""
        seen = "" if learner.predict_only else f" sum = {learner.nodes.seen[a]:g}"
        yield f"node = {a}{above} bias = {learner.nodes.bias[a]:g}{seen}{rest}"


def children(learner: LabelTree) -> list[int]:
    """Return the nodes that have a regressor, without the root: leaves, and tops of blocks."""
    tree, m = learner.tree, int(learner.tree.size[nodes.NODES])
    own = (tree.left[:m] == 0) | (tree.place[:m] & 7 == 1)
    found: list[int] = (np.flatnonzero(own[1:]) + 1).tolist()
    return found
