"""Describe the first levels of a tree, with the classes below each node and their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..abilities.describe.tree_view import TreeNode
from ..abilities.find import ability
from ..api.learner_core import LearnerCore
from ..array_types import Int64s
from .frequencies import Frequencies
from .outcomes import Outcomes

WHOLE = 1 << 30  # more levels than a tree has
MOST_CLASSES = 12  # classes that are listed for a node


class Node(NamedTuple):
    """Hold a node of the first levels."""

    name: str
    level: int
    children: tuple[int, ...]  # positions in the list of nodes
    is_cut: bool  # whether it has children that are not shown
    classes: int  # number of classes at the leaves below it, or of those counted at the node
    labels: list[int]  # the most frequent of them
    examples: float  # weight of the test examples of these classes; 0 if not known
    errors: float  # weight of those that were predicted wrongly
    facts: dict[str, object]  # further values that the tree reports


class Tree(NamedTuple):
    """Hold the first levels of the first tree, the root first, and the number of trees."""

    nodes: list[Node]
    trees: int


def measure(learner: LearnerCore, levels: int, known: Frequencies | None, tested: Outcomes | None) -> Tree | None:
    """Return the first levels of the first tree of a learner, None if it has no tree.

    `known` is the number of examples of each class, by which the classes of a node are sorted.
    """
    outline = getattr(ability(learner.config.reduction, "describe"), "outline", None)
    if outline is None:
        return None
    shown: list[TreeNode] = []
    below: list[set[int]] = []  # classes at the leaves below each shown node
    path: list[int] = []  # shown nodes from the root to the current one
    children: list[list[int]] = []
    for node in outline(learner.reduction, WHOLE):
        if node.level == 0 and shown:  # the next tree
            break
        del path[min(node.level, len(path)) :]
        if node.level < levels:
            if path:
                children[path[-1]].append(len(shown))
            path.append(len(shown))
            shown.append(node)
            below.append(set())
            children.append([])
        if not node.children:
            for at in path:
                below[at].update(label for label, _ in node.labels)
    if not shown:
        return None
    result = []
    for at, node in enumerate(shown):
        own = [label for label, _ in node.labels] if node.children else []
        labels = np.array(sorted(own or below[at]), np.int64)
        rank = known.of(labels) if known is not None else np.zeros(len(labels))
        first = labels[np.lexsort((labels, -rank))][:MOST_CLASSES].tolist()
        examples, errors = _errors(labels, tested) if not own and tested is not None else (0.0, 0.0)
        is_cut = bool(node.children) and not children[at]
        result.append(
            Node(
                node.name, node.level, tuple(children[at]), is_cut, len(labels), first, examples, errors,
                dict(node.facts),
            )
        )  # fmt: skip
    return Tree(result, sum(node.level == 0 for node in outline(learner.reduction, 1)))


def _errors(labels: Int64s, tested: Outcomes) -> tuple[float, float]:
    chosen = np.isin(tested.label, labels)
    return float(tested.weight[chosen].sum()), float(tested.weight[chosen & tested.wrong].sum())
