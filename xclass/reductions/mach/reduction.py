"""Hash the classes into a few buckets several times, and predict the class whose buckets are most probable (MACH).

Source    Medini, Huang, Wang, Mohan, Shrivastava, "Extreme Classification in Log Memory using Count-Min Sketch: A Case
          Study of Amazon Search with 50M Products", NeurIPS 2019. Its text was not at hand, only summaries.
Cost      O(s R B) for learning from an example of s features, and O(s R B + R K) for a prediction; memory for R B
          regressors and R numbers for each class, not for K regressors.
Names     R repetitions | B buckets of each | K classes seen so far | mean: of the probabilities of a class's buckets.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the classifiers are one-against-all, with probabilities that are divided by their sum
          * the estimates of the classes are at least .02 / K, and are divided by their sum
          * only classes seen so far are predicted
Idea      The hash functions are ((a y + b) mod p) mod B with a prime p above all labels (Carter and Wegman 1979), drawn
          by `--random_seed`. A row of the weight table has the R B buckets side by side, so that each repetition is a
          block of columns for the kernels of `oaa`. A class can be predicted once it has been learned; the class that
          was seen first wins a tie.
"""

from __future__ import annotations

import re

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int32s, Int64s, UInt64s
from ...binary import finite, gd
from ...data.batch import HIGHEST_LABEL
from ...errors import UsageError
from ...kernels import rng, top_k
from ...kernels.constants import GOLDEN, ZERO
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import OptionGroup, conflict, option, refused
from ...system import thread_limit
from ..core import label_arrays, probabilities, seen_labels
from ..core.base import ReductionRecord, split_range
from ..core.calibration import NEW_LABELS, LabelStatistics
from ..core.contract import BatchTask
from ..core.seen_labels import Seen
from ..core.spec import LabelRange, LearnerSpec
from ..oaa import class_rows
from ..oaa.scorers import LEAST_CLASSES, LEAST_SHARE, LOG2_SLOTS_PER_CLASS, SLOT_BYTES, RowLearner

REPETITIONS = 8  # R if only B is given
MOST_REPETITIONS = 256
PRIME = np.uint64(2**32 - 5)
FIRST_CLASSES = 1 << 8  # classes that a new learner has room for
SUPPORTED_OPTIONS = (
    "bits", "learning_rate", "loss_function", "power_t", "initial_t", "sgd", "adaptive", "normalized", "invariant",
    "decay_learning_rate", "predict_only_model",
)  # fmt: skip


class MachOptions(OptionGroup):
    mach: str = option(
        f"numbers of repetitions and of buckets, such as 8,256; {REPETITIONS} repetitions if R is left out",
        metavar="[R,]B",
        stored=True,
    )

    RULES = (
        refused(gd.other_options(SUPPORTED_OPTIONS), "has no effect with --mach; leave it out, or choose --oaa"),
        refused("vw_exact", "cannot be combined with --mach, which VW does not have: leave one of them out"),
        conflict(
            "--loss_function {loss_function} gives no probabilities; with --mach, give squared or logistic",
            loss_function=lambda loss: loss not in (None, "squared", "logistic"),
        ),
    )


def sizes(spec: LearnerSpec) -> tuple[int, int]:
    """Return the numbers of repetitions and of buckets; raise UsageError if the option does not give them."""
    text = spec.options.mach
    match = re.fullmatch(r"(?:([0-9]{1,3}),)?([0-9]{1,9})", text)
    repetitions, buckets = (int(match[1] or REPETITIONS), int(match[2])) if match else (0, 0)
    if not (1 <= repetitions <= MOST_REPETITIONS and 1 <= buckets <= HIGHEST_LABEL // repetitions):
        raise UsageError(
            f"--mach: {text!r} is not [R,]B, the numbers of repetitions (1 to {MOST_REPETITIONS}) and of buckets (from "
            "1); give two such as 8,256"
        )
    return repetitions, buckets


# -- kernels


@bare
def draw_functions(seed: np.uint64, function: UInt64s) -> None:
    """Draw a and b of each hash function, uint64[R, 2], by SplitMix64."""
    for r in range(function.shape[0]):
        first = np.uint64(2 * r + 1)
        function[r, 0] = np.uint64(1) + rng.mix(seed + first * GOLDEN) % (PRIME - np.uint64(1))
        function[r, 1] = rng.mix(seed + (first + np.uint64(1)) * GOLDEN) % PRIME


@bare
def number_classes(
    seen: Seen, bucket: Int32s, function: UInt64s, buckets: int, begin: int, label: Int64s, learns: Bools,
    known: Int64s, own: Int64s,
) -> int:  # fmt: skip
    """Number the classes of the examples from `begin` on, and add those that are learned for the first time.

    `bucket`, int32[R, capacity], is the bucket of each class in each repetition. `known` (int64[n]) gets the number of
    classes seen before each example, and `own` (int64[n]) the number of its class, -1 if it was not seen. Return n, or
    the first example whose class finds no room.
    """
    n: int = label.shape[0]
    for i in range(begin, n):
        known[i] = seen.size[0]
        own[i] = seen_labels.number_of(seen, label[i], learns[i])
        if own[i] == seen_labels.NO_ROOM:
            return i
        if seen.size[0] > known[i]:
            for r in range(function.shape[0]):
                hashed = (function[r, 0] * np.uint64(label[i]) + function[r, 1]) % PRIME
                bucket[r, own[i]] = hashed % np.uint64(buckets)
    return n


@jit
def _probability(mean: np.float32, buckets: int, least: float) -> float:
    """Return the probability of a class before it is divided by the sum, at least `least`."""
    p: float = max(least, (np.float64(mean) * buckets - 1.0) / (buckets - 1.0)) if buckets > 1 else least
    return p


@jit
def rank_classes(
    bucket: Int32s, p: Float32s, known: Int64s, own: Int64s, begin: int, end: int, top: Int64s, top_p: Float64s,
    own_p: Float64s, mean: Float32s,
) -> None:  # fmt: skip
    """Compute the means of all classes for the examples [begin, end), and rank the best classes.

    Parameters
    ----------
    bucket : int32[R, capacity], as in `number_classes`
    p : float32[n * R, B], probabilities of the buckets of each example and repetition
    known, own : int64[n], as in `number_classes`
    top, top_p : int64[n, k] and float64[n, k], the places of the best classes in `Seen`, -1 beyond the last, and their
        probabilities; written
    own_p : float64[n], probability of the class of the example, 0 if it was not known; written
    mean : float32[n, K], means of the classes, or float32[0, K] if they are not wanted; written
    """
    repetitions, buckets = bucket.shape[0], p.shape[1]
    buffer = np.empty(bucket.shape[1], np.float32)
    best = np.empty(top.shape[1], np.int64)
    for i in range(begin, end):
        classes = known[i]
        score = mean[i] if mean.shape[0] > 0 else buffer
        score[:classes] = ZERO
        for r in range(repetitions):
            of_bucket = p[i * repetitions + r]
            place = bucket[r]
            for c in range(classes):
                score[c] += of_bucket[place[c]]
        least = LEAST_SHARE / max(classes, 1)
        total = 0.0
        for c in range(classes):
            score[c] /= np.float32(repetitions)
            total += _probability(score[c], buckets, least)
        size = top_k.rank(score, 0, classes, best)
        for j in range(top.shape[1]):
            top[i, j] = best[j] if j < size else -1
            top_p[i, j] = _probability(score[best[j]], buckets, least) / total if j < size else 0.0
        own_p[i] = _probability(score[own[i]], buckets, least) / total if 0 <= own[i] < classes else 0.0


# -- Python


class Mach(RowLearner):
    """Learn one-against-all for the buckets of several hash functions (`--mach`)."""

    report: LabelStatistics
    unknown_labels = NEW_LABELS
    numbered: Seen

    def __init__(self, spec: LearnerSpec) -> None:
        # R and B
        self.repetitions, self.buckets = sizes(spec)
        columns = self.repetitions * self.buckets
        super().__init__(spec, columns, self.buckets)
        self.function = np.empty((self.repetitions, 2), np.uint64)  # uint64[R, 2], a and b of the hash functions
        draw_functions(np.uint64(spec.seed), self.function)
        self._set_seen(np.empty(0, np.int64), FIRST_CLASSES)
        shares = thread_limit.processors() if columns >= 2 * LEAST_CLASSES else 1
        # for each thread the first and the end of its repetitions
        self.shares = split_range(self.repetitions, min(shares, self.repetitions))
        self.want(spec)

    def _set_seen(self, label: Int64s, capacity: int) -> None:
        """Take the classes with these labels, with room for `capacity`, a power of two."""
        self.numbered, self.bucket = seen_labels.new(capacity), np.empty((self.repetitions, capacity), np.int32)
        unused = np.empty(len(label), np.int64)
        self._number(0, label, np.ones(len(label), bool), unused, unused)

    def _number(self, begin: int, label: Int64s, learns: Bools, known: Int64s, own: Int64s) -> int:
        return number_classes(self.numbered, self.bucket, self.function, self.buckets, begin, label, learns, known, own)

    @property
    def most_rows(self) -> int | None:
        listed = self.classes_seen if self.listing_options.probabilities else 0
        return max(1, probabilities.MOST_PAIRS // max(self.repetitions * self.buckets, listed))

    def _process_batch(self, task: BatchTask) -> None:
        self.crowding.look(task)
        batch = task.batch
        n = batch.n
        label, learns = label_arrays.whole(batch), task.learned()
        known, own = np.empty(n, np.int64), np.empty(n, np.int64)
        at = 0
        while (at := self._number(at, label, learns, known, own)) < n:
            self._set_seen(self.numbered.label, 2 * len(self.numbered.label))
        p = self._process_buckets(task, own, learns & (own >= 0))
        k, classes = self.listing_options.top_k or 1, self.classes_seen
        top, top_p, own_p = np.empty((n, k), np.int64), np.empty((n, k)), np.empty(n)
        mean = np.empty((n if self.listing_options.probabilities else 0, classes), np.float32)

        def rank(begin: int, end: int) -> None:
            rank_classes(self.bucket, p, known, own, begin, end, top, top_p, own_p, mean)

        self.share(rank, self.thread_ranges(n), n)
        self.set_best(task, np.where(top < 0, 0, self.numbered.label[top]), top_p, (own >= 0) & (own < known), own_p)
        if self.listing_options.probabilities:
            task.class_lists = self._all_classes(mean, known)

    def _process_buckets(self, task: BatchTask, own: Int64s, learns: Bools) -> Float32s:
        """Score and train the buckets; return their probabilities, float32[n * R, B]."""
        n, columns, most_features = task.batch.n, self.repetitions * self.buckets, task.batch.most_features
        scores = np.empty((n, columns), np.float32)
        sampled, none = np.empty((n, 0), np.int32), np.empty((n * self.repetitions, 0), np.int64)
        p, none_p = np.empty((n * self.repetitions, self.buckets), np.float32), np.empty(none.shape)

        def learn(first: int, last: int) -> None:
            table = finite.guarded(self.table, task.guard)
            output = class_rows.ClassScores(np.empty(n, np.int64), np.empty(n, np.float32), scores)
            for r in range(first, last):
                # new for each repetition, because `shared` is valid for the columns of one alone
                scratch = class_rows.new_scratch(most_features, int(self.rows), class_rows.BLOCK, self.buckets)
                column = np.where(learns, r * self.buckets + self.bucket[r, own], np.int64(-1))
                inputs = class_rows.OaaInputs(task.batch, column, learns, sampled, task.clock, columns)
                block = r * self.buckets, (r + 1) * self.buckets
                self._kernel(table, self.rule, self.rows, *block, False, inputs, output, scratch)

        def normalise(begin: int, end: int) -> None:
            rows = scores.reshape(p.shape)
            class_rows.class_probabilities(rows, False, self.least_probability, False, begin, end, p, none, none_p)

        self.share(learn, self.shares, n)
        self.share(normalise, self.thread_ranges(len(p)), n)
        return p

    def _all_classes(self, mean: Float32s, known: Int64s) -> probabilities.ClassLists:
        """Return the lists of the probabilities of all classes seen before each example, in rising order of labels."""
        n, classes = mean.shape
        order = np.argsort(self.numbered.label[:classes])
        listed = order < known[:, None]
        p = np.where(listed, mean[:, order].astype(np.float64) * self.buckets - 1.0, 0.0) / max(self.buckets - 1.0, 1.0)
        p = np.where(listed, np.maximum(p, LEAST_SHARE / np.maximum(known, 1)[:, None]), 0.0)
        p /= np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
        rest = np.ones((n, 1), bool)
        labels = np.append(self.numbered.label[order], 0)
        return probabilities.ClassLists(
            np.hstack([p, known[:, None] == 0])[np.hstack([listed, rest])].astype(np.float32),
            np.broadcast_to(labels, (n, classes + 1))[np.hstack([listed, rest])],
            np.concatenate([[0], np.cumsum(known + 1)]),
        )

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; buckets and hash functions follow from the labels and the seed."""
        gd.serialize_table(archive, "weights", self.table, self.rule, self.learner_options)
        label = seen_labels.serialize(archive, "label", self.numbered.label[: self.classes_seen])
        if not archive.saves:
            capacity = max(FIRST_CLASSES, 1 << (len(label) - 1).bit_length()) if len(label) else FIRST_CLASSES
            stored_arrays.check_memory("label", capacity * (32 + 4 * self.repetitions))
            self._set_seen(label, capacity)


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    repetitions, buckets = sizes(spec)
    resolved = gd.resolve_defaults(
        spec.binary, repetitions * buckets, True, slot_bytes=SLOT_BYTES, class_slots_log2=LOG2_SLOTS_PER_CLASS
    )
    return {**resolved, "loss_function": spec.binary.loss_function or "squared"}  # as `oaa`, for fewer errors


def label_range(spec: LearnerSpec) -> LabelRange:
    return LabelRange(1, HIGHEST_LABEL, f"--mach {spec.options.mach}")


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Raise ModelError unless a model has sums for each bucket, before memory is allocated for them."""
    repetitions, buckets = sizes(spec)
    stored_arrays.check_rows("weights.sums", arrays, repetitions * buckets)


REDUCTION = ReductionRecord(
    name="mach",
    title="Merged-average classifiers via hashing",
    summary="classes share buckets; memory does not grow with K",
    options=MachOptions,
    enabled="gd, mach",
    build=Mach,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
    not_merged="their hash functions and the order of their classes may differ",
)
