"""Counts of features and idf weights: against the oracle, and which arrays of a model are refused."""

import itertools

import numpy as np
import pytest
from archives import restored, saved
from harness import batch_of_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from library import go_through, trained
from probability_trees import examples

from tests.oracles import document_frequency as oracle
from tests.oracles import tagged_learners
from xclass.api.learner import Learner, load
from xclass.binary import document_frequency
from xclass.data import batch_ops
from xclass.data.batch import CONSTANT, Batch
from xclass.errors import ModelError

WORDS = st.lists(st.tuples(st.integers(0, 12), st.just(1.0)), max_size=6)
VALUED = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([1.0, 1.0, 2.5, 0.0, -1.0])), max_size=6)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.5, 3.0, 0.1])
# the row of each example, its weight, and whether it is learned
PLAIN = st.lists(st.tuples(WORDS, WEIGHTS, st.booleans()), min_size=1, max_size=40)
MIXED = st.lists(st.tuples(st.one_of(WORDS, WORDS, VALUED), WEIGHTS, st.booleans()), min_size=1, max_size=40)


def batch_of(rows, weights) -> Batch:
    out = batch_of_rows(rows)
    out.weight[:] = weights
    out.label[:] = 1
    return out


def counts_of(frequencies: document_frequency.DocumentFrequencies) -> dict[int, float]:
    return {int(i): float(frequencies.count[i]) for i in np.flatnonzero(frequencies.count)}


def check(stream, pieces, weighting, constant, resumed=True) -> None:
    """Compare the kernel with the oracle; if `resumed`, each piece begins with counts restored from a model."""
    rows = [row + [(CONSTANT, 1.0)] * constant for row, _, _ in stream]
    weights = np.array([weight for _, weight, _ in stream], np.float32)
    learns = np.array([learned for _, _, learned in stream])
    whole = batch_of(rows, weights)
    plain = oracle.Frequencies(weighting, constant)
    frequencies = document_frequency.DocumentFrequencies(weighting, constant)
    edges = sorted({0, len(rows), *(min(piece, len(rows)) for piece in pieces)})
    for low, high in itertools.pairwise(edges):
        if resumed:
            stored = saved(frequencies.serialize)
            frequencies = document_frequency.DocumentFrequencies(weighting, constant)
            restored(stored, frequencies.serialize)
        part = batch_ops.cut(whole, low, high)
        before = part.value.copy()
        got = frequencies.weighted(part, learns[low:high])
        assert part.value.tolist() == before.tolist()  # the trees that see plain values get the same batch
        for i in range(low, high):
            want, share = plain.weighted(rows[i])
            at = slice(*got.batch.start[i - low : i - low + 2].tolist())
            assert got.batch.index[at].tolist() == [index for index, _ in want]
            assert got.batch.value[at].tolist() == pytest.approx([float(x) for _, x in want], rel=1e-6, abs=1e-6)
            assert got.share[at].tolist() == pytest.approx(share, rel=1e-6)
            if learns[i]:
                plain.learn(rows[i], float(weights[i]))
    assert frequencies.state.tolist() == pytest.approx([plain.total, plain.examples, int(plain.valued)])
    assert counts_of(frequencies) == pytest.approx(plain.df)


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=25)
@given(PLAIN, st.lists(st.integers(0, 40), max_size=3), st.booleans(), st.booleans())
def test_words_are_weighted_as_by_the_oracle(stream, pieces, weighting, constant):
    check(stream, pieces, weighting, constant, resumed=False)


@settings(max_examples=25)
@given(MIXED, st.lists(st.integers(0, 40), max_size=3), st.booleans())
def test_examples_with_values_of_their_own_keep_them(stream, pieces, constant):
    check(stream, pieces, True, constant)


@pytest.mark.parametrize("extra", [-1, 0])
@pytest.mark.parametrize("learned", [True, False])
def test_a_value_counts_only_in_the_first_examples_that_are_learned(extra, learned):
    words = [([(i % 7, 1.0)], 1.0, True) for i in range(document_frequency.DECISION_EXAMPLES + extra)]
    valued = ([(3, 2.0)], 1.0, learned)
    not_learned = ([(5, 1.0)], 1.0, False)
    check([*words, not_learned, valued, not_learned], [17, len(words) + 1], True, True)
    frequencies = document_frequency.DocumentFrequencies(True, False)
    rows = [row for row, _, _ in [*words, valued]]
    frequencies.weighted(batch_of(rows, 1), np.array([learns for _, _, learns in [*words, valued]]))
    assert frequencies.active is (extra == 0 or not learned)


def test_a_value_that_is_decisive_stays_so(tmp_path):
    path = str(tmp_path / "m")
    with trained("cpt", 3, "1 | a:2 b\n2 | b\n", bits=12, rerank=True) as model:
        model.save(path)
    with load(path) as model:
        assert not model.core.reduction.frequencies.active


def test_a_tree_without_scorers_sees_weighted_words():
    text = "".join(f"{1 + i % 5} {(1, 0.5, 0)[i % 3]} | a w{i % 5} v{i % 11} w{i % 7}\n" for i in range(120))
    plain, tree = oracle.Frequencies(), tagged_learners.Tree(20 - 3)
    with Learner("cpt", 5, bits=20, normalize_features="idf") as model:
        lists = go_through(model, text, top_k=5).lists
    for (features, y, weight), got in zip(examples(text), lists, strict=True):
        row = [item[:2] for item in features]
        weighted, _ = plain.weighted(row)
        if tree.root is not None:
            want = tree.probabilities(weighted)
            assert {label: got[label] for label in want} == pytest.approx(want, rel=2e-3, abs=1e-5)
        if weight > 0:
            plain.learn(row, weight)
            tree.learn(weighted, y, weight)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("frequencies.state", lambda a: a.astype(np.float32)),
        ("frequencies.state", lambda a: a[:2]),
        ("frequencies.state", lambda a: a * [-1, 1, 1]),
        ("frequencies.state", lambda a: a * [1, np.nan, 1]),
        ("frequencies.state", lambda a: a + np.array([0, 0, 2])),
        ("frequencies.count", lambda a: a.astype(np.float32)),
        ("frequencies.count", lambda a: a[:-1]),
        ("frequencies.count", lambda a: -a),
        ("frequencies.count", lambda a: a * np.nan),
        ("frequencies.count", lambda a: a * np.inf),
        ("frequencies.index", lambda a: a[::-1]),
        ("frequencies.index", lambda a: a + np.uint32(1 << oracle.BITS)),
    ],
)
def test_counts_that_cannot_be_are_refused(name, change):
    frequencies = document_frequency.DocumentFrequencies(True, False)
    frequencies.weighted(batch_of([[(1, 1.0), (2, 1.0)]] * 3, 1), np.ones(3, bool))
    stored = saved(frequencies.serialize)
    restored(stored, document_frequency.DocumentFrequencies(True, False).serialize)
    with np.errstate(all="ignore"), pytest.raises(ModelError, match="frequencies"):
        restored({**stored, name: change(stored[name])}, document_frequency.DocumentFrequencies(True, False).serialize)


@pytest.mark.plain
@settings(max_examples=10, deadline=None)
@given(MIXED, st.booleans())
def test_packed_counts_weigh_as_before_and_are_stored_as_before(stream, weighting):
    rows = [[*row, (CONSTANT, 1.0)] for row, _, _ in stream]
    batch = batch_of(rows, np.array([weight for _, weight, _ in stream], np.float32))
    frequencies = document_frequency.DocumentFrequencies(weighting, True)
    frequencies.weighted(batch, np.array([learned for _, _, learned in stream]))
    stored = saved(frequencies.serialize)
    small = document_frequency.DocumentFrequencies(weighting, True, weights_only=True)
    restored(stored, small.serialize)
    assert len(small.count) == np.count_nonzero(frequencies.count) + 1
    none = np.zeros(len(rows), bool)
    for want, got in zip(frequencies.weighted(batch, none), small.weighted(batch, none), strict=True):
        parts = (want, got) if isinstance(want, np.ndarray) else (want.value, got.value)
        assert parts[0].tolist() == parts[1].tolist()
    assert {name: array.tolist() for name, array in saved(small.serialize).items()} == {
        name: array.tolist() for name, array in stored.items()
    }


def test_counts_of_many_features_are_not_packed():
    frequencies = document_frequency.DocumentFrequencies(True, False)
    frequencies.count[: document_frequency.SLOTS // 4] = 2.0
    stored = saved(frequencies.serialize)
    other = document_frequency.DocumentFrequencies(True, False, weights_only=True)
    restored(stored, other.serialize)
    assert np.array_equal(other.count, frequencies.count) and not len(other.bitmap)


@pytest.mark.parametrize("name", ["frequencies.state", "frequencies.count"])
def test_missing_counts_are_refused(name):
    stored = saved(document_frequency.DocumentFrequencies(True, False).serialize)
    del stored[name]
    with pytest.raises(ModelError, match=f"{name}.*missing"):
        restored(stored, document_frequency.DocumentFrequencies(True, False).serialize)
