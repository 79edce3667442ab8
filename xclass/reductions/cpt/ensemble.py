"""Let several conditional probability trees learn from the same examples, and propose their most probable labels.

A tree and its regressors have one interface for binary and wide nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ...array_types import Bools, Float64s, Int64s, UInt32s
from ...binary import adagrad, document_frequency, gd, loss, tagged_words
from ...data import batch_ops
from ...data.batch import Batch
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from ..core import label_arrays, probabilities
from ..core.spec import LearnerSpec
from . import beam_search, binary_nodes, label_tree, node_scores, tree_search, wide_nodes
from .binary_nodes import DEEPEST, NODES, BinaryNodeScratch, TreePredictions, TreeSettings
from .options import BRANCH_BYTES, CptOptions, table_bits

_find = DirectCall(tagged_words, "mark_known")
MOST_RESERVED = 1 << 20  # labels for which trees reserve space at first
FEWEST_LEAVES = 2  # without which the root has no regressor
MOST_BYTES_PER_FILE_BYTE = 10  # bytes of scratch that a loaded tree may need per byte of the file
ALWAYS_ALLOWED_BYTES = 1 << 26  # bytes of scratch that any loaded tree may need
MOST_PROBABILITIES = 1 << 16  # labels times examples that are computed at a time, if nothing is learned in between
LEVELS_TO_GROW = 8  # levels by which the tree may grow before new buffers are needed

Share = Callable[..., None]  # see `Reduction.share`
# for each tree and example, all labels in order and their probabilities; no items for trees that are not searched
Distributions = list[list[tuple[Int64s, Float64s]]]


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
        predictions: TreePredictions,
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
        predictions: TreePredictions,
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


@dataclass
class TreePlan:
    """Hold what the trees need to know about n examples, and what they write."""

    batch: Batch
    weighted: document_frequency.Weighted
    label: Int64s  # see `label_arrays.span`
    learns: Bools  # bool[n]
    output: TreePredictions  # of all trees
    distributions: Distributions | None  # None unless all probabilities are wanted

    def batch_of(self, t: int) -> Batch:
        """Return what tree t sees."""
        return (self.weighted.batch, self.batch)[t % binary_nodes.FORMS]

    @property
    def class_lists(self) -> probabilities.ClassLists | None:
        """Return the listing of all labels with the mean of their probabilities over the trees, None if not wanted.

        A label that a tree lacks has probability 0 there. Trees without labels, as those not searched, do not count.
        """
        if self.distributions is None:
            return None
        labels, masses, sizes = [np.empty(0, np.int64)], [np.empty(0)], [0]
        for pairs in zip(*self.distributions, strict=True):
            pairs = tuple(pair for pair in pairs if len(pair[0])) or pairs[:1]
            label = pairs[0][0]
            if not all(np.array_equal(label, tree_labels) for tree_labels, _ in pairs):
                label = np.unique(np.concatenate([tree_labels for tree_labels, _ in pairs]))
                pairs = tuple((label, _aligned(label, *pair)) for pair in pairs)
            p = np.mean([p for _, p in pairs], axis=0)
            labels += [label, np.zeros(1, np.int64)]
            masses += [p, np.array([0.0 if len(label) else 1.0])]
            sizes.append(len(label) + 1)
        return probabilities.ClassLists(
            np.concatenate(masses).astype(np.float32), np.concatenate(labels).astype(np.int64), np.cumsum(sizes)
        )


class TreeEnsemble:
    """Hold conditional probability trees (`members`), which differ by the noise where they insert labels.

    `cut` is that of `TreeSettings`, and `capacity` the number of labels for which each tree reserves space at first.
    """

    def __init__(self, spec: LearnerSpec, cut: float) -> None:
        o: CptOptions = spec.options
        kind = loss.CODES[spec.binary.loss_function]
        settings = TreeSettings(
            alpha={"balanced": 1.0, "random": binary_nodes.RANDOM}.get(o.cpt_tree, o.cpt_alpha),
            noise=np.float32(0),
            unit=o.normalize_features != "none",
            beam=o.beam,
            exact=o.exact,
            search=o.cpt_report == "argmax",
            cut=cut,
        )
        self.capacity = min(o.cpt, MOST_RESERVED)
        self.members = [
            Member(
                self.capacity, table_bits(o, spec.binary.bits)[0], kind, spec.binary,
                settings._replace(noise=np.float32(o.tree_noise if t > 0 else 0.0)), o.cpt_arity,
                (spec.seed + t) % 2**64, o.max_doublings or 0, spec.weights_only, o.momentum or 0.0,
            )
            for t in range(o.trees)
        ]  # fmt: skip

    def __len__(self) -> int:
        return len(self.members)

    def place(self, trees: list[label_tree.ClassTree]) -> None:
        """Replace the trees, which have learned nothing yet."""
        for member, tree in zip(self.members, trees, strict=True):
            member.tree = tree

    def new_predictions(self, n: int, k: int) -> TreePredictions:
        return binary_nodes.new_predictions(len(self), n, k=k)

    def propose(self, share: Share, plan: TreePlan, ranges: list[tuple[int, int]], count: int) -> None:
        """Let the first `count` trees predict the examples of some ranges (begin, end) and learn from them."""
        by_tree = [plan.output.of_tree(t) for t in range(count)]

        def propose(t: int, begin: int, end: int) -> None:
            member, given = self.members[t], (plan.batch_of(t), plan.label, plan.learns, begin, end, by_tree[t])
            if plan.distributions is None:
                member.process_rows(*given)
            else:
                member.process_rows_with_probabilities(*given, plan.distributions[t])

        share(propose, [(t, a, b) for a, b in ranges for t in range(count)], plan.batch.n)

    def vote(
        self, share: Share, plan: TreePlan, output: TreePredictions, best: int, ranges: list[tuple[int, int]]
    ) -> tuple[Int64s, Float64s]:
        """Return the `best` most probable labels of several trees, and their mean probabilities.

        Each tree scores what the others propose for the examples of the ranges; without any, for none.
        """
        trees, n, k = output.top.shape
        candidate = np.empty((n, trees * k), np.int64)
        binary_nodes.union_of_candidates(output.top, candidate)
        p = np.empty((trees, n if ranges else 0, trees * k))

        def score(t: int, begin: int, end: int) -> None:
            self.members[t].candidate_probabilities(plan.batch_of(t), begin, end, candidate, p[t])

        share(score, [(t, a, b) for a, b in ranges for t in range(trees)], n)
        top, top_p = np.zeros((n, best), np.int64), np.zeros((n, best))
        binary_nodes.vote(output.top, output.top_p, candidate, p, bool(ranges), top, top_p)
        return top, top_p

    def find(self, feature: UInt32s) -> Bools | None:
        """Return bool[z], whether the root of the first tree has learned each feature; None without a root."""
        member, found = self.members[0], np.zeros(len(feature), bool)
        if member.tree.leaves[0] < FEWEST_LEAVES:
            return None
        _find(member.weights.words, feature, *member.blocks_of_root, found)
        return found

    def have(self, label: Int64s, count: int) -> Bools:
        """Return whether each of the first `count` trees has a leaf of each label."""
        known = np.ones(len(label), bool)
        leaf = np.empty(len(label), np.int64)
        for member in self.members[:count]:
            label_tree.find_all(member.tree, label, leaf)
            known &= leaf >= 0
        return known

    def serialize(self, archive: Archive) -> None:
        """Save or restore the trees; the functions called here say what their checks protect."""
        random = np.concatenate([member.random for member in self.members])
        archive.fill("random", random)
        for t, member in enumerate(self.members):
            member.tree = label_tree.serialize(archive, f"tree.{t}", member.tree)
            if not archive.saves:
                member.check_memory(f"tree.{t}.left")
            words = tagged_words.serialize(archive, f"weights.{t}", member.weights.words)
            member.weights = member.weights._replace(words=words)
            member.random[0] = random[t]


def _aligned(label: np.ndarray, own: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the probabilities of `label`, 0 for those not in `own`; both arrays are ascending."""
    extended = np.zeros(len(label))
    extended[np.searchsorted(label, own)] = p
    return extended
