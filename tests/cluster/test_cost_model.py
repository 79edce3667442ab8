"""The cost model: what it predicts from unit costs, and that bytes of small runs are as predicted."""

from __future__ import annotations

import math

import pytest
from streams import multiclass

from scripts.cluster import cost_model, runs, unit_costs

pytestmark = pytest.mark.slow

UNITS = unit_costs.AverageUnits(
    learn=1e-3, unpack=0.5, merge=0.01, store=0.25, model=1000.0, seen=100.0, growth=0.0, changes=100.0
)


@pytest.mark.parametrize(("workers", "rounds"), [(1, 10), (2, 6), (4, 4), (100, 2)])
def test_rounds_after_the_first_are_shared(workers, rounds):
    assert cost_model.rounds_of(1000, workers, 100) == rounds


def test_driver_merges_the_parts_of_every_round_but_the_first():
    made = cost_model.average_cost(UNITS, 2.0, 1000, 4, 100)
    assert made.driver_cpu == 3 * 0.25 + 900 * 100 * 0.01
    assert made.worker_cpu == pytest.approx(2.0 + 250 * 1e-3 + 3 * 0.5)
    assert made.received == 3000.0
    assert cost_model.average_cost(UNITS, 2.0, 1000, 1, 100).driver_cpu == 0


def test_models_grow_from_round_to_round():
    made = cost_model.average_cost(UNITS._replace(growth=1.0), 2.0, 1000, 4, 100)
    assert made.received == pytest.approx(1000.0 * (1 + 5 + 9))
    assert made.driver_cpu == pytest.approx((1 + 5 + 9) * 0.25 + 900 * 100 * 0.01)


def test_more_classes_make_paths_longer_and_models_larger():
    given = cost_model.Assumptions(classes=1e8, model=5000.0)
    units = cost_model.scaled(UNITS, given)
    assert units.learn == pytest.approx(2 * UNITS.learn)  # of 10^4 classes
    assert units.model == 5000.0 and units.store == 5 * UNITS.store and units.merge == UNITS.merge


def test_a_large_round_adds_up():
    given = cost_model.Assumptions(machines=100, bandwidth=1000.0)
    one = cost_model.large_round(UNITS, 1e5, given)
    assert one.transport == 7.0 + 100.0  # changes are at most the model
    assert one.total == pytest.approx(1e5 * 1e-3 + 0.5 + 107.0 + 100 * 1000 * 0.01 + 0.25)
    assert cost_model.large_round(UNITS, 1.0, given).transport == 7.0 + 10.0


def test_extrapolation_is_shown(capsys):
    cost_model.report_large(UNITS, cost_model.Assumptions())
    text = capsys.readouterr().out
    assert "1e+10 examples, 1e+06 classes, 100 machines" in text
    assert "| N = 1e+06 | 101 |" in text
    assert "nan" not in text


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.vw"
    path.write_text(multiclass(1, 20, 2000))
    return path


def test_bytes_of_averaging_are_as_predicted(cluster, data, tmp_path):
    words = ["--oaa", "20", "-b", "12"]
    units = unit_costs.average_units(words, data, 100)
    cluster_words = ["--workers", "2", "--sync_every", "100", "--ray", cluster.address]
    made = runs.learn("many", [*words, *cluster_words], data, tmp_path)
    expected = cost_model.average_cost(units, 0.0, 2000, 2, 100)
    mean = cost_model.mean_cost(made)
    assert mean.received == pytest.approx(expected.received, rel=0.25)
    assert mean.sent == pytest.approx(expected.sent, rel=0.25)
    assert math.isfinite(units.learn) and units.model > 0
