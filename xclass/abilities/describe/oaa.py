"""Describe one-against-all."""

from __future__ import annotations

from ...binary import in_words
from ...reductions.oaa.scorers import SLOT_BYTES, ClassScorers
from .weight_views import TableView, WeightLookup


def banner(learner: ClassScorers) -> list[str]:
    sampled = [f"Negative classes: {learner.sampled} learn from each example"] if learner.sampled else []
    return [*sampled, in_words.table(learner.learner_options.bits, SLOT_BYTES)]


def vw_banner(learner: ClassScorers) -> list[str]:
    return [f"memory: {learner.memory / 2**20:.0f} MB of weights"]


def table_view(learner: ClassScorers) -> TableView:
    classes = range(learner.classes)
    return TableView(lambda batch: [WeightLookup(0, c, c) for c in classes], rows=learner.rows, limits=learner.limits)
