"""Route examples down a balanced binary tree with the labels in random order, and update its routers.

Source    the baseline "Rtree" of Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015.
Cost      learn and predict O(s log K) for an example of s features; O(K) memory in addition to the weights.
Names     K labels | the tree is a heap: node a has the children 2 a + 1 and 2 a + 2, the inner nodes are 0..K-2 and
          the leaves K-1..2 K-2 | a leaf's number counts from 0 at node K-1.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * routers learn squared loss by AdaGrad from scaled examples
Idea      Each of the K - 1 inner nodes has a router, which learns whether the label lies left (-1) or right (1). An
          example updates the routers above its label; a prediction follows the routers from the root to a leaf.
          `--random_seed` draws the order of the labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int, Int32s, Int64s, UInt64s
from ...data.batch import Batch
from ...kernels import rng
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import OptionGroup, option, refused
from ..core import label_arrays, tree_routers
from ..core.base import UNSUITED, ReductionRecord
from ..core.contract import BatchTask
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec

DRAW_VALUES = 8388608.0  # number of distinct values of `rng.draw`
LOSS, RATE = "squared", 0.5
ORDER_BYTES = 8  # bytes of Order per label


class RandomTreeOptions(OptionGroup):
    random_tree: int = option("number of classes; labels are 1..K", metavar="K", minimum=1, maximum=2**28, stored=True)

    RULES = (
        *tree_routers.RULES,
        refused("vw_exact", "cannot be combined with --random_tree, which VW does not have: leave one of them out"),
    )


class Order(NamedTuple):
    """Map leaves to labels and labels to leaves."""

    label: Int32s  # int32[K], label of each leaf
    leaf: Int32s  # int32[K], leaf of each label


class RandomTreePredictions(NamedTuple):
    """Hold the predictions for a batch of n examples and the routers on their paths."""

    predicted: Int64s  # int64[n], predicted class, from 1
    node: Int64s  # int64[n, levels], nodes on the path; int64[0, levels] if scores are not requested
    score: Float32s  # float32[n, levels], their scores; float32[0, levels] likewise
    size: Int64s  # int64[n], number of routers on the path


# -- kernels


@bare
def shuffle(random: UInt64s, order: Order) -> None:
    """Draw a uniformly random order of the labels (Fisher-Yates)."""
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
    """Return the number of the router at node a, given that of its parent, -1 for the root.

    With `vw_layout`, routers are numbered like nodes; otherwise see `tree_routers`.
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
def _depth(top: Int) -> int:
    """Return the number of levels above node `top - 1`: the number of binary digits of `top`, minus 1."""
    depth = 0
    while (top >> (depth + 1)) > 0:
        depth += 1
    return depth


@bare
def predict(regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, inner: Int) -> tuple[Int, int]:
    """Route the loaded example to a leaf; return the leaf and the number of routers on the path.

    `scratch.node` and `scratch.score` receive the path.
    """
    a = np.int64(0)
    level = 0
    router: Int = np.int64(-1)
    while a < inner:
        router = router_below(router, a, regressors.vw_layout)
        s = tree_routers.score(regressors, scratch, 0, router)
        scratch.node[level] = a
        scratch.score[level] = s
        level += 1
        a = 2 * a + (1 if tree_routers.routing_score(regressors, s) < ZERO else 2)
    return a - inner, level


@bare
def _learn(
    regressors: tree_routers.Routers, scratch: tree_routers.GroupScratch, known: int, leaf: Int, inner: Int,
    weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update the routers above a leaf with the loaded example.

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
        s = scratch.score[level] if known > 0 else tree_routers.score(regressors, scratch, 0, router)
        y = ONE if ((top >> (depth - level - 1)) & 1) == 1 else -ONE
        tree_routers.learn(regressors, scratch, 0, router, s, y, weight, clock)


@bare
def process_batch(
    order: Order, regressors: tree_routers.Routers, batch: Batch, label: Int64s, clock: Float64s, begin: int, end: int,
    scratch: tree_routers.GroupScratch, predictions: RandomTreePredictions,
) -> None:  # fmt: skip
    """Predict examples begin..end-1 of a batch, and learn those that have a label.

    `label` is int64[n], 0-based, -1 for examples that are not learned from, and `clock` float64[n], weight of the
    labelled examples up to and including this one.
    """
    inner = np.int64(order.label.shape[0] - 1)
    for i in range(begin, end):
        tree_routers.load(regressors, batch, i, scratch, 0, label[i] >= 0)
        leaf, known = predict(regressors, scratch, inner)
        predictions.predicted[i] = order.label[leaf] + 1
        predictions.size[i] = known
        if predictions.node.shape[0] > 0:
            for level in range(known):
                predictions.node[i, level] = scratch.node[level]
                predictions.score[i, level] = scratch.score[level]
        if label[i] >= 0:
            if regressors.vw_layout:
                known = 0
            regressors.table.guard.now[0] = i
            _learn(regressors, scratch, known, np.int64(order.leaf[label[i]]), inner, batch.weight[i], clock[i])


# -- Python


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    return tree_routers.resolve_defaults(spec.binary, spec.options.random_tree, LOSS, RATE)


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    tree_routers.check_arrays(spec, arrays, spec.options.random_tree - 1)


def new_order(classes: int, seed: int) -> Order:
    """Return the labels 0..classes-1 in an order drawn with a seed."""
    order = Order(np.empty(classes, np.int32), np.empty(classes, np.int32))
    shuffle(np.array([seed], np.uint64), order)
    return order


class RandomTree(tree_routers.RoutedLearner):
    """Route examples down a random tree; `levels` is an upper bound of the number of routers on a path."""

    def __init__(self, spec: LearnerSpec) -> None:
        self.classes = spec.options.random_tree
        super().__init__(spec, self.classes - 1, ORDER_BYTES * self.classes)
        self.levels = max(1, (2 * self.classes - 1).bit_length())
        self.order = new_order(self.classes, spec.seed)
        self.keep_scores = spec.scores
        self.stages = [self._process_batch]

    # stages

    def _process_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage; batches that are only predicted are split over threads."""
        batch = task.batch
        n = batch.n
        label = self.classes_of(task, task.learned(), "random_tree", self.classes)
        rows = n if self.keep_scores else 0
        predictions = RandomTreePredictions(
            np.empty(n, np.int64), np.empty((rows, self.levels), np.int64),
            np.empty((rows, self.levels), np.float32), np.empty(n, np.int64),
        )  # fmt: skip

        def job(begin: int, end: int) -> None:
            scratch = tree_routers.new_scratch(batch.most_features, self.levels)
            routers = tree_routers.guarded(self.routers, task)
            process_batch(self.order, routers, batch, label, task.clock, begin, end, scratch, predictions)

        self.share(job, [(0, n)] if task.learn else self.thread_ranges(n))
        task.prediction = predictions.predicted.astype(np.float64)
        task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        if self.keep_scores:
            on_path = np.arange(self.levels) < predictions.size[:, None]
            start = np.concatenate([[0], np.cumsum(predictions.size)])
            task.scored = ClassLists(predictions.score[on_path], predictions.node[on_path], start)

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; the order is drawn again from the seed, so no number is used as an index."""
        tree_routers.serialize(archive, self.routers, self.learner_options)
        self.outside = archive.count("outside", self.outside)


REDUCTION = ReductionRecord(
    name="random_tree",
    title="Random tree",
    summary="a balanced tree of classes in random order; a baseline",
    options=RandomTreeOptions,
    enabled="adagrad, random_tree",
    build=RandomTree,
    resolve_defaults=resolve_defaults,
    check_arrays=check_arrays,
    not_merged="merging is not implemented for this baseline",
    dense=UNSUITED,
)
