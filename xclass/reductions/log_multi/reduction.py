"""Grow a tree online, whose routers learn to separate labels and to send as many examples left as right (LOMTree).

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1.
Learners  A router for each inner node; it learns positive scores for the labels of its right side and negative scores
          for those of its left side.
Cost      Learning and prediction take O(s depth) for an example of s features, whatever K is; see `split_tree`.
Names     T most inner nodes [max_predictors] | R_S swap resistance [swap_resistance] | E mean score at a node |
          e(y) mean score of label y there | K classes.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the tree has up to T inner nodes
          * the inner node that a swap makes keeps the router of the recycled node
          * the smallest leaf may be a child of the root, and then its sibling becomes the root
          * a leaf without examples predicts what its parent predicted
          * the importance of an example affects routers, but not the counts of the tree
          * routers learn hinge loss by AdaGrad from scaled examples
          * there are four inner nodes for each class, and one pass
          From VW: examples of weight 0 are not learned. With `--vw_exact` predictions are VW's, and the loss is always
          quantile loss. If the smallest leaf is a child of the root, VW makes the root a leaf, which predicts the same
          class from then on; `--lom_rules vw` does so too.
Idea      At an inner node the router is trained towards the left if E > e(y) and towards the right otherwise; its new
          score then decides where the example goes. That aims at a high value of a relaxation of the objective J of the
          node, equation (1), which --print_tree, --audit and the report show. At a leaf the label is counted. A leaf
          that has seen two labels splits: at once while there are fewer than T inner nodes, and later if condition (2)
          of the paper holds, for which the smallest leaf is recycled.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Int64s
from ...binary import gd
from ...data import interactions
from ...kernels.direct import DirectCall
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import Facts, OptionGroup, SearchRange, one_of, option
from ..core import label_arrays, tree_routers
from ..core.base import UNSUITED, ReductionRecord
from ..core.contract import BatchTask
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec
from . import split_cells, split_tree, split_walk

FIRST_PREDICTION = 1  # prediction before any example was seen, as in VW
LOSS, RATE = "hinge", 1.0  # defaults of the routers
# default number of routers: so many per class, but fewer than MOST_DEFAULT_ROUTERS unless K is larger
ROUTERS_PER_CLASS, MOST_DEFAULT_ROUTERS = 4, 2**16
ANY_LABEL = 0, 2**32 - 1  # lowest and highest label where labels are not limited to 1..K
KEPT_FEATURES, KEPT_LEVELS = 256, 64  # features and levels of the scratch that is kept for single examples
MOST_ROUTERS = 2**27  # highest number of routers, because their places are int32


def _routers(facts: Facts) -> SearchRange:
    """Return the numbers of routers that the paper tries, K - 1 to 64 K - 1."""
    return one_of(*(min((facts.classes << i) - 1, MOST_ROUTERS) for i in range(7)), first=(facts.classes - 1,))


class LogMultiOptions(OptionGroup):
    log_multi: int = option(
        "number of classes; labels are 1..K", metavar="K", minimum=1, maximum=2**31 - 1, stored=True
    )
    max_predictors: int = option(
        "number of inner nodes, each with a router [T]; the paper tries K-1 to 64K-1",
        metavar="T",
        minimum=0,
        maximum=MOST_ROUTERS,
        default_text="4 K - 1, but at most 65535 and at least K - 1; K - 1 with --vw_exact",
        stored=True,
        search=_routers,
    )
    swap_resistance: int = option(
        "how reluctant the tree is to recycle its smallest leaf in order to split another [R_S]",
        metavar="R",
        default=4,
        minimum=1,
        maximum=2**32,
        stored=True,
        search=one_of(4, 8, 16, 32, 64, 128, 256, first=(16, 64)),
    )
    lom_rules: str = option(
        "details that the paper leaves open: with `vw`, examples of weight 0 are counted in the tree, and recycling a"
        " leaf right below the root leaves a single leaf; with `paper` they are not counted, and the sibling becomes "
        "the root",
        aliases=("--log_multi_rules",),
        choices=("paper", "vw"),
        default="paper",
        stored=True,
    )

    RULES = tree_routers.RULES


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    """Return the values of options that were not given; with --vw_exact the loss is always VW's."""
    o, learning = spec.options, spec.binary
    defaults = {}
    most_routers = o.max_predictors
    if most_routers is None:
        most_routers = o.log_multi - 1
        if not spec.vw_exact:
            most_routers = max(most_routers, min(ROUTERS_PER_CLASS * o.log_multi - 1, MOST_DEFAULT_ROUTERS - 1))
        defaults["max_predictors"] = min(most_routers, MOST_ROUTERS)
    vw_layout = learning.layout == "vw"
    defaults.update(tree_routers.resolve_defaults(learning, o.log_multi, "quantile" if vw_layout else LOSS, RATE))
    if spec.vw_exact and not spec.loaded:
        defaults["loss_function"] = "quantile"
        pinned = learning.min_prediction is not None or learning.max_prediction is not None
        if learning.loss_function == "logistic" and not pinned:  # VW applies only its range
            limit = float(gd.LOGISTIC_RANGE)
            defaults.update(min_prediction=-limit, max_prediction=limit)
    return defaults


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    tree_routers.check_arrays(spec, arrays, spec.options.max_predictors)


class LomTree(tree_routers.RoutedLearner):
    """Learn and predict with a LOMTree (`--log_multi`)."""

    def __init__(self, spec: LearnerSpec) -> None:
        o: LogMultiOptions = spec.options
        super().__init__(spec, o.max_predictors)
        self.options = o
        self.predict_only = self.weights_only and not spec.vw_exact  # VW learns on
        self.most_routers = o.max_predictors
        self.vw_layout = self.routers.vw_layout
        self.as_vw = spec.vw_exact
        any_label = o.lom_rules == "vw" or spec.any_label
        self.labels = ANY_LABEL if any_label else (1, o.log_multi)  # the lowest and the highest one of a model
        self.any_label = False  # whether labels outside 1..K were learned; not recorded with `--lom_rules vw`
        self.settings = split_walk.SplitTreeSettings(
            self.most_routers, o.swap_resistance, o.lom_rules == "vw",
            spec.scores,
        )  # fmt: skip
        self.tree, self.cells = split_tree.new_tree(), split_cells.new_cells()
        split_tree.create_root(self.tree, FIRST_PREDICTION)
        self.stages = [self._process_batch]
        self._kernel = DirectCall(split_walk, "process_batch")
        self._scratch = tree_routers.new_scratch(KEPT_FEATURES, KEPT_LEVELS)  # for batches of a single example
        self._single_output = self._new_predictions(1)  # the same, unless more than the prediction is read from it

    # stages

    def _process_batch(self, task: BatchTask) -> None:
        batch = task.batch
        label = label_arrays.whole(batch)
        as_vw = self.settings.as_vw
        learns = ~np.isnan(batch.label) & task.learns() if as_vw else task.learned()
        if task.learn:
            if not as_vw and not self.any_label:
                outside = (label < 1) | (label > self.options.log_multi)
                if np.count_nonzero(outside):
                    self.any_label = bool((outside & ~np.isnan(batch.label) & task.learns()).any())
            was_collapsed = as_vw and split_tree.is_collapsed(self.tree)
            output = self._process_in_order(task, label, learns)
            if as_vw and split_tree.is_collapsed(self.tree) and not was_collapsed:
                task.notes.append(
                    "the tree is a single leaf from now on, which predicts the same class for all examples, because "
                    "the leaf to be recycled was a child of the root, where VW loses its tree; --lom_rules paper keeps "
                    "the tree"
                )
        else:
            output = self._predict_in_parallel(task, label, learns)
        task.prediction = output.predicted.astype(np.float64)
        task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        if self.as_vw and len(task.read.features):  # VW generates crosses only for scoring
            crosses = np.where(output.scored, 0, interactions.crossed_counts(batch))
            task.read = task.read._replace(features=task.read.features - crosses)
        if self.settings.keep_scores:
            used = slice(0, output.first[-1])
            task.scored = ClassLists(output.score[used], output.node[used], output.first)

    def _new_predictions(self, n: int) -> split_walk.LogMultiPredictions:
        capacity = 4 * n if self.settings.keep_scores else 0
        return split_walk.LogMultiPredictions(
            np.zeros(n, np.int64),
            np.zeros(n + 1, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.float32),
            np.ones(n, bool),
        )

    def levels(self) -> int:
        """Return the number of levels for which scratch is allocated."""
        return int(split_tree.levels(self.tree)) + 32

    def _process_rows(
        self,
        task: BatchTask,
        label: Int64s,
        learns: Bools,
        begin: int,
        end: int,
        scratch: tree_routers.GroupScratch,
        output: split_walk.LogMultiPredictions,
    ) -> int:
        """Predict and learn the examples [begin, end) of a batch; return the first one not processed."""
        done: int = self._kernel(
            self.tree, self.cells, self.settings, tree_routers.guarded(self.routers, task), task.batch, label, learns,
            task.clock, begin, end, scratch, output,
        )  # fmt: skip
        return done

    def _process_in_order(self, task: BatchTask, label: Int64s, learns: Bools) -> split_walk.LogMultiPredictions:
        """Predict and learn all examples of a batch in order, growing tree, cells and buffers as needed."""
        batch = task.batch
        most_features = batch.most_features
        single = batch.n == 1
        reused = single and not (self.settings.keep_scores or self.as_vw)
        output, done = self._single_output if reused else self._new_predictions(batch.n), 0
        scratch = self._scratch
        if not single or most_features > len(scratch.rate):
            scratch = tree_routers.new_scratch(most_features, self.levels())
        while True:
            done = self._process_rows(task, label, learns, done, batch.n, scratch, output)
            if done == batch.n:
                return output
            if single:
                self._scratch = tree_routers.new_scratch(max(most_features, KEPT_FEATURES), self.levels())
            scratch = self._scratch if single else tree_routers.new_scratch(most_features, self.levels())
            self.tree, self.cells = split_tree.with_capacity_for(self.tree, self.cells, tree_routers.GROUP_SIZE)
            if self.settings.keep_scores:
                more = len(output.node) + tree_routers.GROUP_SIZE * self.levels()
                output = output._replace(
                    node=np.concatenate([output.node, np.empty(more, np.int64)]),
                    score=np.concatenate([output.score, np.empty(more, np.float32)]),
                )

    def _predict_in_parallel(self, task: BatchTask, label: Int64s, learns: Bools) -> split_walk.LogMultiPredictions:
        """Predict the examples of a batch without learning, on several threads if no scores are wanted."""
        batch = task.batch
        parts = self.thread_ranges(batch.n)
        if self.settings.keep_scores or len(parts) == 1:
            return self._process_in_order(task, label, learns)
        batch_output = self._new_predictions(batch.n)
        levels = self.levels()

        def predict_rows(begin: int, end: int) -> None:
            scratch = tree_routers.new_scratch(batch.most_features, levels)
            self._process_rows(task, label, learns, begin, end, scratch, batch_output)

        self.share(predict_rows, parts)
        return batch_output

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; `split_tree.restored` and `split_cells.restored` say what their checks protect.

        Answers are classes or FIRST_ANSWER, which is 1, so they are at most K. With `--lom_rules vw`, and if the model
        was learned with other labels (`--on_bad_line vw`), they may be any label. Labels are keys and are displayed,
        but they are never used as indices.
        """
        if self.any_label if archive.saves else "any_label" in archive.facts:
            archive.fact("any_label", 1, 1, 1)
            self.any_label, self.labels = True, ANY_LABEL
        self.tree, self.cells = split_tree.serialize(
            archive, self.tree, self.cells, self.labels, self.most_routers, blocked=not self.vw_layout
        )
        tree_routers.serialize(archive, self.routers, self.learner_options)


REDUCTION = ReductionRecord(
    name="log_multi",
    title="LOMTree",
    summary="a tree that learns its shape online; the fastest",
    options=LogMultiOptions,
    enabled="gd, scorer-identity, log_multi",
    build=LomTree,
    resolve_defaults=resolve_defaults,
    check_arrays=check_arrays,
    not_merged="splits of nodes and the labels counted there depend on each other, so two trees have no average",
    dense=UNSUITED,
)
