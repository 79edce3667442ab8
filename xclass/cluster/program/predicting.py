"""Predict on a cluster for a program: workers predict parts of the data, and the arrays are put in order."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from ...api import configuration
from ...api.configuration import Config
from ...api.learner import Learner
from ...array_types import UInt8s
from ...errors import XclassError
from ...kernels import jit
from ...options.declare import options_of
from ...reductions.core.probabilities import Options as ListingOptions
from ...run import learner_use
from .. import shards
from ..averaging import as_bytes, from_bytes
from ..part_learner import place_of, with_place
from ..predicting_run import predicted_in_order
from ..shards import Part, PartReader
from . import request
from .request import Request


class Arrays(NamedTuple):
    """Hold the predictions of a part."""

    arrays: tuple[np.ndarray, ...]  # what `Learner.predict_many` returns
    notes: tuple[str, ...]  # warnings


class ArrayPredictor:
    """Be the worker that predicts parts.

    Parameters
    ----------
    number : number of the worker, from 1
    folder : in which the names of files are, if its node has it
    config : options of the run
    """

    def __init__(self, number: int, folder: str, config: Config) -> None:
        shards.enter(folder)
        jit.activate(hide_scipy=False)
        self._number, self._config = number, config
        self._learner: Learner | None = None

    def ping(self) -> bool:
        """Return True, which shows that the worker runs."""
        return True

    def predict(self, model: UInt8s, part: Part, k: int | None) -> Arrays:
        """Predict a part.

        Parameters
        ----------
        model : bytes of the model, the same in all calls
        part : the part
        k : as in `Learner.predict_many`

        Raises
        ------
        DataError
            if the part cannot be read or a line is malformed; the message names the worker.
        """
        if self._learner is None:
            use = learner_use.of_run(self._config)._replace(exact_prediction=True)
            self._learner = Learner.from_config(self._config, use, from_bytes(model))
            self._learner.reduction.workers = 1
        learner = self._learner
        reader = PartReader(part, self._config, learner.names, learner.label_range)
        batches = (batch for batch, _ in reader.after(0))
        try:
            arrays = (learner._predictions(batches),) if k is None else learner._top(batches, k)
        except XclassError as error:
            raise type(error)(*with_place(error.args, place_of(self._number))) from None
        assert reader.reader is not None  # it was iterated
        notes = (*reader.reader.notes, *learner._notes([]), *reader.reader.report())
        return Arrays(arrays, notes)


def predict(asked: Request, k: int | None) -> Any:
    """Return what `Learner.predict_many` returns for all examples of the data, in order.

    Raises
    ------
    UsageError, DataError, ClusterError
        the error that ended the run.
    """
    learner = asked.learner
    if k is not None:
        k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
    contents = request.contents_of(learner) or learner.contents()
    with request.connected(asked) as session:
        found = request.find(asked, session, 1)
        config = request.run_config(asked, found, contents, testonly=True)
        parts = shards.pieces(found.paths, found.sizes, asked.cluster.workers, request.splittable(found))
        model = session.put(as_bytes(contents))
        count = min(asked.cluster.workers, len(parts))
        workers = session.actors(ArrayPredictor, count, os.getcwd(), config)
        answers = []
        shown: set[str] = set()
        for _, _, one in predicted_in_order(session, workers, model, parts, k):
            answers.append(one.arrays)
            for note in one.notes:
                if note not in shown:
                    shown.add(note)
                    request.warn(note)
    joined = tuple(np.concatenate(arrays) for arrays in zip(*answers, strict=True))
    return joined[0] if k is None else joined
