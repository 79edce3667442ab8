"""Predict on a cluster for a program: workers predict parts of the data, and the arrays are put in order."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ...api import results
from ...api.example_notes import ExampleNotes
from ...array_types import UInt8s
from ...data.namespaces import IdleArguments
from .. import shards
from ..averaging import as_bytes
from ..predicting import PredictingWorker, predicted_in_order
from ..session import Session
from ..shards import DataPart
from . import request
from .request import ProgramRequest


class Arrays(NamedTuple):
    arrays: tuple[np.ndarray, ...]  # what `Learner.predict_many` returns
    notes: list[str]  # warnings
    examples: ExampleNotes
    idle: tuple[IdleArguments, ...]
    report: list[str]  # lines about malformed lines


class ArrayPredictor(PredictingWorker):
    """Predict parts in a worker, into arrays."""

    hides_scipy = False  # the program may use it

    def predict(self, model: UInt8s, part: DataPart, k: int | None) -> Arrays:
        """Predict a part by the bytes of a model, the same in all calls."""
        learner = self._opened(model)
        reader = self._reader(learner, part)
        learner.read_from(reader)
        learner.count_anew()
        batches = (batch for batch, _ in reader.after(0))
        with self._placed():
            arrays = (results.predictions(learner, batches),) if k is None else results.top(learner, batches, k)
        return Arrays(arrays, learner.take_notes(), learner.counted, learner.preparation.idle, reader.report())


def predict(asked: ProgramRequest, k: int | None) -> Any:
    """Return what `Learner.predict_many` returns for all examples of the data, in order."""
    learner = asked.learner
    if k is not None:
        results.top(learner.core, (), k)  # raises errors before Ray is started, as the options of the run do
    contents = request.contents_of(learner) or learner.core.contents()
    request.run_config(asked, (), asked.reading, contents, testonly=True)
    with Session(asked.cluster, request.warn) as session:
        found, reading = request.find(asked, session, 1)
        config = request.run_config(asked, found.paths, reading, contents, testonly=True)
        parts = shards.pieces(found, asked.cluster.workers)
        model = session.put(as_bytes(contents))
        count = min(asked.cluster.workers, len(parts))
        workers = session.actors(ArrayPredictor, count, os.getcwd(), config)
        answers: list[Arrays] = [one for _, one in predicted_in_order(session, workers, model, parts, k)]
    for one in answers:
        learner.core.counted.add(one.examples)
        learner.core.preparation.add_idle(one.idle)
    notes = dict.fromkeys(note for one in answers for note in one.notes)
    reports = [line for one in answers for line in one.report]
    for note in (*notes, *learner.core.end_notes(learned=False), *reports):
        request.warn(note)
    joined = tuple(np.concatenate(arrays) for arrays in zip(*(one.arrays for one in answers), strict=True))
    return joined[0] if k is None else joined
