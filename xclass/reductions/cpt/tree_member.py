"""Combine one conditional probability tree with its regressors, behind one interface for binary and wide nodes."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...binary import adagrad, gd, tagged_words
from ...data.batch import Batch
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from . import beam_search, binary_nodes, label_tree, node_scores, tree_search, wide_nodes
from .binary_nodes import DEEPEST, NODES, Scratch, Settings

MOST_BYTES_PER_FILE_BYTE = 10  # bytes of scratch that a loaded tree may need per byte of the file
ALWAYS_ALLOWED_BYTES = 1 << 26  # bytes of scratch that any loaded tree may need
PLACE_BYTES, LEVEL_BYTES = 8, 20  # of the scratch of a binary tree, per level: for each feature, and for the node
LEVELS_TO_GROW = 8  # levels by which the tree may grow before new buffers are needed
USUAL_FEATURES = 256  # of an example, assumed when the scratch is estimated


class Member:
    """Hold one tree of the ensemble, its weight table and the kernels for its kind of nodes.

    Parameters
    ----------
    labels : number of labels to reserve capacity for
    bits : log2 of the number of slots of its weight table
    kind : code of the loss function, see `loss.CODES`
    rule : options of the binary learner
    settings : options for the kernels
    arity : branches of a node, a power of two
    seed : seed for the random choices when labels are inserted
    doublings : how often the weight table may be doubled
    weights_only : whether the tree only predicts and its weight table is not inspected

    Attributes
    ----------
    tree : replaced by a larger one when it is full
    new_weights : returns an empty weight table
    random : uint64[1], state of the generator
    leaves : int64[labels], leaves in the order of their labels, computed when it is needed
    """

    def __init__(
        self,
        labels: int,
        bits: int,
        kind: int,
        rule: gd.Options,
        settings: Settings,
        arity: int,
        seed: int,
        doublings: int = 0,
        weights_only: bool = False,
    ) -> None:
        self.tree = label_tree.empty_tree(labels)
        tagged = rule.layout == "tagged"
        self.new_weights = partial(
            adagrad.new_weights, bits, kind, rule.learning_rate, rule.sgd, tagged, doublings, weights_only
        )
        self.weights = self.new_weights()
        self.settings = settings
        self.levels = arity.bit_length() - 1  # levels of the binary tree in one node
        self.kernels = binary_nodes if arity == 2 else wide_nodes
        self.random = np.array([seed], np.uint64)
        self.leaves = np.empty(0, np.int64)
        self._kept_scratch: Scratch | None = None  # buffers for a batch of a single example, see `_fits`

    @cached_property
    def _learn_kernel(self) -> DirectCall:
        """Return the kernel that learns a batch."""
        return DirectCall(self.kernels, "learn_batch")

    def _fits(self, batch: Batch, scratch: Scratch | None) -> bool:
        """Return whether buffers suffice for a batch and the tree as it is now."""
        return (
            scratch is not None
            and batch.most_features <= len(scratch.h)
            and int(self.tree.size[DEEPEST]) + LEVELS_TO_GROW // 2 <= len(scratch.path)
            and len(scratch.beam.fetched) == self.settings.beam
            and self._waiting(len(scratch.path)) <= len(scratch.waiting.node)
        )

    def _waiting(self, levels: int) -> int:
        """Return the number of nodes of `Scratch.waiting` for a tree of at most `levels` levels."""
        return len(self.tree.left) + levels if self.settings.exact else 0

    def scratch(self, batch: Batch) -> Scratch | wide_nodes.Scratch:
        """Return buffers for one thread and a batch; they have space for some growth of the tree."""
        most_features = batch.most_features
        levels = int(self.tree.size[DEEPEST]) + LEVELS_TO_GROW
        if self.kernels is wide_nodes:
            return wide_nodes.scratch(self.levels, most_features, levels)
        return Scratch(
            np.empty(most_features, np.uint64), np.empty(most_features, np.float32),
            np.empty(most_features, np.float32),
            np.empty(most_features * levels, np.int64),
            np.empty(levels, np.int64), np.empty(levels, np.float32), np.empty(levels),
            tree_search.new_waiting(self._waiting(levels)),
            beam_search.new_beam(self.settings.beam, most_features), node_scores.new_memo(most_features),
        )  # fmt: skip

    def check_memory(self, name: str) -> None:
        """Refuse a loaded tree, stored as the array `name`, if a thread needs far more memory for it than the file has.

        Trees that grow here stay shallow with wide nodes, because a block fills up before others begin below it.

        Raises
        ------
        ModelError
            if the tree is too deep.
        """
        depth = int(self.tree.size[DEEPEST])
        if self.kernels is wide_nodes:
            needed = wide_nodes.path_bytes(self.levels, depth)
        else:
            needed = depth * (PLACE_BYTES * USUAL_FEATURES + LEVEL_BYTES)
        stored = label_tree.NODE_BYTES * len(self.tree.left)
        if needed > max(MOST_BYTES_PER_FILE_BYTE * stored, ALWAYS_ALLOWED_BYTES):
            raise stored_arrays.unfit(
                name, f"it is {depth} levels deep, for which every thread would need {needed / 2**20:.0f} MB"
            )

    def learn_batch(
        self,
        batch: Batch,
        label: Int64s,
        learns: Bools,
        begin: int,
        end: int,
        predictions: binary_nodes.Predictions,
    ) -> None:
        """Predict the examples begin..end-1 and learn from them, in order, enlarging the tree if it is full.

        Parameters
        ----------
        label : int64[n], 0 for examples without a label
        learns : bool[n], whether to learn from the example
        predictions : arrays of this tree, rows begin..end-1 are written
        """
        single = batch.n == 1
        fits = single and self._fits(batch, self._kept_scratch)
        while True:
            scratch = self._kept_scratch if fits else self.scratch(batch)  # for the tree as deep as it is now
            if single and isinstance(scratch, Scratch):
                self._kept_scratch = scratch
            begin = self._learn_kernel(
                self.tree, self.weights, self.settings, self.random, batch, label, learns, begin, end,
                scratch, predictions,
            )  # fmt: skip
            if begin >= end:
                return
            fits = False
            if tagged_words.is_full(self.weights.words):
                self.weights = self.weights._replace(words=tagged_words.doubled(self.weights.words))
            if not label_tree.has_capacity(self.tree):
                self.tree = label_tree.with_double_capacity(self.tree)

    def learn_batch_with_probabilities(
        self,
        batch: Batch,
        label: Int64s,
        learns: Bools,
        begin: int,
        end: int,
        predictions: binary_nodes.Predictions,
        distributions: list[tuple[Int64s, Float64s]],
    ) -> None:
        """Do what `learn_batch` does, and list the probabilities of all labels before each example is learned.

        Parameters
        ----------
        distributions : items begin..end-1 are set to what `all_probabilities` returns
        """
        scratch = self.scratch(batch)
        for i in range(begin, end):
            distributions[i] = self.all_probabilities(batch, i, scratch)
            self.learn_batch(batch, label, learns, i, i + 1, predictions)

    def all_probabilities(self, batch: Batch, i: int, scratch: Scratch | wide_nodes.Scratch) -> tuple[Int64s, Float64s]:
        """Return the probabilities of all labels for example i.

        Returns
        -------
        labels : int64[labels], in order
        p : float64[labels]
        """
        nodes = int(self.tree.size[NODES])
        if self.leaves.size != (nodes + 1) // 2:
            leaves = np.flatnonzero(self.tree.left[:nodes] == 0)
            self.leaves = leaves[np.argsort(self.tree.label[leaves])]
        mass = np.empty(len(self.tree.left))
        self.kernels.all_probabilities(self.tree, self.weights, self.settings, batch, i, scratch, mass)
        return self.tree.label[self.leaves], mass[self.leaves]

    def candidate_probabilities(self, batch: Batch, begin: int, end: int, candidate: Int64s, p: Float64s) -> None:
        """Compute the probabilities of given candidates for the examples begin..end-1.

        Parameters
        ----------
        candidate : int64[n, C], labels or 0
        p : float64[n, C], written; 0 for labels that the tree lacks
        """
        nodes = len(self.tree.left)
        self.kernels.candidate_probabilities(
            self.tree, self.weights, self.settings, batch, begin, end, self.scratch(batch),
            np.full(nodes, -1, np.int64), np.empty(nodes), candidate, p,
        )  # fmt: skip
