"""Columns of numbers are distinguished from text and scaled; nothing else is scaled."""

import itertools
import math
import random

import numpy as np
import pytest
from command import learn, xclass
from harness import batch_of_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from library import summary_of

from tests.oracles import feature_scales as oracle
from xclass.api.learner import Learner, load
from xclass.binary import feature_scaling
from xclass.data import batch_ops

VALUES = st.sampled_from([0.0, 1.0, -2.5, 1e3, 1e-3, 7.0, math.inf, math.nan])
EXAMPLES = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 7), VALUES), max_size=6), st.booleans()), min_size=1, max_size=60
)
CENTRES = [[random.Random(f"{y} {c}").gauss(0, 1) for c in range(6)] for y in range(12)]


def table(seed: int, n: int, units: tuple[float, ...] = (1, 1e4, 1, 1e-3, 1, 1)) -> str:
    """Lines of numbers around the centres of twelve classes, each column in a unit of its own."""
    rng = random.Random(f"table {seed}")
    lines = []
    for _ in range(n):
        y = rng.randrange(len(CENTRES))
        numbers = [(mean + rng.gauss(0, 0.3)) * unit for mean, unit in zip(CENTRES[y], units, strict=True)]
        lines.append(f"{y + 1} | " + " ".join(f"c{c}:{x:.6g}" for c, x in enumerate(numbers)) + "\n")
    return "".join(lines)


def stories(seed: int, n: int) -> str:
    """Lines of words with weights, each word rare."""
    rng = random.Random(f"stories {seed}")
    lines = []
    for _ in range(n):
        y = rng.randrange(9)
        words = [f"w{y}_{rng.randrange(40)}" if rng.random() < 0.5 else f"w{rng.randrange(900)}" for _ in range(8)]
        lines.append(f"{y + 1} | " + " ".join(f"{word}:{rng.uniform(0.05, 0.6):.3f}" for word in words) + "\n")
    return "".join(lines)


def learned(text: str, reduction: str = "multiclass", **options) -> Learner:
    """A learner of twelve classes that has learned from a text."""
    model = Learner(reduction, 12, **{"bits": 18, **options})
    model.learn_many(text)
    model.end_pass()
    return model


def loss_of(text: str, **options) -> float:
    """The share of wrong predictions while learning from a text."""
    with learned(text, **options) as model:
        return model.average_loss


def error(model: Learner, text: str) -> float:
    """The share of wrong predictions of a text that nothing is learned from."""
    classes = [int(line.split("|")[0]) for line in text.splitlines()]
    return float(np.mean(model.predict_many(text) != classes))


def scales_of(model: Learner) -> dict[str, list]:
    """What a model keeps of the scales of features."""
    arrays = model.core.contents().arrays
    return {name: np.asarray(array).tolist() for name, array in arrays.items() if name.startswith("scales")}


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=20, deadline=None)
@given(EXAMPLES, st.sampled_from(["auto", "columns"]), st.integers(1, 3))
def test_values_are_the_oracles(examples, scaling, pieces):
    whole = batch_of_rows([row for row, _ in examples])
    scales, plain = feature_scaling.Scales(scaling == "columns"), oracle.Scales(scaling)
    edges = np.linspace(0, len(examples), pieces + 1).astype(int)
    for low, high in itertools.pairwise(edges.tolist()):
        got = scales.scaled(
            batch_ops.cut(whole, low, high), np.array([learned for _, learned in examples[low:high]], bool)
        )
        for i, (row, learned) in enumerate(examples[low:high]):
            if learned:
                plain.seen(row)
            want = [x for _, x in plain.scaled(row)]
            assert got.value[got.start[i] : got.start[i + 1]].tolist() == pytest.approx(want, rel=1e-6, nan_ok=True)


def test_scaling_is_decided_after_a_fixed_number_of_examples():
    words = [[(100 * i + j, 0.5) for j in range(3)] for i in range(feature_scaling.DECISION_EXAMPLES)]
    numbers = [[(j, (0.5 + i % 3) * 100**j) for j in range(3)] for i in range(feature_scaling.DECISION_EXAMPLES)]
    for first, then, columns in ((words, numbers, False), (numbers, words, True)):
        scales = feature_scaling.Scales(False)
        scales.scaled(batch_of_rows(first), np.ones(len(first), bool))
        batch = batch_of_rows(then * 3)
        out = scales.scaled(batch, np.ones(batch.n, bool))
        assert scales.idle is not columns
        assert (out is batch) is not columns


def test_columns_in_units_of_their_own_are_learned_as_in_one():
    errors = {scaling: loss_of(table(1, 1500), normalize_features=scaling) for scaling in ("auto", "columns", "unit")}
    assert abs(errors["auto"] - errors["columns"]) < 0.01
    assert errors["auto"] < errors["unit"] - 0.1
    assert errors["auto"] == pytest.approx(loss_of(table(1, 1500, (1,) * 6)), abs=0.02)


def test_weights_of_words_are_left_as_they_are():
    text = stories(1, 2500)
    predictions = {}
    for scaling in ("auto", "unit", "columns"):
        with Learner("multiclass", 9, bits=18, normalize_features=scaling) as model:
            predictions[scaling] = model.learn_many(text).prediction.tolist()
    assert predictions["auto"] == predictions["unit"]
    assert predictions["auto"] != predictions["columns"]


@pytest.mark.parametrize("make", [table, stories])
def test_a_resumed_model_keeps_its_scales(make, tmp_path):
    lines = make(2, 1600).splitlines()
    test = make(3, 200)
    with learned(lines) as whole:
        scales, predictions = scales_of(whole), whole.predict_many(test).tolist()
    assert "scales.state" in scales
    path = str(tmp_path / "half")
    for cut in (2, 1023, 1400):
        with learned(lines[:cut]) as half:
            half.save(path)
        with load(path) as rest:
            rest.learn_many(lines[cut:])
            assert scales_of(rest) == scales
            assert rest.predict_many(test).tolist() == predictions


@pytest.mark.parametrize("at", [0, 700])
@pytest.mark.parametrize("reduction", ["multiclass", "softmax_tree"])
def test_one_wild_value_spoils_one_example(reduction, at):
    lines = table(10, 1500).splitlines(keepends=True)
    wild = "".join(f" c{c}:{x}" for c, x in enumerate(("3e30", "-2e15", "7e9", "1e-30", "4", "5e3")))
    lines[at] = lines[at].split("|")[0] + "|" + wild + "\n"
    test = table(11, 400)
    with learned("".join(lines), reduction) as spoilt, learned(table(10, 1500), reduction) as clean:
        assert error(spoilt, test) <= error(clean, test) + 0.06
        # and later values, however large, do not spoil the model
        for model in (spoilt, clean):
            _, p = model.predict_many(f"1 |{wild}\n| c1:1e38 c2:-1e38\n", 2)
            assert p.shape == (2, 2) and (p > 0).all() and (p < 1).all()


@pytest.mark.filterwarnings("ignore:batch.1. the update of this example")
def test_crossed_features_beyond_what_a_number_holds_spoil_one_example():
    lines = table(18, 900).splitlines(keepends=True)
    lines[0] = lines[5] = "1 | c0:1e30 c1:1e30 c2:0\n"
    errors = []
    for text in ("".join(lines), table(18, 900)):
        with learned(text, quadratic=["::"]) as model:
            errors.append(error(model, table(19, 300)))
    assert errors[0] <= errors[1] + 0.05


def test_columns_in_like_units_are_left_as_they_are():
    predictions = []
    for scaling in ("auto", "unit"):
        with Learner("multiclass", 12, bits=18, normalize_features=scaling) as model:
            predictions.append(model.learn_many(table(20, 1500, (1,) * 6)).prediction.tolist())
    assert predictions[0] == predictions[1]


def test_a_change_of_unit_is_forgotten():
    before, after = table(12, 300, (1, 1e3, 1, 1, 1, 1)), table(13, 12000, (1, 1, 1, 1, 1, 1))
    with learned(before + after) as model:
        assert error(model, table(14, 400, (1,) * 6)) < 0.1


def test_the_summary_says_how_features_are_scaled(tmp_path):
    line = "features are columns of numbers, each divided by its mean size"
    path = str(tmp_path / "m")
    with learned(table(15, 50), "cpt") as model:
        assert line in summary_of(model)
        model.save(path)
    with load(path) as model:
        assert line in summary_of(model)
    assert line in learn("-t", "-i", path, stdin=table(16, 5)).err
    for text, options in (
        (stories(15, 50), {}),
        (table(15, 50), {"normalize_features": "unit"}),
        ("1 | a b\n2 | b c\n" * 50, {}),
    ):
        with learned(text, "cpt", **options) as model:
            assert line not in summary_of(model)


def test_indicators_beside_numbers_do_not_hide_that_these_are_columns():
    rng = random.Random(17)
    lines = [f"{line} place={rng.randrange(900)}" for line in table(17, 1500).splitlines()]
    errors = {scaling: loss_of(lines, normalize_features=scaling) for scaling in ("auto", "unit")}
    assert errors["auto"] < errors["unit"] - 0.1


def test_what_is_not_learned_from_changes_no_scale():
    text, test = table(4, 300), table(5, 100)
    wild = "".join(f"| c{c}:1e6\n" for c in range(6)) * 50 + "3 0 | c1:1e9\n" * 50
    with learned(text, "cpt") as model, learned(wild + text, "cpt") as other:
        assert "scales.size" in scales_of(model)
        assert scales_of(model) == scales_of(other)
        one_by_one = [float(model.predict_many(line)[0]) for line in test.splitlines()[:3]]
        assert model.predict_many(test).tolist()[:3] == one_by_one


def test_trees_of_a_sample_see_scaled_columns():
    sample = {"cpt_tree": "kmeans", "tree_sample": 300}
    errors = {
        scaling: loss_of(table(1, 1500), reduction="cpt", normalize_features=scaling, **sample)
        for scaling in ("auto", "unit")
    }
    assert errors["auto"] < errors["unit"]


def test_a_softmax_tree_sees_columns_by_the_scales_of_all_data(tmp_path):
    path = str(tmp_path / "m")
    text, test = table(1, 1500), table(8, 500)
    errors = {}
    for scaling in ("unit", "columns", "auto"):
        with learned(text, "softmax_tree", normalize_features=scaling) as model:
            errors[scaling] = error(model, test)
            predictions = model.predict_many(test)
            model.save(path)
    assert errors["auto"] == errors["columns"] < errors["unit"]
    with learned(table(1, 1500, (1,) * 6), "softmax_tree", normalize_features="columns") as alike:
        assert np.count_nonzero(predictions != alike.predict_many(table(8, 500, (1,) * 6))) <= 5
    with load(path) as model:
        model.learn_many(table(9, 700))
        model.end_pass()
        assert scales_of(model)["scales.state"][0] == 2200


def test_feature_scaling_is_stored_in_the_model(tmp_path):
    with learned(table(6, 100), "cpt", normalize_features="unit") as model:
        assert not scales_of(model)
        model.save(str(tmp_path / "m"))
    result = xclass("-i", "m", "-t", "--normalize_features", "columns", stdin=table(7, 10), cwd=tmp_path)
    assert result.status == 2
    assert (
        "--normalize_features columns disagrees with m, which was trained with --normalize_features unit" in result.err
    )
