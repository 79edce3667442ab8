"""One tree of probabilities with its regressors: the kernels of binary trees and of wider ones behind one face."""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...binary import adagrad, gd
from ...data.batch import Batch
from ...model import stored_arrays
from . import binary_nodes, label_tree, tree_search, wide_nodes
from .binary_nodes import DEEPEST, NODES, Scratch, Settings

MOST_TIMES = 10  # bytes that what is loaded may need for every byte of the file
LEAST_BYTES = 1 << 26  # and may need at any rate
PLACE_BYTES, LEVEL_BYTES = 8, 20  # of a binary tree's `scratch`, for each level: of each feature, and of the node
USUAL_FEATURES = 256  # of an example


class Member:
    """One tree with its regressors."""

    def __init__(
        self, labels: int, bits: int, kind: int, rule: gd.Options, settings: Settings, arity: int, seed: int
    ) -> None:
        self.tree = label_tree.empty_tree(labels)
        self.weights = adagrad.new_weights(bits, kind, rule.learning_rate, rule.sgd)
        self.settings = settings
        self.levels = arity.bit_length() - 1  # of the binary tree in one node
        self.kernels = binary_nodes if arity == 2 else wide_nodes
        self.random = np.array([seed], np.uint64)
        self.leaves = np.empty(0, np.int64)  # by label

    def scratch(self, batch: Batch) -> Scratch | wide_nodes.Scratch:
        """Rows for one thread."""
        longest = int(np.diff(batch.start).max(initial=0))
        levels = int(self.tree.size[DEEPEST]) + 8
        if self.kernels is wide_nodes:
            return wide_nodes.scratch(self.levels, longest, levels)
        waiting = min(2 * (self.settings.budget + levels), len(self.tree.left)) + levels
        return Scratch(
            np.empty(longest, np.uint64), np.empty(longest, np.float32), np.empty(longest, np.float32),
            np.empty(longest * levels, np.int64),
            np.empty(levels, np.int64), np.empty(levels, np.float32), np.empty(levels),
            tree_search.new_waiting(waiting),
        )  # fmt: skip

    def check_memory(self, name: str) -> None:
        """Refuse a tree of a file, whose array is called `name`, for which a thread would need far more than the file.

        Blocks fill up before others begin below them, so that trees of wide blocks are shallow but where they were
        made to be deep.
        """
        depth = int(self.tree.size[DEEPEST])
        if self.kernels is wide_nodes:
            needed = wide_nodes.path_bytes(self.levels, depth)
        else:
            needed = depth * (PLACE_BYTES * USUAL_FEATURES + LEVEL_BYTES)
        taken = label_tree.NODE_BYTES * len(self.tree.left)
        if needed > max(MOST_TIMES * taken, LEAST_BYTES):
            raise stored_arrays.unfit(
                name, f"it is {depth} levels deep, for which every thread would need {needed / 2**20:.0f} MB"
            )

    def rows(
        self, batch: Batch, label: Int64s, learns: Bools, whole: Bools, begin: int, end: int, found: binary_nodes.Found
    ) -> int:
        """Examples begin..end-1; return the first not done."""
        done: int = self.kernels.learn_batch(
            self.tree, self.weights, self.settings, self.random, batch, label, learns, whole, begin, end,
            self.scratch(batch), found,
        )  # fmt: skip
        return done

    def learn_batch(
        self, batch: Batch, label: Int64s, learns: Bools, whole: Bools, begin: int, end: int, found: binary_nodes.Found
    ) -> None:
        """Examples begin..end-1 in order, growing the tree."""
        while (begin := self.rows(batch, label, learns, whole, begin, end, found)) < end:
            if not label_tree.has_room(self.tree):
                self.tree = label_tree.with_double_capacity(self.tree)

    def learn_batch_with_probabilities(
        self,
        batch: Batch,
        label: Int64s,
        learns: Bools,
        whole: Bools,
        begin: int,
        end: int,
        found: binary_nodes.Found,
        spread: list[tuple[Int64s, Float64s]],
    ) -> None:
        """As `learn_batch`; `spread[i]` = the probabilities of all labels before example i is learned from."""
        scratch = self.scratch(batch)
        for i in range(begin, end):
            spread[i] = self.all_probabilities(batch, i, scratch)
            self.learn_batch(batch, label, learns, whole, i, i + 1, found)

    def all_probabilities(self, batch: Batch, i: int, scratch: Scratch | wide_nodes.Scratch) -> tuple[Int64s, Float64s]:
        """All labels of the tree in order, int64, and their probabilities, float64."""
        nodes = int(self.tree.size[NODES])
        if self.leaves.size != (nodes + 1) // 2:
            leaves = np.flatnonzero(self.tree.left[:nodes] == 0)
            self.leaves = leaves[np.argsort(self.tree.label[leaves])]
        mass = np.empty(len(self.tree.left))
        self.kernels.all_probabilities(self.tree, self.weights, self.settings, batch, i, scratch, mass)
        return self.tree.label[self.leaves], mass[self.leaves]

    def candidate_probabilities(self, batch: Batch, begin: int, end: int, candidate: Int64s, p: Float64s) -> None:
        """The probabilities of candidates."""
        nodes = len(self.tree.left)
        self.kernels.candidate_probabilities(
            self.tree, self.weights, self.settings, batch, begin, end, self.scratch(batch),
            np.full(nodes, -1, np.int64), np.empty(nodes), candidate, p,
        )  # fmt: skip
