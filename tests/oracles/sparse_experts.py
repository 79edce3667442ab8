"""Oracle of the doubly sparse softmax, a sparse mixture of sparse experts: slow, plain Python with float64 numbers.

Source   Liao, Chen, Lin, Zhou, Wang, "Doubly Sparse: Sparse Mixture of Sparse Experts for Efficient Softmax Inference",
         arXiv 1901.10668: its abstract, and the losses, the gate and the pruning of the authors' published code
         (layers/ of github.com/shun1024/ds-softmax, ddc8b65).
Differs  from these as `xclass.reductions.sparse_experts.reduction` says: one example a step, plain gradient steps, and
         the group lasso applied before each pruning.
Names    G gate values | a scores of an expert before they are multiplied by G | m mean G of each expert, 0 for the
         experts that were not chosen.
"""

import math

from .oaa import Rand


def softmax(scores: list[float]) -> list[float]:
    odds = [math.exp(s - max(scores)) for s in scores]
    return [o / sum(odds) for o in odds]


class SparseExperts:
    """Learn and predict labels; a row is a list of pairs (index of a feature, its value).

    Features whose indexes are equal modulo `rows` share their weights. `every` is the number of examples between two
    prunings, and the names of the other parameters are those of the options.
    """

    def __init__(
        self, k: int, experts: int, rows: int, seed: int, rate: float, lasso: float, threshold: float, balance: float,
        every: int, spread: float, window: int,
    ):  # fmt: skip
        self.k, self.experts, self.rows, self.rate, self.lasso = k, range(experts), rows, rate, lasso
        self.threshold, self.balance, self.every, self.window = threshold, balance, every, window
        rand = Rand(seed)
        self.gate = [[spread * (2 * float(rand()) - 1) for _ in self.experts] for _ in range(rows)]
        self.w = [{c: {} for c in range(1, k + 1)} for _ in self.experts]  # expert -> its classes -> row -> weight
        self.m = [1 / experts**2 for _ in self.experts]
        self.passed = [0.0 for _ in self.experts]  # weight of the examples that an expert has learned since a pruning
        self.seen: set[int] = set()
        self.learned = 0

    def scores(self, row):
        """Return the features at length 1, the chosen expert, the gate values, and the scores of its classes."""
        length = math.sqrt(sum(float(x) ** 2 for _, x in row)) or 1.0
        x = [(index % self.rows, float(value) / length) for index, value in row]
        G = softmax([sum(self.gate[r][e] * v for r, v in x) for e in self.experts])
        e = max(self.experts, key=lambda e: (G[e], -e))
        return x, e, G, {c: sum(w.get(r, 0.0) * v for r, v in x) for c, w in self.w[e].items()}

    def predict(self, row) -> int:
        _, e, _, a = self.scores(row)
        return max((c for c in a if c in self.seen), key=lambda c: (a[c], -c), default=min(self.w[e]))

    def probabilities(self, row) -> dict[int, float]:
        """Return the probabilities of the classes of the chosen expert; all others have the score 0."""
        _, e, G, a = self.scores(row)
        names = list(a)
        p = softmax([G[e] * a[c] for c in names] + [0.0] * (self.k - len(a)))
        return dict(zip(names, p, strict=False))

    def learn(self, row, y: int, weight: float = 1.0) -> None:
        x, e, G, a = self.scores(row)
        p = self.probabilities(row)
        slope = {c: p[c] - (c == y) for c in a}  # of the log loss in G a
        slope_of_gate = sum(slope[c] * a[c] for c in a) + self.balance * self.load_slope(e)
        step = self.rate * weight
        for r, v in x:
            for c in a:
                self.w[e][c][r] = self.w[e][c].get(r, 0.0) - step * slope[c] * G[e] * v
            for j in self.experts:
                self.gate[r][j] -= step * slope_of_gate * G[e] * ((j == e) - G[j]) * v
        self.m = [m + ((G[e] if j == e else 0.0) - m) / self.window for j, m in enumerate(self.m)]
        self.seen.add(y)
        self.passed[e] += weight
        self.learned += 1
        if self.learned % self.every == 0:
            self.prune()

    def load_slope(self, e: int) -> float:
        """Return the derivative of the squared coefficient of variation of m in m[e]."""
        n, mean = len(self.m), sum(self.m) / len(self.m)
        return 2 / (n * mean) * (self.m[e] / mean - sum(m * m for m in self.m) / (n * mean * mean))

    def prune(self) -> None:
        """Shrink the norms of the classes of each expert, and remove classes with a small one."""
        norm = [{c: math.sqrt(sum(v * v for v in w.values())) for c, w in of.items()} for of in self.w]
        for e in self.experts:
            seen = [c for c in norm[e] if c in self.seen]
            strongest = max(seen, key=lambda c: (norm[e][c], -c), default=None)
            for c, size in norm[e].items():
                home = max((j for j in self.experts if c in norm[j]), key=lambda j: (norm[j][c], -j))
                if home == e or c == strongest:
                    continue
                left = max(0.0, size - self.lasso * self.rate * self.passed[e])
                if left < self.threshold:
                    del self.w[e][c]
                else:
                    self.w[e][c] = {r: v * left / size for r, v in self.w[e][c].items()}
            self.passed[e] = 0.0
