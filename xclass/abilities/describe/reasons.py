"""Put together how a learner explains a prediction, by plain code beside the kernels; see `explain.records`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, UInt64s
from ...binary import gd, tagged_words
from ...explain.records import ExplainedClass, OfFeatures, Reasons, Share, Turn
from ...kernels.constants import GOLDEN, SPREAD
from ...model import compact_columns
from ...reductions.core import tree_routers
from ...system.steps import pause
from .views import WeightLookup

MOST_OTHERS = 10  # classes that are listed without shares
PIECE = 1 << 13  # features whose shares are computed at a time
NOTHING = Reasons([], [], 0)  # of a learner without classes


def shares_of(values: Float64s, part: str = "") -> tuple[Share, ...]:
    """Return the shares of features, those of float64[s] that are not 0."""
    pause()
    return (_of_features(float(values.sum()), part, lambda: values),) if values.any() else ()


def later(values: Callable[[], Float64s]) -> tuple[Share, ...]:
    """Return the shares of features that are computed only if they are shown."""
    return (_of_features(math.nan, "", values),)


def _of_features(total: float, part: str, values: Callable[[], Float64s]) -> OfFeatures:
    share = OfFeatures("", total, part, 0)
    share.values = values
    return share


def scaled(share: Share, factor: float, part: str) -> Share:
    """Return a share, or those of features, times a factor, with a part if it has none."""
    total, part = factor * share.share, share.part or part
    if isinstance(share, OfFeatures):
        return _of_features(total, part, lambda: factor * share.values())
    return share._replace(share=total, part=part)


def initial_share(initial: np.float32) -> tuple[Share, ...]:
    return (Share("initial prediction of the example", float(initial)),) if initial else ()


def clipped(score: np.float32, limits: Float32s, own: tuple[Share, ...]) -> tuple[float, tuple[Share, ...]]:
    """Return a score clipped to the range of labels, float32[2], as `gd.clip` does, and a share for the difference."""
    if np.isnan(score):
        return 0.0, ()
    low, high = float(limits[0]), float(limits[1])
    limited = max(low, min(high, float(score)))
    if limited == float(score):
        return limited, own
    return limited, (*own, Share("limit of the range of labels", limited - float(score)))


def chosen(ranked: Iterable[ExplainedClass], k: int, label: float) -> tuple[list[ExplainedClass], list[ExplainedClass]]:
    """Divide all classes, in their order, into those to explain, the first k and the label, and those to list."""
    explained: list[ExplainedClass] = []
    others: list[ExplainedClass] = []
    for position, one in enumerate(ranked):
        if position < k or one.label == label:
            explained.append(one)
        elif len(others) < MOST_OTHERS:
            others.append(ExplainedClass(one.label, one.score, one.probability))
    return explained, others


class Way(NamedTuple):
    """Hold the way of example 0 of a group through a tree of routers."""

    scratch: tree_routers.GroupScratch
    routers: list[int]  # the number of the router of each node

    @property
    def lookups(self) -> list[WeightLookup]:
        return [WeightLookup(0, router, router) for router in self.routers]

    def reasons(self, routers: tree_routers.Routers, label: int) -> Reasons:
        """Return the explanation of the label of the leaf, by the turns of the way."""
        count = int(self.scratch.count[0])
        h, x = self.scratch.h[0, :count].copy(), self.scratch.x[0, :count].copy()
        path = []
        for node, router, score in zip(self.scratch.node, self.routers, self.scratch.score, strict=False):
            decided, own = float(score), shares_of(of_router(routers, h, x, router))
            if routers.vw_layout:
                decided, own = clipped(np.float32(score), routers.table.range, own)
            path.append(Turn(str(node), "left" if decided < 0 else "right", decided, None, own))
        return Reasons([ExplainedClass(label, path=tuple(path))], [], 1)


def of_table(table: gd.WeightTable, place: UInt64s, x: Float32s, sub: int) -> Float64s:
    """Return the shares in the score of subproblem `sub` of `gd`, float64[s]."""
    slot = (place + np.uint64(sub)) & table.mask
    w = table.flat[(slot * np.uint64(table.stride)).astype(np.int64)].astype(np.float64)
    products: Float64s = gd.weights_of(table, sub, w) * x
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
    products = np.empty(len(h))
    for at in range(0, len(h), PIECE):
        pause()
        piece = slice(at, at + PIECE)
        z = _mixed(h[piece], place >> 3)
        line = ((z >> words.shift) * tagged_words.LANES).astype(np.int64)
        tag = np.maximum((z >> words.tag_shift).astype(np.uint32) & tagged_words.TAG_MASK, tagged_words.LEAST_TAG)
        wanted = (tag & tagged_words.OF_BLOCK) | np.uint32(place & 7)
        word = tagged_words.read_lines(words, line)
        own = (word & tagged_words.TAG_MASK) == wanted[:, None]
        w = np.empty(word.size, np.float32)
        compact_columns.word_weights(np.ascontiguousarray(word.reshape(-1)), w)
        products[piece] = np.where(own, w.reshape(word.shape).astype(np.float64), 0.0).sum(axis=1) * x[piece]
    return products
