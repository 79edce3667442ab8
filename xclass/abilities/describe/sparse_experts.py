"""Describe a sparse mixture of sparse experts, and explain its predictions.

A prediction is explained by the features' shares in the scores of the gate and of the classes of the chosen expert.
"""

from __future__ import annotations

import math

import numpy as np

from ...binary import gd, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Turn
from ...reductions.sparse_experts import kernels
from ...reductions.sparse_experts.reduction import SLOT_BYTES, SparseExperts
from .reasons import chosen, shares_of


def banner(learner: SparseExperts) -> list[str]:
    experts = f"Experts: {len(learner.experts.size)}, of {learner.classes} classes each at first"
    return [experts, in_words.table(learner.learner_options.bits, SLOT_BYTES), *learner.crowding]


def learning_lines(learner: SparseExperts, binary: gd.BinaryOptions) -> list[str]:
    return [f"Learning rate: {binary.learning_rate:g} (plain gradient descent)", "Loss: log loss of the softmax"]


def summary(learner: SparseExperts) -> list[str]:
    line = "classes of an expert = {classes_of_an_expert:.1f} (mean), {most} (most)"
    most = int(learner.experts.size.max())
    return [*learner.report.lines(), line.format(most=most, **figures(learner))]


def figures(learner: SparseExperts) -> dict[str, float]:
    return {**learner.report.figures(), "classes_of_an_expert": float(learner.experts.size.mean())}


def explain(learner: SparseExperts, batch: Batch, k: int) -> Reasons:
    experts, label = learner.experts, float(batch.label[0])
    scratch = kernels.new_scratch(batch.most_features, experts)
    count, e, lacking = kernels.score(experts, batch, 0, scratch)
    row, x, own = scratch.row[:count], scratch.x[:count].astype(np.float64), float(scratch.gate[e])
    gate = experts.gate[row, e] * x
    turn = Turn("gate", f"expert {e + 1}", float(gate.sum()), own, shares_of(gate))
    size, number = int(experts.size[e]), len(experts.size)
    of_class = experts.w.reshape(-1, number, learner.classes)[row, e, :size].T.astype(np.float64) * x * own
    labels, p, seen = experts.label[e, :size] + 1, scratch.p[:size], experts.seen[experts.label[e, :size]]
    order = np.lexsort((np.arange(size), -p, ~seen)).tolist()

    def explained_class(c: int) -> ExplainedClass:
        score = math.fsum(of_class[c])
        return ExplainedClass(int(labels[c]), score, float(p[c]), shares_of(of_class[c]), (turn,))

    explained, others = chosen(map(explained_class, order), k, label)
    if 1 <= label <= learner.classes and label not in labels:
        explained.append(ExplainedClass(int(label), None, float(lacking), (), (turn,)))
    log_total = math.fsum(of_class[order[0]]) - math.log(max(float(p[order[0]]), 1e-38))
    return Reasons(explained, others, size, f"exp(score - {log_total:.9g})")
