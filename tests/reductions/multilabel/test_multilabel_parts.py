"""The parts of --multilabel: values of features, frequent labels, and neighbours."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from archives import restored, saved
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import multilabel as oracle
from xclass.binary.document_frequency import Weighted
from xclass.data import batch_ops
from xclass.data.batch import Batch
from xclass.kernels.jit import jit
from xclass.reductions.multilabel import features, frequent, neighbours

NONE = np.zeros(0, np.float32)


@jit
def load(weighted, i, exponent, feature, x, change):
    """Call the kernel, which is part of others, as one of its own."""
    return features.load(weighted, i, exponent, feature, x, change)


@jit
def count_all(labels, label, weight):
    for j in range(len(label)):
        frequent.count(labels, label[j], weight[j])


def batch_of(rows: list[list[list[tuple[int, float]]]], labels: list[list[int]] | None = None) -> Batch:
    """Return a batch of examples, each of blocks of (index, value) pairs, with lists of labels."""
    lists = labels if labels is not None else [[] for _ in rows]
    blocks = [block for row in rows for block in row]
    out = batch_ops.empty(len(rows), sum(map(len, blocks)), len(blocks), labels=sum(map(len, lists)))
    out.index[:] = [index for block in blocks for index, _ in block]
    out.value[:] = [x for block in blocks for _, x in block]
    out.start[1:] = np.cumsum([sum(map(len, row)) for row in rows])
    out.group_first[1:] = np.cumsum([len(row) for row in rows])
    out.group_start[1:] = np.cumsum([len(block) for block in blocks])
    out.label[:], out.weight[:] = [len(own) for own in lists], 1
    out.label_start[1:] = np.cumsum([len(own) for own in lists])
    out.labels[:] = [y for own in lists for y in own]
    return out


# -- values


def loaded(blocks, exponent: float) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Return the indices, values and derivatives of an example of blocks of (value, logarithm of idf) pairs."""
    count = sum(map(len, blocks))
    batch = batch_of([[[(j, x) for j, (x, _) in enumerate(block)] for block in blocks]])
    weighted = Weighted(batch, NONE, np.array([log_idf for block in blocks for _, log_idf in block], np.float32))
    feature, x, change = np.zeros(count, np.uint32), np.zeros(count, np.float32), np.zeros(count, np.float32)
    size = load(weighted, 0, exponent, feature, x, change)
    return feature[:size].tolist(), x[:size].astype(float), change[:size].astype(float)


VALUES = st.floats(0.125, 5, width=32).map(lambda x: -x if x < 0.3 else x) | st.just(0.0)
BLOCKS = st.lists(st.lists(st.tuples(VALUES, st.floats(-2, 2, width=32)), max_size=5), min_size=1, max_size=4)


@given(BLOCKS, st.floats(0, 2))
def test_examples_have_length_1_and_blocks_the_root_of_their_length(blocks, exponent):
    feature, x, _ = loaded(blocks, exponent)
    assert feature == [j for block in blocks for j, (value, _) in enumerate(block) if value]
    if not feature:
        return
    assert x @ x == pytest.approx(1, abs=1e-5)
    raw = [np.array([v * math.exp(exponent * log_idf) for v, log_idf in block if v]) for block in blocks]
    want = np.concatenate([block / math.sqrt(math.sqrt(block @ block)) if len(block) else block for block in raw])
    np.testing.assert_allclose(x, want / math.sqrt(want @ want), rtol=1e-4, atol=1e-6)


@given(BLOCKS, st.floats(0.1, 1.9))
def test_changes_are_the_derivatives_of_the_logarithms_of_values(blocks, exponent):
    _, _, change = loaded(blocks, exponent)
    step = 0.05  # errors of float32 count less than with a small one, and the third derivative is small
    (_, below, _), (_, above, _) = (loaded(blocks, exponent + sign * step) for sign in (-1, 1))
    numerical = (np.log(np.abs(above)) - np.log(np.abs(below))) / (2 * step)
    np.testing.assert_allclose(change, numerical, atol=5e-3)


# -- frequent labels


@given(st.lists(st.tuples(st.integers(1, 120), st.sampled_from([0.5, 1.0, 3.0])), max_size=400))
def test_frequent_labels_are_in_the_order_of_a_sort(counted):
    labels = frequent.with_labels(frequent.new_labels(), 120)
    count_all(labels, np.array([y for y, _ in counted], np.int64), np.array([weight for _, weight in counted]))
    n, last = {}, {}
    for time, (y, weight) in enumerate(counted):
        n[y] = n.get(y, 0.0) + weight
        last[y] = time
    best = sorted(n, key=lambda y: (-n[y], last[y]))[: frequent.FREQUENT]
    assert labels.frequent.tolist() == best + [0] * (frequent.FREQUENT - len(best))
    assert labels.first[: len(n)].tolist() == list(n) and labels.state[frequent.SEEN] == len(n)
    assert {y: labels.weight[y] for y in n} == n


def proposed(labels: frequent.FrequentLabels, width: int) -> tuple[list[int], bool]:
    """Return the candidates of an example that is not learned."""
    candidate, every = np.zeros((1, width), np.int64), np.zeros(1, bool)
    frequent.propose(labels, batch_of([[[]]]), np.zeros(0, np.int64), np.zeros(1, bool), False, 0, 1, candidate, every)
    return [y for y in candidate[0].tolist() if y], bool(every[0])


def test_all_labels_are_proposed_up_to_a_number_and_then_the_frequent_ones():
    labels = frequent.with_labels(frequent.new_labels(), 1100)
    label = np.arange(frequent.MOST_ALL, 0, -1)
    count_all(labels, label, np.ones(len(label)))
    assert proposed(labels, frequent.most_proposed(labels, 0)) == (label.tolist(), True)
    count_all(labels, np.array([1050, 7, 7, 9]), np.ones(4))
    candidates, every = proposed(labels, frequent.most_proposed(labels, 0))
    assert candidates[:3] == [7, 9, frequent.MOST_ALL] and len(candidates) == frequent.FREQUENT and not every


def test_counts_of_labels_survive_growth_and_a_model_file():
    labels = frequent.with_labels(frequent.new_labels(), 3)
    count_all(labels, np.array([3, 1, 3]), np.ones(3))
    labels = frequent.with_labels(labels, 500)
    count_all(labels, np.array([500]), np.ones(1))
    stored = saved(frequent.serialize, labels, 500)
    again = restored(stored, frequent.serialize, frequent.new_labels(), 500)
    for one, other in zip(labels, again, strict=True):
        assert one[: len(other)].tolist() == other[: len(one)].tolist()
    assert proposed(again, 64) == ([3, 1, 500], True)


# -- neighbours


class Kept(NamedTuple):
    """Hold an example: (index, value) pairs, and labels from 1."""

    features: list[tuple[int, float]]
    labels: list[int]


EXAMPLES = st.lists(
    st.builds(
        Kept,
        st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0.5, 1.0, 2.0, -1.0])), min_size=1, max_size=4),
        st.lists(st.integers(1, 9), max_size=3, unique=True).map(sorted),
    ),
    max_size=60,
)


def votes_of(
    rows: neighbours.Neighbours, examples: list[Kept], again: bool = False, learns: bool = True, known=()
) -> list[dict[int, float]]:
    """Return the votes for each example, of the labels in `known` and of those that are proposed; then keep it."""
    n = len(examples)
    batch = batch_of([[example.features] for example in examples], [example.labels for example in examples])
    weighted = Weighted(batch, NONE, np.zeros(len(batch.value), np.float32))
    candidate, vote = (
        np.zeros((n, neighbours.VOTED + len(known)), np.int64),
        np.zeros((n, neighbours.VOTED + len(known))),
    )
    candidate[:, : len(known)] = known
    scratch = neighbours.new_scratch(max(batch.most_features, 1), 20)
    neighbours.propose(
        rows, weighted, batch.labels.astype(np.int64), np.full(n, learns), again, 0, n, candidate, vote, scratch
    )
    assert not scratch.dot.any() and not scratch.vote.any()
    return [
        {y: p for y, p in zip(labels, shares, strict=True) if y}
        for labels, shares in zip(candidate.tolist(), vote.tolist(), strict=True)
    ]


def row_of(example: Kept) -> oracle.Row:
    blocks = [[oracle.Feature(i, np.float32(x), np.float32(0), np.float32(0)) for i, x in example.features]]
    return oracle.scaled(blocks, 1.0)[0]


@given(EXAMPLES)
def test_votes_are_those_of_all_pairs_of_examples(examples):
    plain = oracle.Neighbours()
    rows = neighbours.new_neighbours()
    for example, got in zip(examples, votes_of(rows, examples, known=(9,)), strict=True):
        row = row_of(example)
        want = {9: 0.0} | plain.votes(row)
        assert got == pytest.approx({y: want[y] for y in got}, rel=1e-4)
        assert set(got) == set(want)  # there are fewer labels than may be proposed
        plain.keep(row, example.labels)
    again = votes_of(rows, examples, again=True)
    for example, got in zip(examples, again, strict=True):
        assert got == pytest.approx(plain.votes(row_of(example), example.labels), rel=1e-4, abs=1e-12)
    predicted = votes_of(rows, examples, learns=False)
    for example, got in zip(examples, predicted, strict=True):
        assert got == pytest.approx(plain.votes(row_of(example)), rel=1e-4, abs=1e-12)


def test_an_example_is_not_its_own_neighbour_in_a_further_pass_but_one_with_other_labels_is():
    rows = neighbours.new_neighbours()
    pair = [Kept([(1, 1.0), (2, 1.0)], [3, 5]), Kept([(1, 1.0), (2, 1.0)], [4])]
    votes_of(rows, pair)
    first, second = votes_of(rows, pair, again=True)
    assert set(first) == {4} and set(second) == {3, 5}
    assert set(votes_of(rows, pair[:1], learns=False)[0]) == {3, 4, 5}


def test_a_feature_keeps_its_last_examples():
    rows = neighbours.new_neighbours()
    ask = Kept([(1, 1.0)], [])
    votes_of(rows, [Kept([(1, 1.0)], [1])])
    assert set(votes_of(rows, [ask], learns=False)[0]) == {1}
    votes_of(rows, [Kept([(1, 1.0), (2, 9.0)], [2])] * (neighbours.SLOTS - 1))
    assert 1 in votes_of(rows, [ask], learns=False)[0]  # the nearest of a full row
    votes_of(rows, [Kept([(1, 1.0), (2, 9.0)], [2])])
    assert set(votes_of(rows, [ask], learns=False)[0]) == {2}
    assert rows.used.max() == neighbours.SLOTS + 1
    votes_of(rows, [Kept([(1, 1.0)], [7])] * neighbours.SLOTS)
    assert rows.used.max() < 2 * neighbours.SLOTS and set(votes_of(rows, [ask], learns=False)[0]) == {7}


def test_labels_are_forgotten_when_newer_ones_take_their_places():
    rows = neighbours.new_neighbours()
    ask = Kept([(1, 1.0)], [])
    votes_of(rows, [Kept([(1, 1.0)], [1, 2])])
    rows.state[neighbours.LABELS] = 1 << neighbours.LABEL_BITS
    assert set(votes_of(rows, [ask], learns=False)[0]) == {1, 2}
    votes_of(rows, [Kept([(1, 1.0), (5, 1.0)], [3])])
    assert rows.label[0] == 3
    (votes,) = votes_of(rows, [ask], learns=False)
    sim = 1 / math.sqrt(2)
    assert votes == pytest.approx({3: sim**3 / (1 + sim**3 + neighbours.SHRINK)}, rel=1e-5)


def test_examples_are_forgotten_when_newer_ones_take_their_places():
    rows = neighbours.new_neighbours()
    ask = Kept([(1, 1.0)], [])
    votes_of(rows, [Kept([(1, 1.0)], [1])])
    rows.state[neighbours.EXAMPLES] = neighbours.KEPT
    assert set(votes_of(rows, [ask], learns=False)[0]) == {1}
    votes_of(rows, [Kept([(2, 1.0)], [2])])  # number KEPT + 1, in the place of number 1
    assert votes_of(rows, [ask], learns=False)[0] == {}
    assert set(votes_of(rows, [Kept([(2, 1.0)], [])], learns=False)[0]) == {2}


@given(EXAMPLES)
def test_neighbours_survive_a_model_file(examples):
    rows = neighbours.new_neighbours()
    votes_of(rows, examples)
    stored = saved(neighbours.serialize, rows, 9)
    again = neighbours.new_neighbours()
    restored(stored, neighbours.serialize, again, 9)
    ask = [Kept([(i, 1.0)], []) for i in range(13)]
    assert votes_of(again, ask, learns=False) == votes_of(rows, ask, learns=False)
    for name, array in saved(neighbours.serialize, again, 9).items():
        assert np.array_equal(array, stored[name]), name
