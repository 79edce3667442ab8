"""Merged weights against the oracle: slots of float32, lines of tagged words, and tables of different sizes."""

import numpy as np
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import merging as oracle
from xclass.binary import gd, merged_words, merging, tagged_words, weight_table

F = np.float32
numbers = st.floats(-4, 4, width=32)
sums = st.sampled_from([0.0, 0.25, 1.0, 3.0, 1e-6, 1e9])  # of squares
# few tags, so that they meet; few weights and sums, so that ties occur
words = st.builds(
    lambda w, g, tag: w << 19 | g << 13 | tag,
    st.sampled_from([0, 1, 900, 2048, 3000, 4095]), st.sampled_from([0, 1, 2, 30, 31, 63]), st.integers(8, 40),
)  # fmt: skip


def slots(w: np.ndarray, g: np.ndarray | None, n: np.ndarray | None = None) -> merging.Slots:
    return merging.Slots(w, g, n)


@given(st.data())
def test_slots_are_averaged_by_what_was_added_to_g(data):
    size, models = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    w = np.array(data.draw(st.lists(st.lists(numbers, min_size=size, max_size=size), min_size=models + 1,
                                    max_size=models + 1)), F)  # fmt: skip
    g = np.array(data.draw(st.lists(st.lists(sums, min_size=size, max_size=size), min_size=models + 1,
                                    max_size=models + 1)), F)  # fmt: skip
    target = slots(np.zeros(size, F), np.zeros(size, F))
    sources = [slots(w[k], g[k]) for k in range(1, models + 1)]
    merging.average_slots(target, sources, slots(w[0], g[0]), [1.0] * models)
    for i in range(size):
        pairs = [(float(w[k, i]), float(g[k, i])) for k in range(models + 1)]
        expected = oracle.merged_slot(pairs[1:], pairs[0])
        np.testing.assert_allclose(target.w[i], F(expected[0]), rtol=2e-7, atol=1e-12)
        assert target.g[i] == F(expected[1])


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, -1.0, 3.0]), min_size=3, max_size=3), min_size=2, max_size=5))
def test_slots_without_g_are_averaged_over_those_that_changed_them(rows):
    w = np.array(rows, F)
    examples = [float(k) for k in range(1, len(rows))]
    target = slots(np.zeros(3, F), None)
    merging.average_slots(target, [slots(row, None) for row in w[1:]], slots(w[0], None), examples)
    expected = [oracle.merged_without_g(w[1:, i].tolist(), float(w[0, i]), examples) for i in range(3)]
    np.testing.assert_allclose(target.w, expected, rtol=1e-6)


def test_a_single_model_keeps_its_bits():
    rng = np.random.default_rng(5)
    w, g = rng.normal(size=1000).astype(F), (rng.random(1000) * 10.0 ** rng.integers(-9, 9, 1000)).astype(F)
    target = slots(np.zeros(1000, F), np.zeros(1000, F), np.zeros(1000, F))
    zeros = slots(np.zeros(1000, F), np.zeros(1000, F), np.zeros(1000, F))
    merging.average_slots(target, [slots(w, g, g)], zeros, [1.0])
    assert target.w.tobytes() == w.tobytes()
    assert target.g.tobytes() == target.n.tobytes() == g.tobytes()


def test_largest_values_are_kept_and_what_nobody_changed():
    base = slots(np.array([1, 2], F), np.array([1, 1], F), np.array([3, 3], F))
    other = slots(np.array([5, 2], F), np.array([2, 1], F), np.array([4, 1], F))
    target = slots(np.zeros(2, F), np.zeros(2, F), np.zeros(2, F))
    merging.average_slots(target, [other, base], base, [1.0, 1.0])
    assert (target.w.tolist(), target.g.tolist(), target.n.tolist()) == ([5, 2], [2, 1], [4, 3])


def test_sums_are_added_since_the_base_and_ranges_united():
    options = gd.BinaryOptions(bits=4, learning_rate=0.5, loss_function="squared", label_range="seen", initial_t=0.0)
    rule = gd.make_rule(options, reduction=False, exact=False)
    tables = [gd.new_table(rule, 4, 1, 1) for _ in range(4)]
    for table, total, low, high in zip(tables, (0.0, 10.0, 14.0, 11.0), (0, -1, -1, -5), (0, 2, 3, 2), strict=True):
        table.sums[:] = total, 2 * total
        table.range[:] = low, high
    merging.merge_tables(tables[0], tables[2:], tables[1], True, [1.0, 1.0], False)
    assert tables[0].sums.tolist() == [[15.0, 30.0]]
    assert tables[0].range.tolist() == [-5, 3]


def test_regularisation_is_applied_before_weights_are_averaged():
    options = gd.BinaryOptions(
        bits=4, learning_rate=0.5, loss_function="squared", label_range="seen", initial_t=0.0, l2=0.1
    )
    rule = gd.make_rule(options, reduction=False, exact=False)
    target, base, one, two = (gd.new_table(rule, 4, 1, 1) for _ in range(4))
    for table, contraction in ((one, 0.5), (two, 0.25)):
        weight_table.columns(table)["w"][3] = 8.0
        weight_table.columns(table)["g"][3] = 1.0
        table.shrunk[0, 1] = contraction
    target, _ = merging.merge_tables(target, [one, two], base, True, [1.0, 1.0], False)
    assert weight_table.columns(target)["w"][3] == (8 * 0.5 + 8 * 0.25) / 2
    assert target.shrunk.tolist() == [[0.0, 1.0]]


def test_means_of_extreme_masses_stay_in_the_range_of_the_values():
    most = np.finfo(np.float64).max
    default = np.array([7.0, 7.0, 7.0, 7.0, 7.0])
    values = [np.array([1.0, -1e100, 2.0, most, 3.0]), np.array([3.0, 1e100, 5.0, most, 4.0])]
    masses = [np.array([most, most, 5e-324, most, 0.0]), np.array([most, most, 0.0, most / 2, 0.0])]
    assert merging.weighted_mean(values, masses, default).tolist() == [2.0, 0.0, 2.0, most, 7.0]


def test_masses_that_are_no_numbers_count_nothing():
    base = slots(np.zeros(3, F), np.array([0, np.inf, 0], F))
    models = [slots(np.array([1, 1, 1], F), np.array([np.nan, np.inf, np.inf], F)),
              slots(np.array([3, 3, 3], F), np.array([2, np.inf, np.inf], F))]  # fmt: skip
    target = slots(np.zeros(3, F), np.zeros(3, F))
    merging.average_slots(target, models, base, [1.0, 1.0])
    assert target.w.tolist() == [3, 2, 2]
    assert np.isfinite(target.g).all()


@pytest.mark.plain
@pytest.mark.bounds
@settings(max_examples=tries(200))
@given(st.data())
def test_lines_of_words_agree_with_the_oracle(data):
    models, first = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 2**12))
    lines = [
        [{word & 0x1FFF: word for word in data.draw(st.lists(words, max_size=16))} for _ in range(2)]
        for _ in range(models + 1)
    ]
    tables = np.zeros((models + 1, 32), np.uint32)
    for k, row in enumerate(lines):
        for line, by_tag in enumerate(row):
            lanes = data.draw(st.permutations(range(16)))
            for lane, word in zip(lanes, by_tag.values(), strict=False):
                tables[k, 16 * line + lane] = word
    lines_before = 16 * first
    listed = [np.flatnonzero(table != tables[0]) for table in tables[1:]]
    start = np.cumsum([0, *map(len, listed)])
    rows = np.concatenate(listed)
    word = np.concatenate([table[at] for table, at in zip(tables[1:], listed, strict=True)])
    out = np.zeros(lines_before + 32, np.uint32)
    out[lines_before:] = tables[0]
    arguments = out, (rows + lines_before).astype(np.uint32), word, start
    counted = merged_words.merge_lines(*arguments, False, merged_words.ALL)
    assert out[lines_before:].tolist() == tables[0].tolist()
    dropped, added = merged_words.merge_lines(*arguments, True, merged_words.ALL)
    out = out[lines_before:]
    expected = []
    for line in range(2):
        base, *others = tables[:, 16 * line : 16 * line + 16].tolist()
        expected.append(oracle.merged_line(others, base, first + line))
    assert out.tolist() == expected[0][0] + expected[1][0]
    assert dropped == expected[0][1] + expected[1][1]
    assert counted == (dropped, added + dropped)
    assert added == np.count_nonzero(out) - np.count_nonzero(tables[0])


def filled(line_bits: int, doublings: int, seed: int, share: float) -> tagged_words.Words:
    """Return a table with random words."""
    table = tagged_words.new_words(line_bits, doublings)
    rng = np.random.default_rng(seed)
    used = rng.random(len(table.word)) < share
    used[0] = True
    table.word[used] = rng.integers(8 + (1 << 13), 2**32, int(used.sum()), dtype=np.uint64)
    table.word[used] |= np.uint32(8)
    table.state[tagged_words.USED] = used.sum()
    return table


def test_a_single_table_is_kept_and_a_smaller_one_is_doubled_first():
    one = filled(4, 3, 1, 0.3)
    assert merged_words.merged([one], tagged_words.new_words(4, 3)).word.tolist() == one.word.tolist()
    larger = tagged_words.doubled(tagged_words.doubled(one._replace(state=one.state.copy())))
    both = merged_words.merged([one, larger], tagged_words.new_words(4, 3))
    assert len(both.word) == len(larger.word)
    assert np.count_nonzero(both.word) == both.state[tagged_words.USED] == np.count_nonzero(larger.word)
    assert set((both.word & 0x1FFF).tolist()) == set((larger.word & 0x1FFF).tolist())


def test_tables_are_doubled_before_words_are_dropped():
    one, other, empty = filled(3, 2, 1, 0.9), filled(3, 2, 2, 0.9), tagged_words.new_words(3, 2)
    grown = merged_words.merged([one, other], empty)
    assert tagged_words.doublings(grown) > 0
    fixed = [filled(3, 0, seed, 0.9) for seed in (1, 2)]
    full = merged_words.merged(fixed, tagged_words.new_words(3, 0))
    assert len(full.word) == len(fixed[0].word)
    assert full.state[tagged_words.EVICTED] > 0
    assert not tagged_words.is_full(full)


@pytest.mark.parametrize(("share", "doublings"), [(0.15, 0), (0.3, 1)])
def test_tables_are_doubled_as_in_learning_and_not_for_a_few_words(share, doublings):
    models = [filled(12, 2, seed, share) for seed in (1, 2)]
    for k, model in enumerate(models):
        model.word[:16] = (np.arange(16 * k, 16 * k + 16, dtype=np.uint32) + 8) | np.uint32(1 << 13)
        model.state[tagged_words.USED] = np.count_nonzero(model.word)
    result = merged_words.merged(models, tagged_words.new_words(12, 2))
    assert tagged_words.doublings(result) == doublings
    assert np.count_nonzero(result.word) == result.state[tagged_words.USED]
    assert result.state[tagged_words.EVICTED] == result.state[tagged_words.LOST] == 16


def test_tables_that_are_not_full_are_doubled_before_many_words_are_dropped():
    models = [filled(12, 6, seed, 0.7) for seed in (1, 2)]
    larger = [merged_words._enlarged(model, tagged_words.EAGER_DOUBLINGS) for model in models]
    for model in larger:  # later doublings wait until more is lost
        model.word[:] = np.resize(models[0].word if model is larger[0] else models[1].word, len(model.word))
        model.state[tagged_words.USED] = np.count_nonzero(model.word)
    result = merged_words.merged(larger, tagged_words.new_words(12, 6))
    assert tagged_words.doublings(result) > tagged_words.EAGER_DOUBLINGS
    assert result.state[tagged_words.EVICTED] <= merged_words.MOST_DROPPED * result.state[tagged_words.USED]


def test_counts_of_words_are_added_since_the_base():
    base = filled(3, 0, 1, 0.2)
    base.state[tagged_words.COUNTER] = 100
    models = [tagged_words.copied(base) for _ in range(2)]
    models[0].state[tagged_words.COUNTER], models[1].state[tagged_words.COUNTER] = 150, 130
    assert merged_words.merged(models, base).state[tagged_words.COUNTER] == 180
