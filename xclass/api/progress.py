"""Progressive validation: every example is predicted before it is learned from, and counted here.

Gives what VW writes, character for character: the rows of the table, at examples 1, 2, 4, 8, ..., and the summary. A
whole batch is taken in at once with NumPy; only the examples a row is printed for are looked at one by one. As in VW,
sums are float64 and grow one example after the other, so that batches of any size give the same digits.

Differs from VW: an unlabelled example prints `unknown` and has no loss under --scores and --probabilities too
(VW prints 4294967295 there and counts it as wrong; `--vw_exact` does so); a log loss of no example is `n.a.`, not
`-nan`, and a best constant that is not finite is left out (`--vw_exact` shows both); the sign of what is no number is
not shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data import class_names, interactions
from ..reductions.core.contract import BatchTask
from . import best_constant, progress_table
from .holdout import LARGEST_FLOAT, UNKNOWN, Holdout, running
from .progress_table import Pace

NO_VALUE = "n.a."
VW_NO_LABEL = str(2**32 - 1)  # VW's, where it lists scores
LARGEST_LABEL = 2**31 - 1  # VW prints no class from here on
VW = "vw"  # among the counters of a model: what VW would go on counting from
VW_SUMS = {  # what VW keeps in a model to go on counting from -> our attribute; `t` is kept beside these
    "sum_loss": "loss_sum",
    "sum_loss_since_last_dump": "_since_loss",
    "dump_interval": "_due",
    "weighted_labeled_examples": "labelled_weight",
    "weighted_labels": "label_sum",
    "weighted_unlabeled_examples": "other_weight",
    "sd::oec.weighted_labeled_examples": "_since_weight",
}
VW_COUNTS = {"example_number": "examples", "total_features": "features", "current_pass": "passes"}
SUMS = ("labelled_weight", "label_sum", "loss_sum", "log_loss_sum")  # that go on in a later run


class Progress:
    """Counts examples and their losses, and tells which rows of the table are due.

    Parameters
    ----------
    labels : "simple" or "multiclass".
    pace : when rows are due; None for no rows at all.
    holdout : whether examples may be held out; their losses are then in `holdout`, and from the second pass on
        rows show these.
    names : of the classes 1, 2, ..., where labels are names; may grow.
    as_vw : whether the summary shows numbers that are not finite, and examples without a loss are not held out, as
        in VW.
    lists : whether rows show labels as VW does where it lists scores: any number, one where there is no label too,
        and losses are counted there.

    Attributes
    ----------
    passes : number of passes that have ended.
    """

    def __init__(
        self,
        labels: str,
        pace: Pace | None,
        holdout: bool = False,
        names: Sequence[str] | None = None,
        as_vw: bool = False,
        lists: bool = False,
    ) -> None:
        self.simple = labels == "simple"
        self.names = names
        self.as_vw = as_vw
        self.lists = lists
        self.pace = pace
        self.holdout = Holdout() if holdout else None
        self.passes = 0
        self.examples = 0
        self.features = 0
        self.learned_features = 0  # of examples with label and weight
        self.labelled_weight = 0.0  # of examples whose loss counts
        self.other_weight = 0.0
        self.label_sum = 0.0
        self.loss_sum = 0.0
        self.log_loss_sum: float | None = None
        self.held_log_loss_sum = 0.0
        self.seen: list[np.float32] = []  # the first three different labels
        self._due = float(pace.first) if pace is not None else math.inf
        self._since_loss = 0.0
        self._since_weight = 0.0  # labelled_weight at the last row

    def counters(self) -> dict[str, object]:
        """What `resume` goes on from, JSON-able; lines without label or weight leave no trace in it."""
        kept: dict[str, object] = {"features": self.learned_features}
        for name in SUMS:
            value = getattr(self, name)
            kept[name] = None if value is None else repr(float(value))  # infinity too
        return kept

    def resume(self, kept: Mapping[str, Any], examples: int) -> None:
        """Go on from the `counters` of an earlier run that learned from so many examples.

        The next row of the table is the first one due after them.
        """
        self.examples = examples
        self.features = self.learned_features = int(kept["features"])
        for name in SUMS:
            setattr(self, name, None if kept[name] is None else float(kept[name]))
        self._since_weight = self.labelled_weight
        if self.pace is None or not self.weight >= self._due:
            return
        step = float(self.pace.step)
        if self.pace.additive and math.isfinite(self.weight):
            self._due += step * (math.floor((self.weight - self._due) / step) + 1)
        while self._due <= self.weight < math.inf:
            self._due = float(np.float32(self._due) * self.pace.step)

    def vw_counters(self, clock: float) -> dict[str, object]:
        """VW's lines about a run in a readable model. `clock` : --initial_t and the weight learned from"""
        held = self.holdout.weight if self.holdout is not None else 0.0
        return {
            "t": float(clock + self.other_weight + held),
            "sum_loss": float(self.loss_sum),
            "sum_loss_since_last_dump": float(self._since_loss),
            "dump_interval": self._due if self.pace is not None else 1.0,
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

    def resume_vw(self, kept: Mapping[str, Any]) -> None:
        """Go on from the `vw_counters` of an earlier run as VW does: the row due next and the passes are among them."""
        for name, attribute in VW_SUMS.items():
            setattr(self, attribute, float(kept[name]))
        for name, attribute in VW_COUNTS.items():
            setattr(self, attribute, kept[name])

    @property
    def weight(self) -> float:
        """Weight of all examples."""
        return self.labelled_weight + self.other_weight

    @property
    def average_loss(self) -> float | None:
        """Loss by weight of labelled example, or None where there was none."""
        return self.loss_sum / self.labelled_weight if self.labelled_weight > 0 else None

    def count(self, task: BatchTask, met: np.ndarray | None = None) -> list[str]:
        """Count work that went through the stages of a learner, and return the rows of the table that are due.

        `met` : float64[n], classes beyond it are shown without a name; None for no such limit
        """
        batch, prediction = task.batch, task.prediction
        assert prediction is not None  # the stages have set it
        return self.update(
            batch.label, batch.weight, interactions.counted(task),
            prediction if met is None else class_names.shown(prediction, met),
            task.loss, task.log_loss, task.shown, task.held,
        )  # fmt: skip

    @np.errstate(invalid="ignore", over="ignore")  # weights, labels and losses may be infinite under --on_bad_line vw
    def update(
        self,
        label: np.ndarray,
        weight: np.ndarray,
        features: np.ndarray,
        prediction: np.ndarray,
        loss: np.ndarray | None,
        log_loss: np.ndarray | None = None,
        shown: np.ndarray | None = None,
        held: np.ndarray | None = None,
    ) -> list[str]:
        """Count a batch and return the rows of the table that are due.

        Parameters
        ----------
        label : float64[n], NaN where there is none.
        weight : float32[n]
        features : int64[n], number of features of each example, the constant included.
        prediction : float64[n]
        loss : float64[n], times weight; None where the loss is not reported.
        log_loss : float64[n], times weight, of the probabilities.
        shown : float64[n], probability printed beside the prediction.
        held : bool[n], held out; None where none is. Such examples are counted apart, if they have a label.
        """
        n = len(label)
        if n == 0:
            return []
        weight = weight.astype(np.float64)
        labelled = ~np.isnan(label)
        if self.simple:
            with np.errstate(over="ignore"):
                self._see(label[labelled].astype(np.float32))
        apart = None
        judging = loss is not None or not self.as_vw  # VW holds out nothing whose loss it does not know
        if held is not None and self.holdout is not None and judging and (held & labelled).any():
            apart = held & labelled
            labelled = labelled & ~apart
        if self.simple:
            with np.errstate(over="ignore"):
                worth = label.astype(np.float32).astype(np.float64) * weight
            self.label_sum = running(self.label_sum, np.where(labelled, worth, 0.0))[-1]
        counted = labelled if loss is not None else np.zeros(n, bool)
        judged = labelled | (np.isnan(label) & self.lists)
        losses = np.zeros(n) if loss is None else np.where(judged, loss.astype(np.float32).astype(np.float64), 0.0)
        if log_loss is not None:
            out = apart
            if self.as_vw and self.holdout is not None:  # to VW what has no label is held out
                out = np.isnan(label) if apart is None else apart | np.isnan(label)
            if out is not None:
                given = np.where(out, log_loss.astype(np.float32).astype(np.float64), 0.0)
                self.held_log_loss_sum = running(self.held_log_loss_sum, given)[-1]
            given = np.where(labelled, log_loss.astype(np.float32).astype(np.float64), 0.0)
            self.log_loss_sum = running(self.log_loss_sum or 0.0, given)[-1]
        known = running(self.labelled_weight, np.where(counted, weight, 0.0))
        uncounted = counted if apart is None else counted | apart
        other = running(self.other_weight, np.where(uncounted, 0.0, weight))
        number = self.examples + (np.arange(1, n + 1) if apart is None else np.cumsum(~apart))
        marked = self.holdout is not None and self.passes > 0
        total = known + other
        loss_sum = running(self.loss_sum, losses)

        rows = []
        begin = 0  # first example after the last row
        while self.pace is not None and (i := self._next_row(total, begin, weight)) < n:
            self._since_loss = running(self._since_loss, losses[begin : i + 1])[-1]
            if apart is not None and self.holdout is not None:
                self.holdout.add(apart, loss, weight, begin, i + 1)
            average = _ratio(loss_sum[i], known[i]) if known[i] > 0 else NO_VALUE
            since = NO_VALUE
            if known[i] != self._since_weight:
                since = _ratio(self._since_loss, float(known[i]) - self._since_weight)
            if marked and self.holdout is not None:
                average, since = self.holdout.take_row()
            rows.append(
                progress_table.row(
                    average,
                    since,
                    int(number[i]),
                    total[i],
                    self._label_text(label[i]),
                    self._prediction_text(prediction[i], None if shown is None else shown[i]),
                    int(features[i]),
                    " h" if marked else "",
                )
            )
            self._since_loss = 0.0
            self._since_weight = float(known[i])
            with np.errstate(over="ignore"):  # then no further row is due
                now = np.float32(total[i])
                self._due = float(now + self.pace.step if self.pace.additive else now * self.pace.step)
            begin = i + 1
        self._since_loss = running(self._since_loss, losses[begin:])[-1]
        if apart is not None and self.holdout is not None:
            self.holdout.add(apart, loss, weight, begin, n)

        self.examples = int(number[-1])
        self.features += int(features.sum() if apart is None else features[~apart].sum())
        self.learned_features += int(features[labelled & (weight > 0)].sum())
        self.labelled_weight, self.other_weight, self.loss_sum = float(known[-1]), float(other[-1]), float(loss_sum[-1])
        return rows

    def _next_row(self, total: np.ndarray, begin: int, weight: np.ndarray) -> int:
        """Return the first example from `begin` on whose weight so far reaches that of the next row."""
        uneven = not weight.min() >= 0 or math.isnan(total[-1])
        return _first_at_least(total, self._due, begin, uneven)

    def end_pass(self) -> bool:
        """Count a pass; return whether it was the best so far on what was held out."""
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
        """Return VW's summary of the run; for real labels with the best constant prediction under `loss`."""
        average = self.average_loss
        shown = NO_VALUE if average is None else format(average, ".6f")
        if self.holdout is not None:
            shown = f"{self.holdout.best:.6f} h" if self.holdout.found else "undefined (no holdout)"
        lines = [
            "",
            "finished run",
            *(
                [f"number of examples per pass = {self.examples // self.passes}", f"passes used = {self.passes}"]
                if self.passes > 1
                else [f"number of examples = {self.examples}"]
            ),
            f"weighted example sum = {self.weight:.6f}",
            f"weighted label sum = {self.label_sum:.6f}",
            f"average loss = {shown}",
        ]
        if self.log_loss_sum is not None:
            mark = " h" if self.holdout is not None else ""
            total = self.log_loss_sum if self.holdout is None else self.held_log_loss_sum
            shown = _ratio(total, self.labelled_weight)
            if self.as_vw and not self.labelled_weight:
                shown = "inf" if total > 0 else "nan"
            lines.append(f"average multiclass log loss = {shown}{mark}")
        found = None
        if self.simple and constant:
            with np.errstate(all="ignore"):
                found = best_constant.find(self.seen, self.label_sum, self.labelled_weight, loss, tau, label_range)
        if found is not None and (self.as_vw or math.isfinite(found[0])):
            lines.append(f"best constant = {found[0]:.6f}")
            if found[1] is not None:
                lines.append(f"best constant's loss = {found[1]:.6f}")
        lines.append(f"total feature number = {self.features}")
        return lines

    def _label_text(self, label: float) -> str:
        if self.simple:
            return f"{np.float32(label):.4f}" if label < LARGEST_FLOAT else UNKNOWN
        if math.isnan(label):
            return VW_NO_LABEL if self.lists and self.names is None else UNKNOWN
        return self._class_text(label) if label < LARGEST_LABEL or self.lists else UNKNOWN

    def _class_text(self, label: float) -> str:
        """A class as a number, or its name."""
        if self.names is None:
            return str(int(label))
        return self.names[int(label) - 1] if 1 <= label <= len(self.names) else UNKNOWN

    def _prediction_text(self, prediction: float, probability: float | None) -> str:
        if self.simple:
            return f"{np.float32(prediction):.4f}"
        if probability is None:
            return self._class_text(prediction)
        return f"{self._class_text(prediction)}({np.float32(100) * np.float32(probability):.0f}%)"

    def _see(self, labels: np.ndarray) -> None:
        while len(self.seen) < 3:
            fresh = np.ones(len(labels), bool)
            for one in self.seen:
                fresh &= labels != one
            if not fresh.any():
                return
            labels = labels[fresh]
            self.seen.append(labels[0])


def _first_at_least(rising: np.ndarray, bound: float, begin: int, uneven: bool) -> int:
    """Return the first position from `begin` on that reaches `bound`, or the length."""
    if uneven:  # negative weights, or a weight that is no number: not sorted
        reached = np.flatnonzero(rising[begin:] >= bound)
        return begin + int(reached[0]) if len(reached) else len(rising)
    return begin + int(np.searchsorted(rising[begin:], bound))


def _ratio(total: float, weight: float) -> str:
    return format(total / weight, ".6f") if weight != 0 else NO_VALUE
