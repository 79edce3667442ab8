"""Show the weights of a probabilistic label tree."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import numpy as np

from ...data.batch import Batch
from ...reductions.core import label_arrays
from ...reductions.plt import vw_nodes
from ...reductions.plt.vw_learner import VwLabelTree
from .views import TableView, WeightLookup


def table_view(learner: VwLabelTree) -> TableView:
    exclusive = learner.learner_options.layout == "vw"
    return TableView(partial(_lookups, learner), exclusive, lines=lambda: [f"k = {learner.tree.labels}"])


def _lookups(learner: VwLabelTree, batch: Batch) -> list[WeightLookup]:
    """Return the nodes on the paths of the predicted labels and their siblings, then those that the example trains."""
    tree, found = learner.tree, learner.best_labels(batch)[0]
    own = label_arrays.whole(batch) - learner.lowest
    trained = [*_trained(tree, found.tolist())]
    if not np.isnan(batch.label[0]):
        trained += [n for n in _trained(tree, own[(own >= 0) & (own < tree.labels)].tolist()) if n not in trained]
    return [WeightLookup(0, n, n) for n in trained]


def _trained(tree: vw_nodes.Tree, labels: Sequence[int]) -> list[int]:
    """Return the nodes that an example with these labels trains: those on the paths, and their siblings."""
    above: set[int] = set()
    for label in labels:
        n = tree.inner + label
        while n > 0:
            n = (n - 1) // tree.arity
            above.add(n)
    children = (range(tree.arity * n + 1, min(tree.arity * (n + 1) + 1, tree.nodes)) for n in sorted(above))
    return [0, *itertools.chain.from_iterable(children)]
