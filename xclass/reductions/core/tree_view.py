"""The nodes of a tree as they are shown: what `--print_tree`, `--dot_tree` and the summary have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...array_types import Int64s


class TreeNode(NamedTuple):
    """A node."""

    name: str  # another for every node
    level: int  # 0 at a root
    children: tuple[str, ...]  # names, left first; none at a leaf
    labels: tuple[tuple[int, float | None], ...]  # classes as written in the file, and how often seen if counted
    facts: Mapping[str, object]  # what else there is to say, in the order it is shown


class NodeView(NamedTuple):
    """A node as the tree it belongs to tells it."""

    children: tuple[int, ...] = ()
    labels: tuple[tuple[int, float | None], ...] = ()
    facts: Mapping[str, object] = MappingProxyType({})


def preorder(root: int, levels: int, look: Callable[[int], NodeView], name: str = "{}") -> Iterator[TreeNode]:
    """The nodes of the first levels: a node before those below it, all below its left child before the right one.

    `look(a)` is asked about these nodes only; of deeper ones there can be millions. `name` : how nodes are called.
    """
    waiting = [(root, 0)]
    while waiting:
        a, level = waiting.pop()
        found = look(a)
        yield TreeNode(name.format(a), level, tuple(map(name.format, found.children)), found.labels, found.facts)
        if level + 1 < levels:
            waiting += [(child, level + 1) for child in reversed(found.children)]


def statistics(nodes: int, depths: Iterable[int] | Int64s, counts: Sequence[int] | None = None) -> str:
    """Return a line for the summary.

    Parameters
    ----------
    depths : of every leaf, or different ones where `counts` says how many leaves have each
    """
    depths = np.asarray(depths)
    leaves = len(depths) if counts is None else sum(counts)
    if not leaves:
        return f"nodes = {nodes}, leaves = 0"
    mean = np.average(depths, weights=counts)
    return f"nodes = {nodes}, leaves = {leaves}, depth mean = {mean:.2f}, max = {depths.max()}"
