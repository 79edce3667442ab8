"""Trees of models that are merged: whether one has grown from another one, and labels that only others have."""

import numpy as np
from archives import restored, saved
from hypothesis import given
from hypothesis import strategies as st

from xclass.abilities.merge import parts
from xclass.reductions.cpt import label_tree


def grown(tree: label_tree.ClassTree, labels: list[int], choices: list[int]) -> label_tree.ClassTree:
    """Return a copy of a tree into which labels were inserted at leaves that `choices` pick."""
    nodes = int(tree.size[label_tree.NODES])
    tree = label_tree.from_arrays(tree.left[:nodes], tree.label[:nodes], capacity=200)
    for label, choice in zip(labels, choices, strict=True):
        known = parts.leaves(tree).tolist()
        if known:
            label_tree.split(tree, label_tree.find(tree, known[choice % len(known)]), label)
        else:
            label_tree.insert_root(tree, label)
    return tree


def check(tree: label_tree.ClassTree) -> None:
    """Check that a model file with this tree can be read, and that the tree can grow."""
    again = restored(saved(label_tree.serialize, "t", tree), label_tree.serialize, "t", label_tree.new_tree())
    nodes = int(tree.size[label_tree.NODES])
    for name in ("left", "parent", "depth", "leaves", "place", "label"):
        assert np.array_equal(getattr(tree, name)[:nodes], getattr(again, name)[:nodes]), name
    assert tree.size.tolist() == again.size.tolist()


growths = st.lists(st.integers(0, 10**6), min_size=0, max_size=25)


@given(growths.filter(lambda choices: len(choices) > 1), growths)
def test_a_tree_extends_those_from_which_it_has_grown(begin, more):
    labels = list(range(1, len(begin) + 1))
    base = grown(label_tree.empty_tree(4), labels, begin)
    tree = grown(base, list(range(100, 100 + len(more))), more)
    other = grown(label_tree.empty_tree(4), [*labels[1:], 99], begin)
    assert parts.extends(tree, base) and parts.extends(tree, tree)
    assert parts.extends(base, tree) == (not more)
    assert parts.extends(tree, label_tree.empty_tree(4))
    assert not parts.extends(tree, other) and not parts.extends(other, tree)
    nodes = int(base.size[label_tree.NODES])
    assert np.array_equal(tree.place[:nodes], base.place[:nodes])  # a node has the same regressor in both


def test_missing_labels_are_inserted_by_balance():
    tree = parts.with_missing(label_tree.empty_tree(4), list(range(1, 17)))
    check(tree)
    assert sorted(parts.leaves(tree).tolist()) == list(range(1, 17))
    assert int(tree.size[label_tree.DEEPEST]) == 4
    before = tree.left.copy()
    assert np.array_equal(parts.with_missing(tree, [3, 5]).left, before)
