"""Oracles of the searches for probable labels: sorted levels for the beam search, all leaves for the exact one.

`Tree` holds the nodes as lists. The searches return the labels with their probabilities, most probable first.
"""

from __future__ import annotations

from typing import NamedTuple

Found = list[tuple[int, float]]


class Tree(NamedTuple):
    """Hold the nodes of a tree, and their probabilities for an example."""

    left: list[int]  # left child, 0 at leaves; the right child follows it
    label: list[int]
    place: list[int]  # 1 modulo 8 for the first node of a block
    mass: list[float]

    def likely_child(self, a: int) -> int:
        left = self.left[a]
        return left + 1 if self.mass[left + 1] > self.mass[left] else left

    def likely_leaf(self, a: int = 0) -> int:
        return self.likely_leaf(self.likely_child(a)) if self.left[a] else a


def ranked(found: Found, k: int, cut: float) -> Found:
    """Return the k most probable labels, of equal ones the first found, without those below the share `cut`."""
    found = sorted(found, key=lambda pair: -pair[1])[:k]
    return [pair for pair in found if pair[1] >= cut * found[0][1]]


def exact(tree: Tree, k: int, cut: float) -> Found:
    """Find the k most probable labels among all leaves."""
    leaves = [a for a in range(len(tree.left)) if tree.left[a] == 0]
    return ranked([(tree.label[a], tree.mass[a]) for a in leaves], k, cut)


def beam_search(tree: Tree, k: int, beam: int, cut: float) -> tuple[Found, int, float]:
    """Find likely labels, keeping the `beam` most probable blocks of each level of blocks.

    Returns
    -------
    found : labels and probabilities
    opened : number of nodes opened
    gap : bound on the probability of an unlisted label, 0 if it is below that of the last one listed
    """
    found: Found = []
    opened, gap = 0, 0.0
    if k == 1:
        leaf = tree.likely_leaf()
        found.append((tree.label[leaf], tree.mass[leaf]))

    def least() -> float:
        best = ranked(found, k, 0.0)
        return max(cut * best[0][1], best[-1][1] if len(best) == k else 0.0) if best else 0.0

    def worth(a: int) -> bool:
        return tree.mass[a] > least() or (tree.mass[a] == least() and len(found) < k)

    level = [0] if tree.left[0] else []
    while level:
        following: list[int] = []
        kept = [a for a in level if tree.mass[a] >= max(least(), cut * tree.mass[level[0]])]
        gap = max([gap, *(tree.mass[a] for a in level if a not in kept)])
        for first in kept:
            block = [first] if tree.mass[first] >= least() else []
            while block:  # in the order of places, so level by level
                a = block.pop(0)
                opened += 1
                for child in filter(worth, (tree.left[a], tree.left[a] + 1)):
                    if tree.left[child] == 0:
                        found.append((tree.label[child], tree.mass[child]))
                    else:
                        (following if tree.place[child] % 8 == 1 else block).append(child)
        following.sort(key=lambda a: -tree.mass[a])  # of equal ones the first found stays first
        gap = max([gap, *(tree.mass[a] for a in following[beam:])])
        level = following[:beam]
    return ranked(found, k, cut), opened, gap if gap > least() else 0.0
