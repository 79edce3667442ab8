"""The oracle of tagged words: means of codes are exact, the weakest word makes room, and doubling loses nothing."""

import math

import numpy as np
import pytest

from tests.oracles.tagged_words import (
    BLOCK,
    GOLDEN,
    LANES,
    MASK64,
    MOST_DOUBLINGS,
    SPREAD,
    TaggedTable,
    decode_g,
    decode_w,
    encode_g,
    encode_w,
    find,
    homes,
    inverse_root,
    key,
    random_bits,
)

F = np.float32
KINDS = ["squared", "logistic"]
LARGEST_W, LARGEST_G = F(8160), F(49152)
ONLY = np.eye(BLOCK, dtype=int)  # labels: 1 for one q and 0 for the others


def hashes(seed, count):
    return [int(h) for h in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)]


def hash_with(z, number=0):
    """Return the hash of a feature whose line and tag, for this block or class, are the highest bits of z."""
    return z * pow(GOLDEN, -1, 1 << 64) & MASK64 ^ (number * SPREAD & MASK64)


def hash_in_one_line(tag, number=0):
    """Return a hash with this tag and the first of the two lines of a table with base 1."""
    return hash_with(tag << 50, number)


def words_in_use(table):
    return [word for line in table.words for word in line if word]


def fill(kind, base, features, blocks, seed=0, rounds=3):
    """Return a table that has learned random examples of three features each, and all pairs of feature and block."""
    rng = np.random.default_rng(seed)
    table = TaggedTable(base, kind, 0.5)
    pool = hashes(seed, features)
    for _ in range(rounds * features):
        chosen = [pool[i] for i in rng.permutation(features)[:3]]
        xs, block = rng.choice([0.5, 1.0, -2.0], 3), int(rng.integers(blocks))
        y = rng.choice([-1, 0, 0, 1], BLOCK)
        table.learn_block(chosen, xs, block, table.score_block(chosen, xs, block), y, float(rng.choice([0.5, 3.0])))
    return table, [(h, block) for h in pool for block in range(blocks)]


# -- codes


@pytest.mark.parametrize("r", [0, 1, 32768, 65535])
def test_weights_that_have_a_code_are_kept(r):
    for code in range(1, 4096):
        exponent, mantissa = divmod(code, 128)
        for sign in (0, 1 << 31):
            w = decode_w(sign | code << 19)
            size = 2.0 ** (exponent - 19) * (1 + mantissa / 128) if exponent else 2.0**-18 * mantissa / 128
            assert w == (-size if sign else size)
            assert encode_w(w, r) == sign | code << 19
    assert encode_w(F(0), r) == encode_w(F(-0.0), r) == 0


@pytest.mark.parametrize("r", [0, 1, 2**21, 2**22 - 1])
def test_gs_that_have_a_code_are_kept(r):
    for code in range(1, 64):
        g = decode_g(code << 13)
        assert g == (2.0 ** (code // 2 - 16) * (1 + code % 2 / 2) if code > 1 else 2.0**-16)
        assert encode_g(g, r) == code << 13


def test_decoding_ignores_the_rest_of_a_word():
    word = 1 << 31 | 2432 << 19 | 32 << 13 | 8191
    assert (decode_w(word), decode_g(word)) == (-1, 1)
    assert decode_w(0xFFFFFFFF & ~(0xFFF << 19)) == decode_g(0xFFFFFFFF & ~(0x3F << 13)) == 0
    assert all(type(a) is F for a in (decode_w(word), decode_w(0), decode_g(word), decode_g(0)))


def test_codes_rise_with_what_they_stand_for():
    assert all(decode_w(code << 19) < decode_w(code + 1 << 19) for code in range(4095))
    assert all(decode_g(code << 13) < decode_g(code + 1 << 13) for code in range(63))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("w", [1 / 3, -0.123456, 1.999, 4.7e-6, -5000.123, 1.9e-6, -1e-7, 2e-8])
def test_the_mean_of_all_roundings_is_the_weight(w):
    w = F(w * 2.0**-108) / F(2.0**-108)  # the last bits of the smallest ones are lost before they are rounded at random
    decoded = [decode_w(encode_w(w, r)) for r in range(65536)]
    assert len(set(decoded)) == 2
    assert sum(map(float, decoded)) / 65536 == w  # in float64, all of these sums are exact


@pytest.mark.parametrize("g", [2.3e-5, 1 / 3, 1.999, 777.7, 40000.0])
def test_the_mean_of_all_roundings_is_the_g(g):
    g = (F(g).view(np.uint32) & np.uint32(0xFFFFF000)).view(F)  # so that the low 12 bits of r do not matter
    decoded = [float(decode_g(encode_g(g, r))) for r in range(0, 2**22, 4096)]
    assert len(set(decoded)) == 2
    assert np.mean(decoded) == pytest.approx(g, rel=2.0**-9)
    assert g < 2.0**-15 or np.mean(decoded) == g


@pytest.mark.parametrize("r", [0, 65535])
@pytest.mark.parametrize("w", [8160, 8161, 1e9, 3e38, math.inf])
def test_large_weights_saturate(w, r):
    assert decode_w(encode_w(F(w), r)) == LARGEST_W
    assert decode_w(encode_w(F(-w), r)) == -LARGEST_W


def test_weights_that_become_0_have_no_sign():
    for w in (2.9e-8, 1e-9, 1e-40, 0.0):  # the smallest weight that has a code is 2**-25
        assert encode_w(F(-w), 0) == 0
    assert encode_w(F(-1e-9), 65535) == 1 << 31 | 1 << 19
    assert encode_w(F(-1e-40), 65535) == 0


@pytest.mark.parametrize("r", [0, 2**22 - 1])
def test_gs_saturate_at_both_ends(r):
    for g in (LARGEST_G, F(5e4), F(1e9), F(math.inf)):
        assert encode_g(g, r) == 63 << 13
    for g in (F(0), F(1e-40), F(1e-9), F(2.0**-16)):
        assert encode_g(g, r) == 1 << 13


def test_numbers_that_are_no_numbers_have_codes():
    assert encode_w(F(math.nan), 0) == encode_w(F(math.nan), 65535) == 4095 << 19
    assert encode_g(F(math.nan), 0) == 63 << 13
    assert encode_g(np.uint32(0xFFC00000).view(F), 2**22 - 1) == 1 << 13


def test_random_bits_depend_on_the_lowest_bits_of_the_counter_alone():
    assert random_bits(5, 0, 3) == 15
    assert random_bits(5, 2, 1) == (5 + 2 * 0x9E3779B9) % 2**32
    assert random_bits(2**32 + 5, 7, 0x85EBCA6B) == random_bits(5, 7, 0x85EBCA6B) < 2**32


@pytest.mark.parametrize("g", [1e-30, 2.0**-16, 0.25, 1 / 3, 1, 2, 49152, 1e30])
def test_estimates_of_inverse_roots_are_close(g):
    assert inverse_root(F(g)) == pytest.approx(1 / math.sqrt(g), rel=0.035)
    assert inverse_root(F(0)) == 0
    assert inverse_root(F(1)).view(np.uint32) == 0x5F375A86 - 0x1FC00000


# -- learning


def test_a_long_step_of_squared_loss_ends_at_the_label():
    table = TaggedTable(4, "squared", 10.0)
    feature = hashes(1, 1)
    table.learn_block(feature, [1.0], 5, [F(0)] * 8, [1, -1, 0, 0, 0, 0, 0, 1], 3.0)
    assert table.score_block(feature, [0.5], 5) == [0.5, -0.5, 0, 0, 0, 0, 0, 0.5]
    assert (table.used, table.counter) == (3, 1)


def test_the_first_step_of_logistic_loss_is_about_the_rate():
    table = TaggedTable(4, "logistic", 0.5)
    features = hashes(2, 2)
    table.learn_block(features, [1.0, -4.0], 5, [F(0)] * 8, ONLY[3], 1.0)
    scores = table.score_block(features, [1.0, -2.0], 5)
    assert scores[3] == pytest.approx(0.5 * (1 + 2), rel=0.04)  # because inverse roots are estimated
    assert [q for q in range(BLOCK) if scores[q]] == [3]
    assert sorted(decode_g(word) for word in words_in_use(table)) == [0.25, 4]


def test_the_first_step_of_a_class():
    table = TaggedTable(4, "squared", 0.5)
    features = hashes(3, 2)
    table.update_class(features, [1.0, -2.0], 9, 4.0, -2.0, 0.0)  # the Gs are 4 and 16
    assert sorted(decode_w(word) for word in words_in_use(table)) == [-1, 1]
    assert table.score_class(features, [1.0, -2.0], 9) == 3
    assert table.score_class(features, [1.0, -2.0], 8) == 0
    assert (table.used, table.counter) == (2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_changes_without_an_active_regressor(kind):
    table = TaggedTable(2, kind, 0.5)
    table.learn_block(hashes(4, 3), [1.0] * 3, 0, [math.nan] * 8, [1] * 8, 1.0)
    table.learn_block(hashes(4, 3), [1.0] * 3, 0, [F(0.25)] * 8, [0] * 8, 1.0)
    assert (table.counter, table.used) == (0, 0)
    assert not words_in_use(table)


def test_a_regressor_whose_square_underflows_does_not_learn():
    """Its slope is not 0, but its G could not grow."""
    table = TaggedTable(2, "squared", 0.5)
    weight = F(1e-40)
    table.learn_block(hashes(4, 1), [1.0], 0, [F(1 - 2.0**-12)] + [F(0)] * 7, ONLY[0], weight)
    assert (table.counter, table.used) == (0, 0)
    table.learn_block(hashes(4, 1), [1.0], 0, [F(1 - 2.0**-12)] + [F(0)] * 7, [1, 1, *ONLY[0][2:]], weight)
    assert (table.counter, table.used) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_all_numbers_are_single(kind):
    table = TaggedTable(2, kind, 0.3)
    for x in (0.1, F(0.1), np.float64(0.1), 2):
        table.learn_block(hashes(5, 1), [x], 0, [0.1] * 8, [1] * 8, 0.7)
        table.update_class(hashes(6, 1), [x], 1, 0.3, 0.1, 0.01)
        assert {type(s) for s in table.score_block(hashes(5, 1), [x], 0)} == {F}
        assert type(table.score_class(hashes(6, 1), [x], 1)) is F
    assert {type(word) for line in table.words for word in line} == {int}
    assert {type(table.slope(F(0.3), F(y))) for y in (-1, 1)} == {F}


@pytest.mark.parametrize("s", [-1000, -2, -0.5, 0, 0.5, 2, 1000])
@pytest.mark.parametrize("y", [-1, 1])
def test_slopes(s, y):
    logistic, squared = (TaggedTable(1, kind, 1.0).slope(F(s), F(y)) for kind in ("logistic", "squared"))
    assert math.isclose(logistic, -y / (1 + math.exp(min(y * s, 700))), rel_tol=1e-6, abs_tol=1e-30)
    assert squared == 2 * (min(max(s, -1), 1) - y)


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_that_occurs_twice_has_one_word(kind):
    table = TaggedTable(3, kind, 0.5)
    h = hashes(7, 1)
    table.learn_block(h * 2, [1.0, 1.0], 0, [F(0)] * 8, ONLY[2], 1.0)
    assert (table.used, table.counter) == (1, 2)
    assert table.score_block(h, [1.0], 0)[2] > 0


# -- lanes


def test_homes_are_permuted_by_the_lowest_bits_of_the_tag():
    assert [homes(8, q) for q in range(BLOCK)] == [(q, q + 8) for q in range(BLOCK)]
    assert [homes(13, q)[0] for q in range(BLOCK)] == [5, 4, 7, 6, 1, 0, 3, 2]
    assert [key(13, q) for q in range(BLOCK)] == [8, 9, 10, 11, 12, 13, 14, 15]


@pytest.mark.parametrize("tag", [8, 13, 8191])
def test_words_go_to_their_homes_while_these_are_empty(tag):
    table = TaggedTable(1, "logistic", 0.5)
    table.learn_block([hash_in_one_line(tag)], [1.0], 0, [F(0)] * 8, [1] * 8, 1.0)
    other = tag ^ 2048
    table.learn_block([hash_in_one_line(other)], [1.0], 0, [F(0)] * 8, [1] * 8, 1.0)
    for q in range(BLOCK):
        assert [table.words[0][lane] & 8191 for lane in homes(tag, q)] == [key(tag, q), key(other, q)]
    assert (table.used, table.evicted, table.refused) == (16, 0, 0)


def test_tags_are_at_least_8():
    table = TaggedTable(1, "logistic", 0.5)
    for tag in range(8):  # the homes of all of these are those of tag 8, and only one regressor has a word
        table.learn_block([hash_in_one_line(tag)], [1.0], 0, [F(0)] * 8, ONLY[2], 1.0)
        table.update_class([hash_in_one_line(tag, 9)], [1.0], 9, 1.0, -1.0, 0.0)
    assert [word & 8191 for word in table.words[0] if word] == [8, 10]
    assert find(table.words[0], 8, 2) == 2


def test_a_word_without_a_home_is_found_elsewhere():
    table = TaggedTable(1, "logistic", 0.5)
    features = [hash_in_one_line(tag) for tag in (8, 16, 24)]
    for h in features:
        table.learn_block([h], [1.0], 0, [F(0)] * 8, ONLY[4], 1.0)
    assert [find(table.words[0], tag, 4) for tag in (8, 16, 24)] == [4, 12, 0]
    before = [table.score_block([h], [1.0], 0)[4] for h in features]
    assert before == pytest.approx([0.5] * 3, rel=0.04)
    table.learn_block(features[2:], [1.0], 0, [F(0)] * 8, ONLY[4], 1.0)  # which makes no second word
    assert (table.used, table.evicted, table.refused) == (3, 0, 0)
    assert table.score_block(features[2:], [1.0], 0)[4] > before[2]


def test_of_equal_words_those_at_home_count_once_and_all_others_too():
    """Such lines are never learned, but a model file may hold them."""
    table = TaggedTable(1, "logistic", 0.5)
    same = key(8, 4) | encode_g(F(1), 0)
    for lane, w in ((4, 1), (12, 2), (0, 4), (15, 8)):
        table.words[0][lane] = same | encode_w(F(w), 0)
    assert table.score_block([hash_in_one_line(8)], [1.0], 0)[4] == 1 + 4 + 8
    table.words[0][4] = 0
    assert table.score_block([hash_in_one_line(8)], [1.0], 0)[4] == 2 + 4 + 8
    assert find(table.words[0], 8, 4) == 12
    table.words[0][12] = 0
    assert find(table.words[0], 8, 4) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_lines_have_no_word_twice_and_all_are_counted(kind):
    table, _ = fill(kind, 2, 30, 3)
    assert table.evicted > 0
    assert table.refused > 0
    assert table.used == len(words_in_use(table)) == 4 * LANES
    for line in table.words:
        assert len({word & 8191 for word in line}) == LANES
    assert all(word >> 13 & 63 for word in words_in_use(table))


# -- eviction: a line is full of words whose G is 4, but for one whose G is 2; its lane is `weakest`


def full_of_classes():
    table = TaggedTable(1, "squared", 0.5)
    for tag in range(8, LANES + 8):
        table.update_class([hash_in_one_line(tag)], [1.0], 0, 2.0 if tag == 13 else 4.0, -1.0, 0.0)
    assert (table.used, table.evicted, table.refused) == (LANES, 0, 0)
    return table, 5


def full_of_blocks():
    table = TaggedTable(1, "squared", 0.5)
    for tag in (8, 16):
        weights = [0.5 if (tag, q) == (16, 6) else 1.0 for q in range(BLOCK)]
        for q in range(BLOCK):  # the squared slope is 4
            table.learn_block([hash_in_one_line(tag)], [1.0], 0, [F(0)] * 8, ONLY[q], weights[q])
    assert (table.used, table.evicted, table.refused) == (LANES, 0, 0)
    return table, 14


@pytest.mark.parametrize("g", [0.5, 1.75, 1.99, 2.0, 3.0])
def test_a_class_replaces_the_weakest_word_if_its_g_is_not_smaller(g):
    table, weakest = full_of_classes()
    before = list(table.words[0])
    feature = [hash_in_one_line(100)]
    table.update_class(feature, [1.0], 0, g, -1.0, 0.0)
    changed = [lane for lane in range(LANES) if table.words[0][lane] != before[lane]]
    if g < 2:
        assert (changed, table.evicted, table.refused) == ([], 0, 1)
        assert table.score_class(feature, [1.0], 0) == 0
    else:
        assert (changed, table.evicted, table.refused) == ([weakest], 1, 0)
        assert math.isclose(table.score_class(feature, [1.0], 0), 1 / math.sqrt(g), rel_tol=1 / 128)
        assert table.score_class([hash_in_one_line(weakest + 8)], [1.0], 0) == 0
    assert table.used == LANES
    assert table.lost == 1
    assert table.counter == LANES + 1


@pytest.mark.parametrize("weight", [0.125, 0.49, 0.5, 0.75])
def test_a_regressor_replaces_the_weakest_word_if_its_g_is_not_smaller(weight):
    table, weakest = full_of_blocks()
    before = list(table.words[0])
    feature = [hash_in_one_line(800)]
    table.learn_block(feature, [1.0], 0, [F(0)] * 8, ONLY[1], weight)
    changed = [lane for lane in range(LANES) if table.words[0][lane] != before[lane]]
    if weight < 0.5:
        assert (changed, table.evicted, table.refused) == ([], 0, 1)
        assert table.score_block(feature, [1.0], 0) == [0] * 8
    else:
        assert (changed, table.evicted, table.refused) == ([weakest], 1, 0)
        assert table.score_block(feature, [1.0], 0)[1] > 0
        assert table.score_block([hash_in_one_line(16)], [1.0], 0)[6] == 0
    assert table.used == LANES


def test_of_equally_weak_words_the_lowest_lane_is_replaced():
    table = TaggedTable(1, "squared", 0.5)
    for tag in range(8, LANES + 8):
        table.update_class([hash_in_one_line(tag)], [1.0], 0, 4.0, -1.0, 0.0)
    table.update_class([hash_in_one_line(100)], [1.0], 0, 4.0, -1.0, 0.0)
    assert [word & 8191 for word in table.words[0]] == [100, *range(9, LANES + 8)]


@pytest.mark.parametrize(("s", "own", "counts"), [(0.5, 801, (1, 1)), (0.0, 803, (2, 0))])
def test_regressors_of_one_feature_replace_words_in_turn(s, own, counts):
    """The first one takes the only weak word; the second one is refused if its g is smaller, or else takes it again."""
    table, weakest = full_of_blocks()
    feature = [hash_in_one_line(800)]
    table.learn_block(feature, [1.0], 0, [0, 0, 0, s, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0, 0, 0], 0.75)
    assert table.words[0][weakest] & 8191 == own
    assert (table.evicted, table.refused) == counts
    assert [q for q, score in enumerate(table.score_block(feature, [1.0], 0)) if score] == [own - 800]


def test_a_word_that_is_replaced_within_an_example_is_not_moved():
    """The second feature takes the word of the first one, and only the second one is learned."""
    table, weakest = full_of_blocks()
    first, second = hash_in_one_line(800), hash_in_one_line(1600)
    table.learn_block([first, second], [1.0, 1.25], 0, [F(0)] * 8, ONLY[1], 0.5)
    assert (table.evicted, table.refused) == (2, 0)
    assert table.words[0][weakest] & 8191 == 1601
    assert table.score_block([first], [1.0], 0) == [0] * 8
    assert table.score_block([second], [1.0], 0)[1] > 0


def test_refused_features_leave_all_scores():
    table, _ = full_of_blocks()
    old = [hash_in_one_line(8), hash_in_one_line(16)]
    new = [hash_in_one_line(tag) for tag in (800, 1600, 2400)]
    xs = [1.0, 0.5, 0.25, 0.25, 0.25]
    before = table.score_block(old + new, xs, 0)
    assert any(before)
    table.learn_block(new, xs[2:], 0, [F(0)] * 8, [1, -1] * 4, 1.0)
    assert (table.refused, table.evicted) == (24, 0)
    assert table.score_block(old + new, xs, 0) == before


# -- classes


def test_the_words_of_an_example_are_read_once():
    """A second step goes on from what the first one left; a feature that was refused a word begins at 0 again."""
    table, _ = full_of_classes()
    known, refused = hash_in_one_line(8), hash_in_one_line(100)
    read = table.read([known, refused], [1.0, 0.5], 0)
    assert read == [(decode_w(table.words[0][0]), 4), (0, 0)]
    table.update_class([known, refused], [1.0, 0.5], 0, 4.0, -1.0, 0.0, read)
    assert read == [(decode_w(table.words[0][0]), 8), (0, 0)]
    assert table.score_class([known, refused], [1.0, 0.5], 0) == read[0][0]
    table.update_class([known, refused], [1.0, 4.0], 0, 4.0, -1.0, 0.0, read)
    assert read == table.read([known, refused], [1.0, 4.0], 0)
    assert read[0][1] == 12 and read[1][1] == 64
    assert (table.refused, table.evicted, table.counter) == (1, 1, LANES + 4)


def test_a_class_goes_on_from_the_weights_that_were_read_if_another_feature_took_its_word():
    table, weakest = full_of_classes()
    first, second = hash_in_one_line(100), hash_in_one_line(weakest + 8)
    read = table.read([first, second], [1.0, 2.0], 0)
    w, g = read[1]
    assert w != 0 and g == 2
    table.update_class([first, second], [1.0, 2.0], 0, 3.0, -1.0, 0.0, read)
    assert (table.evicted, table.refused) == (2, 0)  # the first takes the word of the second, which takes it again
    assert table.score_class([first], [1.0], 0) == 0
    assert table.score_class([second], [1.0], 0) == read[1][0] == pytest.approx(w + 2 / math.sqrt(14), rel=1 / 64)


# -- doubling


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("base", "features", "seed", "crowded"), [(7, 20, 2, False), (2, 40, 0, True), (1, 20, 0, True)]
)
def test_doubling_keeps_all_scores(kind, base, features, seed, crowded):
    table, pairs = fill(kind, base, features, 3, seed)
    assert (table.evicted > 0) == crowded
    assert (table.refused > 0) == crowded
    before = [table.score_block([h], [1.0], block) for h, block in pairs]
    words = sorted(words_in_use(table))
    assert sum(map(any, before)) > 5
    assert table.lost == table.evicted + table.refused
    for doublings in range(1, MOST_DOUBLINGS + 1):
        table.double()
        assert (table.doublings, table.lost) == (doublings, 0)
        assert [len(line) for line in table.words] == [LANES] * 2 ** (base + doublings)
        assert sorted(words_in_use(table)) == words
        assert [table.score_block([h], [1.0], block) for h, block in pairs] == before
    with pytest.raises(ValueError, match="7 doublings"):
        table.double()


def test_doubling_keeps_words_that_are_not_at_home():
    table = TaggedTable(1, "logistic", 0.5)
    features = [hash_in_one_line(tag) for tag in (8, 16, 24)]
    for h in features:
        table.learn_block([h], [1.0], 0, [F(0)] * 8, ONLY[4], 1.0)
    before = [table.score_block([h], [1.0], 0) for h in features]
    assert all(scores[4] for scores in before)
    for _ in range(MOST_DOUBLINGS):
        table.double()
        assert [table.score_block([h], [1.0], 0) for h in features] == before


def test_doubling_keeps_the_scores_of_classes():
    table = TaggedTable(3, "squared", 0.5)
    pairs = [(h, label) for h in hashes(8, 20) for label in range(1, 4)]
    pairs += [(hash_with(z << 48, 7), 7) for z in (0, 1 << 13, 5 << 13 | 7, 1 << 13 | 1 << 8)]  # tags 8, 8, 8 and 256
    for h, label in pairs:
        table.update_class([h], [1.0], label, 1.0, -0.5, 0.1)
    before = [table.score_class([h], [1.0], label) for h, label in pairs]
    assert all(before)
    assert table.evicted == table.refused == 0
    for _ in range(MOST_DOUBLINGS):
        table.double()
        assert [table.score_class([h], [1.0], label) for h, label in pairs] == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_made_with_doublings_is_one_that_was_doubled(kind):
    """Lines with few words, in which all are at home, are the same whether words come before or after doubling."""
    doubled, made = TaggedTable(6, kind, 0.5), TaggedTable(6, kind, 0.5, doublings=MOST_DOUBLINGS)
    for table in (doubled, made):
        for block, h in enumerate(hashes(9, 4)):
            table.learn_block([h], [1.5], block, [F(0.25)] * 8, [1, -1, 0, 1, 0, 1, -1, 0], 1.0)
    for _ in range(MOST_DOUBLINGS):
        doubled.double()
    assert doubled.words == made.words
    assert len(words_in_use(made)) == 20


def test_single_lines_too_many_doublings_and_unknown_losses_are_refused():
    with pytest.raises(ValueError, match="1 line"):
        TaggedTable(0, "squared", 0.5)
    with pytest.raises(ValueError, match="7 doublings"):
        TaggedTable(3, "squared", 0.5, doublings=7)
    with pytest.raises(ValueError, match="hinge"):
        TaggedTable(3, "hinge", 0.5)
