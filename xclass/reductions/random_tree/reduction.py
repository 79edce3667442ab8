"""Route examples down a balanced binary tree with the labels in random order, and update its routers.

Source    the baseline "Rtree" of Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015.
Cost      learn and predict O(s log K) for an example of s features; O(K) memory in addition to the weights.
Names     K labels | the tree is a heap: node a has the children 2 a + 1 and 2 a + 2, the inner nodes are 0..K-2 and
          the leaves K-1..2 K-2 | a leaf's number counts from 0 at node K-1.
Differs   from the paper in nothing.
Idea      Each of the K - 1 inner nodes has a router, which learns whether the label lies left (-1) or right (1). An
          example updates the routers above its label; a prediction follows the routers from the root to a leaf.
          `--random_seed` draws the order of the labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int, Int32s, Int64s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import rng
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ...options.declare import option
from ...options.relations import refused
from ..core import tree_routers
from ..core.base import Learner, Reduction
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec

DRAW_VALUES = 8388608.0  # number of distinct values of `rng.draw`
LOSS, RATE = "squared", 0.5
ORDER_BYTES = 8  # bytes of Order per label


@dataclass(frozen=True)
class Options:
    """Declare the option of the random tree."""

    random_tree: int = option(
        "number of classes; labels are 1..K", kind=int, metavar="K", minimum=1, maximum=2**28, stored=True
    )

    RULES = (
        *tree_routers.RULES,
        refused("vw_exact", "cannot be combined with --random_tree, which VW does not have: leave one of them out"),
    )


class Order(NamedTuple):
    """Map leaves to labels and labels to leaves."""

    label: Int32s  # int32[K], label of each leaf
    leaf: Int32s  # int32[K], leaf of each label


class Predictions(NamedTuple):
    """Hold the predictions for a batch of n examples and the routers on their paths."""

    predicted: Int64s  # int64[n], predicted class, from 1
    node: Int64s  # int64[n, levels], nodes on the path; int64[0, levels] if scores are not requested
    score: Float32s  # float32[n, levels], their scores; float32[0, levels] likewise
    size: Int64s  # int64[n], number of routers on the path


# -- kernels


@bare
def shuffle(random: UInt64s, order: Order) -> None:
    """Draw a uniformly random order of the labels (Fisher-Yates).

    Parameters
    ----------
    random : uint64[1], state of the generator, written
    order : written
    """
    classes = order.label.shape[0]
    for i in range(classes):
        order.label[i] = i
    for i in range(classes - 1, 0, -1):
        upper = np.float64(rng.draw(random)) * DRAW_VALUES
        j = np.int64(
            (upper * DRAW_VALUES + np.float64(rng.draw(random)) * DRAW_VALUES) / (DRAW_VALUES * DRAW_VALUES) * (i + 1)
        )
        order.label[i], order.label[j] = order.label[j], order.label[i]
    for i in range(classes):
        order.leaf[order.label[i]] = i


@bare
def router_below(parent_router: Int, a: Int, vw_layout: bool) -> Int:
    """Return the number of the router at node a, given that of its parent.

    Parameters
    ----------
    parent_router : router of the parent; -1 if a is the root
    a : node
    vw_layout : whether routers are numbered like nodes, as with layout `vw`; otherwise see `tree_routers`
    """
    if vw_layout:
        return a
    if parent_router < 0:
        return np.int64(9)
    q = 2 * (parent_router & 7) + (0 if a & 1 else 1)  # left children are odd
    if q < 8:
        return (parent_router & ~np.int64(7)) + q
    return 8 * (8 * ((parent_router >> 3) - 1) + q - 6) + 1  # blocks are a heap of eight children each


@bare
def _prefetch_walk(regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, size: int, inner: Int) -> None:
    """Descend with the first `size` examples of the group at the same time, so that their cache misses overlap.

    Each example goes down until it enters a new block, prefetches it and lets the next example go on. `scratch.at`
    receives the leaf of each example.
    """
    for g in range(size):
        scratch.at[g] = 0
        scratch.other[g] = -1
        tree_routers.locate_block(regressors, scratch, g, 1)
    walking = inner > 0
    while walking:
        walking = False
        for g in range(size):
            a, router = scratch.at[g], scratch.other[g]
            while a < inner:
                router = router_below(router, a, False)
                if router >> 3 != scratch.block[g]:
                    tree_routers.locate_block(regressors, scratch, g, router >> 3)
                    walking = True
                    break
                scratch.other[g] = router
                a = 2 * a + (1 if tree_routers.score(regressors, scratch, g, router) < ZERO else 2)
            scratch.at[g] = a


@bare
def _prefetch_path(
    regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, g: int, leaf: Int, inner: Int
) -> None:
    """Prefetch the weights of the routers above a leaf for example g."""
    top = inner + leaf + 1
    depth = _depth(top)
    router: Int = np.int64(-1)
    for level in range(depth):
        before = router >> 3
        router = router_below(router, (top >> (depth - level)) - 1, False)
        if router >> 3 != before:
            tree_routers.prefetch_block(regressors, scratch, g, router >> 3)


@bare
def _depth(top: Int) -> int:
    """Return the number of levels above node `top - 1`: the number of binary digits of `top`, minus 1."""
    depth = 0
    while (top >> (depth + 1)) > 0:
        depth += 1
    return depth


@bare
def predict(
    regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, g: int, inner: Int
) -> tuple[Int, int]:
    """Route example g to a leaf; return the leaf and the number of routers on the path.

    `scratch.node` and `scratch.score` receive the path.
    """
    a = np.int64(0)
    level = 0
    router: Int = np.int64(-1)
    while a < inner:
        router = router_below(router, a, regressors.vw_layout)
        s = tree_routers.score(regressors, scratch, g, router)
        scratch.node[level] = a
        scratch.score[level] = s
        level += 1
        a = 2 * a + (1 if tree_routers.routing_score(regressors, s) < ZERO else 2)
    return a - inner, level


@bare
def _learn(
    regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, g: int, known: int, leaf: Int, inner: Int,
    weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update the routers above a leaf with example g.

    The first `known` entries of `scratch.node` and `scratch.score` are the path of the prediction. Its scores are used
    again for the nodes that both paths share.
    """
    top = inner + leaf + 1  # the binary digits after the first are the directions from the root
    depth = _depth(top)
    router: Int = np.int64(-1)
    for level in range(depth):
        a = (top >> (depth - level)) - 1
        router = router_below(router, a, regressors.vw_layout)
        if level >= known or scratch.node[level] != a:
            known = 0
        s = scratch.score[level] if known > 0 else tree_routers.score(regressors, scratch, g, router)
        y = ONE if ((top >> (depth - level - 1)) & 1) == 1 else -ONE
        tree_routers.learn(regressors, scratch, g, router, s, y, weight, clock)


@bare
def learn_batch(
    order: Order, regressors: tree_routers.Routers, batch: Batch, label: Int64s, clock: Float64s, begin: int, end: int,
    scratch: tree_routers.GroupScratch, predictions: Predictions,
) -> None:  # fmt: skip
    """Predict examples begin..end-1 of a batch, and learn those that have a label.

    Parameters
    ----------
    order : labels of the leaves
    regressors : the routers, written
    batch : examples
    label : int64[n], 0-based labels, -1 for examples that are not learned from
    clock : float64[n], weight of the labelled examples up to and including this one
    begin, end : range of examples
    scratch : scratch, written
    predictions : predictions, written
    """
    inner = np.int64(order.label.shape[0] - 1)
    group = scratch.at.shape[0]
    for first in range(begin, end, group):
        size = min(group, end - first)
        reuse_walk = not regressors.vw_layout and predictions.node.shape[0] == 0
        for g in range(size):
            tree_routers.load(regressors, batch, first + g, scratch, g, label[first + g] >= 0)
            reuse_walk &= label[first + g] < 0
        if not regressors.vw_layout:
            _prefetch_walk(regressors, scratch, size, inner)
            for g in range(size):
                if label[first + g] >= 0:
                    _prefetch_path(regressors, scratch, g, np.int64(order.leaf[label[first + g]]), inner)
        for g in range(size):
            i = first + g
            if reuse_walk:
                predictions.predicted[i] = order.label[scratch.at[g] - inner] + 1
                continue
            leaf, known = predict(regressors, scratch, g, inner)
            predictions.predicted[i] = order.label[leaf] + 1
            predictions.size[i] = known
            if predictions.node.shape[0] > 0:
                for level in range(known):
                    predictions.node[i, level] = scratch.node[level]
                    predictions.score[i, level] = scratch.score[level]
            if label[i] >= 0:
                if regressors.vw_layout:
                    known = 0
                leaf = np.int64(order.leaf[label[i]])
                regressors.table.guard.now[0] = i
                _learn(regressors, scratch, g, known, leaf, inner, batch.weight[i], clock[i])


# -- Python


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    """Return {field: value} for options whose defaults depend on others."""
    return tree_routers.resolve_defaults(spec.binary, spec.options.random_tree, LOSS, RATE)


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    """Check the size of the arrays that depend on the number of routers, before their table is allocated.

    Raises
    ------
    ModelError
        if a model with layout `vw` does not have one sum per router.
    """
    if spec.binary.layout == "vw":
        stored_arrays.check_rows("weights.sums", arrays, max(1, spec.options.random_tree - 1))


def label_range(spec: LearnerSpec) -> tuple[int, int, str]:
    """Return lowest label, highest label and the option that sets them."""
    classes = spec.options.random_tree
    return 1, classes, f"--random_tree {classes}"


def new_order(classes: int, seed: int) -> Order:
    """Return the labels 0..classes-1 in an order drawn with a seed."""
    order = Order(np.empty(classes, np.int32), np.empty(classes, np.int32))
    shuffle(np.array([seed], np.uint64), order)
    return order


class RandomTree(Learner):
    """A learner that routes examples down a random tree.

    Attributes
    ----------
    classes : number of classes
    levels : upper bound of the number of routers on a path
    routers : the regressors of the inner nodes
    order : labels of the leaves
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.classes = spec.options.random_tree
        self.learner_options = spec.binary
        self.weights_only = spec.binary.predict_only_model
        self.levels = max(1, (2 * self.classes - 1).bit_length())
        self.routers = tree_routers.new_routers(
            spec.binary, self.classes - 1, spec.vw_exact, tree_bytes=ORDER_BYTES * self.classes
        )
        self.order = new_order(self.classes, spec.seed)
        self.largest_step = tree_routers.largest_step(self.routers)
        if self.routers.vw_layout:
            self.tables = [self.routers.table]
        self.keep_scores = spec.wanted.scores
        self.stages = [self._learn_batch]

    @property
    def rule(self) -> gd.Rule:  # type: ignore[override]  # read only here
        return self.routers.rule

    def end_pass(self) -> None:
        if self.routers.vw_layout:
            self.routers = self.routers._replace(rule=gd.after_pass(self.routers.rule, self.learner_options))

    # stages

    def _learn_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage; batches that are only predicted are split over threads."""
        batch = task.batch
        n = batch.n
        labelled = ~np.isnan(batch.label)
        label = self.classes_of(task, task.learned(), "random_tree", self.classes)
        rows = n if self.keep_scores else 0
        predictions = Predictions(
            np.empty(n, np.int64), np.empty((rows, self.levels), np.int64),
            np.empty((rows, self.levels), np.float32), np.empty(n, np.int64),
        )  # fmt: skip

        def job(begin: int, end: int) -> None:
            scratch = tree_routers.new_scratch(batch.most_features, self.levels)
            routers = tree_routers.guarded(self.routers, task)
            learn_batch(self.order, routers, batch, label, task.clock, begin, end, scratch, predictions)

        self.share(job, [(0, n)] if task.learn else self.thread_ranges(n))
        task.prediction = predictions.predicted.astype(np.float64)
        wrong = labelled & (task.prediction != batch.label)
        task.loss = np.where(wrong, batch.weight.astype(np.float64), 0.0)
        if self.keep_scores:
            on_path = np.arange(self.levels) < predictions.size[:, None]
            task.scores, task.score_labels = predictions.score[on_path], predictions.node[on_path]
            task.score_start = np.concatenate([[0], np.cumsum(predictions.size)])

    # model

    def arrays(self) -> dict[str, Stored]:
        return tree_routers.arrays(self.routers, self.weights_only)

    def facts(self) -> dict[str, Any]:
        return {"outside": self.outside}

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Restore a model; the order is drawn again from the seed, so no stored number is used as an index."""
        with stored_arrays.reject_unused(arrays, facts) as (arrays, facts):
            tree_routers.restore(self.routers, arrays, self.learner_options.resume, self.weights_only)
            self.outside = stored_arrays.take_fact("outside", facts, int, 0, stored_arrays.MAX_COUNT)


REDUCTION = Reduction(
    name="random_tree",
    title="Random tree",
    summary="a balanced tree of classes in random order; a baseline",
    options=Options,
    labels="multiclass",
    enabled="adagrad, random_tree",
    build=RandomTree,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    not_merged="merging is not implemented for this baseline",
    abilities=("describe", "explain", "inspect"),
)
