"""Explain a prediction of a LOMTree by the routers on the way to its leaf."""

from __future__ import annotations

from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons
from ...reductions.core import tree_routers
from ...reductions.log_multi import split_tree, split_walk
from ...reductions.log_multi.reduction import LomTree
from ..describe.log_multi import objectives
from .reasons import turns_of


def node_notes(learner: LomTree) -> list[str]:
    """Return the text that --audit adds to the score of each node: its objective J."""
    return [f" J {value:.3g}" for value in objectives(learner.tree, learner.cells).tolist()]


def explain(learner: LomTree, batch: Batch, k: int) -> Reasons:
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels())
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    leaf, level = split_walk.predict(learner.tree, learner.routers, scratch, 0)
    nodes = scratch.node[:level]
    numbers = learner.tree.link[nodes, split_tree.ROUTER].tolist()
    way = zip(nodes.tolist(), numbers, scratch.score[:level].tolist(), strict=True)
    label = int(learner.tree.count[leaf, split_tree.PREDICTION])
    return Reasons([ExplainedClass(label, path=turns_of(learner.routers, scratch, way))], [], 1)
