"""Define the nodes of a tree, for `--print_tree`, `--dot_tree` and the summary, and how weight tables are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Float32s
from ...data.batch import Batch


class TreeNode(NamedTuple):
    """Describe one node of a tree for output."""

    name: str  # unique within the tree
    level: int  # 0 at a root
    children: tuple[str, ...]  # names, left first; empty at a leaf
    labels: tuple[tuple[int, float | None], ...]  # classes as written in the file, with their counts if known
    facts: Mapping[str, object]  # further values, in the order of output


class NodeView(NamedTuple):
    """Hold the printable view of one node, as its tree returns it: numbers of children, labels and facts."""

    children: tuple[int, ...] = ()
    labels: tuple[tuple[int, float | None], ...] = ()
    facts: Mapping[str, object] = MappingProxyType({})


def preorder(root: int, levels: int, look: Callable[[int], NodeView], name: str = "{}") -> Iterator[TreeNode]:
    """Yield the nodes of the first levels in preorder: a node before its subtrees, left before right.

    `look` returns the view of a node, and is called only for the nodes that are yielded, because a tree can have
    millions. `name` is the format of a node's name, given its number.
    """
    stack = [(root, 0)]
    while stack:
        node, level = stack.pop()
        view = look(node)
        yield TreeNode(name.format(node), level, tuple(map(name.format, view.children)), view.labels, view.facts)
        if level + 1 < levels:
            stack += [(child, level + 1) for child in reversed(view.children)]


def lines(figures: Mapping[str, float]) -> list[str]:
    """Return the line of the summary about a tree, none if the figures of a learner have no nodes."""
    if "nodes" not in figures:
        return []
    depths = "depth mean = {mean_depth:.2f}, max = {largest_depth}" if figures["leaves"] else ""
    return [", ".join(filter(None, ["nodes = {nodes}, leaves = {leaves}", depths])).format_map(figures)]


def figures(nodes: int, depths: AnyArray) -> dict[str, float]:
    """Return the numbers of nodes and leaves and the depths of leaves by name; `depths` is that of each leaf."""
    if not len(depths):
        return {"nodes": nodes, "leaves": 0}
    return {
        "nodes": nodes,
        "leaves": len(depths),
        "mean_depth": float(depths.mean()),
        "largest_depth": int(depths.max()),
    }


class WeightLookup(NamedTuple):
    """Identify one regressor that is scored for an example, by its table and its subproblem."""

    table: int  # position in `Learner.tables`
    sub: int  # number of the subproblem within its table
    number: int  # number of the subproblem among all of the learner
    extra: tuple[tuple[int, float], ...] = ()  # places and values of features the reduction adds


class TableView(NamedTuple):
    """Say which weights of the tables a learner uses."""

    # returns the regressors that are scored to predict the only example of a batch, then those that learn it
    lookups: Callable[[Batch], list[WeightLookup]]
    # whether a slot determines its subproblem and feature: slot i then belongs to subproblem `i % width` of the
    # features in row `i // width`. If not, names of features are found by following the lookups of every example
    rows_are_exclusive: bool = True
    # number of rows of each table if features are distributed over all rows; the place of a feature is then
    # `index % rows * width`, and otherwise `index * width`
    rows: np.uint64 | None = None
    limits: Float32s | None = None  # range to which scores are clipped, None for that of their table
    extra: Callable[[], list[WeightLookup]] = list  # features that the reduction itself adds, if rows are exclusive
    lines: Callable[[], list[str]] = list  # of the readable model, about what is learned beside the weights
