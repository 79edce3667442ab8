"""Explain a prediction of a probabilistic label tree by the nodes on the paths of the best labels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...kernels.constants import GOLDEN
from ...reductions.core import label_arrays
from ...reductions.core.label_lists import MultilabelLearner
from ...reductions.cpt import label_tree
from ...reductions.plt import nodes
from ...reductions.plt.reduction import LabelTree
from . import reasons
from .reasons import MOST_OTHERS, NOTHING, shares_of

LEAST = 1e-300  # of a probability, so that its logarithm is finite


def explain(learner: LabelTree, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels."""
    tree = learner.tree
    if not tree.size[nodes.NODES]:
        return NOTHING
    x, found, p = learner.best_labels(batch, k + MOST_OTHERS)
    h = batch.index.astype(np.uint64) * GOLDEN

    def turn(a: int) -> Turn:
        place = 0 if a == 0 else 8 * int(tree.place[nodes.top_of(tree, a)] >> 3) + int(nodes.lane_of(tree, a))
        products, bias = reasons.of_regressor(learner.nodes.words, h, x, place), float(learner.nodes.bias[a])
        score = float(products.sum()) + bias
        side = f"branch {place & 7}" if a else "root"
        return Turn(str(a), side, score, float(nodes.probability(np.float32(score))), (
            *shares_of(products), Share("bias", bias)
        ))  # fmt: skip

    ranked = dict(zip(found.tolist(), p.tolist(), strict=True))
    return by_paths(
        learner, batch, k, ranked, int(tree.leaves[0]), lambda y: int(label_tree.find(tree, y + 1)),
        lambda a: int(nodes.top_of(tree, a)), turn,
    )  # fmt: skip


def by_paths(
    learner: MultilabelLearner, batch: Batch, k: int, ranked: dict[int, float], labels: int,
    leaf: Callable[[int], int], parent: Callable[[int], int], turn: Callable[[int], Turn],
) -> Reasons:  # fmt: skip
    """Explain the first k ranked labels, and the own labels of the only example of a batch that the tree has.

    The score of a label is the logarithm of its probability, the sum of those of the nodes on its path. `ranked` are
    labels from 0 and their probabilities, in falling order, and `labels` is the number of all labels. The leaf of a
    label that the tree does not have is -1; node 0 is the root. `turn` returns what a node says.
    """
    own = label_arrays.whole(batch)[: None if not np.isnan(batch.label[0]) else 0] - learner.lowest
    wanted = dict.fromkeys([*list(ranked)[:k], *(y for y in own.tolist() if leaf(y) >= 0)])

    def explained(y: int) -> ExplainedClass:
        path = [leaf(y)]
        while path[0] > 0:
            path.insert(0, parent(path[0]))
        turns = tuple(map(turn, path))
        logs = [Share(f"node {one.node}", math.log(max(one.probability or 0.0, LEAST))) for one in turns]
        score = math.fsum(share.share for share in logs)
        return ExplainedClass(y + learner.lowest, score, math.exp(score), tuple(logs), turns, by_path=True)

    others = [
        ExplainedClass(y + learner.lowest, math.log(max(q, LEAST)), q) for y, q in ranked.items() if y not in wanted
    ]
    return Reasons(list(map(explained, wanted)), others, labels, "exp(score)")
