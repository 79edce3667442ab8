"""A learner whose options are decided: a reduction, the names of its classes, and counts of what it has learned.

Here is what a program and a run of the command need alike. A batch becomes work (`tasks`), which goes through the
`stages` one after the other and is then taken note of (`note`): in the thread of the caller where a program learns, and
with a thread for each stage where the command does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..binary import gd
from ..data import class_names
from ..data.batch import Batch
from ..errors import UsageError
from ..reductions.core import base
from ..reductions.core.base import PATH_GROUP, CrossesPath, LearnsAtEnd, Previews
from ..reductions.core.contract import BatchTask
from . import configuration
from .configuration import Config, Purpose
from .model_contents import Contents
from .preparation import Preparation
from .progress import Progress


class LearnerCore:
    """A learner whose options are decided, with what a program and a run of the command need alike.

    Parameters
    ----------
    purpose : for which the options were settled, see `configuration.with_defaults`
    contents : of the model that it goes on from

    Attributes
    ----------
    config : the value of every option
    reduction : what learns; what only some reductions can do is asked by `isinstance`, see `reductions.core.base`
    preparation : what happens to examples before they are learned from
    names : of the classes
    label_range : the labels that are allowed
    examples, clock : how many examples it has learned from in its life, and the weight of those with a label
    progress : counts the examples of its life and their losses; may be exchanged for another
    """

    _reduction: base.Learner | None = None

    def __init__(self, config: Config, purpose: Purpose, contents: Contents | None = None) -> None:
        self.config = config
        self._spec = spec = configuration.spec_of(config, purpose)
        self.label_range = configuration.label_range(config, spec)
        self.names = class_names.Names(spec.names, spec.learn_names and not spec.testing)
        self.examples, self.clock = 0, 0.0
        self.progress = Progress(config.reduction.labels, None)
        if contents is not None:  # before anything is allocated by what it says
            config.reduction.check_arrays(spec, contents.arrays)
        self.preparation = Preparation(config, spec.vw_exact)
        self._build(contents)
        if contents is not None:
            self.examples, self.clock = contents.examples, contents.clock
            if contents.counters is not None:
                self.progress.resume(contents.counters, contents.examples)

    @property
    def reduction(self) -> base.Learner:
        """What learns."""
        if self._reduction is None:
            raise UsageError("this learner is closed; load its model, or make another learner")
        return self._reduction

    def _build(self, contents: Contents | None) -> None:
        self._reduction = self.config.reduction.build(self._spec)
        self.reduction.names = self.names.names
        try:
            if contents is not None:
                learned = gd.predicting(contents.arrays) if self._spec.wanted.weights_only else contents.arrays
                self.reduction.restore(learned, contents.learner)
            self._cross_path()
        except BaseException:
            self.reduction.close()
            raise

    def _cross_path(self) -> None:
        """Hand interactions with the features of an example's path to the reduction, which makes these features."""
        named = self.preparation.crosser.with_group(PATH_GROUP)
        if not named:
            return
        if not isinstance(self.reduction, CrossesPath):
            raise UsageError("namespace \\x88 is the path of --recall_tree, which was not chosen")
        ignored = [group for one in named for group in one if self.preparation.features.unlinear[group]]
        if ignored:
            raise UsageError(
                f"--ignore_linear leaves nothing of namespace {chr(ignored[0])!r} to cross with the path, "
                "namespace \\x88: drop one of them"
            )
        self.reduction.cross_path(named)

    @property
    def stages(self) -> list[Callable[[BatchTask], None]]:
        """What work goes through, in this order; each may run on a thread of its own, on one BatchTask at a time."""
        return self.reduction.stages

    @property
    def preview_size(self) -> int | None:
        """How many examples it wants to see before it learns from any, 0 for all of the data, None for none."""
        return self.reduction.preview_size if isinstance(self.reduction, Previews) and not self._spec.testing else None

    @property
    def unlearned(self) -> bool:
        """Whether it was given examples that it learns from at the end of the data only."""
        return isinstance(self.reduction, LearnsAtEnd) and self.reduction.unlearned

    def tasks(self, batch: Batch, learn: bool, clock: float, held_out: np.ndarray | None = None) -> Iterator[BatchTask]:
        """Yield the work that a batch turns into, which has yet to go through the stages.

        Parameters
        ----------
        learn : whether examples are learned from, if they have a label
        clock : weight of the labelled examples before
        held_out : bool[n], examples that are predicted only; None for none
        """
        held_out = np.zeros(batch.n, bool) if held_out is None else held_out
        return self.preparation.tasks(self.reduction, batch, held_out, learn, clock)

    def note(self, task: BatchTask) -> np.ndarray | None:
        """Take note of work that went through the stages, in the order of the data; `progress` is left alone.

        Returns
        -------
        met : float64[n], the highest class met up to and with each example; None where there are no new names
        """
        met = None
        if self.names.growing:
            self.names.met = max(self.names.met, self.reduction.highest_placed)
            met = self.names.meet(task.batch.label)
        if task.learn and task.batch.n:
            self.examples += int(np.count_nonzero(task.learned()))
            self.clock = float(task.clock[-1])
        return met

    def stored_options(self) -> dict[str, Any]:
        """Return the options that a model keeps, the names of the classes met so far among them."""
        names = ",".join(self.names.names[: self.names.met])
        return {**self.config.stored(), "named_labels": names or None}

    def contents(self) -> Contents:
        """Return what a model keeps: options, counters and what the reduction learned."""
        whole = not self.config.learner.predict_only_model
        return Contents(
            options=self.stored_options(),
            learner=self.reduction.facts(),
            examples=self.examples,
            clock=self.clock if whole else 0.0,
            counters=self.progress.counters() if whole else None,
            arrays=self.reduction.arrays(),
        )

    def exchange(self, contents: Contents) -> None:
        """Put what a model of the same options has learned in place of what this learner has; never hold both."""
        self.close()
        self._build(contents)

    def close(self) -> None:
        """End the threads that the learner has started and free its memory; it cannot be used any more."""
        if self._reduction is None:
            return
        self._reduction.close()
        self._reduction = None
        gc.collect()  # a reduction holds its own methods, and the collector does not know how large its arrays are
