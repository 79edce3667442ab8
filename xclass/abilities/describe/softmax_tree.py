"""Describe a softmax tree."""

from __future__ import annotations

import math

import numpy as np

from ...binary import gd
from ...reductions.softmax_tree.reduction import SoftmaxTree


def learning_lines(learner: SoftmaxTree, binary: gd.Options) -> list[str]:
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
