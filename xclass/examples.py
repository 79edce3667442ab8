"""Batch, the one record everybody passes: parsed examples in compressed sparse rows.

Letters used everywhere: n examples in a batch, z features of a batch, g namespaces of a batch, s features of
one example, k classes, b table bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CONSTANT = 11650396  # index of the constant feature, as in VW
CONSTANT_GROUP = 128  # its namespace group; groups from 128 on are reserved


class Batch(NamedTuple):
    """n examples. Features of example i are `index[start[i]:start[i + 1]]`, the constant last.

    Within an example the features are ordered by namespace group (the first byte of the name), the groups in
    the order of their first feature; group j of the batch spans features `group_start[j]:group_start[j + 1]`
    and example i owns groups `group_first[i]:group_first[i + 1]` (the constant is a group of its own).
    """

    start: np.ndarray  # int64[n + 1]
    index: np.ndarray  # uint32[z], hash of the feature, masked to b bits as vw-style hashing asks
    value: np.ndarray  # float32[z]
    label: np.ndarray  # float64[n]: class as written in the file, or the real label; NaN where there is none
    weight: np.ndarray  # float32[n], importance
    initial: np.ndarray  # float32[n], offset of the prediction (third word of a simple label), else 0
    group_first: np.ndarray  # int64[n + 1]
    group_name: np.ndarray  # uint8[g]
    group_start: np.ndarray  # int64[g + 1]
    tag_start: np.ndarray  # int64[n], where the tag begins in `text`
    tag_end: np.ndarray  # int64[n], one past its end; equal to tag_start where there is no tag
    line: np.ndarray  # int64[n], line number in the file, from 1
    text: np.ndarray  # uint8[...], the bytes the examples were read from

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.label)
