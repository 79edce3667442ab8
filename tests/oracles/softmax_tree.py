"""Oracle of the softmax tree: tree alternating optimisation in plain NumPy, written from the paper.

Source   Zharmagambetov et al. 2021: algorithms 1 and 2, problems (2) and (3), section 4.1.
Idea     Examples are the rows of a dense array. Nodes are optimised one after the other. Both convex problems, that of
         a leaf and that of a router, are solved by accelerated proximal gradient descent until convergence.
Differs  from the paper as the kernels do: intercepts have no penalty; with "01" the objective has no penalty of the
         leaves. There is no "remove".
Names    x rows | y classes | c weights of the rows. The tree is complete, and its nodes are numbered breadth-first from
         0; node i has the children 2 i + 1 and 2 i + 2.
"""

import itertools

import numpy as np


def soft(w, limit):
    return np.sign(w) * np.maximum(np.abs(w) - limit, 0.0)


def softmax_fit(x, y, c, k, alpha, steps=20000, l2=0.0):
    """Return W [k, F] and b [k] that minimise the loss, where z = x W' + b.

    The loss is sum_n c_n (log sum exp(z_n) - z_ny) + alpha |W| + l2 / 2 |W|^2.
    """
    n, features = x.shape
    whole = np.hstack([x, np.ones((n, 1))])
    lipschitz = np.linalg.norm(whole * np.sqrt(c)[:, None], 2) ** 2 / 2 + 1e-9
    w = np.zeros((k, features + 1))
    shares = np.array([c[y == j].sum() for j in range(k)])
    w[:, -1] = np.log(shares / shares.sum())
    v, t = w.copy(), 1.0
    truth = np.eye(k)[y]
    for _ in range(steps):
        z = whole @ v.T
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        new = v - ((p - truth) * c[:, None]).T @ whole / lipschitz
        new[:, :-1] = soft(new[:, :-1], alpha / lipschitz) / (1.0 + l2 / lipschitz)
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        v = new + (t - 1) / after * (new - w)
        if np.abs(new - w).max() < 1e-7:
            w = new
            break
        w, t = new, after
    return w[:, :-1], w[:, -1]


def logistic_fit(x, right, c, alpha):
    """Return w and b that minimise the weighted logistic loss + alpha |w|, where z = x w + b and `right` is 0 or 1."""
    n, features = x.shape
    whole = np.hstack([x, np.ones((n, 1))])
    lipschitz = np.linalg.norm(whole * np.sqrt(c)[:, None], 2) ** 2 / 4 + 1e-9
    w = np.zeros(features + 1)
    v, t = w.copy(), 1.0
    for _ in range(20000):
        p = 1 / (1 + np.exp(-whole @ v))
        new = v - whole.T @ (c * (p - right)) / lipschitz
        new[:-1] = soft(new[:-1], alpha / lipschitz)
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        v = new + (t - 1) / after * (new - w)
        if np.abs(new - w).max() < 1e-7:
            w = new
            break
        w, t = new, after
    return w[:-1], w[-1]


def k_means(x, c, clusters, seed, runs=10):
    """Return the cluster of each row and the means of the clusters: the best of some runs of weighted k-means.

    Random numbers are drawn as xclass draws them.
    """
    rng = np.random.default_rng(seed)
    best = np.inf
    for _ in range(runs):
        far = np.full((len(x), 1), np.inf)
        centres = x[:0]
        while len(centres) < clusters:
            share = c * far.min(axis=1) if len(centres) else c
            picks = rng.choice(len(x), 2 + int(np.log(clusters)) if len(centres) else 1, p=share / share.sum())
            tries = [np.vstack([centres, x[pick]]) for pick in picks]
            centres = min(tries, key=lambda some: c @ distances(x, some).min(axis=1))
            far = distances(x, centres)
        before = None
        for _ in range(300):
            cluster = distances(x, centres).argmin(axis=1)
            if before is not None and (cluster == before).all():
                break
            before = cluster
            centres = np.array([np.average(x[cluster == i], axis=0, weights=c[cluster == i]) for i in range(clusters)])
        loss = c @ distances(x, centres).min(axis=1)
        if loss < best:
            best, result = loss, (cluster, centres)
    return result


def distances(x, centres):
    return ((x[:, None] - centres[None]) ** 2).sum(axis=2)


def merged(mean, mass):
    """Yield the clusters of each level above the leaves, as sets of sets of leaves, by algorithm 2."""
    level = [(frozenset([i]), mean[i], mass[i]) for i in range(len(mean))]
    while len(level) > 1:
        left, level = level, []
        while left:  # find and remove the closest two
            a, b = min(
                itertools.combinations(range(len(left)), 2), key=lambda p: np.linalg.norm(left[p[0]][1] - left[p[1]][1])
            )
            (leaves, m, c), (more, other, d) = left[a], left[b]
            level.append((leaves | more, (c * m + d * other) / (c + d), c + d))
            left = [one for i, one in enumerate(left) if i not in (a, b)]
        yield {leaves for leaves, _, _ in level}


class Oracle:
    def __init__(self, x, y, c, depth, alpha, k, zero_loss, beta):
        self.x, self.y, self.c = x, y, c
        self.depth, self.alpha, self.k, self.zero_loss, self.beta = depth, alpha, k, zero_loss, beta
        self.inner = 2**depth - 1
        self.router = {i: (np.zeros(x.shape[1]), 0.0) for i in range(self.inner)}
        self.leaf = dict.fromkeys(range(self.inner, 2 * self.inner + 1))  # classes, W, b; None without rows so far

    def side(self, i, x):
        w, b = self.router[i]
        return 2 * i + 2 if x @ w + b >= 0 else 2 * i + 1

    def reach(self, x, i=0):
        while i < self.inner:
            i = self.side(i, x)
        return i

    def leaf_loss(self, n, i):
        """Return the loss of row n in the subtree of node i, and the class predicted for it."""
        leaf = self.leaf[self.reach(self.x[n], i)]
        if leaf is None:
            return (1.0 if self.zero_loss == "01" else self.beta), 0
        classes, w, b = leaf
        z = w @ self.x[n] + b
        predicted = int(classes[int(np.argmax(z))])
        if self.zero_loss == "01":
            return float(predicted != self.y[n]), predicted
        if self.y[n] not in classes:
            return self.beta, predicted
        own = int(np.flatnonzero(classes == self.y[n])[0])
        return float(np.log(np.exp(z - z.max()).sum()) + z.max() - z[own]), predicted

    def objective(self):
        loss = sum(self.c[n] * self.leaf_loss(n, 0)[0] for n in range(len(self.y)))
        size = sum(np.abs(w).sum() for w, _ in self.router.values())
        if self.zero_loss != "01":
            size += sum(np.abs(weights[1]).sum() for weights in self.leaf.values() if weights is not None)
        return loss + self.alpha * size

    def iterate(self, leaf_of):
        under = {i: [n for n in range(len(self.y)) if self._above(leaf_of[n], i)] for i in range(2 * self.inner + 1)}
        for i in range(2 * self.inner, -1, -1):
            if i >= self.inner:
                self._fit_leaf(i, under[i])
            else:
                self._fit_router(i, under[i])

    def _above(self, leaf, i):
        while leaf > i:
            leaf = (leaf - 1) // 2
        return leaf == i

    def _fit_leaf(self, i, rows):
        if not rows:
            return
        names = sorted(set(self.y[rows]))
        worth = {name: sum(self.c[n] for n in rows if self.y[n] == name) for name in names}
        classes = np.array(sorted(sorted(names, key=lambda name: (-worth[name], name))[: self.k]))
        inside = [n for n in rows if self.y[n] in classes]
        w, b = softmax_fit(
            self.x[inside], np.searchsorted(classes, self.y[inside]), self.c[inside], len(classes), self.alpha
        )
        self.leaf[i] = (classes, w, b)

    def _fit_router(self, i, rows):
        left_loss = np.array([self.leaf_loss(n, 2 * i + 1)[0] for n in rows])
        right_loss = np.array([self.leaf_loss(n, 2 * i + 2)[0] for n in rows])
        differing = np.flatnonzero(left_loss != right_loss)
        if not len(differing):
            return
        routed = np.array(rows)[differing]
        gap = left_loss[differing] - right_loss[differing]
        self.router[i] = logistic_fit(self.x[routed], (gap > 0).astype(float), self.c[routed] * np.abs(gap), self.alpha)

    def run(self, leaf_of, iterations):
        """Return, after each iteration, the objective and the leaf of every row."""
        results = []
        for _ in range(iterations):
            self.iterate(leaf_of)
            leaf_of = [self.reach(x) for x in self.x]
            results.append((self.objective(), leaf_of))
        return results
