"""Tagged words: the kernels against the oracle, word by word; growth; what a model keeps and what is refused."""

import importlib.util
import os
import sys

import numpy as np
import pytest
from archives import restored, saved
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import tagged_learners
from tests.oracles import tagged_words as oracle
from xclass import ModelError
from xclass.binary import adagrad, loss, tagged_words
from xclass.kernels import jit, tagged_format, tagged_lines
from xclass.kernels.constants import GOLDEN
from xclass.system import memory, sparse_memory

# without compiling, numpy warns where kernels wrap around; the oracle overflows where they do
pytestmark = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")

F = np.float32
PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
MOST = 12  # features of an example
LOSSES = ["squared", "logistic"]
COUNTERS = [0, 2**31 - 2, 2**32 - 3, 2**52]  # random numbers are derived from the lowest 32 bits of a counter


def example(rng: np.random.Generator, unit: bool = True, pool: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes and values of a few features of a pool, of which some occur often and some twice."""
    n = int(rng.integers(1, MOST))
    h = rng.integers(0, pool, n).astype(np.uint64) * GOLDEN
    x = rng.choice([1.0, 1.0, 2.0, -0.5], n).astype(F)
    return h, x / F(np.sqrt(np.sum(x * x))) if unit else x


def oracle_of(weights: adagrad.SharedWeights) -> oracle.TaggedTable:
    """Return an oracle with the words and counts of a table.

    Slopes of logistic loss are those of the kernel, because the exponential functions differ in the last bit.
    """
    words, kind = weights.words, "logistic" if weights.kind == loss.LOGISTIC else "squared"
    base, doublings = int(64 - 13 - words.tag_shift), tagged_words.doublings(words)
    table = oracle.TaggedTable(base, kind, float(weights.rate), doublings)
    table.words = words.word.reshape(-1, 16).tolist()
    table.counter, table.used, table.evicted, table.refused, table.lost = words.state[: tagged_words.STORED].tolist()
    if kind == "logistic":
        table.slope = lambda s, y: F(adagrad.slope(weights, F(s), F(y)))
    return table


def same_words(words: tagged_words.Words, table: oracle.TaggedTable) -> None:
    """Check words and counts."""
    assert np.array_equal(words.word.reshape(-1, 16), np.array(table.words, np.uint32))
    same_counts(words, table)


def same_counts(words: tagged_words.Words, table: oracle.TaggedTable) -> None:
    counts = [table.counter, table.used, table.evicted, table.refused, table.lost]
    assert words.state[: tagged_words.STORED].tolist() == counts


def score(words: tagged_words.Words, h: np.ndarray, x: np.ndarray, block: int) -> list[float]:
    scores = np.full(24, np.nan, F)
    tagged_words.score_block(words, h, x, len(h), block, np.zeros(len(h), np.int64), scores, 8)
    assert np.isnan(scores[:8]).all() and np.isnan(scores[16:]).all()
    return scores[8:16].tolist()


def learn_both(weights, table, h, x, block, y, weight) -> None:
    """Score and learn an example with the kernels and with the oracle, and check that scores and counts are equal."""
    scores = score(weights.words, h, x, block)
    want = table.score_block(h.tolist(), x, block)
    assert scores == [float(s) for s in want]
    scratch = adagrad.block_scratch(MOST)
    adagrad.learn_block(weights, h, x, len(h), block, np.array(scores, F), np.array(y, F), F(weight), scratch)
    table.learn_block(h.tolist(), x, block, want, y, weight)
    same_counts(weights.words, table)


def hash_with(z: int, number: int) -> int:
    """Return the hash of a feature whose line and tag, for this block or class, are the highest bits of z."""
    return z * pow(int(GOLDEN), -1, 2**64) % 2**64 ^ number * oracle.SPREAD % 2**64


def displaced(table: oracle.TaggedTable, h: np.ndarray, block: int) -> int:
    """Return how many words of some features are not in one of the lanes where they should be."""
    count = 0
    for line, tag in (table._place(feature, block) for feature in h.tolist()):
        lanes = [oracle.find(line, tag, q) for q in range(8)]
        count += sum(lane is not None and lane not in oracle.homes(tag, q) for q, lane in enumerate(lanes))
    return count


def random_line(rng: np.random.Generator, tag: int) -> np.ndarray:
    """Return any 16 words, of which some belong to the feature and block of a tag, at home or elsewhere."""
    line = rng.integers(1, 2**32, 16).astype(np.uint32)
    kinds = rng.choice(6, 16, p=rng.dirichlet([1, 1, 0.3, 1, 0.3, 0.3]))
    for lane, kind in enumerate(kinds):
        if kind == 0:
            line[lane] = 0
        elif kind == 1:  # at home
            line[lane] = line[lane] & ~np.uint32(8191) | np.uint32(tag & ~7 | (lane ^ tag) & 7)
        elif kind == 2:  # elsewhere, or at home
            line[lane] = line[lane] & ~np.uint32(8191) | np.uint32(tag & ~7 | rng.integers(0, 8))
        elif kind == 3:  # all equally weak
            line[lane] = line[lane] & ~np.uint32(63 << 13) | np.uint32(9 << 13)
        elif kind == 4:  # with a G of 0
            line[lane] = line[lane] & ~np.uint32(63 << 13) | np.uint32(1)
        else:  # with a tag below 8, which no feature has
            line[lane] = line[lane] & ~np.uint32(8191) | np.uint32(rng.integers(0, 8) | 1 << 19)
    return line


def with_any_words(
    rng: np.random.Generator, h: np.ndarray, number: int, loss_function="squared"
) -> adagrad.SharedWeights:
    """Return a table of two lines with words that learning may never write, many for features and a block or class."""
    weights = adagrad.new_weights(4, loss.CODES[loss_function], 0.5)
    words, table = weights.words, oracle_of(weights)
    for at in range(0, len(words.word), 16):
        words.word[at : at + 16] = random_line(rng, int(rng.integers(8, 8192)))
    for feature in h.tolist():
        line, tag = table._place(feature, number)
        at = 16 * next(i for i, other in enumerate(table.words) if other is line)
        words.word[at : at + 16] = random_line(rng, tag)
    words.state[tagged_words.COUNTER] = rng.choice(COUNTERS)
    words.state[tagged_words.USED] = np.count_nonzero(words.word)
    return weights


# -- regressors in blocks


@pytest.mark.sampled(2)
@pytest.mark.bounds
@pytest.mark.parametrize("loss_function", LOSSES)
@pytest.mark.parametrize(("line_bits", "blocks"), [(1, 3), (3, 6), (12, 8)], ids=["crowded", "full", "roomy"])
def test_blocks_are_scored_and_trained_as_by_the_oracle(line_bits, blocks, loss_function):
    rng = np.random.default_rng(line_bits)
    weights = adagrad.new_weights(line_bits + 3, loss.CODES[loss_function], 0.3)
    table, away = oracle_of(weights), 0
    for number in range(300):
        h, x = example(rng)
        block = int(rng.integers(1, blocks))
        learn_both(weights, table, h, x, block, rng.choice([-1, 0, 0, 1], 8), F(rng.choice([1, 1, 0.7, 3, 0])))
        away += displaced(table, h, block)
        if line_bits < 12 or number % 100 == 99:
            same_words(weights.words, table)
    assert table.used > 0
    assert (table.evicted > 0) is (table.refused > 0) is (away > 20) is (line_bits < 12)


@pytest.mark.plain
@pytest.mark.bounds
@pytest.mark.parametrize("loss_function", LOSSES)
def test_blocks_learn_from_any_words_as_the_oracle(loss_function):
    """Words may be in several lanes and anywhere, with any codes; a line may be full or empty."""
    rng = np.random.default_rng(9)
    for _ in range(20 if PLAIN else 60):
        block, pool = int(rng.integers(0, 2**31)), rng.integers(0, 2**64, 3, dtype=np.uint64)
        weights = with_any_words(rng, pool, block, loss_function)
        table = oracle_of(weights)
        for _ in range(2):
            h = rng.choice(pool, int(rng.integers(1, 5)))
            x = rng.choice([1, 0.3, -1.7, 0, 1e-25, 300], len(h)).astype(F)
            learn_both(weights, table, h, x, block, rng.choice([-1, 0, 1], 8), F(rng.choice([1, 1e-3, 1e-30, 1e6])))
            same_words(weights.words, table)


lessons = st.tuples(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1, -0.5, 2, 0, 1e-25])), min_size=1, max_size=5),
    st.integers(0, 1),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=8, max_size=8),
    st.sampled_from([1, 0.25, 3, 0, 1e-40, 1e30, 3e38]),
)


@pytest.mark.plain
@pytest.mark.bounds
@settings(max_examples=40, deadline=None)
@given(st.lists(lessons, min_size=1, max_size=25), st.sampled_from(COUNTERS), st.sampled_from(LOSSES))
def test_all_small_streams_are_learned_as_by_the_oracle(stream, counter, loss_function):
    weights = adagrad.new_weights(4, loss.CODES[loss_function], 0.5)
    weights.words.state[tagged_words.COUNTER] = counter
    table = oracle_of(weights)
    for features, block, y, weight in stream:
        h = np.array([i for i, _ in features], np.uint64) * GOLDEN
        learn_both(weights, table, h, np.array([x for _, x in features], F), block, y, F(weight))
        same_words(weights.words, table)


@pytest.mark.plain
@pytest.mark.parametrize("r", [None, F(0.5)], ids=["AdaGrad", "AROW"])
def test_rates_are_0_without_a_weight_and_add_up_to_reaches(r):
    rng = np.random.default_rng(4)
    squares = np.array([4, 0, 1e-6, 0, 1e-12, 4, 0, 1], F)
    for _ in range(20):
        h, x = example(rng)
        weights = with_any_words(rng, h, 3)
        table, words = oracle_of(weights), weights.words
        rate, reach = np.full(8 * len(h), np.nan, F), np.full(8, np.nan, F)
        counter = int(words.state[tagged_words.COUNTER])
        assert tagged_words.add_squares(words, h, x, len(h), 3, squares, rate, reach, r) == counter
        sums = [F(0)] * 8
        for f, feature in enumerate(h.tolist()):
            line, tag = table._place(feature, 3)
            g = {q: squares[q] * (x[f] * x[f]) for q in range(8) if squares[q] > 0}
            sums_of_g = table._add_to_gs(line, tag, g, counter + f)
            before, total = (np.array([sums_of_g.get(q, (0, 0))[k] for q in range(8)], F) for k in range(2))
            if r is None:
                rates = [x[f] * oracle.inverse_root(g) for g in total]
            else:
                rates = np.where(total > 0, x[f] * (r / (r + before)), F(0))
            assert rate[8 * f : 8 * f + 8].tolist() == [float(r) for r in rates]
            sums = [total + x[f] * r for total, r in zip(sums, rates, strict=True)]
        assert reach.tolist() == [float(s) for s in sums]
        table.counter += len(h)
        same_words(words, table)


@pytest.mark.plain
@pytest.mark.parametrize(("s", "y", "weight"), [(0, 0, 1), (np.nan, 1, 1), (0.5, 1, 0), (1 - 2.0**-12, 1, 1e-40)])
@pytest.mark.parametrize("loss_function", LOSSES)
def test_nothing_changes_if_no_regressor_learns(s, y, weight, loss_function):
    """The last slope is not 0, but its square is with squared loss; then the step would be far too long."""
    weights = adagrad.new_weights(4, loss.CODES[loss_function], 0.5)
    h, scores, labels = np.arange(1, 3).astype(np.uint64), np.zeros(8, F), np.zeros(8, F)
    scores[2], labels[2] = s, y
    adagrad.learn_block(weights, h, np.ones(2, F), 2, 1, scores, labels, F(weight), adagrad.block_scratch(2))
    learns = weight == 1e-40 and loss_function == "logistic"
    assert weights.words.state[: tagged_words.STORED].any() == weights.words.word.any() == learns


@settings(max_examples=tries(200))
@given(st.floats(-50, 50, width=32), st.sampled_from([-1, 1]), st.sampled_from(LOSSES))
def test_slopes_are_those_of_the_oracle(s, y, loss_function):
    weights = adagrad.new_weights(4, loss.CODES[loss_function], 0.5)
    want = oracle.TaggedTable(1, loss_function, 0.5).slope(F(s), F(y))
    assert adagrad.slope(weights, F(s), F(y)) == pytest.approx(want, rel=0 if loss_function == "squared" else 2e-7)


@pytest.mark.parametrize("loss_function", LOSSES)
def test_scores_approach_the_labels(loss_function):
    rng = np.random.default_rng(1)
    weights = adagrad.new_weights(14, loss.CODES[loss_function], 0.5)
    scratch, scores = adagrad.block_scratch(MOST), np.zeros(8, F)
    h, x = example(rng)
    y = np.array([0, 1, -1, 0, 1, 0, 0, 0], F)
    for _ in range(60):
        tagged_words.score_block(weights.words, h, x, len(h), 2, scratch.at, scores, 0)
        adagrad.learn_block(weights, h, x, len(h), 2, scores, y, F(1), scratch)
    assert (np.sign(scores) == y).all()
    assert np.abs(scores - y)[y != 0].max() < 0.05 or loss_function == "logistic"


# -- scorers


def read_pairs(words: tagged_words.Words, pairs: tagged_words.Pairs, begin: int, h: np.ndarray, label: int) -> None:
    for f, feature in enumerate(h):
        pairs.at[begin + f], pairs.tag[begin + f] = tagged_words.locate(words, feature, label)
    tagged_words.read_words(words, pairs, begin, begin + len(h))


def scorer_steps_both(words, table, pairs, begin, h, x, label, slopes) -> None:
    """Read words and take steps with the kernels and with the oracle, and check that all of it is equal.

    The pairs are those from `begin` on; others are left alone.
    """
    n, delta = len(h), F(0.003)
    outside = np.r_[0:begin, begin + n : len(pairs.at)]
    for array in pairs:
        array[outside] = 77
    read_pairs(words, pairs, begin, h, label)
    read = table.read(h.tolist(), x, label)
    for slope in (*slopes, None):
        got = list(zip(pairs.w[begin : begin + n].tolist(), pairs.g[begin : begin + n].tolist(), strict=True))
        assert got == [(float(w), float(g)) for w, g in read]
        assert all((array[outside] == 77).all() for array in pairs)
        if slope is None:
            break
        square, step = F(slope) * F(slope), F(0.4) * F(slope)
        number = int(words.state[tagged_words.COUNTER])
        words.state[tagged_words.COUNTER] += n
        tagged_words.step_words(x, n, pairs, begin, square, step, delta, number)
        tagged_words.write_words(words, x, n, pairs, begin, square, step, delta, number)
        table.update_class(h.tolist(), x, label, square, step, delta, read)
        same_words(words, table)


@pytest.mark.bounds
@pytest.mark.parametrize("line_bits", [1, 7])
def test_scorers_learn_as_by_the_oracle(line_bits):
    rng = np.random.default_rng(line_bits)
    words = tagged_words.new_words(line_bits)
    table = oracle.TaggedTable(line_bits, "logistic", 0.5)
    pairs = tagged_words.new_pairs(2 * MOST)
    for _ in range(300):
        h, x = example(rng)
        begin, label = int(rng.integers(0, MOST)), int(rng.integers(1, 20))
        scorer_steps_both(words, table, pairs, begin, h, x, label, rng.normal(size=2))
    assert (table.refused > 0) is (table.evicted > 0) is (line_bits == 1)


@pytest.mark.plain
@pytest.mark.bounds
def test_scorers_learn_from_any_words_as_the_oracle():
    rng = np.random.default_rng(10)
    pairs = tagged_words.new_pairs(MOST)
    for _ in range(20 if PLAIN else 60):
        label, pool = int(rng.integers(0, 2**31)), rng.integers(0, 2**64, 5, dtype=np.uint64)
        weights = with_any_words(rng, pool, label)
        h = rng.choice(pool, int(rng.integers(1, 7)))
        x = rng.choice([1, 0.3, -1.7, 0, 1e-25, 300, 1e20], len(h)).astype(F)
        slopes = rng.choice([1, -0.01, 1e-4, 200, 2e-19], 3)
        scorer_steps_both(weights.words, oracle_of(weights), pairs, 2, h, x, label, slopes)


@pytest.mark.plain
def test_a_scorer_goes_on_from_the_weights_that_were_read_if_another_feature_took_its_word():
    words = tagged_words.new_words(1)
    table = oracle.TaggedTable(1, "logistic", 0.5)
    pairs = tagged_words.new_pairs(16)
    old = np.array([hash_with(tag << 50, 0) for tag in range(8, 24)], np.uint64)  # these fill a line
    scorer_steps_both(words, table, pairs, 0, old, np.r_[1, np.full(15, 2)].astype(F), 0, [-1.4])
    assert table.used == 16
    new = np.array([hash_with(100 << 50, 0), old[0], hash_with(200 << 50, 0), old[0]], np.uint64)
    scorer_steps_both(words, table, pairs, 4, new, np.array([1.5, 2, 1e-4, 1], F), 0, [-1, 0.5])
    assert table.evicted >= 2 and table.refused > 0
    assert oracle.find_class(table.words[0], 8) is not None


@pytest.mark.parametrize("number", [5, 2**40 + 3])
def test_lines_and_tags_are_those_of_the_oracle(number):
    """The first hashes have tags below 8 before these are raised."""
    raised = [hash_with(tag << 42, number) for tag in range(9)]
    others = np.random.default_rng(2).integers(0, 2**64, 50, dtype=np.uint64).tolist()
    words = tagged_words.new_words(9, 6)
    table = oracle.TaggedTable(9, "squared", 0.5)
    for _ in range(7):
        for h in raised + others:
            position, tag = tagged_words.locate(words, np.uint64(h), number)
            line, want = table._place(h, number)
            assert tag == want >= 8
            assert table.words[position // 16] is line and position % 16 == 0
        assert [tagged_words.locate(words, np.uint64(h), number)[1] for h in raised] == [8] * 9
        if table.doublings < 6:
            words = tagged_words.doubled(words)
            table.double()


# -- codes


@settings(max_examples=tries(300))
@given(w=st.floats(-8000, 8000, width=32), random=st.integers(0, 2**32 - 1))
def test_a_weight_is_rounded_to_one_of_its_neighbours(w, random):
    code = int(tagged_format.encode_w(F(w), random))
    assert code == oracle.encode_w(F(w), random >> 16)
    kept = float(tagged_format.decode_w(np.uint32(code)))
    assert abs(kept - w) <= max(abs(w) / 128, 2.0**-25)
    assert code >> 31 == (kept < 0)
    assert int(tagged_format.encode_w(F(kept), random)) == code  # what has a code keeps it


@settings(max_examples=tries(300))
@given(g=st.floats(0, 60000, width=32), random=st.integers(0, 2**32 - 1))
def test_g_is_rounded_to_one_of_its_neighbours_and_never_to_0(g, random):
    code = int(tagged_format.encode_g(F(g), random))
    assert code == oracle.encode_g(F(g), random >> 10)
    kept = float(tagged_format.decode_g(np.uint32(code)))
    assert kept > 0 and abs(kept - g) <= max(g / 2, 2.0**-16)


@pytest.mark.parametrize("w", [0.7, -3.3, 1e-3, 123.4])
def test_the_mean_of_all_roundings_is_the_weight(w):
    randoms = range(0, 2**32, 2**18)
    mean = np.mean([float(tagged_format.decode_w(np.uint32(tagged_format.encode_w(F(w), r)))) for r in randoms])
    assert mean == pytest.approx(float(F(w)), rel=1e-6)


def test_the_largest_numbers_stay_finite():
    for number in (F(1e30), F(np.inf), F(-1e30), F(np.nan)):
        assert np.isfinite(tagged_format.decode_w(np.uint32(tagged_format.encode_w(number, 5))))
        assert np.isfinite(tagged_format.decode_g(np.uint32(tagged_format.encode_g(abs(number), 5))))
    assert tagged_format.inverse_root(F(0)) == tagged_format.inverse_root(F(np.nan)) == 0


@settings(max_examples=tries(200))
@given(st.floats(2.0**-100, 2.0**100, width=32))
def test_estimates_of_inverse_roots_are_close(g):
    assert tagged_format.inverse_root(F(g)) == pytest.approx(1 / np.sqrt(g), rel=0.035)
    assert tagged_format.inverse_root(F(g)) == oracle.inverse_root(F(g))


@settings(max_examples=100)
@given(st.integers(0, 2**53), st.integers(0, 7), st.sampled_from([tagged_format.G_RANDOM, tagged_format.W_RANDOM]))
def test_random_numbers_are_those_of_the_oracle(number, q, multiplier):
    assert tagged_format.random32(number, q, multiplier) == oracle.random_bits(number, q, multiplier)


# -- instructions


@pytest.fixture(scope="module")
def plain():
    """Return a copy of `tagged_lines` whose functions are not replaced by instructions."""
    spec = importlib.util.spec_from_file_location("xclass.kernels.plain_lines", tagged_lines.__file__)
    module = importlib.util.module_from_spec(spec)
    registered = list(jit.installers)
    spec.loader.exec_module(module)
    jit.installers[:] = registered
    yield module
    sys.modules.pop("xclass.kernels.plain_lines", None)


def steps_on_line(lines):
    """Return a function that calls all functions of a module like `tagged_lines` on a line."""

    def steps(words, at, tag, square, step, x, number, rate, sums_out):
        sums = lines.new_sums()
        elsewhere = lines.add_line(sums, words, at, tag, x)
        lines.add_to_sum(sums, np.int64(3), x)
        lines.store_sums(sums, sums_out, 8)
        away = lines.move_line(words, at, tag, step, number, rate, 0)  # by any rates
        reach = lines.new_sums()
        left = lines.learn_line(words, at, tag, square, x, number, rate, 8, reach, None)
        lines.store_sums(reach, sums_out, 24)
        missing = lines.move_line(words, at, tag, step, number, rate, 8)
        return elsewhere, away, left, missing, lines.match_lanes(words, at, tag), lines.weakest_lane(words, at)

    return steps


@pytest.mark.skipif(PLAIN, reason="compares compiled instructions")
@pytest.mark.parametrize("processor", ["this one", "without AVX2"])
def test_instructions_do_what_the_plain_functions_define(processor, plain, monkeypatch):
    import numba
    from numba.core.registry import cpu_target

    tagged_lines.install()
    native = "+avx2" in cpu_target.target_context.codegen()._tm_features and processor == "this one"
    if processor == "without AVX2":  # the instructions are generated as for such a processor
        monkeypatch.setattr(cpu_target.target_context.codegen(), "_tm_features", "")
    compiled = numba.njit(steps_on_line(tagged_lines))
    rng = np.random.default_rng(5)
    seen = np.zeros(6, np.int64)
    for _ in range(400):
        tag, number = int(rng.integers(8, 8192)), int(rng.integers(0, 2**32))
        line, at = random_line(rng, tag), 16 * int(rng.integers(0, 3))
        x = F(rng.choice([1, 0.3, -1.7, 0, 1e-25, 2**21]))
        line[rng.random(16) < 0.1] |= np.uint32(4095 << 19)  # the largest weights
        square = rng.choice([0, 0, 1, 0.01, 4, 1e-40, 1e30, -1, np.nan], 8).astype(F)
        step = np.where(rng.random(8) < 0.5, rng.normal(size=8), 100).astype(F)
        rates = np.r_[rng.choice([0, 0, 0.5, -3, 1e-30], 8), np.full(16, 7)].astype(F)
        results = []
        for function in (compiled, steps_on_line(plain)):
            words, rate, sums = sparse_memory.zeros(48), rates.copy(), np.full(40, 7, F)
            words[:] = 12345
            words[at : at + 16] = line
            returned = function(words, np.int64(at), np.uint32(tag), square, step, x, np.uint32(number), rate, sums)
            results.append((words.tolist(), rate.tolist(), sums.tolist(), [int(r) for r in returned]))
        assert results[0] == results[1]
        seen += np.array(results[0][3]) != 0
    assert seen[[0, 1, 2, 4, 5]].min() > 10  # there were words elsewhere than at home and so on
    assert seen[3] == 0  # what `learn_line` wrote is at home
    assert native is any("llvm.x86.avx2.permd" in code for code in compiled.inspect_llvm().values())


@pytest.mark.skipif(PLAIN, reason="compares compiled instructions")
@pytest.mark.parametrize("processor", ["this one", "without AVX2"])
def test_a_packed_line_adds_the_same_as_a_whole_one(processor, plain, monkeypatch):
    import numba
    from numba.core.registry import cpu_target

    tagged_lines.install()
    if processor == "without AVX2":
        monkeypatch.setattr(cpu_target.target_context.codegen(), "_tm_features", "")

    @numba.njit
    def packed(words, at, lanes, tag, x, sums_out):
        sums = tagged_lines.new_sums()
        elsewhere = tagged_lines.add_packed_line(sums, words, at, lanes, tag, x)
        tagged_lines.store_sums(sums, sums_out, 0)
        return elsewhere

    rng = np.random.default_rng(6)
    lines = [np.zeros(16, np.uint32), *(random_line(rng, 77) for _ in range(200))]
    for line in lines:
        line[rng.random(16) < rng.random()] = 0
        lanes = int(np.sum((line != 0) << np.arange(16)))
        x = F(rng.choice([1, -1.7, 0, 2**21]))
        want = plain.new_sums()
        elsewhere = plain.add_line(want, line, 0, 77, x)
        words = np.concatenate([rng.integers(1, 9, 3), line[line != 0], rng.integers(1, 2**32, 16)]).astype(np.uint32)
        by_plain, by_instructions = plain.new_sums(), np.empty(8, F)
        assert plain.add_packed_line(by_plain, words, 3, lanes, 77, x) == elsewhere
        assert packed(words, np.int64(3), np.int64(lanes), np.uint32(77), x, by_instructions) == elsewhere
        assert by_plain.tolist() == by_instructions.tolist() == want.tolist()


# -- growth and models


def filled(line_bits: int, doublings: int, examples: int = 300, pool: int = 40) -> tagged_words.Words:
    weights = adagrad.new_weights(line_bits + 3, loss.SQUARED, 0.5, doublings=doublings)
    scratch, scores = adagrad.block_scratch(MOST), np.zeros(8, F)
    rng = np.random.default_rng(3)
    for _ in range(examples):
        h, x = example(rng, pool=pool)
        y = rng.choice([-1, 0, 1], 8).astype(F)
        adagrad.learn_block(weights, h, x, len(h), int(rng.integers(1, 9)), scores, y, F(1), scratch)
    return weights.words


@pytest.mark.bounds
@pytest.mark.parametrize("crowded", [True, False])
def test_doubling_keeps_every_weight_and_agrees_with_the_oracle(crowded):
    words = filled(2, 6) if crowded else filled(9, 6, pool=8)
    table = oracle_of(adagrad.new_weights(5, loss.SQUARED, 0.5)._replace(words=words))
    assert words.state[[tagged_words.EVICTED, tagged_words.REFUSED]].any() == crowded
    one, features = np.ones(1, F), [np.array([i], np.uint64) * GOLDEN for i in range(40)]
    pairs = [(h, block) for h in features for block in range(1, 9)]
    before = [score(words, h, one, block) for h, block in pairs]
    kept = np.sort(words.word[words.word != 0])
    assert np.count_nonzero(before) > 30
    for doublings in range(1, 7):
        words = tagged_words.doubled(words)
        table.double()
        same_words(words, table)
        assert np.array_equal(np.sort(words.word[words.word != 0]), kept)
        assert tagged_words.doublings(words) == doublings
        assert words.word.ctypes.data % 64 == 0
        if crowded or doublings in (1, 6):
            assert [score(words, h, one, block) for h, block in pairs] == before


def test_doubling_keeps_the_weights_of_classes():
    """Those with a tag that was raised to 8, too."""
    words = tagged_words.new_words(6, 6)
    table = oracle.TaggedTable(6, "logistic", 0.5)
    raised = [hash_with((line << 13 | tag) << 45, 5) for line, tag in ((0, 0), (1, 3), (2, 7))]
    h, x = np.r_[np.array(raised, np.uint64), np.arange(1, 9).astype(np.uint64) * GOLDEN], np.ones(11, F)
    pairs = tagged_words.new_pairs(11)
    scorer_steps_both(words, table, pairs, 0, h, x, 5, [-0.5])
    before = pairs.w.tolist()
    assert all(before) and pairs.tag[:3].tolist() == [8, 8, 8]
    for _ in range(6):
        words = tagged_words.doubled(words)
        read_pairs(words, pairs, 0, h, 5)
        assert pairs.w.tolist() == before


@pytest.mark.bounds
@pytest.mark.parametrize("most", [2, 6])
def test_a_table_that_grows_learns_as_by_the_oracle(most):
    rng = np.random.default_rng(7)
    weights = adagrad.new_weights(4, loss.SQUARED, 0.5, doublings=most)
    table = oracle_of(weights)
    lost = []  # before each doubling
    for _ in range(400):
        tagged_learners.grow(table, most)
        if tagged_words.is_full(weights.words):
            lost.append(int(weights.words.state[tagged_words.LOST]))
            weights = weights._replace(words=tagged_words.doubled(weights.words))
        assert table.doublings == tagged_words.doublings(weights.words)
        h, x = example(rng, pool=2000)
        learn_both(weights, table, h, x, int(rng.integers(1, 9)), rng.choice([-1, 1], 8), F(1))
    same_words(weights.words, table)
    assert table.doublings == len(lost) == most
    assert all(n >= 2 * 16 * 2 ** (1 + i) for i, n in enumerate(lost) if i >= 3)
    assert table.evicted > 0 and table.refused > 0


def test_a_copy_does_not_change_with_its_original():
    words = filled(3, 2)
    copy = tagged_words.copied(words)
    before = copy.word.tolist(), copy.state.tolist()
    assert before == (words.word.tolist(), words.state.tolist())
    assert copy.word.ctypes.data % 64 == words.word.ctypes.data % 64 == 0
    words.word[:], words.state[:] = 1, 1
    assert before == (copy.word.tolist(), copy.state.tolist())


@pytest.mark.parametrize("eager", [3, 0])
def test_a_table_is_full_at_half_of_its_words_and_later_if_it_has_lost_twice_its_words(eager):
    words = tagged_words.new_words(1, 4, eager=eager)
    for doublings in range(4):
        assert tagged_words.waits_for_loss(words) == (eager == 0)
        size = len(words.word)
        number, limit = (tagged_words.USED, size // 2) if doublings < eager else (tagged_words.LOST, 2 * size)
        words.state[number] = limit - 1
        assert not tagged_words.is_full(words)
        words.state[number] = limit
        assert tagged_words.is_full(words)
        words = tagged_words.doubled(words)
        assert words.state[tagged_words.LOST] == 0
    words.state[[tagged_words.USED, tagged_words.LOST]] = 2**50
    assert not tagged_words.is_full(words) and not tagged_words.waits_for_loss(words)  # it was doubled often enough


def test_a_packed_table_too_large_for_memory_is_refused(monkeypatch):
    stored = saved(tagged_words.serialize, "t", filled(4, 2, examples=3))
    packed = tagged_words.new_words(4, 40, weights_only=True)
    assert len(restored(stored, tagged_words.serialize, "t", packed).lines.bitmap)
    stored["t.doublings"] = np.array([40])
    monkeypatch.setattr(memory, "available", lambda: 2**30)
    with pytest.raises(ModelError, match=r"t.doublings.* the table takes 4,194,304 MB, but only 1,024 MB of memory"):
        restored(stored, tagged_words.serialize, "t", tagged_words.new_words(4, 40, weights_only=True))


@pytest.mark.plain
@pytest.mark.parametrize(("line_bits", "examples"), [(4, 300), (8, 3)], ids=["dense", "sparse"])
@pytest.mark.parametrize("doublings", [0, 2])
def test_a_model_keeps_words_counts_and_size(line_bits, examples, doublings):
    words = filled(line_bits, 3, examples)
    for _ in range(doublings):
        words = tagged_words.doubled(words)
    stored = saved(tagged_words.serialize, "t", words)
    assert ("t.index" in stored) is (examples == 3 or doublings > 0)
    again = restored(stored, tagged_words.serialize, "t", tagged_words.new_words(line_bits, 3))
    assert np.array_equal(again.word, words.word)
    assert again.state.tolist() == words.state.tolist()
    assert (again.shift, again.tag_shift) == (words.shift, words.tag_shift)
    assert again.word.ctypes.data % 64 == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("t.doublings", np.array([4])),
        ("t.doublings", np.array([-1])),
        ("t.doublings", np.array([2**62])),
        ("t.doublings", np.array([1.0])),
        ("t.doublings", np.array([0, 0])),
        ("t.doublings", None),
        ("t.counts", np.array([1, 2, 3, 4, -1])),
        ("t.counts", np.array([-1, 2, 3, 4, 5])),
        ("t.counts", np.array([2**55, 2, 3, 4, 5])),
        ("t.counts", np.array([1, 2, 3, 4])),
        ("t.counts", np.array([[1, 2, 3, 4, 5]])),
        ("t.counts", np.array([1, 2, 3, 4, 5], np.uint64)),
        ("t.counts", None),
        ("t.word", np.zeros(5, np.uint32)),
        ("t.word", np.zeros((16, 16), np.uint32)),
        ("t.word", np.zeros(256, np.float32)),
        ("t.word", np.zeros(256, np.int32)),
        ("t.word", np.zeros(512, np.uint32)),
        ("t.word", None),
        ("t.index", np.array([1, 0], np.uint32)),
        ("t.index", np.array([256], np.uint32)),
        ("t.index", np.array([1], np.int64)),
    ],
    ids=str,
)
@pytest.mark.parametrize("weights_only", [False, True])
def test_arrays_that_do_not_fit_are_refused(name, value, weights_only):
    stored = saved(tagged_words.serialize, "t", filled(4, 3))
    stored[name] = value
    if value is None:
        del stored[name]
    with pytest.raises(ModelError, match=name):
        restored(stored, tagged_words.serialize, "t", tagged_words.new_words(4, 3, weights_only))


def test_a_table_larger_than_the_memory_is_refused(monkeypatch):
    stored = saved(tagged_words.serialize, "t", filled(4, 3))
    monkeypatch.setattr("xclass.system.memory.available", lambda: 1023)
    with pytest.raises(ModelError, match=r"t\.doublings.* memory"):
        restored(stored, tagged_words.serialize, "t", tagged_words.new_words(4, 3))
    monkeypatch.setattr("xclass.system.memory.available", lambda: 1024)
    restored(stored, tagged_words.serialize, "t", tagged_words.new_words(4, 3))


def test_words_in_use_are_counted_anew():
    stored = saved(tagged_words.serialize, "t", filled(4, 3))
    used = int(np.count_nonzero(np.asarray(stored["t.word"])))
    stored["t.counts"] = np.array([9, used + 100, 1, 2, 3])
    assert restored(stored, tagged_words.serialize, "t", tagged_words.new_words(4, 3)).state[:5].tolist() == [
        9,
        used,
        1,
        2,
        3,
    ]


@pytest.mark.plain
@pytest.mark.parametrize("loss_function", LOSSES)
def test_any_words_give_finite_scores_before_and_after_learning(loss_function):
    rng = np.random.default_rng(8)
    weights = adagrad.new_weights(5, loss.CODES[loss_function], 0.5)
    stored = saved(tagged_words.serialize, "t", weights.words)
    stored = {"t.counts": stored["t.counts"], "t.doublings": stored["t.doublings"]}
    stored["t.word"] = rng.integers(0, 2**32, len(weights.words.word)).astype(np.uint32)
    weights = weights._replace(words=restored(stored, tagged_words.serialize, "t", weights.words))
    scratch, pairs = adagrad.block_scratch(MOST), tagged_words.new_pairs(MOST)
    for number in range(100):
        h, x = example(rng, pool=20)
        read_pairs(weights.words, pairs, 0, h, number)
        scores = np.array(score(weights.words, h, x, number), F)
        y, weight = rng.choice([-1, 1], 8).astype(F), F(rng.choice([1, 1e30, 3e38]))
        adagrad.learn_block(weights, h, x, len(h), number, scores, y, weight, scratch)
        after = score(weights.words, h, x, number)
        assert np.isfinite([*scores, *after, *pairs.w[: len(h)], *pairs.g[: len(h)]]).all()


def test_occupancy_is_the_sum_over_tables():
    first, second = tagged_words.new_words(1), tagged_words.new_words(2)
    first.state[:5] = 1, 20, 3, 4, 7
    second.state[:5] = 2, 28, 5, 6, 11
    line = "weights in use = 48 of 96 (50.0%), evicted = 8, refused = 10"
    assert tagged_words.occupancy([first, second]) == line
