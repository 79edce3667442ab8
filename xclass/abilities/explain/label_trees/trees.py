"""Explain a prediction of conditional probability trees without scorers: the probabilities on the paths multiply.

The score of a class is the logarithm of its probability, and with several trees the sum of the logarithms over the
trees, by which `binary_nodes.vote` compares the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ....array_types import Float64s, Int64s
from ....data.batch import Batch
from ....reductions.cpt.binary_nodes import Predictions
from ....reductions.cpt.tree_member import Member
from ..reasons import Candidate, Reasons, Term, chosen
from .tree_path import TreePaths, log_terms

LEAST = 1e-300  # probabilities are at least this when trees vote, see `binary_nodes.vote`


def predicted(members: Sequence[Member], batches: Sequence[Batch], label: int, output: Predictions) -> None:
    """Predict the only example of a batch by all trees, without learning.

    Parameters
    ----------
    batches : the example as each tree sees it
    label : its label, 0 for none
    output : results of all trees, with the number of the tree as the first index; written
    """
    for t, (member, batch) in enumerate(zip(members, batches, strict=True)):
        of_tree = Predictions(*[array[t] for array in output])
        member.learn_batch(batch, np.array([label]), np.zeros(1, bool), 0, 1, of_tree)


def probabilities(members: Sequence[Member], batches: Sequence[Batch], labels: Int64s) -> Float64s:
    """Return the probability of some labels (int64[n]) by each tree, float64[trees, n]."""
    p = np.zeros((len(members), len(labels)))
    for member, batch, of_tree in zip(members, batches, p, strict=True):
        member.candidate_probabilities(batch, 0, 1, labels[None, :], of_tree[None, :])
    return p


def explain(
    members: Sequence[Member], batches: Sequence[Batch], ranked: Int64s, names: Callable[[int], str], label: float,
    k: int,
) -> Reasons:  # fmt: skip
    """Explain a prediction.

    Parameters
    ----------
    batches : the example as each tree sees it
    ranked : int64[n], the labels that the trees propose, in their order
    names : format of the names of the nodes of a tree, given its number
    label : label of the example, NaN for none
    k : number of classes to explain
    """
    paths = [
        TreePaths(member, batch, names(t), t) for t, (member, batch) in enumerate(zip(members, batches, strict=True))
    ]
    known = [*ranked.tolist()]
    if label > 0 and label not in known:
        known.append(int(label))
    p = probabilities(members, batches, np.array(known, np.int64))
    voting = len(members) > 1
    shown = {*known[:k], label}

    def candidate(c: int) -> Candidate:
        y = known[c]
        score = float(np.log(np.maximum(p[:, c], LEAST)).sum())
        if y not in shown:
            return Candidate(y, score, float(p[:, c].mean()))
        of_trees = [tree.to(y) for tree in paths]
        terms: list[Term] = []
        for t, path in enumerate(of_trees):
            part = f"tree{t}" if voting else ""
            terms += log_terms(path, part) if path is not None else [Term(math.log(LEAST), name="no leaf", part=part)]
        turns = tuple(turn for path in of_trees for turn in path or ())
        return Candidate(y, score, float(p[:, c].mean()), tuple(terms), turns)

    in_any = [c for c in range(len(known)) if c < len(ranked) or p[:, c].any()]
    explained, others = chosen(map(candidate, in_any), k, label)
    formula = "exp(score)"
    if voting:
        formula = f"({' + '.join(f'exp(tree{t})' for t in range(len(members)))}) / {len(members)}"
    compared = len(ranked) if voting else int(members[0].tree.leaves[0])  # a single tree is searched
    return Reasons(explained, others, compared if explained else 0, formula if explained else "")
