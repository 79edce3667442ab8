"""Learn one scorer per label and predict every label whose probability is above a threshold (one-against-all).

Source    Rifkin and Klautau, "In Defense of One-Vs-All Classification", JMLR 2004; VW's multilabel_oaa.cc.
Learners  K scorers; the binary labels of scorer c are 1 for examples that have label c and -1 for all others.
Cost      O(s K) for an example of s features, in long loops over neighbouring labels: the kernels of `oaa`.
Differs   from the papers (docs/papers.md says why, and what it costs):
          * the scorer of a label learns from all examples, one after the other, with squared loss
          From VW: labels may come in any order and repeat, may be names and have weights; a label outside the range is
          refused. With `--vw_exact` a list is learned up to its first label that is not above the one before, as in VW.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import fast_math, top_k
from ...kernels.constants import HALF, ONE
from ...kernels.jit import jit
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import option
from ..core import label_arrays, label_lists
from ..core.base import ReductionRecord
from ..core.contract import BatchTask
from ..core.label_report import LabelLists
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec, LearnerUse
from ..oaa import scorers

ENABLED = "gd, scorer-identity, multilabel_oaa"
RATE, DECAY = 0.25, 0.6  # learning rate of squared loss, and its factor after each of several passes, by default
LOG_ODDS, LABELS, LINKED = range(3)  # what scores are: log odds, estimates of the label -1 or 1, probabilities


class MultilabelOaaOptions(label_lists.LabelListOptions):
    multilabel_oaa: int = option(
        "number of labels; an example has any number of the labels 0..K-1, such as `1,5,7 | words`",
        metavar="K",
        minimum=1,
        stored=True,
    )


# -- kernels


@jit
def probabilities_of(scores: Float32s, meaning: int, p: Float32s) -> None:
    """Compute the probabilities of labels from their scores, which mean LOG_ODDS, LABELS or LINKED."""
    for j in range(len(scores)):
        s = scores[j]
        if meaning == LOG_ODDS:
            p[j] = ONE / (ONE + fast_math.expf(-s))
        else:
            p[j] = HALF + HALF * min(max(s, -ONE), ONE) if meaning == LABELS else s


@jit
def rank_labels(
    scores: Float32s, known: Int64s, least: np.float32, begin: int, end: int, top: Int64s, top_scores: Float32s,
    chosen: Int64s,
) -> None:  # fmt: skip
    """Rank the best labels of the examples [begin, end) in `top`, and count those with a score above `least`.

    Example i may get the first `known[i]` labels.
    """
    for i in range(begin, end):
        for r in range(top_k.rank(scores[i], 0, known[i], top[i])):
            top_scores[i, r] = scores[i, top[i, r]]
        count = 0
        for j in range(known[i]):
            count += scores[i, j] > least
        chosen[i] = count


@jit
def choose_labels(
    scores: Float32s, known: Int64s, least: np.float32, low: int, begin: int, end: int, chosen: ClassLists
) -> None:
    """List the labels of the examples [begin, end) with a score above `least`, and their scores; `low` is the lowest
    label.
    """
    for i in range(begin, end):
        at = chosen.start[i]
        for j in range(known[i] if chosen.start[i + 1] > at else 0):
            if scores[i, j] > least:
                chosen.labels[at] = low + j
                chosen.scores[at] = scores[i, j]
                at += 1


@jit
def cut_unsorted(batch: Batch, label: Int64s, classes: int) -> None:
    """Set to -1 the labels of each example from the first that is no class or not above the one before, as VW does."""
    for i in range(len(batch.label)):
        first = batch.label_start[i]
        before, stuck = -1, False
        for j in range(first, batch.label_start[i + 1]):
            stuck = stuck or not before < label[j] < classes
            before = label[j]
            if stuck:
                label[j] = -1


@jit
def set_differences(batch: Batch, label: Int64s, chosen: LabelLists, loss: Float64s) -> None:
    """Compute how many labels only one of the two lists of each example has, by merging them as VW does."""
    for i in range(len(batch.label)):
        a, a_end = batch.label_start[i], batch.label_start[i + 1]
        b, b_end = chosen.start[i], chosen.start[i + 1]
        count = 0
        while a < a_end and b < b_end:
            count += label[a] != chosen.labels[b]
            a, b = a + (label[a] <= chosen.labels[b]), b + (chosen.labels[b] <= label[a])
        loss[i] = 0.0 if np.isnan(batch.label[i]) else np.float64(batch.weight[i]) * (count + a_end - a + b_end - b)


# -- Python


class MultilabelOaa(label_lists.MultilabelLearner, scorers.ClassScorers):
    """Learn and predict lists of labels with one scorer per label (`--multilabel_oaa`)."""

    one_by_one = True  # as in VW
    ranks_all = True

    def __init__(self, spec: LearnerSpec) -> None:
        scorers.ClassScorers.__init__(self, spec)
        self.set_up(spec, self.classes)
        self.clips = spec.vw_exact  # more than one label may have a score above 1, which tells how to rank them
        listing = spec.listing_options
        self.lists_scores = listing.probabilities is not None and listing.top_k is None

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        lists_all = wanted.listing_options.probabilities is not None
        self.linked = self.learner_options.link == "logistic" or (lists_all and not self.rule.checked)
        if self.linked:
            self.enabled = ENABLED.replace("identity", "logistic") + "-prob" * lists_all

    def labels_of(self, task: BatchTask) -> tuple[Int64s, Bools]:
        label = self.positives(task)
        if not self.rule.checked:
            cut_unsorted(task.batch, label, self.classes)
        return label, ~np.isnan(task.batch.label) & task.learns()

    @property
    def meaning(self) -> int:
        """Return what scores are: LOG_ODDS, LABELS or LINKED."""
        if self.linked:
            return LINKED
        return LABELS if self.least_probability > 0 else LOG_ODDS

    def _least_score(self) -> np.float32:
        """Return the score above which a label is chosen."""
        t, meaning = self.least, self.meaning
        if meaning == LOG_ODDS:
            return np.float32(math.log(t / (1 - t)) if 0 < t < 1 else math.copysign(math.inf, t - 0.5))
        return np.float32(t if meaning == LINKED else 2 * t - 1 if t < 1 else math.inf)

    def report_best(
        self, task: BatchTask, labels: Any, best: Int64s, score_of_best: Float32s, scores: Float32s
    ) -> None:
        n, low, lists_all = len(scores), self.lowest, self.listing_options.probabilities is not None
        k = min(self.most_ranked, self.classes)
        top, top_scores, count = np.empty((n, k), np.int64), np.zeros((n, k), np.float32), np.empty(n, np.int64)
        known = self.known(task)
        exact_list = lists_all and not self.rule.checked  # VW then chooses no label
        least = np.float32(np.inf) if exact_list else self._least_score()
        if self.linked:  # updates have started from the scores before the link, as in VW
            scores = self._probabilities(scores, LOG_ODDS).reshape(scores.shape)
        ranges = self.thread_ranges(n)
        self.share(lambda i, j: rank_labels(scores, known, least, i, j, top, top_scores, count), ranges, n)
        start = np.concatenate([[0], np.cumsum(count)])
        chosen = ClassLists(np.empty(start[-1], np.float32), np.empty(start[-1], np.int64), start, has_rest=False)
        self.share(lambda i, j: choose_labels(scores, known, least, low, i, j, chosen), ranges, n)
        every = np.arange(n + 1, dtype=np.int64)
        ranked = ClassLists(self._probabilities(top_scores), (top + low).reshape(-1), every * k, has_rest=False)
        if task.named is not None:
            ranked = label_lists.selected(ranked, (np.arange(k) < known[:, np.newaxis]).reshape(-1))
        loss = None
        if not self.rule.checked:
            loss = np.empty(n)
            set_differences(task.batch, label_arrays.whole(task.batch), LabelLists(chosen.labels, chosen.start), loss)
        all_labels = np.tile(np.arange(self.classes) + low, n if lists_all or self.wanted.scores else 0)
        listed = None
        if lists_all:
            listed = ClassLists(self._probabilities(scores), all_labels, every * self.classes, has_rest=False)
            if task.named is not None:
                listed = label_lists.selected(listed, all_labels - low < np.repeat(known, self.classes))
        self.finish(task, ranked, chosen._replace(scores=self._probabilities(chosen.scores)), loss, listed)
        if self.wanted.scores:
            task.scored = ClassLists(scores.reshape(-1), all_labels, every * self.classes)

    def _probabilities(self, scores: Float32s, meaning: int | None = None) -> Float32s:
        p = np.empty(scores.size, np.float32)
        probabilities_of(scores.reshape(-1), self.meaning if meaning is None else meaning, p)
        return p

    # model

    def serialize(self, archive: Archive) -> None:
        self.serialize_counts(archive)
        self.table = gd.serialize_table(archive, "weights", self.table, self.rule, self.learner_options)
        self.tables = [self.table]


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    resolved = scorers.resolve_defaults(spec)
    if spec.vw_exact or resolved.get("loss_function", spec.binary.loss_function) != "squared":
        return resolved
    if resolved.get("learning_rate") == 0.5:
        resolved["learning_rate"] = RATE
    if spec.passes > 1 and not spec.loaded and "decay_learning_rate" not in spec.given:
        resolved["decay_learning_rate"] = DECAY
    return resolved


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Raise ModelError unless a model has K labels, before memory is allocated for them."""
    stored_arrays.check_rows(label_lists.COUNTS, arrays, spec.options.multilabel_oaa + 1)


REDUCTION = ReductionRecord(
    name="multilabel_oaa",
    title="One against all, for lists of labels",
    summary="lists of labels: one regressor per label",
    labels="multilabel",
    options=MultilabelOaaOptions,
    enabled=ENABLED,
    build=MultilabelOaa,
    check=label_lists.check,
    resolve_defaults=resolve_defaults,
    label_range=label_lists.label_range,
    check_arrays=check_arrays,
    probabilities=True,
    class_scores=True,
)
