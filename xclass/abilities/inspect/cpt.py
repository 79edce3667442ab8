"""Show the words of conditional probability trees and of their scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...array_types import AnyArray, Int64s
from ...binary.adagrad import Weights
from ...data import class_names
from ...reductions.core.contract import BatchTask
from ...reductions.cpt import binary_nodes, label_tree, wide_nodes
from ...reductions.cpt.label_tree import NODES, Tree
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.cpt.tree_member import Member
from ...reductions.multiclass import reranking
from ...system.printable import printable
from .views import WordTable


def weight_tables(learner: ProbabilityTree) -> list[Weights]:
    scorers = [] if learner.scorers is None else [learner.scorers.weights]
    return [*(member.weights for member in learner.members), *scorers]


def word_tables(learner: ProbabilityTree) -> list[WordTable]:
    """Return the tables of the trees and of the scorers as they are now."""
    names = [f"tree{t}" for t in range(len(learner.members))]
    tables = [WordTable(name, table.words, True) for name, table in zip(names, weight_tables(learner), strict=False)]
    scorers = learner.scorers
    return tables + ([WordTable("scorers", scorers.weights.words, False)] if scorers is not None else [])


def word_keys(learner: ProbabilityTree, task: BatchTask) -> list[Int64s]:
    """Return for each table the keys with which it finds the words of n examples, int64[n, k]; -1 for none.

    These are the blocks on the paths to the labels, and the classes whose scorers saw the examples. A path only gets
    longer, so it has all nodes that ever learned the label. Examples without a label follow the path of their
    prediction. All stages have seen the task.
    """
    assert task.prediction is not None  # made by the stages
    label = np.where(np.isnan(task.batch.label), task.prediction, task.batch.label).astype(np.int64)
    keys = [_blocks(member, label) for member in learner.members]
    if learner.scorers is not None:
        assert task.candidates is not None  # made by the last stage
        classes = np.concatenate([label[:, None], task.candidates], axis=1)
        keys.append(np.where(classes > 0, classes, -1))
    return keys


def word_places(learner: ProbabilityTree, table: int, key: Int64s, number: Int64s) -> AnyArray:
    """Return what words of a table belong to as text in brackets, object[n] of bytes: nodes or classes, empty if none.

    `key` are their keys, and `number` those of their regressors within the block, from the tags of the words.
    """
    if table < len(learner.members):
        return _node_places(learner.members[table], 8 * key + number, learner.node_name(table))
    label, inverse = np.unique(key, return_inverse=True)
    texts = [f"[class {_class_name(learner, y)}]".encode("utf-8", "surrogateescape") for y in label.tolist()]
    return np.array(texts, object)[inverse.reshape(-1)]


def word_lines(learner: ProbabilityTree) -> Iterator[str]:
    """Yield lines of the readable model about the nodes of the trees and the parameters of the scorers."""
    yield f"trees = {len(learner.members)}"
    for t, member in enumerate(learner.members):
        yield from _node_lines(member.tree, f"tree = {t} ", lambda label: _class_name(learner, label))
    if learner.scorers is not None:
        names = [*(f"v{v}" for v in range(reranking.OFFSETS)), "A", "B", "D", "E", "M", "T"]
        yield from (f"{name} = {value:g}" for name, value in zip(names, learner.scorers.state[0], strict=True))


def _node_lines(tree: Tree, front: str, class_name: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each node of the readable model, which begins with `front`."""
    nodes = int(tree.size[NODES])
    columns = [array[:nodes].tolist() for array in (tree.parent, tree.depth, tree.left, tree.label)]
    for a, (parent, depth, left, label) in enumerate(zip(*columns, strict=True)):
        rest = f"left = {left} right = {left + 1}" if left > 0 else f"label = {class_name(label)}"
        yield f"{front}node = {a} parent = {parent} depth = {depth} {rest}"


def _blocks(member: Member, label: Int64s) -> Int64s:
    """Return int64[n, k]: the blocks of words whose regressors learn examples of these labels (0 for none), or -1."""
    tree, m = member.tree, 1 << member.levels
    unique, inverse = np.unique(label, return_inverse=True)
    node = np.empty(len(unique), np.int64)
    label_tree.find_all(tree, unique, node)
    columns = [np.full(len(unique), -1)]
    while np.any(node >= 0):
        if member.kernels is binary_nodes:
            block = np.where(node >= 0, tree.place[node] >> 3, -1)
            above = tree.place[tree.parent[node]] >> 3
            columns.append(np.where((node > 0) & (above == block), -1, block))  # each block once
        else:
            has_block = (node >= 0) & (tree.depth[node] % member.levels == 0)
            first = m * (node + 1) >> 3  # see `wide_nodes._place`
            columns += [np.where(has_block, first + b, -1) for b in range(max(1, m >> 3))]
        node = np.where(node >= 0, tree.parent[node], -1)
    return np.stack(columns, axis=1)[inverse.reshape(-1)]


def _node_places(member: Member, place: Int64s, name: str) -> AnyArray:
    """Return the nodes of places of regressors as text in brackets, object[n] of bytes; empty if there is no node."""
    nodes, m = int(member.tree.size[NODES]), 1 << member.levels
    if member.kernels is binary_nodes:
        order = np.argsort(member.tree.place[:nodes])
        ordered = member.tree.place[:nodes][order]
        at = np.minimum(np.searchsorted(ordered, place), nodes - 1)
        node, exists = order[at], ordered[at] == place
    else:
        node = place // m - 1
        exists = node < nodes
        node = np.minimum(node, nodes - 1)
    before, after = name.encode().split(b"{}")
    text = b"[node " + before + _as_text(node) + after + b" depth " + _as_text(member.tree.depth[node])
    if member.kernels is wide_nodes:
        text = text + b" regressor " + _as_text(place % m)
    return np.where(exists, text + b"]", b"")


def _as_text(number: AnyArray) -> AnyArray:
    return number.astype("S").astype(object)


def _class_name(learner: ProbabilityTree, label: int) -> str:
    return printable(class_names.text_of(label, learner.names))
