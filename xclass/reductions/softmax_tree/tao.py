"""Train a softmax tree by tree alternating optimisation (TAO), one node after the other.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: algorithm 1, sections 4 and 4.1.
Idea      The objective is (1)  sum_n c_n L(y_n, x_n)  +  alpha (sum over routers |w|_1  +  sum over leaves |W|_1), with
          L the loss that --zero_loss chooses. With `beta` it is the cross-entropy, or --beta if the leaf lacks the
          class of the row. With `01` it is 0 for a correct prediction and 1 for a wrong one; leaves still minimise the
          cross-entropy with the penalty. `remove` is like `beta`, but rows whose leaf lacks their class do not count,
          and a router does not learn from rows whose class is missing on one of its sides.
          An iteration goes from the deepest level to the root; the nodes of a level are independent of each other. A
          leaf takes the k classes of largest weight among its rows and is fitted, starting from its weights
          (problem (3), `leaf_sgd` or `leaf_exact`). A router learns to send each of its rows to the side on which the
          loss of the row is smaller, where the row is weighted by the difference; rows without a difference are left
          out (problem (2), `router_logistic`). The objective can rise, because a router minimises a convex surrogate
          of its part of it. In the first iteration rows are in the leaves assigned to them, not where routers send
          them.
Cost      A pass over all rows per level of the tree and iteration, and the fits of the nodes.
Names     n rows | F features | k classes of a leaf | a node is a number, 0 the root
Differs   from the paper (docs/papers.md says why, and what it costs):
          * intercepts have no penalty
          * a router without a row whose loss differs on its two sides keeps its weights
          * with `--zero_loss 01` the objective leaves the penalty of the leaves out
          * there are up to four iterations, fewer if the objective hardly falls or rises
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int32s, Int64s, UInt32s
from ..clusters.two_means import Share
from . import inference, leaf_exact, leaf_sgd, newton_step, router_logistic, row_store, softmax_nodes

FIRST_TOLERANCE, LATER_TOLERANCE = 1e-2, 1e-3  # tolerance of `leaf_exact`, in the first iteration and later

Sides = tuple[Float64s, Float64s]  # losses of rows on the left and on the right of their router, float64[n] each


class TaoSettings(NamedTuple):
    alpha: float  # L1 penalty
    leaf_classes: int  # most classes of a leaf
    zero_loss: str  # 01, beta or remove
    beta: float
    iterations: int
    intercept: bool
    solver: str = "exact"  # solver of leaves: "steps" (`leaf_sgd`) or "exact" (`leaf_exact`)
    passes: int = leaf_sgd.PASSES  # passes of `leaf_sgd` in the first iteration
    seed: int = 0
    tolerance: float = 0.0  # share of the objective by which an iteration has to lower it for another one to follow
    l2: float = 0.0  # L2 penalty of a single softmax, fitted by `steps`
    halved: bool = True  # later iterations make half as many passes


class TaoReport(NamedTuple):
    number: int
    objective: float
    error: float  # weight of the misclassified rows, as a share of all
    covered: float  # weight of the rows whose leaf has their class, as a share of all
    nonzeros: int
    seconds: float


class Trainer:
    """Fit a tree to rows.

    Parameters
    ----------
    tree : initial tree, which is changed
    share : `share(job, items)` calls `job(*item)` for all items, on any number of threads
    stopped : called before every level and every node; True ends the training
    node_done : called after every node
    """

    def __init__(
        self, rows: row_store.FeatureRows, features: int, tree: softmax_nodes.SoftmaxNodes, settings: TaoSettings,
        share: Share, stopped: Callable[[], bool] = lambda: False, node_done: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.rows, self.features, self.tree, self.settings = rows, features, tree, settings
        self._share, self._stopped, self._node_done = share, stopped, node_done
        self.total = float(rows.weight.sum())
        self.results: inference.WalkResult | None = None  # of all rows after the last iteration

    # losses

    def losses(self, results: inference.WalkResult) -> Float64s:
        """Return L of every row (float64[n]), infinite for rows that `remove` excludes."""
        if self.settings.zero_loss == "01":
            wrong: Bools = results.predicted != self.rows.label
            return wrong.astype(np.float64)
        missing = np.inf if self.settings.zero_loss == "remove" else self.settings.beta
        return np.where(np.isnan(results.log_p), missing, -results.log_p)

    def objective(self, results: inference.WalkResult) -> float:
        loss = self.losses(results)
        known = np.isfinite(loss)
        penalty = self.tree.penalty(self.settings.zero_loss != "01")
        return float((self.rows.weight * np.where(known, loss, 0.0)).sum()) + self.settings.alpha * penalty

    # training

    def run(self, leaf_of: Int32s | None, report: Callable[[TaoReport], None]) -> None:
        """Run all iterations.

        `leaf_of` is int32[n], leaf (its node) assigned to each row, or None if the routers decide.
        """
        start_time = time.perf_counter()
        first = leaf_of is not None
        last_objective = np.inf
        numbers = self.tree.leaves()
        s = self.settings
        for number in range(1, s.iterations + 1):
            if self._stopped():
                return
            if not first:
                output = self.results or softmax_nodes.walk(self.tree, self.rows, self._share)
                leaf_of = np.array(numbers, np.int32)[output.leaf]
            assert leaf_of is not None
            self._iterate(leaf_of, first)
            output = self.results = softmax_nodes.walk(self.tree, self.rows, self._share)
            objective = self.objective(output)
            weight = self.rows.weight
            error = float(weight[output.predicted != self.rows.label].sum()) / self.total
            covered = float(weight[~np.isnan(output.log_p)].sum()) / self.total
            seconds = time.perf_counter() - start_time
            report(TaoReport(number, objective, error, covered, self.tree.nonzeros(), seconds))
            if len(self.tree.left) == 1 or (
                s.tolerance > 0.0 and last_objective - objective <= s.tolerance * abs(objective)
            ):
                return  # a tree of one leaf is a softmax, a convex problem, which one iteration has solved
            last_objective, first = objective, False

    def _iterate(self, leaf_of: Int32s, first: bool) -> None:
        """Update every node once."""
        tree = self.tree
        node_rows = self._rows_of_nodes(leaf_of)
        sides = None  # those of the level below
        for level in reversed(tree.levels()):
            if self._stopped():  # before all rows are routed for this level's routers
                return
            routers = [i for i in level if tree.left[i] >= 0]
            sides = self._both_sides(routers, node_rows, sides) if routers else None
            # Large nodes come first, so that the threads end together.
            nodes = sorted(level, key=lambda i: -len(node_rows[i]))
            job = functools.partial(self._fit, sides, first, len(level) == 1)
            self._share(job, [(i, node_rows[i]) for i in nodes])

    def _fit(self, sides: Sides | None, first: bool, only: bool, i: int, rows: Int64s) -> None:
        """Fit node i to its rows; `only` if no other node is in progress."""
        if self._stopped():
            return
        if self.tree.left[i] >= 0:
            assert sides is not None  # a level with a router has them
            self.tree.contents[i] = self._router(i, rows, sides)
        else:
            self.tree.contents[i] = self._leaf(i, rows, first, only)
        self._node_done()

    def _both_sides(self, routers: list[int], node_rows: dict[int, Int64s], below: Sides | None) -> Sides:
        """Return the losses of the rows under some routers on their two sides.

        A row is under one of the two children of its router. If this child is a router too, the row's losses on its two
        sides are those of the level below, and only the side to which it now sends the row has to be found. If this
        child is a leaf, and for the other child, the loss is found by routing the row.
        """
        tree, rows = self.tree, self.rows
        n = len(rows.label)
        prepared = inference.prepare(softmax_nodes.to_arrays(tree))
        near, far = np.zeros(n, np.int32), np.zeros(n, np.int32)
        on_right, to_walk, to_step = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool)
        for i in routers:
            for child, other in ((tree.left[i], tree.right[i]), (tree.right[i], tree.left[i])):
                child_rows = node_rows[child]
                near[child_rows], far[child_rows], on_right[child_rows] = child, other, child == tree.right[i]
                (to_walk if tree.left[child] < 0 else to_step)[child_rows] = True
        own_loss = np.zeros(n)
        if to_walk.any():
            own_loss = self.losses(softmax_nodes.walk(tree, rows, self._share, near, to_walk, prepared))
        if to_step.any():
            assert below is not None
            goes_right = softmax_nodes.sides(prepared, rows, self._share, near)
            own_loss[to_step] = np.where(goes_right, below[1], below[0])[to_step]
        other_loss = self.losses(softmax_nodes.walk(tree, rows, self._share, far, to_walk | to_step, prepared))
        return np.where(on_right, other_loss, own_loss), np.where(on_right, own_loss, other_loss)

    def _rows_of_nodes(self, leaf_of: Int32s) -> dict[int, Int64s]:
        """Return the rows that reach each node (int64[...], ascending)."""
        order = np.argsort(leaf_of, kind="stable")
        edges = np.searchsorted(leaf_of[order], np.arange(len(self.tree.left) + 1))
        node_rows = {}
        for level in reversed(self.tree.levels()):
            for i in level:
                if self.tree.left[i] < 0:
                    node_rows[i] = order[edges[i] : edges[i + 1]]
                else:
                    node_rows[i] = np.sort(
                        np.concatenate([node_rows[self.tree.left[i]], node_rows[self.tree.right[i]]])
                    )
        return node_rows

    def _problem(self, chosen: Int64s, weight: Float64s) -> tuple[newton_step.NewtonProblem, UInt32s]:
        """Return the problem of some rows with renumbered features, and their original numbers (uint32[...])."""
        rows = self.rows
        z = int((rows.start[chosen + 1] - rows.start[chosen]).sum())
        start, feature, value = np.zeros(len(chosen) + 1, np.int64), np.empty(z, np.int32), np.empty(z, np.float32)
        number, name = np.full(self.features, -1, np.int32), np.empty(min(z, self.features), np.int32)
        count = row_store.renumber_features(
            rows.start, rows.feature, rows.value, chosen.astype(np.int64), number, start, feature, value, name
        )
        return newton_step.new_problem(start, feature, value, count, weight), name[:count].astype(np.uint32)

    def _router(self, i: int, rows: Int64s, sides: Sides) -> softmax_nodes.Router:
        old = self.tree.router(i)
        with np.errstate(invalid="ignore"):  # both losses may be infinite
            gap = sides[0][rows] - sides[1][rows]
        matters = np.isfinite(gap) & (gap != 0.0)
        chosen = rows[matters]
        if not len(chosen):
            return old
        goes_right = gap[matters] > 0.0
        problem, name = self._problem(chosen, self.rows.weight[chosen] * np.abs(gap[matters]))
        w = np.zeros(len(name))
        order = np.argsort(name)
        w[order] = _placed(name[order], old.feature, old.weight)
        b = router_logistic.solve(problem, goes_right, self.settings.alpha, w, old.bias, self.settings.intercept)
        w, b = w.astype(np.float32).astype(np.float64), float(np.float32(b))
        order = order[w[order] != 0.0]
        return softmax_nodes.Router(name[order], w[order], b)

    def _leaf(self, i: int, rows: Int64s, first: bool, only: bool) -> softmax_nodes.Leaf:
        old = self.tree.leaf(i)
        s = self.settings
        if not len(rows):
            return old
        label, weight = self.rows.label[rows], self.rows.weight[rows]
        names, number = np.unique(label, return_inverse=True)
        class_weight = np.bincount(number, weight)
        best = np.sort(np.argsort(-class_weight, kind="stable")[: s.leaf_classes])
        place = np.full(len(names), -1)
        place[best] = np.arange(len(best))
        classes = names[best]
        inside = np.flatnonzero(place[number] >= 0)
        inside = inside[np.argsort(place[number[inside]], kind="stable")]
        problem, name = self._problem(rows[inside], weight[inside])
        class_start = np.searchsorted(place[number[inside]], np.arange(len(classes) + 1)).astype(np.int64)
        bias = leaf_exact.first_bias(problem, class_start) if s.intercept else np.zeros(len(classes))
        weights = _carried(old, classes, bias, name)
        if s.solver == "steps":
            share = self._share if only else leaf_sgd.run_serially
            passes = -(-s.passes // 2) if s.halved and not first else s.passes
            seed = s.seed + i
            weights = leaf_sgd.fit(
                problem, class_start, s.alpha, weights, bias, s.intercept, passes, seed=seed, share=share,
                stopped=self._stopped, l2=s.l2,
            )  # fmt: skip
        else:
            weights, _ = leaf_exact.solve(
                problem, class_start, s.alpha, weights, bias, s.intercept,
                tol=FIRST_TOLERANCE if first else LATER_TOLERANCE, stopped=self._stopped,
            )  # fmt: skip
        used = int(weights.start[-1])
        return softmax_nodes.Leaf(
            classes, bias.astype(np.float32).astype(np.float64), weights.start,
            name[weights.feature[:used]], weights.value[:used].astype(np.float32).astype(np.float64),
        )  # fmt: skip


def _placed(names: UInt32s, feature: UInt32s, weight: Float64s) -> Float64s:
    """Return the weight of every feature of `names` (ascending), 0 if it has none."""
    result = np.zeros(len(names))
    at, present = row_store.positions(names, feature)
    result[at[present]] = weight[present]
    return result


def _carried(old: softmax_nodes.Leaf, classes: Int64s, bias: Float64s, name: UInt32s) -> leaf_exact.LeafWeights:
    """Return an old leaf's weights for classes and features that still occur; copy its intercepts to `bias`."""
    k = len(classes)
    if not len(old.label) or not k or not len(name):
        return leaf_exact.empty_weights(k)
    order = np.argsort(name)
    names = name[order]
    at, stays = row_store.positions(classes, old.label)
    bias[at[stays]] = old.bias[stays]
    owner = np.repeat(np.arange(len(old.label)), np.diff(old.start))
    position, known = row_store.positions(names, old.feature)
    kept = stays[owner] & known
    owner = at[owner[kept]]
    by = np.argsort(owner, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=k))]).astype(np.int64)
    return leaf_exact.LeafWeights(start, order[position[kept]][by].astype(np.int32), old.weight[kept][by])
