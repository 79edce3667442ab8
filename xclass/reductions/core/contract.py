"""The work that a learner is handed: a batch of examples, and what is found about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s, UInt8s
from ...binary import finite
from ...data.batch import Batch
from .probabilities import Listing


@dataclass
class BatchTask:
    """One batch on its way through a learner's stages, and what they found.

    `prediction` is made before the example is learned from (progressive validation): a class as written in
    the file (0 where nothing can be answered), or the real-valued prediction after the link function.
    """

    batch: Batch
    learn: bool  # False: predict only (-t)
    clock: Float64s  # float64[n], weight of the labelled examples up to and including this one
    prediction: Float64s | None = None  # float64[n]
    loss: Float64s | None = None  # float64[n], times weight; 0 for unlabelled; None where it is not reported
    log_loss: Float64s | None = None  # float64[n], times weight, where probabilities are asked for
    shown: Float64s | None = None  # float64[n], probability shown beside the prediction in the table, or None
    listing: Listing | None = None  # what -p writes in place of the prediction
    scores: Float32s | None = None  # float32[...], what -r writes, in the order of `score_labels`
    score_labels: Int64s | None = None  # int64[...], class of each score, as written in the file
    score_start: Int64s | None = None  # int64[n + 1], scores of example i: score_start[i]:score_start[i + 1]
    raw: Float32s | None = None  # float32[n], unclipped prediction of the learner alone (-r)
    notes: list[str] = field(default_factory=list)  # lines for the user, in order
    features: Int64s | None = None  # int64[n], features of each example as shown, those not learned from too
    plan: Any = None  # what an earlier stage hands to a later one, of whatever type they agree on
    unasked: Bools | None = None  # bool[n], no regressor was asked; VW counts no crosses then. None: not looked at
    held: Bools | None = None  # bool[n], held out: predicted only; None where none is
    nameless: Batch | None = None  # the batch with all its features, where their names are lost
    missed: UInt8s = field(init=False)  # uint8[n] and float32[n, 3], see `finite.Watch`; set by `survey`
    span: Float32s = field(init=False)

    def __post_init__(self) -> None:
        self.missed = np.zeros(self.batch.n, np.uint8)
        self.span = finite.ordinary_span(self.batch.n)

    def learns(self) -> Bools:
        """Whether each example may be learned from, if it has a label: bool[n]."""
        if not self.learn:
            return np.zeros(self.batch.n, bool)
        found: Bools = self.missed != finite.REFUSED
        return found if self.held is None else found & ~self.held

    def learned(self) -> Bools:
        """Whether each example is learned from, having a label and a weight above 0: bool[n]."""
        found: Bools = ~np.isnan(self.batch.label) & (self.batch.weight > 0) & self.learns()
        return found


class WeightLookup(NamedTuple):
    """One sub-problem that was asked about an example."""

    table: int  # position in `Inspectable.tables`
    sub: int  # within its table
    number: int  # of the sub-problem among all of the learner's
    extra: tuple[tuple[int, float], ...] = ()  # places and values of features the reduction adds
