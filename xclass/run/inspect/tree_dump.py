"""Write the first levels of a learned tree as text (`--print_tree`) and as a Graphviz drawing (`--dot_tree`).

    0: examples 150, labels 9, router 0
      L 1: leaf, 4 (21), examples 30, labels 3
      R 2: examples 120, labels 8, router 3, more below

Each tree reduction describes its nodes by `outline` (abilities/describe). The number in parentheses after a label is
how often it was seen, if that is counted. Trees of saved models are written by
`-i model -t --no_stdin --print_tree stdout`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...abilities.describe.tree_view import TreeNode
from ...abilities.find import ability
from ...data import class_names
from ...errors import UsageError
from ...options.declare import option
from ...options.relations import no_effect
from ...reductions.core.base import Learner, Reduction
from ...system import output_file
from ...system.printable import printable


@dataclass(frozen=True)
class Options:
    """Declare the options of trees as text."""

    print_tree: str = option("write the tree as text to this file, or to `stdout`", metavar="FILE", writes="the tree")
    dot_tree: str = option("write the tree as a Graphviz graph to this file", metavar="FILE", writes="the tree")
    tree_levels: int = option(
        "number of levels of the tree to write", kind=int, default=6, minimum=1, maximum=64, metavar="N"
    )

    RULES = (
        no_effect("tree_levels", "no tree is written; give --print_tree or --dot_tree", print_tree=None, dot_tree=None),
    )


class TreeDump:
    """Write the tree of a learner at the end of a run."""

    def __init__(self, options: Options, reduction: Reduction, names: Sequence[str] = ()) -> None:
        self._options = options
        self._outline = getattr(ability(reduction, "describe"), "outline", None)
        self._names = names
        for flag, path in (("print_tree", options.print_tree), ("dot_tree", options.dot_tree)):
            if path is None:
                continue
            if self._outline is None:
                chosen = "no reduction was chosen" if reduction.name == "scalar" else f"--{reduction.name} has none"
                raise UsageError(f"--{flag} shows a tree, and {chosen}; leave it out, or choose a tree")

    @property
    def wanted(self) -> bool:
        """Return whether any file is to be written."""
        return self._options.print_tree is not None or self._options.dot_tree is not None

    def write(self, learner: Learner) -> None:
        """Write the tree to the files of the options."""
        for path, lines in ((self._options.print_tree, self.text), (self._options.dot_tree, self.drawing)):
            if path is not None and self._outline is not None:
                with output_file.opened(path, "the tree") as file:
                    for line in lines(self._outline(learner, self._options.tree_levels)):
                        file.write(line.encode("utf-8", "surrogateescape") + b"\n")

    def text(self, nodes: Iterable[TreeNode]) -> Iterator[str]:
        """Yield a line for each node, indented by its level."""
        sides: dict[str, str] = {}
        for node in nodes:
            words = ["leaf"] if not node.children else []
            words += [*self._labels(node), *(f"{name} {value}" for name, value in node.facts.items())]
            if self._is_cut(node):
                words.append("more below")
            yield f"{'  ' * node.level}{sides.pop(node.name, '')}{node.name}: {', '.join(words)}"
            sides.update(zip(node.children, ("L ", "R "), strict=False))

    def drawing(self, nodes: Iterable[TreeNode]) -> Iterator[str]:
        """Yield the lines of a drawing in the language of Graphviz, for `dot -Tsvg FILE`."""
        yield "digraph tree {"
        yield '  node [shape=box, fontname="sans-serif"];'
        for node in nodes:
            rows = [node.name, *self._labels(node), *(f"{name} {value}" for name, value in node.facts.items())]
            style = "" if node.children else ", style=rounded"
            yield f"  {_quoted(node.name)} [label={_quoted(*rows)}{style}];"
            if self._is_cut(node):
                rest = node.name + " below"
                yield f'  {_quoted(rest)} [label="...", shape=plaintext];'
                yield f"  {_quoted(node.name)} -> {_quoted(rest)} [style=dotted];"
                continue
            for child, side in zip(node.children, ("left", "right"), strict=False):
                yield f"  {_quoted(node.name)} -> {_quoted(child)} [label={side}];"
        yield "}"

    def _is_cut(self, node: TreeNode) -> bool:
        """Return whether the children of a node are not written."""
        return bool(node.children) and node.level + 1 == self._options.tree_levels

    def _labels(self, node: TreeNode) -> list[str]:
        """Return the labels of a node with their counts."""
        return [
            printable(class_names.text_of(label, self._names)) + (f" ({count:g})" if count is not None else "")
            for label, count in node.labels
        ]


def _quoted(*rows: str) -> str:
    """Return a string of the Graphviz language with these lines."""
    return '"' + "\\n".join(row.replace("\\", "\\\\").replace('"', '\\"') for row in rows) + '"'
