"""Describe the binary learner."""

from __future__ import annotations

from ...binary import gd, in_words
from ...reductions.scalar.reduction import Scalar
from .weight_views import TableView, WeightLookup


def banner(learner: Scalar) -> list[str]:
    return [in_words.table(learner.learner_options.bits, gd.SLOT_BYTES)]


def vw_banner(learner: Scalar) -> list[str]:
    return [f"memory: {gd.SLOT_BYTES * (int(learner.table.mask) + 1) / 2**20:.0f} MB of weights"]


def table_view(learner: Scalar) -> TableView:
    return TableView(lambda batch: [WeightLookup(0, 0, 0)])
