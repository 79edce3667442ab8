"""Explain the way of an example through a tree of routers, for `--log_multi` and `--random_tree`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...reductions.core import tree_routers
from . import shares
from .reasons import Term, Turn, clipped, terms_of


def turns(
    routers: tree_routers.Routers, scratch: tree_routers.GroupScratch, way: Iterable[tuple[int, int, float]]
) -> tuple[Turn, ...]:
    """Return the turns of the example that is number 0 of a group.

    Parameters
    ----------
    scratch : the group, as `tree_routers.load` has filled it
    way : number of each node on the way, number of its router, and its score
    """
    count = int(scratch.count[0])
    h, x = scratch.h[0, :count].copy(), scratch.x[0, :count].copy()
    path = []
    for node, router, unclipped in way:
        score, terms = float(unclipped), _terms(routers, h, x, router)
        if routers.vw_layout:
            score, terms = clipped(np.float32(unclipped), routers.table.range, terms)
        path.append(Turn(str(node), "left" if score < 0 else "right", score, None, terms))
    return tuple(path)


def _terms(routers: tree_routers.Routers, h: np.ndarray, x: np.ndarray, router: int) -> tuple[Term, ...]:
    """Return the terms of the score of a router, before it is clipped."""
    if routers.vw_layout:
        return terms_of(shares.of_table(routers.table, h, x, router))
    return terms_of(shares.of_regressor(routers.weights, h, x, router))
