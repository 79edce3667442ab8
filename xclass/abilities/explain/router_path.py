"""Explain the way of an example through a tree of routers, for `--log_multi` and `--random_tree`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...explain.records import Turn
from ...reductions.core import tree_routers
from . import shares
from .reasons import clipped, shares_of


def turns(
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
