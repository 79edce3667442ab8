"""Show the weights of the binary learner."""

from __future__ import annotations

from ...reductions.scalar.reduction import Scalar
from .views import TableView, WeightLookup


def table_view(learner: Scalar) -> TableView:
    return TableView(lambda batch: [WeightLookup(0, 0, 0)])
