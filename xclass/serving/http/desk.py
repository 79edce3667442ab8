"""Take the questions of HTTP requests to a service.

Questions that only predict are gathered, so that its worker answers those that wait in one batch. Those that learn are
requests of their own, because what is learned depends on the order in which all requests arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

from ...api.learner import Learner
from ...errors import XclassError
from ..service import MORE, Request, Service
from . import examples
from .examples import Answer, Question

MOST_WAITING = 10_000  # questions
LATENCIES = 1000  # latest answers that the median is taken of


class Busy(Exception):
    """Report that too many questions wait."""


class Desk:
    """Take questions to a service.

    Attributes
    ----------
    service : the service
    latest : seconds that the latest answers took
    predicted : number of examples that were predicted
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._predictions = _Gatherer(service)
        self.latest: deque[float] = deque(maxlen=LATENCIES)
        self.predicted = 0
        self._others = 0  # questions that learn or are explained
        self._one_explains = asyncio.Lock()  # between two explanations, the worker answers what waits

    async def predict(self, question: Question) -> Answer:
        """Return predictions of examples; raise their error, or Busy.

        Other questions go between the parts of a long one. All parts are answered by one model: they begin anew if
        another one has taken its place.
        """
        learner, answers = None, list[Answer]()
        while learner is not self.service.learner:
            learner = self.service.learner
            answers = [await self._predictions.ask(part) for part in question.parts()]
        self.predicted += len(question.examples)
        return examples.joined(answers)

    async def learn(self, question: Question) -> Answer:
        """Learn from examples, and return the predictions made before; raise their error, or Busy."""
        learning = examples.Learning(question)

        def step(learner: Learner) -> Any:
            answer = learning.step(learner, self.service.room)
            return MORE if answer is None else answer

        with self._counted():
            return await self.service.call(step, learns=True)

    async def save(self) -> Answer:
        """Save the model."""
        return {"examples": await self.service.save()}

    async def explain(self, question: Question) -> Answer:
        """Return explanations of the predictions of examples; raise its error, or Busy."""
        explainer = examples.Explainer(question)

        def step(learner: Learner) -> Any:
            answer = explainer.step(learner)
            return MORE if answer is None else answer

        with self._counted():
            async with self._one_explains:
                return await self.service.call(step, learns=False, abandon=explainer.abandon)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        if self._others >= MOST_WAITING:
            raise Busy
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1

    def latency(self) -> dict[str, float] | None:
        """Return the median and the 99th percentile of the milliseconds that the latest answers took."""
        ordered = sorted(self.latest)
        if not ordered:
            return None
        last = len(ordered) - 1
        return {"median": 1e3 * ordered[round(0.5 * last)], "p99": 1e3 * ordered[round(0.99 * last)]}


class _Gatherer:
    """Gather questions that only predict; the worker takes them out."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._taken: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._asked = False  # whether the service has a request of this gatherer

    async def ask(self, question: Question) -> Answer:
        if len(self._waiting) >= MOST_WAITING:
            raise Busy
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        self._ask_service()
        return await future

    def _ask_service(self) -> None:
        if self._waiting and not self._asked:
            self._asked = True
            self._service.ask(Request(self._deliver, self, job=self._answer, learns=False))

    def _answer(self, learner: Learner) -> list[Answer | XclassError]:
        """Answer, in the worker, the questions that wait now."""
        size = work = 0  # the most work of an example counts, as all of a batch list as many classes
        self._taken = []
        while self._waiting:
            question, _ = self._waiting[0]
            size, work = size + question.size, max(work, question.work)
            if self._taken and size * work > examples.BATCH_WORK:
                break
            self._taken.append(self._waiting.popleft())
        return examples.answers(learner, [question for question, _ in self._taken])

    def _deliver(self, result: Any, last: bool) -> None:
        """Give the answers to those who wait for them."""
        taken, self._taken, self._asked = self._taken, [], False
        if isinstance(result, BaseException):  # a defect, or the service has failed
            taken += self._waiting
            self._waiting.clear()
            result = [result] * len(taken)
        self._ask_service()
        for (_, future), answer in zip(taken, result, strict=True):
            if future.done():  # the client has gone
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
