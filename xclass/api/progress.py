"""Count examples and their losses by progressive validation, and format VW's progress table and summary.

Progressive validation measures the loss of each prediction before the example is learned from. The rows of the table,
due at examples 1, 2, 4, 8, ..., and the summary agree with VW's character for character.

Idea      NumPy counts a batch as a whole; only the examples for which a row is due are processed one by one. As in VW,
          sums are float64 and examples are added one after the other, so the digits do not depend on the size of the
          batches.
Source    VW 9.11's progress table and summary.
Differs   from VW: an unlabelled example prints `unknown` and has no loss under --scores and --probabilities too (VW
          prints 4294967295 and counts it as wrong; `--vw_exact` does so). A log loss without examples is `n.a.`, not
          `-nan`, and a best constant that is not finite is left out (`--vw_exact` shows both). NaN is printed without
          a sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..data import class_names
from ..kernels.constants import LARGEST
from ..reductions.core.contract import BatchTask
from . import progress_table
from .progress_table import RowSchedule

UNKNOWN = "unknown"


class Holdout:
    """Hold the losses of held-out examples and the number of the pass with the lowest average loss."""

    def __init__(self) -> None:
        # sums over all held-out examples of the run
        self.loss = self.weight = 0.0
        # sums since the last row of the table that showed them
        self.row_loss = self.row_weight = 0.0
        # sums over the current pass
        self.pass_loss = self.pass_weight = 0.0
        # float32, average held-out loss of the best pass; LARGEST before the first pass ends
        self.best = np.float32(LARGEST)
        self.best_pass = 0
        self.misses = 0  # number of passes since the best pass

    @property
    def has_loss(self) -> bool:
        """Return whether the best pass had a labelled held-out example."""
        return bool(self.best < LARGEST / 2)

    def add(self, held_out: np.ndarray, loss: np.ndarray | None, weight: np.ndarray, begin: int, end: int) -> None:
        """Add the losses, times weight, and the weights of the held-out examples among begin .. end - 1."""
        rows = np.flatnonzero(held_out[begin:end]) + begin
        losses = np.zeros(len(rows)) if loss is None else loss[rows].astype(np.float32).astype(np.float64)
        self.loss, self.row_loss, self.pass_loss = (
            float(running_sums(total, losses)[-1]) for total in (self.loss, self.row_loss, self.pass_loss)
        )
        self.weight, self.row_weight, self.pass_weight = (
            float(running_sums(total, weight[rows])[-1]) for total in (self.weight, self.row_weight, self.pass_weight)
        )

    def take_row(self) -> tuple[str, str]:
        """Return the average loss of the run and since the last row, as text; start a new row."""
        average, recent = _average_text(self.loss, self.weight), _average_text(self.row_loss, self.row_weight)
        self.row_loss = self.row_weight = 0.0
        return average, recent

    def end_pass(self, number: int) -> bool:
        """End pass `number` and return whether its average loss is the lowest so far."""
        # VW uses half the largest float as the loss of a pass without held-out examples
        loss = np.float32(self.pass_loss / self.pass_weight if self.pass_weight > 0 else LARGEST / 2)
        self.pass_loss = self.pass_weight = 0.0
        if loss < self.best:
            self.best, self.best_pass, self.misses = loss, number, 0
            return True
        self.misses += 1
        return False


def _average_text(total: float, weight: float) -> str:
    return format(total / weight, ".6f") if weight else UNKNOWN if not total else "inf"


def running_sums(initial: float, values: np.ndarray) -> np.ndarray:
    """Return the sums of `initial` and values 0..i, added one after the other; `[initial]` if there are no values."""
    sums = np.add.accumulate(np.concatenate(([initial], values)))
    return sums[1:] if len(values) else sums


NO_VALUE = "n.a."
VW_NO_LABEL = str(2**32 - 1)  # printed by VW for a missing label if it lists scores
LARGEST_LABEL = 2**31 - 1  # VW prints classes below this number only
VW = "vw"  # key, among the counters of a model, of the counters that VW would store
VW_SUMS = {  # counter that VW stores in a model -> attribute of Progress; `t` is stored beside these
    "sum_loss": "loss_sum",
    "sum_loss_since_last_dump": "_since_loss",
    "dump_interval": "_due",
    "weighted_labeled_examples": "labelled_weight",
    "weighted_labels": "label_sum",
    "weighted_unlabeled_examples": "other_weight",
    "sd::oec.weighted_labeled_examples": "_since_weight",
}
VW_COUNTS = {"example_number": "examples", "total_features": "features", "current_pass": "passes"}
Shown: TypeAlias = float | list[float]  # label or prediction of an example, a list if it has a list of labels
SUMS = ("labelled_weight", "label_sum", "loss_sum", "log_loss_sum")  # attributes that a later run continues


class Progress:
    """Count examples and their losses, and format the rows of the table that are due.

    Parameters
    ----------
    labels : "simple", "multiclass" or "multilabel"
    schedule : when rows are due; None for no rows
    holdout : whether examples may be held out. Their losses are then in `holdout`, and rows show these losses from the
        second pass on
    names : names of the classes, or None if labels are numbers; the list may grow
    as_vw : whether to follow VW: the summary shows numbers that are not finite, and examples whose loss is not known
        are not held out
    lists_scores : whether to treat unlabelled examples as VW does when it lists scores: rows show a number in place of
        the label, and the loss is counted

    Attributes
    ----------
    examples : number of examples, held-out examples excluded
    features : number of the features of these examples
    learned_features : number of the features of those that have a label and a positive weight
    labelled_weight : sum of the weights of the examples whose loss is counted
    other_weight : sum of the weights of the other examples that are not held out
    label_sum : sum of label times weight, for real-valued labels
    loss_sum : sum of the losses times weight
    log_loss_sum : sum of the log losses times weight; None if there were no probabilities
    first_labels : the first different labels, three at most
    row_positions : positions in the batch counted last of the examples for which a row was due
    """

    def __init__(
        self,
        labels: str,
        schedule: RowSchedule | None,
        holdout: bool = False,
        names: Sequence[str] | None = None,
        as_vw: bool = False,
        lists_scores: bool = False,
    ) -> None:
        self.simple = labels == "simple"
        self.names = names
        self.as_vw = as_vw
        self.lists_scores = lists_scores and labels == "multiclass"
        self.schedule = schedule
        self.holdout = Holdout() if holdout else None
        self.passes = self.examples = self.features = self.learned_features = 0
        self.labelled_weight = self.other_weight = 0.0
        self.label_sum = self.loss_sum = 0.0
        self.log_loss_sum: float | None = None
        self.held_out_log_loss_sum = 0.0
        self.first_labels: list[np.float32] = []
        self.row_positions: list[int] = []
        self._due = float(schedule.first) if schedule is not None else math.inf
        self._since_loss = 0.0
        self._since_weight = 0.0  # labelled_weight at the last row

    def counters(self) -> dict[str, object]:
        """Return the counters that `resume` continues from, as JSON values.

        Sums are text, because they may be infinite. Examples without label or weight are not counted.
        """
        counters: dict[str, object] = {"features": self.learned_features}
        for name in SUMS:
            value = getattr(self, name)
            counters[name] = None if value is None else repr(float(value))
        return counters

    def resume(self, counters: Mapping[str, Any], examples: int) -> None:
        """Continue from the counters of earlier runs, which learned from `examples`; later rows are due."""
        self.examples = examples
        self.features = self.learned_features = int(counters["features"])
        for name in SUMS:
            setattr(self, name, None if counters[name] is None else float(counters[name]))
        self._since_weight = self.labelled_weight
        if self.schedule is None or not self.weight >= self._due:
            return
        step = float(self.schedule.step)
        if self.schedule.additive and math.isfinite(self.weight):
            self._due += step * (math.floor((self.weight - self._due) / step) + 1)
        while self._due <= self.weight < math.inf:
            self._due = float(np.float32(self._due) * self.schedule.step)

    def vw_counters(self, clock: float) -> dict[str, object]:
        """Return the counters that VW writes; `clock` is --initial_t plus the sum of the weights learned from."""
        held_out = self.holdout.weight if self.holdout is not None else 0.0
        return {
            "t": float(clock + self.other_weight + held_out),
            "sum_loss": float(self.loss_sum),
            "sum_loss_since_last_dump": float(self._since_loss),
            "dump_interval": self._due if self.schedule is not None else 1.0,
            "min_label": 0.0,
            "max_label": 0.0,
            "weighted_labeled_examples": float(self.labelled_weight),
            "weighted_labels": float(self.label_sum),
            "weighted_unlabeled_examples": float(self.other_weight),
            "example_number": self.examples,
            "total_features": self.features,
            "total_weight": 0.0,
            "sd::oec.weighted_labeled_examples": float(self._since_weight),
            "current_pass": self.passes,
        }

    def stored_by_vw(self, clock: float) -> dict[str, object]:
        """Return those of the `vw_counters` that `resume_vw` continues from, as JSON values."""
        counters = self.vw_counters(clock)
        sums: dict[str, object] = {name: repr(counters[name]) for name in ("t", *VW_SUMS)}
        return {**sums, **{name: counters[name] for name in VW_COUNTS}}

    def resume_vw(self, counters: Mapping[str, Any]) -> None:
        """Continue from the `vw_counters` of earlier runs as VW does, including the next row and the pass number."""
        for name, attribute in VW_SUMS.items():
            setattr(self, attribute, float(counters[name]))
        for name, attribute in VW_COUNTS.items():
            setattr(self, attribute, counters[name])

    @property
    def weight(self) -> float:
        return self.labelled_weight + self.other_weight

    @property
    def average_loss(self) -> float | None:
        """Return the mean loss, weighted by example; None before the first labelled example."""
        return self.loss_sum / self.labelled_weight if self.labelled_weight > 0 else None

    def count(self, task: BatchTask) -> list[str]:
        """Add the examples and losses of a task, and return the rows of the table that are due."""
        self.row_positions = []
        n, features = task.batch.n, task.read.features
        return [] if not n or (n == 1 and self._count_single(task, features.item())) else self._count(task)

    def lists_of(self, task: BatchTask, i: int) -> tuple[Shown, Shown]:
        """Return label and prediction of an example with lists, as a row shows them: its labels, and the best one.

        With `as_vw`, the prediction is the labels above the threshold.
        """
        batch = task.batch
        assert task.prediction is not None and task.label_lists is not None  # the stages have set them
        labels: Shown = np.nan
        if not math.isnan(batch.label[i]):
            labels = batch.labels[batch.label_start[i] : batch.label_start[i + 1]].tolist()
        if self.as_vw:
            chosen = task.label_lists.chosen
            return labels, chosen.labels[chosen.start[i] : chosen.start[i + 1]].tolist()
        return labels, float(task.prediction[i])

    def _count_single(self, task: BatchTask, features: int) -> bool:
        """Count a single example with a class as `_count` does, in a tenth of its time; return whether it is counted.

        It is not if a row of the table may be due, or if there is more to count than its class and its loss.
        """
        loss = 0.0 if task.loss is None else task.loss.item()
        if (
            self.simple
            or self.schedule is not None
            or self.holdout is not None
            or task.log_loss is not None
            or not abs(loss) <= LARGEST
        ):
            return False
        label, weight = task.batch.label.item(), task.batch.weight.item()
        labelled = not math.isnan(label)
        if labelled and task.loss is not None:
            self.labelled_weight += weight
        else:
            self.other_weight += weight
        if labelled or self.lists_scores:
            loss = float(np.float32(loss))
            self.loss_sum += loss
            self._since_loss += loss
        self.examples += 1
        self.features += features
        if labelled and weight > 0:
            self.learned_features += features
        return True

    @np.errstate(invalid="ignore", over="ignore")  # weights, labels and losses may be infinite under --on_bad_line vw
    def _count(self, task: BatchTask) -> list[str]:
        """Count a task with examples as `count` does; held-out ones that have a label are counted in `holdout`."""
        assert task.prediction is not None  # the stages have set it
        prediction = class_names.hide_unseen(task.prediction, task.read.seen)
        n, label, features = task.batch.n, task.batch.label, task.read.features
        loss, log_loss, held_out = task.loss, task.log_loss, task.held_out
        weight = task.batch.weight.astype(np.float64)
        labelled = ~np.isnan(label)
        if self.simple:
            with np.errstate(over="ignore"):
                self._note_labels(label[labelled].astype(np.float32))
        scored_held_out = None
        may_hold_out = loss is not None or not self.as_vw  # VW holds no examples out if their loss is not known
        if held_out is not None and self.holdout is not None and may_hold_out and (held_out & labelled).any():
            scored_held_out = held_out & labelled
            labelled = labelled & ~scored_held_out
        if self.simple:
            with np.errstate(over="ignore"):
                weighted_label = label.astype(np.float32).astype(np.float64) * weight
            self.label_sum = running_sums(self.label_sum, np.where(labelled, weighted_label, 0.0))[-1]
        counted = labelled if loss is not None else np.zeros(n, bool)
        losses = np.zeros(n)
        if loss is not None:
            losses = _where(labelled | (np.isnan(label) & self.lists_scores), loss)
        if log_loss is not None:
            log_held_out = scored_held_out
            if self.as_vw and self.holdout is not None:  # VW counts the log loss of unlabelled examples as held out
                log_held_out = np.isnan(label) if scored_held_out is None else scored_held_out | np.isnan(label)
            if log_held_out is not None:
                sums = running_sums(self.held_out_log_loss_sum, _where(log_held_out, log_loss))
                self.held_out_log_loss_sum = sums[-1]
            self.log_loss_sum = running_sums(self.log_loss_sum or 0.0, _where(labelled, log_loss))[-1]
        labelled_weights = running_sums(self.labelled_weight, np.where(counted, weight, 0.0))
        excluded = counted if scored_held_out is None else counted | scored_held_out
        other_weights = running_sums(self.other_weight, np.where(excluded, 0.0, weight))
        number = self.examples + (np.arange(1, n + 1) if scored_held_out is None else np.cumsum(~scored_held_out))
        shows_holdout = self.holdout is not None and self.passes > 0
        total = labelled_weights + other_weights
        loss_sum = running_sums(self.loss_sum, losses)

        rows = []
        begin = 0  # first example after the last row
        is_sorted = weight.min() >= 0 and not math.isnan(total[-1])
        while self.schedule is not None and (i := self._next_row(total, begin, is_sorted)) < n:
            self._since_loss = running_sums(self._since_loss, losses[begin : i + 1])[-1]
            if scored_held_out is not None and self.holdout is not None:
                self.holdout.add(scored_held_out, loss, weight, begin, i + 1)
            average = _ratio(loss_sum[i], labelled_weights[i]) if labelled_weights[i] > 0 else NO_VALUE
            since = NO_VALUE
            if labelled_weights[i] != self._since_weight:
                since = _ratio(self._since_loss, float(labelled_weights[i]) - self._since_weight)
            if shows_holdout and self.holdout is not None:
                average, since = self.holdout.take_row()
            of_label, of_prediction = self.lists_of(task, i) if task.batch.has_lists else (label[i], prediction[i])
            shown = None if log_loss is None else task.answer_probability
            probability = None if shown is None else shown[i]
            label_text, prediction_text = self.texts(of_label, of_prediction, probability)
            mark = " h" if shows_holdout else ""
            rows.append(
                progress_table.row(
                    average, since, int(number[i]), total[i], label_text, prediction_text, int(features[i]), mark
                )
            )
            self._since_loss = 0.0
            self._since_weight = float(labelled_weights[i])
            self._due = self.schedule.after(total[i])
            self.row_positions.append(i)
            begin = i + 1
        self._since_loss = running_sums(self._since_loss, losses[begin:])[-1]
        if scored_held_out is not None and self.holdout is not None:
            self.holdout.add(scored_held_out, loss, weight, begin, n)

        self.examples = int(number[-1])
        self.features += int(features.sum() if scored_held_out is None else features[~scored_held_out].sum())
        self.learned_features += int(features[labelled & (weight > 0)].sum())
        self.labelled_weight, self.other_weight = float(labelled_weights[-1]), float(other_weights[-1])
        self.loss_sum = float(loss_sum[-1])
        return rows

    def _next_row(self, total: np.ndarray, begin: int, is_sorted: bool) -> int:
        """Return the first example from `begin` on at which the next row is due, or n.

        `total` are the sums of the weights up to and including each example, sorted if no weight is negative or NaN.
        """
        if is_sorted:
            return begin + int(np.searchsorted(total[begin:], self._due))
        reached = np.flatnonzero(total[begin:] >= self._due)
        return begin + int(reached[0]) if len(reached) else len(total)

    def end_pass(self) -> bool:
        """Count a pass; return whether its held-out loss is the lowest so far."""
        self.passes += 1
        return self.holdout is not None and self.holdout.end_pass(self.passes)

    @np.errstate(invalid="ignore", over="ignore")
    def summary(
        self,
        loss: str = "squared",
        tau: float = 0.5,
        label_range: tuple[float, float] | None = None,
        constant: bool = True,
    ) -> list[str]:
        """Return the lines of VW's summary; `constant` asks for the best one; see `best_constant`."""
        average = self.average_loss
        average_text = NO_VALUE if average is None else format(average, ".6f")
        if self.holdout is not None:
            average_text = f"{self.holdout.best:.6f} h" if self.holdout.has_loss else "undefined (no holdout)"
        counts = [f"number of examples = {self.examples}"]
        if self.passes > 1:
            counts = [f"number of examples per pass = {self.examples // self.passes}", f"passes used = {self.passes}"]
        lines = [
            "",
            "finished run",
            *counts,
            f"weighted example sum = {self.weight:.6f}",
            f"weighted label sum = {self.label_sum:.6f}",
            f"average loss = {average_text}",
        ]
        if self.log_loss_sum is not None:
            mark = " h" if self.holdout is not None else ""
            total = self.log_loss_sum if self.holdout is None else self.held_out_log_loss_sum
            log_loss_text = _ratio(total, self.labelled_weight)
            if self.as_vw and not self.labelled_weight:
                log_loss_text = "inf" if total > 0 else "nan"
            lines.append(f"average multiclass log loss = {log_loss_text}{mark}")
        best = None
        if self.simple and constant:
            with np.errstate(all="ignore"):
                best = progress_table.best_constant(
                    self.first_labels, self.label_sum, self.labelled_weight, loss, tau, label_range
                )
        if best is not None and (self.as_vw or math.isfinite(best[0])):
            lines.append(f"best constant = {best[0]:.6f}")
            if best[1] is not None:
                lines.append(f"best constant's loss = {best[1]:.6f}")
        lines.append(f"total feature number = {self.features}")
        return lines

    def texts(self, label: Shown, prediction: Shown, probability: float | None = None) -> tuple[str, str]:
        """Return label and prediction, classes, numbers or lists of labels, as texts for a row."""
        if self.simple:
            assert not isinstance(label, list) and not isinstance(prediction, list)
            return f"{np.float32(label):.4f}" if label < LARGEST else UNKNOWN, f"{np.float32(prediction):.4f}"
        shown = self._text_of(prediction)
        if probability is not None:
            shown += f"({np.float32(100) * np.float32(probability):.0f}%)"
        if isinstance(label, list):
            return self._text_of(label) or ",", shown
        if math.isnan(label):
            return VW_NO_LABEL if self.lists_scores and self.names is None else UNKNOWN, shown
        return self._text_of(label) if label < LARGEST_LABEL or self.lists_scores else UNKNOWN, shown

    def _text_of(self, label: Shown) -> str:
        """Return the text of a class or of a list of labels, an empty one for none."""
        if isinstance(label, list):
            return ",".join(map(self._text_of, label))
        return "" if math.isnan(label) else class_names.text_of(label, self.names, UNKNOWN)

    def _note_labels(self, labels: np.ndarray) -> None:
        """Add new labels, from float32[n], to the first three different ones."""
        while len(self.first_labels) < 3:
            fresh = np.ones(len(labels), bool)
            for label in self.first_labels:
                fresh &= labels != label
            if not fresh.any():
                return
            labels = labels[fresh]
            self.first_labels.append(labels[0])


def _where(chosen: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Return losses with the digits of float32, as VW sums them, and 0 where examples are not chosen."""
    return np.where(chosen, loss.astype(np.float32).astype(np.float64), 0.0)


def _ratio(total: float, weight: float) -> str:
    return format(total / weight, ".6f") if weight != 0 else NO_VALUE
