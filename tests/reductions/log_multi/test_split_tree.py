"""The tree that splits, with turns given in place of routers: it stays a tree, its counts agree, Lemma 3."""

import math
import random

import numpy as np
from archives import restored, saved
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from xclass.reductions.log_multi import split_cells, split_tree
from xclass.reductions.log_multi.split_cells import ENDED
from xclass.reductions.log_multi.split_tree import LABELS, LARGEST, NODES, RECYCLED, ROOT, ROUTER, SMALLEST


def grow(steps, most: int, resistance: int, look=None):
    """Algorithm 1 with turns given in place of routers: `steps` are (label, bits that say left or right)."""
    tree, cells = split_tree.new_tree(8), split_cells.new_cells(16)
    split_tree.create_root(tree, 1)
    for label, turns in steps:
        if not split_tree.has_capacity(tree, cells, 1):
            tree, cells = split_tree.with_capacity_for(tree, cells, 1)
        a, level = int(tree.size[ROOT]), 0
        while True:
            at = split_tree.arrive(tree, cells, a, label)
            if split_tree.is_leaf(tree, a):
                if not split_tree.should_split(tree, a, most, resistance):
                    split_tree.end(tree, cells, a, at)
                    break
                split_tree.split(tree, a, most, False, level)
            right = (turns >> (level % 24)) & 1
            split_tree.trained(tree, cells, a, at, 1.0 if right else -1.0)
            a = int(tree.link[a, 1 if right else 0])
            level += 1
        if look is not None:
            look(tree, cells)
    return tree, cells


def saved_tree(tree, cells) -> dict[str, np.ndarray]:
    return saved(split_tree.serialize, tree, cells, (1, 5), 0, False)


def assert_whole(tree, cells, most: int) -> None:
    """A model takes the tree, inner nodes have as many routers as there are, and the counts agree."""
    nodes = int(tree.size[NODES])
    stored = saved_tree(tree, cells)
    again, _ = restored(stored, split_tree.serialize, tree, cells, (1, 5), most, False)
    assert np.array_equal(again.link[:nodes], tree.link[:nodes])
    inner = [a for a in range(nodes) if tree.link[a, ROUTER] >= 0]
    assert sorted(tree.link[inner, ROUTER].tolist()) == list(range(len(inner)))
    assert nodes == 2 * len(inner) + 1
    for a in inner:
        left, right = tree.link[a, :2].tolist()
        assert tree.count[a, SMALLEST] == min(tree.count[left, SMALLEST], tree.count[right, SMALLEST])
    words = stored["cells"]
    halves = words.view(np.uint32)
    labels = np.zeros(nodes, np.int64)
    arrived = np.zeros(nodes, np.int64)
    seen = np.zeros(nodes, np.int64)
    for i, key in enumerate(words[:, 0].tolist()):
        a, count = (key >> 32) - 1, int(words[i, 2]) + int(halves[i, ENDED])
        labels[a] += 1
        arrived[a] += count
        seen[a] = max(seen[a], count)
    np.testing.assert_array_equal(labels, tree.count[:nodes, LABELS])
    np.testing.assert_array_equal(arrived, tree.count[:nodes, split_tree.ARRIVED])
    np.testing.assert_array_equal(seen, tree.count[:nodes, LARGEST])


STEPS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2**24 - 1)), min_size=1, max_size=120)


@settings(max_examples=tries(150), deadline=None)
@given(STEPS, st.integers(0, 6), st.integers(1, 5))
def test_tree_stays_a_tree_and_its_counts_agree(steps, most, resistance):
    grow(steps, most, resistance, lambda tree, cells: assert_whole(tree, cells, most))


def old_and_new(rng: random.Random, n: int):
    """Streams that want leaves taken back: most examples go where few leaves are, and that place changes."""
    way = rng.getrandbits(24)
    for _ in range(n):
        if rng.random() < 0.01:
            way = rng.getrandbits(24)
        noise = rng.getrandbits(24) & rng.getrandbits(24) & rng.getrandbits(24) if rng.random() < 0.5 else 0
        yield rng.randrange(1, 6), way ^ noise


@settings(max_examples=tries(60), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(4, 6), st.integers(50, 4000))
def test_no_node_is_taken_back_more_often_than_the_logarithm_of_the_examples(seed, most, resistance, n):
    """Lemma 3."""
    tree, _ = grow(old_and_new(random.Random(seed), n), most, resistance)
    assert tree.count[: tree.size[NODES], RECYCLED].max() <= math.log2(n)


def test_streams_of_lemma_3_take_leaves_back_many_times():
    most = 0
    for seed in range(2):
        tree, _ = grow(old_and_new(random.Random(seed), 10000), 6, 4)
        most = max(most, int(tree.count[:13, RECYCLED].max()))
        assert most <= math.log2(10000)
    assert most >= 3


def test_tables_that_grow_change_nothing():
    rng = random.Random(3)
    steps = list(old_and_new(rng, 2000))
    small = saved_tree(*grow(steps, 300, 4))
    first = split_tree.FIRST_NODES, split_cells.FIRST_CELLS
    try:
        split_tree.FIRST_NODES, split_cells.FIRST_CELLS = 1 << 12, 1 << 16
        large = saved_tree(*grow(steps, 300, 4))
    finally:
        split_tree.FIRST_NODES, split_cells.FIRST_CELLS = first
    for name, array in small.items():
        np.testing.assert_array_equal(array, large[name], err_msg=name)


def test_depths_are_those_of_a_walk():
    tree, _ = grow(old_and_new(random.Random(1), 3000), 40, 4)
    depth = np.full(len(tree.link), -1, np.int32)
    split_tree.depths(tree, depth)
    for a in range(int(tree.size[NODES])):
        steps, up = 0, a
        while up != tree.size[ROOT]:
            up, steps = int(tree.link[up, 2]), steps + 1
        assert depth[a] == steps
