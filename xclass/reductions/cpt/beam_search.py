"""Find the labels of a conditional probability tree that are probably the most probable ones, with bounded work.

Source    This project's own. Beam search goes back to Lowerre, "The Harpy Speech Recognition System", 1976.
Idea      The search goes down the tree by blocks of three levels, and of the nodes that begin a block it keeps the most
          probable ones only. All weights of the blocks that it keeps are prefetched before the first block is scored,
          so that the processor waits for memory once per level of blocks. A pass over the features scores all nodes of
          a block (`binary.tagged_words`).
          A search for one label follows the more probable children first. The leaf where this ends is a lower bound:
          blocks that are less probable cannot hold the most probable label, so sure trees open few nodes.
          With scorers, a block is dropped, too, if it is less probable than `cut` times the most probable one of its
          level: unless the probability of the latter is spread over many leaves, labels in the former would be dropped
          in the end. docs/defaults.md has the measurements.
Cost      O(s) for every block, of which there are at most as many as the size of the beam on each level of blocks.
Names     mass: probability that the label is at or below a node | block: see `label_tree` | s features of an example.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the most probable class is searched for, and with a beam it can be missed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int, Int64s
from ...binary import adagrad, tagged_words
from ...kernels import top_k
from ...kernels.jit import bare
from . import node_scores, tree_search

if TYPE_CHECKING:
    from .label_tree import ClassTree

BLOCK_PLACES = 8  # places of a block, of which the first has no node


class Beam(NamedTuple):
    """Provide buffers for one thread and a beam of B blocks."""

    node: Int64s  # int64[2 * B], first nodes of the blocks of a level, most probable first, and those of the next one
    mass: Float64s  # float64[2 * B], their probabilities
    fetched: Bools  # bool[B], whether `at` holds the positions of the block
    at: Int64s  # int64[B * s], positions of the blocks' weights, see `tagged_words.fetch_block`
    inner: Int64s  # int64[8], nodes of a block that wait to be opened, by their numbers; -1 between blocks
    inner_mass: Float64s  # float64[8], their probabilities


def new_beam(blocks: int, most_features: int) -> Beam:
    return Beam(
        np.empty(2 * blocks, np.int64), np.empty(2 * blocks), np.empty(blocks, bool),
        np.empty(blocks * most_features, np.int64), np.full(BLOCK_PLACES, -1, np.int64), np.empty(BLOCK_PLACES),
    )  # fmt: skip


# -- kernels


@bare
def _fetch(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: Any, count: Int, begin: Int, waiting: Int, floor: float
) -> Int:  # fmt: skip
    """Prefetch the weights of the blocks that begin at nodes begin..begin+waiting-1 of the beam.

    Return how many have at least the probability `floor`; the other blocks are not fetched.
    """
    memo, beam = scratch.memo, scratch.beam
    for j in range(waiting):
        if beam.mass[begin + j] < floor:
            return j
        block: Any = tree.place[beam.node[begin + j]] >> 3
        beam.fetched[j] = not node_scores.is_scored(memo, block)
        if beam.fetched[j]:
            tagged_words.fetch_block(weights.words, scratch.h, count, block, beam.at, j * count)
    return waiting


@bare
def _keep_scores(weights: adagrad.SharedWeights, scratch: Any, count: Int, j: Int, block: np.int64) -> None:
    """Score block j of the beam, unless it was scored for this example."""
    memo, beam = scratch.memo, scratch.beam
    if not node_scores.is_scored(memo, block):
        if not beam.fetched[j]:  # another block has taken its row of the memo since
            tagged_words.fetch_block(weights.words, scratch.h, count, block, beam.at, j * count)
        node_scores.keep_fetched(weights, memo, scratch.x, count, block, beam.at, j * count)


@bare
def _insert(beam: Beam, begin: Int, size: Int, node: Int, mass: float) -> tuple[Int, float]:
    """Insert a node into the beam that begins at `begin` and has `size` nodes.

    Return the number of nodes now, and the probability of the node that the beam has no space for, 0 if there is none.
    """
    dropped: float = 0.0
    if size == beam.fetched.shape[0]:
        last = begin + size - 1
        if mass <= beam.mass[last]:
            return size, mass
        dropped = beam.mass[last]
        size -= 1
    at = begin + size
    while at > begin and beam.mass[at - 1] < mass:
        beam.mass[at] = beam.mass[at - 1]
        beam.node[at] = beam.node[at - 1]
        at -= 1
    beam.mass[at] = mass
    beam.node[at] = node
    return size + 1, dropped


@bare
def find_top_k(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: Any, scratch: Any, count: Int, top: Int64s,
    top_p: Float64s,
) -> tuple[int, float]:  # fmt: skip
    """Find k likely labels, written to `top` and `top_p`, int64[k] and float64[k], which are 0 before.

    Return the number of nodes opened, and a bound on the probability of an unlisted label, 0 if no label that should be
    listed can have been missed.
    """
    beam = scratch.beam
    k = top.shape[0]
    size: Any = np.int64(0)
    opened = 0
    gap: Any = 0.0
    least: Any = 0.0
    begin: Int = np.int64(0)
    waiting: Int = np.int64(1)
    beam.node[0] = 0
    beam.mass[0] = 1.0
    if tree.left[0] == 0:
        size = top_k.insert(top, top_p, size, tree.label[0], 1.0)
        waiting = np.int64(0)
    elif k == 1:
        tree_search.insert_first(tree, weights, scratch, count, top, top_p)
        size, least = np.int64(1), top_p[0]
        if settings.beam == 0:
            waiting, gap = np.int64(0), 1.0 - least
    while waiting > 0:
        kept = _fetch(tree, weights, scratch, count, begin, waiting, max(least, settings.cut * beam.mass[begin]))
        if kept < waiting:
            gap = max(gap, beam.mass[begin + kept])
        next_begin = beam.fetched.shape[0] - begin
        next_size: Int = np.int64(0)
        for j in range(kept):
            if beam.mass[begin + j] < least:
                break
            first = beam.node[begin + j]
            _keep_scores(weights, scratch, count, j, tree.place[first] >> 3)
            row = node_scores.row_of(tree.place[first] >> 3)
            beam.inner[1] = first
            beam.inner_mass[1] = beam.mass[begin + j]
            for q in range(1, BLOCK_PLACES):
                a = beam.inner[q]
                if a < 0:
                    continue
                beam.inner[q] = -1
                p = beam.inner_mass[q]
                opened += 1
                right = adagrad.probability(weights, scratch.memo.score[row + q])
                for side in range(2):
                    child = np.int64(tree.left[a]) + side
                    mass = p * (right if side == 1 else 1.0 - right)
                    if mass < least or (size == k and mass == least):
                        continue
                    if tree.left[child] == 0:
                        size = top_k.insert(top, top_p, size, tree.label[child], mass)
                        least = max(settings.cut * top_p[0], top_p[k - 1])
                    elif 2 * q < BLOCK_PLACES:
                        beam.inner[2 * q + side] = child
                        beam.inner_mass[2 * q + side] = mass
                    else:
                        next_size, dropped = _insert(beam, next_begin, next_size, child, mass)
                        gap = max(gap, dropped)
        begin, waiting = next_begin, next_size
    tree_search.drop_improbable(settings, top, top_p, size)
    return opened, gap if gap > least else 0.0
