"""Convert rows of matrices into features, and join the features of several namespaces into a batch.

    rows of a sparse or dense matrix, or words of texts  ->  Part, Part, ...  ->  Batch

Cost      about 2 ns for each entry of a sparse matrix, 1 ns for each of a dense one.
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
from . import batch_ops, feature_names
from .batch import CONSTANT, CONSTANT_GROUP, Batch
from .feature_names import DIGITS, Hashing

UNNAMED_GROUP = ord(" ")  # group of the features without a namespace


class Part(NamedTuple):
    """Hold the features of n examples in one namespace."""

    group: int  # first byte of the name of the namespace, UNNAMED_GROUP if it has none
    start: Int64s  # int64[n + 1]
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index; uint32[z]
    value: Float32s  # float32[z]


# -- kernels


@jit
def copy_sparse(start: Int64s, column: Int64s, value: Float32s, rule: Hashing, constant: bool, out: Batch) -> int:
    """Write the entries of a sparse matrix that are not 0 into a batch; return the number of groups.

    Row i has the entries start[i] - start[0] to start[i + 1] - start[0] (exclusive) of `column` and `value`. With
    `constant`, each example ends with the constant feature. `out` has space for the features and groups.
    """
    digits = np.zeros(DIGITS, np.uint8)
    index, values = out.index, out.value  # taking an array out of a tuple in a loop counts references each time
    hashed = rule.hash_all and not rule.identity
    seed = np.uint64(0 if rule.identity else rule.unnamed)
    z = g = 0
    out.start[0] = out.group_first[0] = 0
    for i in range(len(start) - 1):
        first = z
        for p in range(start[i] - start[0], start[i + 1] - start[0]):
            if value[p] != 0:
                if hashed:
                    index[z] = feature_names.column_index(column[p], rule, digits)
                else:  # the same without a call
                    index[z] = np.uint32(np.uint64(column[p]) + seed) & rule.mask
                values[z] = value[p]
                z += 1
        if z > first:
            out.group_name[g], out.group_start[g] = np.uint8(UNNAMED_GROUP), first
            g += 1
        if constant:
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            index[z], values[z] = np.uint32(CONSTANT), np.float32(1)
            z, g = z + 1, g + 1
        out.start[i + 1], out.group_first[i + 1] = z, g
    out.group_start[g] = z
    return g


@jit
def copy_dense(values: Float32s, indices: UInt32s, start: Int64s, index: UInt32s, out: Float32s) -> int:
    """Copy the entries of a dense matrix, float32[n, d], that are not 0; return their number.

    `indices` is uint32[d], the index of each column. `start`, `index` and `out`, int64[n + 1], uint32[z] and
    float32[z], are written: the features in compressed sparse rows.
    """
    n, d = values.shape
    z = 0
    start[0] = 0
    for i in range(n):
        for j in range(d):
            if values[i, j] != 0:
                index[z] = indices[j]
                out[z] = values[i, j]
                z += 1
        start[i + 1] = z
    return z


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
    out_index, out_value = out.index, out.value  # see `copy_sparse`
    z = g = 0
    out.start[0] = out.group_first[0] = 0
    for i in range(n):
        for t in range(parts):
            begin, end = first[t] + starts[t, i], first[t] + starts[t, i + 1]
            if begin == end:
                continue
            out.group_name[g], out.group_start[g] = group[t], z
            g += 1
            for p in range(begin, end):
                out_index[z], out_value[z] = index[p], value[p]
                z += 1
        if constant:
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            out_index[z], out_value[z] = np.uint32(CONSTANT), np.float32(1)
            z, g = z + 1, g + 1
        out.start[i + 1], out.group_first[i + 1] = z, g
    out.group_start[g] = z
    return g


# -- parts and batches


def dense_part(values: Float32s, indices: UInt32s) -> Part:
    """Return the entries of a dense matrix, float32[n, d], as features without a namespace.

    `indices` is uint32[d], the index of each column.
    """
    start = np.empty(len(values) + 1, np.int64)
    index, out = np.empty(values.size, np.uint32), np.empty(values.size, np.float32)
    z = copy_dense(values, indices, start, index, out)
    return Part(UNNAMED_GROUP, start, index[:z], out[:z])


def batch_of(n: int, parts: Sequence[Part], constant: bool, first_line: int = 1) -> Batch:
    """Return a batch of n unlabelled examples of weight 1 from the features in each namespace."""
    sizes = [len(part.index) for part in parts]
    out = _new_batch(n, sum(sizes), len(parts), constant, first_line)
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
        largest = int(np.diff(out.start).max(initial=0))
        g = batch_ops.merge_groups(n, constant, out, np.empty(largest, np.uint32), np.empty(largest, np.float32))
    return _trimmed(out, g)


def sparse_batch(
    start: Int64s, column: Int64s, value: Float32s, rule: Hashing, constant: bool, first_line: int = 1
) -> Batch:
    """Return the rows of a sparse matrix, see `copy_sparse`, as a batch of unlabelled examples of weight 1."""
    out = _new_batch(len(start) - 1, len(column), 1, constant, first_line)
    return _trimmed(out, copy_sparse(start, column, value, rule, constant, out))


def _new_batch(n: int, z: int, parts: int, constant: bool, first_line: int) -> Batch:
    """Return a batch with space for n unlabelled examples with z features, without the constant, in `parts` groups."""
    z += n if constant else 0
    groups = n * (parts + constant)
    none = np.zeros(n, np.int64)
    return Batch(
        np.empty(n + 1, np.int64), np.empty(z, np.uint32), np.empty(z, np.float32), np.full(n, np.nan),
        np.ones(n, np.float32), np.zeros(n, np.float32), np.empty(n + 1, np.int64), np.empty(groups, np.uint8),
        np.empty(groups + 1, np.int64), none, none, np.arange(first_line, first_line + n), np.zeros(0, np.uint8),
    )  # fmt: skip


def _trimmed(out: Batch, groups: int) -> Batch:
    """Return a batch without the space that its features and groups do not need."""
    z = int(out.start[-1])
    return out._replace(
        index=out.index[:z],
        value=out.value[:z],
        group_name=out.group_name[:groups],
        group_start=out.group_start[: groups + 1],
    )
