"""Trees whose nodes have m branches: against their oracle, the paper's bounds, brute force and the binary tree."""

import math
import random

import numpy as np
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from library import fact, go_through, state_of, summary_of, trained
from probability_trees import check_words, examples, tree_of
from streams import multiclass

from tests.oracles import tagged_learners
from tests.oracles.feature_scales import as_learned
from tests.oracles.pecoc import LEAST, estimates, hadamard, nearest
from xclass import Learner, UsageError, load
from xclass.binary import adagrad, loss
from xclass.reductions.cpt import label_tree, pecoc

# -- the same numbers as the oracle


TREES = pytest.mark.parametrize(("m", "loss_function"), [(4, "squared"), (32, "squared"), (8, "logistic")])
OPTIONS = pytest.mark.parametrize(
    ("options", "oracle"),
    [
        ({}, {}),
        ({"cpt_alpha": 0}, {"alpha": 0.0}),
        ({"cpt_tree": "balanced"}, {"rule": "balanced"}),
        ({"cpt_tree": "random", "random_seed": 3}, {"rule": "random", "seed": 3}),
        ({"normalize_features": "none", "learning_rate": 0.2}, {"unit": False, "rate": 0.2}),
    ],
    ids=str,
)


def check_against(tree, model: Learner, text: str, bits: int, tolerance: dict) -> None:
    """Compare the probabilities of all classes example by example, and the facts of the summary."""
    results = go_through(model, text, top_k=100)
    scaled = as_learned(examples(text, bits), model.options["normalize_features"])
    squared = weight_sum = known_sum = regressor_sum = mean = 0.0
    for number, ((row, y, weight), got) in enumerate(zip(scaled, results.lists, strict=True), 1):
        want = tree.probabilities(row)
        rest = got.pop(0)
        assert set(got) == set(want), number
        for label, p in got.items():
            assert p == pytest.approx(want[label], **tolerance), (number, label)
        assert sum(got.values()) + rest == pytest.approx(1, abs=1e-6)
        if y is None:
            continue
        squared += weight * (1 - want.get(y, 0.0)) ** 2
        weight_sum += weight
        if y in want:
            regressors, total = tree.regressor_losses(row, y)
            known_sum += weight
            regressor_sum += weight * regressors
            mean += weight * total / max(regressors, 1)
        if weight > 0:
            tree.learn(row, y, weight)
    assert fact(results.summary, "average squared loss") == pytest.approx(squared / weight_sum, rel=1e-4)
    assert fact(results.summary, "regressors scored per label") == pytest.approx(regressor_sum / known_sum, abs=0.006)
    assert fact(results.summary, "their average squared loss") == pytest.approx(mean / known_sum, rel=1e-3)
    assert f"classes in the tree = {len(tree.way)}," in results.summary
    assert f"99 % {tree.root.leaves()}" not in results.summary
    assert tree.root.depth() == (1 if tree.m == 32 else tree.root.depth())


@pytest.mark.sampled(3)
@TREES
@OPTIONS
def test_probabilities_with_tagged_words_are_the_oracles(m, loss_function, options, oracle):
    """The same sums of the same rounded weights, in a table that is too small for all of them, and is doubled once."""
    k, bits = 17, 7
    text = multiclass(1, k, 90, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    rate = {"rate": 0.5 if loss_function == "squared" else 1.0}
    tree = tagged_learners.WideTree(m, bits - 3, 1, loss=loss_function, **{**rate, **oracle})
    options = {"cpt_arity": m, "loss_function": loss_function, **options}
    with Learner("cpt", k, bits=bits, layout="tagged", max_doublings=1, **options) as model:
        check_against(tree, model, text, bits, {"rel": 1e-6, "abs": 1e-7})
        check_words(model.core.contents(), "weights.0", tree.table)
    assert tree.table.evicted > 50 and tree.table.refused > 25 and tree.table.doublings == 1


# -- one node


@pytest.mark.parametrize("m", [2, 4, 8, 64])
def test_estimates_are_the_papers_by_its_matrix(m):
    weights = adagrad.new_weights(4, loss.SQUARED, 0.5)
    rng = np.random.default_rng(m)
    for used in (m, max(2, m // 3)):
        s = rng.uniform(-1.2, 1.2, m).astype(np.float32)
        child = np.where(np.isin(np.arange(m), rng.choice(m, used, replace=False)), 5, -1)
        p_odd = [0.0] + [min(max(0.5 + 0.5 * float(value), 0.01), 0.99) for value in s[1:]]
        plain = estimates(hadamard(m), [1 - p for p in p_odd])
        want = np.zeros(m)
        want[child >= 0] = np.maximum(nearest(plain[child >= 0]), LEAST / m)
        v = np.empty(m)
        pecoc.estimate(weights, s, child, v)
        assert v == pytest.approx(want / want.sum(), rel=1e-12)
        if m == 2:  # the very turns of the binary tree
            assert v.tolist() == pytest.approx([1 - p_odd[1], p_odd[1]], rel=1e-12)


@settings(max_examples=tries(200))
@given(data=st.data())
def test_projection_brings_estimates_nearer_to_any_distribution(data):
    m = 8
    v = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=m, max_size=m)))
    child = np.array(data.draw(st.lists(st.sampled_from([-1, 5]), min_size=m, max_size=m)))
    child[data.draw(st.integers(0, m - 1))] = 5
    used = child >= 0
    got = np.where(used, np.maximum(v - pecoc.simplex_threshold(v, child), 0), 0)
    assert got.sum() == pytest.approx(1)
    truth = np.where(used, data.draw(st.lists(st.floats(0.01, 1), min_size=m, max_size=m)), 0)
    truth /= truth.sum()
    assert ((got - truth) ** 2)[used].sum() <= ((v - truth) ** 2)[used].sum() + 1e-12


@pytest.mark.parametrize("m", [2, 8, 1024])
def test_parity_computes_the_matrix(m):
    matrix = hadamard(m)
    assert (matrix[0] == 1).all()
    some = np.random.default_rng(1).integers(0, m, (300, 2))
    assert all(pecoc.parity(i, c) == 1 - matrix[i, c] for i, c in some.tolist())
    assert np.array_equal((2 * matrix - 1) @ (2 * matrix - 1).T, m * np.eye(m))  # every two rows differ in half


@settings(max_examples=tries(200))
@given(data=st.data(), levels=st.integers(1, 5))
def test_squared_loss_is_within_the_papers_bound(data, levels):
    """4 (1 - 1/m)**2 times the regressors' mean squared loss in a node, d**2 times that over d nodes."""
    m = 1 << levels
    matrix = hadamard(m)
    depth = data.draw(st.integers(1, 4))
    product, losses = 1.0, []
    for _ in range(depth):
        c = data.draw(st.integers(0, m - 1))
        f = [1.0, *data.draw(st.lists(st.floats(0, 1), min_size=m - 1, max_size=m - 1))]
        product *= min(max(estimates(matrix, f)[c], 0.0), 1.0)
        losses += [(f[i] - matrix[i, c]) ** 2 for i in range(1, m)]
    bound = 4 * (1 - 1 / m) ** 2 * depth**2 * sum(losses) / len(losses)
    assert (1 - product) ** 2 <= bound + 1e-9


# -- the tree


def blocks(tree, levels: int) -> dict[int, list[int]]:
    """Root of every block that has branches -> the nodes these lead to."""
    nodes_of_block = {}
    for root in range(int(tree.size[label_tree.NODES])):
        if tree.depth[root] % levels == 0 and tree.left[root] > 0:
            nodes = [root]
            for _ in range(levels):
                halves = [[int(tree.left[a]), int(tree.left[a]) + 1] if tree.left[a] > 0 else [a] for a in nodes]
                nodes = [a for half in halves for a in half]
            nodes_of_block[root] = nodes
    return nodes_of_block


@pytest.mark.parametrize("order", ["rising", "random", "clusters"])
@pytest.mark.parametrize("rule", [{"cpt_alpha": 0.02}, {"cpt_tree": "balanced"}, {"cpt_tree": "random"}], ids=str)
@pytest.mark.parametrize("m", [4, 16])
def test_a_block_fills_up_before_another_begins_below(order, rule, m):
    k, levels = 150, m.bit_length() - 1
    labels = {
        "rising": list(range(1, k + 1)),
        "random": random.Random(4).sample(range(1, 10**9), k),
        "clusters": [1 + (i * 37) % k for i in range(k)],
    }[order]
    text = "".join(f"{y} |w same a{y % 3} b{y}\n" for y in labels for _ in range(2))
    with trained("cpt", 0, text, bits=20, cpt_arity=m, **rule) as model:
        tree = tree_of(model)
    nodes_of_block = blocks(tree, levels)
    inner = 0
    for nodes in nodes_of_block.values():
        assert len(nodes) <= m
        if any(tree.left[a] > 0 for a in nodes):
            assert len(nodes) == m
            inner += 1
    assert inner > 0
    assert sum(tree.left[a] == 0 for nodes in nodes_of_block.values() for a in nodes) == k


def test_arity_of_at_least_k_gives_one_node():
    for k, m in ((30, 32), (16, 16), (5, 4096)):
        with trained("cpt", k, multiclass(3, k, 400, noise=0.2), bits=20, cpt_arity=m, cpt_alpha=0.01) as model:
            summary = summary_of(model)
        assert f"nodes opened by a search: mean 1.0, median 1, 99 % 1, {m - 1} regressors each" in summary
        assert m - 2 < fact(summary, "regressors scored per label") <= m - 1  # none while there is one label
        assert int(fact(summary, "depth")) <= math.log2(m)


# -- the search


def test_search_opens_a_limited_number_of_blocks():
    text, found = multiclass(7, 90, 900, noise=0.4), {}
    for beam in (1, 2, 0):
        options = {"beam": beam} if beam else {"exact": True}
        with trained("cpt", 90, text, bits=20, cpt_arity=4, **options) as model:
            opened = np.flatnonzero(model.core.reduction.report.opened_counts).max()
            found[beam] = (opened, -model.average_loss, state_of(model).arrays)
            most = beam * (fact(summary_of(model), "depth") // 2 + 1)
            assert opened <= most if beam else opened > 8
    assert found[1][:2] < found[2][:2] < found[0][:2]
    assert found[1][2] == found[2][2] == found[0][2]


# -- several trees, labels that come later, models


def test_several_trees_give_the_mean_probability():
    """`candidate_probabilities` agrees with the search: two trees without noise are one."""
    k = 45
    rng = random.Random(13)

    def lines(n):  # numbers as features: their index does not depend on the bits
        for _ in range(n):
            y = rng.randrange(k)
            classes = [y if rng.random() < 0.6 else rng.randrange(k) for _ in range(3)]
            yield f"{y + 1} | {' '.join(str(100 * j + z) for j, z in enumerate(classes, 1))}\n"

    text, test = "".join(lines(500)), "".join(lines(100))
    options = {"cpt_arity": 4, "noconstant": True}
    with trained("cpt", k, text, bits=20, **options) as model:
        labels, p = model.predict_many(test, 3)
    with trained("cpt", k, text, bits=21, trees=2, tree_noise=0, **options) as model:
        labels_again, p_again = model.predict_many(test, 3)
    assert np.array_equal(labels, labels_again)
    assert p == pytest.approx(p_again, rel=1e-5)


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow")  # of NumPy, in plain Python
def test_few_examples_are_enough_to_learn_and_predict():
    text = multiclass(18, 9, 25)
    for m, options in ((4, {}), (8, {"trees": 2}), (16, {"exact": True})):
        with Learner("cpt", 9, bits=10, cpt_arity=m, **options) as model:
            assert len(model.learn_many(text).prediction) == 25
            assert len(set(model.predict_many(text).tolist())) > 2


def test_arity_is_limited_by_memory_alone(monkeypatch, tmp_path):
    with trained("cpt", 5, "1 |w a\n2 |w b\n", bits=10, cpt_arity=1 << 20) as model:
        model.save(str(tmp_path / "m"))
    with load(str(tmp_path / "m")) as model:
        assert model.predict_many("2 |w b\n").tolist() == [2]
    monkeypatch.setattr("xclass.system.memory.available", lambda: 1 << 24)
    monkeypatch.setattr("xclass.system.thread_limit.processors", lambda: 2)
    message = "cpt_arity 1048576 needs 168 MB of memory .* only 16 MB are free; give at most cpt_arity 65536"
    with pytest.raises(UsageError, match=message):
        Learner("cpt", 5, bits=10, cpt_arity=1 << 20)
