"""Learn examples that have dense rows: class means learn the rows, trees and scorers the hashed features beside them.

Source    This project's own; the means are those of `means`, and `opinion_pool` combines what both say.
Differs   from `reduction` where examples have dense rows: while none of them has other features, the means alone learn
          and predict, and trees, index and scorers begin with the first example that has.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...array_types import Float64s
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec, Wanted
from ..cpt.reduction import Plan
from ..means import reduction as means
from . import opinion_pool, reranking
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
        self.means = means.Means(replace(spec, name="means", options=means.Options(means=spec.options.cpt)))
        super().__init__(spec)
        self.pool = opinion_pool.new_state()
        self.has_features = False
        self.constants = int(spec.constant)
        self.stages.insert(-1, self._learn_rows)
        self._combine = DirectCall(opinion_pool, "combine")

    @property
    def most_rows(self) -> int | None:
        sizes = [size for size in (super().most_rows, self.means.most_rows) if size is not None]
        return min(sizes, default=None)

    @property
    def classes_seen(self) -> int:
        return max(super().classes_seen, self.means.classes_seen)

    def survey(self, task: BatchTask, vw_exact: bool) -> None:
        super().survey(task, vw_exact)
        self.means.skip_large_rows(task)

    def begin(self, task: BatchTask) -> Plan:
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
        return plan._replace(rows_alone=bool(batch.columns) and not self.has_features)

    def learn_rows(self, task: BatchTask, plan: Plan, begin: int, end: int, count: int) -> None:
        if not plan.rows_alone:
            super().learn_rows(task, plan, begin, end, count)

    def propose(self, task: BatchTask) -> None:
        if not task.plan.rows_alone:
            super().propose(task)

    def _learn_rows(self, task: BatchTask) -> None:
        """Let the means predict the rows of a batch and learn from them, as a stage.

        A row of 0 beside features is a missing one, of which the means say nothing.
        """
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

    def rank_batch(self, task: BatchTask, plan: Plan) -> reranking.Ranked:
        ranked, found = super().rank_batch(task, plan), plan.by_rows
        if found is None:
            return ranked
        top = found.top
        if task.class_lists is not None:  # which has all classes of the trees
            top = np.where(np.isin(top, task.class_lists.labels), top, 0)
        result = super().new_ranking(plan)
        self._combine(
            self.pool, plan.label, plan.learns & (not self.again), task.batch.weight, Listed(*ranked[:3]),
            Listed(top, found.top_p, found.p), Listed(*result[:3]), result.inside,
        )  # fmt: skip
        return result

    def new_ranking(self, plan: Plan) -> reranking.Ranked:
        """Return room for all candidates where the opinion of the means joins."""
        if plan.by_rows is None:
            return super().new_ranking(plan)
        n, candidates = plan.opinions.candidate.shape
        return reranking.new_ranking(n, max(candidates, self.listing_options.top_k or 1))

    def want(self, wanted: Wanted) -> None:
        super().want(wanted)
        self.means.want(wanted)
        self.means.report = self.report

    def arrays(self) -> dict[str, Stored]:
        stored = super().arrays()
        if self.means.classes is None:
            return stored
        rows = {PREFIX + name: array for name, array in self.means.arrays().items()}
        return {**stored, **rows, "pool": self.pool}

    def facts(self) -> dict[str, Any]:
        if self.means.classes is None:
            return {}
        return {**self.means.facts(), "has_features": int(self.has_features)}

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        rows = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        others = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
        self.has_features = True
        if rows:
            facts = dict(facts)
            self.has_features = bool(stored_arrays.take_fact("has_features", facts, int, 0, 1))
            del facts["has_features"]
            self.means.restore(rows, facts)
            facts = {}
            pool: Float64s = stored_arrays.take("pool", others, np.float64, (2, 2))
            stored_arrays.check_range("pool", pool[0], 0.0, opinion_pool.LARGEST)
            stored_arrays.check_range("pool", pool[1], opinion_pool.FIRST_SQUARES, sys.float_info.max)
            self.pool = np.array(pool)
            del others["pool"]
        super().restore(others, facts)
