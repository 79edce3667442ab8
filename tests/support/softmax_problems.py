"""Make small problems for the solvers of the softmax tree, and compute the objective that the solvers minimise."""

import numpy as np

from xclass.reductions.softmax_tree import newton_step


def problem_of(x: np.ndarray, weight: np.ndarray) -> newton_step.NewtonProblem:
    """Return the problem whose examples are the rows of a dense array, with these weights."""
    row, feature = np.nonzero(x)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(x)))]).astype(np.int64)
    value = x[row, feature].astype(np.float32)
    return newton_step.new_problem(start, feature.astype(np.int32), value, x.shape[1], weight.astype(np.float64))


def softmax_objective(x, y, weight, w, b, alpha) -> float:
    z = x @ w.T + b
    top = z.max(axis=1)
    loss = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - z[np.arange(len(y)), y]
    return float((weight * loss).sum() + alpha * np.abs(w).sum())


def some_rows(seed: int, n: int, k: int, features: int, signs: bool):
    """Return n sparse rows sorted by class, their classes and their weights; every class has a row.

    The features of a row depend on its class. With `signs`, their values may be negative.
    """
    rng = np.random.default_rng(seed)
    y = np.sort(np.concatenate([np.arange(k), rng.integers(0, k, n - k)]))
    x = np.zeros((n, features))
    for r in range(n):
        own = (y[r] * 3 + rng.integers(0, 3, 2)) % features
        x[r, own] += 1.0
        x[r, rng.integers(0, features, 3)] += rng.random(3)
        if signs:
            x[r] *= rng.choice((-1.0, 1.0), features)
    x /= np.sqrt((x**2).sum(axis=1, keepdims=True))
    return x.astype(np.float32).astype(np.float64), y, rng.choice((0.5, 1.0, 3.0), n)
