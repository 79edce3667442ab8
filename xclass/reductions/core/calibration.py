"""Measure the quality of predicted probabilities over a run: losses, calibration, and the cost of top-k searches.

Cost      O(1) per example and statistic; `add_top_k` takes O(k) for the k best labels.
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
    options : options that select the statistics
    regressors_per_node : number of regressors per node, for the summary
    unknown_labels : description of labels without a probability, for the summary
    """

    def __init__(
        self,
        options: probabilities.Options,
        regressors_per_node: int = 1,
        unknown_labels: str = "labels seen for the first time",
    ):
        self.calibration, self.perplexity, self.top_k = options.calibration, options.perplexity, options.top_k
        self.counts_calibration = options.lists_classes or options.calibration is not None
        self.regressors_per_node, self.unknown_labels = regressors_per_node, unknown_labels
        self.weight = self.squared_loss = 0.0  # sums of weight and squared loss over labelled examples
        self.missed_top_k = 0.0  # weight of the examples whose label was not among the top k
        self.known_weight = self.log_loss = 0.0  # weight and log loss of examples whose label has a probability
        # sums of weight * number of regressors scored, and of weight * mean squared loss of these regressors
        self.regressors_scored = self.regressors_loss = 0.0
        self.unknown_count = 0
        self.opened_counts = np.zeros(MOST_OPENED + 1, np.int64)
        self.stopped_searches = 0
        self.largest_gap = 0.0
        self.bins = np.zeros((3, BINS))  # weight, weight * forecast, weight of correct predictions

    def add_losses(self, labelled: Bools, weight: Float64s, known: Bools, p: Float64s) -> None:
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
        self.squared_loss += float((w * (1.0 - p) ** 2).sum())
        self.known_weight += float(w[known].sum())
        self.log_loss += float((w[known] * -np.log(np.maximum(p[known], 1e-300))).sum())
        self.unknown_count += int(np.count_nonzero(new & (weight > 0)))

    def add_top_k(self, labelled: Bools, weight: Float64s, label: AnyArray, top: Int64s) -> None:
        """Add the examples whose label is not among the k best; called after `add_losses` of the same batch.

        Parameters
        ----------
        labelled : bool[n]
        weight : float64[n], importance
        label : number[n], classes
        top : int64[n, k], the k most probable classes
        """
        missed = labelled & ~(top == label[:, None]).any(axis=1)
        self.missed_top_k += float(weight[missed].sum())

    def add_regressors(self, labelled: Bools, weight: Float64s, known: Bools, number: Float64s, loss: Float64s) -> None:
        """Add how many regressors were scored for each known label, and their mean squared loss.

        Parameters
        ----------
        labelled, known : bool[n]
        weight : float64[n], importance
        number : float64[n], number of regressors
        loss : float64[n], mean squared loss of these regressors
        """
        w = np.where(labelled & known, weight, 0.0)
        self.regressors_scored += float((w * number).sum())
        self.regressors_loss += float((w * loss).sum())

    def add_searches(self, opened: Int64s, gap: Float64s) -> None:
        """Add the searches for the most probable classes.

        Parameters
        ----------
        opened : int64[n], number of nodes that each search opened
        gap : float64[n], bound on the probability of any class that the search did not find; 0 if it was complete
        """
        np.add.at(self.opened_counts, np.minimum(opened, MOST_OPENED), 1)
        self.stopped_searches += int(np.count_nonzero(gap))
        self.largest_gap = max(self.largest_gap, float(gap.max(initial=0.0)))

    def add_forecasts(self, forecast: Float64s, labelled: Bools, weight: Float64s, right: Bools) -> None:
        """Add predicted classes to the reliability table.

        Parameters
        ----------
        forecast : float64[n], probability of the predicted class
        labelled : bool[n]
        weight : float64[n], importance
        right : bool[n], whether the prediction is correct
        """
        if self.counts_calibration:
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
            lines.append(f"top-{self.top_k} error = {self.missed_top_k / self.weight:.6f}")
        if self.weight > 0:
            lines.append(f"average squared loss = {self.squared_loss / self.weight:.6f}")
        if self.known_weight > 0:
            log = self.log_loss / self.known_weight
            lines.append(f"average log loss = {log:.6f}")
            if self.perplexity:
                lines.append(f"perplexity = {math.exp(min(log, 700.0)):.6g}")
        if self.regressors_scored > 0:
            number, loss = self.regressors_scored / self.known_weight, self.regressors_loss / self.known_weight
            lines.append(f"regressors scored per label = {number:.2f}, their average squared loss = {loss:.6f}")
        if self.unknown_count:
            lines.append(f"{self.unknown_labels} = {self.unknown_count}, not counted in the log loss")
        if (n := int(self.opened_counts.sum())) > 0:
            total = np.cumsum(self.opened_counts)
            median, high = (int(np.searchsorted(total, share * n)) for share in (0.5, 0.99))
            mean = float((self.opened_counts * np.arange(MOST_OPENED + 1)).sum()) / n
            suffix = f", {self.regressors_per_node} regressors each" if self.regressors_per_node > 1 else ""
            lines.append(f"nodes opened by a search: mean {mean:.1f}, median {median}, 99 % {high}{suffix}")
        if self.stopped_searches:
            lines.append(
                f"searches ended early by --max_expand = {self.stopped_searches}; a class that was not found has a "
                f"probability of at most {self.largest_gap:.6f}"
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
