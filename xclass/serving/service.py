"""Let many clients use one learner: a thread answers their requests in the order of arrival, many lines at a time.

    event loop  --requests-->  worker thread: learner  --answers-->  event loop

Order     What is learned depends on the order of the requests alone. While the worker is busy, requests gather, and it
          takes those that wait in batches, so its throughput grows with the load.
Saving    The model is saved by another thread. Until it is saved nothing is learned, so that it is whole, and at most
          `checkpoint` examples that were learned are not in a file; a save that fails is tried again after as many.
          Requests that learn nothing are answered meanwhile; they overtake requests that wait to be learned, unless
          these are of the same client.
HTTP      Requests that only predict are not ordered: those that wait are answered in one batch, between two batches of
          lines. Those that learn are generators, whose steps are the parts that are learned at once, and so are
          explanations; what learns nothing goes between their steps.
Limits    A client of the line protocol gives at most `lines_at_once` lines in a request, so that a batch takes about
          BATCH_SECONDS and the answers to a request about ANSWER_BYTES. That bounds how long others wait, and the
          memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..api import model_contents
from ..api.learner import Learner
from ..errors import ModelError, UsageError, XclassError
from ..model import model_file
from ..reductions.core import probabilities
from ..run.report.console import OperatorConsole
from ..system import leftovers, output_file
from . import json_examples
from .json_examples import GivenExamples, JsonObject, load_request_kernels
from .lines import LineHandler, error_line

T = TypeVar("T")

BATCH_SECONDS = 0.005
BATCH_BYTES = 1 << 16  # of the lines of a batch
ANSWER_BYTES = 1 << 20  # of the answers to a request
MOST_WAITING = 10_000  # requests over HTTP
LATENCIES = 1000  # latest answers that the median is taken of
LEAST_LINES, MOST_LINES = 16, 1 << 10  # of a request and a batch, unless the answers are long
ONLY_PREDICTS = "this server only predicts, as -t and --models say; to learn, start it without them and with -f FILE"
FAILED = error_line("the server has failed")  # the answer to a line after a defect
Deliver: TypeAlias = Callable[[Any, bool], object]  # of answers, and whether they are the last of the job
Answer: TypeAlias = tuple[Any, ...]  # a function to call in the event loop, and its arguments
Job: TypeAlias = "LineJob | CallJob | PredictJob"


class Unavailable(Exception):
    """Report that a service answers no more, because it has ended or failed."""


class Busy(Exception):
    """Report that too many requests wait."""


class TakenLines(NamedTuple):
    """Hold the lines of a job that a batch takes; `job.lines` are those that are left."""

    job: LineJob
    text: bytes
    lines: int


@dataclass(eq=False, slots=True)
class LineJob:
    """Hold whole lines to answer.

    Attributes
    ----------
    deliver : called in the event loop with answers, and whether they are the last ones
    client : the client; its jobs are done in their order
    text : lines, each of which ends with a newline
    lines : their number
    learns : whether the learner changes, None if that is not known
    """

    deliver: Deliver
    client: object
    text: bytes
    lines: int
    learns: bool | None = None

    def take(self, most: int) -> TakenLines:
        """Take up to `most` lines out."""
        end, lines = len(self.text), min(self.lines, most)
        if lines < self.lines:
            end = 0
            for _ in range(lines):
                end = self.text.index(b"\n", end) + 1
        text, self.text = self.text[:end], self.text[end:]
        self.lines -= lines
        return TakenLines(self, text, lines)

    def has_to_wait(self, handler: LineHandler, clients: set[object]) -> bool:
        """Return whether the job has to wait while nothing is learned, and so have earlier ones of `clients`."""
        if self.learns is None:
            self.learns = handler.learns_from(self.text)
        if self.learns:
            clients.add(self.client)
        return self.client in clients

    def refuse(self, error: Exception) -> Answer:
        return self.deliver, FAILED * self.lines, True


class PredictJob(NamedTuple):
    """Hold where predictions go, and the examples to predict."""

    done: asyncio.Future[Any]
    given: GivenExamples

    def refuse(self, error: Exception) -> Answer:
        return _settle, self.done, error


@dataclass(eq=False, slots=True)
class CallJob:
    """Hold a function of the learner to call; if it returns a generator, others are answered between its steps.

    Attributes
    ----------
    done : where the result goes
    learns : whether the learner changes
    steps : the generator that the function has returned; nothing else may be learned until it ends
    """

    done: asyncio.Future[Any]
    function: Callable[[Learner], object]
    learns: bool
    steps: Generator[None, None, object] | None = None

    def has_to_wait(self, handler: LineHandler, clients: set[object]) -> bool:
        return self.learns or self.steps is not None

    def run(self, learner: Learner) -> tuple[bool, object]:
        """Call the function, or take a step; return whether that was the last one, and the result or the error."""
        try:
            result = self.function(learner) if self.steps is None else self.steps
            if not isinstance(result, Generator):
                return True, result
            self.steps = result
            if self.done.cancelled() and not self.learns:
                result.close()
            next(result)
        except StopIteration as end:
            return True, end.value
        except Exception as error:  # of the function, or of what it was given
            return True, error
        return False, None

    def refuse(self, error: Exception) -> Answer:
        if self.steps is not None:
            self.steps.close()
        return _settle, self.done, error


class Service:
    """Answer requests by a learner, which belongs to the service until it has ended.

    Parameters
    ----------
    learner : the learner
    learns : whether labelled lines are learned
    listing : which classes the answers list; None for what the options of the learner say
    path : file of the model that is saved at checkpoints and at the end; None for none
    checkpoint : save the model whenever this number of examples was learned; None to save it at the end only
    console : where messages for the operator go, in any thread

    Attributes
    ----------
    lines_at_once : most lines that a request should have
    is_loaded : whether the kernels are loaded, so that requests do not wait for them
    lines, batches, failed_saves : numbers since the service began, for the operator
    failure : the error that has ended the worker, or None
    failed : called in the event loop when there is one
    latest : seconds that the latest predictions over HTTP took
    predicted : number of examples that were predicted over HTTP
    """

    def __init__(
        self,
        learner: Learner,
        learns: bool = True,
        listing: probabilities.ListingOptions | None = None,
        path: str | None = None,
        checkpoint: int | None = None,
        console: OperatorConsole | None = None,
    ) -> None:
        if path is not None and not learns:
            raise UsageError("-f has no effect: with -t nothing is learned; leave one of the two out")
        if checkpoint is not None and path is None:
            raise UsageError("--checkpoint has no effect: it needs -f FILE, the model to save")
        self.handler = LineHandler(learner, learns, listing)
        self._listing, self._path, self._checkpoint = listing, path, checkpoint
        self._console = OperatorConsole(quiet=True) if console is None else console
        if path is not None:
            model_file.check_writable(path)
            output_file.claim(path)
            leftovers.remove(path, derived=True)
        self.lines_at_once = 64
        self.is_loaded = False
        self.lines = self.batches = self.failed_saves = 0
        self.failure: BaseException | None = None
        self.failed: Callable[[], object] = lambda: None
        self._began_with(learner)
        self._arrivals: SimpleQueue[Job | None] = SimpleQueue()  # None wakes the worker
        self._waiting: deque[LineJob | CallJob] = deque()
        self._predictions: deque[PredictJob] = deque()  # apart, as they have no order
        self._asked = 0  # requests over HTTP that are not answered
        self._one_explains = asyncio.Lock()  # between two explanations, the worker answers what waits
        self.latest: deque[float] = deque(maxlen=LATENCIES)
        self.predicted = 0
        self._ended = False
        self._is_turn_of_others = False  # of requests that learn nothing, before a function is called again
        self._saving = threading.Event()  # set while the model is being saved
        self._save_error: Exception | None = None  # of the latest save
        self._seconds_per_line, self._bytes_per_line = 1e-4, 64.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def learner(self) -> Learner:
        return self.handler.learner

    @property
    def learns(self) -> bool:
        return self.handler.learns

    @property
    def learned(self) -> int:
        """Return the number of examples that were learned since the service began, or since its last `replace`."""
        return self.learner.examples - self._examples_before

    @property
    def unsaved(self) -> int:
        """Return the number of learned examples that are in no file."""
        return self.learner.examples - self._saved_examples

    @property
    def room(self) -> int:
        """Return the most examples that a batch may learn, so that others do not wait long and no save is missed."""
        if self._checkpoint is None:
            return self.lines_at_once
        return max(1, min(self.lines_at_once, self._checkpoint - (self.learner.examples - self._tried_examples)))

    def _began_with(self, learner: Learner) -> None:
        self._examples_before = learner.examples  # when it was loaded
        self._saved_examples = learner.examples  # when it was saved last
        self._tried_examples = learner.examples  # when that was tried last

    # in the event loop

    def start(self) -> None:
        """Start the worker; answers are delivered in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="xclass-serve", daemon=True)
        self._thread.start()

    def ask(self, job: Job) -> None:
        """Give the worker a job; after `end`, it is refused."""
        if self._ended:
            self._refuse(job)
        else:
            self._arrivals.put(job)

    async def predict(self, given: GivenExamples) -> JsonObject:
        """Return predictions of examples; raise their error, Busy, or Unavailable.

        Others are answered between the parts of a long request. All parts are answered by one model: they begin anew
        if another one has taken its place.
        """
        learner, answers = None, list[JsonObject]()
        with self._counted():
            while learner is not self.learner:
                learner = self.learner
                answers = [await self._done(PredictJob, part) for part in given.parts()]
        self.predicted += len(given.items)
        return json_examples.joined(answers)

    async def learn(self, given: GivenExamples) -> JsonObject:
        """Learn from examples, and return the predictions made before; raise their error, Busy, or Unavailable."""
        with self._counted():
            return await self.call(partial(json_examples.learn, request=given, most=lambda: self.room), learns=True)

    async def explain(self, given: GivenExamples) -> JsonObject:
        """Return explanations of the predictions of examples; raise their error, Busy, or Unavailable."""
        with self._counted():
            async with self._one_explains:
                return await self.call(partial(json_examples.explain, request=given), learns=False)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        if self._asked >= MOST_WAITING:
            raise Busy
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    async def call(self, function: Callable[[Learner], T | Generator[None, None, T]], learns: bool) -> T:
        """Call a function with the learner on the worker, in the order of the requests, and return its result.

        `learns` says whether it changes the learner; if not, it may be called while the model is saved. Raise its
        error, or Unavailable. An error that is no XclassError is a defect; if the function changes the learner, the
        service fails, because that may be half changed.
        """
        result: T = await self._done(CallJob, function, learns)
        return result

    async def _done(self, kind: Callable[..., CallJob | PredictJob], *fields: object) -> Any:
        done = asyncio.get_running_loop().create_future()
        self.ask(kind(done, *fields))
        return await done

    async def save(self) -> int:
        """Save the model, and return the number of examples that it has learned; predictions do not wait for it.

        Raise UsageError if there is no file for it, and ModelError if it cannot be saved.
        """
        if not self.learns:
            raise UsageError(f"there is nothing to save: {ONLY_PREDICTS}")
        if self._path is None:
            raise UsageError("the server has no file to save the model to; start it with -f FILE")
        saved: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        await self.call(lambda learner: self._begin_save(saved=saved), learns=True)
        return await saved

    async def replace(self, load: Callable[[], Learner]) -> None:
        """Continue with another learner, which `load` returns; the old one serves on if an error is raised.

        What the old one has learned since it was saved, or since the loading began, is saved as MODEL.interrupted
        before.
        """
        count, keeping = self.learner.examples, False
        found = None if self._path is None else output_file.identity(self._path)
        learner = await asyncio.to_thread(load)

        def keep(old: Learner) -> None:
            nonlocal keeping
            # a checkpoint may have replaced the file after it was read, and will be replaced itself
            keeping = self._path is not None and (self.unsaved > 0 or old.examples > count)
            if keeping:
                self._begin_save(interrupted=True)

        def exchange(old: Learner) -> None:
            if keeping and self._save_error is not None:
                raise ModelError(f"what was learned could not be saved before: {self._save_error}")
            if self._path is not None and found is not None:  # the operator knows the file that was there
                output_file.renew_claim(self._path, found)
            self.handler = handler
            self._began_with(learner)
            self._in_loop(old.close)  # where its facts are read

        try:
            handler = LineHandler(learner, self.handler.learns, self._listing)
            await asyncio.to_thread(load_request_kernels, handler)
        except BaseException:
            learner.close()
            raise
        # the second one waits for the save that the first one begins, and nothing is learned between them
        exchanged = asyncio.gather(self.call(keep, learns=True), self.call(exchange, learns=True))
        try:
            await asyncio.shield(exchanged)
        except Exception:
            learner.close()
            raise

    async def end(self) -> None:
        """Answer all requests that wait, end the pass, save the model, and end the worker.

        Raise the error of the worker if it has failed, and ModelError if the model cannot be saved.
        """
        self._ended = True
        cancelled = None
        self._arrivals.put(None)
        while self._thread is not None and self._thread.is_alive():  # the model is saved even if this is cancelled
            try:
                await asyncio.to_thread(self._thread.join)
            except asyncio.CancelledError as error:
                cancelled = error
        if self._path is not None:
            output_file.drop_claims(self._path)
        if cancelled is not None:
            raise cancelled
        if self.failure is not None:
            raise self.failure

    # in the worker

    def _work(self) -> None:
        try:
            load_request_kernels(self.handler)
            self.is_loaded = True
            while not self._ended or self._saving.is_set() or self._waiting or not self._arrivals.empty():
                self._collect(self._arrivals.get())
                while self._execute_next() | self._predict():
                    self._collect()
        except BaseException as error:  # a defect, after which the learner may be half changed
            self.failure = error
            self._in_loop(self.failed)
            while self._saving.is_set():
                self._collect(self._arrivals.get())
            if self._path is not None and self.unsaved:
                self._write(interrupted=True)
            while True:
                for job in (*self._waiting, *self._predictions):
                    self._refuse(job)
                self._waiting.clear()
                self._predictions.clear()
                if self._ended and self._arrivals.empty():
                    return
                self._collect(self._arrivals.get())
        try:
            self._finish()
        except BaseException as error:
            self.failure = error

    def _in_loop(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the event loop, unless that is closed."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _refuse(self, job: Job) -> None:
        """Refuse a job of a service that has ended or failed."""
        why = "ended" if self.failure is None else "failed"
        self._in_loop(*job.refuse(Unavailable(f"the server has {why}")))

    def _collect(self, first: Job | None = None) -> None:
        """Move the jobs that have arrived to those that wait."""
        for job in (first, *(self._arrivals.get_nowait() for _ in range(self._arrivals.qsize()))):
            if isinstance(job, PredictJob):
                self._predictions.append(job)
            elif job is not None:
                self._waiting.append(job)

    def _predict(self) -> bool:
        """Predict the examples that wait and make a batch; return whether there are any."""
        asked = json_examples.first_batch([job.given for job in self._predictions])
        taken = [self._predictions.popleft() for _ in asked]
        if taken:
            self.batches += 1
            found: Sequence[object]
            try:
                found = json_examples.predict(self.learner, asked)
            except Exception as error:  # a defect, which has changed nothing
                found = [error] * len(taken)
            self._in_loop(_deliver, [(_settle, job.done, answer) for job, answer in zip(taken, found, strict=True)])
        return bool(taken)

    def _execute_next(self) -> bool:
        """Answer the next lines, or call the next function; return whether there are any."""
        saving = self._saving.is_set()
        allowed = self._allowed() if saving or self._is_turn_of_others else self._waiting
        if not (saving or allowed):
            allowed = self._waiting
        self._is_turn_of_others = False
        if not allowed:
            return False
        self.batches += 1
        taken: list[TakenLines] = []
        size, room = 0, self.lines_at_once if saving else self.room
        while allowed and room > 0 and size < BATCH_BYTES and isinstance(job := allowed[0], LineJob):
            taken.append(job.take(room))
            size += len(taken[-1].text)
            room -= taken[-1].lines
            if not job.lines:
                allowed.popleft()
        call = None if taken else allowed.popleft()
        if allowed is not self._waiting:
            self._waiting.extendleft(reversed(allowed))
        if isinstance(call, CallJob):
            self._call(call)
        else:
            self._execute_lines(taken)
        for note in self.handler.take_notes():
            self._console.info(note)
        due = self._checkpoint is not None and self.learner.examples - self._tried_examples >= self._checkpoint
        if due and not self._saving.is_set():
            self._begin_save()
        return True

    def _allowed(self) -> deque[LineJob | CallJob]:
        """Take all jobs out of those that wait that may be done before others are learned."""
        allowed: deque[LineJob | CallJob] = deque()
        held: deque[LineJob | CallJob] = deque()
        clients = set[object]()
        for job in self._waiting:
            (held if job.has_to_wait(self.handler, clients) else allowed).append(job)
        self._waiting = held
        return allowed

    def _call(self, job: CallJob) -> None:
        is_last, result = job.run(self.learner)
        if not is_last:
            self._waiting.appendleft(job)
            self._is_turn_of_others = True
            return
        self._in_loop(_settle, job.done, result)
        if job.learns and isinstance(result, Exception) and not isinstance(result, XclassError):
            raise result

    def _execute_lines(self, taken: list[TakenLines]) -> None:
        """Answer the lines of a batch."""
        began = time.perf_counter()
        # `_allowed` has left only jobs that learn nothing if the model is being saved
        learn = self.handler.learns and not self._saving.is_set()
        text = taken[0].text if len(taken) == 1 else b"".join(part.text for part in taken)
        try:
            answers, ends = self.handler.handle(text, learn)
        except BaseException:  # what is left of the requests is refused with those that wait
            self._in_loop(_deliver, [(job.deliver, FAILED * lines, not job.lines) for job, _, lines in taken])
            raise
        low, line, deliveries = 0, 0, []
        for job, _, lines in taken:
            line += lines
            high = int(ends[line - 1]) if lines else low
            deliveries.append((job.deliver, answers[low:high], not job.lines))
            low = high
        self._in_loop(_deliver, deliveries)
        self._measure(len(ends), len(answers), time.perf_counter() - began)

    def _measure(self, lines: int, size: int, seconds: float) -> None:
        """Choose how many lines a request should have by the time and the answers that lines have taken."""
        if not lines:
            return
        self.lines += lines
        self._seconds_per_line += (seconds / lines - self._seconds_per_line) * 0.2
        self._bytes_per_line += (size / lines - self._bytes_per_line) * 0.2
        by_time = max(LEAST_LINES, BATCH_SECONDS / self._seconds_per_line)
        self.lines_at_once = max(1, int(min(by_time, ANSWER_BYTES / self._bytes_per_line, MOST_LINES)))

    # saving

    def _begin_save(self, interrupted: bool = False, saved: asyncio.Future[int] | None = None) -> None:
        """Let a thread of its own save the model; `saved` gets the number of its examples, or the error."""
        self._saving.set()
        try:
            threading.Thread(target=self._save, args=[interrupted, saved], name="xclass-save").start()
        except RuntimeError:  # there are too many threads
            self._save(interrupted, saved)

    def _save(self, interrupted: bool, saved: asyncio.Future[int] | None) -> None:
        """Save the model, and let the worker learn again."""
        try:
            self._write(interrupted)
            if saved is not None:
                self._in_loop(_settle, saved, self._save_error or self.learner.examples)
        finally:
            self._saving.clear()
            self._arrivals.put(None)

    def _write(self, interrupted: bool) -> None:
        """Save the model, as MODEL.interrupted if `interrupted`, note whether it was saved, and tell the operator."""
        assert self._path is not None
        count = self._tried_examples = self.learner.examples
        self._save_error = None
        try:
            path = output_file.interrupted(self._path) if interrupted else self._path
            model_contents.save(path, self.learner.core.contents, links="replace" if interrupted else "follow")
        except Exception as error:  # not fatal, because the model is saved again
            self.failed_saves += 1
            self._save_error = error
            self._console.line(f"the model of {count} examples was not saved; {self.unsaved} are in no file: {error}")
        else:
            self._saved_examples = count
            if interrupted:
                self._console.line(f"what was learned from {self.learned} examples is in {path}")

    def _finish(self) -> None:
        """End the pass and save the model, as a run does at its end."""
        if self._path is None or (not self.learned and os.path.exists(self._path)):
            return
        contents = self.learner.core.contents
        self.learner.core.end_pass()
        model_contents.save_with_fallback(
            lambda path, links="follow": model_contents.save(path, contents, links=links), self._path
        )
        self._console.info(f"model of {self.learner.examples} examples saved to {self._path}")


def _settle(future: asyncio.Future[Any], result: object) -> None:
    """Give a result or an error to those who wait for it, if they do."""
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


def _deliver(answers: list[Answer]) -> None:
    for function, *arguments in answers:
        function(*arguments)
