"""A plain version of what `--multiclass` does with the opinions of two learners: p(y) ~ p_1(y)**A * p_2(y)**B.

Each learner lists classes with probabilities; what is left belongs to all others together. The pool is over the listed
classes and the others. A class that a learner does not list counts with the least probability that it lists, or with
that of its others if that is less, and nothing counts with less than 1e-4.
"""

import math

STEP, LEAST, OTHERS = 0.1, 1e-4, 0


class Pool:
    def __init__(self) -> None:
        self.powers, self.squares = [1.0, 1.0], [1.0, 1.0]

    def combine(self, lists: list[dict[int, float]], label: int, learns: bool, weight: float) -> dict[int, float]:
        """Return the probability of each listed class and of the others, and learn the powers from the label."""
        classes = [label for listed in lists for label in listed]
        opinions = []
        for listed in lists:
            rest = max(1 - sum(listed.values()), LEAST)
            least = max(min([*listed.values(), rest]), LEAST)
            opinions.append({c: math.log(max(listed.get(c, least), LEAST)) for c in classes} | {OTHERS: math.log(rest)})
        raw = {c: math.exp(sum(a * one[c] for a, one in zip(self.powers, opinions, strict=True))) for c in opinions[0]}
        p = {c: value / sum(raw.values()) for c, value in raw.items()}
        truth = label if label in p else OTHERS
        if learns and classes:
            for j, one in enumerate(opinions):
                slope = sum(p[c] * one[c] for c in p) - one[truth]
                self.squares[j] += weight * slope**2
                self.powers[j] = max(0.0, self.powers[j] - STEP * weight * slope / math.sqrt(self.squares[j]))
        return p
