"""Read and write label trees as text (`--save_tree`, `--cpt_tree FILE`): one line per node, words separated by blanks.

    # node parent label
    0 -
    1 0
    2 0 17
    3 1 4
    4 1 125

Nodes are distinct integers from 0 on. The root has `-` in place of a parent and begins a tree; a file has as many trees
as --trees says. A parent comes before its children, and the left child before the right one. A node has either two
children, or none and a label: a number, or a name if labels are named. Lines that are empty or begin with # are
ignored.

The writer numbers nodes as `label_tree` does, and the reader keeps their order. So a tree that is written and read
again is the same, including the places of its regressors.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ...data import class_names
from ...data.batch import HIGHEST_LABEL
from ...errors import DataError
from ...system import streams
from ..core.calibration import ResultFile
from . import label_tree
from .label_tree import NODES, ClassTree

HIGHEST_NODE = 2**63 - 1
MOST_TREES = 1000  # in a file; more than --trees allows
MOST_QUOTED = 60  # characters of a word in a message
WORD = re.compile(r"[^ \t\r\n]+")  # a word; names in the data contain none of the excluded characters


def result(path: str, trees: Sequence[ClassTree], names: Sequence[str] = (), lowest: int = 1) -> ResultFile:
    """Return the file of some trees, as a result that is written at the end of a run; label j is `names[j - 1]`.

    Without names, label j is written as j - 1 + `lowest`.
    """
    highest = max((int(tree.label.max()) for tree in trees), default=0)
    if names and highest > len(names):
        raise DataError(
            f"{path}: the tree cannot be written there: it has the label {highest}, and there are {len(names)} names"
        )
    lines = itertools.chain(["# node parent label"], *(_lines(tree, names, lowest) for tree in trees))
    return ResultFile(path, "the tree", lines)


def _lines(tree: ClassTree, names: Sequence[str], lowest: int) -> Iterator[str]:
    nodes = int(tree.size[NODES])
    parent, label = tree.parent[:nodes].tolist(), tree.label[:nodes].tolist()
    for a in range(nodes):
        parent_word = str(parent[a]) if a > 0 else "-"
        if label[a] < 0:
            yield f"{a} {parent_word}"
        else:
            yield f"{a} {parent_word} {class_names.key_of(names[label[a] - 1]) if names else label[a] - 1 + lowest}"


class _TreeBuilder:
    """Collect the nodes of a tree whose lines are being read.

    Nodes get new numbers in the order of reading, except that both children of a node are numbered together.
    """

    def __init__(self, path: str):
        self.path = path
        self.new_number: dict[int, int] = {}  # by the number in the file
        self.leaf_line: dict[int, int] = {}  # line of the leaf of each label
        self.with_one_child: set[int] = set()  # new numbers of the nodes with one child so far
        self.file_number: list[int] = []  # this and the following: by the new number
        self.line: list[int] = []
        self.left: list[int] = []
        self.label: list[int] = []

    def reserve(self, nodes: int) -> int:
        """Append space for `nodes` nodes and return the first."""
        first = len(self.left)
        self.file_number += [0] * nodes
        self.line += [0] * nodes
        self.left += [0] * nodes
        self.label += [-1] * nodes
        return first

    def fill(self, at: int, file_number: int, line: int, label: int) -> None:
        self.new_number[file_number] = at
        self.file_number[at], self.line[at], self.label[at] = file_number, line, label
        if label > 0:
            self.leaf_line[label] = line

    def location(self, at: int) -> str:
        """Return file:line of the node with the new number `at`."""
        return f"{self.path}:{self.line[at]}"


def read(path: str, names: Sequence[str] = (), lowest: int = 1) -> list[ClassTree]:
    """Read the trees of a file, whose labels are numbers from `lowest` on if there are no names for those from 1 on."""
    label_of_name = {class_names.key_of(name): j for j, name in enumerate(names, 1)}
    trees: list[_TreeBuilder] = []
    content = streams.read_file(path, "give a file that --save_tree has written", most=None)
    try:
        lines = content.decode("utf-8", "surrogateescape" if names else "strict").split("\n")
    except UnicodeDecodeError:
        raise DataError(f"{path}: the tree cannot be read: it is not UTF-8 text") from None
    for count, text in enumerate(lines, 1):
        words = WORD.findall(text)
        if words and not words[0].startswith("#"):
            _add_node(words, path, count, label_of_name, lowest, trees)
    if not trees:
        raise DataError(f"{path}: there is no tree in it; a tree begins with its root, such as `0 -`")
    return [_finish(tree) for tree in trees]


def _add_node(
    words: list[str], path: str, line: int, label_of_name: dict[str, int], lowest: int, trees: list[_TreeBuilder]
) -> None:
    """Add the node of one line to the last of `trees`; a root begins another tree."""
    where = f"{path}:{line}"
    if not 2 <= len(words) <= 3:
        raise DataError(
            f"{where}: a line must be `node parent`, or `node parent label` for a leaf, but this one has {len(words)} "
            f"word{'s' if len(words) > 1 else ''}"
        )
    node = _node_number(words[0], where, "a node")
    label = _label(words[2], where, label_of_name, lowest) if len(words) == 3 else -1
    if words[1] == "-":
        if len(trees) == MOST_TREES:
            raise DataError(
                f"{where}: the parent `-` begins another tree, but a file can have at most {MOST_TREES} trees"
            )
        trees.append(_TreeBuilder(path))
        trees[-1].fill(trees[-1].reserve(1), node, line, label)
        return
    if not trees:
        raise DataError(f"{where}: a tree must begin with its root, which has `-` in place of a parent")
    tree = trees[-1]
    parent = _node_number(words[1], where, "a parent")
    if node in tree.new_number:
        raise DataError(
            f"{where}: node {node} is already at {tree.location(tree.new_number[node])}; give it another number"
        )
    if parent not in tree.new_number:
        raise DataError(
            f"{where}: parent {parent} of node {node} does not occur in an earlier line; put parents "
            "before their children"
        )
    if label > 0 and label in tree.leaf_line:
        raise DataError(
            f"{where}: label {_quoted(words[2])} already has a leaf, at {path}:{tree.leaf_line[label]}; a label can "
            "have only one leaf in a tree"
        )
    above = tree.new_number[parent]
    if tree.label[above] > 0:
        raise DataError(
            f"{where}: parent {parent} of node {node} has a label, at {tree.location(above)}, but only leaves "
            "can have labels"
        )
    if tree.left[above] == 0:
        tree.left[above] = tree.reserve(2)
        tree.with_one_child.add(above)
        tree.fill(tree.left[above], node, line, label)
    elif above in tree.with_one_child:
        tree.with_one_child.remove(above)
        tree.fill(tree.left[above] + 1, node, line, label)
    else:
        raise DataError(
            f"{where}: node {parent} already has two children; a node must have either two, or none and a label"
        )


def _node_number(word: str, where: str, role: str) -> int:
    """Return the number of a node, which `role` names in the message if it is wrong."""
    digits = word.lstrip("0") or word[-1:]
    whole = digits.isascii() and digits.isdigit() and len(digits) < 20  # Python does not convert very long ones
    if not whole or int(digits) > HIGHEST_NODE:
        raise DataError(f"{where}: {role} is a whole number from 0 to {HIGHEST_NODE}, not {_quoted(word)}")
    return int(digits)


def _quoted(word: str) -> str:
    """Return a word as a message shows it: without control characters, and not too long."""
    return repr(word if len(word) <= MOST_QUOTED else word[:MOST_QUOTED] + "...")


def _label(word: str, where: str, label_of_name: dict[str, int], lowest: int) -> int:
    """Return the label of a word; `label_of_name` maps names to labels and is empty if labels are numbers."""
    if label_of_name:
        if word not in label_of_name:
            raise DataError(f"{where}: label {_quoted(word)} is not one of --named_labels")
        return label_of_name[word]
    value = class_names.number_of(word) + 1 - lowest
    if not 1 <= value <= HIGHEST_LABEL:
        raise DataError(
            f"{where}: a label is a whole number from {lowest} to {HIGHEST_LABEL - 1 + lowest}, or one of "
            f"--named_labels, not {_quoted(word)}"
        )
    return value


def _finish(tree: _TreeBuilder) -> ClassTree:
    """Return the tree of collected nodes, after checking that it is complete."""
    for a in range(len(tree.left)):
        if a in tree.with_one_child:
            raise DataError(
                f"{tree.location(a)}: node {tree.file_number[a]} has only one child; a node must have "
                "either two, or none and a label"
            )
        if tree.left[a] == 0 and tree.label[a] < 0:
            raise DataError(
                f"{tree.location(a)}: node {tree.file_number[a]} has neither children nor a label; a node must "
                "have either two children, or none and a label"
            )
    finished, problem = label_tree.checked(np.array(tree.left, np.int32), np.array(tree.label, np.int64))
    if finished is None or problem != label_tree.VALID:
        raise DataError(
            f"{tree.path}: the tree that begins in line {tree.line[0]} is refused: {label_tree.PROBLEMS[problem]}"
        )
    return finished
