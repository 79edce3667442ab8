"""The softmax by small steps: against plain NumPy, against the exact solver, on any number of threads."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from softmax_problems import problem_of, softmax_objective, some_rows

from xclass.reductions.softmax_tree import leaf_exact, leaf_sgd


def starts(y) -> np.ndarray:
    """Where the rows of each class begin, and the end."""
    return np.searchsorted(y, np.arange(int(y.max()) + 2)).astype(np.int64)


def dense(weights: leaf_exact.LeafWeights, k: int, features: int) -> np.ndarray:
    """Weights [k, F]."""
    w = np.zeros((k, features))
    for c in range(k):
        of_class = slice(weights.start[c], weights.start[c + 1])
        w[c, weights.feature[of_class]] = weights.value[of_class]
    return w


def fitted(x, y, weight, alpha, **more):
    """Weights [k, F], intercepts."""
    problem, start = problem_of(x, weight), starts(y)
    k = len(start) - 1
    bias = leaf_exact.first_bias(problem, start)
    weights = leaf_sgd.fit(problem, start, alpha, leaf_exact.empty_weights(k), bias, **more)
    return dense(weights, k, x.shape[1]), bias


def numpy_steps(x, y, weight, alpha, passes, seed, l2=0.0):
    """The same steps in plain NumPy, for classes that all have more than LEAST_P."""
    n, k = len(y), int(y.max()) + 1
    w, bias, square = np.zeros((x.shape[1], k)), np.log(np.bincount(y, weight) / weight.sum()), np.ones(k)
    rate = leaf_sgd.rate_for(n, k) / (weight.mean() * (x**2).sum(axis=1).mean())
    block = max(1, min(leaf_sgd.LARGEST_BLOCK, k // leaf_sgd.CLASSES_A_ROW))
    piece = -(-max(1, n // leaf_sgd.SHRINKS) // block) * block
    rng = np.random.default_rng(seed)
    for number in range(passes):
        order = rng.permutation(n)
        rng.random(n, np.float32)
        for j, low in enumerate(range(0, n, piece)):
            now = rate * (1.0 - (number + j / -(-n // piece)) / passes)
            for first in range(low, min(low + piece, n), block):
                rows = order[first : min(first + block, low + piece, n)]
                z = x[rows] @ w + bias
                p = np.exp(z - z.max(axis=1, keepdims=True))
                g = p / p.sum(axis=1, keepdims=True)
                assert g.min() > leaf_sgd.LEAST_P
                g[np.arange(len(rows)), y[rows]] -= 1.0
                g *= weight[rows, None]
                for r, gradient in zip(rows, g, strict=True):
                    square += gradient**2
                    bias = bias - leaf_sgd.BIAS_RATE * gradient / np.sqrt(square)
                    w -= now * np.outer(x[r], gradient)
            part = min(low + piece, n) - low
            w = np.sign(w) * np.maximum(np.abs(w) - now * alpha * part / n, 0.0) / (1.0 + now * l2 * part / n)
    return w.T, bias


@pytest.mark.parametrize(("k", "n"), [(3, 50), (70, 140)])
def test_steps_agree_with_plain_numpy(k, n, monkeypatch):
    monkeypatch.setattr(leaf_sgd, "RATE", 0.1)
    monkeypatch.setattr(leaf_sgd, "FASTEST", 0.1)
    monkeypatch.setattr(leaf_sgd, "BIAS_RATE", 0.02)
    x, y, weight = some_rows(1, n, k, 12, True)
    weight = np.minimum(weight, 1.0)
    w, bias = fitted(x, y, weight, 0.01, passes=2, seed=3, l2=n / 10)
    slow, slow_bias = numpy_steps(x, y, weight, 0.01, 2, 3, n / 10)
    assert np.abs(slow).max() > 0.05
    assert w == pytest.approx(slow, abs=2e-4)
    assert bias == pytest.approx(slow_bias, abs=2e-4)


def test_classes_that_are_hardly_probable_are_drawn_as_often_as_they_are_probable():
    k, features = 600, 3
    x, y = np.ones((1, features)), np.array([k - 1])
    problem = problem_of(np.eye(features)[:1] + 0 * x, np.ones(1))
    bias = -np.arange(k) / 40.0
    table = leaf_sgd.new_table(problem, y.astype(np.int32), bias)
    size = len(table.bias)
    draws = 4000
    total = np.zeros(k)
    scratch = leaf_sgd.StepScratch(np.empty(size, np.float32), np.empty(leaf_sgd.LANES, np.float32))
    drawn = leaf_sgd.SampledSlopes(
        np.zeros(1, np.int64), np.zeros((1, leaf_sgd.MOST_SAMPLED), np.int32),
        np.zeros((1, leaf_sgd.MOST_SAMPLED), np.float32),
    )  # fmt: skip
    for i in range(draws):
        draw = np.array([(i + 0.5) / draws], np.float32)
        leaf_sgd.sample_slopes(problem, table, np.zeros(1, np.int64), draw, 0, 0, 1, y.astype(np.int32), scratch, drawn)
        count = drawn.count[0]
        assert len(set(drawn.owner[0, :count].tolist())) == count
        total[drawn.owner[0, :count]] += drawn.slope[0, :count]
    p = np.exp(bias) / np.exp(bias).sum()
    p[k - 1] -= 1.0
    assert (p[: k - 1] < leaf_sgd.LEAST_P).any()
    assert total / draws == pytest.approx(p, abs=2e-6)


@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_many_passes_come_near_the_optimum(alpha):
    x, y, weight = some_rows(2, 400, 8, 30, True)
    problem, start = problem_of(x, weight), starts(y)
    bias = leaf_exact.first_bias(problem, start)
    _, best = leaf_exact.solve(problem, start, alpha, leaf_exact.empty_weights(8), bias, True, 500, 1e-8)
    reached = []
    for passes in (3, 200):
        w, b = fitted(x, y, weight, alpha, passes=passes)
        reached.append(softmax_objective(x, y, weight, w, b, alpha))
    assert best * (1 - 1e-6) < reached[1] < 1.05 * best
    assert reached[1] < reached[0]


def test_length_of_rows_and_size_of_weights_do_not_matter():
    x, y, weight = some_rows(3, 200, 6, 20, False)
    w, b = fitted(x, y, weight, 0.1, intercept=False)
    for longer, heavier in ((4.0, 1.0), (1.0, 8.0)):
        v, c = fitted(longer * x, y, heavier * weight, 0.1 * longer * heavier, intercept=False)
        assert v * longer == pytest.approx(w, abs=1e-3)
        assert c == pytest.approx(b)


def test_threads_do_not_matter(monkeypatch):
    x, y, weight = some_rows(4, 600, 150, 40, True)
    alone = fitted(x, y, weight, 0.02, passes=3)
    monkeypatch.setattr(leaf_sgd, "WORTH_THREADS", 0)
    for workers in (2, 3):
        monkeypatch.setattr("xclass.system.thread_limit.processors", lambda workers=workers: workers)
        with ThreadPoolExecutor(workers) as pool:
            shares = []

            def share(job, items, pool=pool, shares=shares):
                shares.append(len(items))
                list(pool.map(lambda item: job(*item), items))

            several = fitted(x, y, weight, 0.02, passes=3, share=share)
        assert set(shares) == {workers}
        assert (several[0] == alone[0]).all()
        assert (several[1] == alone[1]).all()


def test_rare_features_have_weights_for_their_classes_only():
    x, y, weight = some_rows(5, 120, 10, 30, False)
    problem = problem_of(x, weight)
    bias = np.zeros(10)
    together = np.array([[(x[y == c, f] != 0).any() for f in range(30)] for c in range(10)])
    often = np.argsort(-(x != 0).sum(axis=0), kind="stable")
    for dense_features in (0, 7, 30):
        table = leaf_sgd.new_table(problem, y.astype(np.int32), bias, dense_features * 4 * leaf_sgd.LANES)
        wanted = together.copy()
        wanted[:, often[:dense_features]] = (x != 0).sum(axis=0)[often[:dense_features]] > 1
        table.w[:] = 1.0 + np.arange(len(table.w))
        weights = leaf_sgd.weights(table, 10)
        w = dense(weights, 10, 30)
        assert ((w != 0) | ~wanted).all()
        assert ((w == 0) | wanted | together).all()
        other = leaf_sgd.new_table(problem, y.astype(np.int32), bias, dense_features * 4 * leaf_sgd.LANES)
        leaf_sgd.load_weights(other, weights.start, weights.feature, weights.value)
        assert (dense(leaf_sgd.weights(other, 10), 10, 30) == w).all()


def test_goes_on_from_weights_it_is_given():
    x, y, weight = some_rows(6, 300, 10, 40, True)
    problem, start = problem_of(x, weight), starts(y)
    bias = leaf_exact.first_bias(problem, start)
    solution, _ = leaf_exact.solve(problem, start, 0.05, leaf_exact.empty_weights(10), bias)
    used = solution.start[-1]
    solution = leaf_exact.LeafWeights(solution.start, solution.feature[:used], solution.value[:used])
    before = dense(solution, 10, 40)
    same = dense(leaf_sgd.fit(problem, start, 0.05, solution, bias.copy(), stopped=lambda: True), 10, 40)
    none = dense(
        leaf_sgd.fit(problem, start, 0.05, leaf_exact.empty_weights(10), bias.copy(), stopped=lambda: True), 10, 40
    )
    assert np.abs(same - before).max() > 0
    assert softmax_objective(x, y, weight, same, bias, 0.05) < softmax_objective(x, y, weight, none, bias, 0.05)


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_small_problem_goes_all_the_way():
    x, y, weight = some_rows(7, 14, 3, 8, True)
    w, b = fitted(x, y, weight, 0.01, passes=2)
    assert np.isfinite(w).all()
    assert np.isfinite(b).all()
    assert (np.argmax(x @ w.T + b, axis=1) == y).mean() > 0.6


def test_rate_is_higher_where_classes_have_few_rows():
    assert leaf_sgd.rate_for(10**6, 1000) == leaf_sgd.RATE
    assert leaf_sgd.RATE < leaf_sgd.rate_for(10**4, 1000) < leaf_sgd.FASTEST
    assert leaf_sgd.rate_for(1000, 1000) == leaf_sgd.FASTEST
    assert math.isfinite(leaf_sgd.rate_for(0, 1))
