"""The conditional probability tree: against its oracle, against brute force, and against the paper's bound."""

import math
import random

import numpy as np
import pytest
from command import xclass
from hypothesis import given, settings
from hypothesis import strategies as st
from library import fact, go_through, same_arrays, summary_of, trained
from probability_trees import check_words, examples, tree_of
from streams import multiclass

from tests.oracles import tagged_learners
from tests.oracles.feature_scales import as_learned
from xclass import DataError, Learner, load
from xclass.api import configuration
from xclass.api.learner_core import LearnerCore
from xclass.data.batch import HIGHEST_LABEL
from xclass.reductions.core import calibration
from xclass.reductions.cpt import binary_nodes, label_tree

# -- the same numbers as the oracle


OPTIONS = pytest.mark.parametrize(
    ("options", "oracle"),
    [
        ({}, {}),
        ({"cpt_alpha": 0.1}, {"alpha": 0.1}),
        ({"cpt_alpha": 0}, {"alpha": 0.0}),
        ({"cpt_tree": "balanced"}, {"rule": "balanced"}),
        ({"cpt_tree": "random", "random_seed": 3}, {"rule": "random", "seed": 3}),
        ({"normalize_features": "none", "learning_rate": 0.2}, {"unit": False, "rate": 0.2}),
        ({"normalize_features": "unit"}, {}),
        ({"sgd": True, "learning_rate": 0.3}, {"rate": 0.3, "momentum": 0}),
        ({"sgd": True, "learning_rate": 0.1, "momentum": 0.9}, {"rate": 0.1, "momentum": 0.9}),
    ],
    ids=str,
)


def check_against(tree, model: Learner, text: str, bits: int, tolerance: dict) -> None:
    """Compare the probabilities of all classes example by example, and the losses of the summary."""
    results = go_through(model, text, top_k=100)
    scaled = as_learned(examples(text, bits), model.options["normalize_features"])
    squared = log = weight_sum = known_sum = 0.0
    for number, ((row, y, weight), got) in enumerate(zip(scaled, results.lists, strict=True), 1):
        want = tree.probabilities(row)
        rest = got.pop(0)
        assert set(got) == set(want), number
        for label, p in got.items():
            assert p == pytest.approx(want[label], **tolerance), (number, label)
        assert list(got.values()) == sorted(got.values(), reverse=True)
        assert sum(got.values()) + rest == pytest.approx(1, abs=1e-6)
        if y is None:
            continue
        p = want.get(y, 0.0)
        squared += weight * (1 - p) ** 2
        weight_sum += weight
        if y in want:
            log -= weight * math.log(p)
            known_sum += weight
        if weight > 0:
            tree.learn(row, y, weight)
    assert fact(results.summary, "average squared loss") == pytest.approx(squared / weight_sum, rel=1e-4)
    assert fact(results.summary, "average log loss") == pytest.approx(log / known_sum, rel=1e-4)
    assert f"classes in the tree = {len(tree.leaf)}, depth = {tree.root.depth()}\n" in results.summary


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@OPTIONS
def test_probabilities_with_tagged_words_are_the_oracles(loss, options, oracle):
    """The same sums of the same rounded weights, in a table that is too small for all of them."""
    k, bits = 17, 7
    text = multiclass(1, k, 170, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    tree = tagged_learners.Tree(bits - 3, loss=loss, **{"rate": 0.5 if loss == "squared" else 1.0, **oracle})
    with Learner("cpt", k, bits=bits, layout="tagged", loss_function=loss, **options) as model:
        check_against(tree, model, text, bits, {"rel": 1e-6, "abs": 1e-7})
        check_words(model.core.contents(), "weights.0", tree.table)
    assert tree.table.evicted > 50 and tree.table.refused > 25


@pytest.mark.parametrize(("most", "doublings", "n"), [(2, 2, 150), (6, 5, 450)])
def test_table_that_is_doubled_is_the_oracles(most, doublings, n):
    """Three times when half of the words are in use, then when twice as many as there are were lost."""
    k, bits = 60, 4
    text = multiclass(1, k, n, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    tree = tagged_learners.Tree(bits - 3, most)
    with Learner("cpt", k, bits=bits, layout="tagged", max_doublings=most) as model:
        check_against(tree, model, text, bits, {"rel": 1e-6, "abs": 1e-7})
        check_words(model.core.contents(), "weights.0", tree.table)
    assert tree.table.doublings == doublings


# -- the tree


def grow(labels, p_right, alpha: float) -> label_tree.ClassTree:
    """Insert labels with given predictions of the regressors."""
    tree = label_tree.new_tree(4, 8)
    for label in labels:
        if not label_tree.has_capacity(tree):
            tree = label_tree.with_double_capacity(tree)
        if tree.size[label_tree.NODES] == 0:
            label_tree.insert_root(tree, label)
            continue
        a = 0
        while tree.left[a] > 0:
            left = int(tree.left[a])
            counts = float(tree.leaves[left]), float(tree.leaves[left + 1])
            right = binary_nodes.objective(alpha, p_right(label, a), *counts) > 0
            tree.leaves[a] += 1
            a = left + int(right)
        tree.leaves[a] += 1
        label_tree.split(tree, a, label)
    return tree


def check_balance(tree, alpha: float) -> None:
    """No side of a node holds more than a share kappa of its leaves, and what one leaf more makes of it."""
    kappa = 1 / (1 + 2 ** (1 - 1 / alpha))
    nodes = int(tree.size[label_tree.NODES])
    for a in range(nodes):
        left = int(tree.left[a])
        if left > 0:
            count = int(tree.leaves[a])
            assert count == tree.leaves[left] + tree.leaves[left + 1]
            assert max(tree.leaves[left], tree.leaves[left + 1]) <= kappa * count + 1
    labels = (nodes + 1) // 2
    if labels > 1 and kappa < 0.999:
        extra = 2 + math.ceil(1 / (1 - kappa))  # of the nodes of few leaves, where one leaf is a large share
        assert tree.size[label_tree.DEEPEST] <= math.log(labels) / math.log(1 / kappa) + extra + 2


@settings(max_examples=60)
@given(
    labels=st.lists(st.integers(1, HIGHEST_LABEL), unique=True, min_size=1, max_size=150),
    alpha=st.sampled_from([0.3, 0.5, 0.6, 0.9, 1.0]),
    seed=st.integers(0, 99),
)
def test_tree_stays_balanced_whatever_the_regressors_say(labels, alpha, seed):
    rng = random.Random(seed)
    tree = grow(labels, lambda label, a: rng.choice([0.0, 0.5, 1.0, rng.random()]), alpha)
    check_balance(tree, alpha)
    for label in labels:
        leaf = label_tree.find(tree, label)
        assert tree.label[leaf] == label
    assert label_tree.find(tree, HIGHEST_LABEL + 1) == -1


@pytest.mark.parametrize("alpha", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_tree_stays_balanced_against_regressors_that_want_one_side(alpha, score):
    check_balance(grow(range(1, 1001), lambda label, a: score, alpha), alpha)


def test_alpha_0_follows_the_regressors_however_deep_the_tree_becomes(tmp_path):
    """Regressors that are never sure make a chain: the tree learns, predicts, and is saved and loaded all the same."""
    k = 300
    text = "".join(f"{y} |w b{y}\n" for y in range(1, k + 1))
    with trained("cpt", 0, text, bits=16, cpt_alpha=0, noconstant=True) as model:
        assert tree_of(model).size[label_tree.DEEPEST] > 0.9 * k
        model.save(str(tmp_path / "m"))
    with load(str(tmp_path / "m")) as model:
        model.learn_many(text)
        labels, p = model.predict_many(text, 2)
    assert labels.min() >= 0 and np.isfinite(p).all()


@settings(max_examples=15)
@given(k=st.integers(2, 150), alpha=st.sampled_from([0.0, 0.2, 0.5, 0.6, 0.9, 1.0]), seed=st.integers(0, 99))
def test_disagreements_are_at_most_the_papers_bound(k, alpha, seed):
    """As many as the leaves' depths, and these sum to K log2 K / H(kappa), and at most K as leaves come one by one.

    A disagreement is a new label on the side to which the regressor gives less than half of the probability.
    """
    rng, turns = random.Random(seed), []

    def p_right(label, a):
        turns.append((label, a, rng.choice([0.0, 0.4, 0.6, 1.0])))
        return turns[-1][2]

    tree = grow(range(1, k + 1), p_right, alpha)
    disagreements = 0
    for label, a, p in turns:
        at = int(label_tree.find(tree, label))
        while tree.parent[at] != a:
            at = int(tree.parent[at])
        disagreements += (p > 0.5) != (at > tree.left[a])
    depths = label_tree.depths(tree)
    assert disagreements <= depths.sum()
    kappa = 1 / (1 + 2 ** (1 - 1 / alpha)) if alpha > 0 else 1.0
    assert disagreements == 0 or kappa < 1
    if alpha >= 0.5:
        entropy = -kappa * math.log2(kappa) - (1 - kappa) * math.log2(1 - kappa)
        assert depths.sum() <= k * math.log2(k) / entropy + k


def test_alpha_1_gives_a_perfectly_balanced_tree():
    tree = grow(range(1, 1025), lambda label, a: 1.0, 1.0)
    assert tree.size[label_tree.DEEPEST] == 10


def test_places_of_regressors_are_different_ones():
    tree = grow(range(1, 400), lambda label, a: 0.5 + 0.5 * math.sin(label * a), 0.3)
    used = tree.place[: tree.size[label_tree.NODES]]
    assert len(set(used.tolist())) == len(used)
    assert (used & 7 > 0).all()
    assert used.max() >> 3 == tree.size[label_tree.BLOCKS]


# -- what is reported


def test_losses_alone_need_no_search():
    text = multiclass(8, 20, 400)
    with trained("cpt", 20, text, bits=20) as whole, Learner("cpt", 20, bits=20, cpt_report="losses") as model:
        summary, wanted = go_through(model, text, perplexity=True).summary, summary_of(whole)
        assert fact(summary, "average squared loss") == fact(wanted, "average squared loss")
        assert model.average_loss == pytest.approx(fact(wanted, "average squared loss"), abs=1e-6)
        assert fact(summary, "perplexity") == pytest.approx(math.exp(fact(wanted, "average log loss")), rel=1e-4)
        assert "nodes opened" not in summary
        assert same_arrays(whole, model)


def test_reliability_table_is_that_of_the_predictions():
    text = multiclass(9, 15, 700, weights=(1, 2), unlabelled=0.1)
    with Learner("cpt", 15, bits=20) as model:
        results = go_through(model, text, calibration="c", top_k=1)
        (table,) = model.core.reduction.results()
    bins = np.zeros((3, calibration.BINS))
    for (_, y, weight), (label, p) in zip(
        examples(text), (next(iter(listing.items())) for listing in results.lists), strict=True
    ):
        if y is not None and label > 0:
            bins[:, min(int(p * calibration.BINS), calibration.BINS - 1)] += weight * np.array([1, p, label == y])
    assert (table.path, table.description) == ("c", "the reliability table")
    rows = [[float(cell) for cell in line.split("\t")] for line in list(table.lines)[1:]]
    assert sum(row[4] for row in rows) == pytest.approx(bins[0].sum(), abs=2)  # the first has no prediction
    for row in rows[1:]:
        weight, forecast, right = bins[:, round(row[0] * calibration.BINS)]
        assert row[4] == weight
        assert row[2] == pytest.approx(forecast / weight, abs=2e-6)
        assert row[3] == pytest.approx(right / weight, abs=2e-6)
    error = np.abs(bins[1] - bins[2]).sum() / bins[0].sum()
    assert fact(results.summary, "expected calibration error") == pytest.approx(error, abs=0.005)


# -- labels


def test_labels_may_be_any_and_come_at_any_time(tmp_path):
    with trained("cpt", 0, "".join(f"{y} |w a{y}\n" for y in (2**31, 7, 123456789) * 20), bits=20) as model:
        model.save(str(tmp_path / "m"))
    with load(str(tmp_path / "m")) as model:
        results = go_through(model, "".join(f"{y} |w a{y}\n" for y in (2**31, 5, 7, 99, 123456789) * 30))
        assert results.predictions[-5:] == [2**31, 5, 7, 99, 123456789]
        assert "labels seen for the first time = 2," in results.summary
        assert "classes in the tree = 5," in results.summary
        for label in (0, 2**31 + 1):
            with pytest.raises(DataError, match=f"label {label} is outside 1..{2**31}"):
                model.learn_many(f"{label} |w a\n")


def test_unseen_label_in_a_test_is_an_error_of_the_tree():
    with trained("cpt", 2, "1 |w a\n2 |w b\n" * 20, bits=20) as model:
        results = go_through(model, "1 |w a\n9 |w b\n", learn=False, top_k=1)
    assert results.loss == 1
    assert "labels seen for the first time = 1," in results.summary


def test_empty_tree_answers_0():
    with Learner("cpt", 0, bits=20) as model:
        assert model.predict_many(" |w b\n").tolist() == [0]
        assert go_through(model, " |w b\n", learn=False, top_k=3).lists == [{0: 1}]
        model.learn_many("1 |w a\n")
        assert model.predict_many(" |w b\n").tolist() == [1]


@pytest.mark.bounds
def test_many_labels_make_the_tree_grow(tmp_path):
    text = "".join(f"{y} |w a{y % 50} b{y}\n" for y in range(1, 801))
    with trained("cpt", 0, text, bits=16, cpt_alpha=0.05) as model:
        model.save(str(tmp_path / "m"))
    with load(str(tmp_path / "m")) as model:
        model.learn_many(text)
        assert tree_of(model).size[label_tree.NODES] == 1599


# -- models


def test_what_a_run_asks_for_needs_the_search_that_is_left_out():
    for words in (
        ("-p", "stdout"), ("--top_k", 2), ("--beam", 2), ("--exact",),
    ):  # fmt: skip
        assert xclass("--cpt", 3, "--cpt_report", "losses", *words, stdin="1 |w a\n").status == 2, words


# -- several trees


def test_several_trees_differ_and_agree_on_the_best_by_the_sum_of_logarithms():
    k, trees = 30, 3
    rng = random.Random(13)

    def lines(n):  # numbers as features: their index does not depend on -b
        for _ in range(n):
            y = rng.randrange(k)
            classes = [y if rng.random() < 0.6 else rng.randrange(k) for _ in range(3)]
            yield f"{y + 1} | {' '.join(str(100 * j + z) for j, z in enumerate(classes, 1))}\n"

    text, test = "".join(lines(600)), "".join(lines(100))
    options = {"tree_noise": 0.3, "noconstant": True, "normalize_features": "unit"}
    with trained("cpt", k, text, bits=20, trees=trees, **options) as model:
        assert len({tuple(tree_of(model, t).left) for t in range(trees)}) == trees
        got = model.predict_many(test, 1)
        contents = model.core.contents()
        # one tree at a time, every label of it: a model of its own with its part of the table
        lists = []
        for t in range(trees):
            arrays = {
                name.replace(f".{t}.", ".0."): array
                for name, array in contents.arrays.items()
                if name.startswith((f"tree.{t}.", f"weights.{t}."))
            }
            arrays["random"] = contents.arrays["random"][t : t + 1]
            single = contents._replace(options={**contents.options, "trees": 1, "bits": 18}, arrays=arrays)
            config = configuration.of_model("one", single.options)
            with Learner.of(LearnerCore(config, single)) as learner:
                lists.append(go_through(learner, test, learn=False, top_k=k).lists)
    for (label,), (p,), *each in zip(*got, *lists, strict=True):
        candidates = {y for listing in each for y in list(listing)[:5]}
        worth = {y: sum(math.log(listing[y]) for listing in each) for y in candidates}
        assert worth[label] >= max(worth.values()) - 1e-5
        assert p == pytest.approx(sum(listing[label] for listing in each) / trees, rel=1e-6)
