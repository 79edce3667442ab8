"""The order of labels that k-means trees halve: against its oracle, planted groups, threads, little memory."""

import itertools
import math
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from harness import batch_of_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import label_clusters as oracle
from xclass.data import batch_ops
from xclass.data.batch import HIGHEST_LABEL, Batch
from xclass.reductions.clusters import centroids, two_means
from xclass.reductions.cpt import label_tree


def one_by_one(job, items) -> None:
    for item in items:
        job(*item)


def batch_of(examples) -> Batch:
    """Examples as (features {index: value}, label, weight)."""
    out = batch_of_rows([features.items() for features, _, _ in examples])
    for i, (_, label, weight) in enumerate(examples):
        out.label[i], out.weight[i] = label, weight
    return out


def sample_of(examples, most: int = 0, cuts: int = 1) -> two_means.ExampleSample:
    sample = two_means.ExampleSample(most)
    batch = batch_of(examples)
    edges = np.linspace(0, batch.n, cuts + 1).astype(int)
    for low, high in itertools.pairwise(edges.tolist()):
        part = batch_ops.cut(batch, low, high)
        if part.n and not sample.add(part, ~np.isnan(part.label) & (part.weight > 0)):
            break
    return sample


def some(seed: int, k: int, n: int) -> list[tuple]:
    """Labels that share words with their neighbours, as of a topic."""
    rng = random.Random(f"clusters {seed} {k} {n}")
    examples = []
    for _ in range(n):
        y = rng.randrange(k)
        words = {rng.randrange(8) + 8 * (y // 4) for _ in range(3)} | {1000 + y} | {2000 + rng.randrange(30)}
        examples.append(({w: round(rng.uniform(0.2, 2), 3) for w in words}, 7 * y + 3, rng.choice((1.0, 0.5, 2.0))))
    return examples


@pytest.mark.bounds
@pytest.mark.parametrize(("k", "n"), [(2, 20), (3, 20), (7, 80), (33, 400), (90, 700)])
def test_order_is_the_oracles(k, n):
    examples = some(1, k, n)
    for seed, tries in ((0, 2), (5, 16)):
        sample = sample_of(examples)
        size = len(np.unique(sample._sums.key)) - 1
        two_means.WORK, before = tries * size, two_means.WORK
        try:
            (got,) = sample.orders([seed], one_by_one)
        finally:
            two_means.WORK = before
        assert got.tolist() == oracle.order(examples, seed, tries)


@settings(max_examples=50, deadline=None)
@given(
    labels=st.lists(st.integers(1, HIGHEST_LABEL), unique=True, min_size=1, max_size=70),
    features=st.integers(1, 40),
    seed=st.integers(0, 2**32),
)
def test_every_label_has_one_leaf_and_no_leaf_is_deep(labels, features, seed):
    rng = random.Random(seed)
    examples = [({rng.randrange(features): 1.0 for _ in range(3)}, label, 1.0) for label in labels for _ in range(2)]
    (order,) = sample_of(examples).orders([seed], one_by_one)
    assert sorted(order.tolist()) == sorted(labels)
    tree = label_tree.balanced_tree(order)
    nodes = int(tree.size[label_tree.NODES])
    assert nodes == 2 * len(labels) - 1
    assert tree.size[label_tree.DEEPEST] == math.ceil(math.log2(len(labels)))
    for a in range(nodes):
        left = int(tree.left[a])
        if left > 0:
            assert 0 <= tree.leaves[left] - tree.leaves[left + 1] <= 1
    for label in labels:
        assert tree.label[label_tree.find(tree, label)] == label
    leaves = tree.label[tree.label > 0]
    assert sorted(leaves.tolist()) == sorted(labels)


def test_halves_are_the_planted_groups():
    k = 64
    rng = random.Random(3)
    name = list(range(1, k + 1))
    rng.shuffle(name)
    examples = []
    for _ in range(40 * k):
        y = rng.randrange(k)
        # a word for every group the label is in, from halves down to pairs
        words = {100 * level + (y >> (6 - level)): 1.0 for level in range(1, 6)}
        words[10_000 + rng.randrange(50)] = 1.0
        examples.append((words, name[y], 1.0))
    (order,) = sample_of(examples).orders([0], one_by_one)
    place = {label: j for j, label in enumerate(order.tolist())}
    for level in range(1, 6):
        size = k >> level
        for group in range(1 << level):
            halves = {place[name[y]] // size for y in range(group * size, (group + 1) * size)}
            assert len(halves) == 1, (level, group)


def test_threads_batches_and_trees_made_beside_change_nothing():
    examples = some(4, 150, 2000)
    wanted = sample_of(examples).orders([1, 2], one_by_one)
    assert not np.array_equal(*wanted)
    for threads, cuts in ((1, 7), (3, 1), (8, 100)):
        with ThreadPoolExecutor(threads) as pool:

            def share(job, items, pool=pool):
                list(pool.map(lambda item: job(*item), items))

            sample = sample_of(examples, cuts=cuts)
            for got, want in zip(sample.orders([1, 2], share), wanted, strict=True):
                assert np.array_equal(got, want)
            assert np.array_equal(sample.orders([2], share)[0], wanted[1])


def test_sample_has_exactly_the_given_size():
    examples = some(5, 20, 300)
    for cuts in (1, 7, 50):
        sample = sample_of(examples, 120, cuts)
        assert sample.seen == 120
        got = sample.orders([0], one_by_one)[0]
        assert np.array_equal(got, sample_of(examples[:120]).orders([0], one_by_one)[0])


@pytest.mark.bounds
def test_heaviest_features_are_kept_where_memory_ends(monkeypatch):
    monkeypatch.setattr(centroids, "FIRST_CELLS", 64)
    monkeypatch.setattr(centroids, "MOST_CELLS", 1024)
    examples = some(6, 40, 3000)
    extra = random.Random(6)
    for features, _, _ in examples:  # rare words, far more than fit
        for _ in range(4):
            features[extra.randrange(10_000, 10_000_000)] = 0.01
    sample = sample_of(examples, cuts=9)
    assert len(sample._sums.key) == 1024
    assert sample._sums.used[0] <= 512
    assert sample._sums.used[0] == np.count_nonzero(sample._sums.key)
    label, feature, prototypes, _ = centroids.to_rows(sample._sums)
    assert label.tolist() == sorted({y for _, y, _ in examples})
    for r, y in enumerate(label.tolist()):
        assert 1000 + (y - 3) // 7 in feature[prototypes.feature[prototypes.start[r] : prototypes.start[r + 1]]]
    assert sorted(sample.orders([0], one_by_one)[0].tolist()) == label.tolist()


def test_more_labels_than_memory_has_room_for_are_all_there(monkeypatch):
    monkeypatch.setattr(centroids, "FIRST_CELLS", 64)
    monkeypatch.setattr(centroids, "MOST_CELLS", 256)
    examples = [({j % 50: 1.0, 100 + j: 0.5}, j + 1, 1.0) for j in range(700)]
    assert sorted(sample_of(examples).orders([0], one_by_one)[0].tolist()) == list(range(1, 701))


def test_example_larger_than_the_memory_limit_is_used(monkeypatch):
    monkeypatch.setattr(centroids, "FIRST_CELLS", 16)
    monkeypatch.setattr(centroids, "MOST_CELLS", 64)
    examples = [({j: 1.0 for j in range(500)}, 1, 1.0), ({j: 1.0 for j in range(90)}, 2, 1.0), ({3: 1.0}, 9, 1.0)]
    assert sorted(sample_of(examples).orders([0], one_by_one)[0].tolist()) == [1, 2, 9]


def test_weights_and_values_without_bounds_do_no_harm():
    huge = float(np.float32(3e38))
    examples = [({1: huge, 2: huge}, 1, huge), ({1: huge}, 1, huge), ({1: 1e-38}, 2, 1e-38), ({2: 1.0}, 3, 1.0)] * 3
    examples += [({5: math.inf}, 4, 1.0), ({5: 1.0}, 5, 1.0), ({}, 6, 1.0)]
    order = sample_of(examples).orders([0], one_by_one)[0].tolist()
    assert sorted(order) == [1, 2, 3, 5]
