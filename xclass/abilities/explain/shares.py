"""Compute the share of each feature in the score of a regressor, weight times value, for every kind of weight table."""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s, Float64s, UInt64s
from ...binary import gd, tagged_words, word_owners
from ...kernels.constants import GOLDEN, SPREAD
from ...reductions.core import tree_routers


def of_table(table: gd.Table, place: UInt64s, x: Float32s, sub: int) -> Float64s:
    """Return the shares in the score of subproblem `sub` of `gd`, float64[s]."""
    slot = (place + np.uint64(sub)) & table.mask
    w = table.flat[(slot * np.uint64(table.stride)).astype(np.int64)].astype(np.float64)
    if len(table.shrunk):  # --l1 and --l2
        gravity, contraction = table.shrunk
        w = np.sign(w) * np.maximum(np.abs(w) - gravity, 0.0) * contraction
    products: Float64s = w * x
    return products


def of_router(routers: tree_routers.Routers, h: UInt64s, x: Float32s, router: int) -> Float64s:
    """Return the shares in the score of a router, float64[s]; `h` holds hashes, or places with layout `vw`."""
    if routers.vw_layout:
        return of_table(routers.table, h, x, router)
    z = _mixed(h, router >> 3)
    line = (z >> (routers.shift + tree_routers.THREE)) << tree_routers.THREE
    slot = line + ((np.uint64(router & 7) ^ (z >> routers.shift)) & tree_routers.SEVEN)
    products: Float64s = routers.flat[(2 * slot).astype(np.int64)].astype(np.float64) * x
    return products


def score_of(words: tagged_words.Words, h: UInt64s, x: Float32s, place: int) -> float:
    """Return the score of a regressor of `adagrad`, computed by its kernel."""
    scores, at = np.zeros(8, np.float32), np.empty(len(h), np.int64)
    tagged_words.score_block(words, h, x, len(h), np.int64(place >> 3), at, scores, 0)
    return float(scores[place & 7])


def _mixed(h: UInt64s, key: int) -> UInt64s:
    spread = np.array([key], np.uint64) * SPREAD
    mixed: UInt64s = (h ^ spread) * GOLDEN
    return mixed


def of_regressor(words: tagged_words.Words, h: UInt64s, x: Float32s, place: int) -> Float64s:
    """Return the shares in the score of a regressor of `adagrad`, float64[s], 0 where it has no word."""
    z = _mixed(h, place >> 3)
    line = ((z >> words.shift) * tagged_words.LANES).astype(np.int64)
    tag = np.maximum((z >> words.tag_shift).astype(np.uint32) & tagged_words.TAG_MASK, tagged_words.LEAST_TAG)
    wanted = (tag & tagged_words.OF_BLOCK) | np.uint32(place & 7)
    word = tagged_words.read_lines(words, line)
    own = (word & tagged_words.TAG_MASK) == wanted[:, None]
    w, g = np.empty(word.size, np.float32), np.empty(word.size, np.float32)
    word_owners.decode(np.ascontiguousarray(word.reshape(-1)), w, g)
    products: Float64s = np.where(own, w.reshape(word.shape).astype(np.float64), 0.0).sum(axis=1) * x
    return products
