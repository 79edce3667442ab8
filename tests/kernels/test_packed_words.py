"""Packed tables of tagged words: they say the same as tables with all lanes, to the last bit, and take less memory."""

import numpy as np
import pytest
from archives import restored, saved
from hypothesis import given, settings
from hypothesis import strategies as st

from xclass import ModelError
from xclass.binary import tagged_words
from xclass.kernels import packed_words, used_items
from xclass.kernels.constants import GOLDEN

# without compiling, numpy warns where kernels wrap around
pytestmark = pytest.mark.filterwarnings("ignore:overflow")

F = np.float32
POOL, BLOCKS = 12, 3  # features and blocks whose words are looked up


def features() -> np.ndarray:
    return np.arange(POOL).astype(np.uint64) * GOLDEN


def random_table(rng: np.random.Generator, line_bits: int, share: float) -> tagged_words.Words:
    """Return a table with any words, many of them for some features and blocks, at home or elsewhere.

    Parameters
    ----------
    share : share of the lanes with words; some of the lines of these features are full
    """
    words = tagged_words.new_words(line_bits)
    size = len(words.word)
    words.word[:] = np.where(rng.random(size) < share, rng.integers(0, 2**32, size), 0)
    for block in range(BLOCKS):
        for h in features():
            at, tag = tagged_words.locate(words, h, block)
            line = words.word[at : at + 16]
            if rng.random() < 0.1 * share:
                line[:] = rng.integers(1, 2**32, 16)
            own = (line != 0) & (rng.random(16) < 0.7)
            number = np.where(rng.random(16) < 0.7, (np.arange(16) ^ int(tag)) & 7, rng.integers(0, 8, 16))
            line[own] = line[own] & ~np.uint32(8191) | np.uint32(tag & ~np.uint32(7)) | number[own].astype(np.uint32)
    return words


def packed(words: tagged_words.Words) -> tagged_words.Words:
    """Return the same table without its empty lanes."""
    position = np.flatnonzero(words.word).astype(np.uint32)
    lines = packed_words.lines_of(position, len(words.word) // 16)
    return words._replace(word=packed_words.padded(words.word[position]), lines=lines, state=words.state.copy())


def stored_of(words: tagged_words.Words, weights_only: bool = False) -> dict[str, np.ndarray]:
    return saved(tagged_words.serialize, "t", words, predict_only=weights_only)


def bits_of(array: np.ndarray) -> list[int]:
    return array.view(np.uint32).tolist()


TABLES = st.tuples(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([0.0, 0.01, 0.1, 0.24, 0.6, 1.0]))


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=40, deadline=None)
@given(TABLES)
def test_packed_tables_give_the_same_scores_and_words(table):
    seed, line_bits, share = table
    rng = np.random.default_rng(seed)
    words = random_table(rng, line_bits, share)
    small = packed(words)
    h, x = features(), rng.choice([1.0, -0.5, 0.0, 1e-30, 2**21], POOL).astype(F)
    for block in range(BLOCKS):
        scores = [np.full(8, np.nan, F) for _ in range(2)]
        pairs = [tagged_words.new_pairs(POOL) for _ in range(2)]
        for each, score, pair in zip((words, small), scores, pairs, strict=True):
            tagged_words.score_block(each, h, x, POOL, block, np.zeros(POOL, np.int64), score, 0)
            for f in range(POOL):
                pair.at[f], pair.tag[f] = tagged_words.locate(each, h[f], block)
            tagged_words.read_words(each, pair, 0, POOL)
        assert bits_of(scores[0]) == bits_of(scores[1])
        for name in ("tag", "w", "g", "before"):
            assert bits_of(getattr(pairs[0], name)) == bits_of(getattr(pairs[1], name))
    position = 16 * np.arange(len(words.word) // 16)
    assert np.array_equal(tagged_words.read_lines(small, position), words.word.reshape(-1, 16))
    assert np.array_equal(packed_words.positions(small.lines), np.flatnonzero(words.word))


@pytest.mark.plain
@settings(max_examples=30, deadline=None)
@given(TABLES, st.booleans())
def test_tables_are_packed_if_few_lanes_have_words_and_are_stored_as_before(table, weights_only):
    seed, line_bits, share = table
    words = random_table(np.random.default_rng(seed), line_bits, share)
    stored = stored_of(words)
    used = int(np.count_nonzero(words.word))
    small = restored(stored, tagged_words.serialize, "t", tagged_words.new_words(line_bits, 0, weights_only=True))
    few = 4 * used < len(words.word)
    assert (len(small.lines.bitmap) > 0) is few
    assert len(small.word) == (used + packed_words.PADDING if few else len(words.word))
    assert small.state[tagged_words.USED] == used
    assert tagged_words.size(small) == len(words.word)
    counted = words._replace(state=small.state)
    assert tagged_words.occupancy([small]) == tagged_words.occupancy([counted])
    again, want = stored_of(small, weights_only), stored_of(counted, weights_only)
    assert {name: array.tolist() for name, array in again.items()} == {n: a.tolist() for n, a in want.items()}


def test_a_new_table_that_only_predicts_is_empty():
    words = tagged_words.new_words(20, weights_only=True)
    scores = np.full(8, np.nan, F)
    tagged_words.score_block(words, features(), np.ones(POOL, F), POOL, 1, np.zeros(POOL, np.int64), scores, 0)
    assert scores.tolist() == [0.0] * 8


def test_memory_follows_the_words_and_not_the_table():
    words = tagged_words.new_words(18)  # 16 MB
    rng = np.random.default_rng(5)
    words.word[rng.integers(0, len(words.word), 10_000)] = 1 << 31 | 1 << 20
    small = restored(stored_of(words), tagged_words.serialize, "t", tagged_words.new_words(18, weights_only=True))
    held = sum(array.nbytes for array in (small.word, *small.lines))
    assert held < 4 * 10_000 + 3 * 10_000 + 16 * 2**18 / 64 + 100


@pytest.mark.parametrize(
    "index", [[5, 4], [4, 4], [1 << 14], [2**32 - 1]], ids=["falling", "twice", "outside", "far outside"]
)
@pytest.mark.parametrize("kind", [np.uint32, np.int64, np.float32])
def test_positions_that_cannot_be_are_refused(index, kind):
    stored = stored_of(tagged_words.new_words(10))
    stored |= {"t.index": np.array(index).astype(kind), "t.word": np.ones(len(index), np.uint32)}
    with pytest.raises(ModelError, match=r"t\.index"):
        restored(stored, tagged_words.serialize, "t", tagged_words.new_words(10, weights_only=True))


@pytest.mark.parametrize("word", [np.ones(3, np.uint32), np.ones((2, 1), np.uint32), np.ones(2, np.int32), None])
def test_words_that_do_not_fit_their_positions_are_refused(word):
    stored = stored_of(tagged_words.new_words(10)) | {"t.index": np.array([3, 9], np.uint32), "t.word": word}
    if word is None:
        del stored["t.word"]
    with pytest.raises(ModelError, match=r"t\.word"):
        restored(stored, tagged_words.serialize, "t", tagged_words.new_words(10, weights_only=True))


@pytest.mark.plain
@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 999)), st.sampled_from([1, 3, 16]))
def test_items_in_use_are_numbered_in_order(part, parts):
    items = 1 + 999 // parts
    bitmap = used_items.new_bitmap(items)
    want = sorted({number // parts for number in part})
    assert used_items.fill(bitmap, np.array(sorted(part), np.uint32), parts) == len(want)
    assert used_items.items_of(bitmap).tolist() == want
    numbers = {item: number for number, item in enumerate(want)}
    assert [int(used_items.number_of(bitmap, item, -1)) for item in range(items)] == [
        numbers.get(item, -1) for item in range(items)
    ]
