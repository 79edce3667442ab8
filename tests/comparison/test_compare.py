"""`xclass compare`: tests of differences against scipy and a plain bootstrap, and the command."""

import json
import random

import numpy as np
import pytest
import streams
from command import learn, xclass
from hypothesis import given
from hypothesis import strategies as st

from xclass import comparison

K = 7


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_exact_binomial_test(b, c):
    binomtest = pytest.importorskip("scipy.stats").binomtest
    expected = 1.0 if b + c == 0 else binomtest(min(b, c), b + c, 0.5).pvalue
    assert comparison.mcnemar(b, c) == pytest.approx(expected, rel=1e-9)


def test_many_examples_do_not_overflow():
    assert comparison.mcnemar(500_000, 502_000) == pytest.approx(0.0459, abs=1e-3)
    assert comparison.mcnemar(10, 5_000_000) == 0.0


def test_the_interval_is_that_of_drawing_examples():
    source = random.Random(5)
    first = np.array([source.random() < 0.3 for _ in range(200)])
    second = np.array([wrong if source.random() < 0.8 else source.random() < 0.5 for wrong in first])
    found = comparison.paired(first, second, 0.9)
    drawn = np.random.default_rng(1).integers(0, 200, (4000, 200))
    low, high = np.quantile(second[drawn].mean(axis=1) - first[drawn].mean(axis=1), (0.05, 0.95))
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert (found.low, found.high) == (pytest.approx(low, abs=0.011), pytest.approx(high, abs=0.011))


def test_independent_samples_have_a_normal_interval():
    found = comparison.independent((0.2, 0.26), (1000, 1000), 0.95)
    deviation = (0.2 * 0.8 / 1000 + 0.26 * 0.74 / 1000) ** 0.5
    assert (found.low, found.high) == pytest.approx((0.06 - 1.96 * deviation, 0.06 + 1.96 * deviation), abs=1e-4)
    assert found.p == pytest.approx(0.00139, abs=1e-4)
    assert comparison.independent((0.0, 0.0), (9, 9), 0.95).p == 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, the second of which has learned less, with their summaries and predictions of the same data."""
    path = tmp_path_factory.mktemp("compare")
    text = streams.multiclass(3, K, 600)
    (path / "d.vw").write_text(text)
    (path / "less.vw").write_text("".join(text.splitlines(keepends=True)[:12]))
    (path / "t.vw").write_text(streams.multiclass(4, K, 300))
    for name, data in (("a", "d.vw"), ("b", "less.vw")):
        learn(data, "-b", 14, "--cpt", K, "-f", name, "--quiet", cwd=path)
        learn("t.vw", "-t", "-i", name, "--summary", f"{name}.json", "-p", f"{name}.txt", "--quiet", cwd=path)
        learn("t.vw", "-t", "-i", name, "-p", f"{name}.top", "--top_k", 3, "--quiet", cwd=path)
    return path


def test_a_worse_run_is_found(folder):
    better, worse = (json.loads((folder / name).read_text())["average_loss"] for name in ("a.json", "b.json"))
    assert worse > better + 0.1
    result = xclass("compare", "a.json", "b.json", cwd=folder)
    assert result.status == 3
    first, second = [line.split() for line in result.lines[1:3]]
    assert (first[0], first[2], second[0], second[2]) == ("a.json", f"{better:.4f}", "b.json", f"{worse:.4f}")
    assert f"{worse - better:+.4f}" in second
    points = f"{100 * (worse - better):.2g} points"
    assert any(
        line.startswith(f"b.json has {points} more errors than a.json: more than chance") for line in result.lines
    )
    swapped = xclass("compare", "b.json", "a.json", cwd=folder)
    assert swapped.status == 0 and f"a.json has {points} fewer errors than b.json: more than chance" in swapped.out
    same = xclass("compare", "a.json", "a.json", cwd=folder)
    assert same.status == 0 and "a.json has the same error as a.json" in same.lines
    assert xclass("compare", "a.json", "b.json", "--tolerance", 1, cwd=folder).status == 0


@pytest.mark.parametrize("kind", ["txt", "top"])
def test_predictions_give_the_same_difference(folder, kind):
    summaries = xclass("compare", "a.json", "b.json", cwd=folder)
    predictions = xclass("compare", f"a.{kind}", f"b.{kind}", "-d", "t.vw", cwd=folder)
    assert predictions.status == 3
    assert summaries.lines[2].split()[-5:] == predictions.lines[2].split()[-5:]
    assert any(line.startswith("classes whose errors differ most") for line in predictions.lines)


def test_other_examples_are_independent_samples(folder):
    learn("d.vw", "-t", "-i", "b", "--summary", "other.json", "--quiet", cwd=folder)
    result = xclass("compare", "a.json", "other.json", cwd=folder)
    assert "treated as independent samples" in result.out
    assert result.status == 3


def test_options_that_differ_are_listed(folder):
    for rate in (0.1, 0.9):
        learn("d.vw", "-b", 14, "--cpt", K, "-l", rate, "--summary", f"{rate}.json", "--quiet", cwd=folder)
    learn("d.vw", "-b", 14, "--oaa", K, "-l", 0.1, "--summary", "oaa.json", "--quiet", cwd=folder)
    assert "--learning_rate: 0.1, 0.9" in xclass("compare", "0.1.json", "0.9.json", cwd=folder).lines
    learn("d.vw", "-b", 14, "--cpt", K, "-l", 0.1, "--ngram", 2, "--summary", "pairs.json", cwd=folder)
    lines = xclass("compare", "0.1.json", "pairs.json", cwd=folder).lines
    assert "--ngram: none, 2" in lines and not any(line.startswith("--quiet") for line in lines)
    assert "reduction: cpt, oaa" in xclass("compare", "0.1.json", "oaa.json", cwd=folder).lines


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("a.json", "none.json"), 1, "none.json: the file cannot be read"),
        (("a.json", "a.txt"), 2, "a.json is a summary, but a.txt is not"),
        (("a.txt", "b.txt", "-d", "d.vw"), 1, "there are 300 predictions, but d.vw has 600 examples"),
        (("a.json", "new.json"), 1, "new.json: schema is 'xclass summary 9'; allowed is 'xclass summary 1'"),
        (("a.json", "b.json", "--alpha", "2"), 2, "--alpha"),
    ],
)
def test_what_cannot_be_compared_is_said(folder, words, status, message):
    record = json.loads((folder / "a.json").read_text())
    (folder / "new.json").write_text(json.dumps({**record, "schema": "xclass summary 9"}))
    result = xclass("compare", *words, cwd=folder)
    assert result.status == status and message in result.err, result.err


def test_the_comparison_is_written_as_json(folder):
    result = xclass("compare", "a.json", "b.json", "a.json", "--json", "c.json", cwd=folder)
    record = json.loads((folder / "c.json").read_text())
    worse, same = record["comparisons"]
    errors = [run["error"] for run in record["runs"]]
    assert record["schema"] == "xclass comparison 1" and result.status == 3
    assert worse["paired"] and worse["worse"] and worse["difference"] == pytest.approx(errors[1] - errors[0])
    assert worse["low"] <= worse["difference"] <= worse["high"] and worse["p"] < 0.05
    assert (same["difference"], same["p"], same["worse"]) == (0, 1, False)
    assert "p has to be below 0.025 (Bonferroni)" in result.out


def test_a_log_loss_that_moves_the_other_way_is_named(folder):
    record = json.loads((folder / "b.json").read_text())
    record["figures"]["log_loss"] = 0.0
    (folder / "sure.json").write_text(json.dumps(record))
    lines = xclass("compare", "a.json", "sure.json", cwd=folder).lines
    assert any("the log loss moves the other way" in line and line.endswith("are better") for line in lines)
    assert "the other way" not in xclass("compare", "a.json", "b.json", cwd=folder).out
