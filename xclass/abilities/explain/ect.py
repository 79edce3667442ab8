"""Explain a prediction of an error-correcting tournament by the matches that decided it."""

from __future__ import annotations

import numpy as np

from ...binary import gd, gd_sequential
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Turn
from ...reductions.ect import matches
from ...reductions.ect.reduction import Tournament
from . import reasons
from .reasons import clipped, shares_of


def explain(learner: Tournament, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; the score of a match is that before the link."""
    bracket, table, row = learner.bracket, learner.tables[0], gd_sequential.new_row(batch)
    count, _ = gd_sequential.load(row, table, learner.rule, batch, 0)
    decided, scores = np.empty(learner.most_matches, np.int64), np.empty(learner.most_matches, np.float32)
    best, end = matches.predict(bracket, table, row, count, decided, scores, 0)
    place, x = batch.index.astype(np.uint64) * table.width, batch.value
    path = []
    for match in decided[:end].tolist():
        sub = np.uint64(bracket.sub[match])
        unclipped = gd.score(table, place, x, len(place), sub, np.float32(0))
        score, own = clipped(unclipped, table.range, shares_of(reasons.of_table(table, place, x, int(sub))))
        path.append(Turn(f"match {match + 1}", "right" if score > 0 else "left", score, None, own))
    return Reasons([ExplainedClass(int(best) + 1, path=tuple(path))], [], 1)
