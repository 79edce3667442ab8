"""Explain a prediction of the binary learner by the shares of the features in its score."""

from __future__ import annotations

import math

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ...reductions.scalar.reduction import Scalar
from . import shares
from .reasons import Candidate, Reasons, Term, clipped, terms_of


def explain(learner: Scalar, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; the score is the prediction before the link."""
    table = learner.table
    place, x = batch.index.astype(np.uint64), batch.value
    unclipped = gd.score(table, place, x, len(place), np.uint64(0), batch.initial[0])
    terms = terms_of(shares.of_table(table, place, x, 0))
    if batch.initial[0]:
        terms += (Term(float(batch.initial[0]), name="initial prediction of the example"),)
    score, terms = clipped(unclipped, table.range, terms)
    prediction = (
        0.5 * (1.0 + math.tanh(0.5 * score)) if learner.link else score
    )  # the logistic function; it cannot overflow
    if learner.binary:
        prediction = 1.0 if prediction > 0 else -1.0
    return Reasons([Candidate(prediction, score, None, terms)], [], 1)
