"""Merge the learners of conditional probability trees: trees, their regressors, the index and the scorers.

Idea      If all models have the same trees, weights are averaged node by node. If the trees of all models have grown
          from those of the base, the merged trees are those of the first model and the labels that only others have
          (`trees`). Regressors belong to blocks of nodes, which are numbered in the order of their creation: blocks
          that the base or the first model has keep their numbers, others get new ones (`moved_words`).
          If trees differ otherwise, those of different models have no common nodes. Then the merged learner takes its
          trees in turn from the models, the first tree from the first model, and so on; index and scorers, which are
          found by classes and not by nodes, are merged from all. Without an index and scorers this would lose too much
          and is refused.
Differs   from the other parts: the scale of a numeric column is a mean, and so is the merged one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...array_types import Int64s, UInt32s
from ...binary import adagrad, feature_scaling, merged_words, merging
from ...binary.adagrad import Weights
from ...binary.document_frequency import EXAMPLES, VALUED, Frequencies
from ...binary.feature_scaling import COLUMNS, Scales
from ...errors import ModelError
from ...model import stored_arrays
from ...reductions.cpt import binary_nodes, label_tree
from ...reductions.cpt.label_tree import Tree
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.multiclass.searched_trees import DECIDED, SEARCHED
from .label_trees import index as merged_index
from .label_trees import moved_words
from .label_trees import trees as merged_trees
from .label_trees.moved_words import WHOLE_TAG, Move
from .label_trees.node_moves import node_moves
from .sources import Sources, check_continued, not_continued

MOST_LEVELS = 1000  # of trees that have grown apart; a balanced tree has 20 with a million labels
UNTAGGED = "weights of --layout odd do not say whose they are"
WIDE = "they belong to nodes of --cpt_arity above 2"
SAME_FEATURES = "give --normalize_features {advice} when both are trained, or train both from one base"


def listed_tables(one: ProbabilityTree) -> dict[str, tuple[str, ...]]:
    planes: tuple[str, ...] = (merged_words.WORD,) if one.tagged else ("w", "g")
    tables = {f"weights.{t}": planes for t in range(len(one.members))}
    if one.index is not None:
        tables["index"] = merged_index.PLANES
    return tables if one.scorers is None else {**tables, "scorers": planes}


def merge(target: ProbabilityTree, sources: Sources) -> list[str]:
    learners, base = sources.learners, sources.base
    _check_labels(sources)
    _check_features(sources)
    features = _Features(sources)
    notes = _merge_trees(target, sources, features)
    if target.scales is not None:
        _merge_scales(target.scales, [one.scales for one in learners], base.scales)
    if target.frequencies is not None:
        _merge_frequencies(target.frequencies, [one.frequencies for one in learners], base.frequencies)
    if target.index is not None:
        assert target.frequencies is not None  # the index needs them
        frequencies = [target.frequencies, *(one.frequencies for one in learners)]
        merged_index.merge(
            target.index, [one.index for one in learners], base.index, sources.numbers, frequencies,
            sources.changes_of("index"),
        )  # fmt: skip
    if target.searched is not None:
        states = [one.searched.state for one in learners]
        merged = merging.added_counts(states, base.searched.state)
        merged[[SEARCHED, DECIDED]] = np.max(states, axis=0)[[SEARCHED, DECIDED]]
        target.searched.replace(np.minimum(merged, stored_arrays.MAX_COUNT))
    if target.scorers is not None:
        scorers = [one.scorers for one in learners]
        before = base.scorers.weights
        models = [
            features.moved(one.weights, before, _label_moves(sources.numbers[k]), k) for k, one in enumerate(scorers)
        ]
        weights = merged_weights("scorers", target.scorers.weights, models, before, sources)
        merging.average_parameters(target.scorers.state, [one.state for one in scorers], base.scorers.state)
        target.scorers = target.scorers._replace(weights=weights)
    return [*notes, *features.notes()]


def merged_weights(name: str, target: Weights, models: Sequence[Weights], base: Weights, sources: Sources) -> Weights:
    """Return a new table, filled with the merged weights of regressors.

    Raises ModelError if a model has a smaller sum of squared gradients than the base. Tagged words do not tell, because
    they can be evicted.

    Parameters
    ----------
    name : name of the table in a model
    target : an empty table
    models, base : tables of the models; that of the base becomes the result if it has its size
    sources : the learners of the models, in the same order
    """
    changes = sources.changes_of(name)
    if target.tagged:
        return target._replace(words=merged_words.merged([one.words for one in models], base.words, changes))
    target = target._replace(flat=base.flat)
    k = merging.merge_slots(_slots(base), [_slots(one) for one in models], sources.examples, changes)
    check_continued(k, sources)
    return target


class _Features:
    """Find the features of each model once, when they are needed first, and remember what could not be moved."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._found: dict[int, UInt32s] = {}
        self._left: dict[str, set[int]] = {}  # new numbers of the classes whose weights were not moved, by the reason

    def notes(self) -> list[str]:
        """Return notes about the weights that were not moved."""
        advice = (
            "let the base learn from some examples of each class" if self._sources.has_base
            else "give each training the same --named_labels @FILE"
        )  # fmt: skip
        return [
            f"weights of {len(labels)} class{'es' * (len(labels) > 1)} with another place in the merged model were not "
            f"moved there, because {reason}, but averaged with those of other classes; to avoid this, {advice}"
            for reason, labels in self._left.items()
        ]

    def leave(self, labels: Iterable[int], reason: str) -> None:
        """Remember that the weights of some classes, by their new numbers, are not moved."""
        self._left.setdefault(reason, set()).update(labels)

    def moved(self, weights: Weights, base: Weights, moves: Mapping[int, Sequence[Move]], k: int) -> Weights:
        """Return the weights of model k after words have been moved, if they are tagged."""
        one = self._sources.learners[k]
        if not moves:
            return weights
        numbers = self._sources.numbers[k]
        labels = [label if numbers is None else int(numbers[label]) for label in moves]
        if not weights.tagged:
            self.leave(labels, UNTAGGED)
            return weights
        if k not in self._found:
            words = one.members[0].weights.words
            self._found[k] = moved_words.features_of(
                words, moved_words.root_of(one.options.cpt_arity), self._sources.feature_bits, self._sources.constant
            )
        words = moved_words.moved(weights.words, base.words, moves, self._found[k], one.index)
        if words is weights.words:
            self.leave(labels, "their features are unknown or too many to try")
        return weights._replace(words=words)


def _label_moves(numbers: Int64s | None) -> dict[int, list[Move]]:
    """Return the moves of words of scorers whose classes get other numbers."""
    if numbers is None:
        return {}
    return {old: [Move(old, WHOLE_TAG, new, WHOLE_TAG)] for old, new in enumerate(numbers.tolist()) if new != old}


def _slots(weights: Weights) -> merging.Slots:
    """Return the slots of a table."""
    return merging.Slots(weights.flat[0::2], None if weights.plain else weights.flat[1::2])


# -- trees


def _merge_trees(target: ProbabilityTree, sources: Sources, features: _Features) -> list[str]:
    """Set the trees of the new learner and their weights; return notes."""
    learners = sources.learners
    trees = [
        [merged_trees.renumbered(member.tree, numbers) for member in one.members]
        for one, numbers in zip(learners, sources.numbers, strict=True)
    ]
    before = [member.tree for member in sources.base.members]
    grown = False
    if int(before[0].size[label_tree.NODES]):
        for one, path in zip(trees, sources.paths, strict=True):
            if not all(merged_trees.extends(tree, old) for tree, old in zip(one, before, strict=True)):
                raise not_continued(path, sources.base_path, "its trees have not grown from those of the base")
        grown = True
    same = all(merged_trees.equal(tree, first) for one in trees for tree, first in zip(one, trees[0], strict=True))
    if not same and not grown:
        return _take_in_turn(target, sources, trees)
    for t, member in enumerate(target.members):
        own = [one[t] for one in trees]
        old = sources.base.members[t].weights
        weights = [one.members[t].weights for one in learners]
        if same:
            member.tree = merged_trees.copied(own[0])
        else:
            member.tree = merged_trees.grown_together(own, before[t])
            if member.kernels is binary_nodes and old.tagged:
                _check_depth([*own, member.tree], [*sources.paths, " and ".join(sources.paths)])
            for k, one in enumerate(learners):
                if member.kernels is binary_nodes and weights[k].tagged:
                    moves = node_moves(one.members[t].tree, sources.numbers[k], member.tree, before[t])
                    weights[k] = features.moved(weights[k], old, moves, k)
                elif not merged_trees.extends(member.tree, own[k]):  # nodes have other places
                    reason = UNTAGGED if member.kernels is binary_nodes else WIDE
                    features.leave(np.setdiff1d(leaves(own[k]), leaves(before[t])).tolist(), reason)
        member.weights = merged_weights(f"weights.{t}", member.weights, weights, old, sources)
        member.random[:] = learners[0].members[t].random
    return []


def _take_in_turn(target: ProbabilityTree, sources: Sources, trees: Sequence[Sequence[Tree]]) -> list[str]:
    """Take the trees from the models in turn; return a note about it."""
    models, paths = len(sources.learners), sources.paths
    if target.index is None:
        raise ModelError(
            f"{paths[0]} and {paths[1]} have different trees, which have not grown from one; learn all models from one "
            "model, which has learned from some examples of each class (-i BASE), and give it as --base, or give all "
            "of them the same tree (--save_tree FILE, then --cpt_tree FILE)"
        )
    labels = np.unique(np.concatenate([leaves(one[0]) for one in trees])).tolist()
    for t, member in enumerate(target.members):
        source = sources.learners[t % models].members[t]
        member.tree = merged_trees.with_missing(trees[t % models][t], labels)
        member.weights = adagrad.copied(source.weights)
        member.random[:] = source.random
    used = min(models, len(target.members))
    without = f", and {models - used} of {models} models contribute no tree" if used < models else ""
    return [
        "the models have different trees, so each tree of the merged model comes from one model and has learned from "
        f"its examples only{without}; the index and the scorers are merged from all. To merge the trees too, let the "
        "models continue from one base (-i, --base)"
    ]


def _check_depth(trees: Sequence[Tree], paths: Sequence[str]) -> None:
    """Refuse trees that are so deep that going from each leaf to the root takes too long."""
    for tree, path in zip(trees, paths, strict=True):
        depth = int(tree.size[label_tree.DEEPEST])
        if depth > MOST_LEVELS:
            raise ModelError(
                f"{path}: a tree with {depth} levels cannot be merged with trees that have other classes, only with up "
                f"to {MOST_LEVELS} levels; learn the base again with --cpt_tree general"
            )


def leaves(tree: Tree) -> np.ndarray:
    """Return the labels of a tree, int64[leaves]."""
    nodes = int(tree.size[label_tree.NODES])
    label = tree.label[:nodes]
    return label[label > 0]


def _check_labels(sources: Sources) -> None:
    """Refuse models with classes that have no name although others have."""
    if sources.named is None:
        return
    learners, paths = [sources.base, *sources.learners], [sources.base_path, *sources.paths]
    for one, path, named in zip(learners, paths, [sources.base_named, *sources.named], strict=True):
        labels = [leaves(member.tree) for member in one.members]
        if one.index is not None:
            labels.append(one.index.index.label[: one.index.index.size[0]])
        largest = max((int(label.max()) for label in labels if len(label)), default=0)
        if largest > named:
            raise ModelError(f"{path}: class {largest} has no name, but the model has names; train the model again")


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


def _merge_frequencies(target: Frequencies, models: Sequence[Frequencies], base: Frequencies) -> None:
    """Add the examples and the features that each model has counted since the base."""
    state = merging.added_counts([one.state for one in models], base.state)
    target.state[:] = np.minimum(state, stored_arrays.MAX_COUNT)
    target.state[VALUED] = max(one.state[VALUED] for one in models)
    count = merging.added_counts([one.count for one in models], base.count)
    target.count[:] = np.minimum(count, stored_arrays.MAX_COUNT)


def _merge_scales(target: Scales, models: Sequence[Scales], base: Scales) -> None:
    """Average the mean sizes of features, weighted by the numbers of values in the means.

    The mean of a model that has not counted since the base is left out if another one has.
    """
    state = merging.added_counts([one.state for one in models], base.state)
    target.state[:] = np.minimum(state, stored_arrays.MAX_COUNT)
    target.state[COLUMNS] = max(one.state[COLUMNS] for one in models)
    if target.idle:
        return
    counted = [np.where((one.size != base.size) | (one.seen != base.seen), one.seen, 0.0) for one in models]
    target.size[:] = merging.weighted_mean([one.size for one in models], counted, base.size)
    target.seen[:] = np.minimum(merging.added_counts([one.seen for one in models], base.seen), target.window)
    for one in (base, *models):
        target.valued |= one.valued
