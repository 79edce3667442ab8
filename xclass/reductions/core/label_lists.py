"""Define the options and the base class of reductions that learn lists of labels.

Labels of examples, predictions and messages are as written in the file: from 0, or from 1 if labels are names. Learners
count them from 0, as `label - lowest`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from ...array_types import AnyArray, Bools, Float32s, Float64s, Int64s
from ...data import batch_ops
from ...errors import UsageError
from ...model import stored_arrays
from ...model.archive import Archive
from ...options.declare import Facts, OptionGroup, SearchRange, one_of, option
from . import label_arrays, label_report, validated_threshold
from .base import Reduction
from .contract import BatchTask, PredictedLists
from .label_report import LabelLists, LabelReport
from .probabilities import ClassLists
from .spec import LabelRange, LearnerSpec, LearnerUse
from .validated_threshold import ValidatedThreshold

COUNTS = "label_counts"  # name of the array in models
MOST_LABELS = 2**24  # of a learner whose labels grow in number
WIDER = 10  # probable labels for each one that is ranked by propensity, unless a learner ranks all
VALIDATED = "threshold_counts"  # name of the array of `ValidatedThreshold` in models
AUTOMATIC = re.compile(r"auto(?::(0?\.[0-9]+|1(?:\.0*)?))?")  # values of --threshold that are no number


def _thresholds(facts: Facts) -> SearchRange | None:
    # the other measures, and the error, depend on the best labels alone
    found = one_of("auto", 0.4, 0.3, 0.2, 0.1, first=("auto", 0.2), weight=2.0)
    return found if facts.metric == "micro_f1" else None


class LabelListOptions(OptionGroup):
    """Declare the options of all reductions that learn lists of labels; those of each are derived from it."""

    threshold: float | str | None = option(
        "predict the labels whose probability is above T. With auto, learning chooses the T that has had the best "
        "micro F1 so far, and with auto:P the lowest one that has had a precision of at least P; models keep it",
        minimum=0.0,
        maximum=1.0,
        default_text="0.5",
        metavar="T|auto|auto:P",
        other=(AUTOMATIC.pattern, "auto, or auto:P with a precision P from 0 to 1, such as auto:0.9"),
        search=_thresholds,
    )
    propensity: str = option(
        "weigh a hit on a label that n of N examples have by 1 + (ln N - 1) (B + 1)^A (n + B)^-A in the summary's "
        "propensity-scored figures (psp, psndcg)",
        default="0.55,1.5",
        metavar="A,B",
        stored=True,
        measures=True,
    )

    rank_by: str = option(
        "what ranks the labels of -p with --top_k and of the measures: their probability, or the probability times the "
        f"inverse propensity of --propensity, so that rare labels come first; --plt then ranks the {WIDER} N most "
        "probable labels. The probabilities that are written are the same",
        choices=("probability", "propensity"),
        default="probability",
    )

    def threshold_goal(self) -> float | None:
        """Return what an automatic threshold is chosen for, see `ValidatedThreshold`; None for another threshold."""
        if not isinstance(self.threshold, str):
            return None
        precision = self.threshold.partition(":")[2]
        return float(precision) if precision else validated_threshold.BEST_F1

    def propensity_numbers(self) -> tuple[float, float]:
        """Return A and B of `propensity`; raise UsageError if they are none."""
        try:
            a, b = map(float, self.propensity.split(","))
        except ValueError:
            a = b = math.nan
        if not (0 <= a <= 100 and 0 < b <= 1e9):
            raise UsageError(
                f"--propensity {self.propensity!r}: give two numbers, A from 0 to 100 and B above 0, such as 0.55,1.5"
            )
        return a, b


def check(spec: LearnerSpec) -> None:
    """Raise UsageError if the options of lists of labels have values that they cannot have."""
    spec.options.propensity_numbers()
    if spec.vw_exact and spec.options.threshold_goal() is not None:
        raise UsageError(
            f"--threshold {spec.options.threshold} cannot be used with --vw_exact, because VW has no such threshold; "
            "give a number, or leave out --vw_exact"
        )
    if spec.vw_exact and spec.options.rank_by != "probability":
        raise UsageError(
            f"--rank_by {spec.options.rank_by} cannot be used with --vw_exact, because VW ranks by probability; leave "
            "out one of them"
        )


def label_range(spec: LearnerSpec) -> LabelRange:
    """Return the range of labels of a reduction whose option is the number of labels: 0..K-1, 1..K for names."""
    labels = spec.classes or 0
    return LabelRange(spec.lowest_label, labels - 1 + spec.lowest_label, f"--{spec.name} {labels}")


def growing_range(spec: LearnerSpec) -> LabelRange:
    """Return the range of labels of a reduction that needs no number of labels."""
    instead = "" if spec.lowest_label else "; --learn_names takes larger numbers as names"
    return LabelRange(spec.lowest_label, MOST_LABELS - 1 + spec.lowest_label, f"--{spec.name}{instead}")


def selected(lists: ClassLists, kept: Bools) -> ClassLists:
    """Return the lists with those labels alone that are kept, bool[...]."""
    start = np.concatenate([[0], np.cumsum(kept)])[lists.start]
    return ClassLists(lists.scores[kept], lists.labels[kept], start, has_rest=False)


def _ascending(lists: ClassLists) -> ClassLists:
    """Return the lists with the labels of each example in rising order."""
    order = np.lexsort((lists.labels, np.repeat(np.arange(len(lists.start) - 1), np.diff(lists.start))))
    return lists._replace(scores=lists.scores[order], labels=lists.labels[order])


def _above(lists: ClassLists, threshold: Float32s | float) -> ClassLists:
    """Return the labels of lists that are more probable than a threshold, that of all examples or float32[n]."""
    of_label = np.repeat(threshold, np.diff(lists.start)) if isinstance(threshold, np.ndarray) else threshold
    return selected(lists, lists.scores > of_label)


def _results(use: LearnerUse) -> tuple[object, ...]:
    return use.listing_options, use.scores, use.example_probabilities, use.weights_only


class MultilabelLearner(Reduction):
    """Define what learners of lists of labels share: positives, threshold, predictions to write, measures and counts.

    A subclass calls `set_up` at the beginning of its `__init__`, `MultilabelLearner.want` in its `want`, and for each
    task `positives` and at last `finish`. Its `serialize` calls `serialize_counts`.

    Attributes
    ----------
    lowest : the lowest label
    grows : whether the number of labels K is not given, but grows to the highest label of the examples learned
    counts : int64[K + 1], how many of the examples learned have each label, and last the number of these examples;
        models keep it for the propensities. Passes over the same data count once, see `Reduction.repeats`. It grows in
        `finish`, so only the last stage may use it
    threshold : the labels whose probability is above it are predicted; with an automatic threshold only where nothing
        is learned
    least : the probability above which a learner has to find all labels; it is the threshold, or the lowest one that
        may be chosen
    chooser : what chooses the threshold, None if a number is given
    most_ranked : how many labels an example needs to rank, where it has so many
    ranks_all : whether the learner can rank all labels
    testing : whether the run only predicts
    """

    lowest: int
    grows: bool
    counts: Int64s
    chooser: ValidatedThreshold | None = None
    most_ranked: int
    ranks_all: bool = False
    testing: bool
    report: LabelReport

    def set_up(self, spec: LearnerSpec, labels: int | None) -> None:
        """Begin with nothing learned, for so many labels, None for a number that grows."""
        options: LabelListOptions = spec.options
        self.lowest, self.grows = spec.lowest_label, labels is None
        self.counts = np.zeros((labels or 0) + 1, np.int64)
        self._most = MOST_LABELS if labels is None else labels
        goal = options.threshold_goal()
        if goal is not None:
            self.chooser = ValidatedThreshold(goal)
        self._fixed = options.threshold if isinstance(options.threshold, float) else 0.5
        self._cuts = options.threshold is not None and not spec.vw_exact
        self._typed_with = _results(spec) if self._cuts else None
        self._propensity, self._by_propensity = options.propensity_numbers(), options.rank_by == "propensity"
        self._follows_vw, self.testing = spec.vw_exact, spec.testing
        self._set_by = (growing_range if self.grows else label_range)(spec).set_by
        self.want(spec)

    def want(self, wanted: LearnerUse) -> None:
        # a threshold cuts lists of probabilities only if it was given beside the option that asks for them
        self.cuts_lists = _results(wanted) == self._typed_with
        self._shown = self.most_ranked = max(label_report.PLACES[-1], wanted.listing_options.top_k or 0)
        if self._by_propensity:
            self.most_ranked = self._most if self.ranks_all else WIDER * self._shown
        super().want(wanted)

    def new_report(self) -> LabelReport:
        report = LabelReport(
            0 if self.lowest else len(self.counts) - 1, self.listing_options.top_k, self.lowest, self._propensity,
            self._follows_vw, self.grows, self.listing_options.calibration,
        )  # fmt: skip
        report.choice = None if self.chooser is None else self.chooser.figures
        return report

    @property
    def threshold(self) -> float:
        return self._fixed if self.chooser is None else self.chooser.now

    @property
    def least(self) -> float:
        return self.threshold if self.chooser is None or self.testing else validated_threshold.LEAST

    @property
    def classes_seen(self) -> int:
        return int(np.count_nonzero(self.counts[:-1])) if self.grows else 0

    @property
    def highest_seen(self) -> int:
        return len(self.counts) - 2 + self.lowest

    @property
    def named(self) -> int:
        """Return how many labels have a name; all if labels are numbers, or if names may be added meanwhile."""
        labels = len(self.counts) - 1
        return min(len(self.names), self._most) if self.names and self.testing else labels

    def known(self, task: BatchTask) -> Int64s:
        """Return how many labels each example may get, int64[n]: those that had a name before it, or all."""
        return np.full(task.batch.n, self._most) if task.named is None else np.minimum(task.named[:-1], self._most)

    def positives(self, task: BatchTask) -> Int64s:
        """Return the labels of all examples counted from 0, int64[m], those of example i in `label_arrays.span`.

        They are ascending for each example, as are then those of `task.batch`, but -1 stands for those that the learner
        does not have. The first of these adds a message to the task. With --vw_exact they are in the order of the file.
        """
        if not self._follows_vw:  # lists are in order but for --on_bad_line vw
            task.batch = batch_ops.with_lists_in_order(task.batch)
        batch, highest = task.batch, self._most - 1 + self.lowest
        label = label_arrays.whole(batch) - self.lowest
        outside = (label < 0) | (label >= self._most)
        if outside.any():
            if task.learn and not self.outside and not self._follows_vw:
                first = int(np.argmax(outside))
                line = batch.line[int(np.searchsorted(batch.label_start, first, side="right")) - 1]
                task.notes.append(
                    f"label {batch.labels[first]:.0f} in line {line} is outside {self.lowest}..{highest} "
                    f"({self._set_by}); such labels count as errors and are not learned"
                )
            self.outside += int(np.count_nonzero(outside))
            label[outside] = -1
        return label

    def finish(
        self, task: BatchTask, ranked: ClassLists, chosen: ClassLists | None = None, loss: Float64s | None = None,
        listed: ClassLists | None = None,
    ) -> None:  # fmt: skip
        """Set the results of a task, add it to the measures, and count the labels that were learned.

        All labels are as written in the file. `task.prediction` is the best label, NaN if there is none.

        Parameters
        ----------
        ranked : the best labels and their probabilities, the best first; at least `most_ranked` where there are so
            many, without a pair for the rest
        chosen : the labels with a probability above `least`, ascending, and their probabilities; with --vw_exact what
            -p writes; None if all of them are ranked
        loss : float64[n], times weight, which is shown; None for the weight of the examples whose best label is wrong,
            see `label_report.measure`
        listed : what -p writes with --probabilities and without --top_k, which a threshold cuts if it is given beside
            this option; None for the ranked labels above the threshold
        """
        batch, options = task.batch, self.listing_options
        threshold: Float32s | float = self._fixed
        chosen = _ascending(selected(ranked, ranked.scores > self.least)) if chosen is None else chosen
        if self.chooser is not None:
            threshold = self._validated(task, chosen)
            chosen = _above(chosen, threshold)
        learned = label_report.NO_EXAMPLES if self.repeats or not task.learn else task.learned()
        every = ranked
        if self._by_propensity:
            ranked = self._rank_by_propensity(task, ranked, learned)
        task.label_lists = PredictedLists(ranked, LabelLists(chosen.labels, chosen.start))
        has_any = ranked.start[:-1] < ranked.start[1:]
        first = ranked.start[:-1][has_any]
        task.prediction, task.answer_probability = np.full(batch.n, np.nan), np.full(batch.n, np.nan)
        task.prediction[has_any] = ranked.labels[first]
        task.answer_probability[has_any] = ranked.scores[first]
        if options.top_k is not None and (options.probabilities or not self._follows_vw):
            task.class_lists = self.best(ranked, options.top_k, threshold)
        elif options.probabilities:
            cut = listed is None or self.cuts_lists
            task.class_lists = _above(every if listed is None else listed, threshold) if cut else listed
        weights = None
        if self.holds_out:
            weights = np.zeros(batch.n, np.float32) if task.held_out is None else batch.weight * task.held_out
        wrong = self.measure(self.report, task, learned, weights)
        task.loss = wrong if loss is None else loss

    def _rank_by_propensity(self, task: BatchTask, ranked: ClassLists, learned: Bools) -> ClassLists:
        if self.grows and task.learn:
            self._grow(self._highest(task.batch.labels) + 1 - self.lowest)
        start = np.concatenate([[0], np.cumsum(np.minimum(np.diff(ranked.start), self._shown))])
        best = np.empty(start[-1], np.int64)
        label_report.rank_by_propensity(
            task.batch, label_arrays.whole(task.batch), learned, LabelLists(ranked.labels, ranked.start), ranked.scores,
            self.lowest, self.counts, self._propensity, best, start,
        )  # fmt: skip
        return ClassLists(ranked.scores[best], ranked.labels[best], start, has_rest=False)

    def _highest(self, labels: AnyArray) -> int:
        """Return the highest of some labels, without those that the learner cannot have."""
        return int(labels[labels < self._most + self.lowest].max(initial=0))

    def _validated(self, task: BatchTask, listed: ClassLists) -> Float32s | float:
        """Return the threshold of the examples of a task, after counting those that are learned or held out."""
        assert self.chooser is not None
        if not task.learn:
            return self.threshold
        held_out = np.zeros(task.batch.n, bool) if task.held_out is None else task.held_out
        counted = held_out if self.repeats else held_out | task.learned()  # what was learned before proves nothing
        counted = counted & ~np.isnan(task.batch.label)
        return self.chooser.of_batch(task.batch, label_arrays.whole(task.batch), counted, listed)

    def measure(
        self, report: LabelReport, task: BatchTask, learned: Bools = label_report.NO_EXAMPLES,
        weights: Float32s | None = None,
    ) -> Float64s:  # fmt: skip
        """Add a task that is finished to a report, with other weights if they are given; return the losses."""
        assert task.label_lists is not None  # `finish` has set them
        batch, (ranked, chosen) = task.batch, task.label_lists
        if self._follows_vw:  # labels may be outside the range, in any order and repeated
            kept = (batch.labels >= self.lowest) & (batch.labels < len(self.counts) - 1 + self.lowest)
            start = np.concatenate([[0], np.cumsum(kept)])[batch.label_start]
            label = np.where(np.diff(start) > 0, batch.label, np.nan)  # without a label of the range VW counts nothing
            own = batch._replace(label=label, labels=batch.labels[kept], label_start=start)
            batch = batch_ops.with_lists_in_order(own)
        labels = None if task.named is None else min(int(task.named[-1]), self._most)
        if self.grows:
            highest = max(map(self._highest, (batch.labels, ranked.labels, chosen.labels)))
            labels = max(labels or 0, len(self.counts) - 1, highest + 1 - self.lowest)
            if task.learn:
                self._grow(labels)
        return report.add(batch, ranked, chosen, self.counts, learned, weights, labels)

    def _grow(self, labels: int) -> None:
        """Let `counts` have so many labels, if these are not fewer."""
        last = len(self.counts) - 1
        if labels > last:
            number = self.counts[last]
            self.counts = label_report.with_rows(self.counts, labels + 1)
            self.counts[last], self.counts[labels] = 0, number

    def best(self, ranked: ClassLists, k: int, threshold: Float32s | float | None = None) -> ClassLists:
        """Return the k best labels of each example, with a --threshold beside --top_k only those above it.

        `threshold` is that of all examples or float32[n], None for that of the learner.
        """
        place = np.arange(len(ranked.labels)) - np.repeat(ranked.start[:-1], np.diff(ranked.start))
        best = selected(ranked, place < k)
        return _above(best, self.threshold if threshold is None else threshold) if self.cuts_lists else best

    def merge_counts(self, learners: Sequence[MultilabelLearner], base: MultilabelLearner) -> None:
        """Set `counts` to those of the base and what the learners have added to them."""
        self._grow(max(len(one.counts) - 1 for one in (base, *learners)))
        for one, factor in ((base, 1 - len(learners)), *((one, 1) for one in learners)):
            self.counts[: len(one.counts) - 1] += factor * one.counts[:-1]
            self.counts[-1] += factor * one.counts[-1]

    def merge_threshold(self, learners: Sequence[MultilabelLearner]) -> list[str]:
        """Keep the threshold that all of the learners keep; return a note for the user if they keep different ones."""
        choosers = [one.chooser for one in learners if one.chooser is not None]
        goals = {one.goal for one in choosers}
        fixed = {one._fixed if one._cuts else None for one in learners if one.chooser is None}
        if len(fixed) + len(goals) > 1:
            return [
                "the models keep different values of --threshold, and the merged model keeps none; give it when you "
                "load the model with -i"
            ]
        for goal in goals:
            self._choose_for(goal).merge(choosers)
        for threshold in fixed:
            if threshold is not None:
                self._fixed, self._cuts = threshold, True
        return []

    def _choose_for(self, goal: float) -> ValidatedThreshold:
        self.chooser, self._cuts = ValidatedThreshold(goal), True
        self.report.choice = self.chooser.figures
        return self.chooser

    def serialize_counts(self, archive: Archive) -> None:
        """Save or restore `counts`, the number of labels outside, and the threshold or its goal if one was given.

        A threshold of the run takes precedence over that of the model. An automatic threshold of the run continues from
        the counts of that of the model.
        """
        if self.grows:
            counts = archive.take(COUNTS, self.counts)
            if not 1 <= len(counts) <= MOST_LABELS + 1:
                raise stored_arrays.unfit(COUNTS, f"it counts {len(counts) - 1} labels, not 0 to {MOST_LABELS}")
            self.counts = self.counts if archive.saves else np.zeros_like(counts)
        archive.fill_counts(COUNTS, self.counts)
        self.outside = archive.count("outside", self.outside)
        open_to_model = not (archive.saves or self._cuts or self._follows_vw)
        if self._cuts and self.chooser is None if archive.saves else "threshold" in archive.facts:
            threshold = archive.fact("threshold", self._fixed, 0, 1)
            if open_to_model:
                self._fixed, self._cuts = threshold, True
        if self.chooser is not None if archive.saves else "threshold_goal" in archive.facts:
            goal = archive.fact("threshold_goal", 0.0 if self.chooser is None else self.chooser.goal, 0, 1)
            if open_to_model:
                self._choose_for(goal)
            counts = validated_threshold.new_counts() if self.chooser is None else self.chooser.counts
            archive.fill(VALIDATED, counts, 0, float(np.finfo(np.float64).max))
        elif self.chooser is not None and self.testing:
            raise UsageError(
                "--threshold auto is chosen while learning, and the model was learned without it; learn again with "
                "--threshold auto, or give a number"
            )
