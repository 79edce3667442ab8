"""Let threads take turns with an object, and carry out each change of it to its end.

    with exclusive.lock:            # for what only reads: this thread has the object alone
        ...
    exclusive.complete(job)         # for what changes the object: `job()` runs alone, and always to its end

Idea      Ctrl-C, a signal with a handler of the program's, or `PyThreadState_SetAsyncExc` raises an exception between
          any two steps of Python code; an object that is changed in several steps would stay half changed. `complete`
          therefore calls the job on a helper thread, where no such exception is raised, and the helper thread holds the
          lock. The caller only waits. If it is interrupted, it asks the job to stop at the next place where the object
          is whole, and waits for that; if it is interrupted again, the job ends without it.
Cost      `with exclusive.lock` takes about .4 us. `complete` takes about 17 us more than a call, for the hand-over to
          the helper thread, and two to three times that if all processors are busy.
Safety    The caller waits on locks and queues that are written in C, because an exception within `threading.Condition`
          or `queue.Queue` leaves these broken. After a fork, the child has new locks and no helper threads; an object
          that was being changed in that moment is refused there.
"""

from __future__ import annotations

import _thread
import contextvars
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from ..errors import UsageError

T = TypeVar("T")

WAIT = 0.2  # seconds
FORKED = (
    "this learner was learning in another thread when the process was forked, so its copy here may hold half a batch; "
    "load the model in this process, or fork while nothing is learned"
)


class _Call(Generic[T]):
    """Hold a job, and then its result or its error."""

    def __init__(self, job: Callable[[], T]) -> None:
        self.job, self.context = job, contextvars.copy_context()
        self.done = _thread.allocate_lock()  # held until the job has ended
        self.done.acquire()
        self.ended = False
        self.interrupted = False  # whether the caller was interrupted
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        _own.call = self
        try:
            if not self.interrupted:
                self.result = self.context.run(self.job)
        except BaseException as error:
            self.error = error
        _own.call = None

    def wait(self) -> None:
        """Wait for the end of the job; the time limits let interruptions in that do not end the wait for a lock."""
        while not self.ended:
            self.done.acquire(timeout=WAIT)


_own = threading.local()  # `call` is the _Call that a helper thread executes
_calls: SimpleQueue[_Call[Any]] = SimpleQueue()
_waiting: set[int] = set()  # the helper threads that wait for a call
_all: weakref.WeakSet[Exclusive] = weakref.WeakSet()


def _help(calls: SimpleQueue[_Call[Any]]) -> None:
    this = _thread.get_ident()
    while True:
        _waiting.add(this)
        call = calls.get()
        _waiting.discard(this)
        _start_helper(calls.qsize())
        call.run()
        call.ended = True
        call.done.release()
        del call  # which has a result


def _start_helper(calls: int) -> None:
    """Start a helper thread if fewer wait than there are calls."""
    if len(_waiting) < calls:
        _thread.start_new_thread(_help, (_calls,))


def to_its_end(job: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
    """Call a function on a helper thread and return its result; see `Exclusive.complete`."""
    if getattr(_own, "call", None) is not None or sys.is_finalizing():  # other threads have ended then
        return job()
    call = _Call(job)
    queued = False
    try:
        _start_helper(_calls.qsize() + 1)
        _calls.put(call)
        queued = True
        _start_helper(_calls.qsize())  # the helper that waited has perhaps taken another call since
        call.wait()
    except BaseException:
        call.interrupted = True
        if stop is not None:
            stop()
        if queued:
            call.wait()
        raise
    try:
        if call.error is not None:
            raise call.error
        return cast(T, call.result)
    finally:
        del call  # its error refers to this frame


class Exclusive:
    """Give an object to one thread at a time.

    A thread that has the object may ask for it again.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changing = self._torn = False
        _all.add(self)

    @property
    def lock(self) -> Any:  # an RLock, which is no class before Python 3.13
        """Return the lock; raise UsageError in a process that was forked while the object was changed."""
        if self._torn:
            raise UsageError(FORKED)
        return self._lock

    def complete(self, job: Callable[[], T], stop: Callable[[], object] | None = None, changes: bool = True) -> T:
        """Call a function while no other thread has the object, to its end, and return its result.

        The function may call `until_interrupted`. `stop` is called if this thread is interrupted while the job runs, so
        that it ends soon. `changes` says whether the job changes what the object has learned.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # `threading.Condition` uses it, too
            return job()

        def alone() -> T:
            with self.lock:
                self._changing = changes
                try:
                    return job()
                finally:
                    self._changing = False

        return to_its_end(alone, stop)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._torn = self._torn or self._changing


def until_interrupted(items: Iterable[T]) -> Iterator[T]:
    """Return an iterator over items that ends early if the thread that waits for the present job is interrupted."""
    call = getattr(_own, "call", None)  # now, because another thread may iterate

    def wanted() -> Iterator[T]:
        for item in items:
            if call is not None and call.interrupted:
                return
            yield item

    return wanted()


def _after_fork() -> None:
    """Forget the threads of the parent, which do not exist in the child."""
    global _calls
    _calls = SimpleQueue()
    _waiting.clear()
    _own.call = None
    for exclusive in list(_all):
        exclusive._after_fork()


os.register_at_fork(after_in_child=_after_fork)
