"""Ranges of tables: what is merged does not depend on how many there are, and all workers have the same tables then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.abilities.merge import ranges
from xclass.cluster import lines, tables
from xclass.model.archive import PAIRS, SLOTS, WORDS, LiveTable

SLOTS_OF_ROW = 5  # of the index, so that its rows begin within lines


def planes_of(kind, random, filled):
    """Return the planes of a table in which a share of the rows is filled."""
    if kind == WORDS:
        word = random.integers(1, 1 << 32, 1 << 10, np.uint32) | np.uint32(1 << 13)
        return [np.where(random.random(1 << 10) < filled, word, 0).astype(np.uint32)]
    if kind == PAIRS:
        count = -np.sort(-random.integers(1, 50, (128, SLOTS_OF_ROW)), axis=1)
        number = np.argsort(random.random((128, 9)), axis=1)[:, :SLOTS_OF_ROW] + 1
        pair = np.stack([number.astype(np.uint32), count.astype(np.float32).view(np.uint32)], axis=2)
        pair[random.random(128) >= filled] = 0
        return [pair.reshape(-1), np.zeros(128, np.uint32)]
    several = [(random.random(512) * (random.random(512) < filled)).astype(np.float32) for _ in range(3)]
    if kind == "planes":
        return [one.view(np.uint32) for one in several]
    return [np.stack([*several, np.zeros(512, np.float32)], axis=1).reshape(-1).view(np.uint32)]


def held(kind, planes, doublings=0):
    found = tables.Tables()
    sizes = tuple(map(len, planes))
    own = tuple(lines.listed(plane, 0) for plane in planes)
    found.write({"t": tables.TableLines(SLOTS if kind == "planes" else kind, doublings, sizes, own)})
    return found


def changed(kind, base, random):
    """Return a worker whose table has changed since it was that of the base."""
    found = held(kind, base)
    found.mark()
    others = planes_of(kind, random, 0.5)
    size = 2 * SLOTS_OF_ROW if kind == PAIRS else 16
    for plane, other in zip(
        found.live["t"].planes[:1] if kind == PAIRS else found.live["t"].planes, others, strict=False
    ):
        rows = random.random(len(plane) // size) < 0.3
        plane.reshape(-1, size)[rows] = other.reshape(-1, size)[rows]
    return found


@pytest.mark.parametrize("kind", [WORDS, PAIRS, SLOTS, "planes"])
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_any_number_of_ranges_gives_the_same_table_to_all(kind, seed, n):
    random = np.random.default_rng(seed)
    base = planes_of(kind, random, 0.4)
    facts = ranges.Merging(
        [1.0, 2.0], True, {"t": int(random.integers(2))} if kind == WORDS else {}, [np.arange(9)] * 2, 9, np.ones(128)
    )
    found = []
    for count in (1, n):
        generator = np.random.default_rng(seed)
        workers = [changed(kind, base, generator) for _ in range(2)]
        start = held(kind, base)
        merged = [
            tables.merged(start.of_range(k, count), [one.changes(k, count) for one in workers], facts)
            for k in range(count)
        ]
        for worker in workers:
            for _, changes in merged:
                worker.write(changes)
        found.append([plane.tolist() for plane in workers[0].live["t"].planes])
        assert found[-1] == [plane.tolist() for plane in workers[1].live["t"].planes]
    assert found[0] == found[1]


def test_tables_that_are_doubled_are_sent_as_a_whole():
    random = np.random.default_rng(1)
    base = planes_of(WORDS, random, 0.4)
    worker = held(WORDS, base)
    worker.mark()
    larger = tables._doubled(base, 0, 1)
    worker.live["t"], worker._times["t"] = LiveTable(WORDS, tuple(larger)), 1
    facts = ranges.Merging([1.0], False, {"t": 1}, [], 0, np.empty(0))
    for k in range(3):
        _, changes = tables.merged(held(WORDS, base).of_range(k, 3), [worker.changes(k, 3)], facts)
        assert changes["t"].planes[0].begin == 2 * held(WORDS, base).of_range(k, 3)["t"].planes[0].begin
        assert not len(changes["t"].planes[0].number)  # nothing was learned
