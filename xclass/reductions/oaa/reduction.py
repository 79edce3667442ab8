"""Learn one scorer per class and predict the class with the highest score (one-against-all).

Source    Rifkin and Klautau, "In Defense of One-Vs-All Classification", JMLR 2004; the baseline of the papers.
Learners  K scorers; the binary labels of scorer c are 1 for examples of class c and -1 for all others.
Cost      O(s K) for an example of s features, in long loops over neighbouring classes.
Names     K classes | block: neighbouring classes processed together | row: the K neighbouring weights of a feature.
Differs   from the papers (docs/papers.md says why, and what it costs):
          * classes learn squared loss at the rate .5, one example after the other
          * probabilities are divided by their sum, unless `--probabilities raw` is given
          From VW's oaa.cc: nothing in what is computed. The label base (0 or 1) that was detected is stored in the
          model, while VW forgets it; labels outside the range are refused unless `--on_bad_line vw` lets them through.
Idea      A feature has a row of K neighbouring weights, row `hash mod rows`, so that weights of different classes never
          collide. Each thread processes a range of classes of its own, so that the results do not depend on the number
          of threads. Under `--layout vw`, a row begins at `hash * 2**ceil(log2 K) mod 2**b`.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Float32s, Int32s, Int64s
from ...binary import finite, gd
from ...errors import UsageError
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import Facts, OptionGroup, SearchRange, conflict, no_effect, one_of, option
from ..core import label_arrays, probabilities
from ..core.base import ReductionRecord, split_range
from ..core.calibration import NO_CLASSES, LabelStatistics
from ..core.contract import BatchTask
from ..core.spec import LabelRange, LearnerSpec, LearnerUse
from . import class_rows, scorers

# class of each example, whether it is learned, and label base before and after, see `OneAgainstAll.labels_of`
Labels = tuple[Int64s, Bools, Int64s, Int64s]

MOST_WORK = 1e8  # examples times classes up to which `xclass tune` proposes it
UNDECIDED = 2  # value of `indexing` while the label base is not detected
ENABLED = "gd, scorer-identity, oaa"
NO_PROBABILITY = 999.0  # log loss if the label's probability is 0, as in VW


def _tried(facts: Facts) -> SearchRange | None:
    """Return the number of classes if the time of one regressor for each class is acceptable."""
    return one_of(facts.classes) if float(facts.examples) * facts.classes <= MOST_WORK else None


class OaaOptions(OptionGroup):
    oaa: int = option("number of classes; labels are 1..K", metavar="K", minimum=1, stored=True, search=_tried)
    scores: bool = option("predict the score of every class")
    indexing: int = option(
        "lowest label: classes are 1..K or 0..K-1", minimum=0, maximum=1, default_text="1", metavar="0|1", stored=True
    )
    oaa_subsample: int = option(
        "number of other classes, drawn at random, that learn from an example as negatives", minimum=1, stored=True
    )
    raw_order: str = option(
        "with --indexing 0, whether -r gives class 0 its own score, or the last class's as VW does",
        choices=("class", "vw"),
        default="class",
    )

    RULES = (
        no_effect("scores", "--probabilities writes probabilities in place of the scores", probabilities=True),
        no_effect("scores", "--top_k writes probabilities in place of the scores", top_k=True),
        conflict("--learn_names counts classes from 1: leave --indexing 0 out", indexing=0, learn_names=True),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    resolved = scorers.resolve_defaults(spec)
    if spec.learn_names:
        resolved["indexing"] = 1
    return resolved


def check(spec: LearnerSpec) -> None:
    """Raise UsageError if the order of scores is given that are not written."""
    if spec.options.raw_order == "vw" and "raw_order" in spec.given and not spec.scores:
        raise UsageError(
            "--raw_order has no effect without -r, whose order of scores it sets; give -r FILE, or leave it out"
        )


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Raise ModelError unless a model has K classes, before memory is allocated for them."""
    stored_arrays.check_rows("order", arrays, spec.options.oaa)


def label_range(spec: LearnerSpec) -> LabelRange:
    """Return the lowest label, the highest label and the option that sets them."""
    o: OaaOptions = spec.options
    low = 1 if o.indexing is None else o.indexing
    return LabelRange(low, o.oaa - 1 + low, f"--oaa {o.oaa}" + (" --indexing 0" if low == 0 else ""))


def _kind(spec: LearnerSpec) -> str:
    """Return the suffix that VW appends to the name of the reduction, depending on its output."""
    if spec.listing_options.probabilities:
        return "-prob"
    if spec.options.scores:
        return "-scores"
    return "-raw" if spec.scores else ""


class OneAgainstAll(scorers.ClassScorers):
    """Learn and predict with one scorer per class (`--oaa`)."""

    report: LabelStatistics
    unknown_labels = NO_CLASSES

    def __init__(self, spec: LearnerSpec) -> None:
        super().__init__(spec)
        o: OaaOptions = spec.options
        self.options = o
        self.lists_scores = bool(o.scores or spec.listing_options.probabilities)
        self.enabled = ENABLED + _kind(spec)
        self.as_vw = spec.vw_exact
        self.indexing = UNDECIDED if o.indexing is None else o.indexing  # lowest label, 0 or 1, or UNDECIDED
        self.sampled = o.oaa_subsample or 0
        if spec.vw_exact and "oaa_subsample" not in spec.given:  # VW does not save the option in the model
            self.sampled = 0
        self.next_negative = 0  # position in `order` where sampling continues
        self.random = np.array([spec.seed], np.uint64)
        self.order = np.arange(self.classes, dtype=np.int32)  # in which negative classes are sampled
        self.first_notes: list[str] = []
        if self.sampled >= self.classes:
            self.sampled = 0
            self.first_notes.append(
                f"--oaa_subsample {o.oaa_subsample} has no effect: all {self.classes} classes learn"
            )
        if self.sampled:
            class_rows.shuffle(self.order, self.random)
        self.want(spec)
        self.raw_vw = o.raw_order == "vw"

    @property
    def keeps_scores(self) -> bool:
        return bool(self.options.scores or self.wanted.needs_probabilities or self.wanted.scores)

    def labels_of(self, task: BatchTask) -> Labels:
        """Determine class and label base of every example of a batch, as `Labels`; the class is -1 for other labels.

        VW detects the label base while it learns: label 0 sets it to 0 and label K to 1; until then it is taken to be
        1.
        """
        batch = task.batch
        labelled = ~np.isnan(batch.label)
        learns = labelled & task.learns()
        base_before = np.full(batch.n, 1 if self.indexing else 0, np.int64)  # when the example is predicted
        base_after = base_before  # after the example is learned
        if self.indexing == UNDECIDED and task.learn:
            decisive = learns & ((batch.label == 0) | (batch.label == self.classes))
            if decisive.any():
                first = int(np.argmax(decisive))
                self.indexing = 0 if batch.label[first] == 0 else 1
                base_before[first + 1 :] = self.indexing
                base_after = base_before.copy()
                base_after[first] = self.indexing
                seen = 0 if self.indexing == 0 else self.classes
                if self.as_vw or self.indexing == 0:
                    task.notes.append(f"label {seen} found -- labels are now considered {self.indexing}-indexed.")
        label = np.where(labelled, batch.label, -1).astype(np.int64) - base_after
        label[(label < 0) | (label >= self.classes)] = -1
        return label, learns, base_before, base_after

    def sample(self, label: Int64s, learns: Bools) -> Int32s:
        if not self.sampled:
            return super().sample(label, learns)
        sampled = np.empty((len(label), self.sampled), np.int32)
        self.next_negative = class_rows.draw_negatives(self.order, self.next_negative, label, learns, sampled)
        return sampled

    def report_best(
        self, task: BatchTask, labels: Labels, best: Int64s, score_of_best: Float32s, scores: Float32s
    ) -> None:
        """Set the results of a task from what `_process_classes` has returned."""
        batch = task.batch
        n = batch.n
        task.notes += self.first_notes
        self.first_notes = []
        _, _, base_before, base_after = labels
        per_class = self.options.scores or self.listing_options.probabilities
        winner = np.empty(n, np.int64)
        class_rows.merge(best, score_of_best, winner)
        output_base = base_after if per_class else base_before
        task.prediction = (winner + output_base).astype(np.float64)
        labelled = ~np.isnan(batch.label)
        if not (self.sampled and self.as_vw):  # VW reports no loss while it samples
            if per_class and self.as_vw:  # VW counts unlabelled examples as errors
                weight = batch.weight.astype(np.float64)
                task.loss = np.where(task.prediction != batch.label, weight, 0.0)
            else:
                task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        output_scores = scores
        if self.wanted.needs_probabilities:
            # like VW, look up labels that are no class, and -1 for no label, modulo 2**32 and then modulo K
            place = (np.where(labelled, batch.label, -1).astype(np.int64) - base_after) % 2**32 % self.classes
            output_scores = self._class_probabilities(task, scores, labels, place, winner, output_base)
        if per_class or self.wanted.scores:
            start = np.arange(n + 1, dtype=np.int64) * self.classes
            names = (np.arange(self.classes) + output_base[:, None]).reshape(-1)
            if per_class:
                task.class_lists = probabilities.ClassLists(output_scores.reshape(-1), names, start, has_rest=False)
            else:
                if self.raw_vw and self.indexing == 0:
                    scores = np.roll(scores, 1, axis=1)
                task.scored = probabilities.ClassLists(scores.reshape(-1), names, start)

    def _class_probabilities(
        self, task: BatchTask, scores: Float32s, labels: Labels, place: Int64s, winner: Int64s, output_base: Int64s
    ) -> Float32s:
        """Compute the probabilities of all classes (float32[n, K]), report them and list those that were requested.

        `place` is int64[n], the class whose probability is reported as the label's; `winner` is the predicted class,
        and `output_base` the label base of the output.
        """
        n = task.batch.n
        p = np.empty_like(scores)
        k = min(self.listing_options.top_k or 0, self.classes)
        top, top_p = np.empty((n, k), np.int64), np.empty((n, k))

        least, raw = self.least_probability, self.listing_options.probabilities == probabilities.RAW

        def run_rows(begin: int, end: int) -> None:
            class_rows.class_probabilities(scores, self.link, least, raw, begin, end, p, top, top_p)

        self.share(run_rows, split_range(n, len(self.shares)))
        label, _, _, base_after = labels
        known = label >= 0
        own = p[np.arange(n), place].astype(np.float64)
        best = p[np.arange(n), winner].astype(np.float64)
        if self.listing_options.probabilities and not raw:  # VW's line of the summary and column of the table
            with np.errstate(divide="ignore"):
                task.log_loss = np.where(own > 0, -np.log(own) * task.batch.weight.astype(np.float64), NO_PROBABILITY)
            if self.rule.checked:
                task.log_loss = np.minimum(task.log_loss, float(finite.LARGEST))
        self.set_probabilities(task, best, known, np.where(known, own, 0.0), top + base_after[:, None])
        if k > 0:
            rest = np.maximum(0.0, 1.0 - top_p.sum(axis=1)) if k < self.classes else np.zeros(n)
            task.class_lists = probabilities.class_lists(top + output_base[:, None], top_p, np.full(n, k), rest)
        return p

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        self.link = self.learner_options.link == "logistic" and not self.listing_options.probabilities

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model.

        `class_rows.draw_negatives` continues in `order` at `next_negative` until it has enough classes other than the
        label's, so `order` has to contain every class once. `random` is the state of a generator, for which any number
        is valid.
        """
        given = self.options.indexing
        self.table = gd.serialize_table(archive, "weights", self.table, self.rule, self.learner_options)
        self.tables = [self.table]
        archive.fill("order", self.order)
        archive.fill("random", self.random)
        known = archive.fact("indexing", self.indexing, given or 0, UNDECIDED)
        self.next_negative = archive.fact("next", int(self.next_negative), 0, self.classes - 1)
        if archive.saves:
            return
        stored_arrays.check_permutation("order", self.order)
        self.indexing = known if given is None else given  # which a learner of numbers had not decided
        if self.as_vw:  # VW does not store the detected base, shuffles the classes again and starts with the first one
            self.indexing = UNDECIDED if given is None else given
            self.next_negative = 0
            if self.sampled:
                self.order[:] = np.arange(self.classes)
                class_rows.shuffle(self.order, self.random)


REDUCTION = ReductionRecord(
    name="oaa",
    title="One against all",
    summary="one regressor per class, for up to a few thousand",
    options=OaaOptions,
    enabled=ENABLED,
    build=OneAgainstAll,
    check=check,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    probabilities=True,
    class_estimates=True,
    class_scores=True,
)
