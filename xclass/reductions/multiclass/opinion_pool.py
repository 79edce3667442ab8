"""Combine what two learners say of each class, one that learned hashed features and one that learned dense rows.

Idea      p(y|x) is proportional to p_1(y)**A * p_2(y)**B over the classes that either learner lists and `others`, all
          other classes together. A class that a learner does not list counts with the least probability that it lists,
          or that of the others if that is less. A and B minimise the log loss by AdaGrad, before the learners see the
          example. Both begin at 1, for learners whose errors are independent.
Source    A product of experts with learned weights (logarithmic opinion pool): Heskes, "Selecting Weighting Factors in
          Logarithmic Opinion Pools", NIPS 1997.
Names     n examples | k classes that a learner lists
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s
from ...kernels import top_k
from ...kernels.jit import jit

LEAST = 1e-4  # probability of a class that counts, so that an error of a learner that is too sure costs little
STEP = 0.1  # learning rate of A and B
LARGEST = 1e3  # A and B stay between 0 and this
FIRST_SQUARES = 1.0  # initial sums of squared slopes


class Listed(NamedTuple):
    """Hold the classes that a learner lists for n examples."""

    top: Int64s  # int64[n, k], the most probable labels, then 0
    top_p: Float64s  # float64[n, k], their probabilities
    p: Float64s  # float64[n], probability of the label; NaN or 0 if it is not known


def new_state() -> Float64s:
    """Return A and B, and their sums of squared slopes, as float64[2, 2]."""
    return np.array([[1.0, 1.0], [FIRST_SQUARES, FIRST_SQUARES]])


@jit
def _gather(listed: Listed, i: int, candidate: Int64s, size: int) -> int:
    """Add the classes that a learner lists for example i to the candidates; return how many there are."""
    for j in range(listed.top.shape[1]):
        label = listed.top[i, j]
        if label == 0:
            break
        known = False
        for c in range(size):
            known |= candidate[c] == label
        if not known:
            candidate[size] = label
            size += 1
    return size


@jit
def _log_opinions(listed: Listed, i: int, candidate: Int64s, size: int, log_p: Float64s) -> None:
    """Write the logarithm of the probabilities of the candidates, and of all others after them."""
    rest, least, count = 1.0, 1.0, 0
    while count < listed.top.shape[1] and listed.top[i, count] > 0:
        rest -= listed.top_p[i, count]
        least = min(least, listed.top_p[i, count])
        count += 1
    rest = max(rest, LEAST)
    least = math.log(max(min(least, rest), LEAST))
    for c in range(size):
        log_p[c] = least
        for j in range(count):
            if listed.top[i, j] == candidate[c]:
                log_p[c] = math.log(max(listed.top_p[i, j], LEAST))
    log_p[size] = math.log(rest)


@jit
def combine(
    state: Float64s, label: Int64s, learns: Bools, weight: Float32s, first: Listed, second: Listed, output: Listed,
    inside: Bools,
) -> None:  # fmt: skip
    """Write the combined probabilities of the classes that two learners list, and learn A and B.

    Parameters
    ----------
    state : float64[2, 2], see `new_state`
    label : int64[n], 0 for none
    learns : bool[n], whether A and B learn from the example
    weight : float32[n]
    output : written; its arrays may have room for fewer classes than are listed
    inside : bool[n], whether a learner lists the label; written
    """
    most = first.top.shape[1] + second.top.shape[1] + 1
    candidate, p = np.zeros(most, np.int64), np.empty(most)
    opinion = np.empty((2, most))
    for i in range(len(label)):
        size = _gather(second, i, candidate, _gather(first, i, candidate, 0))
        _log_opinions(first, i, candidate, size, opinion[0])
        _log_opinions(second, i, candidate, size, opinion[1])
        highest = -1e300
        for c in range(size + 1):
            p[c] = state[0, 0] * opinion[0, c] + state[0, 1] * opinion[1, c]
            highest = max(highest, p[c])
        total = 0.0
        for c in range(size + 1):
            p[c] = math.exp(max(p[c] - highest, -700.0))
            total += p[c]
        truth, filled = size, 0
        output.top[i] = 0
        for c in range(size + 1):
            p[c] /= total
            if c < size:
                truth = c if candidate[c] == label[i] else truth
                filled = top_k.insert(output.top[i], output.top_p[i], filled, candidate[c], p[c])
        inside[i] = truth < size
        if truth < size:
            output.p[i] = p[truth]
        else:  # a part of what others have: the part that the learner which knows the label gives it
            of_first, of_second = first.p[i], second.p[i]
            share = max(of_first / math.exp(opinion[0, size]) if of_first > 0 else 0.0,
                        of_second / math.exp(opinion[1, size]) if of_second > 0 else 0.0)  # fmt: skip
            output.p[i] = p[size] * min(share, 1.0)
        if learns[i] and size > 0:
            for expert in range(2):
                slope = -opinion[expert, truth]
                for c in range(size + 1):
                    slope += p[c] * opinion[expert, c]
                state[1, expert] += weight[i] * slope * slope
                state[0, expert] -= STEP * weight[i] * slope / math.sqrt(state[1, expert])
                state[0, expert] = min(max(state[0, expert], 0.0), LARGEST)
