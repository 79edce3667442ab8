"""Merge probabilistic label trees.

If one tree has grown from those of all other models, or is equal to them, all have the same nodes, whose weights are
averaged. Otherwise the nodes of different models are not the same, and merging is refused.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s
from ...binary import merged_words, merging
from ...errors import ModelError
from ...kernels.constants import LARGEST
from ...reductions.cpt.label_tree import NODES
from ...reductions.plt import nodes
from ...reductions.plt.reduction import LabelTree
from . import parts
from .sources import CONTINUE, Sources, average, check_names, not_continued


def _of_all(values: Float32s, m: int, unlearned: float) -> Float32s:
    """Return the numbers of the first m nodes, `unlearned` for those that a smaller tree lacks."""
    return np.pad(values, (0, max(0, m - len(values))), constant_values=unlearned)[:m]


def merge(target: LabelTree, sources: Sources) -> list[str]:
    learners, base = sources.learners, sources.base
    check_names(sources)
    grown = max((one.tree for one in learners), key=lambda tree: int(tree.size[NODES]))
    for one, path in zip(learners, sources.paths, strict=True):
        if not parts.extends(one.tree, base.tree):
            raise not_continued(path, sources.base_path, "its tree has not grown from that of the base")
        if not parts.extends(grown, one.tree):
            raise ModelError(
                f"{' and '.join(sources.paths[:2])} have different trees, whose nodes do not correspond; "
                f"{CONTINUE}, or give all the same tree, a file of --save_tree, as --plt_tree"
            )
    words = merged_words.merged([one.nodes.words for one in learners], base.nodes.words, sources.live)
    target.tree, target.nodes = grown, nodes.new_nodes(grown, words)
    m = int(grown.size[NODES])
    biases, sums = (
        [_of_all(getattr(one.nodes, name), m, unlearned).astype(np.float64) for one in (base, *learners)]
        for name, unlearned in (("bias", -1.0), ("seen", 0.0))
    )
    added = [np.maximum(one - sums[0], 0.0) for one in sums[1:]]
    begun = np.where(sums[0] > 0, biases[0], np.max(biases, axis=0))  # 1 where a model has begun, else -1
    target.nodes.bias[:m] = merging.weighted_mean(biases[1:], added, begun)
    target.nodes.seen[:m] = np.minimum(sums[0] + np.sum(added, axis=0), LARGEST)
    average(target.nodes, sources.of("nodes"), "regularisation")
    target.random[:] = learners[0].random
    parts.merge_frequencies(target.frequencies, sources.of("frequencies"))
    target.merge_counts(learners, base)
    return target.merge_threshold(learners)
