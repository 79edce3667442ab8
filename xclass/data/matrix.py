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
def copy_sparse(
    start: Int64s, column: Int64s, value: Float32s, rule: Hashing, out_start: Int64s, index: UInt32s, out: Float32s
) -> int:
    """Copy the entries of a sparse matrix that are not 0; return their number.

    Parameters
    ----------
    start : int64[n + 1], row i has the entries start[i] - start[0] to start[i + 1] - start[0] (exclusive)
    column, value : int64[z], float32[z]
    rule : how the names of columns are hashed
    out_start, index, out : int64[n + 1], uint32[z], float32[z], written: the features in compressed sparse rows
    """
    digits = np.zeros(DIGITS, np.uint8)
    z = 0
    out_start[0] = 0
    for i in range(len(start) - 1):
        for p in range(start[i] - start[0], start[i + 1] - start[0]):
            if value[p] != 0:
                index[z] = feature_names.column_index(column[p], rule, digits)
                out[z] = value[p]
                z += 1
        out_start[i + 1] = z
    return z


@jit
def copy_dense(values: Float32s, indices: UInt32s, start: Int64s, index: UInt32s, out: Float32s) -> int:
    """Copy the entries of a dense matrix that are not 0; return their number.

    Parameters
    ----------
    values : float32[n, d]
    indices : uint32[d], index of each column
    start, index, out : int64[n + 1], uint32[z], float32[z], written: the features in compressed sparse rows
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
    constant : whether each example ends with the constant feature
    out : Batch with space for the features and groups, written
    """
    parts, n = starts.shape[0], starts.shape[1] - 1
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
                out.index[z], out.value[z] = index[p], value[p]
                z += 1
        if constant:
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            out.index[z], out.value[z] = np.uint32(CONSTANT), np.float32(1)
            z, g = z + 1, g + 1
        out.start[i + 1], out.group_first[i + 1] = z, g
    out.group_start[g] = z
    return g


# -- parts and batches


def sparse_part(start: Int64s, column: Int64s, value: Float32s, rule: Hashing) -> Part:
    """Return the entries of a sparse matrix as features without a namespace; the arguments are as in `copy_sparse`."""
    out_start = np.empty(len(start), np.int64)
    index, out = np.empty(len(column), np.uint32), np.empty(len(column), np.float32)
    z = copy_sparse(start, column, value, rule, out_start, index, out)
    return Part(UNNAMED_GROUP, out_start, index[:z], out[:z])


def dense_part(values: Float32s, indices: UInt32s) -> Part:
    """Return the entries of a dense matrix as features without a namespace.

    Parameters
    ----------
    values : float32[n, d]
    indices : uint32[d], index of each column
    """
    start = np.empty(len(values) + 1, np.int64)
    index, out = np.empty(values.size, np.uint32), np.empty(values.size, np.float32)
    z = copy_dense(values, indices, start, index, out)
    return Part(UNNAMED_GROUP, start, index[:z], out[:z])


def batch_of(n: int, parts: Sequence[Part], constant: bool, first_line: int = 1) -> Batch:
    """Return a batch of n unlabelled examples of weight 1.

    Parameters
    ----------
    n : number of examples
    parts : the features of the examples, namespace by namespace
    constant : whether to add the constant feature
    first_line : number of the first example, for messages
    """
    sizes = [len(part.index) for part in parts]
    z = sum(sizes) + (n if constant else 0)
    groups = n * (len(parts) + constant)
    none = np.zeros(n, np.int64)
    out = Batch(
        np.zeros(n + 1, np.int64), np.empty(z, np.uint32), np.empty(z, np.float32), np.full(n, np.nan),
        np.ones(n, np.float32), np.zeros(n, np.float32), np.zeros(n + 1, np.int64), np.empty(groups, np.uint8),
        np.zeros(groups + 1, np.int64), none, none, np.arange(first_line, first_line + n), np.zeros(0, np.uint8),
    )  # fmt: skip
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
    return out._replace(group_name=out.group_name[:g], group_start=out.group_start[: g + 1])
