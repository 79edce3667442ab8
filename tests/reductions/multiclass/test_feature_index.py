"""The index that proposes classes for --rerank: against its oracle, and which arrays of a model are refused."""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from archives import restored, saved
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.feature_index import Features, Index
from xclass.data import batch_ops
from xclass.data.batch import Batch
from xclass.errors import ModelError
from xclass.reductions.multiclass import feature_index


class Example(NamedTuple):
    """Hold an example as the index gets it."""

    features: Features  # pairs of hash and q
    label: int  # 0 if there is none
    weight: float
    learns: bool
    of_trees: list[int]  # candidates of the trees


def stream(
    seed: int, n: int, *, classes: int, words: int, of_trees: int, weights=(1.0, 0.5, 2.0, 0.3)
) -> list[Example]:
    """Return examples whose features depend on the class; some are frequent, some occur twice, some are constants."""
    rng = np.random.default_rng(seed)
    share = np.array(
        [rng.choice([0.0, 0.5, 0.51, 0.9, 1e-6, rng.uniform(0.001, 0.5)]) for _ in range(words)], np.float32
    )
    share[rng.random(words) < 0.7] = np.float32(0.01)
    hashes = rng.integers(0, 2**32, words)
    examples = []
    for _ in range(n):
        y = 1 + int(classes * rng.random() ** 2) * 7
        chosen = [int((y * 13 + j * 5) % words) if rng.random() < 0.5 else int(rng.integers(words)) for j in range(5)]
        chosen = chosen[: rng.integers(0, 6)] + chosen[:1] * int(rng.random() < 0.1)
        labelled = rng.random() < 0.9
        candidates = list(dict.fromkeys((1 + 7 * rng.integers(0, classes + 3, rng.integers(0, of_trees + 1))).tolist()))
        examples.append(
            Example(
                [(int(hashes[j]), float(share[j])) for j in chosen], y if labelled else 0, float(rng.choice(weights)),
                labelled and rng.random() < 0.95, candidates,
            )
        )  # fmt: skip
    return examples


def batch_of(examples: list[Example]) -> tuple[Batch, np.ndarray]:
    """Return a batch, and q of each of its features."""
    rows = [example.features for example in examples]
    out = batch_ops.empty(len(rows), sum(map(len, rows)), 0)
    out.index[:] = [index for row in rows for index, _ in row]
    out.value[:] = 1
    out.start[1:] = np.cumsum([len(row) for row in rows])
    out.weight[:] = [example.weight for example in examples]
    out.label[:] = [example.label or np.nan for example in examples]
    return out, np.array([q for row in rows for _, q in row], np.float32)


def propose(
    index: feature_index.FeatureIndex, examples: list[Example], width: int, again: bool = False
) -> feature_index.Opinions:
    """Return the opinions of an index, which learns; `width` is the largest number of candidates of an example."""
    n = len(examples)
    batch, share = batch_of(examples)
    candidate = np.zeros((n, width), np.int64)
    for i, example in enumerate(examples):
        candidate[i, : len(example.of_trees)] = example.of_trees
    opinions = feature_index.Opinions(candidate, np.zeros((n, width, feature_index.SCORES)), np.zeros(n))
    index.reserve(n)
    label = np.array([example.label for example in examples], np.int64)
    learns = np.array([example.learns for example in examples], bool)
    index.propose(batch, share, label, learns, again, 0, n, opinions)
    return opinions


def check(examples: list[Example], opinions: feature_index.Opinions, plain: Index) -> None:
    """Compare opinions with those of the oracle, which learns."""
    for i, example in enumerate(examples):
        want = plain.opinions(example.features, example.of_trees)
        size = len(want.scores)
        assert opinions.candidate[i].tolist() == [*want.scores, *[0] * (opinions.candidate.shape[1] - size)], i
        assert opinions.score[i, :size] == pytest.approx(np.array(list(want.scores.values())).reshape(-1, 3), 1e-6), i
        if example.label:
            assert opinions.label_weight[i] == pytest.approx(plain.weight.get(example.label, 0.0)), i
        if example.learns:
            plain.learn(example.features, example.label, example.weight)


def stored_of(index: feature_index.FeatureIndex) -> dict[str, np.ndarray]:
    return saved(index.serialize)


def index_of(
    stored: Mapping[str, np.ndarray], bits: int, slots: int, proposals: int, weights_only: bool = False
) -> feature_index.FeatureIndex:
    feature_index.check_sizes(stored, slots, bits)
    index = feature_index.FeatureIndex(bits, slots, proposals, weights_only)
    restored(stored, index.serialize)
    return index


def rows_of(stored: Mapping[str, np.ndarray], bits: int, slots: int) -> dict[int, list[tuple[int, float]]]:
    """Return the (label, count) pairs of each row that has any."""
    at = stored.get("index.index", np.arange(slots << bits))
    pairs = zip(at.tolist(), stored["index.class"].tolist(), stored["index.count"].tolist(), strict=True)
    rows: dict[int, list[tuple[int, float]]] = {}
    for slot, number, count in pairs:
        if number:
            rows.setdefault(slot // slots, []).append((int(stored["index_classes.label"][number - 1]), count))
    return rows


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.5, 2.0, 0.3)])
@pytest.mark.parametrize(("slots", "proposals"), [(1, 1), (3, 4), (8, 2)])
def test_opinions_are_the_oracles_example_by_example(slots, proposals, weights):
    examples = stream(slots, 400, classes=20, words=60, of_trees=3, weights=weights)
    index, plain = feature_index.FeatureIndex(6, slots, proposals), Index(6, slots, proposals)
    check(examples, propose(index, examples, 3 + proposals), plain)
    stored = stored_of(index)
    rows = {row: [(y, float(c)) for y, c in pairs] for row, pairs in plain.rows.items()}
    assert rows_of(stored, 6, slots) == rows
    assert any(len(row) == slots for row in rows.values()) and any(plain.wear.values())
    label, weight, norm2 = (stored[f"index_classes.{name}"] for name in ("label", "weight", "norm2"))
    assert dict(zip(label.tolist(), weight.tolist(), strict=True)) == pytest.approx(plain.weight)
    assert norm2.tolist() == pytest.approx([plain.norm2.get(y, 0.0) for y in label.tolist()])


@pytest.mark.bounds
def test_memory_grows_with_the_classes():
    examples = stream(11, 1500, classes=1200, words=300, of_trees=2)
    index, plain = feature_index.FeatureIndex(10, 4, 3), Index(10, 4, 3)
    for low in range(0, len(examples), 100):
        check(examples[low : low + 100], propose(index, examples[low : low + 100], 5), plain)
    assert len(stored_of(index)["index_classes.label"]) == len(plain.weight) > 2 * feature_index.FIRST_CLASSES


def test_classes_that_are_equally_close_are_proposed_in_the_order_of_the_rows():
    rows = [[(1, 0.01), (2, 0.01), (3, 0.01)]] * 12
    learned = [Example(row, y, 1.0, True, []) for row, y in zip(rows, [8, 3, 5, 4] * 3, strict=True)]
    index, plain = feature_index.FeatureIndex(8, 8, 3), Index(8, 8, 3)
    check(learned, propose(index, learned, 3), plain)
    test = [Example(rows[0], 0, 1.0, False, [])]
    assert propose(index, test, 3).candidate.tolist() == [[8, 3, 5]]


def test_the_score_of_naive_bayes_has_a_least_value():
    features = [(j, 0.01) for j in range(20)]
    learned = [Example([(99, 0.01)], 7, 1e6, True, []), *[Example(features, 9, 1.0, True, [])] * 3]
    examples = [*learned, Example(features, 0, 1.0, False, [7, 2])]
    index, plain = feature_index.FeatureIndex(8, 4, 2), Index(8, 4, 2)
    opinions = propose(index, examples, 4)
    check(examples, opinions, plain)
    assert opinions.candidate[-1].tolist() == [7, 2, 9, 0]
    assert opinions.score[-1, 0, feature_index.BAYES] == feature_index.LEAST


def test_nothing_is_learned_from_examples_that_do_not_learn():
    examples = stream(5, 200, classes=9, words=30, of_trees=2)
    index = feature_index.FeatureIndex(6, 4, 2)
    propose(index, examples, 4)
    before = stored_of(index)
    opinions = propose(index, [example._replace(learns=False) for example in examples], 4)
    assert all(np.array_equal(before[name], array) for name, array in stored_of(index).items())
    assert opinions.score.any()


STREAM = stream(6, 120, classes=400, words=40, of_trees=3)


@settings(max_examples=30)
@given(st.lists(st.integers(0, len(STREAM)), max_size=4), st.sampled_from([(4, 1), (5, 8)]))
def test_batches_that_are_cut_and_models_that_are_resumed_give_the_same(pieces, size):
    bits, slots = size
    whole = feature_index.FeatureIndex(bits, slots, 3)
    want = propose(whole, STREAM, 6)
    index = feature_index.FeatureIndex(bits, slots, 3)
    for low, high in itertools.pairwise(sorted({0, len(STREAM), *pieces})):
        index = index_of(stored_of(index), bits, slots, 3)
        got = propose(index, STREAM[low:high], 6)
        assert got.candidate.tolist() == want.candidate[low:high].tolist()
        assert got.score.tolist() == want.score[low:high].tolist()
        labelled = np.array([example.label > 0 for example in STREAM[low:high]])
        assert got.label_weight[labelled].tolist() == want.label_weight[low:high][labelled].tolist()
    stored, other = stored_of(index), stored_of(whole)
    assert stored.keys() == other.keys()
    assert all(np.array_equal(stored[name], array) for name, array in other.items())


# packed rows


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(6, 3), (9, 8), (12, 1), (5, 2)]), st.integers(0, 150), st.booleans())
def test_packed_rows_say_the_same_and_are_stored_as_before(seed, size, n, predict_only):
    bits, slots = size
    examples = stream(seed, n + 40, classes=9, words=30, of_trees=2)
    index = feature_index.FeatureIndex(bits, slots, 3)
    propose(index, examples[:n], 5)
    stored = saved(index.serialize, predict_only=predict_only)
    small = feature_index.FeatureIndex(bits, slots, 3, weights_only=True)
    restored(stored, small.serialize, predict_only=predict_only)
    used = int(np.count_nonzero(index.index.pair[0::2]))
    assert (len(small.index.bitmap) > 0) is (4 * used < slots << bits)
    if len(small.index.bitmap):
        assert len(small.index.pair) == 2 * used
    test = [example._replace(learns=False) for example in examples[n:]]
    wanted, got = propose(index, test, 5), propose(small, test, 5)
    assert [array.tolist() for array in wanted] == [array.tolist() for array in got]
    batch, share = batch_of(test[:1])
    for label in wanted.candidate[0, wanted.score[0, :, feature_index.COSINE] > 0].tolist():
        added = np.zeros((2, len(share)))
        for model, sums in zip((index, small), added, strict=True):
            feature_index.add_cosines(model.index, batch.index, share, label, sums)
        assert added[0].any() and added[0].tolist() == added[1].tolist()
    again = saved(small.serialize, predict_only=True)
    want = saved(index.serialize, predict_only=True)
    assert {name: array.tolist() for name, array in again.items()} == {n: a.tolist() for n, a in want.items()}


def test_packed_rows_end_before_their_first_empty_slot():
    stored = small_model()
    slot, number = stored["index.index"], stored["index.class"]
    full = next(i for i in range(len(slot) - 2) if slot[i] % 3 == 0 and slot[i + 2] == slot[i] + 2)
    for changed_model in (
        {"index.class": changed(full + 1, 0)(number)},
        {name: np.delete(stored[name], full + 1) for name in ("index.index", "index.class", "index.count")},
    ):
        both = [index_of({**stored, **changed_model}, 6, 3, 2, weights_only) for weights_only in (False, True)]
        test = [e._replace(learns=False) for e in stream(3, 60, classes=8, words=12, of_trees=2)]
        opinions = [propose(index, test, 4) for index in both]
        assert [array.tolist() for array in opinions[0]] == [array.tolist() for array in opinions[1]]


def test_rows_larger_than_the_memory_are_refused_unless_they_are_packed(monkeypatch):
    stored = small_model()
    monkeypatch.setattr("xclass.system.memory.available", lambda: 8 * 3 * 64 - 1)
    index_of(stored, 6, 3, 2, weights_only=True)
    del stored["index.index"]
    stored["index.class"] = np.zeros(3 << 6, np.uint32)
    stored["index.count"] = np.zeros(3 << 6, np.float32)
    with pytest.raises(ModelError, match=r"index\.class.* memory"):
        index_of(stored, 6, 3, 2, weights_only=True)
    monkeypatch.setattr("xclass.system.memory.available", lambda: 8 * 3 * 64)
    index_of(stored, 6, 3, 2, weights_only=True)


# arrays of a model that cannot be


def small_model() -> dict[str, np.ndarray]:
    """Return the arrays of an index of 64 rows with 3 slots."""
    index = feature_index.FeatureIndex(6, 3, 2)
    propose(index, stream(3, 60, classes=8, words=12, of_trees=0), 2)
    return stored_of(index)


def changed(at: int, value: float):
    """Return a function that replaces one number of an array."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[at] = value
        return array

    return change


def test_arrays_of_a_model_are_restored():
    stored = small_model()
    again = stored_of(index_of(stored, 6, 3, 2))
    assert stored.keys() == again.keys() and "index.index" in stored
    assert all(np.array_equal(stored[name], array) for name, array in again.items())


@pytest.mark.parametrize(
    "name",
    [
        "index.class", "index.count", "index_rows.wear", "index_classes.label", "index_classes.weight",
        "index_classes.norm2",
    ],
)  # fmt: skip
@pytest.mark.parametrize("weights_only", [False, True])
def test_arrays_that_are_missing_or_of_another_type_or_shape_are_refused(name, weights_only):
    stored = small_model()
    array = stored[name]
    for wrong in (
        array.astype(np.int16),
        array.astype(np.complex64),
        array[:-1],
        array[:, None],
        np.append(array, array[:1]),
    ):
        with pytest.raises(ModelError, match="index"):
            index_of({**stored, name: wrong}, 6, 3, 2, weights_only)
    del stored[name]
    with pytest.raises(ModelError, match=f"{name}.*missing"):
        index_of(stored, 6, 3, 2, weights_only)


@pytest.mark.parametrize("weights_only", [False, True])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("index.index", lambda a: a.astype(np.int64)),
        ("index.index", lambda a: a[::-1]),
        ("index.index", changed(-1, 3 << 6)),
        ("index.class", changed(0, 99)),
        ("index.class", changed(2, 2**32 - 1)),
        ("index.count", changed(0, -1)),
        ("index.count", changed(1, np.nan)),
        ("index.count", changed(2, np.inf)),
        ("index_rows.index", changed(-1, 1 << 6)),
        ("index_rows.index", lambda a: a[::-1]),
        ("index_rows.wear", changed(0, -1)),
        ("index_rows.wear", changed(0, np.nan)),
        ("index_rows.wear", changed(0, np.inf)),
        ("index_classes.label", lambda a: changed(1, a[0])(a)),
        ("index_classes.label", changed(0, 0)),
        ("index_classes.label", changed(0, -5)),
        ("index_classes.label", changed(0, 2**31 + 1)),
        ("index_classes.weight", changed(0, -1)),
        ("index_classes.weight", changed(0, np.nan)),
        ("index_classes.weight", changed(0, np.inf)),
        ("index_classes.norm2", changed(0, -1)),
        ("index_classes.norm2", changed(0, np.nan)),
        ("index_classes.norm2", changed(0, np.inf)),
    ],
)
def test_numbers_that_cannot_be_are_refused(name, change, weights_only):
    stored = small_model()
    with pytest.raises(ModelError, match=name.split(".")[0]):
        index_of({**stored, name: change(stored[name])}, 6, 3, 2, weights_only)


@pytest.mark.parametrize(("bits", "slots"), [(5, 3), (6, 2)])
def test_a_model_with_more_rows_or_slots_than_the_options_say_is_refused(bits, slots):
    with pytest.raises(ModelError, match="index"):
        index_of(small_model(), bits, slots, 2)


def test_the_largest_numbers_that_are_allowed_give_finite_scores():
    names = ["index.count", "index_rows.wear", "index_classes.weight", "index_classes.norm2"]
    for replaced in (*[[name] for name in names], names):
        stored = small_model()
        for name in replaced:
            stored[name][:] = np.finfo(stored[name].dtype).max
        index = index_of(stored, 6, 3, 2)
        opinions = propose(index, stream(4, 60, classes=8, words=12, of_trees=2), 4)
        assert np.isfinite(opinions.score).all(), replaced
        index_of(stored_of(index), 6, 3, 2)


def test_further_passes_leave_out_what_an_example_added_and_count_nothing():
    bits, slots, proposals, of_trees = 8, 3, 4, 3
    examples = stream(9, 200, classes=12, words=60, of_trees=of_trees)
    index, plain = feature_index.FeatureIndex(bits, slots, proposals), Index(bits, slots, proposals)
    check(examples, propose(index, examples, of_trees + proposals), plain)
    learned = stored_of(index)
    opinions = propose(index, examples, of_trees + proposals, again=True)
    for i, example in enumerate(examples):
        own = [example.label] if example.learns else []
        weight = float(np.float32(example.weight))
        want = plain.opinions(example.features, example.of_trees, own, weight)
        size = len(want.scores)
        assert opinions.candidate[i, :size].tolist() == list(want.scores), i
        assert opinions.score[i, :size] == pytest.approx(np.array(list(want.scores.values())).reshape(-1, 3), 1e-6), i
        if example.label:
            assert opinions.label_weight[i] == pytest.approx(plain.others(example.label, own, weight)), i
    again = stored_of(index)
    assert learned.keys() == again.keys() and all(np.array_equal(learned[name], again[name]) for name in learned)
