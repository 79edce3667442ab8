"""Merge the learners of conditional probability trees: trees, their regressors, the index and the scorers.

Idea      If one tree has grown from those of all other models, or is equal to them, all have the same nodes, whose
          weights are averaged. Otherwise the nodes of different models are not the same. Then the merged learner takes
          its trees in turn from the models, the first tree from the first model, and so on; index and scorers, which
          are found by classes and not by nodes, are merged from all. Without an index and scorers this would lose too
          much and is refused.
          A weight does not say which feature it belongs to, so weights of a class or node cannot get another number.
Differs   from the other parts: the scale of a numeric column is a mean, and so is the merged one.
"""

from __future__ import annotations

import numpy as np

from ...binary import feature_scaling, merged_words, merging
from ...binary.adagrad import SharedWeights
from ...binary.document_frequency import EXAMPLES
from ...binary.feature_scaling import COLUMNS, Scales
from ...errors import ModelError
from ...model import stored_arrays
from ...reductions.cpt.label_tree import NODES
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.multiclass.reduction import Multiclass
from ...reductions.multiclass.searched_trees import DECIDED, SEARCHED
from . import means, parts
from .sources import CONTINUE, Sources, add_up, average, check_names, not_continued

SAME_FEATURES = "give --normalize_features {advice} when both are trained, or train both from one base"


def merge(target: ProbabilityTree | Multiclass, sources: Sources) -> list[str]:
    check_names(sources)
    _check_features(sources)
    notes = _merge_trees(target, sources)
    if target.scales is not None:
        _merge_scales(target.scales, sources.of("scales"))
    if target.frequencies is not None:
        parts.merge_frequencies(target.frequencies, sources.of("frequencies"))
    if isinstance(target, Multiclass):
        _merge_multiclass(target, sources)
    return notes


def _merge_multiclass(target: Multiclass, sources: Sources) -> None:
    """Merge what is beside the trees; their features are counted."""
    if target.index is not None:
        parts.merge_of(target, sources)
    if target.searched is not None:
        searched = sources.of("searched")
        states = searched.of("state").learners
        add_up(target.searched, searched, "state", stored_arrays.MAX_COUNT)
        state = target.searched.state
        state[[SEARCHED, DECIDED]] = np.minimum(np.max(states, axis=0)[[SEARCHED, DECIDED]], stored_arrays.MAX_COUNT)
        target.searched.replace(state)
    scorers = sources.of("scorers")
    average(target.scorers, scorers, "state")
    weights = _merged_weights(target.scorers.weights, scorers.of("weights"))
    target.scorers = target.scorers._replace(weights=weights)
    means.merge(target.means, sources.of("means"))
    average(target, sources, "pool")
    target.has_features = any(one.has_features for one in sources.learners)


def _merged_weights(target: SharedWeights, sources: Sources) -> SharedWeights:
    """Return an empty table, filled with the merged weights of regressors, see `merged_words.merged`."""
    words = sources.of("words")
    return target._replace(words=merged_words.merged(words.learners, words.base, sources.live))


# -- trees


def _merge_trees(target: ProbabilityTree | Multiclass, sources: Sources) -> list[str]:
    """Set the trees of the new learner and their weights; return notes."""
    learners, base = sources.learners, sources.base
    own = [[one.trees.members[t].tree for one in learners] for t in range(len(target.trees))]
    grown = [max(several, key=lambda tree: int(tree.size[NODES])) for several in own]
    for k, path in enumerate(sources.paths):
        if not all(parts.extends(several[k], old.tree) for several, old in zip(own, base.trees.members, strict=True)):
            raise not_continued(path, sources.base_path, "its trees have not grown from those of the base")
    if not all(parts.extends(tree, one) for tree, several in zip(grown, own, strict=True) for one in several):
        return _take_in_turn(target, sources)
    for t, (member, tree) in enumerate(zip(target.trees.members, grown, strict=True)):
        of_tree = sources._replace(learners=[one.trees.members[t] for one in learners], base=base.trees.members[t])
        member.tree = tree
        member.weights = _merged_weights(member.weights, of_tree.of("weights"))
        member.random[:] = learners[0].trees.members[t].random
    return []


def _take_in_turn(target: ProbabilityTree | Multiclass, sources: Sources) -> list[str]:
    """Take the trees from the models in turn; return a note about it."""
    models, paths = len(sources.learners), sources.paths
    if not (isinstance(target, Multiclass) and target.index is not None):
        raise ModelError(
            f"{' and '.join(paths[:2])} have different trees, whose nodes do not correspond; {CONTINUE}, or give all "
            "the same tree, a file of --save_tree, as --cpt_tree"
        )
    labels = np.unique(np.concatenate([parts.leaves(one.trees.members[0].tree) for one in sources.learners])).tolist()
    for t, member in enumerate(target.trees.members):
        source = sources.learners[t % models].trees.members[t]
        member.tree = parts.with_missing(source.tree, labels)
        member.weights = source.weights
        member.random[:] = source.random
    used = min(models, len(target.trees))
    without = f", and {models - used} of {models} models contribute no tree" if used < models else ""
    return [
        "the models have different trees, so each tree of the merged model comes from one model and has learned from "
        f"its examples only{without}; the index and the scorers are merged from all. To merge the trees too, {CONTINUE}"
    ]


# -- features


def _check_features(sources: Sources) -> None:
    """Refuse models that scale or weight features differently, because their weights mean different things."""
    scaled: dict[bool, str] = {}
    weighted: dict[bool, str] = {}
    for one, path in zip(sources.learners, sources.paths, strict=True):
        if one.scales is not None and one.scales.state[feature_scaling.EXAMPLES]:
            scaled.setdefault(bool(one.scales.state[COLUMNS]), path)
        if one.frequencies is not None and one.frequencies.weighting and one.frequencies.state[EXAMPLES]:
            weighted.setdefault(one.frequencies.active, path)
    if len(scaled) == 2:
        raise ModelError(
            f"{scaled[True]} divides features by their mean sizes, as columns of numbers, and {scaled[False]} does "
            f"not; {SAME_FEATURES.format(advice='columns or unit')}"
        )
    if len(weighted) == 2:
        raise ModelError(
            f"{weighted[True]} weights features by inverse document frequency, and {weighted[False]} does not, "
            f"because it saw other values than 1; {SAME_FEATURES.format(advice='unit')}"
        )


def _merge_scales(target: Scales, sources: Sources) -> None:
    """Average the mean sizes of features, weighted by the numbers of values in the means.

    The mean of a model that has not counted since the base is left out if another one has.
    """
    models, base = sources.learners, sources.base
    add_up(target, sources, "state", stored_arrays.MAX_COUNT)
    target.state[COLUMNS] = max(one.state[COLUMNS] for one in models)
    if target.idle:
        return
    counted = [np.where((one.size != base.size) | (one.seen != base.seen), one.seen, 0.0) for one in models]
    target.size[:] = merging.weighted_mean([one.size for one in models], counted, base.size)
    add_up(target, sources, "seen", target.window)
    for one in (base, *models):
        target.valued |= one.valued
