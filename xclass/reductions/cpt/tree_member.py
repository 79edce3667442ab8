"""Combine one conditional probability tree with its regressors, behind one interface for binary and wide nodes."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...binary import adagrad, gd, tagged_words
from ...data import batch_ops
from ...data.batch import Batch
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ..core import label_arrays
from . import beam_search, binary_nodes, label_tree, node_scores, tree_search, wide_nodes
from .binary_nodes import DEEPEST, NODES, BinaryNodeScratch, TreeSettings
from .options import BRANCH_BYTES

MOST_BYTES_PER_FILE_BYTE = 10  # bytes of scratch that a loaded tree may need per byte of the file
ALWAYS_ALLOWED_BYTES = 1 << 26  # bytes of scratch that any loaded tree may need
MOST_PROBABILITIES = 1 << 16  # labels times examples that are computed at a time, if nothing is learned in between
LEVELS_TO_GROW = 8  # levels by which the tree may grow before new buffers are needed


class Member:
    """Hold one tree of the ensemble, its weight table and the kernels for its kind of nodes.

    Parameters
    ----------
    labels : number of labels to reserve capacity for
    kind : code of the loss function, see `loss.CODES`
    arity : branches of a node, a power of two
    bits, doublings, weights_only, momentum : see `adagrad.new_weights`
    """

    def __init__(
        self,
        labels: int,
        bits: int,
        kind: int,
        rule: gd.BinaryOptions,
        settings: TreeSettings,
        arity: int,
        seed: int,
        doublings: int = 0,
        weights_only: bool = False,
        momentum: float = 0.0,
    ) -> None:
        self.tree = label_tree.empty_tree(labels)  # replaced by a larger one when it is full
        self.new_weights = partial(
            adagrad.new_weights, bits, kind, rule.learning_rate, rule.sgd, doublings, weights_only, momentum
        )
        self.weights = self.new_weights()
        self.settings = settings
        self.levels = arity.bit_length() - 1  # levels of the binary tree in one node
        self.kernels = binary_nodes if arity == 2 else wide_nodes
        self.random = np.array([seed], np.uint64)
        self.labels = np.empty(0, np.int64)  # in order, computed when they are needed
        self._kept_scratch: BinaryNodeScratch | None = None  # buffers for a batch of a single example, see `_fits`

    @cached_property
    def _kernel(self) -> DirectCall:
        return DirectCall(self.kernels, "process_batch")

    @property
    def blocks_of_root(self) -> tuple[int, int]:
        """Return the first block with regressors of the root, and the end of these blocks."""
        first = int(self.tree.place[0]) if self.levels == 1 else 1 << self.levels
        return first >> 3, (first >> 3) + max(1, (1 << self.levels) >> 3)

    def _fits(self, batch: Batch, scratch: BinaryNodeScratch | None) -> bool:
        return (
            scratch is not None
            and batch.most_features <= len(scratch.h)
            and int(self.tree.size[DEEPEST]) + LEVELS_TO_GROW // 2 <= len(scratch.path)
            and len(scratch.beam.fetched) == max(1, self.settings.beam)
            and self._waiting(len(scratch.path)) <= len(scratch.waiting.node)
        )

    def _waiting(self, levels: int) -> int:
        """Return the number of nodes of `BinaryNodeScratch.waiting` for a tree of at most `levels` levels."""
        return len(self.tree.left) + levels if self.settings.exact else 0

    def scratch(self, batch: Batch) -> BinaryNodeScratch | wide_nodes.WideNodeScratch:
        """Return buffers for one thread and a batch; they have space for some growth of the tree."""
        most_features = batch.most_features
        levels = int(self.tree.size[DEEPEST]) + LEVELS_TO_GROW + label_arrays.most(batch)
        if self.kernels is wide_nodes:
            return wide_nodes.scratch(self.levels, most_features, levels)
        return BinaryNodeScratch(
            np.empty(most_features, np.uint64), np.empty(most_features, np.float32),
            np.empty(levels, np.int64), np.empty(levels, np.float32),
            tree_search.new_waiting(self._waiting(levels)),
            beam_search.new_beam(max(1, self.settings.beam), most_features), node_scores.new_memo(most_features),
        )  # fmt: skip

    def check_memory(self, name: str) -> None:
        """Refuse a loaded tree, stored as the array `name`, if a thread needs far more memory for it than the file has.

        Trees that grow here stay shallow with wide nodes, because a block fills up before others begin below it.
        """
        depth = int(self.tree.size[DEEPEST])
        if self.levels == 1 or depth <= self.levels:  # see `check_arity` for a single node
            return
        needed = (depth // self.levels + 2) * (BRANCH_BYTES << self.levels)
        stored = label_tree.NODE_BYTES * len(self.tree.left)
        if needed > max(MOST_BYTES_PER_FILE_BYTE * stored, ALWAYS_ALLOWED_BYTES):
            raise stored_arrays.unfit(
                name, f"it is {depth} levels deep, for which every thread would need {needed / 2**20:.0f} MB"
            )

    def process_rows(
        self,
        batch: Batch,
        label: Int64s,
        learns: Bools,
        begin: int,
        end: int,
        predictions: binary_nodes.TreePredictions,
    ) -> None:
        """Do what the kernel `process_batch` does, enlarging the tree if it is full."""
        single = batch.n == 1
        fits = single and self._fits(batch, self._kept_scratch)
        while True:
            scratch = self._kept_scratch if fits else self.scratch(batch)  # for the tree as deep as it is now
            if single and isinstance(scratch, BinaryNodeScratch):
                self._kept_scratch = scratch
            begin = self._kernel(
                self.tree, self.weights, self.settings, self.random, batch, label, learns, begin, end,
                scratch, predictions,
            )  # fmt: skip
            if begin >= end:
                return
            fits = False
            if tagged_words.is_full(self.weights.words):
                self.weights = adagrad.doubled(self.weights)
            if not label_tree.has_capacity(self.tree, label_arrays.most(batch)):
                self.tree = label_tree.with_double_capacity(self.tree)

    def process_rows_with_probabilities(
        self,
        batch: Batch,
        label: Int64s,
        learns: Bools,
        begin: int,
        end: int,
        predictions: binary_nodes.TreePredictions,
        distributions: list[tuple[Int64s, Float64s]],
    ) -> None:
        """Do what `process_rows` does, and list all labels, in order, and their probabilities before."""
        while begin < end:
            nodes = int(self.tree.size[NODES])
            if len(self.labels) != (nodes + 1) // 2:
                self.labels = np.sort(self.tree.label[:nodes][self.tree.left[:nodes] == 0])
            rows = min(end - begin, 1 + MOST_PROBABILITIES // (1 + len(self.labels)))
            if len(learned := np.flatnonzero(learns[begin : begin + rows])):
                rows = int(learned[0]) + 1  # those before which the tree stays as it is
            p = np.empty((rows, len(self.labels)))
            labels = np.tile(self.labels, (rows, 1))
            self.candidate_probabilities(batch_ops.cut(batch, begin, begin + rows), 0, rows, labels, p)
            distributions[begin : begin + rows] = [(self.labels, of_row) for of_row in p]
            self.process_rows(batch, label, learns, begin, begin + rows, predictions)
            begin += rows

    def candidate_probabilities(self, batch: Batch, begin: int, end: int, candidate: Int64s, p: Float64s) -> None:
        """Write the probabilities of candidates, int64[n, C], to `p`, float64[n, C]; 0 for those without a leaf."""
        nodes = len(self.tree.left)
        self.kernels.candidate_probabilities(
            self.tree, self.weights, self.settings, batch, begin, end, self.scratch(batch),
            np.full(nodes, -1, np.int64), np.empty(nodes), candidate, p,
        )  # fmt: skip
