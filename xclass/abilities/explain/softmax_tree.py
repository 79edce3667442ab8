"""Explain a prediction of a softmax tree by the routers on the way to its leaf and by the scorers of the leaf."""

from __future__ import annotations

import math

import numpy as np

from ...array_types import Float32s, UInt32s
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.softmax_tree import inference
from ...reductions.softmax_tree.inference import PreparedTree
from ...reductions.softmax_tree.reduction import SoftmaxTree
from ...system.steps import pause
from .reasons import NOTHING, chosen, shares_of


def explain(learner: SoftmaxTree, batch: Batch, k: int) -> Reasons:
    prepared, classes, eps = learner.prepared, learner.classes, learner.eps
    index, x, label = batch.index, learner.scaled_values(batch), float(batch.label[0])
    if not len(prepared.tree.label):
        return NOTHING
    node, path = _route(prepared, index, x)
    leaf = -1 - int(prepared.tree.left[node])
    first, last = int(prepared.tree.first[leaf]), int(prepared.tree.first[leaf + 1])
    size = last - first
    intercept = prepared.tree.score[first:last].tolist()
    terms: list[dict[int, float]] = [{} for _ in range(size)]  # what each feature adds to a class
    for f in range(len(index)):
        pause()
        row = _row(prepared, node, index[f])
        if row >= 0:
            for j in range(int(prepared.tree.entry[row]), int(prepared.tree.entry[row + 1])):
                share = float(prepared.tree.value[j]) * float(x[f])
                if share:
                    terms[int(prepared.tree.owner[j])][f] = share
    score = np.array([math.fsum((*own.values(), base)) for own, base in zip(terms, intercept, strict=True)])
    highest = score.max()
    odds = np.exp(np.maximum(score - highest, -700.0))
    log_total = float(highest + math.log(odds.sum()))
    inside = 1.0 / (1.0 + eps * (classes - size))
    p = inside * odds / odds.sum()
    labels = prepared.tree.label[first:last]

    def of_class(c: int) -> ExplainedClass:
        own = np.zeros(len(index))
        own[[*terms[c]]] = [*terms[c].values()]
        shares = Share("intercept", intercept[c]), *shares_of(own)
        return ExplainedClass(int(labels[c]), float(score[c]), float(p[c]), shares, path)

    ranked = map(of_class, np.argsort(-score, kind="stable").tolist())
    explained, others = chosen(ranked, k, label)
    if 1 <= label <= classes and label not in labels:
        explained.append(ExplainedClass(label, None, eps * inside))
    return Reasons(explained, others, size, f"{inside:.9g} * exp(score - {log_total:.9g})")


def _route(prepared: PreparedTree, index: UInt32s, x: Float32s) -> tuple[int, tuple[Turn, ...]]:
    """Return the node of the leaf that an example reaches, and its way."""
    node, path = 0, []
    while prepared.tree.left[node] >= 0:
        score, own = float(prepared.tree.bias[node]), np.zeros(len(index))
        shares = (Share("intercept", score),) if score else ()
        for f in range(len(index)):
            pause()
            at = _row(prepared, node, index[f])
            if at >= 0:
                own[f] = float(prepared.tree.weight[at]) * float(x[f])
                score += own[f]  # in the order of the kernel
        right = score >= 0.0
        path.append(Turn(str(node), "right" if right else "left", score, None, (*shares, *shares_of(own))))
        node = int(prepared.tree.right[node] if right else prepared.tree.left[node])
    return node, tuple(path)


def _row(prepared: PreparedTree, node: int, feature: np.uint32) -> int:
    """Return the value of a node and a feature in the hash map, -1 if there is none."""
    wanted = np.uint64(node) << inference.NODE_SHIFT | np.uint64(feature)
    cell = inference._cell(prepared.key, wanted, prepared.secret)
    return int(prepared.at[cell]) if prepared.key[cell] == wanted else -1
