"""Join the features of several namespaces, such as entries of a matrix and words of texts, into a batch.

Cost      about 1 ns for each entry.
Names     A part has the features of n examples in one namespace, in compressed sparse rows.
Differs   from text in nothing: entries of 0 are left out, as the parser leaves out features with the value 0, and
          namespaces whose names begin with the same byte are one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int64s, UInt8s, UInt32s
from ..kernels.jit import jit
from . import batch_ops
from .batch import CONSTANT, CONSTANT_GROUP, Batch, empty

UNNAMED_GROUP = ord(" ")  # group of the features without a namespace


class Part(NamedTuple):
    """Hold the features of n examples in one namespace."""

    group: int  # first byte of the name of the namespace, UNNAMED_GROUP if it has none
    start: Int64s  # int64[n + 1]
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index; uint32[z]
    value: Float32s  # float32[z]


# -- kernels


@jit
def interleave(
    group: UInt8s, starts: Int64s, first: Int64s, index: UInt32s, value: Float32s, constant: bool, out: Batch
) -> int:
    """Write the features of all parts, example by example, into a batch; return the number of groups.

    Parameters
    ----------
    group : uint8[m], group of each part
    starts : int64[m, n + 1], `start` of each part
    first : int64[m], position of the first feature of each part in `index` and `value`
    index, value : uint32[z], float32[z], features of all parts
    out : Batch with space for the features and groups, written
    """
    parts, n = starts.shape[0], starts.shape[1] - 1
    out_index, out_value = out.index, out.value  # taking an array out of a tuple in a loop counts references each time
    z = g = 0
    for i in range(n):
        for t in range(parts):
            before = z
            for p in range(first[t] + starts[t, i], first[t] + starts[t, i + 1]):
                if value[p] != 0:
                    out_index[z], out_value[z] = index[p], value[p]
                    z += 1
            if z > before:
                out.group_name[g], out.group_start[g] = group[t], before
                g += 1
        if constant:
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            out_index[z], out_value[z] = np.uint32(CONSTANT), np.float32(1)
            z, g = z + 1, g + 1
        out.start[i + 1], out.group_first[i + 1] = z, g
    out.group_start[g] = z
    return g


# -- batches


def batch_of(n: int, parts: Sequence[Part], constant: bool, first_line: int = 1) -> Batch:
    """Return a batch of n unlabelled examples of weight 1 from the features in each namespace."""
    sizes = [len(part.index) for part in parts]
    out = empty(n, sum(sizes) + n * constant, n * (len(parts) + constant))
    out.label[:], out.weight[:] = np.nan, 1
    out.line[:] = np.arange(first_line, first_line + n)
    group = np.array([part.group for part in parts], np.uint8)
    starts = np.array([part.start for part in parts], np.int64).reshape(len(parts), n + 1)
    first = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    if len(parts) == 1:
        index, value = parts[0].index, parts[0].value
    else:
        index = np.concatenate([np.empty(0, np.uint32), *(part.index for part in parts)])
        value = np.concatenate([np.empty(0, np.float32), *(part.value for part in parts)])
    g = interleave(group, starts, first, index, value, constant, out)
    if len(np.unique(group)) < len(group):
        g = batch_ops.merge_groups(n, constant, out)
    return batch_ops.trimmed(out, n, int(out.start[-1]), g)
