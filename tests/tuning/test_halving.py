"""Successive halving, with results that are computed from the settings at once."""

import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from xclass.tuning import results, search
from xclass.tuning.results import CHUNKS, SettingResult
from xclass.tuning.search import Halving
from xclass.tuning.settings import Setting

DEFAULT = Setting("multiclass", 0)
N = 100_000
NOISE = 0.002


class Line:
    """A space of settings with the options a, b and c, whose values are 1 to 9 and 5 by default."""

    default, stream = DEFAULT, SimpleNamespace(n=N)

    def first(self):
        return [DEFAULT, *(DEFAULT.changed(field, value) for value in (3, 7) for field in "abc")]

    def searches(self, reduction):
        return dict.fromkeys("abc")

    def near(self, setting, rng):
        return setting.changed(rng.choice("abc"), rng.randint(1, 9))

    def passes(self, setting):
        return 1

    def is_valid(self, setting):
        return True


class Computed:
    """Results whose loss is `loss(setting)` and falls with the number of examples; time passes only by learning."""

    def __init__(self, loss, seconds=1e-5, budget=1e9, failing=()):
        self.loss, self.seconds, self.budget, self.failing = loss, seconds, budget, set(failing)
        self.workers, self.reserve, self.used, self.patience = 2, 0.0, 0.0, 0.0
        self.tried, self.found, self.sizes = {}, {}, {}

    @property
    def time_left(self):
        return max(0.0, self.budget - self.reserve - self.used)

    def known(self, setting, span):
        return self.found.get((setting, span))

    def learned(self, setting):
        return self.sizes.get(setting, 0)

    def keep_only(self, settings):
        self.sizes = {setting: size for setting, size in self.sizes.items() if setting in settings}

    def compute(self, settings, span):
        for setting in settings:
            self.tried[setting] = None
            if (setting, span) in self.found or not self.time_left:
                continue
            start = self.learned(setting) if len(span.learned) == 1 else 0
            self.used += (span.size - start) * self.seconds / self.workers
            self.sizes[setting] = span.size
            if setting in self.failing:
                self.found[setting, span] = results.failure("its losses are not finite", span.size * self.seconds)
                continue
            rng = np.random.default_rng(zlib.crc32(repr((setting.changes, span)).encode()))
            mean = self.loss(setting) + 3 / np.sqrt(span.size) + rng.normal(0, NOISE, CHUNKS)
            self.found[setting, span] = SettingResult(mean * 100, np.full(CHUNKS, 100.0), span.size * self.seconds)


def distance(setting):
    """Return a loss that is least for a = 3, b = 8 and c = 5."""
    values = {"a": 5, "b": 5, "c": 5, **setting.values}
    return 0.1 + 0.01 * (abs(values["a"] - 3) + abs(values["b"] - 8) + abs(values["c"] - 5))


def searched(monkeypatch, evaluator, most=None, trains=False):
    """Return the best setting, and the search; the clock shows the time that learning took."""
    monkeypatch.setattr(search.time, "monotonic", lambda: evaluator.used)
    halving = Halving(Line(), evaluator, 0, most, trains)
    return halving.run(), halving


def test_the_best_setting_is_found(monkeypatch):
    evaluator = Computed(distance)
    best, _ = searched(monkeypatch, evaluator)
    assert distance(best) <= 0.11 < distance(DEFAULT)


def test_the_better_half_goes_on(monkeypatch):
    evaluator = Computed(distance)
    _, search = searched(monkeypatch, evaluator, most=7)
    counts = [sum(span.learned[0] == (0, size) for _, span in evaluator.found) for size in search._sizes]
    assert counts[:3] == [7, 4, 3] and len(search._sizes) == 4
    whole = search._sizes[-1]
    assert whole == 90_000 and all(
        after == pytest.approx(2 * size, abs=1) for size, after in zip(search._sizes, search._sizes[1:], strict=False)
    )
    assert {setting for setting, span in evaluator.found if span.learned == ((0, whole),)} >= {DEFAULT}


def test_the_defaults_win_if_nothing_is_better(monkeypatch):
    evaluator = Computed(lambda setting: 0.2 + 0.0001 * bool(setting.changes))
    assert searched(monkeypatch, evaluator)[0] == DEFAULT


def test_a_search_is_repeatable(monkeypatch):
    one, other = Computed(distance), Computed(distance)
    assert searched(monkeypatch, one)[0] == searched(monkeypatch, other)[0]
    assert list(one.found) == list(other.found)


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.3, 1.0, 2.0, 5.0, 20.0])
def test_the_time_is_kept(monkeypatch, budget):
    """The default setting learns from all examples in one second."""
    evaluator = Computed(distance, seconds=1e-5, budget=budget)
    best, _ = searched(monkeypatch, evaluator, trains=True)
    if budget >= 2:
        assert evaluator.used <= budget
        assert evaluator.budget - evaluator.used >= 0.5 or best == DEFAULT  # to train the model
    if budget >= 5:
        assert distance(best) < distance(DEFAULT)
    if budget == 0:
        assert best == DEFAULT


def test_settings_that_fail_are_left_out(monkeypatch):
    failing = [DEFAULT.changed("a", 3), DEFAULT.changed("b", 7)]
    best, _ = searched(monkeypatch, Computed(distance, failing=failing))
    assert best not in failing and distance(best) < distance(DEFAULT)


def test_the_defaults_may_fail(monkeypatch):
    best, _ = searched(monkeypatch, Computed(distance, failing=[DEFAULT]), most=7)
    assert best in Line().first() and best != DEFAULT


def test_settings_may_fail_late(monkeypatch):
    late = {setting for setting in Line().first() if distance(setting) <= distance(DEFAULT)}
    for failing in (late, late - {DEFAULT}, {DEFAULT}):
        evaluator = Computed(distance)
        known = evaluator.known

        def failed_late(setting, span, failing=failing, known=known):
            result = known(setting, span)
            if result is None or setting not in failing or span.size < 0.8 * N:
                return result
            return results.failure("it takes too long for --time", 1.0)

        evaluator.known = failed_late
        best, search = searched(monkeypatch, evaluator, most=7)
        assert search._ranking() and best in Line().first()


def test_no_more_settings_than_allowed_are_tried(monkeypatch):
    evaluator = Computed(distance)
    searched(monkeypatch, evaluator, most=10)
    assert len(evaluator.tried) == 10
