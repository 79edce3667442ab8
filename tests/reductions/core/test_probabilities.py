"""Probabilities of classes: lists of the best and of all, and what is told of them, against plain numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from command import learn, xclass
from harness import batch_of, configure, go_through_stages, learner_of
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import multiclass

from xclass.kernels import top_k
from xclass.model import model_file
from xclass.reductions.core import calibration, probabilities
from xclass.reductions.oaa import class_rows

K = 23
BITS = ("-b", 20)
GIVING = pytest.mark.parametrize("name", ["oaa", "recall_tree", "cpt"])
TEXT = multiclass(1, K, 400, noise=0.4, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
SMALL = ("--max_candidates", 4)  # for a recall tree that leaves classes out


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chosen(name: str, k: int = K) -> tuple:
    return (f"--{name}", k, *(SMALL if name == "recall_tree" else ()))


def pairs(line: str) -> list[tuple[int, float]]:
    """The pairs of a line, without its tag."""
    return [(int(word.split(":")[0]), float(word.split(":")[1])) for word in line.split(" ") if ":" in word]


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def labels_of(text: str) -> list[tuple[int | None, float]]:
    """Label and weight of every line."""
    heads = [line.split("|")[0].split(" ") for line in text.splitlines()]
    return [(int(words[0]), float(words[1])) if words[0] else (None, 0.0) for words in heads]


def fact(text: str, name: str) -> float:
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))


# -- the best of many


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=150, deadline=None)
@given(
    score=st.lists(st.sampled_from([0.0, -1.0, 2.5, 7.0, 1e-3]) | st.floats(-9, 9, width=32), max_size=40),
    k=st.integers(0, 12),
    ends=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_rank_is_a_stable_sort(score, k, ends):
    begin, end = min(ends[0], len(score)), max(len(score) - ends[1], min(ends[0], len(score)))
    place = np.full(k, -1)
    size = top_k.rank(np.array(score, np.float32), begin, end, place)
    want = sorted(range(begin, end), key=lambda j: (-np.float32(score[j]), j))[:k]
    assert place[:size].tolist() == want


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_rank_of_many_in_any_order(order):
    score = {"rising": np.arange(9999), "falling": -np.arange(9999), "equal": np.zeros(9999)}[order].astype(np.float32)
    place = np.empty(1000, np.int64)
    assert top_k.rank(score, 0, 9999, place) == 1000
    assert place.tolist() == (list(range(9998, 8998, -1)) if order == "rising" else list(range(1000)))


def test_listing_ends_with_what_is_left():
    label, p = np.array([[3, 1], [7, 0], [0, 0]]), np.array([[0.5, 0.25], [0.75, 0], [0, 0]])
    found = probabilities.listing(label, p, np.array([2, 1, 0]), np.array([0.25, 0.25, 1]))
    assert found.labels.tolist() == [3, 1, 0, 7, 0, 0]
    assert found.scores.tolist() == [0.5, 0.25, 0.25, 0.75, 0.25, 1]
    assert found.start.tolist() == [0, 3, 5, 6]


# -- one against all


@pytest.mark.parametrize(
    "more",
    [(), ("--loss_function", "squared"), ("--layout", "vw"), ("--link", "logistic"), ("--oaa_subsample", "3")],
    ids=" ".join,
)
@pytest.mark.parametrize("top_k", [1, 5, K, 1000])
def test_top_k_of_oaa_is_that_of_its_raw_scores(top_k, more):
    learn("--oaa", K, *BITS, "-p", "p", "-r", "r", "--top_k", top_k, *more, stdin=TEXT)
    for number, (line, raw) in enumerate(zip(lines_of("p"), lines_of("r"), strict=True)):
        scores = np.array([score for _, score in pairs(raw)])
        assert len(scores) == K
        chance = scores if "--link" in more else 1 / (1 + np.exp(-scores))
        chance = chance / chance.sum() if scores.any() or "--link" not in more else np.full(K, 1 / K)
        *got, (other, rest) = pairs(line)
        assert other == 0
        assert len(got) == min(top_k, K)
        want = np.argsort(-scores, kind="stable")[:top_k]
        np.testing.assert_allclose([p for _, p in got], chance[want], rtol=3e-5, atol=1e-7, err_msg=str(number))
        if len(set(scores)) == K:  # -r shows six digits: equal there may differ
            assert [label for label, _ in got] == (want + 1).tolist()
        assert rest == pytest.approx(1 - chance[want].sum() if top_k < K else 0, abs=1e-5)


def test_top_k_and_all_probabilities_of_oaa_are_the_same_numbers():
    learn("--oaa", K, *BITS, "-p", "some", "--top_k", 4, stdin=TEXT)
    learn("--oaa", K, *BITS, "-p", "all", "--probabilities", stdin=TEXT)
    learn("--oaa", K, *BITS, "-p", "best", stdin=TEXT)
    for some, every, best in zip(lines_of("some"), lines_of("all"), lines_of("best"), strict=True):
        *got, _ = pairs(some)
        p = dict(pairs(every))
        assert list(p) == list(range(1, K + 1))
        assert got == sorted(p.items(), key=lambda one: (-one[1], one[0]))[:4] or len(set(p.values())) < K
        assert all(p[label] == value for label, value in got)
        assert got[0][0] == int(best.split(" ")[0])
        assert some.partition(" tag")[2] == every.partition(" tag")[2] == best.partition(" tag")[2]


def test_classes_from_0_are_listed_as_such():
    text = multiclass(2, K, 60, lowest=0)
    for line in learn("--oaa", K, *BITS, "-p", "stdout", "--top_k", K, "--indexing", 0, "--quiet", stdin=text).lines:
        *got, (other, rest) = pairs(line)
        assert sorted(label for label, _ in got) == list(range(K))
        assert (other, rest) == (0, 0)


# -- recall tree


def candidates_by_plain_numpy(tree, batch, plan):
    """Of every example: candidates, their scores and probabilities, and that of its label."""
    asked, met = {}, {}
    for i in range(batch.n):
        a = plan.node[i]
        items = plan.item[plan.first[i] : plan.scored[i]].tolist()
        recall = (met.get(a, 0) + 0.5) / (asked.get(a, 0) + 1)
        recall = 1.0 if len(items) == tree.classes else recall if items else 0.0
        odds = np.exp(plan.score[plan.first[i] : plan.scored[i]].astype(np.float64))
        p = recall * odds / odds.sum() if items else odds
        own = None
        if not np.isnan(batch.label[i]):
            y = int(batch.label[i]) - 1
            others = tree.classes - len(items)
            own = p[items.index(y)] if y in items else (1 - recall) / others
            if batch.weight[i] > 0 and items:
                weight = float(batch.weight[i])
                asked[a] = 0.99 * asked.get(a, 0) + weight
                met[a] = 0.99 * met.get(a, 0) + weight * (y in items)
        yield items, plan.score[plan.first[i] : plan.scored[i]], p, own


@pytest.mark.bounds
@pytest.mark.parametrize("layout", ["odd", "vw"])
@pytest.mark.parametrize("candidates", [1, 4, K])
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=str)
def test_probabilities_of_the_recall_tree_are_those_of_its_scores(layout, candidates, words):
    words = (*words, "--layout", layout, "--max_candidates", candidates, "--bern_hyper", 0.1)
    config = configure("--recall_tree", K, *BITS, *words)
    tree = learner_of(config)
    batch = batch_of(config, TEXT)
    task, plan = go_through_stages(tree, batch)
    tree.close()
    squared = weights = 0.0
    met = 0
    for i, (items, scores, p, own) in enumerate(candidates_by_plain_numpy(tree, batch, plan)):
        part = slice(task.listing.start[i], task.listing.start[i + 1])
        labels, got = task.listing.labels[part].tolist(), task.listing.scores[part]
        assert labels[-1] == 0
        order = np.argsort(-scores, kind="stable")[:3] if "--top_k" in words else np.argsort(items)
        assert labels[:-1] == [items[j] + 1 for j in order]
        np.testing.assert_allclose(got[:-1], p[order], rtol=1e-5)
        assert got[-1] == pytest.approx(1 - p[order].sum(), abs=1e-6)
        assert got.sum() == pytest.approx(1, abs=1e-6)
        if own is not None:
            squared += batch.weight[i] * (1 - own) ** 2
            weights += batch.weight[i]
            met += own > 0 and int(batch.label[i]) - 1 in items
            assert task.loss[i] == (batch.weight[i] if labels[0] != batch.label[i] else 0) or "--top_k" not in words
    assert tree.report.squared == pytest.approx(squared, rel=1e-6)
    assert tree.report.weight == weights
    assert 20 < met < (~np.isnan(batch.label)).sum()


def test_recall_of_a_node_is_what_progressive_validation_found():
    """A tree that cannot route keeps one candidate, the label of two thirds of the examples."""
    text = "".join(f"{1 + i % 3 // 2} |w a\n" for i in range(600))
    lines = learn(
        "--recall_tree", 10, *BITS, "--max_depth", 0, "--max_candidates", 1, "--top_k", 2, "-p", "stdout", "--quiet",
        stdin=text,
    ).lines  # fmt: skip
    for line in lines[-200:]:
        (label, p), (other, rest) = pairs(line)
        assert (label, other) == (1, 0)
        assert p == pytest.approx(2 / 3, abs=0.02)
        assert rest == pytest.approx(1 / 3, abs=0.02)


# -- conditional probability tree


@pytest.mark.parametrize(
    "more", [(), ("--trees", 3), ("--cpt_search", "greedy")], ids=lambda more: " ".join(map(str, more))
)
def test_all_probabilities_of_the_tree_are_its_top_k_of_all(place, more):
    run = ("--cpt", K, *BITS, "--quiet", *more)
    learn(*run, "--probabilities", "-p", "p", "-f", "a", stdin=TEXT)
    learn(*run, "-p", "best", "-f", "b", stdin=TEXT)
    assert (place / "a").read_bytes() == (place / "b").read_bytes()
    every, best = lines_of("p"), lines_of("best")
    assert every[0].split(" ")[0] == "0:1"
    for line, one in zip(every[1:], best[1:], strict=True):
        *got, last = pairs(line)
        labels = [label for label, _ in got]
        assert labels == sorted(set(labels))
        assert sum(p for _, p in got) == pytest.approx(1, abs=1e-5)
        assert last == (0, 0)
        assert line.partition(" tag")[2] == one.partition(" tag")[2]
        if not more:
            assert dict(got)[int(one.split(" ")[0])] == max(p for _, p in got)
    if "--cpt_search" not in more:
        ways = (("--top_k", 1000), ("--probabilities",))
        some, every = (
            learn("-i", "a", "-t", *way, "-p", "stdout", "--quiet", stdin=multiclass(2, K, 100)).lines for way in ways
        )
        for few, many in zip(some, every, strict=True):
            whole = dict(pairs(many))
            got = pairs(few)[:-1]
            assert all(whole[label] == pytest.approx(p, rel=2e-5, abs=1e-9) for label, p in got)
            assert len(more) > 0 or len(got) == len(whole) - 1


# -- what is told


@GIVING
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=lambda words: words[0])
def test_summary_and_calibration_are_those_of_the_lines(name, words):
    done = learn(*chosen(name), *BITS, *words, "-p", "p", "--perplexity", "--calibration", "c", stdin=TEXT)
    weights = squared = log = known = missed = wrong = 0.0
    bins = np.zeros((3, calibration.BINS))
    exact = words == ("--probabilities",)
    for (label, weight), line in zip(labels_of(TEXT), lines_of("p"), strict=True):
        if label is None:
            continue
        got = pairs(line)
        rest = got.pop()[1] if got[-1][0] == 0 else 0.0
        p = dict(got)
        weights += weight
        missed += weight * (label not in p)
        best = max(p, key=p.get, default=0)
        forecast = p.get(best, 0.0)
        if not exact or list(p.values()).count(forecast) <= 1:
            bins[:, min(int(forecast * calibration.BINS), calibration.BINS - 1)] += np.array(
                [weight, weight * forecast, weight * (best == label)]
            )
        wrong += weight * (best != label)
        own = p.get(label, rest / (K - len(p)) if name == "recall_tree" else 0.0)
        squared += weight * (1 - own) ** 2
        if own > 0:
            known += weight
            log -= weight * math.log(own)
    if exact:
        assert fact(done.err, "average squared loss") == pytest.approx(squared / weights, rel=1e-4)
        assert fact(done.err, "average log loss") == pytest.approx(log / known, rel=1e-4)
        assert fact(done.err, "perplexity") == pytest.approx(math.exp(log / known), rel=1e-3)
        assert "top-" not in done.err
    else:
        assert fact(done.err, "average loss") == pytest.approx(wrong / weights, abs=1e-6)
        assert fact(done.err, "top-3 error") == pytest.approx(missed / weights, abs=1e-6)
        assert fact(done.err, "top-3 error") < fact(done.err, "average loss")
    error = np.abs(bins[1] - bins[2]).sum() / bins[0].sum()
    assert fact(done.err, "expected calibration error") == pytest.approx(error, abs=0.02)
    rows = [line.split("\t") for line in lines_of("c")[1:]]
    assert sum(float(row[4]) for row in rows) == pytest.approx(weights, abs=1e-3)


@GIVING
@pytest.mark.parametrize("asked", [("--top_k", 2), ("--probabilities",)], ids=str)
def test_probabilities_that_are_listed_come_with_their_calibration_error(name, asked, tmp_path):
    told, kept = (
        learn(*chosen(name), *BITS, *asked, *more, stdin=TEXT) for more in ((), ("--calibration", tmp_path / "c"))
    )
    assert fact(told.err, "expected calibration error") == fact(kept.err, "expected calibration error")


@GIVING
def test_nothing_asked_nothing_told(name):
    done = learn(*chosen(name), *BITS, stdin=TEXT)
    for words in ("top-", "perplexity", "calibration"):
        assert words not in done.err
    if name != "cpt":
        assert "log loss" not in done.err


@pytest.mark.parametrize("name", ["oaa", "recall_tree"])
def test_label_that_is_no_class_is_counted_apart(name):
    run = (*chosen(name, 3), *BITS, "--on_bad_line", "vw", "--top_k", 2)
    done = learn(*run, stdin="1 |w a\n2 |w b\n9 |w a\n2 |w b\n")
    assert "labels that are no class = 1, without log loss\n" in done.err


# -- runs


@GIVING
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=lambda words: words[0])
def test_asking_changes_neither_what_is_learned_nor_what_is_answered(place, name, words):
    run = (*chosen(name), *BITS)
    learn(*run, "-p", "plain", "-f", "a", stdin=TEXT)
    learn(*run, *words, "--perplexity", "--calibration", "c", "-p", "p", "-f", "b", stdin=TEXT)
    a, b = model_file.load("a"), model_file.load("b")
    assert a.options == b.options
    assert a.arrays.keys() == b.arrays.keys()
    assert all(np.array_equal(array, b.arrays[name]) for name, array in a.arrays.items())
    if words[0] == "--top_k" or name != "oaa":  # --oaa --probabilities counts another loss, as VW does
        assert (place / "a").read_bytes() == (place / "b").read_bytes()
    if words[0] == "--top_k":
        assert [pairs(line)[0][0] for line in lines_of("p")] == [int(line.split(" ")[0]) for line in lines_of("plain")]


def test_asking_leaves_the_link_of_oaa_alone(place):
    run = ("--oaa", K, *BITS, "--link", "logistic")
    learn(*run, "-f", "a", stdin=TEXT)
    learn(*run, "--top_k", 3, "--calibration", "c", "-p", "p", "-f", "b", stdin=TEXT)
    assert (place / "a").read_bytes() == (place / "b").read_bytes()


@pytest.mark.bounds
@GIVING
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=lambda words: words[0])
def test_going_on_from_a_model_is_the_unbroken_run(place, name, words):
    first, second = multiclass(3, K, 120, noise=0.4), multiclass(4, K, 80, noise=0.4)
    run = (*chosen(name), *BITS)
    whole = learn(*run, *words, "-p", "stdout", "-f", "whole", "--quiet", stdin=first + second).out
    before = learn(*run, *words, "-p", "stdout", "-f", "part", "--quiet", stdin=first).out
    after = learn("-i", "part", *words, "-p", "stdout", "-f", "part", "--quiet", stdin=second).out
    assert before + after == whole
    assert (place / "whole").read_bytes() == (place / "part").read_bytes()


@GIVING
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=lambda words: words[0])
def test_threads_and_number_of_rows_at_a_time_do_not_matter(place, monkeypatch, name, words):
    k = 3 * class_rows.BLOCK + 5 if name == "oaa" else K
    text, test = multiclass(5, k, 100, unlabelled=0.1), multiclass(6, k, 150)
    found = []
    for processors, most in ((1, 1 << 22), (2, 7 * k), (5, 1)):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        monkeypatch.setattr(probabilities, "MOST_PAIRS", most)
        done = learn(*chosen(name, k), "-b", 18, *words, "-p", "stdout", "-f", "m", "--perplexity", stdin=text)
        tested = learn("-i", "m", "-t", *words, "-p", "stdout", "--perplexity", stdin=test)
        told = [[fact(one.err, what) for what in ("average squared loss", "perplexity")] for one in (done, tested)]
        found.append((done.out, tested.out, (place / "m").read_bytes(), *map(tuple, np.round(told, 4))))
    assert found[0] == found[1] == found[2]


@GIVING
@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
def test_few_examples_go_all_the_way(name):
    text = multiclass(7, 5, 12, tags=True)
    for words in (("--top_k", 2), ("--probabilities",)):
        done = learn(*chosen(name, 5), "-b", 8, *words, "-p", "stdout", "--calibration", "c", stdin=text)
        assert len(done.lines) == 12
        for line in done.lines:
            assert sum(p for _, p in pairs(line)) == pytest.approx(1, abs=1e-5)


@GIVING
def test_one_class_is_certain(name):
    lines = learn(*chosen(name, 1)[:2], "-b", 10, "--top_k", 3, "-p", "stdout", stdin="1 |w a\n1 |w b\n |w c\n").lines
    assert lines[1:] == ["1:1 0:0"] * 2


@GIVING
def test_names_of_classes(name):
    text = "cat |w a\ndog |w b\ncat |w a\n |w c\n"
    run = (*chosen(name, 3)[:2], "--named_labels", "cat,dog,élan", "-b", 12, "--quiet", "-p", "stdout", "--top_k", 1)
    words = learn(*run, stdin=text).lines[-1].split(" ")
    assert words[0].split(":")[0] in ("cat", "dog")
    assert words[1].split(":")[0] == "0"


# -- refusals


@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",), ("--perplexity",), ("--calibration", "c")])
def test_where_there_are_no_probabilities_asking_is_an_error(words):
    done = xclass(*words, "--binary", stdin="1 |w a\n")
    assert done.status == 2
    assert done.err == (
        f"xclass: {words[0]} needs probabilities of classes, which the learner without a reduction does not give; "
        "choose one of --oaa, --recall_tree, --cpt, --softmax_tree\n"
    )
    learn("-f", "m", stdin="1 |w a\n")
    assert xclass("-i", "m", "-t", *words, stdin="1 |w a\n").status == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--oaa", 3, "--top_k", 2, "--probabilities"), "--top_k has no effect: --probabilities writes all classes"),
        (("--oaa", 3, "--top_k", 2, "--scores"), "--scores has no effect: --top_k writes probabilities in place of"),
        (("--oaa", 3, "--top_k", 0), "--top_k: 0 is out of range; give a whole number from 1 to 1000"),
        (("--oaa", 3, "--perplexity", "--quiet"), "--perplexity has no effect: --quiet leaves the summary out"),
        (("--recall_tree", 3, "--top_k", 2, "--loss_function", "squared"), "--top_k with --recall_tree needs scores"),
        (("--recall_tree", 3, "--probabilities", "--vw_exact"), "give --loss_function logistic"),
        (("--cpt", 3, "--cpt_report", "losses", "--probabilities"), "--probabilities needs the search"),
        (("--cpt", 3, "--probabilities", "-r", "r"), "with --probabilities only -p is written"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, why):
    done = xclass(*words, stdin="1 |w a\n")
    assert done.status == 2
    assert why in done.err


def test_recall_tree_of_vw_gives_probabilities_under_logistic_loss():
    run = ("--vw_exact", "--recall_tree", K, "--loss_function", "logistic", "--top_k", 2, "-p", "stdout", "--quiet")
    for line in learn(*run, stdin=TEXT).lines:
        assert sum(p for _, p in pairs(line)) == pytest.approx(1, abs=1e-5)
