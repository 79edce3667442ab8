"""Route each example down a binary tree, then score only the classes seen most often at the node it reaches.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017.
Learners  A router for each internal node of a complete tree, and a scorer for each class.
Cost      Learning and prediction take O(s (depth + F)) for an example of s features, whatever K is.
Names     F most candidates of a node [max_candidates] | lambda multiplier of the recall bound [bern_hyper] |
          n, H weight and label entropy of a node [hist, total] | recall lower bound [recall-hat] |
          path feature: a feature of value 1 that stands for a node on the path [x + {(n.id : 1)}] | K classes |
          a node id.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the change of entropy that a router learns includes the example itself
          * the importance of a router's example is not divided by the count of the node
          * routers learn the side where the entropy is smaller
          * routers have no path features
          * descent goes on below the bound where the child recalls clearly more labels
          * descent ends where the bounds are equal, too
          * while learning, the bounds are those before the label is counted
          * the last term of the bound is 15 / sqrt(18) times as large, and no bound is negative
          * the learning rate is .5
          * a candidate that is not the label learns only while its score is above a margin
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

import math

import numpy as np

from ...binary import finite, gd, update_rule
from ...data import interactions
from ...data.batch import PATH_GROUP, Batch, features_of
from ...data.interactions import Crosser, as_arrays
from ...errors import UsageError
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import (
    Facts,
    OptionGroup,
    SearchRange,
    between,
    conflict,
    flag,
    no_effect,
    option,
    options_of,
    refused,
    warned,
)
from ..core import label_arrays, probabilities
from ..core.base import UNSUITED, Reduction, ReductionRecord
from ..core.calibration import NO_CLASSES, LabelStatistics
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec
from . import label_counts, routing, scoring, sequential
from .routing import RecallTreeSettings, RoutingPlan
from .scoring import SHARDS

MOST_CANDIDATES = 1 << 20
MOST_BITS = 23  # log2 of the largest table if -b is not given; larger ones do not help on the whole (docs/defaults.md)
MARGIN = 2.0  # of candidates, if --candidate_margin is not given


# -- options


def _candidates(facts: Facts) -> SearchRange:
    """Return the numbers of candidates to try, those of VW's demo."""
    return between(min(20, facts.classes), min(100, facts.classes), "int", first=(min(100, facts.classes),))


def _depths(facts: Facts) -> SearchRange:
    """Return the depths to try: from 5 levels less than a balanced tree has, to 2 levels more."""
    levels = math.ceil(math.log2(max(2, facts.classes)))
    return between(max(1, levels - 5), levels + 2, "int", first=(max(1, levels - 2),))


class RecallTreeOptions(OptionGroup):
    recall_tree: int = option("number of classes; labels are 1..K", metavar="K", minimum=1, stored=True)
    max_candidates: int = option(
        "number of classes scored at a node [F]",
        metavar="F",
        minimum=1,
        maximum=MOST_CANDIDATES,
        default_text="4 ceil(log2 K), at most K",
        stored=True,
        search=_candidates,
    )
    max_depth: int = option(
        "number of levels of routers",
        metavar="D",
        minimum=0,
        maximum=26,
        default_text="ceil(log2 K)",
        stored=True,
        search=_depths,
    )
    bern_hyper: float = option(
        "weight of the penalty in the recall bound, r - sqrt(LAMBDA r (1 - r) / n) - 15 / sqrt(18) LAMBDA / n if the "
        "candidates are the labels of a share r of n examples (paper: LAMBDA / n); with 0, the bound is r, but "
        "--vw_exact never stops above a leaf",
        default=1.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
        search=between(0.01, 10.0, "log", first=(0.1,)),
    )
    recall_stop: str = option(
        "`bound` ends the descent at a node whose recall bound is not lower than that of the child (VW); `gain` goes "
        "on if the candidates of the child included the labels of at least 2 % more of the recent examples; `paper` "
        "stops only where the bound is higher, counts a learned example before, and uses the bound of the paper; "
        "`never` stops at leaves only",
        choices=tuple(routing.STOPS),
        default="gain",
        stored=True,
    )
    candidate_margin: float = option(
        "a candidate that is not the label learns only if its score is above -M; from 50 on, all learn, as in the "
        "paper and in VW",
        metavar="M",
        minimum=0.1,
        maximum=update_rule.MAX_OPTION,
        default_text="2; 1e30 with --layout vw",
        stored=True,
        search=between(0.5, 10.0, "log", first=(1.0,)),
    )
    node_only: bool = option("use the node reached as the only path feature", stored=True, search=flag())
    no_path_features: bool = option("score without path features", stored=True, search=flag())
    randomized_routing: bool = option(
        "while learning, choose a branch at random with the probability that the router's score gives",
        stored=True,
        search=flag(),
    )
    router_weight: str = option(
        "importance of an example for a router: `entropy` is the change of label entropy in bits times the weight at "
        "the node, `mean_entropy` that change alone, `example` the example's own weight (VW); `paper` is Algorithm 3, "
        "which leaves the example itself out of the change",
        choices=("entropy", "mean_entropy", "example", "paper"),
        default="entropy",
        stored=True,
    )

    RULES = (
        warned(
            "link",
            "glf1 has an effect only with --randomized_routing; add that, or leave --link out",
            link="glf1",
            randomized_routing=None,
        ),
        no_effect("bern_hyper", "--recall_stop compares no bounds", recall_stop="never"),
        refused(
            options_of(probabilities.ListingOptions),
            "with --recall_tree needs scores that are log odds: give --loss_function logistic",
            loss_function=lambda loss: loss not in (None, "logistic"),
        ),
        conflict(
            "--node_only and --no_path_features exclude each other: leave one of them out",
            node_only=True,
            no_path_features=True,
        ),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    o: RecallTreeOptions = spec.options
    classes = o.recall_tree
    levels = max(0, classes - 1).bit_length()
    defaults: dict[str, object] = {}
    if o.max_candidates is None:
        defaults["max_candidates"] = max(1, min(classes, 4 * levels))
    if o.max_depth is None:
        defaults["max_depth"] = levels
    if o.candidate_margin is None:
        defaults["candidate_margin"] = update_rule.MAX_OPTION if spec.binary.layout == "vw" else MARGIN
    depth = levels if o.max_depth is None else o.max_depth
    subs = (1 << depth) - 1 + classes
    return {**defaults, **gd.resolve_defaults(spec.binary, subs, reduction=True, most_bits=MOST_BITS)}


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Raise ModelError unless the arrays of a model have the sizes that the options imply; called before `build`."""
    o: RecallTreeOptions = spec.options
    sequential = spec.binary.layout == "vw"
    router_subs = routing.subs(o.max_depth, blocked=not sequential)
    if sequential:
        stored_arrays.check_rows("weights.sums", arrays, router_subs + o.recall_tree)
    else:
        stored_arrays.check_rows("routers.sums", arrays, router_subs)
        for j in range(SHARDS):
            stored_arrays.check_rows(f"scorers.{j}.sums", arrays, -(-o.recall_tree // SHARDS))
    stored_arrays.take("nodes.top_label", arrays, np.int32, (None, o.max_candidates))


# -- learner

KEPT_FEATURES = 1024  # features for which buffers are kept
NO_CROSSES = scoring.Crosses(*as_arrays([]), False, False)


class RecallTree(Reduction):
    """Learn and predict with a recall tree (`--recall_tree`).

    Attributes
    ----------
    tables : weight tables; one for all subproblems with `--layout vw`, otherwise the routers' and SHARDS of scorers
    crosser : the interactions, if some of them name the path features
    sequential : whether examples are processed one after the other in one table (`--layout vw`)
    """

    report: LabelStatistics
    unknown_labels = NO_CLASSES

    def __init__(self, spec: LearnerSpec) -> None:
        o: RecallTreeOptions = spec.options
        self.classes = o.recall_tree
        self.candidates = o.max_candidates
        self.depth = o.max_depth
        self.rule = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact)
        self.testing = spec.testing
        self.tests_as_vw = spec.vw_exact and spec.testing
        self.sequential = spec.binary.layout == "vw"
        self.settings = RecallTreeSettings(
            bern=np.float32(o.bern_hyper),
            stop=routing.STOPS["never" if spec.vw_exact and o.bern_hyper == 0 else o.recall_stop],
            router_weight=routing.ROUTER_WEIGHTS.index(o.router_weight),
            randomized=o.randomized_routing,
            glf1=spec.binary.link == "glf1",
            margin=np.float32(o.candidate_margin),
            path=not o.no_path_features,
            node_only=o.node_only,
            classes=self.classes,
            depth=self.depth,
            routers=routing.subs(self.depth, blocked=not self.sequential),
        )
        self.random = np.array([spec.seed], np.uint64)
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
            self.stages = [self._process_sequentially]
        else:
            few = spec.weights_only
            shard = -(-self.classes // SHARDS)
            self.tables = [gd.new_table(self.rule, max(bits - 1, 2), router_subs, gd.odd_width(router_subs), few, few)]
            for _ in range(SHARDS):
                self.tables.append(gd.new_table(self.rule, max(bits - 3, 2), shard, gd.odd_width(shard), few, few))
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
        self.want(spec)

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

    def _new_plan(self, task: BatchTask) -> RoutingPlan:
        batch = task.batch
        n = batch.n
        capacity = n * (2 * self.candidates + 1)
        return RoutingPlan(
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
            given = features_of(batch)
            interactions.count_crossed(given, terms, start, permuted, self.depth + 1, counts, unused, unused)
            self.crosser.check_features(counts, batch.line)
            longest += int(counts.max())
        return longest

    def new_features(self, batch: Batch) -> routing.FeatureBuffers:
        """Return buffers for the longest example of a batch."""
        return routing.new_features(self._longest(batch))

    def _scratch_for(self, batch: Batch) -> scoring.ScoringScratch:
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
        table = finite.guarded(self.tables[0], task.guard)
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
            table = finite.guarded(self.tables[1 + shard], task.guard)
            self._score_kernel(
                self.tree, self.settings, crosses, table, self.rule, shard, batch, task.clock, plan, scratch
            )

        self.share(run_shard, [(shard,) for shard in range(SHARDS)], batch.n)
        self._finish(task)

    def _process_sequentially(self, task: BatchTask) -> None:
        """Process the examples of a batch one after the other in one table (the only stage with `--layout vw`)."""
        batch = task.batch
        plan = task.plan = self._new_plan(task)
        scratch = scoring.new_scratch(self.new_features(batch), self.candidates, self.routers + self.classes)
        table = finite.guarded(self.tables[0], task.guard)
        crosses = self.crosses(batch, every=not self.rule.checked)
        done = 0
        while True:
            done = sequential.process(
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
        if self.wanted.scores:
            start, chosen = scoring.scored_items(plan)
            labels = plan.item[chosen].astype(np.int64) + 1
            task.scored = probabilities.ClassLists(plan.score[chosen], labels, start)
        if self.wanted.needs_probabilities:
            self._candidate_probabilities(task)
        task.plan = None

    def _candidate_probabilities(self, task: BatchTask) -> None:
        """Report the probabilities of the candidates and list those that were requested."""
        batch, plan = task.batch, task.plan
        label = np.where(np.isnan(batch.label), 0.0, batch.label).astype(np.int64) - 1
        k = min(self.listing_options.top_k or 1, self.candidates)
        odds, own = np.empty(len(plan.score)), np.empty(batch.n)
        top, top_p = np.empty((batch.n, k), np.int64), np.empty((batch.n, k))
        scoring.candidate_probabilities(plan, self.classes, scoring.power(self.settings), label, odds, own)
        scoring.best_candidates(plan, odds, top, top_p)
        known = (label >= 0) & (label < self.classes)
        self.set_probabilities(task, top_p[:, 0], known, own, top, top[:, 0] == batch.label)
        if self.listing_options.top_k is not None:
            size = np.count_nonzero(top, axis=1)
            rest = np.where(size == self.classes, 0.0, np.maximum(0.0, 1.0 - top_p.sum(axis=1)))
            task.class_lists = probabilities.class_lists(top, top_p, size, rest)
        elif self.listing_options.probabilities:
            task.class_lists = scoring.by_class(plan, odds)

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; the tree itself is built from the options.

        `label_counts.serialize` describes what its checks protect. `random` is the state of a generator, for which any
        number is valid.
        """
        finite = self.rule.checked and not self.testing
        self.counts = label_counts.serialize(archive, self.counts, self.classes, self.depth, self.tree.left, finite)
        archive.fill("random", self.random)
        self.outside = archive.count("outside", self.outside)
        names = ["weights"] if self.sequential else ["routers"] + [f"scorers.{j}" for j in range(SHARDS)]
        for name, table in zip(names, self.tables, strict=True):
            gd.serialize_table(archive, name, table, self.rule, self.learner_options)


REDUCTION = ReductionRecord(
    name="recall_tree",
    title="Recall tree",
    summary="a tree proposes candidates, their regressors decide",
    options=RecallTreeOptions,
    enabled="gd, scorer-identity, recall_tree",
    build=RecallTree,
    resolve_defaults=resolve_defaults,
    check_arrays=check_arrays,
    probabilities=True,
    class_scores=True,
    not_merged="routers and the labels counted at their nodes depend on each other, so two trees have no average",
    dense=UNSUITED,
)
