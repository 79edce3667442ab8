"""Explain a prediction of the tree of --vw_exact by the nodes on the paths of the best labels."""

from __future__ import annotations

import numpy as np

from ...data.batch import Batch
from ...explain.records import Reasons, Turn
from ...reductions.plt import vw_nodes
from ...reductions.plt.vw_learner import VwLabelTree
from . import reasons
from .plt import by_paths
from .reasons import MOST_OTHERS, shares_of


def explain(learner: VwLabelTree, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels."""
    tree = learner.tree
    found, p = learner.best_labels(batch, k + MOST_OTHERS)
    place, x = batch.index.astype(np.uint64) * learner.table.width, batch.value

    def turn(n: int) -> Turn:
        products = reasons.of_table(learner.table, place, x, n)
        score = float(products.sum())
        side = f"branch {(n - 1) % tree.arity}" if n else "root"
        return Turn(str(n), side, score, float(vw_nodes.sigmoid(np.float32(score))), shares_of(products))

    ranked = dict(zip(found.tolist(), p.tolist(), strict=True))
    return by_paths(
        learner, batch, k, ranked, tree.labels, lambda y: tree.inner + y if 0 <= y < tree.labels else -1,
        lambda n: (n - 1) // tree.arity, turn,
    )  # fmt: skip
