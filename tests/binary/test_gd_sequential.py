"""Subproblems one after the other: the numbers of `gd.score` and `gd.learn`, to the last bit."""

import numpy as np
import pytest
from harness import batch_of, configure
from streams import all_sizes

from xclass.binary import finite, gd, gd_sequential

F = np.float32


WORDS = [
    (),
    ("--loss_function", "logistic"),
    ("--loss_function", "hinge", "--label_range", "seen"),
    ("--loss_function", "quantile", "-l", 0.1),
    ("--loss_function", "classic", "--initial_t", 2, "--initial_weight", 0.1),
    ("--sgd", "-l", 0.1),
    ("--adaptive", "-l", 0.1),
    ("--power_t", 0.3),
    ("--l1", 1e-3, "--l2", 1e-3),
    ("--noconstant", "-b", 3),
]


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(map(str, words)) or "defaults")
def test_fast_path_gives_the_same_bits(words):
    config = configure("--oaa", 4, *(() if "-b" in words else ("-b", 8)), *words)
    rule = gd.make_rule(config.learner, reduction=True)
    batch = batch_of(config, all_sizes(len(words), 60))
    guard = finite.StepGuard(np.zeros(1, np.int64), np.zeros(batch.n, np.uint8), finite.ordinary_value_range(batch.n))
    finite.survey(batch, np.ones(batch.n, bool), False, np.inf, True, guard.skipped, guard.value_range)
    plain, quick = (gd.new_table(rule, config.learner.bits, 5, 12)._replace(guard=guard) for _ in range(2))
    row = gd_sequential.new_row(batch)
    rng = np.random.default_rng(3)
    tiny = 0.25 if "--power_t" in words else 1e-45  # 0 to a negative power is an error in Python, infinity in kernels
    ways = set()
    for i in range(batch.n):
        count, fast = gd_sequential.load(row, quick, rule, batch, i)
        ways.add(bool(fast))
        part = slice(batch.start[i], batch.start[i + 1])
        place, x = batch.index[part].astype(np.uint64) * np.uint64(12), batch.value[part]
        assert np.array_equal(row.place[:count], place) and np.array_equal(row.x[:count], x)
        for sub in rng.permutation(5)[:3].astype(np.uint64):
            y, weight = F(rng.choice([-1, 1])), F(rng.choice([0, tiny, 0.5, 1, 3]))
            assert gd_sequential.score(row, quick, count, sub) == gd.score(plain, place, x, count, sub, F(0))
            if rule.widen:
                gd.widen(plain.range, y)
            p = F(gd.clip(F(gd.score(plain, place, x, count, sub, F(0))), plain.range))
            if weight > 0:
                gd.learn(plain, rule, place, x, count, sub, p, y, weight, float(i))
            after = gd.score(plain, place, x, count, sub, F(0))
            result = gd_sequential.update(row, quick, rule, count, fast, sub, y, weight, float(i))
            assert result == after or (np.isnan(result) and np.isnan(after)), i
    assert plain.flat.reshape(-1, 4)[:, :3].tobytes() == quick.flat.reshape(-1, 4)[:, :3].tobytes()
    assert plain.sums.tobytes() == quick.sums.tobytes() and plain.range.tobytes() == quick.range.tobytes()
    default = not {"--sgd", "--adaptive", "--power_t", "--l1"} & set(words)
    assert ways == ({False, True} if default else {False})


def test_features_that_share_a_slot_are_found():
    config = configure("--oaa", 4, "-b", 8, "--noconstant")
    rule = gd.make_rule(config.learner, reduction=True)
    guard = finite.StepGuard(np.zeros(1, np.int64), np.zeros(5, np.uint8), finite.ordinary_value_range(5))
    table = gd.new_table(rule, 8, 4, 4)._replace(guard=guard)
    batch = batch_of(config, "1 |f a b c\n1 |f a b a\n1 |f\n1 |f b c\n1 | 1 65\n")  # 64 places of four
    row = gd_sequential.new_row(batch)
    ways = [gd_sequential.load(row, table, rule, batch, i)[1] for i in range(5)]
    assert ways == [True, False, True, True, False]
