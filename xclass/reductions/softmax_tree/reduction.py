"""Learn a softmax tree: sparse linear routers lead an example to a leaf, which has a softmax over few classes.

Source    Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree: An Accurate, Fast Classifier When the Number of
          Classes Is Large", EMNLP 2021.
Idea      `tao` trains the tree, `initialise` assigns classes to the initial leaves, `inference` predicts. There is a
          router at every inner node and k scorers at every leaf, all with L1 regularisation alpha (--l1).
          Examples are read once and stored (`row_store`); the tree learns them at the end of the data. Until then
          predictions are those of the model given by -i, with which learning then starts, or 0 without one. Numeric
          columns are scaled (`feature_scaling`): their mean sizes are computed while examples are read, and values are
          divided by them at the end.
          The probability of a class of the leaf is that of the softmax, and that of any other class is eps, all divided
          by 1 + eps (K - k).
Cost      O(s depth + weights that an example's s features have in one leaf) per prediction. Training passes over the
          data some (depth + 2) times per iteration, and spends most of its time on the leaves (`leaf_sgd`,
          `leaf_exact`).
Names     K classes | k classes of a leaf | s features of an example | alpha is --l1 | eps is --smooth
Differs   from the paper (docs/papers.md says why, and what it costs):
          * every 50th example is held out to choose eps, unless `--smooth` sets it
          * numeric columns are divided by their mean size
          * the tree has depth 0, a single softmax, unless there are many examples and classes
          * alpha is .05 to .15
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int32s, Int64s, UInt32s
from ...binary import feature_scaling, finite
from ...data.batch import Batch
from ...kernels.constants import GOLDEN
from ...model.archive import Archive
from ..core import probabilities
from ..core.base import MessageConsole, Reduction, ReductionRecord
from ..core.calibration import NEW_LABELS, LabelStatistics
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec
from . import inference, initialise, row_store, softmax_nodes, tao
from . import options as softmax_options

HELD_OUT_EVERY = 50  # one of this many examples is held out
FEWEST_HELD_OUT = 20  # held-out examples needed to choose eps
SHARE = 256  # least examples per thread
LOG2_CELLS = 22  # log2 of the number of cells that tell whether a feature has a weight
DEFAULT_EPS = 1e-6  # eps if nothing was held out


class SoftmaxTree(Reduction):
    """A learner that stores its examples and trains a softmax tree at the end of the data (`--softmax_tree`).

    Attributes
    ----------
    store : stored examples, None if the learner only predicts
    scales, new_scales : scales of numeric columns, of the examples learned from and of all examples, or None
    eps : probability of a class that the leaf lacks, before normalisation
    tree_arrays, prepared : the tree as it is stored and as it is used for prediction
    training_lines : lines about training, for the summary
    """

    tallied = ("missed_top_5", "inside", "inside_log")
    report: LabelStatistics
    unknown_labels = NEW_LABELS

    def __init__(self, spec: LearnerSpec) -> None:
        self.options = spec.options
        self.classes = self.options.softmax_tree
        self.alpha, self.l2 = spec.binary.l1, spec.binary.l2
        self.intercept = spec.constant
        self.unit = self.scales_examples = self.options.normalize_features != "none"
        self.largest_step = finite.largest_step(1.0)
        # All examples that the tree has learned count equally, whatever their order.
        self.scales = feature_scaling.from_option(self.options.normalize_features, math.inf)
        self.new_scales = None if self.scales is None else self.scales.copy()
        self.seed = spec.seed
        self.testing = spec.testing
        self.predict_only = spec.binary.predict_only_model
        self.store = None if spec.testing else row_store.Store()
        self.eps = self.options.smooth if self.options.smooth is not None else DEFAULT_EPS
        self._use(inference.empty_tree())
        self.want(spec)
        # sums of weights; the last is multiplied by -log p within the leaf
        self.missed_top_5 = self.inside = self.inside_log = 0.0
        self.training_lines: list[str] = []
        self.info: Callable[[str], None] = lambda line: None
        self.start_steps: Callable[[int, str], None] = lambda count, unit: None
        self.step: Callable[[], None] = lambda: None
        self.stop_requested = False
        self.stages = [self._predict] if spec.testing else [self._predict, self._collect]

    @property
    def unlearned(self) -> bool:
        return self.store is not None and self.store.rows > 0

    @property
    def most_rows(self) -> int | None:
        """Return the most examples of a batch, fewer if all classes of a leaf are listed."""
        return (
            max(1, probabilities.MOST_PAIRS // (self.largest_leaf + 1)) if self.listing_options.probabilities else None
        )

    def report_to(self, console: MessageConsole, part: Callable[[], float | None]) -> None:
        self.info, self.start_steps, self.step = console.info, console.start_steps, console.step
        if self.store is not None:
            self.store.part_read = part

    def stop(self) -> None:
        """End the training after the nodes in progress, large ones sooner."""
        self.stop_requested = True

    def close(self) -> None:
        super().close()
        if self.store is not None:
            self.store.close()

    def _use(self, parts: inference.TreeArrays) -> None:
        self.tree_arrays, self.prepared = parts, inference.prepare(parts)
        self.largest_leaf = int(np.diff(parts.first).max(initial=0))
        self._cells: Bools | None = None  # bool[2**LOG2_CELLS], those with features that have a weight, see `find`

    # prediction

    def find(self, feature: UInt32s) -> Bools | None:
        if not len(self.tree_arrays.label):
            return None
        if self._cells is None:
            self._cells = np.zeros(1 << LOG2_CELLS, bool)
            for features in (self.tree_arrays.router_feature, self.tree_arrays.leaf_feature):
                self._cells[_cells_of(features)] = True
        found: Bools = self._cells[_cells_of(feature)]
        return found

    def _predict(self, task: BatchTask) -> None:
        self._set_results(task, self._walk(task))

    def _walk(self, task: BatchTask) -> inference.WalkResult | None:
        """Send the examples of a task down the tree; return None if there is no tree yet."""
        if not len(self.tree_arrays.label):
            return None
        batch = task.batch
        n = batch.n
        most = max(5, self.listing_options.top_k or 0)
        if self.listing_options.probabilities:
            most = self.largest_leaf
        label = np.where(np.isnan(batch.label), 0.0, batch.label).astype(np.int64)
        results = inference.new_walk_result(n, most)
        value = self.scaled_values(batch)
        index = batch.index[int(batch.start[0]) : int(batch.start[-1])]
        start = batch.start - batch.start[0]
        node = np.zeros(n, np.int32)

        def job(low: int, high: int) -> None:
            scratch = inference.new_scratch(self.prepared, most)
            inference.walk(self.prepared, start, index, value, label, node, low, high, scratch, results)

        self.share(job, self.thread_ranges(n, SHARE))
        return results

    def scaled_values(self, batch: Batch) -> Float32s:
        """Return the values of the features of a batch as the tree sees them."""
        scaled = batch if self.scales is None else self.scales.scaled(batch, np.zeros(batch.n, bool))
        return row_store.values(scaled, self.unit)

    def _set_results(self, task: BatchTask, results: inference.WalkResult | None) -> None:
        """Set the results of a task from what `_walk` has returned."""
        batch = task.batch
        n = batch.n
        labelled = ~np.isnan(batch.label)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64)
        makes_lists = self.listing_options.lists_classes or self.wanted.scores
        if results is None:
            task.prediction = np.zeros(n)
            if makes_lists:
                task.list_classes(np.zeros((n, 1), np.int64), np.zeros((n, 1)))
            return
        most = results.top.shape[1]
        task.prediction = results.predicted.astype(np.float64)
        weight = batch.weight.astype(np.float64)
        right = results.predicted == label
        task.loss = np.where(labelled & ~right, weight, 0.0)
        self._count(task, results, labelled, label, weight)
        if makes_lists:
            scale = 1.0 / (1.0 + self.eps * (self.classes - results.size))
            top, top_p = results.top, results.top_p * scale[:, None]
            size = np.minimum(results.size, most)
            if self.listing_options.probabilities:
                order = np.argsort(np.where(top > 0, top, np.iinfo(np.int64).max), axis=1, kind="stable")
                top, top_p = np.take_along_axis(top, order, axis=1), np.take_along_axis(top_p, order, axis=1)
            else:
                k = self.listing_options.top_k or 1
                top, top_p, size = top[:, :k], top_p[:, :k], np.minimum(size, k)
            task.list_classes(top, top_p, size)

    def _count(
        self,
        task: BatchTask,
        results: inference.WalkResult,
        labelled: Bools,
        label: Int64s,
        weight: Float64s,
    ) -> None:
        """Set the probabilities of a task, and update the report with the quality of the predictions."""
        outside = self.classes - results.size
        total = 1.0 + self.eps * outside
        inside = ~np.isnan(results.log_p)
        log_p = np.where(inside, np.minimum(results.log_p, 0.0), 0.0)  # rounding of huge scores may leave it above 0
        p = np.where(inside, np.exp(log_p), self.eps) / total
        k = self.listing_options.top_k
        self.set_probabilities(task, results.top_p[:, 0] / total, p > 0.0, p, results.top[:, :k])
        task.label_probability = np.where(labelled, p, np.nan)  # 0 for classes that the leaf lacks if eps is 0
        counted = np.where(labelled, weight, 0.0)
        self.missed_top_5 += float(counted[~(results.top[:, :5] == label[:, None]).any(axis=1)].sum())
        self.inside += float(counted[inside].sum())
        self.inside_log -= float((counted * log_p).sum())

    # learning

    def _collect(self, task: BatchTask) -> None:
        """Store the examples of a task, as the last stage."""
        learned = task.learned()
        if self.new_scales is not None:
            self.new_scales.scaled(task.batch, learned)
        assert self.store is not None  # else this is not a stage
        self.store.add(task.batch, learned)

    def end_pass(self) -> None:
        """Learn from the stored examples at the end of the data."""
        if self.store is None or not self.store.rows:
            return
        rows, hashes = self.store.finish(self.unit, None if self.new_scales is None else self.new_scales.divide)
        held_out = None
        if self.options.smooth is None and len(rows.label) >= HELD_OUT_EVERY * FEWEST_HELD_OUT:
            is_held_out = np.arange(len(rows.label)) % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
            held_out, rows = (row_store.chosen(rows, np.flatnonzero(one)) for one in (is_held_out, ~is_held_out))
        classes = len(np.unique(rows.label))
        if len(self.tree_arrays.label):
            tree = softmax_nodes.from_arrays(self.tree_arrays, lambda feature: _feature_numbers(hashes, feature))
            initial_leaf = None
        else:
            depth = self.options.depth
            if depth is None:
                depth = softmax_options.default_depth(len(rows.label), classes)
            tree = softmax_nodes.SoftmaxNodes.complete(softmax_options.useful_depth(depth, len(rows.label)))
            initial_leaf = self._initial_leaves(tree, rows, len(hashes))
        most = self.options.leaf_classes
        solver = self.options.leaf_solver
        if solver is None:
            solver = softmax_options.default_solver(len(rows.label), len(hashes), len(rows.feature), self.l2)
        alpha = self.alpha
        if alpha is None:
            alpha = 0.0 if self.l2 else softmax_options.default_l1(solver, len(rows.label), classes)
        passes = self.options.leaf_passes
        if passes is None:
            passes = softmax_options.default_passes(len(rows.label), classes)
        settings = tao.TaoSettings(
            alpha, classes if most is None else most, self.options.zero_loss, self.options.beta,
            self.options.tao_iterations, self.intercept, solver, passes, self.seed, self.options.tao_tolerance, self.l2,
            halved=self.options.leaf_passes is None,
        )  # fmt: skip
        leaves = tree.leaves()
        self.info(
            f"softmax tree: {len(rows.label)} examples, {classes} classes, {len(hashes)} features; depth "
            f"{len(tree.levels()) - 1}, {len(leaves)} leaves, at most "
            f"{'all' if most is None else most} classes per leaf, l1 {alpha:.3g}, "
            + (f"l2 {self.l2:.3g}, " if self.l2 else "")
            + (f"{passes} passes of gradient steps per leaf" if solver == "steps" else "leaves by coordinate descent")
        )
        self.info("iteration     objective  train error  in leaf     weights  seconds")
        self.start_steps(settings.iterations * len(tree.left), "nodes")
        trainer = tao.Trainer(rows, len(hashes), tree, settings, self.share, lambda: self.stop_requested, self.step)
        trainer.run(initial_leaf, self._report_iteration)
        self._finish(tree, rows, trainer.results, held_out, hashes)
        self.stop_requested = False
        if len(self.tree_arrays.label):  # empty if the user stopped training before the first node
            self.scales = None if self.new_scales is None else self.new_scales.copy()
            part_read = self.store.part_read
            self.store.close()
            self.store = row_store.Store()
            self.store.part_read = part_read

    def _initial_leaves(self, tree: softmax_nodes.SoftmaxNodes, rows: row_store.FeatureRows, features: int) -> Int32s:
        """Return the leaf (its node) where each row begins (int64[n])."""
        leaves = np.array(tree.leaves(), np.int32)
        init = self.options.tree_init
        if init in ("prototypes", "whole"):
            return leaves.take(initialise.by_k_means(rows, features, len(leaves), self.seed, init == "whole"))
        if init == "clusters":
            return leaves.take(initialise.by_halves(rows, len(leaves), self.seed, self.share))
        rng = np.random.default_rng(self.seed)
        for i, contents in enumerate(tree.contents):
            if isinstance(contents, softmax_nodes.Router):
                w = rng.standard_normal(features + self.intercept)  # the intercept is the last
                w = (w / np.sqrt((w**2).sum() or 1.0)).astype(np.float32).astype(np.float64)
                bias = float(w[features:].sum())
                tree.contents[i] = softmax_nodes.Router(np.arange(features, dtype=np.uint32), w[:features], bias)
        output: inference.WalkResult = softmax_nodes.walk(tree, rows, self.share)
        for i, contents in enumerate(tree.contents):
            if isinstance(contents, softmax_nodes.Router):
                tree.contents[i] = softmax_nodes.NO_ROUTER
        return leaves.take(output.leaf)

    def _report_iteration(self, report: tao.TaoReport) -> None:
        self.info(
            f"{report.number:9d} {report.objective:13.2f} {report.error:12.6f} {report.covered:8.4f} "
            f"{report.nonzeros:11d} {report.seconds:8.1f}"
        )

    def _finish(
        self,
        tree: softmax_nodes.SoftmaxNodes,
        rows: row_store.FeatureRows,
        results: inference.WalkResult | None,
        held_out: row_store.FeatureRows | None,
        hashes: UInt32s,
    ) -> None:
        """Prune the tree, choose eps, and predict with the tree from now on.

        `results` are those of the rows, None if training ended early, and `hashes` is uint32[F], hash of every feature.
        """
        if results is None:
            results = softmax_nodes.walk(tree, rows, self.share)
        weight = np.bincount(results.leaf, rows.weight, minlength=len(tree.leaves()))
        tree, removed = softmax_nodes.prune(tree, dict(zip(tree.leaves(), weight.tolist(), strict=True)))
        tree = softmax_nodes.with_feature_names(tree, lambda feature: hashes[feature])
        self._use(softmax_nodes.to_arrays(tree))
        error = float(rows.weight[results.predicted != rows.label].sum() / rows.weight.sum())
        self.training_lines = [f"training error = {error:.6f}, nodes pruned = {removed}"]
        if held_out is not None:
            results = softmax_nodes.walk(tree, held_out._replace(feature=hashes[held_out.feature]), self.share)
            if self.options.smooth is None:
                self.eps = _best_eps(results, held_out.weight, self.classes)
            error = float(held_out.weight[results.predicted != held_out.label].sum() / held_out.weight.sum())
            self.training_lines.append(
                f"error on every {HELD_OUT_EVERY}th example, which was held out to choose --smooth {self.eps:.3g}, = "
                f"{error:.6f}"
            )

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; `inference.check` and `feature_scaling` say what their checks protect."""
        stored = self.tree_arrays._asdict().items()
        parts = inference.TreeArrays(
            *(np.ascontiguousarray(archive.take(f"tree.{name}", array)) for name, array in stored)
        )
        if not archive.saves:
            inference.check(parts, self.classes, softmax_options.MOST_DEPTH)
        if self.scales is not None:
            self.scales.serialize(archive)
        smooth = archive.fact("smooth", self.eps, 0, 1)
        if not archive.saves:
            self.new_scales = None if self.scales is None else self.scales.copy()
            self.eps = self.options.smooth if self.options.smooth is not None else smooth
            self._use(parts)


def _cells_of(feature: UInt32s) -> Int64s:
    cells: Int64s = (feature.astype(np.uint64) * GOLDEN >> np.uint64(64 - LOG2_CELLS)).astype(np.int64)
    return cells


def _feature_numbers(hashes: UInt32s, feature: UInt32s) -> Int64s:
    """Return the number of each feature in `hashes` (int64), -1 for those that do not occur."""
    at, present = row_store.positions(hashes, feature)
    return np.where(present, at, -1)


def _best_eps(results: inference.WalkResult, weight: Float64s, classes: int) -> float:
    """Return the eps, of 200 between 1e-12 and 0.1, that gives the labels of held-out rows the most probability."""
    outside = (classes - results.size).astype(np.float64)
    missing = float(weight[np.isnan(results.log_p)].sum())
    candidates = np.geomspace(1e-12, 0.1, 200)
    log_likelihood = [missing * math.log(eps) - float((weight * np.log1p(eps * outside)).sum()) for eps in candidates]
    return float(candidates[int(np.argmax(log_likelihood))])


REDUCTION = ReductionRecord(
    name="softmax_tree",
    title="Softmax tree",
    summary="sparse routers to softmax leaves, trained in batch",
    options=softmax_options.SoftmaxTreeOptions,
    enabled="softmax_tree",
    build=SoftmaxTree,
    resolve_defaults=softmax_options.resolve_defaults,
    probabilities=True,
    learner_options=softmax_options.SUPPORTED_OPTIONS,
    not_merged="its nodes are optimised in turn on all of the data, so two trees have no average",
    learns_at_end=True,
)
