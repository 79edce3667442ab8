"""Hold what a search of a tree for the best labels finds, and the heap of the nodes that it has yet to open.

At equal probabilities the order of the heap is that of libstdc++'s push_heap and pop_heap, as in VW.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float32s, Int, Int64s
from ...kernels.jit import bare


class LabelSearch(NamedTuple):
    """Say what a search for labels finds."""

    least: int  # number of labels to find, the most probable ones; below it, labels of any probability are found
    threshold: np.float32  # all labels whose probability is above it are found as well
    known: Int64s  # int64[n], how many labels each example may get, the first ones


class FoundLabels(NamedTuple):
    """Hold the labels found for some examples of a batch, those of an example in falling order of probability."""

    label: Int64s  # int64[...], 0-based, or 1-based as in `label_tree`
    p: Float32s  # float32[...]
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[n], number of labels of each example
    size: Int64s  # int64[1], labels found so far


def new_found(count: Int64s, room: int) -> FoundLabels:
    """Return room for so many labels; `count` is that of all examples of the batch."""
    return FoundLabels(np.empty(room, np.int64), np.empty(room, np.float32), count, np.zeros(1, np.int64))


def grown(found: FoundLabels, labels: int) -> FoundLabels:
    """Return the same with twice the room, and room for `labels` more."""
    larger = new_found(found.count, 2 * len(found.label) + labels)
    size = larger.size[0] = found.size[0]
    larger.label[:size], larger.p[:size] = found.label[:size], found.p[:size]
    return larger


# -- kernels


@bare
def rise(heap_p: Float32s, heap_node: Int64s, i: Int, p: np.float32, n: Int) -> None:
    """Put a node into the free place i or above it."""
    while i > 0 and heap_p[(i - 1) // 2] < p:
        heap_p[i], heap_node[i] = heap_p[(i - 1) // 2], heap_node[(i - 1) // 2]
        i = (i - 1) // 2
    heap_p[i], heap_node[i] = p, n


@bare
def remove_first(heap_p: Float32s, heap_node: Int64s, size: Int) -> None:
    """Remove the first node of a heap that has `size` of them afterwards."""
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 2
        if child == size or heap_p[child] < heap_p[child - 1]:
            child -= 1
        heap_p[hole], heap_node[hole] = heap_p[child], heap_node[child]
        hole = child
    rise(heap_p, heap_node, hole, heap_p[size], heap_node[size])


@bare
def has_room(found: FoundLabels, scratch: Any, count: Int, i: Int) -> bool:
    """Add the `count` labels found for example i to the others; return False, and add none, if there is no room."""
    size = found.size[0]
    if size + count > len(found.label):
        return False
    for j in range(count):
        found.label[size + j], found.p[size + j] = scratch.label[j], scratch.p[j]
    found.count[i] = count
    found.size[0] = size + count
    return True
