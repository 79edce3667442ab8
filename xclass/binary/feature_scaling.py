"""Divide each feature by its mean absolute value so far, if features are columns of numbers with different units.

Source    The project's own, measured in docs/defaults.md; VW's normalised rule keeps a scale for each weight instead.
Cost      One pass over the features of an example; none any more if the first DECISION_EXAMPLES examples contain no
          such columns.
Names     M scale of a feature, the running mean of its |x|.
Differs   from VW: there is one scale per feature, applied before any regressor reads the value.
Idea      AdaGrad makes the steps of a weight small if its feature is often large, but the feature still contributes
          w * x to the score. If columns have different units, the column with the largest numbers therefore decides
          nearly alone, even more so once examples are scaled to length 1.

Decision. Features are treated as columns if the features with values other than 1 (1) occur on average in at least one
of RARE examples, which the words of a text do not; (2) have occurred on average at least FEW times; and (3) differ in
size: the standard deviation of log M, weighted by the number of values, is at least SPREAD. The decision is made after
4 examples and again after 8, 16, ... and DECISION_EXAMPLES examples; the last one is final.

Scale. M is the mean of |x| over the examples in which the feature is not 0, including an example that is being learned.
From `window` values on, M += (|x| - M) / window, so that the mean follows a change of unit. A value counts at most as
MAX_RATIO times M, and scaled values are clipped to [-MAX_RATIO, MAX_RATIO]. If one of the first FIRST_VALUES values is
smaller than M by a factor of more than MAX_RATIO**2, the mean starts again from this value, so that a wrong first value
affects few examples. A feature without M, which occurs for the first time in a prediction, is scaled to 1 or -1.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from ..array_types import AnyArray, Bools, Float32s, Float64s, Int64s, UInt8s, UInt32s
from ..data.batch import Batch
from ..kernels.constants import GOLDEN
from ..kernels.jit import bare, jit
from ..model import stored_arrays
from ..model.archive import Archive
from ..options.declare import one_of, option

DECISION_EXAMPLES = 1024  # number of examples after which it is decided whether features are columns
RARE, FEW, SPREAD = 8, 4, 1.0  # thresholds of the decision, see above
WINDOW = 1000.0  # default number of values in the mean of a feature
MAX_RATIO, FIRST_VALUES = 10.0, 10.0  # limits of the scale, see above
BITS = 20  # log2 of the size of the table of scales
SHIFT = np.uint64(64 - BITS)
EXAMPLES, COLUMNS, NUMBERS = range(3)  # positions in `state`, and its size


def normalize_option(size: str, weighting: str) -> Any:
    """Return the declaration of the option `normalize_features`.

    The help names the divisor of a column, `size`, and describes the choice `idf` by `weighting`.
    """
    return option(
        f"`unit` scales every example to length 1; `columns` first divides every feature by {size}; `auto` chooses "
        "`columns` for tables of numbers, whose features recur and differ in size, and `unit` otherwise (judged by the "
        f"first 1024 examples); `idf` {weighting}",
        choices=("auto", "columns", "unit", "none", "idf"),
        default="auto",
        stored=True,
        search=one_of("auto", "unit", "columns", first=("unit",), weight=0.7),
    )


def from_option(mode: str, window: float = WINDOW) -> Scales | None:
    """Return new scales for a value of --normalize_features, or None if it does not scale features."""
    return Scales(mode == "columns", window) if mode in ("auto", "columns", "idf") else None


class Scales:
    """Hold the scales of all features and whether they are applied.

    With `always`, features are treated as columns without a decision. A mean has `window` values, `math.inf` for all.
    """

    def __init__(self, always: bool, window: float = WINDOW) -> None:
        self.always, self.window = always, window
        # int64[2], number of examples counted and whether features are columns
        self.state = np.zeros(NUMBERS, np.int64)
        self.state[COLUMNS] = always
        self.size = np.zeros(1 << BITS)  # float64[2**BITS], M
        self.seen = np.zeros(1 << BITS)  # float64[2**BITS], number of values in the mean, at most `window`
        self.valued = np.zeros(1 << BITS, np.uint8)  # uint8[2**BITS], 1 if a value was not 1

    @property
    def idle(self) -> bool:
        """Return whether values will never be changed any more."""
        return bool(self.state[EXAMPLES] >= DECISION_EXAMPLES and not self.state[COLUMNS])

    @property
    def summary_lines(self) -> list[str]:
        columns = self.state[COLUMNS] and self.valued.any()
        return ["features are columns of numbers, each divided by its mean size"] if columns else []

    def scaled(self, batch: Batch, learns: Bools) -> Batch:
        """Return the batch with scaled features after counting the examples that `learns` (bool[n]) selects."""
        if self.idle:
            return batch
        value = np.empty_like(batch.value)
        scale(batch, learns, self.always, self.window, self.state, self.size, self.seen, self.valued, value)
        return batch._replace(value=value)

    def divide(self, index: UInt32s, value: Float32s) -> None:
        """Scale values in place by the examples counted so far; `index` and `value` are uint32[z] and float32[z]."""
        if self.state[COLUMNS]:
            divide(index, value, self.size)

    def copy(self) -> Scales:
        scales = Scales(self.always, self.window)
        for name in ("state", "size", "seen", "valued"):
            getattr(scales, name)[:] = getattr(self, name)
        return scales

    def serialize(self, archive: Archive) -> None:
        """Save the scales, or fill new ones from a model.

        No stored number is used as an index, because kernels find scales by the hashes of features. Means must be
        finite and not negative, so that scaled values are finite.
        """
        archive.fill("scales.state", self.state, [0, int(self.always)], [2 * stored_arrays.MAX_COUNT, 1])
        self.state[EXAMPLES] = min(self.state[EXAMPLES], stored_arrays.MAX_COUNT)
        if self.idle:
            return
        planes: dict[str, AnyArray] = {"size": self.size, "valued": self.valued}
        if archive.has("scales.seen"):
            planes["seen"] = self.seen
        largest = sys.float_info.max
        ranges = {"size": (0, largest), "seen": (0, min(self.window, largest)), "valued": (0, 1)}
        archive.table("scales", planes, ranges)


def slots_of(index: UInt32s) -> Int64s:
    """Return the positions of features (uint32[z]) in the table of scales, int64[z]."""
    slots: Int64s = (index.astype(np.uint64) * GOLDEN >> SHIFT).astype(np.int64)
    return slots


# -- kernels. `state`, `size`, `seen` and `valued` are the attributes of `Scales`.


@jit
def scale(
    batch: Batch, learns: Bools, always: bool, window: float, state: Int64s, size: Float64s, seen: Float64s,
    valued: UInt8s, value: Float32s,
) -> None:  # fmt: skip
    """Scale the features of a batch to `value` (float32[z]), first counting an example that `learns` (bool[n])."""
    for i in range(len(learns)):
        if learns[i]:
            count_example(batch, i, always, window, state, size, seen, valued)
        for f in range(batch.start[i], batch.start[i + 1]):
            value[f] = scaled_value(batch.index[f], batch.value[f], size) if state[COLUMNS] else batch.value[f]


@jit
def divide(index: UInt32s, value: Float32s, size: Float64s) -> None:
    """Scale values in place by their sizes, float64[2**BITS]; `index` and `value` are uint32[z] and float32[z]."""
    for f in range(len(index)):
        value[f] = scaled_value(index[f], value[f], size)


@bare
def slot_of(index: np.uint32) -> np.int64:
    return np.int64((np.uint64(index) * GOLDEN) >> SHIFT)


@jit
def count_example(
    batch: Batch, i: int, always: bool, window: float, state: Int64s, size: Float64s, seen: Float64s, valued: UInt8s
) -> None:
    """Count example i and, after some numbers of examples, decide whether features are columns (see the module)."""
    if state[EXAMPLES] >= DECISION_EXAMPLES and not state[COLUMNS]:
        return
    for f in range(batch.start[i], batch.start[i + 1]):
        x = abs(np.float64(batch.value[f]))
        if not 0.0 < x < np.inf:  # the product of crossed features may overflow float32
            continue
        slot = slot_of(batch.index[f])
        mean = size[slot]
        if seen[slot] > 0.0:
            x = min(x, MAX_RATIO * mean)
            if seen[slot] < FIRST_VALUES and MAX_RATIO * MAX_RATIO * x < mean:
                seen[slot] = 0.0
                mean = 0.0
        seen[slot] = min(seen[slot] + 1.0, window)
        size[slot] = mean + (x - mean) / seen[slot]
        if batch.value[f] != 1.0:
            valued[slot] = 1
    state[EXAMPLES] += 1
    n = state[EXAMPLES]
    if not always and n <= DECISION_EXAMPLES and n >= FEW and n & (n - 1) == 0:
        state[COLUMNS] = are_columns(n, size, seen, valued)


@jit
def are_columns(examples: int, size: Float64s, seen: Float64s, valued: UInt8s) -> bool:
    """Return whether features are columns with different units, after `examples` examples."""
    slots = 0
    total = mean = square = 0.0
    for slot in range(len(valued)):
        if valued[slot]:
            log = math.log(size[slot])
            slots += 1
            total += seen[slot]
            mean += seen[slot] * log
            square += seen[slot] * log * log
    if total < FEW * slots or total * RARE < np.float64(slots) * examples or total == 0.0:
        return False
    mean /= total
    return square / total - mean * mean >= SPREAD * SPREAD


@jit
def scaled_value(index: np.uint32, x: np.float32, size: Float64s) -> np.float32:
    """Return the scaled value x of a feature; `size` is float64[2**BITS]."""
    if x == 0.0 or math.isnan(x):
        return x
    mean = size[slot_of(index)]
    if mean == 0.0:
        mean = abs(np.float64(x))
    if math.isinf(x):
        return np.float32(MAX_RATIO if x > 0.0 else -MAX_RATIO)
    return np.float32(min(max(np.float64(x) / mean, -MAX_RATIO), MAX_RATIO))
