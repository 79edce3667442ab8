"""Draw the first levels of a tree as SVG, from the root on the left to the deepest nodes on the right."""

from __future__ import annotations

from ..contents import Contents
from ..tree import Node, Tree
from . import markup
from .markup import Html, element, escaped

BOX, HEIGHT = 178, 50  # size of a node in pixels
ACROSS, DOWN = 30, 10  # gaps between nodes
NAMED = 3  # classes that are written into a node


def drawing(tree: Tree, contents: Contents) -> Html:
    """Return the drawing as an `svg` element with its size in pixels as `data-width`."""
    nodes = tree.nodes
    row = _rows(nodes)
    width = (max(node.level for node in nodes) + 1) * (BOX + ACROSS) - ACROSS + 2
    height = round((max(row) + 1) * (HEIGHT + DOWN)) - DOWN + 2
    corner = [(1 + node.level * (BOX + ACROSS), 1 + at * (HEIGHT + DOWN)) for node, at in zip(nodes, row, strict=True)]
    pieces = []
    for node, (x, y) in zip(nodes, corner, strict=True):
        for child in node.children:
            right, down = corner[child]
            begin, middle = x + BOX, x + BOX + ACROSS / 2
            path = f"M{begin:g} {y + HEIGHT / 2:g}H{middle:g}V{down + HEIGHT / 2:g}H{right:g}"
            pieces.append(Html(f'<path class="edge" d="{path}"/>'))
    pieces += [_box(node, x, y, contents) for node, (x, y) in zip(nodes, corner, strict=True)]
    text = f"The first {max(node.level for node in nodes) + 1} levels; the list below says the same in words."
    return Html(
        f'<svg class="tree-drawing" viewBox="0 0 {width} {height}" data-width="{width}" role="img" '
        f'aria-labelledby="tree-title tree-text"><title id="tree-title">Tree</title>'
        f'<desc id="tree-text">{text}</desc>\n{markup.joined(*pieces)}\n</svg>'
    )


def _rows(nodes: list[Node]) -> list[float]:
    """Return the row of each node: nodes without children one below the other, others in the middle of theirs."""
    row = [0.0] * len(nodes)
    lowest = 0
    for at in range(len(nodes)):  # preorder
        if not nodes[at].children:
            row[at] = lowest
            lowest += 1
    for at in range(len(nodes) - 1, -1, -1):
        children = nodes[at].children
        if children:
            row[at] = sum(row[child] for child in children) / len(children)
    return row


def _box(node: Node, x: float, y: float, contents: Contents) -> Html:
    """Return a node: its name and number of classes, the error, and the most frequent classes."""
    shade = 0.04 + 0.4 * node.errors / node.examples if node.examples else 0.04
    names = ", ".join(contents.name(label) for label in node.labels[:NAMED])
    names += ", …" if node.classes > NAMED else ""
    more = " →" if node.is_cut else ""
    lines = [f"{node.name}: {contents.kind.counted(node.classes)}{more}", second_line(node), names]
    texts = "".join(
        f'<text x="8" y="{15 + 14 * j}" class="{"name" if j == 0 else "more"}">{escaped(line)}</text>'
        for j, line in enumerate(lines)
    )
    # an inner svg element cuts off names that are too long
    return Html(
        f'<svg x="{x:g}" y="{y:g}" width="{BOX}" height="{HEIGHT}"><rect class="paper" width="{BOX}" '
        f'height="{HEIGHT}" rx="6"/><rect class="node" width="{BOX}" height="{HEIGHT}" rx="6" '
        f'style="fill-opacity:{shade:.3f}"/>{texts}<title>{escaped("; ".join(lines))}</title></svg>'
    )


def second_line(node: Node) -> str:
    """Return the error of the classes of a node, or else what the tree reports about it."""
    if node.examples:
        return f"error {markup.percent(node.errors / node.examples)} of {markup.number(node.examples)}"
    return ", ".join(f"{fact} {value}" for fact, value in node.facts.items())


def outline(tree: Tree, contents: Contents) -> Html:
    """Return the tree as nested lists that can be opened, with more classes of each node."""
    return element("ul", _item(tree.nodes, 0, contents), class_="outline")


def _item(nodes: list[Node], at: int, contents: Contents) -> Html:
    node = nodes[at]
    names = ", ".join(contents.name(label) for label in node.labels)
    names += f" and {node.classes - len(node.labels):,} more" if node.classes > len(node.labels) else ""
    facts = second_line(node)
    summary = f"{node.name}: {contents.kind.counted(node.classes)}" + (f", {facts}" if facts else "")
    text = element("p", f"{'Most frequent' if node.classes > 1 else contents.kind.one.capitalize()}: {names}")
    if not node.children:
        rest = element("p", "Its children are not shown; --tree_levels shows more.") if node.is_cut else ""
        return element("li", markup.details(summary, text, rest))
    children = element("ul", *(_item(nodes, child, contents) for child in node.children))
    return element("li", markup.details(summary, text, children, open=node.level < 1))
