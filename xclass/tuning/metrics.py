"""Compute what a learner loses on a batch, by the metric that the search minimises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..api import arrays
from ..array_types import Float64s
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted

TOP = 5  # classes listed for the metric top5
SMALLEST_PROBABILITY = 1e-9  # of a label, so that a single one does not decide


def wanted(metric: str) -> Wanted:
    """Return which results a learner has to produce for a metric."""
    if metric == "top5":
        return Wanted(listing_options=ListingOptions(top_k=TOP))
    return Wanted(example_probabilities=metric == "log_loss")


def losses(metric: str, task: BatchTask) -> tuple[Float64s, Float64s]:
    """Return the weighted losses of the examples of a task that has passed the stages, and their weights.

    Returns
    -------
    loss : float64[n], 0 for an example without a label
    weight : float64[n], 0 for an example without a label
    """
    label = task.batch.label
    labelled = ~np.isnan(label)
    weight = np.where(labelled, task.batch.weight, 0.0).astype(np.float64)
    return np.where(labelled, _BY_METRIC[metric](task, label), 0.0) * weight, weight


def _error(task: BatchTask, label: Float64s) -> Float64s:
    """Return 1 for each example whose prediction is not its label, else 0."""
    assert task.prediction is not None  # the stages have set it
    wrong: Float64s = (task.prediction != label).astype(np.float64)
    return wrong


def _log_loss(task: BatchTask, label: Float64s) -> Float64s:
    """Return -log p of each label; a label without a probability has the smallest one."""
    p = np.zeros(task.batch.n) if task.label_probability is None else task.label_probability
    logarithms: Float64s = np.log(np.maximum(np.nan_to_num(p, nan=0.0), SMALLEST_PROBABILITY))
    return -logarithms


def _missed(task: BatchTask, label: Float64s) -> Float64s:
    """Return 1 for each example whose label is not among the most probable classes, else 0."""
    assert task.class_lists is not None
    listed, _ = arrays.top_k_arrays(task.class_lists, TOP)
    missed: Float64s = (listed != label[:, None]).all(axis=1).astype(np.float64)
    return missed


_BY_METRIC: dict[str, Callable[[BatchTask, Float64s], Float64s]] = {
    "error": _error,
    "log_loss": _log_loss,
    "top5": _missed,
}
