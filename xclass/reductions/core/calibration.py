"""Measure the quality of predicted probabilities over a run: losses, calibration, and the cost of top-k searches.

Cost      O(1) per example and statistic; `add_top_k` takes O(k) for the k best labels.
Names     p probability of the label, forecast probability of the predicted class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float64s, Int64s
from ...kernels.jit import jit
from ...system import output_file
from . import probabilities

MOST_OPENED = 1 << 16  # last bin of the histogram of opened nodes; larger counts fall into it
NEW_LABELS, NO_CLASSES = "labels seen for the first time", "labels that are no class"  # without a probability
BINS = 20  # rows of the reliability table


# -- kernels


@jit
def sum_losses(labelled: Bools, weight: Float64s, known: Bools, p: Float64s) -> tuple[float, float, float, float, int]:
    """Return the sums that `LabelStatistics.add_losses` adds.

    They are weight and squared loss over the labelled examples, weight and log loss over those whose label has a
    probability, and the number of the others with a weight above 0.
    """
    total = squared = known_total = log_loss = 0.0
    unknown = 0
    for i in range(len(labelled)):
        if not labelled[i]:
            continue
        total += weight[i]
        squared += weight[i] * (1.0 - p[i]) ** 2
        if known[i]:
            known_total += weight[i]
            log_loss -= weight[i] * math.log(1e-300 if p[i] < 1e-300 else p[i])
        else:
            unknown += weight[i] > 0
    return total, squared, known_total, log_loss, unknown


@jit
def sum_regressors(
    labelled: Bools, weight: Float64s, known: Bools, number: Int64s, loss: Float64s
) -> tuple[float, float]:
    """Return weighted sums of the means over the trees of `number` and `loss`, see `LabelStatistics.add_regressors`."""
    trees, n = number.shape
    scored = total = 0.0
    for i in range(n):
        if labelled[i] and known[i]:
            for t in range(trees):
                scored += weight[i] * number[t, i] / trees
                total += weight[i] * loss[t, i] / trees
    return scored, total


@jit
def count_searches(opened: Int64s, gap: Float64s, counts: Int64s) -> tuple[int, float]:
    """Count searches by the number of nodes opened (`counts`); return how many have a gap, and the largest gap."""
    stopped, largest_gap = 0, 0.0
    for t in range(opened.shape[0]):
        for i in range(opened.shape[1]):
            if opened[t, i] > 0 or opened[0, i] == 0:  # else the tree is not searched
                counts[min(opened[t, i], MOST_OPENED)] += 1
            stopped += gap[t, i] != 0.0
            largest_gap = max(largest_gap, gap[t, i])
    return stopped, largest_gap


# -- Python


def calibration_error(bins: Float64s) -> float | None:
    """Return the expected calibration error of float64[3, bins]: weight, weight * forecast, weight of what is right.

    It is None without examples.
    """
    weight = bins[0].sum()
    return float(np.abs(bins[1] - bins[2]).sum() / weight) if weight else None


def reliability_table(path: str, bins: Float64s) -> ResultFile:
    """Return the file with a line for each of the bins, which are as in `calibration_error`, that is not empty."""
    lines = ["from\tto\tmean_forecast\tobserved\tweight"]
    for j in range(BINS):
        weight, forecast, right = bins[:, j]
        if weight > 0:
            lines.append(f"{j / BINS:g}\t{(j + 1) / BINS:g}\t{forecast / weight:.6f}\t{right / weight:.6f}\t{weight:g}")
    return ResultFile(path, "the reliability table", lines)


TEXTS = {  # figure -> line of the summary
    "top_k_error": "top-{top_k} error = {top_k_error:.6f}",
    "squared_loss": "average squared loss = {squared_loss:.6f}",
    "log_loss": "average log loss = {log_loss:.6f}",
    "perplexity": "perplexity = {perplexity:.6g}",
    "regressors_per_label": "regressors scored per label = {regressors_per_label:.2f}, their average squared loss = "
    "{regressors_squared_loss:.6f}",
}
SUMS = (  # attributes of `LabelStatistics` that are sums over examples
    "weight", "squared_loss", "missed_top_k", "known_weight", "log_loss", "regressors_scored", "regressors_loss",
    "unknown_count", "stopped_searches", "bins",
)  # fmt: skip


class ResultFile(NamedTuple):
    """Hold the lines of a text file that a learner produces at the end of a run, and its path; the run writes it."""

    path: str
    description: str  # of the file, for error messages
    lines: Iterable[str]  # without line ends

    def write(self) -> None:
        with output_file.opened(self.path, self.description) as file:
            file.writelines(line.encode("utf-8", "surrogateescape") + b"\n" for line in self.lines)


class LabelStatistics:
    """Accumulate statistics of the labelled examples of one run, for its summary.

    `regressors_per_node` and `unknown_labels`, what labels without a probability are called, are for the summary. In
    the methods, `labelled` and `weight` are bool[n] and float64[n], the importance, and `known` bool[n], whether the
    label has a probability.
    """

    def __init__(
        self,
        options: probabilities.ListingOptions,
        regressors_per_node: int = 1,
        unknown_labels: str = NEW_LABELS,
    ):
        self.calibration, self.perplexity, self.top_k = options.calibration, options.perplexity, options.top_k
        self.sums_to_one = options.probabilities != probabilities.RAW  # else the log loss would mean little
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

    def tallies(self) -> dict[str, Any]:
        """Return the sums, for `add_tallies` of another report."""
        last = np.flatnonzero(self.opened_counts)
        opened = self.opened_counts[: last[-1] + 1 if len(last) else 0]
        return {name: getattr(self, name) for name in SUMS} | {"opened": opened, "largest_gap": self.largest_gap}

    def add_tallies(self, tallies: Mapping[str, Any]) -> None:
        for name in SUMS:
            setattr(self, name, getattr(self, name) + tallies[name])
        self.opened_counts[: len(tallies["opened"])] += tallies["opened"]
        self.largest_gap = max(self.largest_gap, tallies["largest_gap"])

    def add_losses(self, labelled: Bools, weight: Float64s, known: Bools, p: Float64s) -> None:
        """Add the losses of the labels' probabilities p (float64[n])."""
        sums = sum_losses(labelled, weight, known, p)
        self.weight += sums[0]
        self.squared_loss += sums[1]
        self.known_weight += sums[2]
        self.log_loss += sums[3]
        self.unknown_count += sums[4]

    def add_top_k(self, labelled: Bools, weight: Float64s, label: AnyArray, top: Int64s) -> None:
        """Add the examples whose label is not among the k most probable classes, `top` (int64[n, k])."""
        missed = labelled & ~(top == label[:, None]).any(axis=1)
        self.missed_top_k += float(weight[missed].sum())

    def add_regressors(self, labelled: Bools, weight: Float64s, known: Bools, number: Int64s, loss: Float64s) -> None:
        """Add how many regressors were scored for each known label (int64[trees, n]), and their mean squared loss."""
        scored, total = sum_regressors(labelled, weight, known, number, loss)
        self.regressors_scored += scored
        self.regressors_loss += total

    def add_searches(self, opened: Int64s, gap: Float64s) -> None:
        """Add the searches for the most probable classes.

        `opened` is int64[trees, n], number of nodes that each search opened, 0 in trees that are not searched, and
        `gap` float64[trees, n], bound on the probability of any class that the search did not find; 0 if it was
        complete.
        """
        stopped, largest_gap = count_searches(opened, gap, self.opened_counts)
        self.stopped_searches += stopped
        self.largest_gap = max(self.largest_gap, largest_gap)

    def add_forecasts(self, forecast: Float64s, labelled: Bools, weight: Float64s, right: Bools) -> None:
        """Add predicted classes to the reliability table.

        `forecast` is float64[n], probability of the predicted class, and `right` bool[n], whether it is correct.
        """
        if self.counts_calibration:
            forecast = forecast[labelled]
            w = weight[labelled]
            forecast = np.nan_to_num(forecast)  # weights of a loaded model may give NaN
            bin_index = np.clip(forecast * BINS, 0, BINS - 1).astype(np.int64)
            for row, amount in enumerate((w, w * forecast, w * right[labelled])):
                self.bins[row] += np.bincount(bin_index, amount, BINS)

    def figures(self) -> dict[str, float]:
        """Return the figures of the summary by name, those that are known."""
        figures: dict[str, float] = {}
        if self.weight > 0:
            if self.top_k is not None:
                figures["top_k"], figures["top_k_error"] = self.top_k, self.missed_top_k / self.weight
            figures["squared_loss"] = self.squared_loss / self.weight
            figures["labels_without_probability"] = self.unknown_count
        if self.known_weight > 0 and self.sums_to_one:
            figures["log_loss"] = self.log_loss / self.known_weight
            figures["perplexity"] = math.exp(min(figures["log_loss"], 700.0))
        if self.regressors_scored > 0:
            figures["regressors_per_label"] = self.regressors_scored / self.known_weight
            figures["regressors_squared_loss"] = self.regressors_loss / self.known_weight
        if (searches := int(self.opened_counts.sum())) > 0:
            figures["nodes_opened"] = float(self.opened_counts @ np.arange(MOST_OPENED + 1)) / searches
            figures["searches_ended_early"] = self.stopped_searches
        if (error := calibration_error(self.bins)) is not None:
            figures["calibration_error"] = error
        return figures

    def lines(self) -> list[str]:
        """Return the lines of the summary."""
        known = self.figures()
        wanted = (name for name in TEXTS if name in known and (self.perplexity or name != "perplexity"))
        lines = [TEXTS[name].format(**known) for name in wanted]
        if self.unknown_count and self.sums_to_one:
            lines.append(f"{self.unknown_labels} = {self.unknown_count}, not counted in the log loss")
        if "nodes_opened" in known:
            total = np.cumsum(self.opened_counts)
            median, high = (int(np.searchsorted(total, share * total[-1])) for share in (0.5, 0.99))
            suffix = f", {self.regressors_per_node} regressors each" if self.regressors_per_node > 1 else ""
            mean = f"{known['nodes_opened']:.1f}"
            lines.append(f"nodes opened by a search: mean {mean}, median {median}, 99 % {high}{suffix}")
        if self.stopped_searches:
            lines.append(
                f"searches ended early = {self.stopped_searches}; a class that was not found has a "
                f"probability of at most {self.largest_gap:.6f}"
            )
        if "calibration_error" in known:
            lines.append(f"expected calibration error = {known['calibration_error']:.6f}")
        return lines

    def results(self) -> list[ResultFile]:
        """Return the reliability table if the options ask for it."""
        return [] if self.calibration is None else [reliability_table(self.calibration, self.bins)]
