"""Route each example down a binary tree, then score only the classes seen most often at the node it reaches.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017.
Learners  A router for each internal node of a complete tree, and a scorer for each class.
Cost      Learning and prediction take O(s (depth + F)) for an example of s features, whatever K is.
Names     F most candidates of a node [max_candidates] | lambda multiplier of the recall bound [bern_hyper] |
          n, H weight and label entropy of a node [hist, total] | recall lower bound [recall-hat] |
          path feature: a feature of value 1 that stands for a node on the path [x + {(n.id : 1)}] | K classes |
          a node id.
Differs   from the paper (docs/differences_from_papers.md says why, and what it costs):
          * the change of entropy that a router learns includes the example itself
          * the importance of a router's example is not divided by the count of the node
          * routers learn the side where the entropy is smaller
          * routers have no path features
          * descent goes on below the bound where the child recalls clearly more labels
          * descent ends where the bounds are equal, too
          * while learning, the bounds are those before the label is counted
          * the last term of the bound is 15 / sqrt(18) times as large, and no bound is negative
          * the learning rate is .5
          From VW: examples of weight 0 are not learned (VW's entropy becomes NaN); bern_hyper is stored in the model;
          under the default layout, routers and scorers have separate weight tables, and path features are hashed like
          all others. With `--layout vw --router_weight example --recall_stop bound` predictions are VW's.
Idea      O(depth) routers send an example to a node, where only the scorers of the F most frequent labels of the node
          are evaluated; routing stops early where the recall bound would not improve.

Learning has two stages. Routing needs no scorer, so it runs ahead on a thread of its own and passes on a plan, which
says for each example which classes to score and which to train. The classes are divided into SHARDS parts with weight
tables of their own, which are scored and trained independently, so the results do not depend on the number of threads.
The modules `label_counts`, `routing` and `scoring` explain the recall bound, the training of routers and the
probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...binary import finite, gd
from ...data import interactions
from ...data.batch import PATH_GROUP, Batch
from ...data.interactions import Crosser, as_arrays
from ...errors import UsageError
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import label_arrays, probabilities
from ..core.base import Learner, Reduction, unsuited
from ..core.calibration import Report
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec, Wanted
from . import label_counts, options, routing, scoring
from .routing import Plan, Settings
from .scoring import SHARDS

KEPT_FEATURES = 1024  # features for which buffers are kept
NO_CROSSES = scoring.Crosses(*as_arrays([]), False, False)


class RecallTree(Learner):
    """Learn and predict with a recall tree (`--recall_tree`).

    Attributes
    ----------
    tables : weight tables; one for all subproblems with `--layout vw`, otherwise the routers' and SHARDS of scorers
    crosser : the interactions, if some of them name the path features
    sequential : whether examples are processed one after the other in one table (`--layout vw`)
    """

    report: Report

    def __init__(self, spec: LearnerSpec) -> None:
        o: options.Options = spec.options
        self.classes = o.recall_tree
        self.candidates = o.max_candidates
        self.depth = o.max_depth
        self.rule = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact)
        self.testing = spec.testing
        self.tests_as_vw = spec.vw_exact and spec.testing
        self.sequential = spec.binary.layout == "vw"
        self.settings = Settings(
            bern=np.float32(o.bern_hyper),
            stop=routing.STOPS["never" if spec.vw_exact and o.bern_hyper == 0 else o.recall_stop],
            router_weight=routing.ROUTER_WEIGHTS.index(o.router_weight),
            randomized=o.randomized_routing,
            glf1=spec.binary.link == "glf1",
            path=not o.no_path_features,
            node_only=o.node_only,
            classes=self.classes,
            depth=self.depth,
            routers=routing.subs(self.depth, blocked=not self.sequential),
        )
        self.random = np.array([spec.seed], np.uint64)
        self.resume = spec.binary.resume
        self.crosser: Crosser | None = None
        self._groups: set[int] = set()  # groups that wildcards have stood for
        self._crosses = (NO_CROSSES, NO_CROSSES)  # those with path features, and all
        self.learner_options = spec.binary
        self.predict_only = spec.binary.predict_only_model and not spec.vw_exact  # VW learns on
        bits = spec.binary.bits
        nodes = (2 << self.depth) - 1
        node_bytes = routing.NODE_BYTES + label_counts.bytes_of_node(self.candidates)
        self.memory = gd.SLOT_BYTES << bits, nodes * node_bytes
        gd.check_memory(bits, extra_bytes=self.memory[1], cure="a smaller --max_depth")
        self.tree = routing.new_tree(self.depth, blocked=not self.sequential)
        self.routers = router_subs = self.settings.routers
        self.counts = label_counts.new_counts(len(self.tree.left), self.candidates)
        if self.sequential:
            subs = router_subs + self.classes
            self.tables = [gd.new_table(self.rule, bits, subs, gd.vw_width(subs))]
            self.stages = [self._learn_sequentially]
        else:
            table_bits = max(bits - 2, 2)
            few = spec.wanted.weights_only
            shard = -(-self.classes // SHARDS)
            self.tables = [gd.new_table(self.rule, table_bits, router_subs, gd.odd_width(router_subs), few, few)]
            for _ in range(SHARDS):
                self.tables.append(gd.new_table(self.rule, table_bits, shard, gd.odd_width(shard), few, few))
            self.stages = [self._route, self._score]
        width = gd.vw_width(router_subs + self.classes)
        self.crowding = gd.crowding_warning(bits, self.classes, width, spec.binary.layout)
        self.workers = SHARDS
        self._route_kernel = DirectCall(routing, "route")
        self._score_kernel = DirectCall(scoring, "score_shard")
        self._choose_kernel = DirectCall(scoring, "choose")
        # buffers of the two stages for a batch of a single example
        self._kept_features = routing.new_features(KEPT_FEATURES)
        self._kept_scratch = scoring.new_scratch(routing.new_features(KEPT_FEATURES), self.candidates)
        self.want(spec.wanted)

    def cross_path(self, crosser: Crosser) -> None:
        if not self.settings.path:
            raise UsageError("--no_path_features leaves nothing to cross with namespace \\x88: drop one of them")
        self.crosser = crosser
        self._expand()

    def _expand(self) -> None:
        """Set the crosses for the groups met so far; those with a group that an example lacks give it no feature."""
        assert self.crosser is not None
        every = self.crosser.expanded(sorted(self._groups))
        of_path = [terms for terms in every if PATH_GROUP in terms]
        permuted = self.crosser.permuted
        self._crosses = (
            scoring.Crosses(*as_arrays(of_path), permuted, False), scoring.Crosses(*as_arrays(every), permuted, True)
        )  # fmt: skip

    def crosses(self, batch: Batch, every: bool = False) -> scoring.Crosses:
        """Return the interactions to generate for a batch: those that name the path features, or `every` one."""
        if self.crosser is not None and self.crosser.has_wildcards:
            new = set(np.unique(batch.group_name).tolist()) - self._groups
            if new:
                self._groups |= new
                self._expand()
        return self._crosses[every and self.crosser is not None]

    # stages

    def _new_plan(self, task: BatchTask) -> Plan:
        batch = task.batch
        n = batch.n
        capacity = n * (2 * self.candidates + 1)
        return Plan(
            label=self.classes_of(task, task.learned(), "recall_tree", self.classes),
            node=np.empty(n, np.int32),
            recall=np.empty(n),
            last=np.empty(n, np.int32),
            mode=np.empty(n, np.int8),
            dropped=np.empty(n, np.int64),
            first=np.zeros(n + 1, np.int64),
            scored=np.empty(n, np.int64),
            item=np.empty(capacity, np.int32),
            score=np.empty(capacity, np.float32),
        )

    def _longest(self, batch: Batch) -> int:
        """Return the number of features of the longest example, with its path features and their crosses."""
        longest: int = batch.most_features + self.depth + 2
        if self.crosser is not None and batch.n:
            counts, unused = np.empty(batch.n), np.zeros(max(256, len(self._crosses[1].terms)), np.uint8)
            terms, start, permuted, _ = self.crosses(batch, every=True)
            interactions.count_crossed(batch, terms, start, permuted, self.depth + 1, counts, unused, unused)
            self.crosser.check_features(counts, batch.line)
            longest += int(counts.max())
        return longest

    def new_features(self, batch: Batch) -> routing.Features:
        """Return buffers for the longest example of a batch."""
        return routing.new_features(self._longest(batch))

    def _scratch_for(self, batch: Batch) -> scoring.Scratch:
        """Return buffers for the longest example of a batch; those for a single example are kept."""
        if batch.n == 1 and self._longest(batch) <= len(self._kept_scratch.features.x):
            return self._kept_scratch
        return scoring.new_scratch(self.new_features(batch), self.candidates)

    def _route(self, task: BatchTask) -> None:
        """Route a batch and train the routers (first stage)."""
        batch = task.batch
        plan = task.plan = self._new_plan(task)
        fits = batch.n == 1 and self._longest(batch) <= KEPT_FEATURES
        features = self._kept_features if fits else self.new_features(batch)
        table = finite.guarded(self.tables[0], task)
        done = 0
        while True:
            done = self._route_kernel(
                self.tree, self.counts, self.settings, table, self.rule, batch, task.clock, self.random, plan, done,
                features,
            )  # fmt: skip
            if done == batch.n:
                return
            self.counts = label_counts.with_cells(self.counts, 2 * len(self.counts.cell_key))

    def _score(self, task: BatchTask) -> None:
        """Score and train the classes of the plan, a thread per shard at most (second stage)."""
        batch, plan = task.batch, task.plan
        crosses = self.crosses(batch)

        def run_shard(shard: int) -> None:
            scratch = self._scratch_for(batch)
            table = finite.guarded(self.tables[1 + shard], task)
            self._score_kernel(
                self.tree, self.settings, crosses, table, self.rule, shard, batch, task.clock, plan, scratch
            )

        self.share(run_shard, [(shard,) for shard in range(SHARDS)], batch.n)
        self._finish(task)

    def _learn_sequentially(self, task: BatchTask) -> None:
        """Process the examples of a batch one after the other in one table (the only stage with `--layout vw`)."""
        batch = task.batch
        plan = task.plan = self._new_plan(task)
        scratch = scoring.new_scratch(self.new_features(batch), self.candidates, self.routers + self.classes)
        table = finite.guarded(self.tables[0], task)
        crosses = self.crosses(batch, every=not self.rule.checked)
        done = 0
        while True:
            done = scoring.learn_sequentially(
                self.tree, self.counts, self.settings, crosses, table, self.rule, batch, task.clock, self.random, plan,
                done, scratch,
            )  # fmt: skip
            if done == batch.n:
                break
            self.counts = label_counts.with_cells(self.counts, 2 * len(self.counts.cell_key))
        self._finish(task)

    def _finish(self, task: BatchTask) -> None:
        """Set the predictions, losses and requested scores and probabilities of a batch from its plan."""
        batch, plan = task.batch, task.plan
        task.prediction = np.empty(batch.n)
        self._choose_kernel(plan, task.prediction)
        task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        if self.keep_scores:
            task.score_start, chosen = scoring.scored_items(plan)
            task.scores = plan.score[chosen]
            task.score_labels = plan.item[chosen].astype(np.int64) + 1
        if self.needs_probabilities:
            self._candidate_probabilities(task)
        task.plan = None

    def _candidate_probabilities(self, task: BatchTask) -> None:
        """Report the probabilities of the candidates and list those that were requested."""
        batch, plan = task.batch, task.plan
        labelled = ~np.isnan(batch.label)
        weight = batch.weight.astype(np.float64)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64) - 1
        k = min(self.listing_options.top_k or 1, self.candidates)
        odds, own = np.empty(len(plan.score)), np.empty(batch.n)
        top, top_p = np.empty((batch.n, k), np.int64), np.empty((batch.n, k))
        scoring.candidate_probabilities(plan, self.classes, label, odds, own)
        scoring.best_candidates(plan, odds, top, top_p)
        known = (label >= 0) & (label < self.classes)
        task.answer_probability, task.label_probability = top_p[:, 0], np.where(known, own, np.nan)
        self.report.add_losses(labelled, weight, known, own)
        self.report.add_forecasts(top_p[:, 0], labelled, weight, top[:, 0] == batch.label)
        if self.listing_options.top_k is not None:
            self.report.add_top_k(labelled, weight, batch.label, top)
            size = np.count_nonzero(top, axis=1)
            rest = np.where(size == self.classes, 0.0, np.maximum(0.0, 1.0 - top_p.sum(axis=1)))
            task.class_lists = probabilities.class_lists(top, top_p, size, rest)
        elif self.listing_options.probabilities:
            task.class_lists = scoring.by_class(plan, odds)

    def want(self, wanted: Wanted) -> None:
        self.listing_options, self.keep_scores = wanted.listing_options, wanted.scores
        self.needs_probabilities = wanted.needs_probabilities
        self.report = Report(self.listing_options, unknown_labels="labels that are no class")

    # model

    def arrays(self) -> dict[str, Stored]:
        stored: dict[str, Stored] = {**label_counts.arrays(self.counts, self.predict_only), "random": self.random}
        for name, table in zip(self._names(), self.tables, strict=True):
            stored.update(gd.table_arrays(name, table, self.learner_options.predict_only_model))
        return stored

    def _names(self) -> list[str]:
        return ["weights"] if self.sequential else ["routers"] + [f"scorers.{j}" for j in range(SHARDS)]

    def facts(self) -> dict[str, Any]:
        return {"outside": self.outside}

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Restore a model; the tree itself is built from the options.

        `label_counts.restored` and `gd.restore_table` describe what their checks protect. `random` is the state of a
        generator, for which any number is valid.
        """
        if self.predict_only:
            arrays = {**label_counts.NO_CELLS, **arrays}
        with stored_arrays.reject_unused(arrays, facts) as (arrays, facts):
            self.counts = label_counts.restored(
                self.counts, arrays, self.classes, self.depth, self.tree.left, self.rule.checked and not self.testing
            )
            stored_arrays.fill("random", arrays, self.random)
            self.outside = stored_arrays.take_count("outside", facts)
            for name, table in zip(self._names(), self.tables, strict=True):
                gd.restore_table(name, table, arrays, self.resume, self.rule)


REDUCTION = Reduction(
    name="recall_tree",
    title="Recall tree",
    summary="a tree proposes candidates, their regressors decide",
    options=options.Options,
    enabled="gd, scorer-identity, recall_tree",
    build=RecallTree,
    resolve_defaults=options.resolve_defaults,
    check_arrays=options.check_arrays,
    probabilities=True,
    class_scores=True,
    not_merged="routers and the labels counted at their nodes depend on each other, so two trees have no average",
    abilities=("describe",),
    dense=unsuited,
)
