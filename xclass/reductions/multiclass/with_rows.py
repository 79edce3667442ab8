"""Learn examples that may have dense rows: class means learn the rows, trees and scorers the hashed features.

Source    This project's own; `reduction` and `means` describe both parts, and `opinion_pool` combines what they say.
Cost      that of the parts, and a few operations for each class that they propose.
Differs   from `reduction` where examples have dense rows: while none of them has other features, the means alone learn
          and predict, and trees, index and scorers begin with the first example that has.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from ...array_types import Bools, UInt32s
from ...data.batch import HIGHEST_LABEL
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ..core.base import TAKEN, UNSUITED, ReductionRecord
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec, Wanted
from ..cpt.options import SUPPORTED_OPTIONS, CptOptions, resolve_defaults
from ..cpt.reduction import ProbabilityTree, TreePlan
from ..means import reduction as means
from . import feature_index, opinion_pool, reranking
from .opinion_pool import Listed
from .reduction import Multiclass

PREFIX = "rows."  # of the names of arrays that belong to the means


class MulticlassWithRows(Multiclass):
    """Learn as `Multiclass` does, and dense rows by class means if examples have them.

    Attributes
    ----------
    means : what learns the rows
    pool : see `opinion_pool.new_state`
    has_features : whether an example had hashed features besides the constant, or no row
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.means = means.Means(replace(spec, name="means", options=means.MeansOptions(means=spec.options.cpt)))
        super().__init__(spec)
        self.pool = opinion_pool.new_state()
        self.has_features = False
        self.constants = int(spec.constant)
        self._combine = DirectCall(opinion_pool, "combine")

    @property
    def most_rows(self) -> int | None:
        sizes = [size for size in (super().most_rows, self.means.most_rows) if size is not None]
        return min(sizes, default=None)

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

    def begin(self, task: BatchTask) -> TreePlan:
        plan, batch = super().begin(task), task.batch
        if self.has_features:
            return plan
        features = np.diff(batch.start) > self.constants
        first = int(np.argmax(features)) if features.any() else batch.n
        if not batch.columns:
            self.has_features = task.learn and batch.n > 0
        elif task.learn and first < batch.n:
            self.has_features = True
            plan = plan._replace(learns=plan.learns & (np.arange(batch.n) >= first))
        if task.learn and first < batch.n and self.means.classes is not None and not batch.dense.any():
            task.notes.append(
                f"the model has learned from rows of {self.means.classes.d} numbers alone, and the examples have "
                "features and no such rows: both are learned now, each from its own examples; give rows and features "
                "together if they describe the same examples"
            )
        return plan._replace(rows_alone=bool(batch.columns) and not self.has_features)

    def learn_rows(self, task: BatchTask, plan: TreePlan, begin: int, end: int, count: int) -> None:
        if not plan.rows_alone:
            super().learn_rows(task, plan, begin, end, count)

    def propose(self, task: BatchTask) -> None:
        """Let the index propose classes, and the means predict the rows of a batch, and learn, as a stage.

        A row of 0 beside features is a missing one, of which the means say nothing.
        """
        if not task.plan.rows_alone:
            super().propose(task)
        batch = task.batch
        if batch.columns:
            missing = (np.diff(batch.start) > self.constants) & ~batch.dense.any(axis=1)
            task.plan = task.plan._replace(by_rows=self.means.rank(task, missing))

    def _rerank(self, task: BatchTask) -> None:
        plan = task.plan
        if not plan.rows_alone:
            super()._rerank(task)
            return
        task.plan = None
        self.means.finish(task, plan.by_rows)
        self.add_errors(task, (plan.by_rows.top == plan.label[:, None]).any(axis=1))

    def rank_batch(self, task: BatchTask, plan: TreePlan) -> reranking.RankedCandidates:
        ranked, found = super().rank_batch(task, plan), plan.by_rows
        if found is None:
            return ranked
        top = found.top
        if task.class_lists is not None:  # which has all classes of the trees
            top = np.where(np.isin(top, task.class_lists.labels), top, 0)
        result = super().new_ranking(plan)
        self._combine(
            self.pool, plan.label, plan.learns & (not self.repeats), task.batch.weight, Listed(*ranked[:3]),
            Listed(top, found.top_p, found.p), Listed(*result[:3]), result.inside,
        )  # fmt: skip
        return result

    def new_ranking(self, plan: TreePlan) -> reranking.RankedCandidates:
        """Return room for all candidates where the opinion of the means joins."""
        if plan.by_rows is None:
            return super().new_ranking(plan)
        n, candidates = plan.opinions.candidate.shape
        return reranking.new_ranking(n, max(candidates, self.listing_options.top_k or 1))

    def want(self, wanted: Wanted) -> None:
        super().want(wanted)
        self.means.want(wanted)
        self.means.report = self.report

    def serialize(self, archive: Archive) -> None:
        archive.prefix = PREFIX
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


def label_range(spec: LearnerSpec) -> tuple[int, int, str]:
    """Return the lowest and highest label, and the option that sets the range."""
    return 1, HIGHEST_LABEL, "--multiclass" if "multiclass" in spec.given else f"--cpt {spec.options.cpt}"


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Refuse a model with another number of trees or rows of the index, before memory is allocated for them."""
    stored_arrays.check_rows("random", arrays, spec.options.trees)
    if spec.options.rerank and spec.options.index_slots:
        feature_index.check_sizes(arrays, spec.options.index_slots, spec.options.index_bits)


def build(spec: LearnerSpec) -> ProbabilityTree:
    """Return a learner of trees, with scorers if options ask for them."""
    return MulticlassWithRows(spec) if spec.options.rerank else ProbabilityTree(spec)


def dense(spec: LearnerSpec) -> str:
    """Return what becomes of rows of numbers: trees alone learn badly from them."""
    return TAKEN if spec.options.rerank else UNSUITED


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
    dense=dense,
    widest_array=means.MOST_COLUMNS,
)
