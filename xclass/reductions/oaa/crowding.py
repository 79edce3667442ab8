"""Warn once if far more features have occurred than a weight table has rows, so that most of them share their weights.

Source    Whang, Vander-Zanden, Taylor, "A Linear-Time Probabilistic Counting Algorithm for Database Applications",
          TODS 1990: the number of different hashes follows from the share of the cells that they have marked.
Cost      A nanosecond or two per feature, and 4 kB.
Hashes    are cut to b bits before they are counted, so no more than 2**b differ. The cells stand for these or fewer
          hashes, and it is the features before the cut that follow from the share that is marked. This is no estimate
          once nearly all are marked, as happens with few classes, for which FULL is reached before MANY.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from ...array_types import UInt8s, UInt32s
from ...binary.update_rule import MAX_TABLE_BITS
from ...kernels.direct import DirectCall
from ...kernels.jit import jit
from ..core.contract import BatchTask

LOG2_CELLS = 12
CELLS = 1 << LOG2_CELLS
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
# Features of a row that are too many: one-against-all has 7.6 points more with 38 features a row than with .3 on a part
# of spelling, 12 with 42 on reuters. With 8 it has .1 more on a part of panlex, 4.5 with 11 on reuters.
MANY = 32
# Features for each of the 2**b hashes that are too many; 95 % of the hashes have occurred then. Five classes of reuters
# have 5 points more with 3.2 than with .05, ten have 11 more with 3.4, and ten of spelling 6 more with 3.3.
FULL = 3


class Crowding:
    """Estimate how many features occur, from a sample of their hashes that is full when a warning is due."""

    def __init__(self, rows: int, bits: int, slot_bytes: int) -> None:
        self.rows, self.bits, self.slot_bytes = rows, bits, slot_bytes
        self.most_features = min(MANY * rows, FULL << bits)
        # one of 2**log2_sampled hashes is marked
        self.log2_sampled = max(0, min(bits - LOG2_CELLS, (self.most_features // CELLS).bit_length()))
        self.marked: UInt8s | None = np.zeros(1 << min(LOG2_CELLS, bits), np.uint8)
        self._mark = DirectCall(sys.modules[__name__], "mark")

    def look(self, task: BatchTask) -> None:
        """Count the features of a batch that is learned, and add the warning to the notes of the task if it is due."""
        if self.marked is None or not task.learn:
            return
        self._mark(task.batch.index, self.bits, self.log2_sampled, self.marked)
        cells = len(self.marked)
        share = min(int(self.marked.sum()), cells - 1) / cells
        features = -cells * math.log1p(-share) * 2**self.log2_sampled
        if features < self.most_features:
            return
        self.marked = None
        bits = min(self.bits + math.ceil(math.log2(features / self.rows)), MAX_TABLE_BITS)
        task.notes.append(
            f"-b {self.bits} has {self.rows} rows of weights, but more than {self.most_features} features have "
            f"occurred, so that they share weights; give -b {bits} ({self.slot_bytes * 2.0 ** (bits - 30):.3g} GB) or "
            "more, or a reduction whose table does not grow with K"
        )


# -- kernels


@jit
def mark(index: UInt32s, bits: int, log2_sampled: int, marked: UInt8s) -> None:
    """Mark the cells (uint8[n]) of those features (uint32[z], cut to `bits`) that belong to the sample."""
    cut = np.uint64(64 - bits)
    shift = np.uint64(64 - min(bits, LOG2_CELLS) - log2_sampled)
    for f in range(len(index)):
        cell = ((np.uint64(index[f]) * SPREAD) << cut) >> shift
        if cell < np.uint64(len(marked)):
            marked[cell] = 1
