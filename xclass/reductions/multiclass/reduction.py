"""Predict classes that trees of probabilities and an index of features propose, by one scorer per class.

Source    This project's own; the trees are those of `cpt`, see there.
Idea      Every tree proposes its most probable labels, and the index those that an example's features point to. The
          scorer of each proposed class decides, and all of them learn from the example. Trees and index learn, too.
Cost      that of each searched tree, and O(s) for each proposed class.
Names     s features of an example | n examples
Differs   from trees alone (`cpt`): their probabilities only propose. A tree that adds few labels to those of the index
          and of the trees before it is not searched and learns few examples (`searched_trees`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from ...array_types import Bools, Int64s
from ...binary import loss
from ...data import batch_ops
from ...data.batch import Batch
from ...kernels.direct import DirectCall
from ...model.archive import Archive
from ..core.contract import BatchTask, empty_task
from ..core.further_passes import FurtherPasses
from ..core.spec import LearnerSpec
from ..cpt import binary_nodes
from ..cpt.binary_nodes import TreePredictions
from ..cpt.options import (
    GROWN,
    table_bits,
)
from ..cpt.reduction import ProbabilityTree, TreePlan
from . import feature_index, reranking
from .searched_trees import MOST_ROWS, SearchedTrees

LEAST_PROBABILITY = 1e-9  # of a label, where log losses of further passes are compared


class Multiclass(ProbabilityTree):
    """Learn trees, an index and scorers of classes (`--multiclass`, `--cpt --rerank`)."""

    # weight of all labelled examples, of those whose label was not proposed, and of those where it was not chosen then
    tallied = ("label_weight", "not_proposed", "not_chosen")
    scorers: reranking.RerankingScorers
    index: feature_index.FeatureIndex | None
    searched: SearchedTrees | None  # what decides how many trees are searched, None if it is all

    def __init__(self, spec: LearnerSpec) -> None:
        super().__init__(spec)
        o = self.options
        bits, kind = table_bits(o, self.bits)[1], loss.CODES[spec.binary.loss_function]
        self.new_scorers = partial(
            reranking.new_scorers, bits, kind, o.rerank_rate, spec.constant, o.max_doublings or 0, self.weights_only
        )
        self.scorers = self.new_scorers()
        self.index = self.new_index() if self.has_index else None
        self.searched = SearchedTrees(o.trees) if self.has_index and o.trees > 1 else None
        self.stages += [self.propose, self._rerank]
        self.label_weight = self.not_proposed = self.not_chosen = 0.0
        # an averaged learner cannot decide, because it does not keep the scorers of the first pass
        decides = spec.passes > 1 and not spec.testing and not spec.averaged
        self.passes: FurtherPasses[reranking.RerankingScorers, reranking.RankedCandidates] = FurtherPasses(
            decides, reranking.copied
        )
        self.rank_kernel = DirectCall(reranking, "rank")

    def new_index(self) -> feature_index.FeatureIndex:
        return feature_index.FeatureIndex(
            self.options.index_bits, self.options.index_slots, self.options.index_candidates, self.weights_only
        )

    @property
    def most_rows(self) -> int | None:
        most = super().most_rows
        return most if self.searched is None or self.testing else min(most or MOST_ROWS, MOST_ROWS)

    @property
    def proposals(self) -> int:
        return self.options.candidates  # independent of the output options: scorers learn from the candidates

    @property
    def number_searched(self) -> int:
        return super().number_searched if self.searched is None else self.searched.now

    def begin(self, task: BatchTask) -> TreePlan:
        plan = super().begin(task)
        if not task.learn:  # predictions in between do not count
            return plan
        left_out, learns = self.passes.begin(plan.learns)
        return plan._replace(left_out=left_out, learns=learns)

    def begin_pass(self, number: int, threads: int | None = None, held_out: bool | None = None) -> None:
        super().begin_pass(number, threads, held_out)
        self.passes.begin_pass(number)

    def end_pass(self) -> None:
        super().end_pass()
        self.scorers = self.passes.end_pass(self.scorers)

    def _learn_batch(self, task: BatchTask) -> None:
        """Let the trees propose labels and learn from the batch; those that are not searched learn from some rows."""
        plan, n, trees = self.begin(task), task.batch.n, len(self.members)
        searched, rows = np.full(n, self.number_searched), np.empty(0, np.int64)
        if self.searched is not None and task.learn and not self.repeats:
            searched, rows = self.searched.begin(plan.learns)
        cuts = [0, *(np.flatnonzero(np.diff(searched)) + 1).tolist(), n]  # where the number of trees changes
        for begin, end in itertools.pairwise(cuts):
            count = int(searched[begin]) if n else trees
            self.learn_rows(task, plan, begin, end, count)
            in_range = rows[(rows >= begin) & (rows < end)]
            for t in range(count, trees) if len(in_range) else ():
                batch = self.batch_of_tree(t, task.batch, plan.weighted.batch)
                self._try_tree(t, batch, plan, in_range)
        self.list_labels(task, plan.distributions)
        task.plan = plan

    def _try_tree(self, t: int, batch: Batch, plan: TreePlan, rows: Int64s) -> None:
        output, label = self.new_output(len(rows), self.proposals), plan.label[rows]
        of_tree = TreePredictions(*[array[t] for array in output])
        chosen = batch_ops.pick([(batch, rows)])
        self.members[t].learn_rows(chosen, label, plan.learns[rows], 0, len(rows), of_tree)
        plan.tried[t, rows] = (of_tree.top == label[:, None]).any(axis=1)

    def new_opinions(self, output: TreePredictions) -> feature_index.Opinions:
        """Return the candidates of the trees, with place for those of the index and its opinion of each."""
        trees, n, k = output.top.shape
        added = self.options.index_candidates if self.index is not None else 0
        candidates = np.zeros((n, trees * k + added), np.int64)
        binary_nodes.union_of_candidates(output.top, candidates)
        return feature_index.no_opinions(candidates)

    def warm_ups(self, learn: bool) -> dict[str, Callable[[], None]]:
        """Return one function that compiles the kernels of the trees, and one for the other stages if there are any."""
        if self.options.cpt_tree not in GROWN or self.options.save_tree is not None:
            return super().warm_ups(learn)  # another process must not read or write the file of a tree

        def compile_others() -> None:
            task = empty_task(learn)
            for stage in self.stages:
                if stage == self._learn_batch:
                    task.plan = self.begin(task)
                else:
                    stage(task)

        return {"trees": lambda: self._learn_batch(empty_task(learn)), "others": compile_others}

    def propose(self, task: BatchTask) -> None:
        """Add the candidates of the index, if any, to those of the trees and learn from the batch, as a stage."""
        index, plan = self.index, task.plan._replace(opinions=self.new_opinions(task.plan.output))
        task.plan = plan
        if index is None:
            return
        if task.learn:
            index.reserve(len(plan.label))

        def propose(begin: int, end: int, again: bool) -> None:
            index.propose(task.batch, plan.weighted.share, plan.label, plan.learns, again, begin, end, plan.opinions)

        ranges = self.thread_ranges(task.batch.n)
        jobs = self.passes.jobs(plan.left_out) if task.learn else [(begin, end, False) for begin, end in ranges]
        self.share(propose, jobs, in_order=task.learn)

    def _rerank(self, task: BatchTask) -> None:
        """Rerank the candidates and finish the task, as the last stage."""
        plan: TreePlan = task.plan
        task.plan = None
        task.candidates = plan.opinions.candidate
        self._count_proposed(task, plan)
        ranked = self.rank_batch(task, plan)
        if self.listing_options.probabilities:
            assert task.class_lists is not None  # made by the previous stage
            task.class_lists = reranking.with_reranked(task.class_lists, ranked)
        self._finish(task, plan.output, ranked.p, ranked.top, ranked.top_p)
        self.add_errors(task, ranked.inside)

    def _count_proposed(self, task: BatchTask, plan: TreePlan) -> None:
        if self.searched is None or not task.learn or self.repeats:
            return
        label, opinions = plan.label[:, None], plan.opinions
        by_index = ((opinions.candidate == label) & (opinions.score[:, :, feature_index.PROPOSED] > 0)).any(axis=1)
        by_tree = plan.tried | (plan.output.top == label).any(axis=2)
        self.searched.count(plan.learns, by_index, by_tree, np.count_nonzero(plan.output.top[:, :, 0], axis=0))

    def rank_batch(self, task: BatchTask, plan: TreePlan) -> reranking.RankedCandidates:
        """Rank the candidates of a batch and learn from it."""
        rank = partial(self._rank, task, plan)
        if not task.learn:
            return rank(self.scorers, plan.learns, self.thread_ranges(task.batch.n))[1]
        ranked: reranking.RankedCandidates
        self.scorers, ranked = self.passes.rank(
            self.scorers, rank, lambda ranked: -np.log(np.maximum(ranked.p, LEAST_PROBABILITY)), plan.left_out,
            plan.learns, task.batch.weight,
        )  # fmt: skip
        return ranked

    def add_errors(self, task: BatchTask, inside: Bools) -> None:
        """Add the errors of a finished task; `inside` is bool[n], whether the label was proposed."""
        assert task.prediction is not None  # the stages have set it
        sums = reranking.sum_errors(task.batch.label, task.batch.weight, inside, task.prediction)
        self.label_weight += sums[0]
        self.not_proposed += sums[1]
        self.not_chosen += sums[2]

    def new_ranking(self, plan: TreePlan) -> reranking.RankedCandidates:
        n, candidates = plan.opinions.candidate.shape
        return reranking.new_ranking(
            n, candidates if self.listing_options.probabilities else self.listing_options.top_k or 1
        )

    def _rank(
        self,
        task: BatchTask,
        plan: TreePlan,
        scorers: reranking.RerankingScorers,
        learns: Bools,
        jobs: list[tuple[int, int]],
    ) -> tuple[reranking.RerankingScorers, reranking.RankedCandidates]:
        """Rank the candidates of some examples and learn from them; return the scorers, whose table may be doubled.

        `jobs` are begin and end of the examples, for one thread each; a single one if any example is learned.
        """
        ranked = self.new_ranking(plan)
        proposed = reranking.ProposedClasses(plan.output.top, plan.output.top_p, plan.output.p, plan.opinions)
        unit = self.options.normalize_features != "none"
        current = [scorers]

        def job(begin: int, end: int) -> None:
            scratch = reranking.scratch(task.batch, plan.opinions.candidate.shape[1])
            while True:
                begin = self.rank_kernel(
                    current[0], unit, task.batch, plan.weighted.log_weight, plan.label, learns, not self.repeats,
                    begin, end, proposed, scratch, ranked,
                )  # fmt: skip
                if begin >= end:
                    return
                current[0] = reranking.with_double_capacity(current[0])  # the table is full

        self.share(job, jobs, in_order=task.learn)
        return current[0], ranked

    def serialize(self, archive: Archive) -> None:
        super().serialize(archive)
        for part in (self.index, self.searched):
            if part is not None:
                part.serialize(archive)
        self.scorers = reranking.serialize(archive, self.scorers)
