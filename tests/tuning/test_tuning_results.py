"""Losses by chunk: their mean, the difference of two settings, and the file that keeps them."""

import numpy as np
import pytest

from xclass.tuning import results
from xclass.tuning.results import CHUNKS, Results, SettingResult, Span
from xclass.tuning.settings import Setting

SPAN = Span(((0, 800),), (800, 1200))


def drawn(rng, probability, shared=None):
    """Return the result of a setting that is wrong with a probability, and which of 400 * CHUNKS examples are wrong."""
    noise = rng.random(400 * CHUNKS) if shared is None else shared
    wrong = noise < probability
    return SettingResult(wrong.reshape(CHUNKS, -1).sum(axis=1).astype(float), np.full(CHUNKS, 400.0), 1.0), wrong


def test_the_standard_error_is_that_of_independent_examples():
    rng = np.random.default_rng(1)
    one, wrong = drawn(rng, 0.3)
    assert one.loss == pytest.approx(wrong.mean())
    nothing = one._replace(sums=np.zeros(CHUNKS))
    assert results.difference(one, nothing) == pytest.approx((one.loss, np.sqrt(0.3 * 0.7 / wrong.size)), rel=0.3)


def test_the_difference_is_paired():
    rng = np.random.default_rng(2)
    shared = rng.random(400 * CHUNKS)
    one, first = drawn(rng, 0.30, shared)
    other, second = drawn(rng, 0.29, shared)
    lost, error = results.difference(one, other)
    assert lost == pytest.approx(first.mean() - second.mean())
    independent, _ = drawn(rng, 0.29)
    assert error < 0.3 * results.difference(one, independent)[1]  # most errors are the same ones


def test_joined_results_weigh_every_example_alike():
    rng = np.random.default_rng(3)
    one, other = drawn(rng, 0.2)[0], drawn(rng, 0.6)[0]
    assert results.joined([one, other]).loss == pytest.approx((one.loss + other.loss) / 2)
    assert results.joined([one, results.failure("no memory")]).failed == "no memory"


class Space:
    """Settings that are named by their changes."""

    default, metric = Setting("oaa", 3), "error"

    def name(self, setting):
        return self.text(setting)

    def text(self, setting):
        return " ".join(f"--{field} {value}" for field, value in setting.changes) or "(defaults)"


def constant(loss):
    """Return the result of a setting with this loss on every chunk of ten examples."""
    return SettingResult(np.full(CHUNKS, 10 * loss), np.full(CHUNKS, 10.0), 1.0)


def test_every_row_is_compared_with_the_defaults_on_the_same_examples():
    default = Space.default
    best, other = default.changed("passes", 8), default.changed("ngram", 2)
    tail, fold = Span(((0, 3600),), (3600, 4000)), Span(((0, 3200), (3600, 4000)), (3200, 3600))
    found = {
        ("(defaults)", tail): constant(0.5), ("(defaults)", fold): constant(0.3), ("--ngram 2", tail): constant(0.45),
        ("--passes 8", tail): constant(0.4), ("--passes 8", fold): constant(0.28), ("--trees 8", tail): constant(0.6),
    }  # fmt: skip
    rows = results.rows(Space(), [default, best, other], found)
    others = [row for row in rows if row.setting != default]
    assert [(row.setting, row.compared, row.of_defaults.loss) for row in others] == [
        (best, 800, pytest.approx(0.4)), (other, 400, 0.5),
    ]  # fmt: skip
    assert all(row.difference[0] == pytest.approx(row.result.loss - row.of_defaults.loss) for row in others)
    lines = results.table(Space(), rows, best, known=4)
    assert " ".join(lines[1].split()) == "* 0.3400 0.4000 -0.0600 +/- 0.0045 800 3,600 1.0 --passes 8"
    assert "  and 1 more setting" in lines and "The best of 4 settings" in lines[-2]
    assert "The best" not in "".join(results.table(Space(), rows, default, known=3))


def test_a_failed_setting_has_no_loss():
    assert results.failure("x").loss == np.inf


def test_results_are_kept_and_read_again(tmp_path):
    path = str(tmp_path / "state")
    one = drawn(np.random.default_rng(4), 0.5)[0]
    kept = Results(path, {"data": ["a"]})
    kept.add("--oaa 3", SPAN, one)
    kept.add("--oaa 3 -l 1", SPAN, results.failure("its losses are not finite"))
    kept.write()
    again = Results(path, {"data": ["a"]})
    assert again.resumed == len(again.found) == 2
    found = again.found["--oaa 3", SPAN]
    assert found.loss == one.loss and found.seconds == one.seconds
    assert again.found["--oaa 3 -l 1", SPAN].failed == "its losses are not finite"
