"""Explain a prediction of the binary learner by the shares of the features in its score."""

from __future__ import annotations

import math

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ..core import shares
from ..core.explanation import Candidate, Reasons, Term, clipped, terms_of


def explain(table: gd.Table, binary: bool, link: bool, batch: Batch) -> Reasons:
    """Explain the prediction of the only example of a batch; the score is the prediction before the link.

    Parameters
    ----------
    binary : whether predictions are -1 or 1
    link : whether predictions pass through the logistic function
    """
    place, x = batch.index.astype(np.uint64), batch.value
    unclipped = gd.score(table, place, x, len(place), np.uint64(0), batch.initial[0])
    terms = terms_of(shares.of_table(table, place, x, 0))
    if batch.initial[0]:
        terms += (Term(float(batch.initial[0]), name="initial prediction of the example"),)
    score, terms = clipped(unclipped, table.range, terms)
    prediction = 0.5 * (1.0 + math.tanh(0.5 * score)) if link else score  # the logistic function; it cannot overflow
    if binary:
        prediction = 1.0 if prediction > 0 else -1.0
    return Reasons([Candidate(prediction, score, None, terms)], [], 1)
