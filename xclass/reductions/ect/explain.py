"""Explain a prediction of an error-correcting tournament by the matches that decided it."""

from __future__ import annotations

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ..core import shares
from ..core.explanation import Candidate, Reasons, Turn, clipped, terms_of
from . import matches


def explain(bracket: matches.Bracket, table: gd.Table, decided: list[int], label: int, batch: Batch) -> Reasons:
    """Explain the prediction of the only example of a batch; the score of a match is that before the link.

    `decided` are the matches of the prediction, from the last one to the first.
    """
    place, x = batch.index.astype(np.uint64) * table.width, batch.value
    path = []
    for match in decided:
        sub = np.uint64(bracket.sub[match])
        unclipped = gd.score(table, place, x, len(place), sub, np.float32(0))
        score, terms = clipped(unclipped, table.range, terms_of(shares.of_table(table, place, x, int(sub))))
        path.append(Turn(f"match {match + 1}", "right" if score > 0 else "left", score, None, terms))
    return Reasons([Candidate(label, path=tuple(path))], [], 1)
