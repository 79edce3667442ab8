"""The softmax tree: its parts against plain NumPy, its training against the oracle, and what it learns."""

import functools
import itertools
import math
import random
import re
import signal

import numpy as np
import pytest
from command import learn, start_process
from command import xclass as run
from harness import batch_of_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from library import fact, go_through, summary_of
from streams import multiclass

import xclass
from tests.oracles import softmax_tree as oracle
from xclass.data import batch_ops as batches
from xclass.data.batch import CONSTANT_GROUP
from xclass.model import model_file
from xclass.reductions.softmax_tree import inference, initialise, row_store, softmax_nodes, tao
from xclass.reductions.softmax_tree import options as softmax_options

K = 9
TREE = ("--softmax_tree", K, "-b", 16)  # for runs of the command


def in_turn(job, items) -> None:
    for item in items:
        job(*item)


def rows_of(x: np.ndarray, y, weight) -> row_store.FeatureRows:
    """Rows of a dense array."""
    row, feature = np.nonzero(x)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(x)))]).astype(np.int64)
    return row_store.FeatureRows(
        start, feature.astype(np.uint32), x[row, feature].astype(np.float32), np.asarray(y, np.int64),
        np.asarray(weight, np.float64),
    )  # fmt: skip


def groups(seed: int, n: int, k: int, features: int = 12, noise: float = 0.3):
    """Rows near the centres of k classes, labels from 1 on, and weights."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal((k, features)) * (rng.random((k, features)) < 0.5)
    y = rng.integers(0, k, n)
    x = centre[y] + noise * rng.standard_normal((n, features)) * (rng.random((n, features)) < 0.7)
    x /= np.sqrt((x**2).sum(axis=1, keepdims=True)) + 1e-9
    return x.astype(np.float32).astype(np.float64), y + 1, rng.choice((0.5, 1.0, 2.0), n)


# -- rows


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.sampled_from((0.5, 1.0, -2.0))), max_size=60), max_size=8),
    st.booleans(),
)
def test_store_gives_back_what_it_took(examples, unit):
    batch = batch_of_rows([[(1000 * index, value) for index, value in example] for example in examples])
    for i in range(len(examples)):
        batch.label[i], batch.weight[i] = i + 1, 0.5 * i + 1
    chosen = np.arange(len(examples)) % 3 != 1
    store = row_store.Store()
    cut = len(examples) // 2
    store.add(batches.cut(batch, 0, cut), chosen[:cut])
    store.add(batches.cut(batch, cut, len(examples)), chosen[cut:])
    rows, hashes = store.finish(unit, None)
    assert rows.label.tolist() == [i + 1 for i in range(len(examples)) if chosen[i]]
    assert rows.weight.tolist() == [0.5 * i + 1 for i in range(len(examples)) if chosen[i]]
    assert (np.diff(hashes.astype(np.int64)) > 0).all()
    for r, i in enumerate(np.flatnonzero(chosen)):
        length = math.sqrt(sum(v * v for _, v in examples[i])) if unit else 1.0
        wanted = {}
        for index, value in examples[i]:
            wanted[1000 * index] = wanted.get(1000 * index, 0.0) + value / length
        of_row = slice(rows.start[r], rows.start[r + 1])
        got = dict(zip(hashes[rows.feature[of_row]].tolist(), rows.value[of_row].tolist(), strict=True))
        assert (np.diff(rows.feature[of_row].astype(np.int64)) > 0).all()
        assert got == pytest.approx(wanted, abs=1e-6)
    store.close()


def test_constant_is_left_out():
    batch = batches.empty(1, 3, 2, 0)
    batch.index[:], batch.value[:] = (5, 6, 7), (3.0, 4.0, 1.0)
    batch.start[1], batch.label[0], batch.weight[0] = 3, 1, 1
    batch.group_first[1], batch.group_start[:] = 2, (0, 2, 3)
    batch.group_name[:] = (ord("w"), CONSTANT_GROUP)
    assert row_store.values(batch, True).tolist() == pytest.approx([0.6, 0.8, 0.0])
    assert row_store.values(batch, False).tolist() == [3.0, 4.0, 0.0]


# -- paths


def some_tree(seed: int, depth: int, k: int, features: int) -> softmax_nodes.SoftmaxNodes:
    """A complete tree of random weights."""
    rng = np.random.default_rng(seed)
    tree = softmax_nodes.SoftmaxNodes.complete(depth)
    for i, inside in enumerate(tree.contents):
        if isinstance(inside, softmax_nodes.Router):
            features_used = np.flatnonzero(rng.random(features) < 0.5).astype(np.uint32)
            tree.contents[i] = softmax_nodes.Router(
                features_used, rng.standard_normal(len(features_used)), float(rng.standard_normal()) / 4
            )
            continue
        label = np.flatnonzero(rng.random(k) < 0.6) + 1
        each = [np.flatnonzero(rng.random(features) < 0.2) for _ in label]
        start = np.concatenate([[0], np.cumsum([len(inside) for inside in each])]).astype(np.int64)
        feature = np.concatenate([np.empty(0, np.int64), *each]).astype(np.uint32)
        bias = np.round(rng.standard_normal(len(label)), 1)  # some are equal
        tree.contents[i] = softmax_nodes.Leaf(label, bias, start, feature, rng.standard_normal(len(feature)))
    return tree


def numpy_walk(tree: softmax_nodes.SoftmaxNodes, x: np.ndarray):
    """Where a dense row ends, the labels there and their probabilities."""
    i = 0
    while tree.left[i] >= 0:
        router = tree.contents[i]
        i = tree.right[i] if x[router.feature] @ router.weight + router.bias >= 0 else tree.left[i]
    leaf = tree.contents[i]
    owner = np.repeat(np.arange(len(leaf.label)), np.diff(leaf.start))
    z = leaf.bias + np.bincount(owner, leaf.weight * x[leaf.feature], minlength=len(leaf.label))
    p = np.exp(z)
    return i, leaf.label, p / p.sum() if len(p) else p


@pytest.mark.bounds
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_walk_agrees_with_plain_numpy(depth, seed):
    k, features, n = 12, 10, 80
    tree = some_tree(seed, depth, k, features)
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, features)) * (rng.random((n, features)) < 0.4)).astype(np.float32).astype(np.float64)
    rows = rows_of(x, rng.integers(1, k + 1, n), np.ones(n))
    for stored in (tree, softmax_nodes.from_arrays(softmax_nodes.to_arrays(tree), lambda feature: feature)):
        paths = inference.prepare(softmax_nodes.to_arrays(stored))
        result = inference.new_walk_result(n, 4)
        inference.walk(
            paths, rows.start, rows.feature, rows.value, rows.label, np.zeros(n, np.int32), 0, n,
            inference.new_scratch(paths, 4), result,
        )  # fmt: skip
        for r in range(n):
            node, label, p = numpy_walk(tree, x[r])
            assert tree.leaves()[result.leaf[r]] == node
            assert result.size[r] == len(label)
            order = np.argsort(-np.round(p, 9), kind="stable")[:4]
            assert result.predicted[r] == (label[order[0]] if len(label) else 0)
            wanted = [*label[order].tolist(), 0, 0, 0, 0][:4]
            assert result.top[r].tolist() == wanted
            assert result.top_p[r, : len(order)] == pytest.approx(p[order], rel=1e-5)
            own = np.flatnonzero(label == rows.label[r])
            if len(own):
                assert result.log_p[r] == pytest.approx(math.log(p[own[0]]), abs=1e-5)
            else:
                assert math.isnan(result.log_p[r])


def test_what_is_no_tree_is_refused():
    good = softmax_nodes.to_arrays(some_tree(1, 2, 6, 8))
    inference.check(good, 6, 2)
    circle = good.left.copy()
    circle[1] = 0
    high = good.owner.copy()
    high[-1] = 99
    twice = good.owner.copy()
    wide = int(np.argmax(np.diff(good.entry)))  # a weight that several classes have
    twice[good.entry[wide] + 1] = twice[good.entry[wide]]
    bad = [
        good._replace(owner=twice),
        good._replace(left=circle), good._replace(owner=high), good._replace(label=good.label + 6),
        good._replace(entry=good.entry[:-1]), good._replace(weight=good.weight[:-1]),
        good._replace(first=good.first[::-1].copy()), good._replace(right=good.right + 50),
        good._replace(leaf_node=good.leaf_node + 100), good._replace(bias=good.bias * np.float32("nan")),
    ]  # fmt: skip
    for broken in bad:
        with pytest.raises(model_file.ModelError, match=r"the model's array 'tree\."):
            inference.check(broken, 6, 2)


# -- training


def trained(x, y, weight, depth, start_leaf, **more):
    """A tree, and its reports."""
    settings = {"alpha": 0.3, "leaf_classes": 99, "zero_loss": "01", "beta": 20.0, "iterations": 4, "intercept": True}
    tree = softmax_nodes.SoftmaxNodes.complete(depth)
    rows = rows_of(x, y, weight)
    reports = []
    trainer = tao.Trainer(rows, x.shape[1], tree, tao.TaoSettings(**{**settings, **more}), in_turn)
    trainer.run(np.array(tree.leaves(), np.int32)[start_leaf], reports.append)
    return tree, reports, rows, trainer


@pytest.mark.sampled(2)
@pytest.mark.parametrize("zero_loss", ["01", "beta"])
@pytest.mark.parametrize(
    ("seed", "k", "most", "begins"), [(1, 6, 99, "classes"), (2, 8, 3, "classes"), (3, 6, 99, "rows")]
)
def test_training_is_the_oracles(monkeypatch, zero_loss, seed, k, most, begins):
    monkeypatch.setattr(tao, "FIRST_TOLERANCE", 1e-7)
    monkeypatch.setattr(tao, "LATER_TOLERANCE", 1e-7)
    monkeypatch.setattr(tao.leaf_exact, "SWEEPS", 2000)
    x, y, weight = groups(seed, 90, k)
    start_leaf = (y - 1) * 4 // k if begins == "classes" else np.arange(90) % 4
    tree, reports, rows, trainer = trained(
        x, y, weight, 2, start_leaf, leaf_classes=most, zero_loss=zero_loss, iterations=2
    )
    slow = oracle.Oracle(x, y, weight, 2, 0.3, most, zero_loss, 20.0)
    wanted = slow.run([3 + b for b in start_leaf.tolist()], 2)
    assert [report.objective for report in reports] == pytest.approx([value for value, _ in wanted], rel=2e-3)
    walked = softmax_nodes.walk(tree, rows, in_turn)
    same = np.array(tree.leaves())[walked.leaf] == np.array(wanted[-1][1])
    assert same.mean() > 0.97
    assert trainer.objective(walked) == reports[-1].objective


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    zero_loss=st.sampled_from(("01", "beta")),
    depth=st.integers(0, 3),
    k=st.integers(2, 12),
    most=st.integers(1, 12),
    alpha=st.sampled_from((0.05, 0.5, 3.0)),
    solver=st.sampled_from(("exact", "steps")),
)
def test_training_ends_when_the_objective_hardly_falls(seed, zero_loss, depth, k, most, alpha, solver):
    x, y, weight = groups(seed, 120, k, noise=0.8)
    start_leaf = np.random.default_rng(seed).integers(0, 1 << depth, 120)
    more = {"zero_loss": zero_loss, "leaf_classes": most, "alpha": alpha, "solver": solver}
    _, reports, _, _ = trained(x, y, weight, depth, start_leaf, **more)
    values = [report.objective for report in reports]
    assert len(values) == (4 if depth else 1)
    tree, reports, rows, trainer = trained(x, y, weight, depth, start_leaf, tolerance=0.01, **more)
    hardly_falls = [before - after <= 0.01 * after for before, after in itertools.pairwise(values)]
    ends = hardly_falls.index(True) + 2 if True in hardly_falls else len(values)
    assert [report.objective for report in reports] == values[:ends]
    assert trainer.objective(softmax_nodes.walk(tree, rows, in_turn)) == values[ends - 1]  # the last tree, not the best


@pytest.mark.parametrize("zero_loss", ["01", "beta", "remove"])
@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1]), ([1, 3, -1, -1, -1], [2, 4, -1, -1, -1])],
)
def test_losses_on_both_sides_are_those_of_walking_there(monkeypatch, zero_loss, left, right):
    x, y, weight = groups(9, 150, 8, noise=0.5)
    rows = rows_of(x, y, weight)
    tree = softmax_nodes.SoftmaxNodes(left, right)
    leaves = np.array(tree.leaves(), np.int32)
    quick, levels = tao.Trainer._both_sides, []

    def checked(self, routers, under, *arguments):
        sides = quick(self, routers, under, *arguments)
        for i in routers:
            for child, loss in zip((left[i], right[i]), sides, strict=True):
                walked = softmax_nodes.walk(tree, rows, in_turn, np.full(150, child, np.int32))
                np.testing.assert_array_equal(loss[under[i]], self.losses(walked)[under[i]])
        levels.append(len(routers))
        return sides

    monkeypatch.setattr(tao.Trainer, "_both_sides", checked)
    settings = tao.TaoSettings(0.2, 3, zero_loss, 20.0, 2, True)
    start_leaf = leaves[(y + np.arange(150) % 2) % len(leaves)]
    tao.Trainer(rows, x.shape[1], tree, settings, in_turn).run(start_leaf, lambda _: None)
    assert levels[:2] == [len(left) // 2 - 1, 1]


def test_remove_leaves_out_what_one_side_lacks():
    x, y, weight = groups(4, 150, 6)
    tree, reports, _, _ = trained(x, y, weight, 1, (y > 3).astype(int), zero_loss="remove", leaf_classes=3)
    # the sides share no class, so that no row is informative for the router
    assert len(tree.contents[0].weight) == 0
    _, other, _, _ = trained(x, y, weight, 1, (y > 3).astype(int), zero_loss="01", leaf_classes=3)
    assert other[-1].error < reports[-1].error


def _ended(reports: list, most: int) -> bool:
    return len(reports) >= most


def test_stopping_leaves_a_tree_that_answers(monkeypatch):
    x, y, weight = groups(5, 200, 8)
    rows = rows_of(x, y, weight)
    both_sides, walked = tao.Trainer._both_sides, []

    def noted(self, routers, *rest):
        walked.append(len(routers))
        return both_sides(self, routers, *rest)

    monkeypatch.setattr(tao.Trainer, "_both_sides", noted)
    for nodes in range(1, 9):
        walked.clear()
        tree = softmax_nodes.SoftmaxNodes.complete(2)
        reports = []
        settings = tao.TaoSettings(0.2, 99, "01", 20.0, 3, True)
        trainer = tao.Trainer(
            rows, x.shape[1], tree, settings, in_turn, functools.partial(_ended, reports, nodes),
            functools.partial(reports.append, 1),
        )  # fmt: skip
        trainer.run(np.array(tree.leaves(), np.int32)[(y - 1) // 2], lambda _: None)
        assert len(reports) == nodes
        assert sum(walked) == (0 if nodes <= 4 else 2 if nodes <= 6 else 3)  # four leaves, two routers, one
        before = softmax_nodes.walk(tree, rows, in_turn)
        weights = np.bincount(before.leaf, rows.weight, minlength=4)
        small, gone = softmax_nodes.prune(tree, dict(zip(tree.leaves(), weights.tolist(), strict=True)))
        assert len(small.left) == 7 - gone
        again = softmax_nodes.walk(small, rows, in_turn)
        assert (again.predicted == before.predicted).all()
        inference.check(softmax_nodes.to_arrays(small), 8, 2)


def test_pruning_takes_out_what_does_nothing():
    x, y, weight = groups(6, 100, 4)
    tree, _, rows, _ = trained(x, y, weight, 2, (y - 1) % 2 * 2)  # two of the leaves have no rows
    walked = softmax_nodes.walk(tree, rows, in_turn)
    weights = np.bincount(walked.leaf, rows.weight, minlength=4)
    small, gone = softmax_nodes.prune(tree, dict(zip(tree.leaves(), weights.tolist(), strict=True)))
    assert gone >= 2
    assert (softmax_nodes.walk(small, rows, in_turn).predicted == walked.predicted).all()
    same_class = np.full(100, 3)
    tree, _, rows, _ = trained(x, same_class, weight, 2, np.arange(100) % 4)
    walked = softmax_nodes.walk(tree, rows, in_turn)
    weights = np.bincount(walked.leaf, rows.weight, minlength=4)
    small, gone = softmax_nodes.prune(tree, dict(zip(tree.leaves(), weights.tolist(), strict=True)))
    assert (len(small.left), gone) == (1, 6)
    assert (softmax_nodes.walk(small, rows, in_turn).predicted == 3).all()


@pytest.mark.parametrize("seed", range(3))
def test_any_linear_classifier_is_a_tree_with_one_class_per_leaf(seed):
    """The construction that proves theorem 3.1 predicts as argmax(Ax + b), also where two scores are equal."""
    k, features, n = 5, 7, 400
    rng = np.random.default_rng(seed)
    a, b = np.round(rng.standard_normal((k, features)), 1), np.round(rng.standard_normal(k), 1)
    a[2], b[2] = a[1], b[1]  # two classes whose scores are always equal
    tree = softmax_nodes.SoftmaxNodes.complete(k - 1)
    waiting = [(0, 0, 1)]  # node, class of the largest score so far, class to compare it with
    while waiting:
        i, best, other = waiting.pop()
        if other == k:
            tree.contents[i] = softmax_nodes.NO_LEAF._replace(
                label=np.array([best + 1]), bias=np.zeros(1), start=np.zeros(2, np.int64)
            )
            continue
        # right if z_best >= z_other: the first of equal scores remains the largest
        tree.contents[i] = softmax_nodes.Router(
            np.arange(features, dtype=np.uint32), a[best] - a[other], b[best] - b[other]
        )
        waiting += [(tree.right[i], best, other + 1), (tree.left[i], other, other + 1)]
    x = np.round(rng.standard_normal((n, features)), 1).astype(np.float32).astype(np.float64)
    scores = x @ a.T + b
    walked = softmax_nodes.walk(tree, rows_of(x, np.ones(n), np.ones(n)), in_turn)
    got = scores[np.arange(n), walked.predicted - 1]
    assert got == pytest.approx(scores.max(axis=1), abs=1e-5)
    clear = np.sort(scores[:, [0, 1, 3, 4]], axis=1)
    clear = clear[:, -1] - clear[:, -2] > 1e-4
    assert clear.mean() > 0.9 and (walked.predicted - 1)[clear].tolist() == scores.argmax(axis=1)[clear].tolist()


# -- where classes begin


def test_prototypes_are_means():
    x, y, weight = groups(7, 60, 5)
    label, size, (start, feature, value) = initialise.prototypes(rows_of(x, y, weight))
    assert label.tolist() == sorted(set(y.tolist()))
    for r, name in enumerate(label):
        dense = np.zeros(x.shape[1])
        dense[feature[start[r] : start[r + 1]]] = value[start[r] : start[r + 1]]
        of_class = y == name
        assert dense == pytest.approx(
            (x[of_class] * weight[of_class, None]).sum(axis=0) / weight[of_class].sum(), abs=1e-6
        )
        assert size[r] == pytest.approx(weight[of_class].sum())


def test_k_means_ends_where_no_prototype_is_nearer_to_another_centre():
    rng = np.random.default_rng(8)
    planted = np.repeat(np.arange(4), 10)
    x = 5 * np.eye(4)[planted] + 0.2 * rng.standard_normal((40, 4))
    rows = rows_of(x, np.arange(1, 41), rng.choice((1.0, 3.0), 40))
    _, size, proto = initialise.prototypes(rows)
    where, centre = initialise.k_means(proto, size, 4, 4, 0)
    x = x.astype(np.float32).astype(np.float64)
    far = ((x[:, :, None] - centre[None]) ** 2).sum(axis=1)
    assert (far.argmin(axis=1) == where).all()
    for c in range(4):
        assert centre[:, c] == pytest.approx(
            (x[where == c] * size[where == c, None]).sum(axis=0) / size[where == c].sum()
        )
    assert len({(a, b) for a, b in zip(planted, where, strict=True)}) == 4


def test_k_means_is_the_oracles():
    rng = np.random.default_rng(3)
    x = np.round(rng.standard_normal((70, 6)) * (rng.random((70, 6)) < 0.5), 2)
    x[:, 0] += 0.01  # no row is empty
    rows = rows_of(x, np.arange(1, 71), rng.choice((1.0, 3.0, 9.0), 70))
    _, size, proto = initialise.prototypes(rows)
    x = x.astype(np.float32).astype(np.float64)
    single = set()
    for seed in range(5):
        where, centre = initialise.k_means(proto, size, 6, 8, seed)
        expected, means = oracle.k_means(x, size, 8, seed)
        assert where.tolist() == expected.tolist()
        assert centre == pytest.approx(means.T)
        single.add(tuple(oracle.k_means(x, size, 8, seed, runs=1)[0]))
    assert len(single) > 1  # runs end differently


def test_more_clusters_than_distinct_prototypes():
    x = np.eye(3)[np.arange(9) % 3]
    _, size, proto = initialise.prototypes(rows_of(x, np.arange(1, 10), np.ones(9)))
    where, centre = initialise.k_means(proto, size, 3, 8, 0)
    assert centre.T[where].tolist() == x.tolist()


def test_nearest_clusters_meet_first():
    centre = np.array([[0.0, 10.0, 0.3, 11.0], [0.0, 0.0, 0.0, 0.0]])
    assert initialise.pair_clusters(centre, np.ones(4)) == [0, 2, 1, 3]
    far = np.array([[0.0, 1.0, 5.0, 6.5, 100.0, 103.0, 108.0, 120.0]])
    assert initialise.pair_clusters(far, np.ones(8)) == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("whole", [False, True])
def test_rows_begin_where_algorithm_2_puts_them(whole):
    x, y, weight = groups(3, 160, 24, noise=0.2)
    where = initialise.by_k_means(rows_of(x, y, weight), x.shape[1], 8, 1, whole)
    if not whole:  # the means of the classes are clustered
        x, weight, where = (
            np.array([np.average(x[y == c], axis=0, weights=weight[y == c]) for c in range(1, 25)]),
            np.bincount(y, weight)[1:],
            np.array([where[y == c][0] for c in range(1, 25)]),
        )
    mass = np.bincount(where, weight, minlength=8)
    assert mass.min() > 0
    mean = np.array([np.average(x[where == c], axis=0, weights=weight[where == c]) for c in range(8)])
    assert (((x[:, None] - mean[None]) ** 2).sum(axis=2).argmin(axis=1) == where).all()
    for size, groups_of_level in zip((2, 4, 8), oracle.merged(mean, mass), strict=True):
        assert groups_of_level == {frozenset(range(low, low + size)) for low in range(0, 8, size)}


def test_halves_begin_with_equally_many_classes():
    x, y, weight = groups(9, 400, 13)
    start_leaf = initialise.by_halves(rows_of(x, y, weight), 4, 0, in_turn)
    classes = [set(y[start_leaf == leaf].tolist()) for leaf in range(4)]
    assert sorted(map(len, classes)) == [3, 3, 3, 4]
    assert set.union(*classes) == set(range(1, 14))
    # more leaves than classes
    start_leaf = initialise.by_halves(rows_of(x, y, weight), 32, 0, in_turn)
    assert len(np.unique(start_leaf)) == 13


# -- the learner


def grown(text: str, classes: int = K, messages: list[str] | None = None, **options) -> xclass.Learner:
    """A softmax tree that has learned a text; `messages` collects its messages while it learns."""
    model = xclass.Learner("softmax_tree", classes, **{"bits": 16, **options})
    if messages is not None:
        model.core.reduction.info = messages.append
    model.learn_many(text)
    model.end_pass()
    return model


def error_of(model: xclass.Learner, text: str) -> float:
    """The share of the lines of a text whose label is not what the model predicts."""
    labels = [int(line.split(" ")[0]) for line in text.splitlines()]
    return float(np.mean(model.predict_many(text) != labels))


@pytest.mark.parametrize(
    "more",
    [
        {"l2": 0.1, "depth": 0}, {"depth": 2}, {"depth": 3, "leaf_classes": 4}, {"depth": 2, "tree_init": "whole"},
        {"depth": 2, "tree_init": "prototypes"}, {"depth": 2, "tree_init": "random", "l1": 0.02},
        {"depth": 1, "normalize_features": "none"}, {"noconstant": True, "depth": 1}, {"quadratic": ["wn"], "depth": 1},
        {"depth": 1, "l1": 0}, {"depth": 2, "l1": 0, "leaf_solver": "exact"},
    ],
    ids=str,
)  # fmt: skip
def test_learns_what_is_known(more):
    with grown(multiclass(1, K, 1500, noise=0.0), **more) as model:
        assert error_of(model, multiclass(2, K, 300, noise=0.0)) < 0.05


def test_summary_says_what_the_predictions_say():
    train, test = multiclass(3, K, 1200, noise=0.4), multiclass(4, K, 400, noise=0.4, weights=(1, 2))
    with grown(train, depth=2, leaf_classes=4, smooth=0.01) as model:
        every = go_through(model, test, learn=False, probabilities=True)
        top = go_through(model, test, learn=False, top_k=2)
    first = five = inside = weight = log = log_inside = 0.0
    for line, listing, best in zip(test.splitlines(), every.lists, top.lists, strict=True):
        y, w = int(line.split(" ")[0]), float(line.split(" ")[1])
        rest = listing.pop(0)
        assert sum(listing.values()) + rest == pytest.approx(1.0, abs=1e-6)
        assert rest == pytest.approx(0.01 * (K - len(listing)) / (1 + 0.01 * (K - len(listing))), abs=1e-6)
        order = sorted(listing, key=lambda label: (-listing[label], label))
        assert list(best) == [*order[:2], 0]
        assert [best[label] for label in order[:2]] == [listing[label] for label in order[:2]]
        weight += w
        first += w * (order[0] != y)
        five += w * (y not in order[:5])
        log -= w * math.log(listing[y] if y in listing else rest / (K - len(listing)))
        if y in listing:
            inside += w
            log_inside -= w * math.log(listing[y] / (1 - rest))
    assert every.loss == first
    assert fact(every.summary, "top-5 error") == pytest.approx(five / weight, abs=2e-6)
    assert fact(every.summary, "class is in the leaf") == pytest.approx(inside / weight, abs=2e-6)
    assert fact(every.summary, "perplexity within the leaf") == pytest.approx(math.exp(log_inside / inside), rel=1e-4)
    assert fact(every.summary, "perplexity, smoothed by 0.01") == pytest.approx(math.exp(log / weight), rel=1e-4)


def test_smoothing_is_chosen_where_labels_are_most_probable():
    lines = multiclass(5, K, 2000, noise=0.6).splitlines()
    options = {"depth": 2, "leaf_classes": 3, "tao_iterations": 1}
    messages: list[str] = []
    with grown("\n".join(lines), messages=messages, **options) as model:
        assert model.examples == 2000
        chosen = model.core.contents().learner["smooth"]
    assert messages[0].startswith("softmax tree: 1960 examples, 9 classes")
    rest = "\n".join(line for i, line in enumerate(lines) if i % 50 != 49)
    losses = {}
    for eps in (chosen / 3, chosen, min(1.0, 3 * chosen)):
        with grown(rest, smooth=eps, **options) as model:
            losses[eps] = fact(go_through(model, "\n".join(lines[49::50]), learn=False).summary, "average log loss")
    assert min(losses, key=losses.get) == chosen


def test_training_resumes_from_a_model(place):
    first, second, test = (multiclass(seed, K, n, noise=0.3) for seed, n in ((7, 800), (8, 800), (9, 400)))
    with grown(first, depth=2, tao_iterations=1) as model:
        assert model.average_loss is None  # nothing was known while examples were collected
        before, predictions, leaves = (
            error_of(model, test),
            model.predict_many(second),
            fact(summary_of(model), "leaves"),
        )
        model.save("m")
    with xclass.load("m") as model:
        outcome = model.learn_many(second)  # the loaded tree predicts while examples are collected
        assert outcome.prediction.tolist() == predictions.tolist()
        assert model.average_loss == outcome.loss.sum() / 800 == error_of(model, second)
        model.end_pass()
        assert error_of(model, test) < before + 0.03
        assert fact(summary_of(model), "leaves") <= leaves


def test_weights_are_rows_repeated():
    rng = random.Random(11)
    lines = multiclass(11, K, 400, noise=0.3).splitlines()
    times = [rng.choice((1, 2, 3)) for _ in lines]
    heavy = [line.replace("|", f"{w} |", 1) for line, w in zip(lines, times, strict=True)]
    often = [line for line, w in zip(lines, times, strict=True) for _ in range(w)]
    test = multiclass(12, K, 300, noise=0.3)
    with grown(heavy, depth=1, smooth=0.001) as weighted, grown(often, depth=1, smooth=0.001) as repeated:
        assert (weighted.predict_many(test) != repeated.predict_many(test)).sum() <= 6


def test_defaults_are_reported_and_follow_the_data():
    sparse = "".join(f"{i % 40 + 1} |w w{i % 40} x{i % 97} y{i % 89}\n" for i in range(400))
    for options, message in (
        ({}, "depth 0, 1 leaves, at most all classes per leaf, l1 0.0707, 8 passes of gradient steps per leaf"),
        ({"leaf_solver": "exact"}, "l1 0.15, leaves by coordinate descent"),
        ({"l1": 0, "leaf_solver": "exact"}, "l1 0, leaves by coordinate descent"),
        ({"leaf_passes": 3, "l1": 0.2}, "l1 0.2, 3 passes of gradient steps per leaf"),
        ({"depth": 0, "l2": 0.2}, "l1 0, l2 0.2, 8 passes of gradient steps per leaf"),
    ):
        messages: list[str] = []
        grown(sparse, 40, messages, **options).close()
        assert messages[0].endswith(message)
    assert softmax_options.default_solver(45_000, 405, 45_000 * 130, 0.0) == "exact"
    assert softmax_options.default_solver(45_000, 405, 45_000 * 130, 0.1) == "steps"
    assert softmax_options.default_solver(900_000, 60_000, 900_000 * 6, 0.0) == "steps"
    assert softmax_options.default_passes(900_000, 10_000) == softmax_options.FEWEST_PASSES
    assert softmax_options.default_passes(78_000, 20_000) == softmax_options.MOST_PASSES
    assert softmax_options.default_l1("steps", 135_000, 3_500) == softmax_options.STEPS_L1
    assert softmax_options.default_l1("steps", 600_000, 10_000) == 2 * softmax_options.STEPS_L1
    assert softmax_options.default_l1("steps", 100, 100) == softmax_options.MOST_L1
    assert [softmax_options.default_depth(n, 10_000) for n in (10**6, 2 * 10**6, 8 * 10**6)] == [0, 1, 3]


@pytest.mark.parametrize("noconstant", [False, True])
def test_random_routers_have_an_intercept(monkeypatch, noconstant):
    run_all, begun = tao.Trainer.run, []
    monkeypatch.setattr(tao.Trainer, "run", lambda one, leaf, report: begun.append(leaf) or run_all(one, leaf, report))
    text = "1 |w\n2 |w a b\n"  # an intercept alone decides where the first example goes
    for seed in range(8):
        options = {"depth": 1, "tree_init": "random", "random_seed": seed, "noconstant": noconstant}
        grown(text, 2, **options).close()
    assert len({int(leaf[0]) for leaf in begun}) == (1 if noconstant else 2)


def test_later_iterations_make_half_as_many_passes_unless_their_number_is_given(monkeypatch):
    fit, made = tao.leaf_sgd.fit, []
    monkeypatch.setattr(tao.leaf_sgd, "fit", lambda *words, **more: made.append(words[6]) or fit(*words, **more))
    text = multiclass(27, K, 200, noise=0.3)
    for options, passes in (({}, [8, 4]), ({"leaf_passes": 3}, [3, 3])):
        made.clear()
        grown(text, depth=1, leaf_solver="steps", tao_iterations=2, tao_tolerance=0, **options).close()
        assert [made[0], made[-1]] == passes


def test_iterations_and_held_out_examples_can_be_set():
    text = multiclass(27, K, 1200, noise=0.3)
    for options, examples, iterations in (({}, 1176, 9), ({"tao_tolerance": 0, "smooth": 0}, 1200, 9)):
        messages: list[str] = []
        grown(text, messages=messages, depth=2, leaf_classes=3, tao_iterations=9, **options).close()
        assert messages[0].startswith(f"softmax tree: {examples} examples")
        assert len(messages) - 2 == iterations if options else len(messages) - 2 < iterations


# -- runs of the command


def test_objective_falls_on_the_screen(place):
    result = learn(*TREE, "--depth", 2, "--leaf_classes", 4, stdin=multiclass(10, K, 900, noise=0.5))
    rows = re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+ +[\d.]+ +\d+ +[\d.]+$", result.err, re.M)
    values = [float(value) for number, value in rows if int(number) <= 4 and "." in value]
    assert len(values) >= 2
    assert values == sorted(values, reverse=True)
    assert "average loss = n.a." in result.err


def test_first_interrupt_ends_training_with_a_model(place):
    (place / "data").write_text(multiclass(13, 60, 1500, noise=0.6))
    learn("data", *TREE[:1], 60, "--depth", 4, "--tao_iterations", 1, "--quiet")  # compiled now
    child = start_process(
        "data", "--softmax_tree", 60, "--depth", 4, "--tao_iterations", 10000, "--l1", 0.001, "-f", "m"
    )
    for line in child.stderr:
        if line.startswith(b"iteration"):
            break
    child.stderr.readline()  # the first has ended, so there is a model; the second is at work
    child.send_signal(signal.SIGINT)
    err = child.stderr.read().decode()
    assert child.wait() == 130, err
    assert "what was learned from 1500 examples is in m.interrupted" in err
    result = learn("data", "-i", "m.interrupted", "-t", "-p", "stdout", "--quiet")
    assert set(result.lines) <= {str(y) for y in range(61)}


def test_interrupt_ends_a_long_softmax(place):
    (place / "data").write_text(multiclass(23, 300, 20000, noise=0.8))
    child = start_process("data", "--softmax_tree", 300, "--depth", 0, "--l1", 1e-5, "-f", "m")
    for line in child.stderr:
        if line.startswith(b"iteration"):
            break
    child.send_signal(signal.SIGTERM)
    err = child.stderr.read().decode()
    assert child.wait() == 143, err
    if "nothing was learned yet, so nothing was saved" in err:  # it came before the first node
        assert [path.name for path in place.iterdir()] == ["data"]
        return
    assert " learned from 20000 examples is in m.interrupted" in err
    assert model_file.load(place / "m.interrupted").arrays["tree.value"].size > 0


def test_what_ends_before_the_end_of_the_data_learns_nothing(place):
    result = run(*TREE, "-f", "m", stdin="1 |w a\n2 |w b\nx |w c\n")
    assert result.status == 1
    assert "nothing was learned yet, so nothing was saved" in result.err
    assert not list(place.iterdir())
    result = learn(*TREE, "-f", "m", stdin="1 |w a\n2 |w b\n save_s|\n1 |w a\n")
    assert "this reduction learns only at the end of the data" in result.err
    assert [path.name for path in place.iterdir()] == ["m"]


def test_options_of_the_tree_are_refused_with_a_model(place):
    with grown(multiclass(14, K, 100), depth=1) as model:
        model.save("m")
    for words, message in (
        (("-t", "--tao_iterations", 3), "-t learns nothing"),
        (("--depth", 1), "learning begins with the tree of the model given by -i"),
        (("--leaf_classes", 3), "disagrees with m"),
    ):
        result = run("-i", "m", *words, stdin="1 |w a\n")
        assert result.status == 2
        assert message in result.err
