"""Explain a prediction of conditional probability trees, and of the scorers that rerank their proposals."""

from __future__ import annotations

import numpy as np

from ...binary import document_frequency
from ...data.batch import Batch
from ...reductions.core import label_arrays
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.multiclass import reranking
from ...reductions.multiclass.reduction import Multiclass
from .label_trees import scorers, trees
from .label_trees.tree_path import TreePaths
from .reasons import Reasons


def explain(learner: ProbabilityTree, batch: Batch, k: int) -> Reasons:
    none, number, label = np.zeros(1, bool), label_arrays.whole(batch.label), float(batch.label[0])
    if learner.scales is not None:
        batch = learner.scales.scaled(batch, none)
    weighted = document_frequency.not_weighted(batch)
    if learner.frequencies is not None:
        weighted = learner.frequencies.weighted(batch, none)
    batches = [learner.batch_of_tree(t, batch, weighted.batch) for t in range(len(learner.members))]
    reranked = isinstance(learner, Multiclass)
    single = len(batches) == 1 and not reranked
    most = max(learner.options.candidates, 0 if reranked else k)
    output = learner.new_output(1, k if single else most)
    searched = slice(learner.number_searched)
    trees.predicted(learner.members[searched], batches[searched], int(number[0]), output)
    if not isinstance(learner, Multiclass):
        if single:  # the search for k classes may find others than that for one
            answer = learner.new_output(1, 1)
            trees.predicted(learner.members, batches, int(number[0]), answer)
            ranked = np.array(list(dict.fromkeys([*answer.top[0, 0].tolist(), *output.top[0, 0].tolist()])))
        else:
            ranked = learner.vote(batches, output, output.top[:, 0].size, True)[0][0]
        return trees.explain(learner.members, batches, ranked[ranked > 0], learner.node_name, label, k)
    opinions = learner.new_opinions(output)
    if learner.index is not None:
        learner.index.propose(batch, weighted.share, number, none, False, 0, 1, opinions)
    paths = [TreePaths(learner.members[t], seen, learner.node_name(t), t) for t, seen in enumerate(batches)]
    proposed = reranking.Proposed(output.top, output.top_p, output.p, opinions)
    example = scorers.Example(batch, weighted, label, proposed, paths)
    unit = learner.options.normalize_features != "none"
    ranking = scorers.Ranking(learner.rank_kernel, learner.scorers, unit, example)
    return scorers.explain(ranking, example, learner.index, k)
