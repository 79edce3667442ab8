"""Show the weights of a probabilistic label tree."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...array_types import Int64s
from ...data.batch import Batch
from ...reductions.core import label_arrays
from ...reductions.plt import nodes
from ...reductions.plt.reduction import LabelTree
from .views import TableView, WeightLookup


def table_view(learner: LabelTree) -> TableView:
    exclusive = learner.learner_options.layout == "vw"
    return TableView(partial(_lookups, learner), exclusive, lines=lambda: [f"k = {learner.tree.labels}"])


def _lookups(learner: LabelTree, batch: Batch) -> list[WeightLookup]:
    """Return the nodes on the paths of the predicted labels and their siblings, then those that the example trains."""
    tree, found = learner.tree, learner.best_labels(batch)[0]
    own = label_arrays.whole(batch) - learner.lowest
    subs = _trained(tree, np.sort(found))
    if not np.isnan(batch.label[0]):
        subs += [n for n in _trained(tree, own[(own >= 0) & (own < tree.labels)]) if n not in subs]
    return [WeightLookup(0, sub, sub - tree.first) for sub in subs]


def _trained(tree: nodes.Tree, labels: Int64s) -> list[int]:
    """Return the subproblems that an example with these labels, which ascend, trains."""
    scratch = nodes.new_scratch(tree, 1, max(1, len(labels)))
    count = nodes.targets(tree, scratch, nodes.paths(tree, labels, 0, len(labels), scratch.positive))
    trained: list[int] = scratch.lanes.sub[:count].tolist()
    return trained
