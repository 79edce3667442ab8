"""Describe the binary learner, and explain its predictions by the shares of the features in their scores."""

from __future__ import annotations

import math

import numpy as np

from ...binary import gd, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons
from ...reductions.scalar.reduction import Scalar
from . import reasons
from .reasons import clipped, initial_share, shares_of
from .views import TableView, WeightLookup


def banner(learner: Scalar) -> list[str]:
    return [in_words.table(learner.learner_options.bits, gd.SLOT_BYTES)]


def vw_banner(learner: Scalar) -> list[str]:
    return [f"memory: {gd.SLOT_BYTES * (int(learner.table.mask) + 1) / 2**20:.0f} MB of weights"]


def table_view(learner: Scalar) -> TableView:
    return TableView(lambda batch: [WeightLookup(0, 0, 0)])


def explain(learner: Scalar, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; the score is the prediction before the link."""
    table = learner.table
    place, x = batch.index.astype(np.uint64), batch.value
    unclipped = gd.score(table, place, x, len(place), np.uint64(0), batch.initial[0])
    own = shares_of(reasons.of_table(table, place, x, 0)) + initial_share(batch.initial[0])
    score, own = clipped(unclipped, table.range, own)
    # the logistic function; tanh cannot overflow
    prediction = 0.5 * (1.0 + math.tanh(0.5 * score)) if learner.link else score
    if learner.binary:
        prediction = 1.0 if prediction > 0 else -1.0
    return Reasons([ExplainedClass(prediction, score, None, own)], [], 1)
