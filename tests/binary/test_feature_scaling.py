"""Columns of numbers are told from text and scaled, and nothing else is."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from command import learn, xclass
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import feature_scales as oracle
from xclass.binary import feature_scaling
from xclass.data import batch_ops
from xclass.data.batch import Batch
from xclass.model import model_file

VALUES = st.sampled_from([0.0, 1.0, -2.5, 1e3, 1e-3, 7.0, math.inf, math.nan])
EXAMPLES = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 7), VALUES), max_size=6), st.booleans()), min_size=1, max_size=60
)
CENTRES = [[random.Random(f"{y} {c}").gauss(0, 1) for c in range(6)] for y in range(12)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def batch_of(examples: list[oracle.Row]) -> Batch:
    out = batch_ops.empty(len(examples), sum(map(len, examples)), 0, 0)
    at = 0
    for i, row in enumerate(examples):
        for out.index[at], out.value[at] in row:
            at += 1
        out.start[i + 1] = at
    return out


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


def error(text: str) -> float:
    return float(text.split("average loss = ")[1].split()[0])


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=60, deadline=None)
@given(EXAMPLES, st.sampled_from(["auto", "columns"]), st.integers(1, 3))
def test_values_are_the_oracles(examples, how, pieces):
    whole = batch_of([row for row, _ in examples])
    scales, plain = feature_scaling.Scales(how == "columns"), oracle.Scales(how)
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


def test_after_so_many_examples_it_is_decided():
    words = [[(100 * i + j, 0.5) for j in range(3)] for i in range(feature_scaling.LOOKED)]
    numbers = [[(j, (0.5 + i % 3) * 100**j) for j in range(3)] for i in range(feature_scaling.LOOKED)]
    for first, then, columns in ((words, numbers, False), (numbers, words, True)):
        scales = feature_scaling.Scales(False)
        scales.scaled(batch_of(first), np.ones(len(first), bool))
        batch = batch_of(then * 3)
        out = scales.scaled(batch, np.ones(batch.n, bool))
        assert scales.idle is not columns
        assert (out is batch) is not columns


def test_columns_in_units_of_their_own_are_learned_as_in_one():
    errors = {}
    for how in ("auto", "columns", "unit"):
        run = ("--multiclass", 12, "-b", 18, "--normalize_features", how)
        errors[how] = error(learn(*run, stdin=table(1, 1500)).err)
    assert abs(errors["auto"] - errors["columns"]) < 0.01
    assert errors["auto"] < errors["unit"] - 0.1
    alike = error(learn("--multiclass", 12, "-b", 18, stdin=table(1, 1500, (1,) * 6)).err)
    assert errors["auto"] == pytest.approx(alike, abs=0.02)


def test_weights_of_words_are_left_as_they_are():
    text = stories(1, 2500)
    run = ("--multiclass", 9, "-b", 18, "-p", "stdout")
    as_it_is = learn(*run, stdin=text)
    assert as_it_is.out == learn(*run, "--normalize_features", "unit", stdin=text).out
    assert as_it_is.out != learn(*run, "--normalize_features", "columns", stdin=text).out


@pytest.mark.parametrize("make", [table, stories])
def test_a_model_goes_on_with_its_scales(make):
    lines = make(2, 1600).splitlines(keepends=True)
    run = ("--multiclass", 12, "-b", 18, "--quiet")
    learn(*run, "-f", "whole", stdin="".join(lines))
    for cut in (2, 500, 1023, 1400):
        learn(*run, "-f", "half", stdin="".join(lines[:cut]))
        learn("-i", "half", "-f", "rest", "--quiet", stdin="".join(lines[cut:]))
        whole, rest = (model_file.load(name).arrays for name in ("whole", "rest"))
        assert "scales.state" in whole
        for name in whole:
            if name.startswith("scales"):
                assert np.array_equal(np.asarray(whole[name]), np.asarray(rest[name]))
        answers = [
            learn("-t", "-i", name, "-p", "stdout", "--quiet", stdin=make(3, 200)).out for name in ("whole", "rest")
        ]
        assert answers[0] == answers[1]


@pytest.mark.parametrize("at", [0, 1, 700])
@pytest.mark.parametrize("reduction", ["multiclass", "softmax_tree"])
def test_one_wild_value_spoils_one_example(reduction, at):
    lines = table(10, 1500).splitlines(keepends=True)
    wild = "".join(f" c{c}:{x}" for c, x in enumerate(("3e30", "-2e15", "7e9", "1e-30", "4", "5e3")))
    lines[at] = lines[at].split("|")[0] + "|" + wild + "\n"
    test = table(11, 400)
    learn(f"--{reduction}", 12, "-b", 18, "-f", "m", "--quiet", stdin="".join(lines))
    spoilt = error(learn("-t", "-i", "m", stdin=test).err)
    learn(f"--{reduction}", 12, "-b", 18, "-f", "m", "--quiet", stdin=table(10, 1500))
    assert spoilt <= error(learn("-t", "-i", "m", stdin=test).err) + 0.06
    # and no value met later, however large, brings anything down
    done = learn("-t", "-i", "m", "--top_k", 2, "-p", "stdout", "--quiet", stdin=f"1 |{wild}\n| c1:1e38 c2:-1e38\n")
    assert all(0 < float(word.split(":")[1]) < 1 for line in done.lines for word in line.split()[:2])


def test_crossed_features_beyond_what_a_number_holds_spoil_one_example():
    lines = table(18, 900).splitlines(keepends=True)
    lines[0] = lines[5] = "1 | c0:1e30 c1:1e30 c2:0\n"
    errors = []
    for text in ("".join(lines), table(18, 900)):
        learn("--multiclass", 12, "-b", 18, "-q", "::", "-f", "m", "--quiet", stdin=text)
        errors.append(error(learn("-t", "-i", "m", stdin=table(19, 300)).err))
    assert errors[0] <= errors[1] + 0.05


def test_columns_in_like_units_are_left_as_they_are():
    text = table(20, 1500, (1,) * 6)
    run = ("--multiclass", 12, "-b", 18, "-p", "stdout")
    assert learn(*run, stdin=text).out == learn(*run, "--normalize_features", "unit", stdin=text).out


def test_a_change_of_unit_is_forgotten():
    before, after = table(12, 300, (1, 1e3, 1, 1, 1, 1)), table(13, 12000, (1, 1, 1, 1, 1, 1))
    learn("--multiclass", 12, "-b", 18, "-f", "m", "--quiet", stdin=before + after)
    assert error(learn("-t", "-i", "m", stdin=table(14, 400, (1,) * 6)).err) < 0.1


def test_the_summary_says_what_features_are():
    told = "features are columns of numbers, each divided by its mean size"
    assert told in learn("--cpt", 12, "-b", 18, "-f", "m", stdin=table(15, 50)).err
    assert told in learn("-t", "-i", "m", stdin=table(16, 5)).err
    assert told not in learn("--cpt", 12, "-b", 18, stdin=stories(15, 50)).err
    assert told not in learn("--cpt", 12, "-b", 18, "--normalize_features", "unit", stdin=table(15, 50)).err
    assert told not in learn("--cpt", 12, "-b", 18, stdin="1 | a b\n2 | b c\n" * 50).err


def test_indicators_beside_numbers_do_not_hide_that_these_are_columns():
    rng = random.Random(17)
    lines = [line.rstrip() + f" place={rng.randrange(900)}\n" for line in table(17, 1500).splitlines()]
    errors = {
        how: error(learn("--multiclass", 12, "-b", 18, "--normalize_features", how, stdin="".join(lines)).err)
        for how in ("auto", "unit")
    }
    assert errors["auto"] < errors["unit"] - 0.1


def test_what_is_not_learned_from_changes_no_scale():
    text = table(4, 300)
    wild = "".join(f"| c{c}:1e6\n" for c in range(6)) * 50 + "3 0 | c1:1e9\n" * 50
    learn("--cpt", 12, "-b", 18, "-f", "a", "--quiet", stdin=text)
    learn("--cpt", 12, "-b", 18, "-f", "b", "--quiet", stdin=wild + text)
    a, b = (model_file.load(name).arrays for name in "ab")
    assert "scales.size" in a
    for name in a:
        if name.startswith("scales"):
            assert np.array_equal(np.asarray(a[name]), np.asarray(b[name]))
    test = table(5, 100)
    one_by_one = "".join(
        learn("-t", "-i", "a", "-p", "stdout", "--quiet", stdin=line).out for line in test.splitlines(True)[:3]
    )
    assert learn("-t", "-i", "a", "-p", "stdout", "--quiet", stdin=test).out.startswith(one_by_one)


def test_trees_of_a_sample_see_scaled_columns():
    errors = {}
    for how in ("auto", "unit"):
        run = ("--cpt", 12, "-b", 18, "--cpt_tree", "kmeans", "--tree_sample", 300, "--normalize_features", how)
        errors[how] = error(learn(*run, stdin=table(1, 1500)).err)
    assert errors["auto"] < errors["unit"]


def test_a_softmax_tree_sees_columns_by_the_scales_of_all_data():
    errors = {}
    for how in ("auto", "columns", "unit"):
        learn("--softmax_tree", 12, "--normalize_features", how, "-f", how, "--quiet", stdin=table(1, 1500))
        errors[how] = error(learn("-t", "-i", how, stdin=table(8, 500)).err)
    assert errors["auto"] == errors["columns"] < errors["unit"]
    learn(
        *("--softmax_tree", 12, "--normalize_features", "columns", "-f", "alike", "--quiet"),
        stdin=table(1, 1500, (1,) * 6),
    )
    one, other = (
        learn("-t", "-i", name, "-p", "stdout", stdin=table(8, 500, units)).out
        for name, units in (("auto", (1, 1e4, 1, 1e-3, 1, 1)), ("alike", (1,) * 6))
    )
    assert sum(a != b for a, b in zip(one.split(), other.split(), strict=True)) <= 5
    learn("-i", "auto", "-f", "more", "--quiet", stdin=table(9, 700))
    assert model_file.load("more").arrays["scales.state"][0] == 2200


def test_how_features_are_scaled_is_the_models(tmp_path):
    learn("--cpt", 12, "-b", 18, "--normalize_features", "unit", "-f", "m", "--quiet", stdin=table(6, 100))
    assert not any(name.startswith("scales") for name in model_file.load("m").arrays)
    done = xclass("-i", "m", "-t", "--normalize_features", "columns", stdin=table(7, 10))
    assert done.status == 2
    assert "--normalize_features columns disagrees with m, which was trained with --normalize_features unit" in done.err
