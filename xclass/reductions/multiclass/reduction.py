"""Predict classes that trees of probabilities and an index of features propose, by one scorer per class.

Source    This project's own; the trees are those of `cpt`, the means those of `means`, see there.
Idea      Every tree proposes its most probable labels, and the index those that an example's features point to. The
          scorer of each proposed class decides, and all of them learn from the example. Trees and index learn, too.
          Class means learn dense rows, and `opinion_pool` combines what both say. While no example has other features,
          the means alone learn and predict; trees, index and scorers begin with the first example that has.
Cost      that of each searched tree and of the means, and O(s) for each proposed class.
Names     s features of an example | n examples
Differs   from trees alone (`cpt`): their probabilities only propose. A tree that adds few labels to those of the index
          and of the trees before it is not searched and learns few examples (`searched_trees`).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...array_types import Bools, Int64s, UInt32s
from ...binary import finite, loss
from ...data import batch_ops
from ...data.batch import HIGHEST_LABEL
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ..core.base import UNSUITED, ReductionRecord
from ..core.contract import BatchTask, empty_task
from ..core.further_passes import FurtherPasses
from ..core.spec import LabelRange, LearnerSpec, LearnerUse
from ..cpt import binary_nodes
from ..cpt.ensemble import TreePlan
from ..cpt.options import GROWN, SUPPORTED_OPTIONS, CptOptions, resolve_defaults, table_bits
from ..cpt.reduction import ProbabilityTree, TreeLearner
from ..means import reduction as means
from . import feature_index, opinion_pool, reranking
from .opinion_pool import Listed
from .searched_trees import MOST_ROWS, SearchedTrees

OF_MEANS = "rows."  # beginning of the names of arrays that belong to the means
NO_CANDIDATES = feature_index.no_opinions(np.empty((0, 0), np.int64))


@dataclass
class MulticlassPlan(TreePlan):
    """Hold what the stages need to know about n examples, and what they write."""

    left_out: Bools = field(init=False)  # bool[n], whether the first pass leaves the example out
    # bool[trees, n], whether a tree that is not searched proposes the label of an example that it learns
    tried: Bools = field(init=False)
    rows_alone: bool = False  # whether nothing is learned but dense rows
    opinions: feature_index.Opinions = NO_CANDIDATES
    by_rows: means.BestClasses | None = None  # what the means say of dense rows

    @property
    def proposed(self) -> reranking.ProposedClasses:
        return reranking.ProposedClasses(self.output.top, self.output.top_p, self.output.p, self.opinions)


class Multiclass(TreeLearner):
    """Learn trees, an index, scorers of classes, and class means of dense rows (`--multiclass`, `--cpt --rerank`).

    Attributes
    ----------
    index : what proposes classes beside the trees, or None
    searched : what decides how many trees are searched, None if it is all
    means : what learns dense rows
    pool : see `opinion_pool.new_state`
    has_features : whether an example had hashed features besides the constant, or no row
    """

    # weight of all labelled examples, of those whose label was not proposed, and of those where it was not chosen then
    tallied = ("label_weight", "not_proposed", "not_chosen")

    def __init__(self, spec: LearnerSpec) -> None:
        o: CptOptions = spec.options
        self.means = means.Means(replace(spec, name="means", options=means.MeansOptions(means=o.cpt)))
        super().__init__(spec, cut=o.candidate_cut, counts=bool(o.index_slots))
        self.largest_step = min(self.largest_step, finite.largest_step(o.rerank_rate))
        bits, kind = table_bits(o, self.bits)[1], loss.CODES[spec.binary.loss_function]
        self.new_scorers = partial(
            reranking.new_scorers, bits, kind, o.rerank_rate, spec.constant, o.max_doublings or 0, self.weights_only
        )
        self.scorers = self.new_scorers()
        self.index: feature_index.FeatureIndex | None = None
        if o.index_slots:
            self.index = feature_index.FeatureIndex(o.index_bits, o.index_slots, o.index_candidates, self.weights_only)
        self.searched = SearchedTrees(o.trees) if self.index is not None and o.trees > 1 else None
        self.stages += [self._process_batch, self.propose, self._rerank]
        self.label_weight = self.not_proposed = self.not_chosen = 0.0
        self.passes = FurtherPasses(spec, reranking.copied, reranking.with_double_capacity, reranking.log_loss)
        self.rank_kernel = DirectCall(reranking, "rank")
        self.pool, self._combine = opinion_pool.new_state(), DirectCall(opinion_pool, "combine")
        self.has_features, self.constants = False, int(spec.constant)

    @property
    def most_rows(self) -> int | None:
        sizes = super().most_rows, self.means.most_rows, None if self.searched is None or self.testing else MOST_ROWS
        return min((size for size in sizes if size is not None), default=None)

    @property
    def classes_seen(self) -> int:
        return max(super().classes_seen, self.means.classes_seen)

    @property
    def highest_seen(self) -> int:
        return max(super().highest_seen, self.means.highest_seen)

    def find(self, feature: UInt32s) -> Bools | None:
        return super().find(feature) if self.has_features else self.means.find(feature)

    def survey(self, task: BatchTask, vw_exact: bool) -> None:
        super().survey(task, vw_exact)
        self.means.skip_large_rows(task)

    @property
    def proposals(self) -> int:
        return self.options.candidates  # independent of the output options: scorers learn from the candidates

    @property
    def number_searched(self) -> int:
        return super().number_searched if self.searched is None else self.searched.now

    def begin(self, task: BatchTask) -> MulticlassPlan:
        plan = self.new_plan(task, MulticlassPlan)
        plan.left_out, plan.learns = self.passes.begin(task)
        plan.tried = np.zeros(plan.output.p.shape, bool)
        if not self.has_features:
            self._look_for_features(task, plan)
        return plan

    def _look_for_features(self, task: BatchTask, plan: MulticlassPlan) -> None:
        """Decide whether trees, index and scorers learn from a batch that may have nothing but dense rows."""
        batch = task.batch
        features = np.diff(batch.start) > self.constants
        first = int(np.argmax(features)) if features.any() else batch.n
        if not batch.columns:
            self.has_features = task.learn and batch.n > 0
        elif task.learn and first < batch.n:
            self.has_features = True
            plan.learns = plan.learns & (np.arange(batch.n) >= first)
        if task.learn and first < batch.n and self.means.classes is not None and not batch.dense.any():
            task.notes.append(
                f"the model has learned from rows of {self.means.classes.d} numbers alone, and the examples have "
                "features and no such rows: both are learned now, each from its own examples; give rows and features "
                "together if they describe the same examples"
            )
        plan.rows_alone = bool(batch.columns) and not self.has_features

    def begin_pass(self, number: int, threads: int | None = None, held_out: bool | None = None) -> None:
        super().begin_pass(number, threads, held_out)
        self.passes.begin_pass(number)

    def end_pass(self) -> None:
        super().end_pass()
        self.scorers = self.passes.end_pass(self.scorers)

    def _process_batch(self, task: BatchTask) -> None:
        """Let the trees propose labels and learn from the batch; those that are not searched learn from some rows."""
        plan, n, trees = self.begin(task), task.batch.n, len(self.trees)
        searched, rows = np.full(n, self.number_searched), np.empty(0, np.int64)
        if self.searched is not None and task.learn and not self.repeats:
            searched, rows = self.searched.begin(plan.learns)
        cuts = [0, *(np.flatnonzero(np.diff(searched)) + 1).tolist(), n]  # where the number of trees changes
        for begin, end in itertools.pairwise(cuts):
            count = int(searched[begin]) if n else trees
            if not plan.rows_alone:
                ranges = [(begin, end)] if task.learn else self.thread_ranges(end)
                self.trees.propose(self.share, plan, ranges, count)
            in_range = rows[(rows >= begin) & (rows < end)]
            for t in range(count, trees) if len(in_range) else ():
                self._try_tree(t, plan, in_range)
        task.class_lists = plan.class_lists
        task.plan = plan

    def _try_tree(self, t: int, plan: MulticlassPlan, rows: Int64s) -> None:
        of_tree, label = binary_nodes.new_predictions(len(rows), k=self.proposals), plan.label[rows]
        chosen = batch_ops.pick([(plan.batch_of(t), rows)])
        self.trees.members[t].process_rows(chosen, label, plan.learns[rows], 0, len(rows), of_tree)
        plan.tried[t, rows] = (of_tree.top == label[:, None]).any(axis=1)

    def warm_ups(self, learn: bool) -> dict[str, Callable[[], None]]:
        """Return one function that compiles the kernels of the trees, and one for the other stages if there are any."""
        if self.options.cpt_tree not in GROWN or self.options.save_tree is not None:
            return super().warm_ups(learn)  # another process must not read or write the file of a tree

        def compile_others() -> None:
            task = empty_task(learn)
            for stage in self.stages:
                if stage == self._process_batch:
                    task.plan = self.begin(task)
                else:
                    stage(task)

        return {"trees": lambda: self._process_batch(empty_task(learn)), "others": compile_others}

    def propose(self, task: BatchTask) -> None:
        """Let the index, if any, propose classes beside the trees, and the means rank those of rows, and learn."""
        plan: MulticlassPlan = task.plan
        if not plan.rows_alone:
            self.add_candidates(task, plan)
        if task.batch.columns:  # a row of 0 beside features is a missing one, of which the means say nothing
            missing = (np.diff(task.batch.start) > self.constants) & ~task.batch.dense.any(axis=1)
            plan.by_rows = self.means.rank(task, missing)

    def add_candidates(self, task: BatchTask, plan: MulticlassPlan) -> None:
        """Add the candidates of the index, if any, to those of the trees and learn from the batch."""
        (trees, n, k), index = plan.output.top.shape, self.index
        candidates = np.zeros((n, trees * k + (self.options.index_candidates if index is not None else 0)), np.int64)
        binary_nodes.union_of_candidates(plan.output.top, candidates)
        plan.opinions = feature_index.no_opinions(candidates)
        if index is None:
            return
        if task.learn:
            index.reserve(len(plan.label))

        def propose(begin: int, end: int, again: bool) -> None:
            index.propose(task.batch, plan.weighted.share, plan.label, plan.learns, again, begin, end, plan.opinions)

        self.passes.propose(self, task, plan.left_out, propose)

    def _rerank(self, task: BatchTask) -> None:
        """Rerank the candidates and finish the task, as the last stage."""
        plan: MulticlassPlan = task.plan
        task.plan = None
        if plan.rows_alone:
            assert plan.by_rows is not None  # by the previous stage
            self.means.finish(task, plan.by_rows)
            self._add_errors(task, (plan.by_rows.top == plan.label[:, None]).any(axis=1))
            return
        task.candidates = plan.opinions.candidate
        self._count_proposed(task, plan)
        ranked = self._rank_batch(task, plan)
        if self.listing_options.probabilities:
            assert task.class_lists is not None  # made by the previous stage
            task.class_lists = reranking.with_reranked(task.class_lists, ranked)
        self.finish(task, plan.output, ranked.p, ranked.top, ranked.top_p)
        self._add_errors(task, ranked.inside)

    def _count_proposed(self, task: BatchTask, plan: MulticlassPlan) -> None:
        if self.searched is None or not task.learn or self.repeats:
            return
        label, opinions = plan.label[:, None], plan.opinions
        by_index = ((opinions.candidate == label) & (opinions.score[:, :, feature_index.PROPOSED] > 0)).any(axis=1)
        by_tree = plan.tried | (plan.output.top == label).any(axis=2)
        self.searched.count(plan.learns, by_index, by_tree, np.count_nonzero(plan.output.top[:, :, 0], axis=0))

    def _rank_batch(self, task: BatchTask, plan: MulticlassPlan) -> reranking.RankedCandidates:
        """Rank the candidates of a batch and learn from it."""
        n, candidates = plan.opinions.candidate.shape
        most = self._most_listed(candidates)
        if plan.by_rows is not None:  # whose opinion joins
            most = max(most, candidates)
        unit, proposed = self.options.normalize_features != "none", plan.proposed

        def rank(
            scorers: reranking.RerankingScorers, learns: Bools, begin: int, end: int,
            ranked: reranking.RankedCandidates,
        ) -> int:  # fmt: skip
            done: int = self.rank_kernel(
                scorers, unit, task.batch, plan.weighted.log_weight, plan.label, learns, not self.repeats, begin, end,
                proposed, reranking.scratch(task.batch, candidates), ranked,
            )  # fmt: skip
            return done

        self.scorers, ranked = self.passes.rank(
            self, task, plan.left_out, plan.learns, self.scorers, lambda: reranking.new_ranking(n, most), rank
        )
        return self._with_means(task, plan, ranked)

    def _add_errors(self, task: BatchTask, inside: Bools) -> None:
        """Add the errors of a finished task; `inside` is bool[n], whether the label was proposed."""
        assert task.prediction is not None  # the stages have set it
        sums = reranking.sum_errors(task.batch.label, task.batch.weight, inside, task.prediction)
        self.label_weight += sums[0]
        self.not_proposed += sums[1]
        self.not_chosen += sums[2]

    def _most_listed(self, candidates: int) -> int:
        return candidates if self.listing_options.probabilities else self.listing_options.top_k or 1

    def _with_means(
        self, task: BatchTask, plan: MulticlassPlan, ranked: reranking.RankedCandidates
    ) -> reranking.RankedCandidates:
        """Combine a ranking with the opinion of the means, if there is one, and learn how to."""
        found = plan.by_rows
        if found is None:
            return ranked
        top, (n, candidates) = found.top, plan.opinions.candidate.shape
        if task.class_lists is not None:  # which has all classes of the trees
            top = np.where(np.isin(top, task.class_lists.labels), top, 0)
        result = reranking.new_ranking(n, self._most_listed(candidates))
        self._combine(
            self.pool, plan.label, plan.learns & (not self.repeats), task.batch.weight, Listed(*ranked[:3]),
            Listed(top, found.top_p, found.p), Listed(*result[:3]), result.inside,
        )  # fmt: skip
        return result

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        self.means.want(wanted)
        self.means.report = self.report

    def serialize(self, archive: Archive) -> None:
        archive.prefix = OF_MEANS
        has_rows = self.means.classes is not None if archive.saves else archive.shape("label") is not None
        if has_rows:
            self.means.serialize(archive)
        archive.prefix = ""
        if has_rows:
            self.has_features = bool(archive.fact("has_features", int(self.has_features), 0, 1))
            low, high = [[0.0], [opinion_pool.FIRST_SQUARES]], [[opinion_pool.LARGEST], [sys.float_info.max]]
            archive.fill("pool", self.pool, low, high)
        super().serialize(archive)
        if not archive.saves:
            self.has_features = self.has_features or super().classes_seen > 0
        for part in (self.index, self.searched):
            if part is not None:
                part.serialize(archive)
        self.scorers = reranking.serialize(archive, self.scorers)


def label_range(spec: LearnerSpec) -> LabelRange:
    """Return the lowest and highest label, and the option that sets the range."""
    name = "--multiclass" if "multiclass" in spec.given else f"--cpt {spec.options.cpt}"
    return LabelRange(1, HIGHEST_LABEL, name)


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Refuse a model with another number of trees or rows of the index, before memory is allocated for them."""
    stored_arrays.check_rows("random", arrays, spec.options.trees)
    if spec.options.rerank and spec.options.index_slots:
        feature_index.check_sizes(arrays, spec.options.index_slots, spec.options.index_bits)


def build(spec: LearnerSpec) -> TreeLearner:
    """Return a learner of trees, with scorers if options ask for them."""
    return Multiclass(spec) if spec.options.rerank else ProbabilityTree(spec)


REDUCTION = ReductionRecord(
    name="cpt",
    title="Conditional probability tree",
    summary="a tree of probabilities: top k, new classes",
    options=CptOptions,
    enabled="adagrad, cpt",
    build=build,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
    dense=UNSUITED,  # trees alone learn badly from rows
    rows_with="rerank",
    widest_array=means.MOST_COLUMNS,
)
