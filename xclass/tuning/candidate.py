"""Let the learner of one setting learn from some examples and predict others.

A learner that learns in one pass is kept between two spans, and continues where it is: it predicts the examples that
follow, and learns from them afterwards (progressive validation). Others begin anew.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator

import numpy as np

from ..api import arrays
from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..array_types import Float64s
from ..data import batch_ops
from ..data.batch import Batch
from ..errors import XclassError
from ..reductions.core import base
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted
from .results import CHUNKS, Result, Span, failure
from .settings import Setting, Space
from .stream import Stream

TOP = 5  # classes listed for the metric top5
SMALLEST_PROBABILITY = 1e-9  # of a label, so that a single one does not decide

Check = Callable[[], None]  # raises an exception to end the work


class Candidate:
    """Hold the learner of a setting."""

    def __init__(self, space: Space, setting: Setting, stream: Stream, metric: str) -> None:
        self._space, self._setting, self._stream, self._metric = space, setting, stream, metric
        self._learner: Learner | None = None
        self._reduction: base.Learner | None = None
        self._ended = False  # whether the learner has ended a pass
        self._learned: tuple[tuple[int, int], ...] = ()
        self._seconds = 0.0

    @property
    def size(self) -> int:
        """Return the number of examples that the learner, if there is one, has learned from and continues from."""
        return sum(high - low for low, high in self._learned)

    def close(self) -> None:
        learner, self._learner, self._reduction = self._learner, None, None
        self._learned, self._seconds = (), 0.0
        if learner is not None:
            learner.close()

    def stop(self) -> None:
        """Make a learner that learns at the end of the data return soon; may be called from another thread."""
        reduction = self._reduction
        if reduction is not None:
            reduction.stop()

    def run(self, span: Span, check: Check) -> Result:
        """Learn from the examples of a span that are not learned yet, predict the others and return the losses.

        `check` is called between batches; an exception that it raises ends the work.
        """
        try:
            try:
                begin = time.perf_counter()
                self._learn(span, check)
                sums, weights = self._judge(span, check)
                self._seconds += time.perf_counter() - begin
            except BaseException:
                self.close()
                raise
        except XclassError as error:
            return failure(str(error).splitlines()[0])
        seconds = self._seconds
        assert self._learner is not None
        learns_at_end = self._learner.core.config.reduction.learns_at_end
        if self._ended or learns_at_end or self._space.passes(self._setting) > 1:  # it cannot continue
            self.close()
        if not np.isfinite(sums).all():
            return failure("its losses are not finite", seconds)
        return Result(sums, weights, seconds)

    def _learn(self, span: Span, check: Check) -> None:
        known, wanted = self._learned, span.learned
        if not (len(known) == len(wanted) == 1 and known[0][0] == wanted[0][0] and known[0][1] <= wanted[0][1]):
            self.close()
        rest = span.learned
        if self._learner is None:
            self._learner = self._new()
        elif known:
            rest = ((known[0][1], wanted[0][1]),)
        passes = self._space.passes(self._setting)
        self._ended = False
        for number in range(passes):
            self._learner.core.reduction.repeats = number > 0
            for batch in self._read(rest, check):
                self._learner.learn_many(batch)
            if number + 1 < passes or self._learner.preview_size is not None or self._learner.core.unlearned:
                self._learner.end_pass()
                self._ended = True
                check()
        self._learned = span.learned

    def _new(self) -> Learner:
        config = self._space.config(self._setting)
        core = LearnerCore(config, self._space.use(self._setting))
        self._reduction = core.reduction
        core.reduction.workers = 1
        core.names.add(list(self._stream.names))
        return Learner.of(core)

    def _read(self, ranges: tuple[tuple[int, int], ...], check: Check) -> Iterator[Batch]:
        """Yield batches, and call `check` between them."""
        for _, batch in self._stream.batches(ranges):
            check()
            yield batch

    def _judge(self, span: Span, check: Check) -> tuple[Float64s, Float64s]:
        """Predict the examples of a span that are held out; return the sums of losses and weights by chunk."""
        assert self._learner is not None
        low, high = span.judged
        sums, weights = np.zeros(CHUNKS), np.zeros(CHUNKS)
        for first, batch in self._stream.batches((span.judged,)):
            check()
            reduction = self._learner.core.reduction
            if isinstance(reduction, MultilabelLearner):
                chunk = (np.arange(first, first + batch.n) - low) * CHUNKS // (high - low)
                for c in np.unique(chunk).tolist():
                    report = reduction.new_report()
                    part = batch_ops.cut(batch, *np.searchsorted(chunk, (c, c + 1)).tolist())
                    self._learner.predict_each(part, functools.partial(reduction.measure, report))
                    lost, whole = report.lost("p1" if self._metric == "error" else self._metric)
                    sums[c] += lost
                    weights[c] += whole
                continue
            at = first
            result = functools.partial(_losses, self._metric)
            for loss, weight in self._learner.predict_each(batch, result, _wanted(self._metric)):
                chunk = (np.arange(at, at + len(loss)) - low) * CHUNKS // (high - low)
                sums += np.bincount(chunk, loss, CHUNKS)
                weights += np.bincount(chunk, weight, CHUNKS)
                at += len(loss)
        return sums, weights


def _wanted(metric: str) -> Wanted:
    """Return which results a learner has to produce for a metric."""
    if metric == "top5":
        return Wanted(listing_options=ListingOptions(top_k=TOP))
    return Wanted(example_probabilities=metric in ("log_loss", "squared"))


def _losses(metric: str, task: BatchTask) -> tuple[Float64s, Float64s]:
    """Return the weighted losses of the examples of a task that has passed the stages, and their weights.

    Both are 0 for an example without a label.
    """
    label, prediction = task.batch.label, task.prediction
    labelled = ~np.isnan(label)
    weight = np.where(labelled, task.batch.weight, 0.0).astype(np.float64)
    if metric in ("log_loss", "squared"):
        p = np.zeros(task.batch.n) if task.label_probability is None else np.nan_to_num(task.label_probability, nan=0.0)
        loss = (1 - p) ** 2 if metric == "squared" else -np.log(np.maximum(p, SMALLEST_PROBABILITY))
    elif metric == "top5":
        assert task.class_lists is not None  # see `_wanted`
        listed, _ = arrays.top_k_arrays(task.class_lists, TOP)
        loss = (listed != label[:, None]).all(axis=1)
    else:
        assert prediction is not None  # the stages have set it
        loss = prediction != label
    return np.where(labelled, loss, 0.0) * weight, weight
