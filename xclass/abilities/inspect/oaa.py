"""Show the weights of one-against-all."""

from __future__ import annotations

from ...reductions.oaa.scorers import ClassScorers
from .views import TableView, WeightLookup


def table_view(learner: ClassScorers) -> TableView:
    classes = range(learner.classes)
    return TableView(lambda batch: [WeightLookup(0, c, c) for c in classes], rows=learner.rows, limits=learner.limits)
