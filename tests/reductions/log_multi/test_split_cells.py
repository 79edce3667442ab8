"""The hash table of what nodes count of labels: against a dict, and what a recycled node leaves behind."""

import numpy as np
import pytest
from archives import restored
from hypothesis import given, settings
from hypothesis import strategies as st

from xclass.reductions.log_multi import split_cells

NODES = 4
STEPS = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(1, 5), st.sampled_from(("train", "end", "recycle"))), max_size=150
)


def counted(steps, first: int):
    """The table after `steps`, its nodes' versions, and (node, label) -> [sum of scores, trained, ended]."""
    cells, version = split_cells.new_cells(first), np.zeros(NODES, np.int64)
    wanted: dict[tuple[int, int], list] = {}
    for i, (a, label, operation) in enumerate(steps):
        if not split_cells.has_capacity(cells, 1):
            cells = split_cells.with_capacity_for(cells, version, 1)
        if operation == "recycle":
            version[a] += 1
            wanted = {key: cell for key, cell in wanted.items() if key[0] != a}
            continue
        at = split_cells.find(cells, a, label, version[a])
        assert at == split_cells.seek(cells, a, label)
        cell = wanted.setdefault((a, label), [0.0, 0, 0])
        if operation == "train":
            split_cells.trained(cells, at, i / 8)
            cell[0], cell[1] = cell[0] + i / 8, cell[1] + 1
        else:
            split_cells.end(cells, at)
            cell[2] += 1
        assert split_cells.arrived(cells, at) == cell[1] + cell[2]
        assert split_cells.mean(cells, at) == (np.float32(cell[0]) / np.float32(cell[1]) if cell[1] else 0)
    return cells, version, wanted


@pytest.mark.bounds
@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_table_is_a_dict(steps):
    first = split_cells.FIRST_CELLS
    try:
        split_cells.FIRST_CELLS = 8  # so that it grows
        cells, version, wanted = counted(steps, 8)
    finally:
        split_cells.FIRST_CELLS = first
    stored = split_cells.array(cells, version)
    cells_by_key = {(a, y): [*rest] for a, of_node in split_cells.by_node(stored).items() for y, *rest in of_node}
    assert cells_by_key == wanted
    assert (np.diff(stored[:, 0].astype(np.int64)) > 0).all()
    again = restored({"cells": stored}, split_cells.serialize, "cells", cells, version, (1, 2**31 - 1))
    assert np.array_equal(split_cells.array(again, version), stored)
    assert again.used[0] == len(wanted)


def test_no_cell_is_made_by_looking():
    cells, _, _ = counted([(1, 3, "end")], 16)
    before = cells.word.copy()
    assert split_cells.seek(cells, 1, 3) >= 0
    assert split_cells.seek(cells, 3, 1) == split_cells.seek(cells, 0, 3) == -1
    assert np.array_equal(cells.word, before)
