"""Combine a reduction with the names of its classes and with counts of the examples that it has learned from.

Programs and runs of the command share this code. `tasks` splits a batch into tasks, each task passes the `stages` one
after the other, and `note` counts it. A program does this in the thread of the caller; a run executes each stage on a
thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..binary import gd
from ..data import class_names
from ..data.batch import Batch
from ..data.schema import OTHER, Schema
from ..errors import UsageError
from ..reductions.core import base
from ..reductions.core.base import PATH_GROUP
from ..reductions.core.contract import BatchTask
from ..reductions.core.spec import Wanted
from . import configuration
from .configuration import Config, LearnerUse
from .model_contents import Contents
from .preparation import Preparation
from .progress import Progress


class LearnerCore:
    """Learn and predict batches by a reduction whose options are resolved.

    Parameters
    ----------
    config : the value of every option
    use : how the learner will be used, as the options were resolved for, see `configuration.with_defaults`
    contents : contents of the model that learning continues from; None for a new learner

    Attributes
    ----------
    config : the value of every option
    reduction : the learner of the reduction
    preparation : converts batches into tasks: n-grams, interactions, checks of values
    names : names of the classes
    schema : columns of the tables learned from
    label_range : labels that the learner accepts
    examples : number of examples learned from, earlier runs included
    clock : sum of the weights of the labelled examples, earlier runs included
    progress : counts examples and losses; a caller may replace it
    only_predicts : whether the model was saved with --predict_only_model, so that it cannot learn; with --vw_exact it
        learns on, as in VW
    """

    _reduction: base.Learner | None = None

    def __init__(self, config: Config, use: LearnerUse, contents: Contents | None = None) -> None:
        self.only_predicts = contents is not None and contents.counters is None and not config.run.vw_exact
        if self.only_predicts:
            config = config.with_values({"predict_only_model": True})
            use = use._replace(weights_only=not use.inspected)
        self.config = config
        self.spec = spec = configuration.spec_of(config, use)
        self.label_range = configuration.label_range(config, spec)
        self.names = class_names.Names(spec.names, spec.learn_names and not spec.testing)
        self.schema = Schema()
        self.examples, self.clock = 0, 0.0
        self.progress = Progress(config.reduction.labels, None)
        if contents is not None:  # check the sizes of the arrays before memory of these sizes is allocated
            config.reduction.check_arrays(spec, contents.arrays)
        self.preparation = Preparation(config, spec.vw_exact)
        self._build(contents)
        if contents is not None:
            self.examples, self.clock = contents.examples, contents.clock
            if contents.counters is not None:
                self.progress.resume(contents.counters, contents.examples)

    @property
    def reduction(self) -> base.Learner:
        """Return the learner of the reduction; raise UsageError if this learner is closed."""
        if self._reduction is None:
            raise UsageError("this learner is closed; load its model, or create another learner")
        return self._reduction

    def _build(self, contents: Contents | None) -> None:
        """Build the reduction and restore it from the contents of a model, if there are any."""
        self._reduction = self.config.reduction.build(self.spec)
        self._wanted: Wanted | None = self.spec.wanted
        self.reduction.names = self.names.names
        try:
            if contents is not None:
                self.schema.replace(contents.schema)
                self.schema.form = self.schema.form or OTHER
                weights_only = self.spec.wanted.weights_only
                arrays = gd.arrays_for_prediction(contents.arrays) if weights_only else contents.arrays
                self.reduction.restore(arrays, contents.learner)
            self._cross_path()
        except BaseException:
            self.reduction.close()
            raise

    def _cross_path(self) -> None:
        """Pass the interactions that include path features to the reduction, which creates these features."""
        path_crosses = self.preparation.crosser.with_group(PATH_GROUP)
        if not path_crosses:
            return
        self.reduction.cross_path(path_crosses)
        ignored = [
            group for terms in path_crosses for group in terms if self.preparation.features.interaction_only[group]
        ]
        if ignored:
            raise UsageError(
                f"--ignore_linear drops namespace {chr(ignored[0])!r}, so it cannot be crossed with the path, "
                "namespace \\x88; leave out --ignore_linear or this interaction"
            )

    def _want(self, wanted: Wanted) -> None:
        """Tell the reduction what is wanted besides predictions, unless it knows."""
        if self._wanted is not wanted:
            self._wanted = None  # if this is interrupted
            self.reduction.want(wanted)
            self._wanted = wanted

    @property
    def stages(self) -> list[Callable[[BatchTask], None]]:
        """Return the functions to call with each task, in order; each may run on its own thread, one task at a time."""
        return self.reduction.stages

    @property
    def preview_size(self) -> int | None:
        """Return how many examples the reduction needs to see before it learns: 0 for all of them, None for none."""
        return None if self.spec.testing else self.reduction.preview_size

    @property
    def unlearned(self) -> bool:
        """Return whether the reduction holds examples that it learns from only at the end of the data."""
        return self.reduction.unlearned

    def tasks(self, batch: Batch, learn: bool, clock: float, held_out: np.ndarray | None = None) -> Iterator[BatchTask]:
        """Yield the tasks of a batch, which the caller passes through the stages.

        Parameters
        ----------
        batch : n examples
        learn : whether the labelled examples are learned from
        clock : sum of the weights of the labelled examples before this batch
        held_out : bool[n], examples that are only predicted; None for none

        Raises
        ------
        UsageError
            if examples are to be learned from and the model can only predict.
        """
        if learn:
            self.check_learns()
        return self.preparation.tasks(self.reduction, batch, held_out, learn, clock)

    def check_learns(self, name: str = "this model") -> None:
        """Raise UsageError if the model, which has this name in the message, can only predict."""
        if self.only_predicts:
            raise UsageError(
                f"{name} was shrunk, or saved with --predict_only_model, so it lacks what learning needs besides "
                "weights; predict with it (-t), or continue from the whole model"
            )

    def note(self, task: BatchTask) -> np.ndarray | None:
        """Count a task that has passed the stages; `progress` does not change. Call it in the order of the data.

        Returns
        -------
        highest_seen : float64[n], the highest class seen up to and including each example; None unless new names are
            learned
        """
        highest_seen = None
        if self.names.growing:
            self.names.highest_seen = max(self.names.highest_seen, self.reduction.highest_placed)
            highest_seen = self.names.note_labels(task.batch.label)
        if task.learn and task.batch.n:
            self.examples += int(np.count_nonzero(task.learned()))
            self.clock = float(task.clock[-1])
        return highest_seen

    def stored_options(self) -> dict[str, Any]:
        """Return the options to store in a model file, including the names of the classes seen so far."""
        names = class_names.joined(self.names.names[: self.names.highest_seen])
        return {**self.config.stored(), "named_labels": names or None}

    def contents(self) -> Contents:
        """Return the contents of a model file: options, counters and what the reduction has learned."""
        resumable = not self.config.learner.predict_only_model
        return Contents(
            options=self.stored_options(),
            learner=self.reduction.facts(),
            examples=self.examples,
            clock=self.clock if resumable else 0.0,
            counters=self.progress.counters() if resumable else None,
            arrays=self.reduction.arrays(),
            schema=self.schema.copy(),
        )

    def replace_contents(self, contents: Contents) -> None:
        """Replace what was learned by the contents of a model with the same options, without holding both in memory."""
        self.close()
        self._build(contents)

    def close(self) -> None:
        """Stop the threads of the learner and free its memory; it cannot be used afterwards."""
        if self._reduction is None:
            return
        self._reduction.close()
        self._reduction = None

    def __del__(self) -> None:
        """Close the learner, because a reduction that is not closed is freed only by the garbage collector."""
        LearnerCore.close(self)
