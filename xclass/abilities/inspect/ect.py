"""Show the weights of an error-correcting tournament."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...binary import gd_sequential
from ...data.batch import Batch
from ...reductions.ect import matches
from ...reductions.ect.reduction import Tournament
from .views import TableView, WeightLookup


def table_view(learner: Tournament) -> TableView:
    return TableView(partial(_lookups, learner), rows_are_exclusive=learner.vw_layout)


def _lookups(learner: Tournament, batch: Batch) -> list[WeightLookup]:
    """Return the matches of the prediction, then those of the label, the final included."""
    bracket, table = learner.bracket, learner.tables[0]
    row = gd_sequential.new_row(batch)
    count, _ = gd_sequential.load(row, table, learner.rule, batch, 0)
    buffer, score = np.empty(learner.most_matches, np.int64), np.empty(learner.most_matches, np.float32)
    _, end = matches.predict(bracket, table, row, count, buffer, score, 0)
    scored = buffer[:end].tolist()
    y = batch.label[0] - 1
    if 0 <= y < learner.classes and len(bracket.sides) and not learner.tests_as_vw:
        end = matches.label_matches(bracket, table, row, count, int(y), buffer)
        final = range(len(bracket.sides), len(bracket.sub))
        scored += [match for match in (*buffer[:end].tolist(), *final) if match not in scored]
    return [WeightLookup(0, int(bracket.sub[match]), match) for match in scored]
