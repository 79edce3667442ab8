"""Count how many examples each feature occurs in, and weight features by their inverse document frequency (idf).

Source    Sparck Jones, "A statistical interpretation of term specificity and its application in retrieval", 1972, in
          an online form with a square root of this project's own; docs/defaults.md contains the measurements.
Cost      O(s) for an example of s features; one random access to a table of 8 MB for each feature.
Names     N weight of the examples counted so far | df weight of those that contain the feature | q share of the
          examples that contain it, (df + 1/2) / (N + 1) | idf log(1 / q).
Differs   from batch learners: N and df are the counts before the example, so an example is weighted in the same way
          whether it is learned or predicted.
Idea      A rare word tells more about the class than a frequent one. Features of an example get the value sqrt(idf)
          instead of 1 before the example is scaled to length 1.

Only values of 1 are replaced, because any other value is the user's own weight. An example is weighted if all of its
values are 1. If one of the first DECISION_EXAMPLES examples contains another value, no example is weighted any more.
The constant keeps its value.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Bools, Float32s, Float64s, UInt32s, UInt64s
from ..data.batch import Batch
from ..kernels import fast_math, used_items
from ..kernels.constants import ONE
from ..kernels.direct import DirectCall
from ..kernels.jit import bare, jit
from ..model import stored_arrays
from ..model.archive import Archive
from . import feature_scaling

SLOTS = 1 << feature_scaling.BITS
DECISION_EXAMPLES = 1024  # number of examples after which it is final that features are weighted
LEAST_IDF = 0.01  # of `weigh_counts`
LARGEST_SHARE = 0.999  # a feature that occurs several times in each example is counted as often
WEIGHT, EXAMPLES, VALUED, NUMBERS = range(4)  # positions in `state`, and its size


_find = DirectCall(sys.modules[__name__], "find")


class Weighted(NamedTuple):
    """Hold a batch whose values are weighted, and what is known about each feature."""

    batch: Batch
    share: Float32s  # float32[z], q of each feature, 0 for the constant
    log_weight: Float32s  # float32[z], logarithm of the factor of each value, 0 where values are not weighted


def not_weighted(batch: Batch) -> Weighted:
    zeros = np.zeros(len(batch.value), np.float32)
    return Weighted(batch, zeros, zeros)


class DocumentFrequencies:
    """Hold the counts of all features.

    Parameters
    ----------
    weighting : whether values of 1 are weighted; if not, features are only counted
    constant : whether examples end with a constant feature
    weights_only : whether examples are only predicted, so that counts are packed

    Attributes
    ----------
    state : float64[3], N, number of examples, and 1 if one of the first examples had a value other than 1
    count : float64[2**feature_scaling.BITS], df; packed counts lack the slots that no feature has used, and end with 0
        for all of these
    bitmap : the slots of packed counts, see `used_items`; empty if they are not packed
    """

    def __init__(self, weighting: bool, constant: bool, weights_only: bool = False) -> None:
        self.weighting, self.constant = weighting, constant
        self.state = np.zeros(NUMBERS)
        self.count = np.zeros(1 if weights_only else SLOTS)
        self.bitmap = used_items.new_bitmap(SLOTS if weights_only else 0)

    @property
    def active(self) -> bool:
        """Return whether features have been weighted and still are."""
        return bool(self.weighting and self.state[EXAMPLES] and not self.state[VALUED])

    def weighted(self, batch: Batch, learns: Bools) -> Weighted:
        """Return the batch with weighted values, and count the examples that `learns` (bool[n]) selects."""
        weighted = Weighted(
            batch._replace(value=batch.value.copy()), np.zeros_like(batch.value), np.zeros_like(batch.value)
        )
        weigh(batch, learns, self.weighting, int(self.constant), self.state, (self.count, self.bitmap), weighted)
        return weighted

    def weighted_counts(self, batch: Batch, learns: Bools) -> Weighted:
        """Return the batch with logarithms of its values, and count the examples that `learns` (bool[n]) selects.

        A value x becomes log(1 + |x|) with the sign of x. `Weighted.log_weight` is the logarithm of the idf of every
        feature, which is at least LEAST_IDF. The value of the constant is 0, and so are those of features that no
        example has had, in examples that are not learned.
        """
        weighted = Weighted(
            batch._replace(value=np.empty_like(batch.value)), np.zeros_like(batch.value), np.zeros_like(batch.value)
        )
        weigh_counts(batch, learns, int(self.constant), self.state, (self.count, self.bitmap), weighted)
        return weighted

    def find(self, feature: UInt32s) -> Bools:
        """Return bool[z], whether an example with each feature was counted."""
        found = np.empty(len(feature), bool)
        _find(feature, (self.count, self.bitmap), found)
        return found

    def serialize(self, archive: Archive) -> None:
        """Save the counts, or fill new ones from a model; packed ones stay so if few have been used."""
        most = stored_arrays.MAX_SUM
        archive.fill("frequencies.state", self.state, 0, [most, most, 1])
        packed, few = len(self.bitmap) > 0, None
        if packed and archive.saves:
            slot = used_items.items_of(self.bitmap).astype(np.uint32)
            archive.arrays.update(stored_arrays.pack_rows("frequencies", slot, {"count": self.count[:-1]}, SLOTS))
            return
        if packed:
            few = stored_arrays.rows_in_use("frequencies", archive.arrays, SLOTS, {"count": np.float64})
        if few is not None:
            self.count = np.append(few[1]["count"], 0.0)
            used_items.fill(self.bitmap, few[0], 1)
            stored_arrays.check_range("frequencies.count", self.count, 0, most)
            return
        if packed:
            self.count, self.bitmap = np.zeros(SLOTS), used_items.new_bitmap(0)
        archive.table("frequencies", {"count": self.count}, {"count": (0, most)})


# -- kernels


@bare
def _count_of(counts: tuple[Float64s, UInt64s], feature: np.uint32) -> float:
    """Return df of a feature; `counts` are the attributes `count` and `bitmap` of `DocumentFrequencies`."""
    count, bitmap = counts
    slot: Any = feature_scaling.slot_of(feature)
    if len(bitmap) > 0:
        slot = used_items.number_of(bitmap, slot, np.int64(len(count)) - 1)
    return count[slot]  # type: ignore[no-any-return]


@jit
def find(feature: UInt32s, counts: tuple[Float64s, UInt64s], found: Bools) -> None:
    for f in range(len(feature)):
        found[f] = _count_of(counts, feature[f]) > 0.0


@jit
def weigh(
    batch: Batch, learns: Bools, weighting: bool, constants: int, state: Float64s, counts: tuple[Float64s, UInt64s],
    weighted: Weighted,
) -> None:  # fmt: skip
    """Compute the weighted values of a batch, example by example, and count each example that is learned afterwards.

    `learns` is bool[n], and `constants` is the number of constant features at the end of each example, 0 or 1. `state`
    and `counts` are attributes of `DocumentFrequencies`, written. `weighted` is a copy of the batch and zeros, written.
    """
    for i in range(len(learns)):
        begin, end = batch.start[i], batch.start[i + 1] - constants
        total = state[WEIGHT] + 1.0
        ones = True
        for f in range(begin, end):
            occurrences = _count_of(counts, batch.index[f])
            weighted.share[f] = np.float32(min((occurrences + 0.5) / total, LARGEST_SHARE))
            ones &= batch.value[f] == ONE
        if weighting and ones and state[VALUED] == 0.0:
            for f in range(begin, end):
                idf = -fast_math.log(np.float64(weighted.share[f]))
                weighted.batch.value[f] = np.float32(math.sqrt(idf))
                weighted.log_weight[f] = np.float32(0.5 * fast_math.log(idf))
        weight = np.float64(batch.weight[i])
        if not learns[i] or weight <= 0.0:
            continue
        for f in range(begin, end):
            counts[0][feature_scaling.slot_of(batch.index[f])] += weight
        if not ones and state[EXAMPLES] < DECISION_EXAMPLES:
            state[VALUED] = 1.0
        state[WEIGHT] += weight
        state[EXAMPLES] += 1.0


@jit
def weigh_counts(
    batch: Batch, learns: Bools, constants: int, state: Float64s, counts: tuple[Float64s, UInt64s], weighted: Weighted
) -> None:
    """Do what `DocumentFrequencies.weighted_counts` says; the parameters are those of `weigh`."""
    for i in range(len(learns)):
        begin, end = batch.start[i], batch.start[i + 1] - constants
        total = state[WEIGHT] + 1.0
        weight = np.float64(batch.weight[i])
        counted = learns[i] and weight > 0.0
        for f in range(begin, end):
            occurrences = _count_of(counts, batch.index[f])
            share = min((occurrences + 0.5) / total, LARGEST_SHARE)
            weighted.share[f] = np.float32(share)
            weighted.log_weight[f] = np.float32(math.log(max(-math.log(share), LEAST_IDF)))
            x = np.float64(batch.value[f])
            known = occurrences > 0.0 or counted
            weighted.batch.value[f] = np.float32(math.copysign(math.log1p(abs(x)), x) if known else 0.0)
        weighted.batch.value[end : end + constants] = 0.0
        if counted:
            for f in range(begin, end):
                counts[0][feature_scaling.slot_of(batch.index[f])] += weight
            state[WEIGHT] += weight
            state[EXAMPLES] += 1.0
