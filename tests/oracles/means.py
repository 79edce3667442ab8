"""Oracle of class means: slow, plain NumPy in double precision, a row at a time.

Source   Hayes and Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", 2020, for the
         means and the pooled covariance, whose fixed shrinkage is replaced by OAS (Chen and others 2010); empirical
         Bayes shrinkage of means by variance components, and AdaGrad (Duchi, Hazan, Singer 2011) for the softmax.
Differs  from the package: all rows are kept, and class sums, covariances and means are computed from them again
         whenever they are needed. Weights of the correction are kept as a function of the rows themselves.
"""

import math

import numpy as np

from .mach import splitmix

WORD = 1 << 64
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """Return the hash that SplitMix64 applies to its state."""
    return splitmix(z - GOLDEN, 1)


def oas(s, n):
    """Return the weight of the mean variance in a covariance of n examples."""
    p = len(s)
    above = (1 - 2 / p) * np.trace(s @ s) + np.trace(s) ** 2
    below = (n + 1 - 2 / p) * (np.trace(s @ s) - np.trace(s) ** 2 / p)
    return min(1.0, above / below) if below > 0 else 1.0


class Means:
    """Learn and score classes 0, 1, ... from rows of d numbers; `compared` is C and `replays` R."""

    def __init__(self, d: int, compared: int, replays: int):
        self.d, self.compared, self.replays = d, compared, replays
        self.x, self.y, self.w = [], [], []  # rows of finished blocks
        self.block = []  # row, class, weight, nearest classes
        self.centre, self.into, self.psi = np.zeros(d), np.eye(d), np.full(d, 1e6)
        self.v, self.offset, self.g = {}, {}, {}  # of each class, for rows in the current space
        self.ring, self.draws = [], 0
        self.log_tau, self.omega, self.tau_square, self.omega_square = math.log(3), 1.0, 0.0, 0.0
        self.log_means_tau, self.means_tau_square = 0.0, 0.0
        self.hits = np.zeros(2)
        self.next_space = 4
        self._finish_sums()

    def _finish_sums(self):
        """Compute weights and shrunken means of all classes from all rows."""
        self.n, self.a = {}, {}
        x, y, w = np.array(self.x).reshape(-1, self.d), np.array(self.y, int), np.array(self.w)
        for c in sorted(set(self.y)):
            self.n[c] = float(w[y == c].sum())
            mean = (w[y == c, None] * x[y == c]).sum(axis=0) / self.n[c]
            self.a[c] = self.psi * self.n[c] / (self.psi * self.n[c] + 1) * ((mean - self.centre) @ self.into)
        self.prior_n = dict(self.n)
        self.total = float(w.sum())

    def parts(self, z, c):
        """Return the scores of class c by its mean and by the correction, and the logarithm of its frequency."""
        a = self.a.get(c, np.zeros(self.d))
        by_mean = z @ a - a @ a / 2
        correction = z @ self.v.get(c, np.zeros(self.d)) + self.offset.get(c, 0.0)
        return by_mean, correction, math.log((self.n.get(c, 0.0) + 0.1) / (self.total + 1))

    def scores(self, x) -> dict[int, float]:
        """Return the score of each class that was learned."""
        z = (np.asarray(x, float) - self.centre) @ self.into
        parts = {c: self.parts(z, c) for c in self.n}
        if self.hits[0] > self.hits[1]:
            return {c: (m + prior) / math.exp(self.log_means_tau) for c, (m, _, prior) in parts.items()}
        return {c: m / math.exp(self.log_tau) + self.omega * v + prior for c, (m, v, prior) in parts.items()}

    def learn(self, x, y: int, weight: float):
        """Add a row to the block, and finish the block if it is full."""
        found = self.scores(x)
        near = sorted(found, key=lambda c: (-found[c], c))[: self.compared]
        self.block.append((np.asarray(x, float), y, weight, near))
        if len(self.block) >= min(256, max(1, len(self.x) // 8)):
            self._finish_block()

    def _step(self, z, y, weight, near, sums=None):
        classes = [*near, *([] if y in near else [y])]
        parts = np.array([self.parts(z, c) for c in classes])
        sharp = math.exp(-self.log_tau)
        score = parts[:, 0] * sharp + self.omega * parts[:, 1] + parts[:, 2]
        p = np.exp(score - score.max())
        e = np.array([c == y for c in classes]) - p / p.sum()
        if sums is not None:
            alone = (parts[:, 0] + parts[:, 2]) / math.exp(self.log_means_tau)
            its_p = np.exp(alone - alone.max()) / np.exp(alone - alone.max()).sum()
            sums[4] += weight * (alone[classes.index(y)] - its_p @ alone)
            sums[0] += weight * (e @ parts[:, 0]) * sharp
            sums[1] -= weight * (e @ parts[:, 1])
            sums[2] += weight * (classes[int(np.argmax(parts[:, 0] + parts[:, 2]))] == y)
            sums[3] += weight * (classes[int(np.argmax(score))] == y)
        q = max(float(z @ z), 1.0)
        for c, error in zip(classes, weight * e, strict=True):
            if abs(error) > 1e-4:
                self.g[c] = self.g.get(c, 0.0) + error**2 * q
                h = error / math.sqrt(self.g[c] + q)
                self.v[c] = self.v.get(c, np.zeros(self.d)) + h * z
                self.offset[c] = self.offset.get(c, 0.0) + 0.3 * h

    def _finish_block(self):
        sums = np.zeros(5)
        for x, y, weight, near in self.block:
            z = (x - self.centre) @ self.into
            if y in self.n:
                self._step(z, y, weight, near, sums)
            for _ in range(self.replays if self.ring else 0):
                self.draws += 1
                row, label, its_near = self.ring[mix(self.draws * GOLDEN % WORD) % len(self.ring)]
                self._step((row - self.centre) @ self.into, label, 1.0, its_near)
        by_tau, by_omega, by_means_tau = sums[[0, 1, 4]] / len(self.block)
        self.tau_square = 0.98 * self.tau_square + by_tau**2
        self.omega_square = 0.98 * self.omega_square + by_omega**2
        self.means_tau_square = 0.98 * self.means_tau_square + by_means_tau**2
        step = 0.2 * by_means_tau / math.sqrt(self.means_tau_square + 1e-4)
        self.log_means_tau = min(max(self.log_means_tau - step, -3.0), 10.0)
        self.log_tau = min(max(self.log_tau - 0.2 * by_tau / math.sqrt(self.tau_square + 1e-4), -3.0), 10.0)
        self.omega = max(0.0, self.omega - 0.1 * by_omega / math.sqrt(self.omega_square + 1e-4))
        self.hits = 0.98 * self.hits + sums[2:4]
        for x, y, weight, near in self.block:
            self.ring.append((x, y, near))
            self.x.append(x)
            self.y.append(y)
            self.w.append(weight)
        self.block = []
        if len(self.x) >= self.next_space:
            self._estimate()
            while self.next_space <= len(self.x):
                self.next_space = math.ceil(self.next_space * (2 if self.next_space < self.d else math.sqrt(2)))
        self._finish_sums()

    def _estimate(self):
        """Estimate the space from all rows, and keep the correction as the function of rows that it was."""
        x, y, w = np.array(self.x), np.array(self.y), np.array(self.w)
        total, classes = w.sum(), sorted(set(self.y))
        mean = (w[:, None] * x).sum(axis=0) / total
        n = np.array([w[y == c].sum() for c in classes])
        means = np.array([(w[y == c, None] * x[y == c]).sum(axis=0) / w[y == c].sum() for c in classes])
        overall = (w[:, None] * (x - mean)).T @ (x - mean) / total
        residual = x - means[np.searchsorted(classes, y)]
        inside = (w[:, None] * residual).T @ residual / total
        free = max(len(x) - len(classes), 0) + 1
        within = (inside * len(x) + overall / 2) / free
        varies = np.diag(overall) > 1e-12 * max(np.diag(overall).max(), 1e-300)
        sd = np.sqrt(np.where(varies, np.maximum(np.diag(within), 1e-5 * np.diag(overall)), 1.0))
        r = within / np.outer(sd, sd)
        r[~varies] = r[:, ~varies] = 0
        np.fill_diagonal(r, 1)
        rho = max(0.001, oas(r, free))
        r = (1 - rho) * r + rho * np.eye(self.d)
        whitening = np.linalg.inv(np.linalg.cholesky(r)).T
        whitening = (varies / sd)[:, None] * whitening
        z = (means - mean) @ whitening
        between = ((n[:, None] * z**2).sum() / self.d - (len(classes) - 1)) / max(total - (n**2).sum() / total, 1e-9)
        share = n / (1 + max(0.0, between) * n)
        c = (share[:, None] * z).T @ z / share.sum()
        rho = oas(c, share.sum() ** 2 / (share**2).sum())
        value, direction = np.linalg.eigh(c)
        value, direction = value[::-1], direction[:, ::-1]
        psi = (1 - rho) * value + rho * value.mean() - (share / n).sum() / share.sum()
        self.psi = np.maximum(psi, 0.001 * max(psi.max(), 1))
        into = whitening @ direction
        back = np.linalg.pinv(into) @ self.into  # from the new space to the old one, for columns that vary
        moved = (mean - self.centre) @ self.into
        for k in self.v:
            self.offset[k] += float(self.v[k] @ moved)
            self.v[k] = back @ self.v[k]
        self.centre, self.into = mean, into
