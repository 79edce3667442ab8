"""Define the learners that have one scorer per class: the weight table, and what each thread learns of it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ...array_types import Bools, Float32s, Int32s, Int64s
from ...binary import finite, gd, loss
from ...errors import UsageError
from ...kernels.constants import LARGEST
from ...kernels.direct import DirectCall
from ...system import thread_limit
from ..core import probabilities
from ..core.base import Reduction, split_range
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec
from . import class_rows
from .crowding import Crowding

SLOT_BYTES = 12  # w, G and N; only update rules other than the default touch the plane of rates
LEAST_CLASSES = 64  # fewest classes of a thread
LOG2_SLOTS_PER_CLASS = 12  # log2 of the slots per class if -b is not given
LEAST_SHARE = 0.02  # with squared loss, the least probability of a class before normalisation, times K


class RowLearner(Reduction):
    """Define a weight table with a row of neighbouring weights for each feature, one of each class or bucket.

    `columns` is their number, and `compared` how many have probabilities that add up to 1.
    """

    def __init__(self, spec: LearnerSpec, columns: int, compared: int) -> None:
        self.rule, self.learner_options = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact), spec.binary
        bits, self._compared = spec.binary.bits, compared
        width = gd.vw_width(columns) if spec.binary.layout == "vw" else columns
        if width > 1 << bits:
            raise UsageError(
                f"-b {bits} has {1 << bits} slots, too few for one feature of --{spec.name} "
                f"{getattr(spec.options, spec.name)}: give at least -b {(columns - 1).bit_length() + 1}"
            )
        gd.check_memory(bits, SLOT_BYTES)
        self.memory = SLOT_BYTES << bits
        self.rows = np.uint64((1 << bits) // width)
        self.crowding = Crowding(int(self.rows), bits, SLOT_BYTES)
        self.table = gd.new_table(self.rule, bits, columns, width, True, spec.weights_only)
        self.tables = [self.table]
        self.stages = [self._process_batch]
        self._kernel = DirectCall(class_rows, "process_batch")

    @property
    def least_probability(self) -> np.float32:
        """Return the least probability before normalisation, 0 if scores are log odds."""
        estimates_labels = self.rule.loss in (loss.SQUARED, loss.CLASSIC) and self.rule.checked
        return np.float32(LEAST_SHARE / self._compared if estimates_labels else 0)

    @abstractmethod
    def _process_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage."""


class ClassScorers(RowLearner):
    """Score and train one scorer per class."""

    link: bool = False  # whether predictions pass through the logistic link
    sampled: int = 0  # number of negative classes that learn from an example, 0 for all
    clips: bool = True  # whether the scores of all classes are clipped to the range of labels
    # whether, under --l1 and --l2 with --vw_exact, a class is scored after those before it have learned
    one_by_one: bool = False

    def __init__(self, spec: LearnerSpec) -> None:
        self.classes = spec.classes or 0
        super().__init__(spec, self.classes, self.classes)
        # one thread if updates change the label range or the regularisation that all classes share
        self.shares_penalty = self.rule.regularized and spec.vw_exact
        indivisible = (self.rule.widen and self.rule.loss != loss.LOGISTIC) or self.shares_penalty
        shares = 1 if indivisible else thread_limit.processors()
        # for each thread the first and the end of its classes
        self.shares = split_range(self.classes, max(1, min(shares, self.classes // LEAST_CLASSES)))

    @property
    def limits(self) -> Float32s:
        """Return the range to which scores are clipped, float32[2]."""
        return self.table.range if self.clips else np.array([-LARGEST, LARGEST], np.float32)

    @property
    def keeps_scores(self) -> bool:
        """Return whether the scores of all classes are needed, and not only the best class."""
        return True

    @property
    def most_rows(self) -> int | None:
        return max(1, probabilities.MOST_PAIRS // self.classes) if self.keeps_scores else None

    @abstractmethod
    def labels_of(self, task: BatchTask) -> tuple[Any, ...]:
        """Return the 0-based classes of the examples, see `class_rows.OaaInputs`, which of them learn, and more."""

    def sample(self, label: Int64s, learns: Bools) -> Int32s:
        """Return the negative classes that learn from each example, without columns if all learn."""
        return np.empty((len(learns), 0), np.int32)

    @abstractmethod
    def report_best(
        self, task: BatchTask, labels: Any, best: Int64s, score_of_best: Float32s, scores: Float32s
    ) -> None:
        """Set the results of a task from what `_process_classes` has returned."""

    def _process_batch(self, task: BatchTask) -> None:
        if self.rule.checked:
            self.crowding.look(task)
        labels = self.labels_of(task)
        self.report_best(task, labels, *self._process_classes(task, labels))

    def _process_classes(self, task: BatchTask, labels: tuple[Any, ...]) -> tuple[Int64s, Float32s, Float32s]:
        """Score and train the classes.

        Return for each thread the best class of each example, int64[threads, n], its score, float32[threads, n], and
        all scores, float32[n, K], or float32[0, K] if they are not wanted.
        """
        batch = task.batch
        n = batch.n
        label, learns = labels[:2]
        scores = np.empty((n if self.keeps_scores else 0, self.classes), np.float32)
        sampled = self.sample(label, learns)
        best = np.empty((len(self.shares), n), np.int64)
        best_score = np.empty((len(self.shares), n), np.float32)
        most_features = batch.most_features
        inputs = class_rows.OaaInputs(batch, label, learns, sampled, task.clock, self.classes, self.clips)

        def run_share(t: int) -> None:
            table = finite.guarded(self.table, task.guard)
            output = class_rows.ClassScores(best[t], best_score[t], scores)
            together = 1 if self.one_by_one else self.classes
            block = together if self.shares_penalty else class_rows.BLOCK
            scratch = class_rows.new_scratch(most_features, int(self.rows), block, self.classes)
            self._kernel(table, self.rule, self.rows, *self.shares[t], self.link, inputs, output, scratch)

        self.share(run_share, [(t,) for t in range(len(self.shares))], n)
        return best, best_score, scores


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    resolved = gd.resolve_defaults(
        spec.binary, spec.classes or 0, True, slot_bytes=SLOT_BYTES, class_slots_log2=LOG2_SLOTS_PER_CLASS
    )
    # squared loss makes fewer errors (docs/defaults.md), but the logistic link needs log odds
    if spec.binary.loss_function is None and spec.binary.link != "logistic":
        resolved["loss_function"] = "squared"
    return resolved
