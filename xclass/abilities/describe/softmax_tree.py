"""Describe a softmax tree, and explain its predictions by the routers on the way and the scorers of the leaf."""

from __future__ import annotations

import math

import numpy as np

from ...array_types import Float32s, UInt32s
from ...binary import gd
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.softmax_tree import inference
from ...reductions.softmax_tree.inference import PreparedTree
from ...reductions.softmax_tree.reduction import SoftmaxTree
from ...system.steps import pause
from .reasons import NOTHING, chosen, shares_of


def learning_lines(learner: SoftmaxTree, binary: gd.BinaryOptions) -> list[str]:
    o = learner.options
    router_loss = {
        "01": "1 if the leaf is wrong",
        "beta": f"cross-entropy of the leaf; {o.beta:g} if the leaf lacks the class",
        "remove": "cross-entropy of the leaf, if it has the class",
    }[o.zero_loss]
    return [
        "Learning: at the end of the data; predictions before are those of -i, or 0",
        f"Loss of a router: {router_loss}",
        *(f"Regularization: {name} {value:g}" for name, value in (("L1", binary.l1), ("L2", binary.l2)) if value),
    ]


def summary(learner: SoftmaxTree) -> list[str]:
    lines, known = learner.report.lines(), figures(learner)
    if learner.report.weight > 0:
        lines.append(f"top-5 error = {known['top_5_error']:.6f}")
        lines.append(f"class is in the leaf = {known['class_in_leaf']:.6f}")
    if learner.inside > 0:
        lines.append(f"perplexity within the leaf = {math.exp(min(learner.inside_log / learner.inside, 700.0)):.6g}")
    if learner.report.known_weight > 0:
        lines.append(f"perplexity, smoothed by {learner.eps:.3g} = {known['perplexity']:.6g}")
    return [
        *lines,
        *learner.training_lines,
        *(learner.scales.summary_lines if learner.scales is not None else []),
        "leaves = {leaves}, depth = {largest_depth}, classes of a leaf = {classes_of_a_leaf:.1f} (mean), {most} "
        "(most), weights that are not 0 = {weights}".format(most=np.diff(learner.tree_arrays.first).max(), **known),
    ]


def figures(learner: SoftmaxTree) -> dict[str, float]:
    figures = learner.report.figures()
    if learner.report.weight > 0:
        figures["top_5_error"] = learner.missed_top_5 / learner.report.weight
        figures["class_in_leaf"] = learner.inside / learner.report.weight
    sizes = np.diff(learner.tree_arrays.first)
    return {
        **figures,
        "leaves": len(sizes),
        "largest_depth": _depth(learner),
        "classes_of_a_leaf": float(sizes.mean()),
        "weights": len(learner.tree_arrays.weight) + len(learner.tree_arrays.value),
    }


def _depth(learner: SoftmaxTree) -> int:
    left, right = learner.tree_arrays.left, learner.tree_arrays.right
    depth = np.zeros(len(left), np.int64)
    for i in range(len(left)):  # children have higher numbers than their parents
        if left[i] >= 0:
            depth[[left[i], right[i]]] = depth[i] + 1
    return int(depth.max())


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
