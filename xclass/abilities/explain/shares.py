"""Compute the share of each feature in the score of a regressor, weight times value, for every kind of weight table.

This is plain NumPy beside the kernels, which only sum these products. See `reasons`.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s, Float64s, UInt64s
from ...binary import adagrad, gd, tagged_words, word_owners
from ...kernels.constants import GOLDEN, SPREAD


def of_table(table: gd.Table, place: UInt64s, x: Float32s, sub: int) -> Float64s:
    """Return the shares in the score of a subproblem of `gd`, float64[s].

    Parameters
    ----------
    place : uint64[s], see `gd`
    x : float32[s]
    sub : number of the subproblem
    """
    slot = (place + np.uint64(sub)) & table.mask
    w = table.flat[(slot * np.uint64(table.stride)).astype(np.int64)].astype(np.float64)
    if len(table.shrunk):  # --l1 and --l2
        gravity, contraction = table.shrunk
        w = np.sign(w) * np.maximum(np.abs(w) - gravity, 0.0) * contraction
    products: Float64s = w * x
    return products


def of_regressor(weights: adagrad.Weights, h: UInt64s, x: Float32s, place: int) -> Float64s:
    """Return the shares in the score of a regressor of `adagrad`, float64[s].

    Parameters
    ----------
    h : uint64[s], hash of each feature
    x : float32[s]
    place : place of the regressor
    """
    block, q = place >> 3, place & 7
    if weights.tagged:
        w = _of_block(weights.words, h, block, q)
    else:
        z = _mixed(h, block)
        line = (z >> (weights.shift + adagrad.THREE)) * adagrad.EIGHT
        slot = line + ((np.uint64(q) ^ (z >> weights.shift)) & adagrad.SEVEN)
        w = weights.flat[(2 * slot).astype(np.int64)].astype(np.float64)
    products: Float64s = w * x
    return products


def score_of(weights: adagrad.Weights, h: UInt64s, x: Float32s, place: int) -> float:
    """Return the score of a regressor of `adagrad`, computed by its kernel."""
    if not weights.tagged:
        return float(adagrad.score_place(weights, h, x, len(h), np.int64(place)))
    scores = np.zeros(8, np.float32)
    tagged_words.score_block(
        weights.words, h, x, len(h), np.int64(place >> 3), np.empty(len(h), np.int64), scores, 0
    )  # fmt: skip
    return float(scores[place & 7])


def _mixed(h: UInt64s, key: int) -> UInt64s:
    """Return the hash of each feature with a block, uint64[s]."""
    spread = np.array([key], np.uint64) * SPREAD
    mixed: UInt64s = (h ^ spread) * GOLDEN
    return mixed


def _of_block(words: tagged_words.Words, h: UInt64s, block: int, q: int) -> Float64s:
    """Return the weight of each feature for regressor q of a block, 0 where it has no word; see `tagged_words`."""
    z = _mixed(h, block)
    line = ((z >> words.shift) * tagged_words.LANES).astype(np.int64)
    tag = np.maximum((z >> words.tag_shift).astype(np.uint32) & tagged_words.TAG_MASK, tagged_words.LEAST_TAG)
    wanted = (tag & tagged_words.OF_BLOCK) | np.uint32(q)
    word = tagged_words.read_lines(words, line)
    own = (word & tagged_words.TAG_MASK) == wanted[:, None]
    w, g = np.empty(word.size, np.float32), np.empty(word.size, np.float32)
    word_owners.decode(np.ascontiguousarray(word.reshape(-1)), w, g)
    total: Float64s = np.where(own, w.reshape(word.shape).astype(np.float64), 0.0).sum(axis=1)
    return total
