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
from typing import Any

from ...abilities.describe.views import TreeNode
from ...abilities.find import ability
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...data import class_names
from ...errors import UsageError
from ...options.resolve import SCALAR
from ...system import output_file
from ...system.printable import printable


def check(config: Config) -> None:
    """Raise UsageError if a tree is to be written and the reduction has none."""
    for flag in ("print_tree", "dot_tree"):
        if getattr(config.inspect, flag) is not None and not hasattr(_describe(config), "outline"):
            name = config.reduction.name
            chosen = "no reduction was chosen" if name == SCALAR else f"--{name} has none"
            raise UsageError(
                f"--{flag} shows a tree, and {chosen}; leave it out, or choose a tree, such as --multiclass"
            )


def write(config: Config, learner: LearnerCore) -> None:
    """Write the tree of a learner to the files of the options."""
    options, names = config.inspect, learner.names.names
    for path, lines in ((options.print_tree, text), (options.dot_tree, drawing)):
        if path is not None:
            nodes = _describe(config).outline(learner.reduction, options.tree_levels)
            with output_file.opened(path, "the tree") as file:
                for line in lines(nodes, names, options.tree_levels):
                    file.write(line.encode("utf-8", "surrogateescape") + b"\n")


def _describe(config: Config) -> Any:
    return ability(config.reduction, "describe")


def text(nodes: Iterable[TreeNode], names: Sequence[str], levels: int) -> Iterator[str]:
    """Yield a line for each node, indented by its level."""
    sides: dict[str, str] = {}
    for node in nodes:
        words = ["leaf"] if not node.children else []
        words += [*_labels(node, names), *(f"{name} {value}" for name, value in node.facts.items())]
        if _is_cut(node, levels):
            words.append("more below")
        yield f"{'  ' * node.level}{sides.pop(node.name, '')}{node.name}: {', '.join(words)}"
        sides.update(zip(node.children, ("L ", "R "), strict=False))


def drawing(nodes: Iterable[TreeNode], names: Sequence[str], levels: int) -> Iterator[str]:
    """Yield the lines of a drawing in the language of Graphviz, for `dot -Tsvg FILE`."""
    yield "digraph tree {"
    yield '  node [shape=box, fontname="sans-serif"];'
    for node in nodes:
        rows = [node.name, *_labels(node, names), *(f"{name} {value}" for name, value in node.facts.items())]
        style = "" if node.children else ", style=rounded"
        yield f"  {_quoted(node.name)} [label={_quoted(*rows)}{style}];"
        if _is_cut(node, levels):
            rest = node.name + " below"
            yield f'  {_quoted(rest)} [label="...", shape=plaintext];'
            yield f"  {_quoted(node.name)} -> {_quoted(rest)} [style=dotted];"
            continue
        for child, side in zip(node.children, ("left", "right"), strict=False):
            yield f"  {_quoted(node.name)} -> {_quoted(child)} [label={side}];"
    yield "}"


def _is_cut(node: TreeNode, levels: int) -> bool:
    """Return whether the children of a node are not written."""
    return bool(node.children) and node.level + 1 == levels


def _labels(node: TreeNode, names: Sequence[str]) -> list[str]:
    """Return the labels of a node with their counts."""
    return [
        printable(class_names.text_of(label, names)) + (f" ({count:g})" if count is not None else "")
        for label, count in node.labels
    ]


def _quoted(*rows: str) -> str:
    """Return a string of the Graphviz language with these lines."""
    return '"' + "\\n".join(row.replace("\\", "\\\\").replace('"', '\\"') for row in rows) + '"'
