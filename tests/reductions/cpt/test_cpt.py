"""The conditional probability tree: against its oracle, against brute force, and against the paper's bound."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from command import learn, xclass
from cpt_runs import BITS, examples, fact, lines_of, pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import multiclass

from tests.oracles.cpt import Tree
from tests.oracles.feature_scales import as_learned
from xclass.data.batch import HIGHEST_LABEL
from xclass.model import model_file
from xclass.reductions.core import calibration
from xclass.reductions.cpt import binary_nodes, label_tree


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- the same numbers as the oracle


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("options", "oracle"),
    [
        ((), {}),
        (("--cpt_alpha", 0.1), {"alpha": 0.1}),
        (("--cpt_tree", "balanced"), {"rule": "balanced"}),
        (("--cpt_tree", "random", "--random_seed", 3), {"rule": "random", "seed": 3}),
        (("--normalize_features", "none", "-l", 0.2), {"unit": False, "rate": 0.2}),
        (("--normalize_features", "unit"), {}),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_probabilities_are_the_oracles_example_by_example(loss, options, oracle):
    k = 17
    text = multiclass(1, k, 250, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    run = ("--cpt", k, "-b", 24, "--loss_function", loss, *options)
    done = learn(*run, "--top_k", k, "-p", "p", stdin=text)
    scaled = as_learned(examples(text), "none" if "--normalize_features" in options else "auto")
    tree = Tree(loss=loss, **{"rate": 0.5 if loss == "squared" else 1.0, **oracle})
    squared = log = weight_sum = known_sum = 0.0
    lines = lines_of("p")
    for number, ((row, y, weight), line) in enumerate(zip(scaled, lines, strict=True), 1):
        want = tree.probabilities(row)
        got, rest = pairs(line)
        assert set(got) == set(want), number
        for label, p in got.items():
            assert p == pytest.approx(want[label], rel=2e-4, abs=1e-6), (number, label)
        assert list(got.values()) == sorted(got.values(), reverse=True)
        assert sum(got.values()) + rest == pytest.approx(1, abs=2e-5)
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
    assert fact(done.err, "average squared loss") == pytest.approx(squared / weight_sum, rel=1e-4)
    assert fact(done.err, "average log loss") == pytest.approx(log / known_sum, rel=1e-4)
    assert f"classes in the tree = {len(tree.leaf)}, depth = {tree.root.depth()}\n" in done.err


# -- the tree


def grow(labels, p_right, alpha: float) -> label_tree.Tree:
    """Insert labels, the regressors' answers being given."""
    tree = label_tree.new_tree(4, 8)
    for label in labels:
        if not label_tree.has_room(tree):
            tree = label_tree.with_double_capacity(tree)
        if tree.size[label_tree.NODES] == 0:
            label_tree.plant(tree, label)
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
@pytest.mark.parametrize("says", [0.0, 1.0])
def test_tree_stays_balanced_against_regressors_that_want_one_side(alpha, says):
    check_balance(grow(range(1, 1001), lambda label, a: says, alpha), alpha)


def test_alpha_1_gives_a_perfectly_balanced_tree():
    tree = grow(range(1, 1025), lambda label, a: 1.0, 1.0)
    assert tree.size[label_tree.DEEPEST] == 10


@pytest.mark.parametrize("order", ["rising", "falling", "random", "clusters"])
def test_order_of_labels_does_not_break_the_balance(order):
    k = 200
    labels = {
        "rising": list(range(1, k + 1)),
        "falling": list(range(k, 0, -1)),
        "random": random.Random(4).sample(range(1, 10**9), k),
        "clusters": [1 + (i * 37) % k for i in range(k)],
    }[order]
    text = "".join(f"{y} |w same a{y % 3} b{y}\n" for y in labels for _ in range(3))
    learn("--cpt", 0, *BITS, "-f", "m", "--quiet", stdin=text)
    tree = label_tree.restored("tree.0", model_file.load("m").arrays)
    assert tree.size[label_tree.NODES] == 2 * k - 1
    check_balance(tree, 0.6)


def test_places_of_regressors_are_different_ones():
    tree = grow(range(1, 400), lambda label, a: 0.5 + 0.5 * math.sin(label * a), 0.3)
    used = tree.place[: tree.size[label_tree.NODES]]
    assert len(set(used.tolist())) == len(used)
    assert (used & 7 > 0).all()
    assert used.max() >> 3 == tree.size[label_tree.BLOCKS]


# -- the search


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("tree", ["general", "random"])
@pytest.mark.parametrize("seed", range(3))
def test_top_k_is_the_top_of_all_labels(loss, tree, seed):
    k = 60
    learn(
        "--cpt", k, *BITS, "--loss_function", loss, "--cpt_tree", tree, "--random_seed", seed, "-f", "m", "--quiet",
        stdin=multiclass(seed, k, 800, noise=0.3),
    )  # fmt: skip
    test = multiclass(seed + 100, k, 80, noise=0.5)
    every = learn("-i", "m", "-t", "--quiet", "--top_k", 1000, "-p", "stdout", stdin=test).lines
    for few in (1, 2, 10):
        best = learn("-i", "m", "-t", "--quiet", "--top_k", few, "-p", "stdout", stdin=test).lines
        for one, whole in zip(best, every, strict=True):
            got, rest = pairs(one)
            want, nothing = pairs(whole)
            assert nothing < 1e-6
            assert sum(want.values()) == pytest.approx(1, abs=1e-4)
            assert list(got.values()) == list(want.values())[:few]
            assert all(want[label] == p for label, p in got.items())
            assert rest == pytest.approx(1 - sum(got.values()), abs=2e-5)
    single = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=test).lines
    for label, whole in zip(single, every, strict=True):
        want = pairs(whole)[0]
        assert want[int(label)] == max(want.values())


def test_being_right_does_not_depend_on_what_is_written():
    """Without -p a search ends as soon as it knows whether the label wins."""
    text = multiclass(5, 40, 1500, noise=0.3, weights=(1, 2, 0.5), unlabelled=0.05)
    quick = learn("--cpt", 40, *BITS, stdin=text)
    whole = learn("--cpt", 40, *BITS, "-p", "p", stdin=text)
    for name in ("average loss", "average squared loss", "average log loss"):
        assert fact(quick.err, name) == fact(whole.err, name)
    opened = [float(done.err.split("mean ")[1].split(",")[0]) for done in (quick, whole)]
    assert opened[0] < opened[1]


def test_budget_leaves_an_answer_and_tells_the_gap():
    text = multiclass(6, 50, 600, noise=0.4)
    done = learn("--cpt", 50, *BITS, "--max_expand", 1, "-p", "stdout", stdin=text)
    assert all(int(line) > 0 for line in done.lines[1:])
    assert fact(done.err, "searches ended by --max_expand") > 10
    assert 0 < float(done.err.split("may have up to ")[1].split()[0]) < 1


@pytest.mark.parametrize("budget", [1, 3, 6, 12])
def test_no_label_left_out_has_more_than_the_gap(tmp_path, budget):
    text = multiclass(6, 50, 600, noise=0.4)
    learn("--cpt", 50, *BITS, "-f", "m", stdin=text, cwd=tmp_path)
    run = ("-i", "m", "-t", "-p", "stdout")
    whole = learn(*run, "--probabilities", stdin=text, cwd=tmp_path)
    cut = learn(*run, "--top_k", 3, "--max_expand", budget, stdin=text, cwd=tmp_path)
    gap = float(cut.err.split("may have up to ")[1].split()[0])
    missed = 0.0
    for all_pairs, listed in zip(whole.lines, cut.lines, strict=True):
        (p, _), (found, _) = pairs(all_pairs), pairs(listed)
        left_out = max(mass for label, mass in p.items() if label not in found)
        if len(found) < 3 or left_out > min(found.values()) + 1e-6:
            missed = max(missed, left_out)
    assert 0 < missed <= gap + 1e-5


def test_greedy_search_follows_the_likelier_child():
    text = multiclass(7, 30, 900, noise=0.4)
    exact = fact(learn("--cpt", 30, *BITS, stdin=text).err, "average loss")
    done = learn("--cpt", 30, *BITS, "--cpt_search", "greedy", stdin=text)
    assert exact < fact(done.err, "average loss")
    assert float(done.err.split("mean ")[1].split(",")[0]) <= 10


# -- what is reported


def test_losses_alone_need_no_search():
    text = multiclass(8, 20, 400)
    whole = learn("--cpt", 20, *BITS, "-f", "a", stdin=text).err
    done = learn("--cpt", 20, *BITS, "--cpt_report", "losses", "-f", "b", "--perplexity", stdin=text).err
    assert fact(done, "average loss") == fact(done, "average squared loss") == fact(whole, "average squared loss")
    assert fact(done, "perplexity") == pytest.approx(math.exp(fact(whole, "average log loss")), rel=1e-4)
    assert "nodes opened" not in done
    first, second = (model_file.load(name).arrays for name in "ab")
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_reliability_table_is_that_of_the_predictions(place):
    text = multiclass(9, 15, 700, weights=(1, 2), unlabelled=0.1)
    done = learn("--cpt", 15, *BITS, "--calibration", "c", "--top_k", 1, "-p", "p", stdin=text)
    bins = np.zeros((3, calibration.BINS))
    for line, answer in zip(text.splitlines(), (place / "p").read_text().splitlines(), strict=True):
        words = line.split("|")[0].split(" ")
        got, _ = pairs(answer)
        if words[0] and got:
            ((label, p),) = got.items()
            bins[:, min(int(p * calibration.BINS), calibration.BINS - 1)] += float(words[1]) * np.array(
                [1, p, label == int(words[0])]
            )
    rows = [line.split("\t") for line in (place / "c").read_text().splitlines()[1:]]
    assert sum(float(row[4]) for row in rows) == pytest.approx(bins[0].sum(), abs=2)  # the first has no answer
    for row in rows[1:]:
        weight, forecast, right = bins[:, round(float(row[0]) * calibration.BINS)]
        assert float(row[4]) == pytest.approx(weight, abs=2)
        assert float(row[2]) == pytest.approx(forecast / weight, abs=0.01)
        assert float(row[3]) == pytest.approx(right / weight, abs=0.01)
    error = np.abs(bins[1] - bins[2]).sum() / bins[0].sum()
    assert fact(done.err, "expected calibration error") == pytest.approx(error, abs=0.005)


# -- labels


def test_labels_may_be_any_and_come_at_any_time(place):
    some = "".join(f"{y} |w a{y}\n" for y in (2**31, 7, 123456789) * 20)
    learn("--cpt", 0, *BITS, "-f", "m", "--quiet", stdin=some)
    more = "".join(f"{y} |w a{y}\n" for y in (2**31, 5, 7, 99, 123456789) * 30)
    done = learn("-i", "m", "-f", "m", "-p", "p", stdin=more)
    assert "labels seen for the first time = 2," in done.err
    assert (place / "p").read_text().split()[-5:] == ["2147483648", "5", "7", "99", "123456789"]
    assert "classes in the tree = 5," in done.err
    assert xclass("--cpt", 3, stdin="0 |w a\n").status == 1
    assert xclass("--cpt", 3, stdin=f"{2**31 + 1} |w a\n").status == 1


def test_unseen_label_in_a_test_is_an_error_of_the_tree():
    learn("--cpt", 2, *BITS, "-f", "m", "--quiet", stdin="1 |w a\n2 |w b\n" * 20)
    done = learn("-i", "m", "-t", stdin="1 |w a\n9 |w b\n")
    assert fact(done.err, "average loss") == 0.5
    assert "labels seen for the first time = 1," in done.err


def test_empty_tree_answers_0():
    learn("--cpt", 0, *BITS, "-f", "m", "--quiet", stdin="1 |w a\n")
    assert learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=" |w b\n").lines == ["1"]
    assert learn("--cpt", 0, *BITS, "-t", "--quiet", "-p", "stdout", "--top_k", 3, stdin=" |w b\n").lines == ["0:1"]


@pytest.mark.bounds
def test_many_labels_make_the_tree_grow():
    text = "".join(f"{y} |w a{y % 50} b{y}\n" for y in range(1, 3001))
    learn("--cpt", 0, "-b", 16, "--cpt_alpha", 0.05, "-f", "m", "--quiet", stdin=text)
    learn("-i", "m", "-f", "n", "--quiet", stdin=text)
    assert label_tree.restored("tree.0", model_file.load("n").arrays).size[label_tree.NODES] == 5999


# -- models


def test_model_that_holds_no_tree_is_refused():
    learn("--cpt", 0, *BITS, "-f", "m", "--quiet", stdin=multiclass(10, 9, 100))
    model = model_file.load("m")
    arrays = {name: np.array(array) for name, array in model.arrays.items()}
    for part, at, value in (
        ("left", 0, 0),
        ("left", 0, 3),
        ("label", -1, 0),
        ("label", -1, 5000000000),
        ("place", 1, 3),
    ):
        spoiled = {name: array.copy() for name, array in arrays.items()}
        spoiled[f"tree.0.{part}"][at] = value
        model_file.save("bad", options=model.options, facts=model.facts, arrays=spoiled)
        done = xclass("-i", "bad", "-t", stdin="1 |w a\n")
        assert done.status == 1, (part, at, value)
        assert "train the model again" in done.err


def test_options_without_effect_are_refused():
    for words in (
        ("--normalized",), ("--layout", "odd"), ("--loss_function", "hinge"), ("--vw_exact",),
        ("--cpt_tree", "random", "--cpt_alpha", 0.5), ("--cpt_search", "greedy", "--top_k", 2),
        ("--cpt_report", "losses", "-p", "p"), ("--cpt_report", "losses", "--top_k", 2),
    ):  # fmt: skip
        assert xclass("--cpt", 3, *words, stdin="1 |w a\n").status == 2, words


# -- several trees


def test_several_trees_give_the_same_bytes_on_any_number_of_threads(place, monkeypatch):
    text, test = multiclass(11, 25, 500), multiclass(12, 25, 200)
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        done = learn("--cpt", 25, *BITS, "--trees", 4, "-p", "stdout", "-f", "m", "--quiet", stdin=text)
        tested = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", "--quiet", stdin=test)
        found.append((done.out, tested.out, (place / "m").read_bytes()))
    assert found[0] == found[1] == found[2]


def test_several_trees_differ_and_agree_on_the_best_by_the_sum_of_logarithms():
    k, trees = 30, 3
    rng = random.Random(13)

    def lines(n):  # numbers as features: their index does not depend on -b
        for _ in range(n):
            y = rng.randrange(k)
            told = [y if rng.random() < 0.6 else rng.randrange(k) for _ in range(3)]
            yield f"{y + 1} | {' '.join(str(100 * j + z) for j, z in enumerate(told, 1))}\n"

    run = ("--cpt", k, *BITS, "--trees", trees, "--tree_noise", 0.3, "--noconstant", "--normalize_features", "unit")
    learn(*run, "-f", "m", "--quiet", stdin="".join(lines(600)))
    model = model_file.load("m")
    shapes = {tuple(model.arrays[f"tree.{t}.left"]) for t in range(trees)}
    assert len(shapes) == trees
    test = "".join(lines(100))
    # one tree at a time, every label of it: a model of its own with its part of the table
    lists = []
    for t in range(trees):
        arrays = {
            name.replace(f".{t}.", ".0."): np.array(array)
            for name, array in model.arrays.items()
            if f".{t}." in name and name.split(".")[1] == str(t)
        }
        options = {**model.options, "trees": 1, "bits": BITS[1] - 2}
        random_state = np.array(model.arrays["random"])[t : t + 1]
        model_file.save("one", options=options, facts=model.facts, arrays={**arrays, "random": random_state})
        lines = learn("-i", "one", "-t", "--top_k", k, "-p", "stdout", "--quiet", stdin=test).lines
        lists.append([pairs(line)[0] for line in lines])
    got = learn("-i", "m", "-t", "--top_k", 1, "-p", "stdout", "--quiet", stdin=test).lines
    for line, *each in zip(got, *lists, strict=True):
        ((label, p),) = pairs(line)[0].items()
        candidates = {y for one in each for y in list(one)[:5]}
        worth = {y: sum(math.log(one[y]) for one in each) for y in candidates}
        assert worth[label] >= max(worth.values()) - 1e-3
        assert p == pytest.approx(sum(one[label] for one in each) / trees, rel=1e-4)
