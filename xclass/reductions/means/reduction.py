"""Learn classes from dense rows, such as embeddings: class means in a whitened space, corrected by a softmax.

Source    Streaming linear discriminant analysis: Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear
          Discriminant Analysis", CVPR Workshops 2020. Means and a metric as a classifier to which classes can be added:
          Mensink, Verbeek, Perronnin, Csurka, "Distance-Based Image Classification: Generalizing to New Classes at
          Near-Zero Cost", PAMI 2013. `space` names the sources of its estimates. The correction is the project's own.
Learners  A mean for each class, one covariance for all, and a softmax with d + 1 weights for each class.
Cost      A row of d numbers takes K d multiplications for the scores, 2 d**2 for the space, and 2 C (R + 1) d for the
          steps; memory for 3 K d numbers of 4 bytes, the latest 16,384 rows and 16 d**2 bytes. Above 8,192 classes,
          64 columns choose 128 classes, which are scored by all columns.
Names     K classes | d columns | n weight of the rows of a class | psi variance of the means between classes, in units
          of that within, in a direction | R = 8 rows that are learned from again after each
          row | C classes that are compared in a step, 16 to 64, fewer the more columns there are.
Differs   from the first of these papers (docs/papers.md says why, and what it costs):
          * class means are shrunk by what the variance between classes says, not used as they are
          * covariances are shrunk by OAS, not by a fixed weight of the identity
          * the space changes after blocks of rows, not after each row
          * a softmax over the 16 to 64 nearest classes learns the errors of the means
Idea      Rows are sent to a space (`space`) in which classes have the covariance 1 and the means of classes are
          uncorrelated. The score of a class by its mean A, shrunken to psi n / (psi n + 1) of the mean of its rows, is
          z A - |A|**2 / 2. The whole score is this divided by tau, plus omega times V z + v, plus the logarithm of the
          class's frequency. V and v learn from the rows, tau and omega from the rows before V and v do. If the means
          alone had more hits of late, they alone predict, by the score divided by a tau of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int32s, Int64s, UInt32s
from ...binary import finite, gd
from ...data.batch import HIGHEST_LABEL, Batch
from ...errors import UsageError
from ...model import stored_arrays
from ...model.archive import Archive
from ...options.declare import OptionGroup, no_effect, option, refused, warned
from ..core import label_arrays, probabilities, seen_labels
from ..core.base import TAKEN, Reduction, ReductionRecord
from ..core.calibration import NEW_LABELS, LabelStatistics
from ..core.contract import BatchTask
from ..core.seen_labels import Seen
from ..core.spec import LabelRange, LearnerSpec
from . import class_means, kernels
from .class_means import FEW_CLASSES, ClassMeans
from .kernels import LANES

MOST_COLUMNS = 1 << 12
OF_FEATURES = (
    "quadratic cubic interactions permutations leave_duplicate_interactions ngram skips ignore keep ignore_linear "
    "text_split text_case text_unicode text_ngram text_chars"
)
MOST_WEIGHT = 2.0**64  # of a row
SUPPORTED_OPTIONS = ("bits", "predict_only_model")  # of the binary learner; bits are those of features beside the rows


class MeansOptions(OptionGroup):
    means: int = option(
        "learn dense rows by class means. K is the approximate number of classes, which is found if it is left out",
        metavar="[K]",
        value_if_bare=0,
        minimum=0,
        maximum=HIGHEST_LABEL,
        stored=True,
    )

    RULES = (
        refused(gd.other_options(SUPPORTED_OPTIONS), "has no effect with --means, which has no hashed weights"),
        no_effect(OF_FEATURES, "--means learns dense rows alone; --multiclass learns features, too"),
        warned("noconstant", "--means learns no constant; leave it out"),
        warned("bits", "--means learns dense rows alone, and has no table of weights; leave it out"),
        refused("vw_exact", "cannot be combined with --means, which VW does not have: leave one of them out"),
    )


class BestClasses(NamedTuple):
    """Hold the best classes of n rows."""

    top: Int64s  # int64[n, k], labels, the most probable first, then 0
    top_p: Float64s  # float64[n, k]
    p: Float64s  # float64[n], probability of the label, NaN if it was not learned
    lists: probabilities.ClassLists | None  # of all classes, if they are wanted


class Means(Reduction):
    """Learn class means and their correction (`--means`).

    Attributes
    ----------
    classes : what is learned, None before the first row, whose number of columns decides its size
    """

    report: LabelStatistics
    unknown_labels = NEW_LABELS
    numbered: Seen
    scales_examples = False
    largest_step = finite.LARGEST_STEP

    def __init__(self, spec: LearnerSpec) -> None:
        self.capacity = min(max(spec.options.means or 0, LANES), FEW_CLASSES)
        self.predict_only = spec.binary.predict_only_model
        self.classes: ClassMeans | None = None
        self._features_noted = False
        self.numbered = seen_labels.of(np.empty(0, np.int64), self.capacity)
        self.want(spec)
        self.stages = [self._process_batch]

    @property
    def most_rows(self) -> int | None:
        return (
            max(1, probabilities.MOST_PAIRS // (self.classes_seen + 1)) if self.listing_options.probabilities else None
        )

    def find(self, feature: UInt32s) -> Bools:
        """Return bool[z], all False, because nothing is learned but dense rows."""
        return np.zeros(len(feature), bool)

    def survey(self, task: BatchTask, vw_exact: bool) -> None:
        super().survey(task, vw_exact)
        self.skip_large_rows(task)

    def skip_large_rows(self, task: BatchTask) -> None:
        """Mark examples whose rows or weights are so large that sums of their squares could become infinite."""
        dense, weight = task.batch.dense, task.batch.weight
        if dense.size:
            large = np.maximum(np.abs(dense).max(axis=1), 1).astype(np.float64) ** 2
            refused_rows = ~((large * np.maximum(weight, 1) <= self.largest_step) & (weight <= MOST_WEIGHT))
            task.guard.skipped[refused_rows & ~np.isnan(task.batch.label)] = finite.EXAMPLE_SKIPPED

    def warm_ups(self, learn: bool) -> dict[str, Callable[[], None]]:
        def pass_rows() -> None:
            toy = self.new_classes(2)
            own, weight = np.zeros(1, np.int32), np.ones(1, np.float32)
            self._numbers(np.zeros(0, np.int64), np.zeros(0, bool))
            for row in np.eye(2, dtype=np.float32)[[0, 1] * (class_means.FIRST_SPACE if learn else 1)]:
                found = toy.best(row[None], own, toy.compared, True)
                if learn:
                    toy.learn(row[None], own, weight, found)

        return {"rows": pass_rows}

    def _process_batch(self, task: BatchTask) -> None:
        if task.learn and len(task.batch.index) > task.batch.n and not self._features_noted:
            self._features_noted = True
            task.notes.append(
                "the examples have features besides rows of numbers, and --means learns these rows alone; --multiclass "
                "learns both"
            )
        self.finish(task, self.rank(task))

    def rank(self, task: BatchTask, missing: Bools | None = None) -> BestClasses:
        """Find the best classes of the rows of a batch, and learn from the rows; nothing for those that are missing."""
        batch, n = task.batch, task.batch.n
        if not n:
            return BestClasses(np.zeros((0, 1), np.int64), np.zeros((0, 1)), np.zeros(0), None)
        learned = self._of(batch)
        label, learns = label_arrays.whole(batch), task.learned()
        if missing is not None:
            learns = learns & ~missing
        own = self._numbers(label, learns)
        k = max(self.listing_options.top_k or 1, learned.compared)
        top, top_p, own_p = np.zeros((n, k), np.int64), np.zeros((n, k)), np.full(n, np.nan)
        lists = []
        at = 0
        while at < n:
            end = n
            if learns.any():
                ends = np.flatnonzero(np.cumsum(learns[at:]) >= learned.missing)
                end = at + int(ends[0]) + 1 if len(ends) else n
            part = slice(at, end)
            found = learned.best(batch.dense[part], own[part], k, True)
            known = found.own_score > kernels.LEAST_SCORE
            listed = found.near >= 0
            top[part] = np.where(listed, self.numbered.label[found.near], 0)
            top_p[part] = np.where(listed, np.exp(found.score - found.log_sum[:, None]), 0)
            own_p[part] = np.where(known, np.exp(found.own_score - found.log_sum), np.nan)
            if self.listing_options.probabilities:
                lists.append(self._listed(learned, found, top[part], top_p[part]))
            taught = learns[part]
            if taught.any():
                rows = np.flatnonzero(taught)
                learned.learn(
                    batch.dense[part][rows], own[part][rows], batch.weight[part][rows],
                    found._replace(z=found.z[rows], near=found.near[rows]),
                )  # fmt: skip
            at = end
        if missing is not None:
            top[missing], top_p[missing], own_p[missing] = 0, 0, np.nan
        return BestClasses(top, top_p, own_p, _joined(lists) if lists else None)

    def _of(self, batch: Batch) -> ClassMeans:
        """Return what is learned, for rows as wide as those of a batch."""
        if not batch.columns:
            line = f"line {batch.line[0]} has" if batch.n and batch.line[0] else "the examples have"
            raise UsageError(
                f"--means learns from dense rows, and {line} none: name the namespace of the numbers by --dense, or "
                "give an array of numbers with two dimensions; for words and sparse features choose --multiclass"
            )
        if self.classes is None:
            if batch.columns > MOST_COLUMNS:
                raise UsageError(
                    f"--means takes rows of at most {MOST_COLUMNS} numbers, but these have {batch.columns}; leave some "
                    "out"
                )
            self.classes = self.new_classes(batch.columns)
        elif batch.columns != self.classes.d:
            raise UsageError(
                f"the rows have {batch.columns} numbers, but --means has learned from rows of {self.classes.d}; give "
                "rows of the same columns"
            )
        return self.classes

    def new_classes(self, d: int) -> ClassMeans:
        return ClassMeans(d, self.capacity, self.share, self.thread_ranges)

    def set_labels(self, label: Int64s) -> None:
        """Number labels, which are distinct, from 0."""
        self.numbered = seen_labels.of(label, max(self.capacity, len(label)))

    def _numbers(self, label: Int64s, learns: Bools) -> Int32s:
        """Return the number of the class of each example, -1 for those not seen; new ones are added where it learns."""
        own = np.empty(len(label), np.int32)
        while kernels.number_labels(self.numbered, label, learns, own) < len(label):
            self.numbered = seen_labels.of(self.numbered.label[: self.classes_seen], 2 * len(self.numbered.label))
        return own

    def _listed(self, learned: ClassMeans, found: Any, top: Int64s, top_p: Float64s) -> probabilities.ClassLists:
        """Return the probabilities of all classes in rising order of labels, or of those that were compared."""
        n, size = len(top), learned.size
        if learned.is_coarse or not size:
            order = np.argsort(np.where(top > 0, top, np.iinfo(np.int64).max), axis=1, kind="stable")
            label, p = np.take_along_axis(top, order, axis=1), np.take_along_axis(top_p, order, axis=1)
            listed = np.count_nonzero(label, axis=1)
        else:
            order = np.argsort(self.numbered.label[:size])
            label = np.broadcast_to(self.numbered.label[order], (n, size))
            p = np.exp(learned.scores(found.z)[:, order] - found.log_sum[:, None])
            listed = np.full(n, size)
        return probabilities.class_lists(label, p, listed, np.maximum(0.0, 1.0 - p.sum(axis=1)))

    def finish(self, task: BatchTask, found: BestClasses) -> None:
        """Set the results of a task."""
        known, k = ~np.isnan(found.p), self.listing_options.top_k or 1
        self.set_best(task, found.top[:, :k], found.top_p[:, :k], known, np.where(known, found.p, 0))
        if found.lists is not None:
            task.class_lists = found.lists

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; `ClassMeans.serialize` says what its checks protect."""
        label = seen_labels.serialize(archive, "label", self.numbered.label[: self.classes_seen])
        if not archive.saves:
            self.set_labels(label)
            shape = archive.shape("centre")
            if shape is not None:
                d = math.prod(shape)
                if not 1 <= d <= MOST_COLUMNS:
                    raise stored_arrays.unfit("centre", f"it has {d} numbers, but 1 to {MOST_COLUMNS} are allowed")
                self.classes = self.new_classes(d)
        if self.classes is not None:
            self.classes.serialize(archive, len(label))


def _joined(lists: list[probabilities.ClassLists]) -> probabilities.ClassLists:
    """Return the lists of parts of a batch as one."""
    sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(one.start) for one in lists)])
    return probabilities.ClassLists(
        np.concatenate([np.empty(0, np.float32), *(one.scores for one in lists)]),
        np.concatenate([np.empty(0, np.int64), *(one.labels for one in lists)]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    return gd.resolve_defaults(spec.binary, 1, True)


def label_range(spec: LearnerSpec) -> LabelRange:
    return LabelRange(1, HIGHEST_LABEL, "--means")


REDUCTION = ReductionRecord(
    name="means",
    title="Class means",
    summary="dense rows, such as embeddings: means and a softmax",
    options=MeansOptions,
    enabled="means",
    build=Means,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
    dense=TAKEN,
)
