"""Define how a learner explains a prediction: the classes it considered, their scores, and what each score is a sum of.

    Reasons -> Candidate, Candidate, ... -> Term, Term, ...   the shares of a score
                                         -> Turn, Turn, ...   the way through a tree -> Term, Term, ...

The terms of a score sum to it. A term is the share of a feature, which the learner knows by its position in the
example only, or the share of something else that has a name, such as an intercept. Explanations are made by plain code
beside the kernels, for the examples for which they are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s

MOST_OTHERS = 10  # classes that are listed without terms


class Term(NamedTuple):
    """Hold one addend of a score."""

    share: float
    feature: int = -1  # position of the feature in the example, -1 if it is not the share of a feature
    name: str = ""  # what it is the share of if it is not a feature
    part: str = ""  # part of the learner that it comes from, empty if the score has only one part


class Turn(NamedTuple):
    """Hold a decision on the way through a tree.

    Nodes have the names that `--print_tree` gives them. A node of more than two branches has a turn without a score
    for its branch, and then a turn for each of its regressors, without a probability of a branch.
    """

    node: str
    side: str  # where the example went: left, right, branch B; stays if it went no further
    score: float | None = None  # of the node's regressor
    probability: float | None = None  # of this side, None if the tree does not estimate it
    terms: tuple[Term, ...] = ()  # of the score
    tree: int = 0  # number of the tree


class Candidate(NamedTuple):
    """Hold a class that the learner considered, or the label if it did not consider it."""

    label: float  # class as written in the file, or the prediction of a learner of numbers
    score: float | None = None  # by which classes are compared, the highest wins; None if the class has none
    probability: float | None = None  # None if the learner does not estimate it
    terms: tuple[Term, ...] = ()  # of the score
    path: tuple[Turn, ...] = ()  # from the root of each tree to the class, or as far as the example went


class Reasons(NamedTuple):
    """Hold the explanation of one prediction."""

    candidates: list[Candidate]  # the first k classes, the prediction first, and the label if it is none of them
    others: list[Candidate]  # up to MOST_OTHERS of the next classes, without terms
    considered: int  # number of classes that were compared
    formula: str = ""  # Python expression of the probability, from `score` or the sums of the parts; empty if unknown


NOTHING = Reasons([], [], 0)  # of a learner without classes


def terms_of(shares: Float64s, part: str = "") -> tuple[Term, ...]:
    """Return the terms of features whose share (float64[s]) is not 0."""
    return tuple(Term(float(shares[f]), feature=f, part=part) for f in np.flatnonzero(shares).tolist())


def clipped(score: np.float32, limits: Float32s, terms: tuple[Term, ...]) -> tuple[float, tuple[Term, ...]]:
    """Return a score clipped to the range of labels, as `gd.clip` does, and its terms with one for the difference.

    Parameters
    ----------
    limits : float32[2], the range of labels
    """
    if np.isnan(score):
        return 0.0, ()
    low, high = float(limits[0]), float(limits[1])
    limited = max(low, min(high, float(score)))
    if limited == float(score):
        return limited, terms
    return limited, (*terms, Term(limited - float(score), name="limit of the range of labels"))


def chosen(ranked: Iterable[Candidate], k: int, label: float) -> tuple[list[Candidate], list[Candidate]]:
    """Divide classes that are in their order into those to explain, with terms, and those to list without.

    Parameters
    ----------
    ranked : all classes that were considered
    k : number of classes to explain
    label : the label of the example, which is explained too; NaN for none
    """
    explained: list[Candidate] = []
    others: list[Candidate] = []
    for position, candidate in enumerate(ranked):
        if position < k or candidate.label == label:
            explained.append(candidate)
        elif len(others) < MOST_OTHERS:
            others.append(candidate._replace(terms=(), path=()))
    return explained, others
