"""Let the learner of one setting learn from some examples and predict others.

A learner that learns in one pass is kept between two spans, and continues where it is: it predicts the examples that
follow, and learns from them afterwards (progressive validation). Others begin anew.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator

import numpy as np

from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..array_types import Float64s
from ..data.batch import Batch
from ..errors import XclassError
from ..reductions.core import base
from . import metrics
from .results import CHUNKS, Result, Span, failure
from .settings import Setting, Space
from .stream import Stream

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
        """Free the memory of the learner."""
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
        if not self._may_continue():
            self.close()
        if not np.isfinite(sums).all():
            return failure("its losses are not finite", seconds)
        return Result(sums, weights, seconds)

    def _may_continue(self) -> bool:
        """Return whether the learner can learn from more examples as if it had not been interrupted."""
        assert self._learner is not None
        several = self._space.passes(self._setting) > 1
        return not (several or self._ended or self._learner.core.config.reduction.learns_at_end)

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
            for batch in self._read(rest, check):
                self._learner.learn_many(batch)
            if number + 1 < passes or self._learner.preview_size is not None or self._learner.core.unlearned:
                self._learner.end_pass()
                self._ended = True
                check()
        self._learned = span.learned

    def _new(self) -> Learner:
        """Return a new learner, which uses one thread."""
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
            at = first
            result = functools.partial(metrics.losses, self._metric)
            for loss, weight in self._learner.predict_each(batch, result, metrics.wanted(self._metric)):
                chunk = (np.arange(at, at + len(loss)) - low) * CHUNKS // (high - low)
                sums += np.bincount(chunk, loss, CHUNKS)
                weights += np.bincount(chunk, weight, CHUNKS)
                at += len(loss)
        return sums, weights
