"""Write docs/figures/architecture.svg, the picture of the floors of the package, from the imports in the code.

    python -m scripts.architecture

A box is a folder, and a row is a floor (`scripts.lib.layers`). An arrow leads to what a folder imports, unless arrows
to other folders already lead there: if `run` imports `api` and `api` imports `data`, no arrow leads from `run` to
`data`. All reductions are one box.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from scripts.lib import layers

PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "architecture.svg"
NAMES = {layers.ANY_REDUCTION: "reductions/<name>"}
WIDTH, MARGIN, HEIGHT, STEP, GAP, LETTER = 900, 20, 26, 50, 24, 7.3  # pixels
PLACES = range(60, WIDTH - 59, 26)  # where the centre of a box may be
CROSSING = 3000  # cost of an arrow over a box
SWEEPS = 5
STYLE = """
    rect { fill: #eef3f8; stroke: #4a6785; rx: 4px }
    rect.floor { fill: #f7f7f7; stroke: none }
    text { font: 12px monospace; text-anchor: middle; fill: #1d2a37 }
    path { fill: none; stroke: #7a8ea3; stroke-width: 1.2; marker-end: url(#head) }
"""
Arrow = tuple[str, str]


def box_of(module: str) -> str:
    """Return the box of a module."""
    part = layers.folder(module)
    return part if part in layers.FLOOR else layers.ANY_REDUCTION


def arrows() -> list[Arrow]:
    """Return the arrows between boxes, without those that longer ways imply."""
    below = defaultdict(set)
    for module in set(layers.MODULES) - {"", "reductions"}:
        below[box_of(module)] |= {box_of(other) for other in layers.imported(module)} - {box_of(module)}
    reached: dict[str, set[str]] = {}
    for part in sorted(layers.FLOOR, key=lambda part: (layers.FLOOR[part], part != "cache"), reverse=True):
        reached[part] = below[part].union(*(reached.get(other, set()) for other in below[part]))
    return [
        (part, other)
        for part in layers.FLOOR
        for other in sorted(below[part], key=lambda other: (layers.FLOOR[other], other))
        if not left_out(part) and not left_out(other)
        if not any(other in reached[between] for between in below[part])
    ]


def width_of(part: str) -> float:
    """Return the width of a box."""
    return len(label_of(part)) * LETTER + 16


def label_of(part: str) -> str:
    """Return the text of a box."""
    return NAMES.get(part, part.replace(".", "/"))


def top_of(part: str) -> float:
    """Return how far a box is from the top."""
    return MARGIN + layers.FLOOR[part] * STEP


def left_out(part: str) -> bool:
    """Return whether a box is not drawn: every module may import the version."""
    return part == ""


class Layout:
    """Place the boxes so that arrows are short and lead over no box; `at` are their centres, from the left."""

    def __init__(self, pairs: list[Arrow]) -> None:
        self.pairs = pairs
        self.rows = [[part for part in row if not left_out(part)] for row in layers.FLOORS]
        self.at = {part: WIDTH * (place + 1) / (len(row) + 1) for row in self.rows for place, part in enumerate(row)}
        self._between = {
            arrow: {box for box in self.at if layers.FLOOR[arrow[0]] < layers.FLOOR[box] < layers.FLOOR[arrow[1]]}
            for arrow in pairs
        }
        for _ in range(SWEEPS):
            for part in self.at:
                self.at[part] = min(PLACES, key=lambda x, part=part: (self.cost(part, x), x))

    def cost(self, part: str, x: float) -> float:
        """Return what it costs to have a box at a place, while all others stay where they are."""
        self.at[part] = x
        half = width_of(part) / 2
        cost = 8.0 * CROSSING * (abs(x - WIDTH / 2) + half > WIDTH / 2 - MARGIN)
        for other in self.rows[layers.FLOOR[part]]:
            apart = half + width_of(other) / 2 + GAP
            cost += 4 * CROSSING * (other != part and abs(self.at[other] - x) < apart)
        for arrow in self.pairs:
            if part in arrow:
                begin, end = arrow
                cost += (self.at[begin] - self.at[end]) ** 2 / 100
                cost += sum(CROSSING for box in self._between[arrow] if self.crosses(arrow, box))
            elif part in self._between[arrow]:
                cost += CROSSING * self.crosses(arrow, part)
        return cost

    def crosses(self, arrow: Arrow, box: str) -> bool:
        """Return whether an arrow leads over a box on a floor between."""
        (x1, y1), (x2, y2) = self.ends(arrow)
        top, bottom = top_of(box) - 3, top_of(box) + HEIGHT + 3
        xs = [x1 + (x2 - x1) * (y - y1) / (y2 - y1) for y in (top, bottom)]
        half = width_of(box) / 2 + 8
        return min(xs) < self.at[box] + half and max(xs) > self.at[box] - half

    def ends(self, arrow: Arrow) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return where an arrow begins and ends."""
        part, other = arrow
        x, y, goal = self.at[part], top_of(part), self.at[other]
        if layers.FLOOR[part] == layers.FLOOR[other]:
            side = math.copysign(1, goal - x)
            middle = y + HEIGHT / 2
            return (x + side * width_of(part) / 2, middle), (goal - side * (width_of(other) / 2 + 4), middle)
        return (x, y + HEIGHT), (goal, top_of(other) - 4)


def picture() -> str:
    """Return the picture as SVG."""
    layout = Layout(arrows())
    height = 2 * MARGIN + len(layers.FLOORS) * STEP - (STEP - HEIGHT)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<title>The floors of the package xclass and what its folders import</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="5" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" style="fill:#7a8ea3;stroke:none;marker-end:none"/></marker></defs>',
        f'<rect x="0" y="0" width="{WIDTH}" height="{height}" style="fill:#ffffff;stroke:none"/>',
    ]
    for number in range(len(layers.FLOORS)):
        y = MARGIN + number * STEP - 4
        lines.append(f'<rect class="floor" x="8" y="{y}" width="{WIDTH - 16}" height="{HEIGHT + 8}"/>')
    for (x1, y1), (x2, y2) in map(layout.ends, layout.pairs):
        lines.append(f'<path d="M{x1:.0f},{y1:.0f} L{x2:.0f},{y2:.0f}"/>')
    for part, x in layout.at.items():
        wide, y, text = width_of(part), top_of(part), label_of(part).replace("<", "&lt;").replace(">", "&gt;")
        lines.append(f'<rect x="{x - wide / 2:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{HEIGHT}"/>')
        lines.append(f'<text x="{x:.0f}" y="{y + HEIGHT / 2 + 4:.0f}">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
