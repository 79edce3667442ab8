"""Train or test with scikit-learn, in a process that `peers` measures: linear models, and softmax trees of its parts.

    python scripts/lib/peer_sklearn.py train|test FILE MODEL [KIND WORDS]

FILE is LIBSVM text. KIND is `rest` or `multinomial`, logistic regression with an L2 penalty, with the word C=10, or
`tree` with arguments of `SoftmaxTree`, such as depth=3; with the word `scaled` rows get length 1.

Source   Zharmagambetov, Gabidolla, Carreira-Perpinan, "Softmax Tree", EMNLP 2021: algorithms 1 and 2, sections 4 and 5,
         appendices C and D, by what its authors used: k-means, LIBLINEAR for routers, SAGA for leaves. All fits are
         accepted, and each begins anew. Needs scikit-learn 1.8 or later.
Names    The tree is complete, and its nodes are numbered breadth-first from 0; node i has the children 2 i + 1 and
         2 i + 2. Rows are those of a sparse matrix.
"""

from __future__ import annotations

import itertools
import json
import pickle
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize


class Constant:
    """Predict the only class that occurred, as LogisticRegression cannot."""

    def __init__(self, answer: float) -> None:
        self.classes_ = np.array([answer])

    def predict(self, x) -> np.ndarray:
        return np.repeat(self.classes_, x.shape[0])

    def predict_log_proba(self, x) -> np.ndarray:
        return np.zeros((x.shape[0], 1))


class RandomRouter:
    """Route by Gaussian weights of length 1, as the tree does that begins at random."""

    def __init__(self, features: int, rng: np.random.Generator) -> None:
        weights = rng.normal(size=features + 1)
        self.weights = weights / np.linalg.norm(weights)

    def predict(self, x) -> np.ndarray:
        return (x @ self.weights[:-1] + self.weights[-1] >= 0).astype(float)


def fitted(x, y: np.ndarray, weight: np.ndarray | None = None, **more) -> Constant | LogisticRegression:
    """Return a logistic regression with an L1 penalty; y has at least one row."""
    if len(np.unique(y)) == 1:
        return Constant(y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # SAGA is to stop early
        return LogisticRegression(l1_ratio=1, **more).fit(x, y, sample_weight=weight)


def clustered(x, y: np.ndarray, leaves: int, seed: int) -> np.ndarray:
    """Return the leaf, counted from 0, in which each row begins: algorithm 2, by the means of the classes."""
    _, number, count = np.unique(y, return_inverse=True, return_counts=True)
    means = sparse.csr_matrix((1 / count[number], (number, np.arange(len(y))))) @ x
    found = KMeans(leaves, n_init=10, random_state=seed).fit(means.toarray(), sample_weight=count)
    mass = np.bincount(found.labels_, count, leaves)
    level = [([i], found.cluster_centers_[i], mass[i]) for i in range(leaves)]
    while len(level) > 1:
        left, level = level, []
        while left:  # the closest two become siblings
            pairs = itertools.combinations(range(len(left)), 2)
            i, j = min(pairs, key=lambda pair: np.linalg.norm(left[pair[0]][1] - left[pair[1]][1]))
            (one, mean, m), (other, its_mean, n) = left[i], left[j]
            level.append((one + other, (m * mean + n * its_mean) / (m + n), m + n))
            left = [cluster for at, cluster in enumerate(left) if at not in (i, j)]
    place = np.empty(leaves, np.int64)
    place[level[0][0]] = np.arange(leaves)
    return place[found.labels_][number]


class SoftmaxTree:
    """Fit a softmax tree by tree alternating optimisation.

    `depth` counts levels of routers, `alpha` is the L1 penalty, `passes` are the most of SAGA in a leaf, and `start` is
    `prototypes` (algorithm 2) or `random`. `beta` is the loss of a row whose leaf lacks its class, the cross-entropy
    being that of others; None for 0/1 loss.
    """

    def __init__(
        self, depth: int, leaf_classes: int, alpha: float, iterations: int, passes: int = 20,
        start: str = "prototypes", beta: float | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.inner, self.leaf_classes = 2**depth - 1, leaf_classes
        self.iterations, self.passes = iterations, passes
        self.start, self.beta, self.seed = start, beta, seed
        self.strength = {"C": 1 / alpha, "random_state": seed}
        self.nodes: dict[int, Constant | RandomRouter | LogisticRegression] = {}

    def leaves_of(self, x, top: int = 0) -> np.ndarray:
        """Return the leaf to which each row goes from a node."""
        at = np.full(x.shape[0], top)
        while len(routing := np.unique(at[at < self.inner])):
            for node in routing:
                here = np.flatnonzero(at == node)
                at[here] = 2 * node + 1 + self.nodes[node].predict(x[here])
        return at

    def predict(self, x, top: int = 0) -> np.ndarray:
        """Return the class of each row, 0 in leaves without examples."""
        answer, at = np.zeros(x.shape[0]), self.leaves_of(x, top)
        for leaf in set(at) & set(self.nodes):
            answer[at == leaf] = self.nodes[leaf].predict(x[at == leaf])
        return answer

    def losses(self, x, y: np.ndarray, top: int) -> np.ndarray:
        """Return the loss of each row below a node."""
        if self.beta is None:
            return (self.predict(x, top) != y).astype(float)
        loss, at = np.full(x.shape[0], self.beta), self.leaves_of(x, top)
        for leaf in set(at) & set(self.nodes):
            classes = self.nodes[leaf].classes_
            here = np.flatnonzero((at == leaf) & np.isin(y, classes))
            if len(here):
                log_p = self.nodes[leaf].predict_log_proba(x[here])
                loss[here] = -log_p[np.arange(len(here)), np.searchsorted(classes, y[here])]
        return loss

    def fit(self, x, y: np.ndarray) -> SoftmaxTree:
        """Train the tree: algorithm 1."""
        if self.start == "random":
            rng = np.random.default_rng(self.seed)
            self.nodes = {i: RandomRouter(x.shape[1], rng) for i in range(self.inner)}
            at = self.leaves_of(x)
        else:
            at = self.inner + clustered(x, y, self.inner + 1, self.seed)
        for _ in range(self.iterations):
            rows = {i: np.flatnonzero(at == i) for i in range(self.inner, 2 * self.inner + 1)}
            for i in reversed(range(self.inner)):
                rows[i] = np.sort(np.concatenate([rows[2 * i + 1], rows[2 * i + 2]]))
            for i in sorted(rows, reverse=True):
                if i < self.inner:
                    self.fit_router(i, x[rows[i]], y[rows[i]])
                elif len(rows[i]):
                    classes, count = np.unique(y[rows[i]], return_counts=True)
                    kept = classes[np.argsort(-count, kind="stable")[: self.leaf_classes]]
                    inside = rows[i][np.isin(y[rows[i]], kept)]
                    self.nodes[i] = fitted(x[inside], y[inside], solver="saga", max_iter=self.passes, **self.strength)
            at = self.leaves_of(x)
        return self

    def fit_router(self, i: int, x, y: np.ndarray) -> None:
        """Fit a router to the sides on which the losses of its rows are smaller."""
        gap = self.losses(x, y, 2 * i + 1) - self.losses(x, y, 2 * i + 2) if len(y) else np.zeros(0)
        matters = np.flatnonzero(gap)
        if len(matters):
            right = (gap[matters] > 0).astype(float)
            weight = np.abs(gap[matters])
            self.nodes[i] = fitted(x[matters], right, weight, solver="liblinear", **self.strength)
        elif i not in self.nodes:
            self.nodes[i] = Constant(0.0)


def new_model(kind: str, given: dict[str, str]) -> SoftmaxTree | LogisticRegression | OneVsRestClassifier:
    """Return an untrained model; `given` are the arguments as text."""
    if kind == "tree":
        kinds = {"alpha": float, "beta": float, "start": str}
        return SoftmaxTree(**{name: kinds.get(name, int)(value) for name, value in given.items()})
    model = LogisticRegression(C=float(given["C"]), max_iter=1000)
    return OneVsRestClassifier(model) if kind == "rest" else model


def main(task: str, file: str, path: str, kind: str = "", *words: str) -> None:
    """Train a model, or test it and write its seconds and error to standard error."""
    if task == "train":
        rows, labels = load_svmlight_file(file)
        scaled = "scaled" in words
        given = {name: value for name, _, value in (word.partition("=") for word in words if word != "scaled")}
        model = new_model(kind, given).fit(normalize(rows) if scaled else rows, labels)
        Path(path).write_bytes(pickle.dumps((model, rows.shape[1], scaled)))
        print("{}", file=sys.stderr)  # a record, as that of a test
        return
    model, columns, scaled = pickle.loads(Path(path).read_bytes())
    rows, labels = load_svmlight_file(file, n_features=columns)
    rows = normalize(rows) if scaled else rows
    start = time.perf_counter()
    predictions = model.predict(rows)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "error": float((predictions != labels).mean())}), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
