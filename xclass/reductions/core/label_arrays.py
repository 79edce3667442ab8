"""Convert the labels of a batch, and compute the losses of predictions, in a single call of a kernel each.

For a single example one call takes less time than the NumPy functions that would do the same.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt8s
from ...binary import finite
from ...data.batch import Batch
from ...kernels.jit import bare, jit


@bare
def span(batch: Batch, label: Int64s, i: Int) -> tuple[Int, Int]:
    """Return the range in which `label`, which `whole` returned, has the labels of example i.

    Kernels that learn from labels go through this range.
    """
    start = batch.label_start
    if len(start) > 0:
        return np.int64(start[i]), np.int64(start[i + 1])
    return i, i + 1 if label[i] > 0 else i


def most(batch: Batch) -> int:
    """Return the most labels of an example."""
    return int(np.diff(batch.label_start).max(initial=1)) if batch.has_lists else 1


def whole(batch: Batch) -> Int64s:
    """Return the labels of a batch, those of all examples if they have lists, as int64[m], 0 for NaN."""
    return _whole(batch.labels if batch.has_lists else batch.label)


@jit
def _whole(label: Float64s) -> Int64s:
    labels = np.empty(len(label), np.int64)
    for i in range(len(label)):
        labels[i] = 0 if np.isnan(label[i]) else np.int64(label[i])
    return labels


@jit
def learned(learn: bool, label: Float64s, weight: Float32s, skipped: UInt8s, held_out: Bools) -> Bools:
    """Return bool[n], whether each example is learned from; see `contract.BatchTask.learned`.

    `learn` says whether any is, `skipped` is as in `finite.StepGuard`, and `held_out` bool[0] if no example is held
    out.
    """
    result = np.empty(len(label), np.bool_)
    for i in range(len(label)):
        result[i] = (
            learn
            and not np.isnan(label[i])
            and weight[i] > 0
            and skipped[i] != finite.EXAMPLE_SKIPPED
            and not (len(held_out) > 0 and held_out[i])
        )
    return result


@jit
def classes(label: Float64s, learns: Bools, number: int) -> tuple[Int64s, int, int]:
    """Return the 0-based class of each example that learns, and what labels are no class.

    The class is -1 for examples that do not learn, or whose label is outside 1..number. The number of examples that
    should learn from a label outside, and the first of them, -1 if there is none, follow.
    """
    result = np.empty(len(label), np.int64)
    outside, first = 0, -1
    for i in range(len(label)):
        inside = learns[i] and 1 <= label[i] <= number
        result[i] = np.int64(label[i] - 1) if inside else -1
        if learns[i] and not inside:
            first = i if outside == 0 else first
            outside += 1
    return result, outside, first


@jit
def wrong_weights(prediction: Float64s, label: Float64s, weight: Float32s) -> Float64s:
    """Return the weight of each example whose prediction is not its label, 0 for others and those without a label."""
    losses = np.empty(len(label))
    for i in range(len(label)):
        is_wrong = not np.isnan(label[i]) and prediction[i] != label[i]
        losses[i] = np.float64(weight[i]) if is_wrong else 0.0
    return losses
