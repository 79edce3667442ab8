"""How good probabilities were over a run: losses, calibration, and what finding the best labels took."""

from __future__ import annotations

import math

import numpy as np

from ...array_types import AnyArray, Bools, Float64s, Int64s
from . import probabilities
from .result import Result

MOST_OPENED = 1 << 16  # nodes opened by one search, in the histogram; more count as this
BINS = 20  # of the reliability table


class Report:
    """Sums over the labelled examples of one run, for its summary.

    Parameters
    ----------
    asked : what the user wants to know.
    regressors : of a node.
    unknown : what labels without a probability are, for the summary.
    """

    def __init__(
        self, asked: probabilities.Options, regressors: int = 1, unknown: str = "labels seen for the first time"
    ):
        self.calibration, self.perplexity, self.top_k = asked.calibration, asked.perplexity, asked.top_k
        self.calibrated = asked.listed or asked.calibration is not None  # whether forecasts are held against answers
        self.of_node, self.unknown = regressors, unknown
        self.weight = self.squared = 0.0  # of all labelled
        self.missed = 0.0  # of those whose label was not among the top k
        self.known_weight = self.log = 0.0  # of those whose label has a probability
        self.asked = self.asked_squared = 0.0  # regressors asked about them, and the mean of their squared losses
        self.new = 0
        self.opened = np.zeros(MOST_OPENED + 1, np.int64)
        self.stopped = 0
        self.gap = 0.0
        self.bins = np.zeros((3, BINS))  # weight, weight * forecast, weight of the right ones

    def losses(self, labelled: Bools, weight: Float64s, known: Bools, p: Float64s) -> None:
        """Count the losses of the labels' probabilities."""
        w = np.where(labelled, weight, 0.0)
        new = labelled & ~known
        known = labelled & known
        self.weight += float(w.sum())
        self.squared += float((w * (1.0 - p) ** 2).sum())
        self.known_weight += float(w[known].sum())
        self.log += float((w[known] * -np.log(np.maximum(p[known], 1e-300))).sum())
        self.new += int(np.count_nonzero(new & (weight > 0)))

    def tops(self, labelled: Bools, weight: Float64s, label: AnyArray, top: Int64s) -> None:
        """Count the labels that are not among the best, `top` (int64[n, k]); goes with `losses`."""
        missed = labelled & ~(top == label[:, None]).any(axis=1)
        self.missed += float(weight[missed].sum())

    def regressors(self, labelled: Bools, weight: Float64s, known: Bools, asked: Float64s, loss: Float64s) -> None:
        """Count the regressors a known label asked and their mean squared loss."""
        w = np.where(labelled & known, weight, 0.0)
        self.asked += float((w * asked).sum())
        self.asked_squared += float((w * loss).sum())

    def searches(self, opened: Int64s, gap: Float64s) -> None:
        """Count the nodes opened."""
        self.opened += np.bincount(np.minimum(opened, MOST_OPENED), minlength=MOST_OPENED + 1)
        self.stopped += int(np.count_nonzero(gap))
        self.gap = max(self.gap, float(gap.max(initial=0.0)))

    def answers(self, forecast: Float64s, labelled: Bools, weight: Float64s, right: Bools) -> None:
        """Count how often answers of such a probability are right."""
        if self.calibrated:
            forecast = forecast[labelled]
            w = weight[labelled]
            forecast = np.nan_to_num(forecast)  # a model may hold any numbers
            place = np.clip(forecast * BINS, 0, BINS - 1).astype(np.int64)
            for row, worth in enumerate((w, w * forecast, w * right[labelled])):
                self.bins[row] += np.bincount(place, worth, BINS)

    def lines(self) -> list[str]:
        """What the summary says."""
        found = []
        if self.weight > 0 and self.top_k is not None:
            found.append(f"top-{self.top_k} error = {self.missed / self.weight:.6f}")
        if self.weight > 0:
            found.append(f"average squared loss = {self.squared / self.weight:.6f}")
        if self.known_weight > 0:
            log = self.log / self.known_weight
            found.append(f"average log loss = {log:.6f}")
            if self.perplexity:
                found.append(f"perplexity = {math.exp(min(log, 700.0)):.6g}")
        if self.asked > 0:
            asked, loss = self.asked / self.known_weight, self.asked_squared / self.known_weight
            found.append(f"regressors asked about a label = {asked:.2f}, their average squared loss = {loss:.6f}")
        if self.new:
            found.append(f"{self.unknown} = {self.new}, without log loss")
        if (n := int(self.opened.sum())) > 0:
            total = np.cumsum(self.opened)
            median, high = (int(np.searchsorted(total, share * n)) for share in (0.5, 0.99))
            mean = float((self.opened * np.arange(MOST_OPENED + 1)).sum()) / n
            each = f", {self.of_node} regressors each" if self.of_node > 1 else ""
            found.append(f"nodes opened by a search: mean {mean:.1f}, median {median}, 99 % {high}{each}")
        if self.stopped:
            found.append(
                f"searches ended by --max_expand = {self.stopped}; a class left out may have up to {self.gap:.6f}"
            )
        if weight := self.bins[0].sum():
            found.append(f"expected calibration error = {np.abs(self.bins[1] - self.bins[2]).sum() / weight:.6f}")
        return found

    def results(self) -> list[Result]:
        """Return the reliability table if it is asked for, a line per bin that is not empty."""
        if self.calibration is None:
            return []
        lines = ["from\tto\tmean_forecast\tobserved\tweight"]
        for j in range(BINS):
            weight, forecast, right = self.bins[:, j]
            if weight > 0:
                lines.append(
                    f"{j / BINS:g}\t{(j + 1) / BINS:g}\t{forecast / weight:.6f}\t{right / weight:.6f}\t{weight:g}"
                )
        return [Result(self.calibration, "the reliability table", lines)]
