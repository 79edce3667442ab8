"""Put together how a learner explains a prediction, by plain code beside the kernels; see `explain.records`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...array_types import Float32s, Float64s
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.core import tree_routers
from . import shares

MOST_OTHERS = 10  # classes that are listed without shares
NOTHING = Reasons([], [], 0)  # of a learner without classes


def shares_of(values: Float64s, part: str = "") -> tuple[Share, ...]:
    """Return the shares of features for which a value, of float64[s], is not 0."""
    return tuple(Share("", float(values[f]), part, f) for f in np.flatnonzero(values).tolist())


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


def turns_of(
    routers: tree_routers.Routers, scratch: tree_routers.GroupScratch, way: Iterable[tuple[int, int, float]]
) -> tuple[Turn, ...]:
    """Return the turns of example 0 of a group, from each node on its way, the number of its router, and its score."""
    count = int(scratch.count[0])
    h, x = scratch.h[0, :count].copy(), scratch.x[0, :count].copy()
    path = []
    for node, router, unclipped in way:
        score, own = float(unclipped), shares_of(shares.of_router(routers, h, x, router))
        if routers.vw_layout:
            score, own = clipped(np.float32(unclipped), routers.table.range, own)
        path.append(Turn(str(node), "left" if score < 0 else "right", score, None, own))
    return tuple(path)
