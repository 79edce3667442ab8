"""Follow the path from the root of a conditional probability tree to the leaf of a class, turn by turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ...array_types import Float32s, UInt64s
from ...binary import adagrad
from ...data.batch import Batch
from ...explain.records import Share, Turn
from ...reductions.cpt import label_tree, wide_nodes
from ...reductions.cpt.tree_member import Member
from . import shares
from .reasons import shares_of


class TreePaths:
    """Find paths of the only example of a batch, as tree `number` sees it; `name` is the format of a node's name."""

    def __init__(self, member: Member, batch: Batch, name: str, number: int) -> None:
        self._number = number
        self._member, self._tree, self._weights, self._name = member, member.tree, member.weights, name
        self._scratch = member.scratch(batch)
        count = adagrad.load(batch, 0, member.settings.unit, self._scratch.h, self._scratch.x)
        self._h: UInt64s = self._scratch.h[:count]
        self._x: Float32s = self._scratch.x[:count]

    def to(self, label: int) -> tuple[Turn, ...] | None:
        """Return the turns from the root to the leaf of a label, None if it has no leaf."""
        leaf = int(label_tree.find(self._tree, np.int64(label)))
        if leaf < 0:
            return None
        nodes = [leaf]
        while self._tree.parent[nodes[0]] >= 0:
            nodes.insert(0, int(self._tree.parent[nodes[0]]))
        return tuple(self._binary(nodes) if self._member.levels == 1 else self._wide(nodes))

    def _binary(self, nodes: list[int]) -> Iterator[Turn]:
        for node, child in itertools.pairwise(nodes):
            place = int(self._tree.place[node])
            score = shares.score_of(self._weights.words, self._h, self._x, place)
            right = float(adagrad.probability(self._weights, np.float32(score)))
            went_right = child > self._tree.left[node]
            side, p = ("right", right) if went_right else ("left", 1.0 - right)
            yield Turn(self._name.format(node), side, score, p, self._shares(place), self._number)

    def _wide(self, nodes: list[int]) -> Iterator[Turn]:
        """Yield the turns at the blocks of a path and at their regressors; see `wide_nodes` for the branches."""
        levels, scratch = self._member.levels, self._scratch
        assert isinstance(scratch, wide_nodes.Scratch)
        m = 1 << levels
        s, child, v = np.empty(m, np.float32), np.empty(m, np.int64), np.empty(m)
        for first in range(0, len(nodes) - 1, levels):
            root, inside = nodes[first], nodes[first : first + levels + 1]
            sides = (after > self._tree.left[node] for node, after in itertools.pairwise(inside))
            branch = sum(1 << level for level, right in enumerate(sides) if right)
            wide_nodes._open(self._tree, self._weights, scratch, len(self._h), np.int64(root), s, child, v)
            yield Turn(self._name.format(root), f"branch {branch}", None, float(v[branch]), (), self._number)
            for i in range(1, m):
                odd = (i & branch).bit_count() & 1
                place = m * (root + 1) + i
                name = f"{self._name.format(root)} regressor {i}"
                yield Turn(name, "odd" if odd else "even", float(s[i]), None, self._shares(place), self._number)

    def _shares(self, place: int) -> tuple[Share, ...]:
        return shares_of(shares.of_regressor(self._weights.words, self._h, self._x, place))
