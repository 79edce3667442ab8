"""Merging of trees that have grown apart, and where the words of their nodes and classes go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xclass
from xclass.abilities.merge.label_trees import moved_words, trees
from xclass.abilities.merge.label_trees.moved_words import DROPPED, WHOLE_TAG, Move
from xclass.abilities.merge.label_trees.node_moves import node_moves
from xclass.api.inputs import Inputs
from xclass.binary import tagged_words
from xclass.data.batch import CONSTANT
from xclass.kernels.constants import GOLDEN
from xclass.reductions.cpt import label_tree
from xclass.reductions.cpt.label_tree import NODES
from xclass.reductions.multiclass import feature_index

# without compiling, numpy warns where kernels wrap around
pytestmark = pytest.mark.filterwarnings("ignore:overflow")


def grown(tree: label_tree.Tree, labels: list[int], choices: list[int]) -> label_tree.Tree:
    """Return a copy of a tree into which labels were inserted at leaves that `choices` pick."""
    tree = trees.copied(tree)
    for label, choice in zip(labels, choices, strict=True):
        known = leaves(tree)
        tree = trees.inserted(tree, label, known[choice % len(known)] if known else 0)
    return tree


def leaves(tree: label_tree.Tree) -> list[int]:
    nodes = int(tree.size[NODES])
    return sorted(label for label in tree.label[:nodes].tolist() if label > 0)


def sides(tree: label_tree.Tree) -> dict[int, tuple[set[int], set[int]]]:
    """Return the labels on the left and right of each inner node."""
    below: dict[int, set[int]] = {}
    result = {}
    for a in range(int(tree.size[NODES]) - 1, -1, -1):
        left = int(tree.left[a])
        if left:
            result[a] = below[left], below[left + 1]
            below[a] = below[left] | below[left + 1]
        else:
            below[a] = {int(tree.label[a])}
    return result


def check(tree: label_tree.Tree) -> None:
    """Check that a model file with this tree can be read, and that the tree can grow."""
    stored = {name: np.array(array) for name, array in label_tree.arrays("t", tree).items()}
    restored = label_tree.restored("t", stored)
    nodes = int(tree.size[NODES])
    for name in ("left", "parent", "depth", "leaves", "place", "label"):
        assert np.array_equal(getattr(tree, name)[:nodes], getattr(restored, name)[:nodes]), name
    assert tree.size.tolist() == restored.size.tolist()


growths = st.lists(st.integers(0, 10**6), min_size=0, max_size=25)


@given(growths.filter(bool), st.lists(growths, min_size=1, max_size=3), st.booleans())
def test_trees_that_grew_apart_have_a_common_tree(begin, parts, common):
    base = grown(label_tree.empty_tree(4), list(range(1, len(begin) + 1)), begin)
    own = [
        grown(base, list(range(100 if common else 100 * (k + 1), 200 * (k + 2)))[: len(part)], part)
        for k, part in enumerate(parts)
    ]
    assert all(trees.extends(tree, base) for tree in own)
    merged = trees.grown_together(own, base)
    check(merged)
    assert leaves(merged) == sorted({label for tree in own for label in leaves(tree)})
    assert trees.extends(merged, base) and trees.extends(merged, own[0])
    groups = sides(merged)
    for tree in own:
        targets = []
        moves = node_moves(tree, None, merged, base)
        new_place = {(m.key, m.q): (m.new_key, m.new_q) for one in moves.values() for m in one}
        at = {(int(p) >> 3, int(p) & 7): a for a, p in enumerate(merged.place[: int(merged.size[NODES])])}
        for a in sides(tree):
            place = int(tree.place[a]) >> 3, int(tree.place[a]) & 7
            if new_place.get(place, place)[0] == DROPPED:
                assert common  # a label that several have may be elsewhere in the merged tree
                continue
            target = at[new_place.get(place, place)]
            targets.append(target)
            first = int(trees.first_labels(tree)[tree.left[a]]), int(trees.first_labels(tree)[tree.left[a] + 1])
            assert first[0] in groups[target][0] and first[1] in groups[target][1]
        assert len(set(targets)) == len(targets)


def chain(labels: list[int]) -> label_tree.Tree:
    """Return a tree in which each label is inserted at the leaf of the one before."""
    tree = label_tree.empty_tree(4)
    for before, label in zip([0, *labels], labels, strict=False):
        tree = trees.inserted(tree, label, before)
    return tree


def test_deep_trees_that_have_grown_apart_are_refused(tmp_path):
    base = xclass.Learner("cpt", 3000, bits=12)
    base.learn_many(["1 | a", "2 | b"])
    base.save(tmp_path / "base")
    models = []
    for label in (2001, 2002):
        model = xclass.load(tmp_path / "base")
        member = model.core.reduction.members[0]
        assert leaves(member.tree) == [1, 2]
        member.tree = chain([*range(1, 1500), label])
        model.examples += 1
        models.append(model)
    with pytest.raises(
        xclass.ModelError, match=r"model [12]: a tree with 1499 levels .* up to 1000 levels; learn the base"
    ):
        xclass.merge(models, base=base)
    for model, label in zip(models, (2001, 2002), strict=True):
        model.core.reduction.members[0].tree = chain([*range(1, 900), label])
    assert leaves(xclass.merge(models, base=base).core.reduction.members[0].tree) == [*range(1, 900), 2001, 2002]


@given(growths.filter(lambda choices: len(choices) > 1))
def test_a_tree_does_not_extend_another_one(begin):
    labels = list(range(1, len(begin) + 1))
    tree = grown(label_tree.empty_tree(4), labels, begin)
    other = grown(label_tree.empty_tree(4), [*labels[1:], 99], begin)
    assert not trees.extends(tree, other)
    assert not trees.extends(tree, label_tree.empty_tree(4))
    assert trees.equal(tree, trees.copied(tree)) and not trees.equal(tree, other)


@given(growths.filter(bool), st.permutations(range(1, 26)))
def test_labels_are_renumbered(begin, numbers):
    tree = grown(label_tree.empty_tree(4), list(range(1, len(begin) + 1)), begin)
    renumbered = trees.renumbered(tree, np.array([0, *numbers]))
    check(renumbered)
    assert leaves(renumbered) == sorted(numbers[: len(begin)])


def test_missing_labels_are_inserted_by_balance():
    tree = trees.with_missing(label_tree.empty_tree(4), list(range(1, 17)))
    check(tree)
    assert leaves(tree) == list(range(1, 17))
    assert int(tree.size[label_tree.DEEPEST]) == 4
    assert trees.equal(trees.with_missing(tree, [3, 5]), tree)


# -- words


def set_word(words: tagged_words.Words, feature: int, key: int, q: int, w: int) -> None:
    """Put a word for a feature and a class (q is WHOLE_TAG) or a regressor of a block into its line."""
    line, tag = tagged_words.locate(words, np.uint64(feature) * GOLDEN, key)
    tag = int(tag) if q == WHOLE_TAG else int(tag) & ~7 | q
    lane = next(lane for lane in range(16) if words.word[line + lane] == 0)
    words.word[line + lane] = w << 19 | 20 << 13 | tag


def word(words: tagged_words.Words, feature: int, key: int, q: int) -> int:
    """Return the code of the weight of a word, 0 if there is none."""
    line, tag = tagged_words.locate(words, np.uint64(feature) * GOLDEN, key)
    tag = int(tag) if q == WHOLE_TAG else int(tag) & ~7 | q
    found = [int(one) >> 19 for one in words.word[line : line + 16].tolist() if one and one & 0x1FFF == tag]
    return found[0] if found else 0


def test_words_of_a_class_move_with_their_features():
    base, words = tagged_words.new_words(10), tagged_words.new_words(10)
    features = [5, 77, 1234, 4001]
    for feature in features:
        set_word(words, feature, 101, WHOLE_TAG, 300 + features.index(feature))
        set_word(words, feature, 102, WHOLE_TAG, 500)
    set_word(base, 9, 101, WHOLE_TAG, 900)  # of a class of the base, by chance with the same key
    set_word(words, 9, 101, WHOLE_TAG, 900)
    moves = {101: [Move(101, WHOLE_TAG, 102, WHOLE_TAG)], 102: [Move(102, WHOLE_TAG, 101, WHOLE_TAG)]}
    moved = moved_words.moved(words, base, moves, np.array([*features, 9], np.uint32), None)
    for number, feature in enumerate(features):
        assert word(moved, feature, 102, WHOLE_TAG) == 300 + number
        assert word(moved, feature, 101, WHOLE_TAG) == 500
        assert word(words, feature, 101, WHOLE_TAG) == 300 + number  # the table itself stays
    assert word(moved, 9, 101, WHOLE_TAG) == 900
    assert moved.state[tagged_words.USED] == np.count_nonzero(words.word)


@pytest.mark.bounds
def test_words_of_a_block_move_and_those_of_the_base_come_back():
    base, words = tagged_words.new_words(10), tagged_words.new_words(10)
    set_word(base, 5, 3, 4, 111)
    set_word(words, 5, 3, 4, 222)
    set_word(words, 5, 3, 2, 333)  # of another regressor of the block
    set_word(words, 6, 3, 4, 444)  # of a feature that the model has not seen
    set_word(words, 5, 7, 5, 555)
    moves = {101: [Move(3, 4, 8, 1), Move(7, 5, DROPPED, 0)], 102: [Move(3, 4, 8, 1)]}
    moved = moved_words.moved(words, base, moves, np.array([5], np.uint32), None)
    assert word(moved, 5, 7, 5) == 0
    assert word(moved, 5, 8, 1) == 222
    assert word(moved, 5, 3, 4) == 111
    assert word(moved, 5, 3, 2) == 333
    assert word(moved, 6, 3, 4) == 444
    line, tag = tagged_words.locate(moved, np.uint64(5) * GOLDEN, 8)
    home = 1 ^ (int(tag) & 7)
    assert moved.word[line + home] or moved.word[line + home + 8]


def test_where_too_many_would_be_tried_the_index_says_which(monkeypatch):
    index = feature_index.FeatureIndex(10, 4, 2)
    words, base = tagged_words.new_words(10), tagged_words.new_words(10)
    for feature, label in ((5, 101), (6, 102)):
        features = np.array([feature], np.uint32)
        feature_index.learn(index.index, features, np.full(1, 0.1, np.float32), 0, 1, label, np.float32(1))
        for key in (101, 102):
            set_word(words, feature, key, WHOLE_TAG, 300 + key)
    moves = {101: [Move(101, WHOLE_TAG, 201, WHOLE_TAG)], 102: [Move(102, WHOLE_TAG, 202, WHOLE_TAG)]}
    monkeypatch.setattr(moved_words, "MOST_PROBES", 3)
    features = np.array([5, 6], np.uint32)
    moved = moved_words.moved(words, base, moves, features, index)
    assert [word(moved, 5, key, WHOLE_TAG) for key in (101, 102, 201, 202)] == [0, 402, 401, 0]
    assert [word(moved, 6, key, WHOLE_TAG) for key in (101, 102, 201, 202)] == [401, 0, 0, 402]
    assert moved_words.moved(words, base, moves, features, None) is words
    assert moved_words.moved(words, base, {}, features, None) is words


@pytest.mark.parametrize("arity", [2, 4, 8, 16])
def test_features_are_found_by_the_words_of_the_root(arity):
    model = xclass.Learner("cpt", 6, bits=16, cpt_arity=arity, max_doublings=0)
    model.learn_many([f"{1 + i % 6} | w{i} u{i % 40}" for i in range(400)])
    names = np.array([f"w{i}" for i in range(400)] + [f"u{i}" for i in range(40)])
    inputs = Inputs(model.core)
    (batch,) = inputs.batches("| " + " ".join(names), learn=False)
    words = model.core.reduction.members[0].weights.words
    found = moved_words.features_of(words, moved_words.root_of(arity), 16, CONSTANT)
    expected = {int(i) for i in batch.index}
    assert CONSTANT in expected
    # a word may be missing if its step was 0, and other features have the words of the root by chance
    assert len(expected - set(found.tolist())) < 0.02 * len(expected)
    assert len(set(found.tolist()) - expected) < 0.02 * len(expected)
    assert len(moved_words.features_of(words, moved_words.root_of(arity), 32, CONSTANT)) == 0
