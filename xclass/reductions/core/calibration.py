"""Measure the quality of predicted probabilities over a run: losses, calibration, and the cost of top-k searches.

Cost      O(1) per example and statistic; `count_top_k` takes O(k) for the k best labels.
Names     p probability of the label, forecast probability of the predicted class.
"""

from __future__ import annotations

import math

import numpy as np

from ...array_types import AnyArray, Bools, Float64s, Int64s
from . import probabilities
from .result import Result

MOST_OPENED = 1 << 16  # last bin of the histogram of opened nodes; larger counts fall into it
BINS = 20  # rows of the reliability table


class Report:
    """Accumulate statistics of the labelled examples of one run, for its summary.

    Parameters
    ----------
    asked : options that select the statistics
    regressors : number of regressors per node, for the summary
    unknown : description of labels without a probability, for the summary
    """

    def __init__(
        self, asked: probabilities.Options, regressors: int = 1, unknown: str = "labels seen for the first time"
    ):
        self.calibration, self.perplexity, self.top_k = asked.calibration, asked.perplexity, asked.top_k
        self.calibrated = asked.listed or asked.calibration is not None  # whether `count_calibration` counts
        self.of_node, self.unknown = regressors, unknown
        self.weight = self.squared = 0.0  # sums of weight and squared loss over labelled examples
        self.missed = 0.0  # weight of the examples whose label was not among the top k
        self.known_weight = self.log = 0.0  # weight and log loss of examples whose label has a probability
        # sums of weight * number of regressors scored, and of weight * mean squared loss of these regressors
        self.asked = self.asked_squared = 0.0
        self.new = 0
        self.opened = np.zeros(MOST_OPENED + 1, np.int64)
        self.stopped = 0
        self.gap = 0.0
        self.bins = np.zeros((3, BINS))  # weight, weight * forecast, weight of correct predictions

    def losses(self, labelled: Bools, weight: Float64s, known: Bools, p: Float64s) -> None:
        """Add the losses of the labels' probabilities.

        Parameters
        ----------
        labelled : bool[n]
        weight : float64[n], importance
        known : bool[n], whether the label has a probability
        p : float64[n], probability of the label
        """
        w = np.where(labelled, weight, 0.0)
        new = labelled & ~known
        known = labelled & known
        self.weight += float(w.sum())
        self.squared += float((w * (1.0 - p) ** 2).sum())
        self.known_weight += float(w[known].sum())
        self.log += float((w[known] * -np.log(np.maximum(p[known], 1e-300))).sum())
        self.new += int(np.count_nonzero(new & (weight > 0)))

    def count_top_k(self, labelled: Bools, weight: Float64s, label: AnyArray, top: Int64s) -> None:
        """Add the examples whose label is not among the k best; called after `losses` of the same batch.

        Parameters
        ----------
        labelled : bool[n]
        weight : float64[n], importance
        label : number[n], classes
        top : int64[n, k], the k most probable classes
        """
        missed = labelled & ~(top == label[:, None]).any(axis=1)
        self.missed += float(weight[missed].sum())

    def regressors(self, labelled: Bools, weight: Float64s, known: Bools, asked: Float64s, loss: Float64s) -> None:
        """Add how many regressors were scored for each known label, and their mean squared loss.

        Parameters
        ----------
        labelled, known : bool[n]
        weight : float64[n], importance
        asked : float64[n], number of regressors
        loss : float64[n], mean squared loss of these regressors
        """
        w = np.where(labelled & known, weight, 0.0)
        self.asked += float((w * asked).sum())
        self.asked_squared += float((w * loss).sum())

    def searches(self, opened: Int64s, gap: Float64s) -> None:
        """Add the searches for the most probable classes.

        Parameters
        ----------
        opened : int64[n], number of nodes that each search opened
        gap : float64[n], bound on the probability of any class that the search did not find; 0 if it was complete
        """
        self.opened += np.bincount(np.minimum(opened, MOST_OPENED), minlength=MOST_OPENED + 1)
        self.stopped += int(np.count_nonzero(gap))
        self.gap = max(self.gap, float(gap.max(initial=0.0)))

    def count_calibration(self, forecast: Float64s, labelled: Bools, weight: Float64s, right: Bools) -> None:
        """Add predicted classes to the reliability table.

        Parameters
        ----------
        forecast : float64[n], probability of the predicted class
        labelled : bool[n]
        weight : float64[n], importance
        right : bool[n], whether the prediction is correct
        """
        if self.calibrated:
            forecast = forecast[labelled]
            w = weight[labelled]
            forecast = np.nan_to_num(forecast)  # weights of a loaded model may give NaN
            bin_index = np.clip(forecast * BINS, 0, BINS - 1).astype(np.int64)
            for row, amount in enumerate((w, w * forecast, w * right[labelled])):
                self.bins[row] += np.bincount(bin_index, amount, BINS)

    def lines(self) -> list[str]:
        """Return the lines of the summary."""
        lines = []
        if self.weight > 0 and self.top_k is not None:
            lines.append(f"top-{self.top_k} error = {self.missed / self.weight:.6f}")
        if self.weight > 0:
            lines.append(f"average squared loss = {self.squared / self.weight:.6f}")
        if self.known_weight > 0:
            log = self.log / self.known_weight
            lines.append(f"average log loss = {log:.6f}")
            if self.perplexity:
                lines.append(f"perplexity = {math.exp(min(log, 700.0)):.6g}")
        if self.asked > 0:
            asked, loss = self.asked / self.known_weight, self.asked_squared / self.known_weight
            lines.append(f"regressors asked about a label = {asked:.2f}, their average squared loss = {loss:.6f}")
        if self.new:
            lines.append(f"{self.unknown} = {self.new}, without log loss")
        if (n := int(self.opened.sum())) > 0:
            total = np.cumsum(self.opened)
            median, high = (int(np.searchsorted(total, share * n)) for share in (0.5, 0.99))
            mean = float((self.opened * np.arange(MOST_OPENED + 1)).sum()) / n
            suffix = f", {self.of_node} regressors each" if self.of_node > 1 else ""
            lines.append(f"nodes opened by a search: mean {mean:.1f}, median {median}, 99 % {high}{suffix}")
        if self.stopped:
            lines.append(
                f"searches ended by --max_expand = {self.stopped}; a class left out may have up to {self.gap:.6f}"
            )
        if weight := self.bins[0].sum():
            lines.append(f"expected calibration error = {np.abs(self.bins[1] - self.bins[2]).sum() / weight:.6f}")
        return lines

    def results(self) -> list[Result]:
        """Return the reliability table if the options ask for it, with a line per non-empty bin."""
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
