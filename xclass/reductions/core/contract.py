"""The work that a learner is handed: a batch of examples, and what is found about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...binary import finite
from ...data.batch import Batch
from .probabilities import Listing


@dataclass
class Work:
    """One batch on its way through a learner's stages, and what they found.

    `prediction` is made before the example is learned from (progressive validation): a class as written in
    the file (0 where nothing can be answered), or the real-valued prediction after the link function.
    """

    batch: Batch
    learn: bool  # False: predict only (-t)
    clock: np.ndarray  # float64[n], weight of the labelled examples up to and including this one
    prediction: np.ndarray | None = None  # float64[n]
    loss: np.ndarray | None = None  # float64[n], times weight; 0 for unlabelled; None where it is not reported
    log_loss: np.ndarray | None = None  # float64[n], times weight, where probabilities are asked for
    shown: np.ndarray | None = None  # float64[n], probability shown beside the prediction in the table, or None
    listing: Listing | None = None  # what -p writes in place of the prediction
    scores: np.ndarray | None = None  # float32[...], what -r writes, in the order of `score_labels`
    score_labels: np.ndarray | None = None  # int64[...], class of each score, as written in the file
    score_start: np.ndarray | None = None  # int64[n + 1], scores of example i: score_start[i]:score_start[i + 1]
    raw: np.ndarray | None = None  # float32[n], unclipped prediction of the learner alone (-r)
    notes: list[str] = field(default_factory=list)  # lines for the user, in order
    features: np.ndarray | None = None  # int64[n], features of each example as shown, those not learned from too
    plan: Any = None  # what an earlier stage hands to a later one
    unasked: np.ndarray | None = None  # bool[n], no regressor was asked; VW counts no crosses then. None: not looked at
    held: np.ndarray | None = None  # bool[n], held out: predicted only; None where none is
    nameless: Batch | None = None  # the batch with all its features, where their names are lost
    missed: np.ndarray = None  # uint8[n] and float32[n, 3], see `finite.Watch`; set by `survey`
    span: np.ndarray = None

    def __post_init__(self):
        if self.missed is None:
            self.missed = np.zeros(self.batch.n, np.uint8)
            self.span = finite.ordinary_span(self.batch.n)

    def learns(self) -> np.ndarray:
        """Whether each example may be learned from, if it has a label: bool[n]."""
        if not self.learn:
            return np.zeros(self.batch.n, bool)
        found = self.missed != finite.REFUSED
        return found if self.held is None else found & ~self.held

    def learned(self) -> np.ndarray:
        """Whether each example is learned from, having a label and a weight above 0: bool[n]."""
        return ~np.isnan(self.batch.label) & (self.batch.weight > 0) & self.learns()


class Look(NamedTuple):
    """One sub-problem that was asked about an example."""

    table: int  # position in `Inspectable.tables`
    sub: int  # within its table
    number: int  # of the sub-problem among all of the learner's
    extra: tuple[tuple[int, float], ...] = ()  # places and values of features the reduction adds
