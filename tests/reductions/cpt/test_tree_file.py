"""Trees as text: what is written is read back the same, and what is no tree is refused with its line."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from command import learn, xclass
from hypothesis import given, settings
from hypothesis import strategies as st
from library import same_arrays, trained
from probability_trees import tree_of
from streams import multiclass

from xclass import DataError, Learner
from xclass.data.batch import HIGHEST_LABEL
from xclass.reductions.cpt import label_tree, tree_file
from xclass.system import streams

BITS = ("-b", 18)


pytestmark = pytest.mark.usefixtures("place")


def grown(labels, seed: int) -> label_tree.ClassTree:
    """A tree grown at random."""
    rng = random.Random(seed)
    tree = label_tree.empty_tree(len(labels))
    for label in labels:
        if tree.size[label_tree.NODES] == 0:
            label_tree.insert_root(tree, label)
            continue
        a = 0
        while tree.left[a] > 0:
            tree.leaves[a] += 1
            a = int(tree.left[a]) + rng.randrange(2)
        tree.leaves[a] += 1
        label_tree.split(tree, a, label)
    return tree


def same(first: label_tree.ClassTree, second: label_tree.ClassTree) -> bool:
    nodes = int(first.size[label_tree.NODES])
    parts = ("left", "parent", "depth", "leaves", "place", "label")
    return np.array_equal(first.size, second.size) and all(
        np.array_equal(getattr(first, part)[:nodes], getattr(second, part)[:nodes]) for part in parts
    )


@settings(max_examples=40, deadline=None)
@given(
    sets=st.lists(
        st.lists(st.integers(1, HIGHEST_LABEL), unique=True, min_size=1, max_size=60), min_size=1, max_size=3
    ),
    seed=st.integers(0, 99),
)
def test_trees_written_are_read_back_the_same(sets, seed):
    trees = [grown(labels, seed) for labels in sets]
    tree_file.result("t", trees).write()
    again = tree_file.read("t")
    assert len(again) == len(trees)
    assert all(same(tree, read_back) for tree, read_back in zip(trees, again, strict=True))
    tree_file.result("u", again).write()
    assert Path("u").read_bytes() == Path("t").read_bytes()


def test_lines_may_come_in_any_order_that_has_parents_first(place):
    (place / "t").write_text("# my tree\n\n7 - \n 30\t7\n31 7 \n1 30 5\n 2 31 6\n0 31 7\n99 30 8\n")
    (tree,) = tree_file.read("t")
    left, label = tree.left[:7].tolist(), tree.label[:7].tolist()
    assert left == [1, 3, 5, 0, 0, 0, 0]
    assert label == [-1, -1, -1, 5, 8, 6, 7]


def test_names_stand_for_labels(place):
    learn(
        "--cpt", 3, "--named_labels", "red,green,grün", *BITS, "--save_tree", "t", "--quiet",
        stdin="green | a\nred | b\ngrün | c\n" * 3,
    )  # fmt: skip
    words = [line.split() for line in (place / "t").read_text(encoding="utf-8").splitlines()[1:]]
    assert {line[2] for line in words if len(line) == 3} == {"red", "green", "grün"}
    names = ("red", "green", "grün")
    (tree,) = tree_file.read("t", names)
    assert sorted(tree.label[tree.label > 0].tolist()) == [1, 2, 3]
    tree_file.result("u", [tree], names).write()
    assert (place / "u").read_bytes() == (place / "t").read_bytes()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no tree"),
        ("# nothing\n", None, "no tree"),
        ("0 -\n1 0 4\n", 1, "one child"),
        ("0 -\n1 0 4\n2 0\n", 3, "neither children nor a label"),
        ("0 -\n", 1, "neither children nor a label"),
        ("0 -\n1 0 4\n2 0 4\n", 3, "label '4' already has a leaf, at t:2"),
        ("0 -\n1 0 4\n2 0 5\n3 0 6\n", 4, "already has two children"),
        ("0 - 4\n1 0 5\n", 2, "parent 0 of node 1 has a label, at t:1"),
        ("0 -\n1 0 4\n1 0 5\n", 3, "node 1 is already at t:2"),
        ("0 -\n1 5 4\n2 0 5\n", 2, "parent 5 of node 1 does not occur in an earlier line"),
        ("1 0 4\n", 1, "must begin with its root"),
        ("0\n", 1, "1 word"),
        ("0 -\n1 0 4 x\n", 2, "4 words"),
        ("a -\n", 1, "'a'"),
        ("-1 -\n", 1, "'-1'"),
        ("0 -\n1 b 4\n", 2, "'b'"),
        ("0 -\n1 0 0\n", 2, "'0'"),
        ("0 -\n1 0 red\n", 2, "'red'"),
        ("0 -\n1 0 2147483649\n", 2, "from 1 to 2147483648"),
        ("0 -\n1 0 1\n2 0 2\n0 -\n1 0 1\n", 4, "one child"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(place, text, line, words):
    (place / "t").write_text(text)
    where = f"t:{line}: " if line else "t: "
    with pytest.raises(DataError, match=f"^{where}.*{re.escape(words)}"):
        Learner("cpt", 3, cpt_tree="t")


def test_label_that_is_no_name_is_refused(place):
    (place / "t").write_text("0 -\n1 0 red\n2 0 blue\n")
    with pytest.raises(DataError, match="t:3: label 'blue' is not one of named_labels"):
        Learner("cpt", 2, named_labels="red,green", cpt_tree="t")


def test_files_that_cannot_be_read_are_refused(place):
    (place / "folder").mkdir()
    (place / "bytes").write_bytes(b"0 -\xff\n")
    wrong = {"nowhere": "no such file; give cpt_tree general", "folder": "cannot be read", "bytes": "UTF-8"}
    for tree, words in wrong.items():
        with pytest.raises(DataError, match=f"^{tree}: .*{words}"):
            Learner("cpt", 3, cpt_tree=tree)


def test_a_tree_may_have_more_bytes_than_other_files_beside_the_data(place, monkeypatch):
    learn("--cpt", 3, *BITS, "--save_tree", "tree", stdin="1 | a\n2 | b\n")
    monkeypatch.setattr(streams.read_file, "__defaults__", (10, None))
    assert tree_file.read("tree")
    with pytest.raises(DataError, match="more than 10 bytes"):
        streams.read_file("tree", "")


def test_files_that_cannot_be_read_or_written_end_a_run_at_once(place):
    (place / "folder").mkdir()
    result = xclass("--cpt", 3, *BITS, "--cpt_tree", "nowhere", stdin="1 | a\n")
    assert result.status == 1
    assert "no such file; give --cpt_tree general" in result.err
    for tree in ("folder", "nowhere/t"):
        result = xclass("--cpt", 3, *BITS, "--save_tree", tree, "-f", "m", stdin="1 | a\n")
        assert result.status == 1, tree
        assert "the tree cannot be written there" in result.err
        assert "average loss" not in result.err


def test_file_has_as_many_trees_as_are_asked_for(place):
    two = "0 -\n1 0 1\n2 0 2\n" * 2
    (place / "t").write_text(two)
    with pytest.raises(DataError, match="the file has 2 trees, but trees is 1; give trees 2"):
        Learner("cpt", 3, cpt_tree="t")
    learn("--cpt", 3, *BITS, "--cpt_tree", "t", "--trees", 2, "--save_tree", "u", stdin="1 | a\n")
    assert (place / "u").read_text() == f"# node parent label\n{two}"


# -- learning with them


def test_tree_given_is_the_tree_learned_with():
    """Nothing else that is learned depends on where the tree came from."""
    text = multiclass(1, 20, 600)
    with trained("cpt", 20, text, bits=18, cpt_tree="kmeans", tree_sample=200) as first:
        tree_file.result("t", [tree_of(first)]).write()
        with trained("cpt", 20, text, bits=18, cpt_tree="t") as second:
            assert same(tree_of(first), tree_of(second))
            assert same_arrays(first, second)


def test_labels_the_tree_lacks_are_inserted_and_kept(place):
    (place / "t").write_text("0 -\n1 0 1\n2 0 2\n")
    text = "".join(f"{y} | a{y}\n" for y in (1, 2, 3, 4)) * 30
    result = learn("--cpt", 4, *BITS, "--cpt_tree", "t", "-f", "m", "--save_tree", "u", stdin=text)
    assert "classes in the tree = 4" in result.err
    assert "labels seen for the first time = 2," in result.err
    lines = (place / "u").read_text().splitlines()
    assert len([line for line in lines[1:] if len(line.split()) == 3]) == 4
    (place / "t").unlink()  # a model has its tree
    tested = learn("-i", "m", "-t", "-p", "stdout", "--quiet", "--save_tree", "v", stdin=text)
    assert tested.lines[-4:] == ["1", "2", "3", "4"]
    assert (place / "v").read_text() == (place / "u").read_text()
    result = xclass("-i", "m", "--cpt_tree", "other", stdin=text)
    assert result.status == 2
    assert "disagrees with m" in result.err
