"""Features that are columns of numbers in units of their own, each divided by its mean size so far.

What for  AdaGrad makes the steps of a weight small where its feature is often large, but what a weight says is still
          w * x: of columns in different units the largest decides alone, more so once an example has length 1. VW's
          rule keeps a scale per weight for that; here one per feature, kept before any regressor sees it.
Which     Of the features that have values other than 1, three things are asked: they are in at least one of RARE
          examples on the average, which the words of a text, whose weights say how much they tell, are not; they were
          seen FEW times; and they differ in size, the standard deviation of log M, each feature counting as often as
          it was seen, being at least SPREAD. Asked after 4, 8, 16, ... LOOKED examples, for the last time then.
Scale     M, the mean of |x| over the examples that have the feature, 0 left out, the example at hand included while it
          learns: of all examples, or from `window` of them on M += (|x| - M) / window, so that a change of unit is
          forgotten. No value counts for more than MOST times M, nor becomes larger than MOST; one of the first YOUNG
          that is far less than M begins the mean anew: an error of measurement, were it the first value, spoils the
          examples it is in and few others. A feature met for the first time where nothing is learned is 1 or -1.
Figures   progressive error % of `--multiclass` on training files, examples of length 1 without and with it: aloi27
          `-q ff` 53.8, 26.9; without `-q` 65.5, 38.4; wine 53.9, 25.8; breast cancer 21.4, 10.0. Divided by the root
          mean square: aloi27 28.5. By the largest |x|: aloi27 42.6. Where words are scaled too: reuters 17.5, 18.3.
          Where columns have like units, isolet1 28.2 for 28.2 (mean of four orders; `--cpt` alone 36.9, 39.2), digits
          11.1, 10.6: hence SPREAD. log M deviates by .3 in isolet1 and digits, .6 in iris, 1.1 in aloi27, 1.8 with
          `-q ff`, 2.0 in wine, 3.4 in breast cancer.
Cost      one pass over the features of an example; none where the first LOOKED examples have no such columns.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..array_types import AnyArray, Bools, Float32s, Float64s, Int64s, UInt8s, UInt32s
from ..data.batch import Batch
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit
from ..model import stored_arrays
from ..model.stored_arrays import Stored
from ..options.declare import option

LOOKED = 1024  # examples, after which it is known whether features are columns
RARE, FEW, SPREAD = 8, 4, 1.0
WINDOW = 1000.0
MOST, YOUNG = 10.0, 10.0
BITS = 20  # of the table of scales
SHIFT = np.uint64(64 - BITS)
EXAMPLES, COLUMNS, NUMBERS = range(3)  # what `state` holds


def declared(size: str) -> Any:
    """The option `normalize_features`; `size`: what features are divided by."""
    return option(
        f"`unit` scales every example to length 1; `columns` first divides every feature by {size}; `auto` chooses "
        "`columns` for tables of numbers, whose features recur and differ in size, and `unit` otherwise (judged by the "
        "first 1024 examples)",
        choices=("auto", "columns", "unit", "none"),
        default="auto",
        stored=True,
    )


def for_option(how: str, window: float = WINDOW) -> Scales | None:
    """New scales for a value of --normalize_features, or None where it has none."""
    return Scales(how == "columns", window) if how in ("auto", "columns") else None


class Scales:
    """The scales of all features, and whether they are used.

    Parameters
    ----------
    always : whether features are columns whatever they look like
    window : values the mean of a feature is made of, `math.inf` for all
    """

    def __init__(self, always: bool, window: float = WINDOW) -> None:
        self.always, self.window = always, window
        self.state = np.zeros(NUMBERS, np.int64)
        self.state[COLUMNS] = always
        self.size = np.zeros(1 << BITS)  # M
        self.seen = np.zeros(1 << BITS)  # values it is made of, at most `window`
        self.valued = np.zeros(1 << BITS, np.uint8)  # whether one of them was not 1

    @property
    def idle(self) -> bool:
        """Whether no value will be changed any more."""
        return bool(self.state[EXAMPLES] >= LOOKED and not self.state[COLUMNS])

    @property
    def told(self) -> list[str]:
        """A line for the summary, where features are scaled."""
        columns = self.state[COLUMNS] and self.valued.any()
        return ["features are columns of numbers, each divided by its mean size"] if columns else []

    def scaled(self, batch: Batch, learns: Bools) -> Batch:
        """The batch with its features scaled; those of examples that `learns` (bool[n]) are taken in."""
        if self.idle:
            return batch
        value = np.empty_like(batch.value)
        scale(batch, learns, self.always, self.window, self.state, self.size, self.seen, self.valued, value)
        return batch._replace(value=value)

    def count(self, batch: Batch, learns: Bools) -> None:
        """Take in the examples of a batch that `learns` (bool[n])."""
        if not self.idle:
            count(batch, learns, self.always, self.window, self.state, self.size, self.seen, self.valued)

    def divide(self, index: UInt32s, value: Float32s) -> None:
        """Scale the values (float32[z], in place) of features (uint32[z], hashes) by what was taken in so far."""
        if self.state[COLUMNS]:
            divide(index, value, self.size)

    def copy(self) -> Scales:
        """Scales of their own that know the same."""
        found = Scales(self.always, self.window)
        for name in ("state", "size", "seen", "valued"):
            getattr(found, name)[:] = getattr(self, name)
        return found

    def _planes(self) -> dict[str, AnyArray]:
        return {"size": self.size, "seen": self.seen, "valued": self.valued}

    def arrays(self) -> dict[str, Stored]:
        """What a model keeps."""
        found: dict[str, Stored] = {"scales.state": self.state}
        if not self.idle:
            found.update(stored_arrays.sparse("scales", self._planes()))
        return found

    def restore(self, arrays: Mapping[str, Stored]) -> None:
        """Fill new scales with what `arrays` gave.

        Kernels find scales by hashes of features alone. Means that are finite and not below 0 keep values finite.
        """
        state = stored_arrays.take("scales.state", arrays, np.int64, (NUMBERS,))
        stored_arrays.check_range("scales.state", state[EXAMPLES : EXAMPLES + 1], 0, stored_arrays.MOST_COUNTED)
        stored_arrays.check_range("scales.state", state[COLUMNS : COLUMNS + 1], int(self.always), 1)
        self.state[:] = state
        if self.idle:
            return
        stored_arrays.dense("scales", arrays, self._planes())
        most = sys.float_info.max
        for plane, high in (("size", most), ("seen", min(self.window, most)), ("valued", 1)):
            stored_arrays.check_range(f"scales.{plane}", arrays[f"scales.{plane}"], 0, high)


# -- kernels


@jit
def scale(
    batch: Batch, learns: Bools, always: bool, window: float, state: Int64s, size: Float64s, seen: Float64s,
    valued: UInt8s, value: Float32s,
) -> None:  # fmt: skip
    """Fill `value` (float32[z]) with the scaled values of a batch, example by example."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, window, state, size, seen, valued)
        for f in range(batch.start[i], batch.start[i + 1]):
            value[f] = divided(batch.index[f], batch.value[f], size) if state[COLUMNS] else batch.value[f]


@jit
def count(
    batch: Batch, learns: Bools, always: bool, window: float, state: Int64s, size: Float64s, seen: Float64s,
    valued: UInt8s,
) -> None:  # fmt: skip
    """Take in the examples of a batch that `learns`."""
    for i in range(len(learns)):
        if learns[i]:
            count_one(batch, i, always, window, state, size, seen, valued)


@jit
def divide(index: UInt32s, value: Float32s, size: Float64s) -> None:
    """Scale `value` (float32[z]) in place."""
    for f in range(len(index)):
        value[f] = divided(index[f], value[f], size)


@jit
def place_of(index: np.uint32) -> np.int64:
    """Where in the table a feature's scale is."""
    return np.int64((np.uint64(index) * GOLDEN) >> SHIFT)


@jit
def count_one(
    batch: Batch, i: int, always: bool, window: float, state: Int64s, size: Float64s, seen: Float64s, valued: UInt8s
) -> None:
    """Take in one example, and as long as that is asked decide whether features are columns."""
    if state[EXAMPLES] >= LOOKED and not state[COLUMNS]:
        return
    for f in range(batch.start[i], batch.start[i + 1]):
        x = abs(np.float64(batch.value[f]))
        if not 0.0 < x < np.inf:  # crossed features may be more than float32 holds
            continue
        place = place_of(batch.index[f])
        mean = size[place]
        if seen[place] > 0.0:
            x = min(x, MOST * mean)
            if seen[place] < YOUNG and MOST * MOST * x < mean:
                seen[place] = 0.0
                mean = 0.0
        seen[place] = min(seen[place] + 1.0, window)
        size[place] = mean + (x - mean) / seen[place]
        if batch.value[f] != 1.0:
            valued[place] = 1
    state[EXAMPLES] += 1
    n = state[EXAMPLES]
    if not always and n <= LOOKED and n >= FEW and n & (n - 1) == 0:
        state[COLUMNS] = are_columns(n, size, seen, valued)


@jit
def are_columns(examples: int, size: Float64s, seen: Float64s, valued: UInt8s) -> bool:
    """Whether the features of so many examples are columns in units of their own."""
    places = np.flatnonzero(valued)
    total = mean = square = 0.0
    for place in places:
        log = math.log(size[place])
        total += seen[place]
        mean += seen[place] * log
        square += seen[place] * log * log
    if total < FEW * len(places) or total * RARE < np.float64(len(places)) * examples or total == 0.0:
        return False
    mean /= total
    return square / total - mean * mean >= SPREAD * SPREAD


@jit
def divided(index: np.uint32, x: np.float32, size: Float64s) -> np.float32:
    """One feature's value, scaled."""
    if x == 0.0 or math.isnan(x):
        return x
    mean = size[place_of(index)]
    if mean == 0.0:
        mean = abs(np.float64(x))
    if math.isinf(x):
        return np.float32(MOST if x > 0.0 else -MOST)
    return np.float32(min(max(np.float64(x) / mean, -MOST), MOST))
