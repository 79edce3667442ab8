"""Learn real-valued labels with a single regressor, without a reduction.

Source    VW's base learner, see `binary.gd`.
Cost      O(s) for an example of s features.
Names     s features of one example; p prediction, y label, as in `binary.gd`.
Differs   from VW only in one message: labels other than -1 and 1 under logistic or hinge loss are treated as VW treats
          them, but reported once instead of once per example.
Idea      Each example is predicted, its loss is computed, and then the weights are updated: progressive validation.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Float32s, Float64s, UInt64s
from ...binary import finite, gd, loss
from ...data.batch import CONSTANT, Batch
from ...kernels import fast_math
from ...kernels.constants import LARGEST, ONE, ZERO
from ...kernels.jit import jit
from ...model.archive import Archive
from ...options.declare import OptionGroup, conflict, option
from ..core.base import Reduction, ReductionRecord
from ..core.contract import BatchTask
from ..core.probabilities import ClassLists
from ..core.spec import LabelRange, LearnerSpec


class ScalarOptions(OptionGroup):
    """Declare the options that apply only if no reduction is used."""

    binary: bool = option("predict -1 or 1, and report the error rate as the loss", stored=True)
    dont_output_best_constant: bool = option("leave the best constant prediction out of the summary")

    RULES = (
        conflict(
            "--named_labels has no effect on real-valued labels; choose a reduction such as --oaa", named_labels=True
        ),
        conflict(
            "--learn_names has no effect on real-valued labels; choose a reduction, or --multiclass", learn_names=True
        ),
    )


@jit
def process_batch(
    table: gd.WeightTable, rule: gd.UpdateRule, link: bool, batch: Batch, learns: Bools, clock: Float64s,
    place: UInt64s, x: Float32s, raw: Float32s, prediction: Float64s, weighted_loss: Float64s,
) -> None:  # fmt: skip
    """Predict every example of a batch, then learn from it if it has a label and a positive weight.

    Parameters
    ----------
    link : whether predictions go through the logistic function
    learns : bool[n], examples that may be learned from
    clock : float64[n], weight of the labelled examples up to and including this one
    place, x : uint64[s], float32[s], scratch for the longest example
    raw : float32[n], written: unclipped score
    prediction : float64[n], written: clipped score, after the link function
    weighted_loss : float64[n], written: loss times weight
    """
    for i in range(batch.label.shape[0]):
        begin, end = batch.start[i], batch.start[i + 1]
        count = end - begin
        for f in range(count):
            place[f] = np.uint64(batch.index[begin + f])
            x[f] = batch.value[begin + f]
        table.guard.now[0] = i
        labelled = batch.label[i] == batch.label[i]
        learning = learns[i]
        low, high = table.range[0], table.range[1]
        y = np.float32(batch.label[i]) if labelled else ZERO
        weight = batch.weight[i]
        if rule.checked and not abs(y) <= finite.LARGEST:
            y = ZERO
            if learning:
                finite.mark_step_skipped(table.guard)
                learning = False
        if labelled and learning and rule.widen:
            gd.widen(table.range, y)
        s = gd.score(table, place, x, count, np.uint64(0), batch.initial[i])
        p = gd.clip(s, table.range)
        raw[i] = s
        prediction[i] = ONE / (ONE + fast_math.expf(-p)) if link else p
        weighted_loss[i] = 0.0
        if labelled:
            value = loss.value(rule.loss, rule.tau, p, y, table.range[0], table.range[1])
            if weight > ZERO:
                weighted_loss[i] = np.float64(value * weight)
            if rule.checked and not abs(weighted_loss[i]) <= LARGEST:
                weighted_loss[i] = LARGEST
            if learning and weight > ZERO:
                gd.learn(table, rule, place, x, count, np.uint64(0), p, y, weight, clock[i])
                if table.guard.skipped[i] != 0:
                    table.range[0], table.range[1] = low, high


def any_number(spec: LearnerSpec) -> LabelRange:
    return LabelRange()


class Scalar(Reduction):
    """A learner with one regressor, used if no reduction is named."""

    def __init__(self, spec: LearnerSpec) -> None:
        self.rule = gd.make_rule(spec.binary, reduction=False, exact=spec.vw_exact)
        gd.check_memory(spec.binary.bits)
        self.table = gd.new_table(self.rule, spec.binary.bits, 1, 1, weights_only=spec.weights_only)
        self.tables = [self.table]
        if spec.binary.constant is not None:
            self.table.flat[(CONSTANT & int(self.table.mask)) * int(self.table.stride)] = spec.binary.constant
        self.learner_options = spec.binary
        self.binary = spec.options.binary
        if self.binary:
            self.enabled = "gd, scorer-identity, binary, count_label"
        self.link, self.keep_scores = spec.binary.link == "logistic", spec.scores
        self.label_warning_given = False
        self.stages = [self._process_batch]

    def _process_batch(self, task: BatchTask) -> None:
        batch = task.batch
        most_features = batch.most_features
        raw = np.empty(batch.n, np.float32)
        task.prediction = np.empty(batch.n)
        task.loss = np.empty(batch.n)
        if self.rule.loss in (loss.LOGISTIC, loss.HINGE) and not self.label_warning_given:
            unexpected = ~np.isnan(batch.label) & (np.abs(batch.label) != 1)
            if unexpected.any():
                self.label_warning_given = True
                i = int(np.argmax(unexpected))
                name = "logistic" if self.rule.loss == loss.LOGISTIC else "hinge"
                task.notes.append(
                    f"label {batch.label[i]:g} in line {batch.line[i]} is neither -1 nor 1, "
                    f"as --loss_function {name} expects"
                )
        process_batch(
            finite.guarded(self.table, task.guard), self.rule, self.link, batch, task.learns(), task.clock,
            np.empty(most_features, np.uint64), np.empty(most_features, np.float32), raw, task.prediction, task.loss,
        )  # fmt: skip
        if self.keep_scores:
            none = np.zeros(batch.n, np.int64)
            task.scored = ClassLists(raw, none, np.arange(batch.n + 1), has_rest=False)
        if self.binary:
            task.prediction = np.where(task.prediction > 0, 1.0, -1.0)
            counted = np.where(task.prediction == batch.label, 0.0, batch.weight.astype(np.float64))
            task.loss = np.where(np.abs(batch.label) == 1, counted, task.loss)

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the weights; nothing of them is used by a kernel as an index."""
        self.table = gd.serialize_table(archive, "weights", self.table, self.rule, self.learner_options)
        self.tables = [self.table]


REDUCTION = ReductionRecord(
    name="scalar",
    title="Binary learner",
    summary="",
    options=ScalarOptions,
    labels="simple",
    enabled="gd, scorer-identity, count_label",
    build=Scalar,
    label_range=any_number,
)
