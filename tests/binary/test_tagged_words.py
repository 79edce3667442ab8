"""Tagged words: the kernels against the oracle, word by word; growth; what a model keeps and what is refused."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import tagged_words as oracle
from xclass import ModelError
from xclass.binary import adagrad, loss, tagged_words
from xclass.kernels import jit, tagged_format, tagged_lines
from xclass.kernels.constants import GOLDEN

F = np.float32
MOST = 12  # features of an example


@pytest.fixture(autouse=True, scope="module")
def kernels():
    jit.activate()


def example(rng: np.random.Generator, unit: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes and values of a few features, of which some occur often and some twice."""
    n = int(rng.integers(1, MOST))
    h = rng.integers(0, 40, n).astype(np.uint64) * GOLDEN
    x = rng.choice([1.0, 1.0, 2.0, -0.5], n).astype(F)
    return h, x / F(np.sqrt(np.sum(x * x))) if unit else x


def same_words(words: tagged_words.Words, table: oracle.TaggedTable) -> None:
    """Check words and counts."""
    assert np.array_equal(words.word.reshape(-1, 16), np.array(table.words, np.uint32))
    counts = [table.counter, table.used, table.evicted, table.refused, table.lost]
    assert words.state[: tagged_words.STORED].tolist() == counts


# -- regressors in blocks


@pytest.mark.bounds
@pytest.mark.parametrize(("line_bits", "blocks"), [(1, 3), (3, 6), (12, 8)], ids=["crowded", "full", "roomy"])
def test_blocks_are_scored_and_trained_as_by_the_oracle(line_bits, blocks):
    rng = np.random.default_rng(line_bits)
    weights = adagrad.new_weights(line_bits + 3, loss.SQUARED, 0.5, tagged=True)
    table = oracle.TaggedTable(line_bits, "squared", 0.5)
    scratch, scores = adagrad.block_scratch(MOST), np.zeros(8, F)
    for _ in range(400):
        h, x = example(rng)
        block = int(rng.integers(1, blocks))
        tagged_words.score_block(weights.words, h, x, len(h), block, scratch.at, scores, 0)
        want = table.score_block(h.tolist(), x, block)
        assert scores.tolist() == [float(s) for s in want]
        y = rng.choice([-1, 0, 0, 1], 8).astype(F)
        weight = F(rng.choice([1, 1, 0.25, 3, 0]))
        adagrad.learn_block(weights, h, x, len(h), block, scores, y, weight, scratch)
        table.learn_block(h.tolist(), x, block, want, y, weight)
        same_words(weights.words, table)
    assert table.used > 0 and (table.evicted > 0) == (table.refused > 0) == (line_bits < 12)


@pytest.mark.parametrize("loss_function", ["squared", "logistic"])
def test_scores_approach_the_labels(loss_function):
    rng = np.random.default_rng(1)
    weights = adagrad.new_weights(14, loss.CODES[loss_function], 0.5, tagged=True)
    scratch, scores = adagrad.block_scratch(MOST), np.zeros(8, F)
    h, x = example(rng)
    y = np.array([0, 1, -1, 0, 1, 0, 0, 0], F)
    for _ in range(60):
        tagged_words.score_block(weights.words, h, x, len(h), 2, scratch.at, scores, 0)
        adagrad.learn_block(weights, h, x, len(h), 2, scores, y, F(1), scratch)
    assert (np.sign(scores) == y).all()
    assert np.abs(scores - y)[y != 0].max() < 0.05 or loss_function == "logistic"


# -- scorers


@pytest.mark.bounds
@pytest.mark.parametrize("line_bits", [1, 7])
def test_scorers_learn_as_by_the_oracle(line_bits):
    rng = np.random.default_rng(line_bits)
    words = tagged_words.new_words(line_bits)
    table = oracle.TaggedTable(line_bits, "logistic", 0.5)
    pairs = tagged_words.new_pairs(MOST)
    delta = F(0.003)
    for _ in range(300):
        h, x = example(rng)
        n, label = len(h), int(rng.integers(1, 20))
        for f in range(n):
            pairs.at[f], pairs.tag[f] = tagged_words.locate(words, h[f], label)
        tagged_words.read_words(words, pairs, 0, n)
        read = table.read(h.tolist(), x, label)
        for _ in range(2):
            got = list(zip(pairs.w[:n].tolist(), pairs.g[:n].tolist(), strict=True))
            assert got == [(float(a), float(b)) for a, b in read]
            slope = F(rng.normal())
            square, step = slope * slope, F(0.4) * slope
            number = int(words.state[tagged_words.COUNTER])
            words.state[tagged_words.COUNTER] += n
            tagged_words.step_words(x, n, pairs, 0, square, step, delta, number)
            tagged_words.write_words(words, x, n, pairs, 0, square, step, delta, number)
            table.update_class(h.tolist(), x, label, square, step, delta, read)
            same_words(words, table)
    assert (table.refused > 0) is (line_bits == 1)


# -- codes


@settings(max_examples=300)
@given(w=st.floats(-8000, 8000, width=32), random=st.integers(0, 2**32 - 1))
def test_a_weight_is_rounded_to_one_of_its_neighbours(w, random):
    code = int(tagged_format.encode_w(F(w), random))
    assert code == oracle.encode_w(F(w), random >> 16)
    kept = float(tagged_format.decode_w(np.uint32(code)))
    assert abs(kept - w) <= max(abs(w) / 128, 2.0**-25)
    assert code >> 31 == (kept < 0)
    assert int(tagged_format.encode_w(F(kept), random)) == code  # what has a code keeps it


@settings(max_examples=300)
@given(g=st.floats(0, 60000, width=32), random=st.integers(0, 2**32 - 1))
def test_g_is_rounded_to_one_of_its_neighbours_and_never_to_0(g, random):
    code = int(tagged_format.encode_g(F(g), random))
    assert code == oracle.encode_g(F(g), random >> 10)
    kept = float(tagged_format.decode_g(np.uint32(code)))
    assert kept > 0 and abs(kept - g) <= max(g / 2, 2.0**-16)


@pytest.mark.parametrize("w", [0.7, -3.3, 1e-3, 123.4])
def test_the_mean_of_all_roundings_is_the_weight(w):
    randoms = range(0, 2**32, 2**16)
    mean = np.mean([float(tagged_format.decode_w(np.uint32(tagged_format.encode_w(F(w), r)))) for r in randoms])
    assert mean == pytest.approx(float(F(w)), rel=1e-6)


def test_the_largest_numbers_stay_finite():
    for number in (F(1e30), F(np.inf), F(-1e30), F(np.nan)):
        assert np.isfinite(tagged_format.decode_w(np.uint32(tagged_format.encode_w(number, 5))))
        assert np.isfinite(tagged_format.decode_g(np.uint32(tagged_format.encode_g(abs(number), 5))))


@settings(max_examples=200)
@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_estimates_of_inverse_roots_are_close(g):
    assert tagged_format.inverse_root(F(g)) == pytest.approx(1 / np.sqrt(g), rel=0.035)


# -- instructions


@pytest.fixture(scope="module")
def plain():
    """Return a copy of `tagged_lines` whose functions are not replaced by instructions."""
    spec = importlib.util.spec_from_file_location("xclass.kernels.plain_lines", tagged_lines.__file__)
    module = importlib.util.module_from_spec(spec)
    registered = list(jit._installers)
    spec.loader.exec_module(module)
    jit._installers[:] = registered
    yield module
    sys.modules.pop("xclass.kernels.plain_lines", None)


def random_line(rng: np.random.Generator, tag: int) -> np.ndarray:
    """Return a line of 16 words, of which some belong to the feature and block of a tag, at home or elsewhere."""
    line = rng.integers(0, 2**32, 16).astype(np.uint32) | np.uint32(1 << 13)
    for lane in range(16):
        kind = rng.integers(0, 4)
        if kind == 0:
            line[lane] = 0
        elif kind == 1:
            line[lane] = line[lane] & ~np.uint32(8191) | np.uint32(tag & ~7 | (lane ^ tag) & 7)
        elif kind == 2 and rng.random() < 0.3:
            line[lane] = line[lane] & ~np.uint32(8191) | np.uint32(tag & ~7 | rng.integers(0, 8))
    return line


def step_on_line(lines, words, tag, square, step, x, rate, reach_out, at):
    """Score a line, add squares to it and move its words; a kernel made of the functions of a module."""
    sums = lines.new_sums()
    elsewhere = lines.add_line(sums, words, at, tag, x)
    lines.add_to_sum(sums, np.int64(3), F(0.25))
    lines.store_sums(sums, reach_out, 0)
    reach = lines.new_sums()
    left = lines.learn_line(words, at, tag, square, x, np.uint32(77), rate, 0, reach)
    lines.store_sums(reach, reach_out, 8)
    missing = lines.move_line(words, at, tag, step, np.uint32(78), rate, 0)
    return elsewhere, left, missing, lines.match_lanes(words, at, tag), lines.weakest_lane(words, at)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="compares compiled instructions")
def test_instructions_do_what_the_plain_functions_define(plain):
    import numba

    tagged_words.score_block(
        tagged_words.new_words(1),
        np.zeros(1, np.uint64),
        np.zeros(1, F),
        1,
        1,
        np.zeros(1, np.int64),
        np.zeros(8, F),
        0,
    )
    tagged_lines.install()
    namespace = {"np": np, "F": F, "lines": tagged_lines}

    source = inspect.getsource(step_on_line).replace("step_on_line(lines, ", "step_on_line(")
    exec(source, namespace)
    compiled = numba.njit(namespace["step_on_line"])
    rng = np.random.default_rng(5)
    for _ in range(300):
        tag = int(rng.integers(8, 8192))
        line = random_line(rng, tag)
        square = rng.choice([0, 0, 1, 0.01, 4], 8).astype(F)
        step = rng.normal(size=8).astype(F)
        results = []
        for function, arguments in ((compiled, ()), (step_on_line, (plain,))):
            memory = np.zeros(64, np.uint32)
            words = memory[-memory.ctypes.data // 4 % 16 :][:32]
            words[16:] = line
            rate, out = np.zeros(8, F), np.zeros(16, F)
            at = np.int64(16)
            returned = function(*arguments, words, np.uint32(tag), square, step, F(0.3), rate, out, at)
            results.append((words.tolist(), rate.tolist(), out.tolist(), [int(r) for r in returned]))
        assert results[0] == results[1]


# -- growth and models


def filled(line_bits: int, doublings: int, examples: int = 300) -> tagged_words.Words:
    weights = adagrad.new_weights(line_bits + 3, loss.SQUARED, 0.5, tagged=True, doublings=doublings)
    scratch, scores = adagrad.block_scratch(MOST), np.zeros(8, F)
    rng = np.random.default_rng(3)
    for _ in range(examples):
        h, x = example(rng)
        y = rng.choice([-1, 0, 1], 8).astype(F)
        adagrad.learn_block(weights, h, x, len(h), int(rng.integers(1, 9)), scores, y, F(1), scratch)
    return weights.words


def test_doubling_keeps_every_weight_and_agrees_with_the_oracle():
    words = filled(7, 3)
    table = oracle.TaggedTable(7, "squared", 0.5)
    table.words = words.word.reshape(-1, 16).tolist()
    at, before, after = np.zeros(40, np.int64), np.zeros(8, F), np.zeros(8, F)
    h, x = np.arange(40).astype(np.uint64) * GOLDEN, np.ones(40, F)
    for _ in range(3):
        larger = tagged_words.doubled(words)
        table.double()
        assert np.array_equal(larger.word.reshape(-1, 16), np.array(table.words, np.uint32))
        for block in range(1, 9):
            tagged_words.score_block(words, h, x, 40, block, at, before, 0)
            tagged_words.score_block(larger, h, x, 40, block, at, after, 0)
            assert before.tolist() == after.tolist()
        words = larger
    assert tagged_words.doublings(words) == 3


def test_a_table_is_full_at_three_quarters_and_later_if_it_has_lost_twice_its_words():
    words = tagged_words.new_words(1, 4)
    for doublings in range(4):
        size = len(words.word)
        number, limit = (tagged_words.USED, 3 * size // 4) if doublings < 3 else (tagged_words.LOST, 2 * size)
        words.state[number] = limit - 1
        assert not tagged_words.is_full(words)
        words.state[number] = limit
        assert tagged_words.is_full(words)
        words = tagged_words.doubled(words)
        assert words.state[tagged_words.LOST] == 0
    words.state[[tagged_words.USED, tagged_words.LOST]] = 2**50
    assert not tagged_words.is_full(words)  # it was doubled as often as is allowed


@pytest.mark.parametrize("doublings", [0, 2])
def test_a_model_keeps_words_counts_and_size(doublings):
    words = filled(4, 3)
    for _ in range(doublings):
        words = tagged_words.doubled(words)
    stored = {name: np.asarray(array) for name, array in tagged_words.arrays("t", words).items()}
    restored = tagged_words.restored("t", tagged_words.new_words(4, 3), stored)
    assert np.array_equal(restored.word, words.word)
    assert restored.state.tolist() == words.state.tolist() and restored.shift == words.shift


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("t.doublings", np.array([4])),
        ("t.doublings", np.array([-1])),
        ("t.doublings", np.array([1.0])),
        ("t.doublings", np.array([0, 0])),
        ("t.counts", np.array([1, 2, 3, 4, -1])),
        ("t.counts", np.array([1, 2, 3, 4])),
        ("t.word", np.zeros(5, np.uint32)),
        ("t.word", np.zeros(16, np.float32)),
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_are_refused(name, value):
    stored = {key: np.asarray(array) for key, array in tagged_words.arrays("t", filled(4, 3)).items()}
    with pytest.raises(ModelError, match=name):
        tagged_words.restored("t", tagged_words.new_words(4, 3), {**stored, name: value})


def test_any_words_give_finite_scores():
    words = tagged_words.new_words(2)
    words.word[:] = np.random.default_rng(8).integers(0, 2**32, len(words.word))
    at, scores = np.zeros(MOST, np.int64), np.zeros(8, F)
    for number in range(200):
        h, x = example(np.random.default_rng(number))
        tagged_words.score_block(words, h, x, len(h), number, at, scores, 0)
        assert np.isfinite(scores).all()


@pytest.mark.plain
def test_plain_python_learns_as_the_oracle():
    test_blocks_are_scored_and_trained_as_by_the_oracle(3, 4)
    test_scorers_learn_as_by_the_oracle(1)
