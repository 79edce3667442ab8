"""The binary learner: lanes against scalars, layouts, and what a table keeps."""

import mmap

import numpy as np
import pytest
from archives import saved

from xclass.api.learner import Learner
from xclass.binary import gd, update_rule
from xclass.errors import UsageError
from xclass.system import memory

F = np.float32


def options(**given):
    return gd.BinaryOptions(
        **{"bits": 12, "learning_rate": 0.5, "initial_t": 0.0, "loss_function": "logistic", **given}
    )


def features(rng, width, count):
    place = rng.integers(0, 2**32, count).astype(np.uint64) * np.uint64(width)
    x = rng.choice([0.5, 1, 2, -3], count).astype(np.float32)
    return place, x


@pytest.mark.parametrize("given", [{}, {"loss_function": "squared"}, {"adaptive": True, "learning_rate": 1.0}])
def test_lanes_do_what_single_sub_problems_do(given):
    rng = np.random.default_rng(5)
    rule = gd.make_rule(options(label_range="known", **given), reduction=True)
    width = gd.odd_width(20)
    single = gd.new_table(rule, 20, 20, width)
    lanes = gd.new_table(rule, 20, 20, width)
    scratch = gd.new_lanes(20)
    out = np.empty(20, F)
    for _ in range(200):
        place, x = features(rng, width, 6)
        subs = rng.permutation(20)[: rng.integers(1, 20)].astype(np.uint64)
        labels = rng.choice([-1, 1], len(subs)).astype(F)
        weight = F(rng.choice([0.25, 1, 3]))
        scratch.sub[: len(subs)] = subs
        scratch.y[: len(subs)] = labels
        gd.score_lanes(lanes, place, x, len(x), scratch.sub, len(subs), out)
        for j, sub in enumerate(subs):
            s = gd.score(single, place, x, len(x), sub, F(0))
            assert s == out[j]
            scratch.p[j] = gd.clip(F(s), lanes.range)
            gd.learn(single, rule, place, x, len(x), sub, scratch.p[j], labels[j], weight, 1.0)
        gd.learn_lanes(lanes, rule, place, x, len(x), len(subs), scratch, weight, 1.0)
    assert np.array_equal(single.flat, lanes.flat)
    assert np.array_equal(single.sums, lanes.sums)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow", "ignore:invalid value")  # without compiling
def test_lanes_with_an_infinite_rate_do_not_move():
    """The square of a feature's first value underflows where almost no precision is lost: G is still 0."""
    rule = gd.make_rule(options(), reduction=True)
    single, lanes = (gd.new_table(rule, 10, 3, 4) for _ in range(2))
    scratch = gd.new_lanes(3)
    place, x = np.array([0, 40], np.uint64), np.array([1.0, 1e-30], F)
    p, y = np.array([10.0, -10.0, 0.5], F), np.array([1, -1, 1], F)
    scratch.sub[:3], scratch.p[:3], scratch.y[:3] = (0, 1, 2), p, y
    for j in range(3):
        gd.learn(single, rule, place, x, 2, np.uint64(j), p[j], y[j], F(1), 1.0)
    gd.learn_lanes(lanes, rule, place, x, 2, 3, scratch, F(1), 1.0)
    assert np.isfinite(single.flat[::4]).all()
    assert (single.flat[::4] != 0).any()
    assert np.array_equal(single.flat, lanes.flat)


def test_planes_and_slots_hold_the_same_weights():
    rng = np.random.default_rng(6)
    rule = gd.make_rule(options(label_range="known"), reduction=True)
    slots, planes = (gd.new_table(rule, 12, 4, 5, planes=p) for p in (False, True))
    for i in range(100):
        place, x = features(rng, 5, 4)
        sub, y = np.uint64(i % 4), F(1 if i % 3 else -1)
        for table in (slots, planes):
            p = F(gd.clip(F(gd.score(table, place, x, 4, sub, F(0))), table.range))
            gd.learn(table, rule, place, x, 4, sub, p, y, F(1), 1.0)
    a, b = (saved(gd.serialize_table, "t", table, rule, options()) for table in (slots, planes))
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(np.asarray(a[name]), np.asarray(b[name]))


@pytest.mark.parametrize("subs", [1, 3, 4, 5, 100, 1000, 3497])
def test_odd_width_gives_every_feature_a_place_of_its_own(subs):
    width = gd.odd_width(subs)
    assert width >= subs
    assert width % 8 == 4
    lines = (np.arange(1 << 10) * width) % (4 << 10) // 4  # cache lines of a table of 2**12 slots
    assert len(set(lines.tolist())) == 1 << 10


def test_vw_width_is_the_next_power_of_two():
    assert [gd.vw_width(n) for n in (1, 2, 3, 4, 5, 1000, 1024)] == [1, 2, 4, 4, 8, 1024, 1024]


def test_named_update_rules_switch_off_the_others_and_change_the_rate():
    def config(**given):
        o = gd.BinaryOptions(bits=10, **given)
        return gd.resolve_defaults(o, 10, reduction=True)

    assert config()["learning_rate"] == 0.5
    assert config(sgd=True)["learning_rate"] == 10
    assert config(sgd=True)["initial_t"] == 1
    assert config(adaptive=True)["learning_rate"] == 10
    assert config(adaptive=True)["initial_t"] == 0
    assert config(adaptive=True, normalized=True)["learning_rate"] == 0.5
    rule = gd.make_rule(options(sgd=True, label_range="seen"), reduction=True)
    assert not (rule.adaptive or rule.normalized or rule.invariant)


def test_table_size_follows_the_number_of_classes():
    sizes = [gd.resolve_defaults(gd.BinaryOptions(), k, reduction=True)["bits"] for k in (10, 1000, 10_000, 10**6)]
    assert sizes[0] == update_rule.MIN_BITS
    assert sizes == sorted(sizes)
    assert sizes[-1] <= update_rule.MAX_BITS


def test_table_that_cannot_fit_is_refused_with_the_largest_that_does(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 100 << 20)
    with pytest.raises(
        UsageError, match=r"-b 24 needs 256 MB for the weights, but only 100 MB of memory are free; .* -b 22"
    ):
        gd.check_memory(24)
    gd.check_memory(22)
    with pytest.raises(
        UsageError, match=r"bits 26 needs .* MB for the weights and 64 MB .*; the largest that fits is bits 21"
    ):
        Learner("multiclass", bits=26)
    Learner("multiclass", bits=21).close()


def test_table_of_default_size_leaves_three_quarters_of_the_memory_free(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 64 << 20)
    assert gd.resolve_defaults(gd.BinaryOptions(), 100_000, reduction=True)["bits"] == 20


@pytest.mark.skipif(not hasattr(mmap, "MADV_NOHUGEPAGE"), reason="the system has no huge pages")
def test_a_table_for_prediction_takes_memory_for_the_pages_in_use():
    def resident() -> int:
        with open("/proc/self/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Rss:")) << 10

    rule = gd.make_rule(options(bits=24), reduction=True)
    before = resident()
    table = gd.new_table(rule, 24, 1, 1, weights_only=True)
    gd.columns(table)["w"][:: 1 << 20] = 1
    assert table.stride == 1
    assert resident() - before < 4 << 20  # of 256 MB; huge pages would take 32 MB
