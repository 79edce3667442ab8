"""Explain a prediction of a probabilistic label tree by the nodes on the paths of the best labels."""

from __future__ import annotations

import math

import numpy as np

from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.core import label_arrays
from ...reductions.plt import vw_nodes
from ...reductions.plt.vw_learner import VwLabelTree
from . import shares
from .reasons import MOST_OTHERS, shares_of

LEAST = 1e-300  # of a probability, so that its logarithm is finite


def explain(learner: VwLabelTree, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels.

    The score of a label is the logarithm of its probability, the sum of those of the nodes on its path.
    """
    tree, lowest = learner.tree, learner.lowest
    found, p = learner.best_labels(batch, k + MOST_OTHERS)
    ranked = found.tolist()
    own = label_arrays.whole(batch)[: None if not np.isnan(batch.label[0]) else 0] - lowest
    wanted = [*ranked[:k], *(y for y in own.tolist() if 0 <= y < tree.labels and y not in ranked[:k])]
    place, x = batch.index.astype(np.uint64) * learner.table.width, batch.value

    def turn(n: int) -> Turn:
        products = shares.of_table(learner.table, place, x, n)
        score = float(products.sum())
        side = f"branch {(n - 1) % tree.arity}" if n else "root"
        return Turn(str(n), side, score, float(vw_nodes.sigmoid(np.float32(score))), shares_of(products))

    def explained(y: int) -> ExplainedClass:
        path = [tree.inner + y]
        while path[0] > 0:
            path.insert(0, (path[0] - 1) // tree.arity)
        turns = tuple(map(turn, path))
        logs = [Share(f"node {one.node}", math.log(max(one.probability or 0.0, LEAST))) for one in turns]
        score = math.fsum(share.share for share in logs)
        return ExplainedClass(y + lowest, score, math.exp(score), tuple(logs), turns, True)

    others = [
        ExplainedClass(y + lowest, math.log(max(q, LEAST)), q)
        for y, q in zip(ranked, p.tolist(), strict=True)
        if y not in wanted
    ]
    return Reasons(list(map(explained, wanted)), others, tree.labels, "exp(score)")
