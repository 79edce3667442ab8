"""Cut out, pick and join examples of batches; the contents of the examples do not change.

Batches that are picked or joined keep only the tags of their text, unless their lines are requested.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import AnyArray, Bools, Float32s, Float64s, Int64s
from ..kernels.jit import jit
from .batch import CONSTANT, CONSTANT_GROUP, Batch, empty
from .class_names import UNKNOWN


def cut(batch: Batch, low: int, high: int) -> Batch:
    """Return examples low..high-1 as a batch; arrays are views, except for the starts."""
    if low == 0 and high == batch.n:
        return batch
    z0, z1 = batch.start[low], batch.start[high]
    g0, g1 = batch.group_first[low], batch.group_first[high]
    return Batch(
        start=batch.start[low : high + 1] - z0,
        index=batch.index[z0:z1],
        value=batch.value[z0:z1],
        label=batch.label[low:high],
        weight=batch.weight[low:high],
        initial=batch.initial[low:high],
        group_first=batch.group_first[low : high + 1] - g0,
        group_name=batch.group_name[g0:g1],
        group_start=batch.group_start[g0 : g1 + 1] - z0,
        tag_start=batch.tag_start[low:high],
        tag_end=batch.tag_end[low:high],
        line=batch.line[low:high],
        text=batch.text,
        dense=batch.dense[low:high],
        **cut_lists(batch.label_start, batch.labels, low, high),
    )


def cut_lists(label_start: Int64s, labels: Float64s, low: int, high: int) -> dict[str, AnyArray]:
    """Return the fields with the lists of labels of examples low..high-1; none if there are no lists."""
    if not len(label_start):
        return {}
    start = label_start[low : high + 1]
    return {"label_start": start - start[0], "labels": labels[start[0] : start[-1]]}


@jit
def add_weights(label: Float64s, weight: Float32s, held_out: Bools, clock: float, clocks: Float64s) -> float:
    """Add the weights of the labelled examples one after the other to `clock`, and return the sum.

    `held_out` is bool[n], examples that do not count, or bool[0] for none. `clocks` is float64[n], written: the sum up
    to and including each example.
    """
    for i in range(len(label)):
        if not (np.isnan(label[i]) or (len(held_out) > 0 and held_out[i])):
            clock += np.float64(weight[i])
        clocks[i] = clock
    return clock


@jit
def measure(batch: Batch, picked: Int64s) -> tuple[int, int, int, int]:
    """Return the numbers of features, groups, bytes of tags and labels in lists of the examples `picked` (int64[m])."""
    z = g = t = labels = 0
    for i in picked:
        if len(batch.label_start) > 0:
            labels += batch.label_start[i + 1] - batch.label_start[i]
        z += batch.start[i + 1] - batch.start[i]
        g += batch.group_first[i + 1] - batch.group_first[i]
        t += batch.tag_end[i] - batch.tag_start[i]
    return z, g, t, labels


@jit
def copy_rows(batch: Batch, picked: Int64s, out: Batch, m: int, z: int, g: int, t: int) -> tuple[int, int, int, int]:
    """Append the examples `picked` (int64[...]), in this order, to `out`, which has space for them.

    `m`, `z`, `g` and `t` are the numbers of examples, features, groups and bytes of tags that `out` already holds;
    those after copying are returned.
    """
    for i in picked:
        for p in range(batch.start[i], batch.start[i + 1]):
            out.index[z + p - batch.start[i]] = batch.index[p]
            out.value[z + p - batch.start[i]] = batch.value[p]
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            out.group_name[g] = batch.group_name[j]
            out.group_start[g] = z + batch.group_start[j] - batch.start[i]
            g += 1
        z += batch.start[i + 1] - batch.start[i]
        out.label[m] = batch.label[i]
        if len(batch.label_start) > 0:
            begin, size = batch.label_start[i], batch.label_start[i + 1] - batch.label_start[i]
            out.label_start[m + 1] = out.label_start[m] + size
            for j in range(size):
                out.labels[out.label_start[m] + j] = batch.labels[begin + j]
        out.weight[m] = batch.weight[i]
        out.initial[m] = batch.initial[i]
        out.line[m] = batch.line[i]
        for c in range(batch.dense.shape[1]):
            out.dense[m, c] = batch.dense[i, c]
        out.tag_start[m] = t
        for p in range(batch.tag_start[i], batch.tag_end[i]):
            out.text[t] = batch.text[p]
            t += 1
        out.tag_end[m] = t
        m += 1
        out.start[m] = z
        out.group_first[m] = g
    out.group_start[g] = z
    return m, z, g, t


def line_of(batch: Batch, i: int) -> tuple[int, int]:
    """Return begin and end in the text of the line that example i was read from, without its newline."""
    text = batch.text
    at = int(batch.tag_start[i])  # lies in the line, or at its end if there is no tag
    size = 256
    while True:  # search a window that grows until it holds the line
        low, high = max(0, at - size), min(len(text), at + size)
        window = text[low:high].tobytes()
        begin = window.rfind(b"\n", 0, at - low) + 1
        end = window.find(b"\n", at - low)
        if (begin or low == 0) and (end >= 0 or high == len(text)):
            return low + begin, low + end if end >= 0 else len(text)
        size *= 4


def with_lines(picked: Batch, parts: Sequence[tuple[Batch, Int64s]]) -> Batch:
    """Return `picked`, which `copy_rows` made from `parts`, with the complete lines as its text."""
    lines: list[bytes] = []
    at = 0
    for batch, chosen in parts:
        for i in chosen.tolist():
            low, high = line_of(batch, i)
            j = len(lines)
            picked.tag_start[j] = at + batch.tag_start[i] - low
            picked.tag_end[j] = at + batch.tag_end[i] - low
            lines.append(batch.text[low:high].tobytes() + b"\n")
            at += high - low + 1
    return picked._replace(text=np.frombuffer(bytearray(b"".join(lines)), np.uint8))


def pick(parts: Sequence[tuple[Batch, Int64s]], lines: bool = False) -> Batch:
    """Join the examples (int64[...]) that are listed for each of several batches into one batch.

    With `lines`, the batch keeps their complete lines instead of only their tags.
    """
    sizes = [measure(batch, picked) for batch, picked in parts]
    z, g, t, labels = (sum(size[k] for size in sizes) for k in range(4))
    has_lists = any(batch.has_lists for batch, _ in parts)
    n = sum(len(picked) for _, picked in parts)
    d = max((batch.columns for batch, _ in parts), default=0)
    out = empty(n, z, g, np.empty(t, np.uint8), labels if has_lists else None, d)
    filled = (0, 0, 0, 0)
    for batch, picked in parts:
        filled = copy_rows(batch, picked, out, *filled)
    return with_lines(out, parts) if lines else out


def with_features(rows: Batch, other: Batch) -> Batch:
    """Return the examples of a batch with features and groups of another one."""
    return rows._replace(
        start=other.start,
        index=other.index,
        value=other.value,
        group_first=other.group_first,
        group_name=other.group_name,
        group_start=other.group_start,
    )


def trimmed(out: Batch, n: int, z: int, g: int) -> Batch:
    """Return the first n examples, z features and g groups of a batch."""
    if out.has_lists:
        out = out._replace(**cut_lists(out.label_start, out.labels, 0, n))
    if n == out.n:  # none is left out, nor is any line empty
        if z == len(out.index) and g == len(out.group_name):
            return out
        return Batch(  # `_replace` takes twice as long
            out.start, out.index[:z], out.value[:z], out.label, out.weight, out.initial, out.group_first,
            out.group_name[:g], out.group_start[: g + 1], out.tag_start, out.tag_end, out.line, out.text,
            out.label_start, out.labels, out.dense,
        )  # fmt: skip
    return Batch(
        out.start[: n + 1], out.index[:z], out.value[:z], out.label[:n], out.weight[:n], out.initial[:n],
        out.group_first[: n + 1], out.group_name[:g], out.group_start[: g + 1], out.tag_start[:n], out.tag_end[:n],
        out.line[:n], out.text, out.label_start, out.labels, out.dense[:n],
    )  # fmt: skip


def with_lists_in_order(batch: Batch) -> Batch:
    """Return a batch whose lists of labels are ascending, without labels that repeat others of the same example.

    Names that the model does not know all have the label UNKNOWN, and each of them stays.
    """
    start, labels = batch.label_start, batch.labels
    falls = np.flatnonzero((np.diff(labels) <= 0) & (labels[1:] != UNKNOWN)) + 1
    if not len(falls) or np.isin(falls, start).all():  # between two examples
        return batch
    key = np.sort((np.repeat(np.arange(batch.n), np.diff(start)) << 32) | labels.astype(np.int64))
    key = key[np.concatenate([[True], (np.diff(key) > 0) | (key[1:] & ((1 << 32) - 1) == UNKNOWN)])]
    start = np.searchsorted(key, np.arange(batch.n + 1) << 32)
    label = np.where(np.isnan(batch.label), np.nan, np.diff(start))
    return batch._replace(label=label, label_start=start, labels=(key & ((1 << 32) - 1)).astype(np.float64))


def highest_labels(batch: Batch) -> Float64s:
    """Return the highest label of each example, NaN for none."""
    if not batch.has_lists:
        return batch.label
    last = np.maximum(batch.label_start[1:] - 1, 0)
    return np.where(batch.label > 0, np.concatenate([batch.labels, [np.nan]])[last], np.nan)


def have_constant(batch: Batch) -> Bools:
    """Return bool[n]: whether the last feature of each example is the constant feature."""
    last = np.maximum(batch.start[1:] - 1, 0)
    return (np.diff(batch.start) > 0) & (batch.index[last] == CONSTANT) if len(batch.index) else np.zeros(batch.n, bool)


def masked(batch: Batch, bits: int) -> Batch:
    """Return a batch whose feature hashes are cut to `bits` bits, except that of the constant feature.

    The parser cuts hashes in the same way for a weight table of 2**bits slots.
    """
    if bits >= 32:
        return batch
    index = batch.index & np.uint32((1 << bits) - 1)
    index[batch.start[1:][have_constant(batch)] - 1] = CONSTANT
    return batch._replace(index=index)


@jit
def merge_groups(n: int, constant: bool, out: Batch) -> int:
    """Reorder the features of each example so that every group is contiguous, in the order of first appearance.

    With `constant`, each example ends with the constant feature, which stays last. The number of groups is returned.
    """
    largest = 0
    for i in range(n):
        largest = max(largest, out.start[i + 1] - out.start[i])
    index, value = np.empty(largest, np.uint32), np.empty(largest, np.float32)
    place = np.full(256, -1, np.int64)  # per group: -1 if absent, its size, or -2 - position of its next feature
    g = 0
    begin = 0
    for i in range(n):
        end = out.group_first[i + 1]
        last = end - 1 if constant else end
        groups = g
        for j in range(begin, last):  # size of each group
            size = out.group_start[j + 1] - out.group_start[j]
            name = out.group_name[j]
            if place[name] < 0:
                place[name] = 0
            place[name] += size
        z = out.start[i]
        for j in range(begin, last):  # position of each group, in the order of appearance
            name = out.group_name[j]
            if place[name] >= 0:
                size = place[name]
                place[name] = -2 - (z - out.start[i])
                z += size
        for j in range(begin, last):  # copy the features to their positions
            name = out.group_name[j]
            to = -2 - place[name]
            for p in range(out.group_start[j], out.group_start[j + 1]):
                index[to] = out.index[p]
                value[to] = out.value[p]
                to += 1
            place[name] = -2 - to
        for p in range(out.start[i], z):
            out.index[p] = index[p - out.start[i]]
            out.value[p] = value[p - out.start[i]]
        z = out.start[i]
        for j in range(begin, last):  # rewrite the list of groups
            name = out.group_name[j]
            if place[name] != -1:
                size = -2 - place[name]
                out.group_name[g] = name
                out.group_start[g] = z
                z = out.start[i] + size
                place[name] = -1
                g += 1
        if constant:
            out.group_name[g] = np.uint8(CONSTANT_GROUP)
            out.group_start[g] = out.start[i + 1] - 1
            g += 1
        out.group_first[i] = groups
        begin = end
    out.group_first[n] = g
    out.group_start[g] = out.start[n]
    return g
