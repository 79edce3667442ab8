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
          by 1 + eps (K - k). Every HELD-th example is kept out of training to choose eps, unless --smooth sets it.
Cost      O(s depth + weights that an example's s features have in one leaf) per prediction. Training passes over the
          data some (depth + 2) times per iteration, and spends most of its time on the leaves (`leaf_sgd`,
          `leaf_exact`).
Names     K classes | k classes of a leaf | s features of an example | alpha is --l1 | eps is --smooth
Differs   from the paper: see `tao` and `initialise`. docs/defaults.md has the measurements behind the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...array_types import Bools, Float64s, Int32s, Int64s, UInt32s
from ...binary import feature_scaling, finite
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import probabilities
from ..core.base import Console, Learner, LearnsAtEnd, Reduction
from ..core.calibration import Report
from ..core.contract import BatchTask
from ..core.result import Result
from ..core.spec import LearnerSpec, Wanted
from . import inference, initialise, row_store, softmax_nodes, tao
from . import options as softmax_options

HELD = 50  # one of this many examples is held out
FEWEST_HELD = 20  # held-out examples needed to choose eps
SHARE = 256  # least examples per thread
UNTUNED = 1e-6  # eps if nothing was held out


class SoftmaxTree(Learner, LearnsAtEnd):
    """A learner that stores its examples and trains a softmax tree at the end of the data (`--softmax_tree`).

    Attributes
    ----------
    unlearned : whether there are stored examples that were not learned from
    store : stored examples, None if the learner only predicts
    scales, counted : scales of numeric columns, those of the examples learned from and those of all examples, or None
    eps : probability of a class that the leaf lacks, before normalisation
    parts, paths : the tree as it is stored and as it is used for prediction
    lines : lines about training, for the summary
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.options = spec.options
        self.classes = self.options.softmax_tree
        self.alpha = spec.binary.l1 or None
        self.intercept = spec.constant
        self.unit = self.scales_examples = self.options.normalize_features != "none"
        self.largest_step = finite.largest_step(1.0)
        # All examples that the tree has learned count equally, whatever their order.
        self.scales = feature_scaling.from_option(self.options.normalize_features, math.inf)
        self.counted = None if self.scales is None else self.scales.copy()
        self.seed = spec.seed
        self.store = None if spec.testing else row_store.Store()
        self.eps = self.options.smooth if self.options.smooth is not None else UNTUNED
        self._take(inference.nothing())
        self.want(spec.wanted)
        self.missed_top = self.inside = self.inside_log = (
            0.0  # sums of weights; the last is multiplied by -log p within the leaf
        )
        self.lines: list[str] = []
        self.tell: Callable[[str], None] = lambda line: None
        self.bar: Callable[[int, str], None] = lambda count, unit: None
        self.moved: Callable[[], None] = lambda: None
        self.ends = False
        self.stages = [self._predict] if spec.testing else [self._predict, self._collect]

    @property
    def unlearned(self) -> bool:
        """Return whether there are stored examples that were not learned from."""
        return self.store is not None and self.store.rows > 0

    @property
    def most_rows(self) -> int | None:
        """Return the most examples of a batch, fewer if all classes of a leaf are listed, or None for no limit."""
        return max(1, probabilities.MOST_PAIRS // (self.largest + 1)) if self.asked.probabilities else None

    def report_to(self, console: Console, part: Callable[[], float | None]) -> None:
        """Set the console for messages about training, and the function that returns the fraction of data read."""
        self.tell, self.bar, self.moved = console.info, console.start_steps, console.step
        if self.store is not None:
            self.store.part = part

    def stop(self) -> None:
        """End the training after the nodes in progress, large ones sooner."""
        self.ends = True

    def close(self) -> None:
        """Delete the stored examples."""
        super().close()
        if self.store is not None:
            self.store.close()

    def _take(self, parts: inference.Parts) -> None:
        """Predict with this tree from now on."""
        self.parts, self.paths = parts, inference.new_paths(parts)
        self.largest = int(np.diff(parts.first).max(initial=0))

    # prediction

    def _predict(self, task: BatchTask) -> None:
        """Predict the examples of a task, as the first stage."""
        batch = task.batch
        n = batch.n
        labelled = ~np.isnan(batch.label)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64)
        if not len(self.parts.label):
            task.prediction = np.zeros(n)
            if self.asked.listed or self.listing:
                self._list(task, np.zeros((n, 1), np.int64), np.zeros((n, 1)), np.zeros(n, np.int64))
            return
        most = max(5, self.asked.top_k or 0)
        if self.asked.probabilities:
            most = self.largest
        results = inference.new_found(n, most)
        scaled = batch if self.scales is None else self.scales.scaled(batch, np.zeros(n, bool))
        value = row_store.values(scaled, self.unit)
        index = batch.index[int(batch.start[0]) : int(batch.start[-1])]
        start = batch.start - batch.start[0]
        node = np.zeros(n, np.int32)

        def job(low: int, high: int) -> None:
            scratch = inference.new_scratch(self.paths, most)
            inference.walk(self.paths, start, index, value, label, node, low, high, scratch, results)

        self.share(job, self.thread_ranges(n, SHARE))
        task.prediction = results.answer.astype(np.float64)
        weight = batch.weight.astype(np.float64)
        right = results.answer == label
        task.loss = np.where(labelled & ~right, weight, 0.0)
        self._count(results, labelled, label, weight, right)
        if self.asked.listed or self.listing:
            scale = 1.0 / (1.0 + self.eps * (self.classes - results.size))
            top, top_p = results.top, results.top_p * scale[:, None]
            size = np.minimum(results.size, most)
            if self.asked.probabilities:
                order = np.argsort(np.where(top > 0, top, np.iinfo(np.int64).max), axis=1, kind="stable")
                top, top_p = np.take_along_axis(top, order, axis=1), np.take_along_axis(top_p, order, axis=1)
            elif self.asked.top_k is not None:
                top, top_p = top[:, : self.asked.top_k], top_p[:, : self.asked.top_k]
                size = np.minimum(size, self.asked.top_k)
            else:
                top, top_p, size = top[:, :1], top_p[:, :1], np.minimum(size, 1)
            self._list(task, top, top_p, size)

    def _list(self, task: BatchTask, top: Int64s, top_p: Float64s, size: Int64s) -> None:
        """Set the listing and the scores of a task."""
        rest = np.maximum(0.0, 1.0 - top_p.sum(axis=1))
        task.listing = probabilities.listing(top, top_p, size, rest)
        task.scores, task.score_labels, task.score_start = task.listing[:3]

    def _count(self, found: inference.Found, labelled: Bools, label: Int64s, weight: Float64s, right: Bools) -> None:
        """Update the report with the quality of the predictions."""
        outside = self.classes - found.size
        total = 1.0 + self.eps * outside
        inside = ~np.isnan(found.log_p)
        within = np.exp(np.where(inside, found.log_p, 0.0))
        p = np.where(inside, within, self.eps) / total
        self.report.losses(labelled, weight, p > 0.0, p)
        self.report.count_calibration(found.top_p[:, 0] / total, labelled, weight, right)
        if self.asked.top_k is not None:
            self.report.count_top_k(labelled, weight, label, found.top[:, : self.asked.top_k])
        counted = np.where(labelled, weight, 0.0)
        self.missed_top += float(counted[~(found.top[:, :5] == label[:, None]).any(axis=1)].sum())
        self.inside += float(counted[inside].sum())
        self.inside_log -= float((counted * np.where(inside, found.log_p, 0.0)).sum())

    def want(self, wanted: Wanted) -> None:
        """Set what the caller wants to be computed."""
        self.asked = wanted.listing_options
        self.listing = self.asked.top_k is not None or wanted.scores
        self.report = Report(self.asked)

    def results(self) -> list[Result]:
        """Return the reliability table, if it is requested."""
        return self.report.results()

    def summary(self) -> list[str]:
        """Return the lines of the summary that are specific to this reduction."""
        lines = self.report.lines()
        if self.report.weight > 0:
            lines.append(f"top-5 error = {self.missed_top / self.report.weight:.6f}")
            lines.append(f"class is in the leaf = {self.inside / self.report.weight:.6f}")
        if self.inside > 0:
            lines.append(f"perplexity where it is = {math.exp(min(self.inside_log / self.inside, 700.0)):.6g}")
        if self.report.known_weight > 0:
            log = self.report.log / self.report.known_weight
            lines.append(f"perplexity, smoothed by {self.eps:.3g} = {math.exp(min(log, 700.0)):.6g}")
        sizes = np.diff(self.parts.first)
        weights = len(self.parts.weight) + len(self.parts.value)
        return [
            *lines,
            *self.lines,
            *(self.scales.summary_lines if self.scales is not None else []),
            f"leaves = {len(sizes)}, depth = {self._depth()}, classes of a leaf = {sizes.mean():.1f} (mean), "
            f"{sizes.max()} (most), weights that are not 0 = {weights}",
        ]

    def _depth(self) -> int:
        """Return the number of levels of routers."""
        left, right = self.parts.left, self.parts.right
        depth = np.zeros(len(left), np.int64)
        for i in range(len(left)):  # children have higher numbers than their parents
            if left[i] >= 0:
                depth[[left[i], right[i]]] = depth[i] + 1
        return int(depth.max())

    # learning

    def _collect(self, task: BatchTask) -> None:
        """Store the examples of a task, as the last stage."""
        learned = task.learned()
        if self.counted is not None:
            self.counted.count(task.batch, learned)
        assert self.store is not None  # else this is not a stage
        self.store.add(task.batch, learned)

    def end_pass(self) -> None:
        """Learn from the stored examples at the end of the data."""
        if self.store is None or not self.store.rows:
            return
        rows, hashes = self.store.finish(self.unit, None if self.counted is None else self.counted.divide)
        held = None
        if self.options.smooth is None and len(rows.label) >= HELD * FEWEST_HELD:
            is_held = np.arange(len(rows.label)) % HELD == HELD - 1
            held, rows = (
                row_store.chosen(rows, np.flatnonzero(is_held)),
                row_store.chosen(rows, np.flatnonzero(~is_held)),
            )
        classes = len(np.unique(rows.label))
        if len(self.parts.label):
            tree = softmax_nodes.from_parts(self.parts, lambda feature: _numbers(hashes, feature))
            begin = None
        else:
            depth = self.options.depth
            if depth is None:
                depth = softmax_options.default_depth(len(rows.label), classes)
            tree = softmax_nodes.Tree.complete(softmax_options.useful_depth(depth, len(rows.label)))
            begin = self._begin(tree, rows, len(hashes))
        most = self.options.leaf_classes
        solver = self.options.leaf_solver
        if solver is None:
            solver = softmax_options.default_solver(len(rows.label), len(hashes), len(rows.feature))
        alpha = self.alpha or softmax_options.default_l1(solver, len(rows.label), classes)
        passes = self.options.leaf_passes
        if passes is None:
            passes = softmax_options.default_passes(len(rows.label), classes)
        settings = tao.Settings(
            alpha, classes if most is None else most, self.options.zero_loss, self.options.beta,
            self.options.tao_iterations, self.intercept, solver, passes, self.seed,
        )  # fmt: skip
        leaves = tree.leaves()
        self.tell(
            f"softmax tree: {len(rows.label)} examples, {classes} classes, {len(hashes)} features; depth "
            f"{len(tree.levels()) - 1}, {len(leaves)} leaves, at most "
            f"{'all' if most is None else most} classes a leaf, l1 {alpha:.3g}, "
            + (f"{passes} passes of steps a leaf" if solver == "steps" else "leaves fitted to the end")
        )
        self.tell("iteration     objective  train error  in leaf     weights  unchanged  seconds")
        self.bar(settings.iterations * len(tree.left), "node")
        trainer = tao.Trainer(rows, len(hashes), tree, settings, self.share, lambda: self.ends, self.moved)
        trainer.run(begin, self._say)
        self._finish(tree, rows, trainer.found, held, hashes)
        if len(self.parts.label):  # empty if the user stopped training before the first node
            self.scales = None if self.counted is None else self.counted.copy()
            part = self.store.part
            self.store.close()
            self.store = row_store.Store()
            self.store.part = part

    def _begin(self, tree: softmax_nodes.Tree, rows: row_store.Rows, features: int) -> Int32s:
        """Return the leaf (its node) where each row begins (int64[n])."""
        leaves = np.array(tree.leaves(), np.int32)
        if self.options.tree_init == "prototypes":
            return leaves.take(initialise.by_prototypes(rows, features, len(leaves), self.seed))
        if self.options.tree_init == "clusters":
            return leaves.take(initialise.by_halves(rows, len(leaves), self.seed, self.share))
        rng = np.random.default_rng(self.seed)
        for i, contents in enumerate(tree.inside):
            if isinstance(contents, softmax_nodes.Router):
                w = rng.standard_normal(features)
                w = (w / np.sqrt((w**2).sum() or 1.0)).astype(np.float32).astype(np.float64)
                tree.inside[i] = softmax_nodes.Router(np.arange(features, dtype=np.uint32), w, 0.0)
        output: inference.Found = softmax_nodes.walk(tree, rows, self.share)
        for i, contents in enumerate(tree.inside):
            if isinstance(contents, softmax_nodes.Router):
                tree.inside[i] = softmax_nodes.NO_ROUTER
        return leaves.take(output.leaf)

    def _say(self, one: tao.Report) -> None:
        """Print the line of one iteration."""
        self.tell(
            f"{one.number:9d} {one.objective:13.2f} {one.error:12.6f} {one.covered:8.4f} {one.nonzeros:11d} "
            f"{one.kept:10d} {one.seconds:8.1f}"
        )

    def _finish(
        self,
        tree: softmax_nodes.Tree,
        rows: row_store.Rows,
        found: inference.Found | None,
        held: row_store.Rows | None,
        hashes: UInt32s,
    ) -> None:
        """Prune the tree, choose eps, and predict with the tree from now on.

        Parameters
        ----------
        found : results of the rows, None if training ended early
        held : held-out rows, or None
        hashes : uint32[F], hash of every feature
        """
        if found is None:
            found = softmax_nodes.walk(tree, rows, self.share)
        weight = np.bincount(found.leaf, rows.weight, minlength=len(tree.leaves()))
        tree, gone = softmax_nodes.prune(tree, dict(zip(tree.leaves(), weight.tolist(), strict=True)))
        tree = softmax_nodes.with_feature_names(tree, lambda feature: hashes[feature])
        self._take(softmax_nodes.parts(tree))
        error = float(rows.weight[found.answer != rows.label].sum() / rows.weight.sum())
        self.lines = [f"training error = {error:.6f}, nodes pruned = {gone}"]
        if held is not None:
            found = softmax_nodes.walk(tree, held._replace(feature=hashes[held.feature]), self.share)
            if self.options.smooth is None:
                self.eps = _tuned(found, held.weight, self.classes)
            error = float(held.weight[found.answer != held.label].sum() / held.weight.sum())
            self.lines.append(
                f"error on every {HELD}th example, kept out of training to choose --smooth {self.eps:.3g} = {error:.6f}"
            )

    # model

    def banner(self) -> list[str]:
        """Return the lines about this reduction for the start of a run."""
        lines = [f"softmax_tree: zero_loss = {self.options.zero_loss}"]
        if self.store is not None:
            lines.append("learns at the end of the data; until then the table shows what is known before")
        return lines

    def arrays(self) -> dict[str, Stored]:
        """Return the arrays that a model file stores."""
        stored = {f"tree.{name}": array for name, array in self.parts._asdict().items()}
        return stored if self.scales is None else {**stored, **self.scales.arrays()}

    def facts(self) -> dict[str, Any]:
        """Return the facts that a model file stores."""
        return {"smooth": self.eps}

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Load the arrays and facts of a model; `inference.check` and `feature_scaling` say what their checks protect.

        Raises
        ------
        ModelError
            if an array or a fact is missing or does not fit.
        """
        with stored_arrays.reject_unused(arrays, facts) as (arrays, facts):
            parts = inference.Parts(
                *(
                    np.ascontiguousarray(stored_arrays.take(f"tree.{name}", arrays, dtype, None))
                    for name, dtype in inference.DTYPES.items()
                )
            )
            inference.check(parts, self.classes, softmax_options.MOST_DEPTH)
            if self.scales is not None:
                self.scales.restore(arrays)
                self.counted = self.scales.copy()
            smooth = stored_arrays.take_fact("smooth", facts, float, 0, 1)
            self.eps = self.options.smooth if self.options.smooth is not None else smooth
        self._take(parts)


def _numbers(hashes: UInt32s, feature: UInt32s) -> Int64s:
    """Return the number of each feature in `hashes` (int64), -1 for those that do not occur."""
    if not len(hashes):
        return np.full(len(feature), -1, np.int64)
    at = np.minimum(np.searchsorted(hashes, feature), len(hashes) - 1)
    return np.where(hashes[at] == feature, at, -1)


def _tuned(found: inference.Found, weight: Float64s, classes: int) -> float:
    """Return the eps, of 200 between 1e-12 and 0.1, that gives the labels of held-out rows the most probability."""
    outside = (classes - found.size).astype(np.float64)
    missing = float(weight[np.isnan(found.log_p)].sum())
    tried = np.geomspace(1e-12, 0.1, 200)
    gained = [missing * math.log(eps) - float((weight * np.log1p(eps * outside)).sum()) for eps in tried]
    return float(tried[int(np.argmax(gained))])


REDUCTION = Reduction(
    name="softmax_tree",
    title="Softmax tree",
    summary="sparse routers to softmax leaves, trained in batch",
    options=softmax_options.Options,
    labels="multiclass",
    enabled="softmax_tree",
    build=SoftmaxTree,
    check=softmax_options.check,
    resolve_defaults=softmax_options.resolve_defaults,
    label_range=softmax_options.label_range,
    probabilities=True,
    learner_options=softmax_options.TAKEN,
    refused=softmax_options.refused,
)
