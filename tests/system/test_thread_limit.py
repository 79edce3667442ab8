"""How many threads compute at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from xclass.system import thread_limit
from xclass.system.pipeline import Pipeline

WAIT = 60  # seconds until a test that waits for another thread fails


class Gauge:
    """Count the calls that run at the same time; with a barrier they wait until so many do."""

    def __init__(self, together: int | None = None) -> None:
        self.now = self.most = self.calls = 0
        self.barrier = threading.Barrier(together) if together else None
        self.lock = threading.Lock()

    def __call__(self, *_: object) -> None:
        with self.lock:
            self.now += 1
            self.calls += 1
            self.most = max(self.most, self.now)
        if self.barrier is not None:
            self.barrier.wait(WAIT)
        for _ in range(200):
            threading.Event().wait(0)  # lets other threads run
        with self.lock:
            self.now -= 1


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as threads:
        yield threads


def test_limit_is_the_most_that_count_returns(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    with thread_limit.limited(3):
        assert thread_limit.processors() == 3
        with thread_limit.limited(None):
            assert thread_limit.processors() == 3
    with thread_limit.limited(9):
        assert thread_limit.processors() == 4
    assert thread_limit.processors() == 4


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_items_are_shared_by_as_many_threads_as_allowed(pool, limit):
    together = Gauge(limit)
    with thread_limit.limited(limit):
        thread_limit.share(pool, together, [()] * 6)
    assert (together.most, together.calls) == (limit, 6)


def test_a_thread_helps_as_soon_as_another_one_has_ended(pool):
    begun, ended, helped = threading.Event(), threading.Event(), threading.Event()
    first = threading.Lock()

    def other() -> None:
        with thread_limit.working():
            begun.set()
            assert ended.wait(WAIT)

    def job() -> None:
        if first.acquire(blocking=False):
            ended.set()
            assert helped.wait(WAIT)
        else:
            helped.set()

    with thread_limit.limited(2):
        busy = pool.submit(other)
        assert begun.wait(WAIT)
        thread_limit.share(pool, job, [()] * 2)
        busy.result()


def test_all_threads_share_items_without_a_limit(pool):
    together = Gauge(4)
    thread_limit.share(pool, together, [()] * 4)
    assert together.most == 4


def test_a_job_may_share_its_own_items(pool):
    gauge = Gauge()
    with thread_limit.limited(2):
        thread_limit.share(pool, lambda: thread_limit.share(pool, gauge, [()] * 5), [()] * 5)
    assert gauge.calls == 25
    assert gauge.most <= 2


@pytest.mark.parametrize("limit", [1, 3])
def test_an_error_is_raised_and_frees_the_threads(pool, limit):
    gauge = Gauge(limit)

    def fail() -> None:
        raise ValueError("no")

    with thread_limit.limited(limit):
        with pytest.raises(ValueError, match="no"):
            thread_limit.share(pool, fail, [()] * 9)
        thread_limit.share(pool, gauge, [()] * limit)
    assert gauge.most == limit


def test_stages_of_a_pipeline_take_turns_under_a_limit_of_one():
    gauge = Gauge()
    with thread_limit.limited(1):
        passed = []
        for item in Pipeline(thread_limit.each(range(20)), [gauge, gauge, gauge]):
            with thread_limit.working():
                gauge()
            passed.append(item)
    assert passed == list(range(20))
    assert (gauge.most, gauge.calls) == (1, 80)


def test_stages_of_a_pipeline_run_together_under_a_limit_of_two():
    gauge = Gauge()
    meeting = threading.Barrier(2)

    def first(item: int) -> None:
        gauge()
        if item == 1:
            meeting.wait(WAIT)

    def second(item: int) -> None:
        gauge()
        if item == 0:
            meeting.wait(WAIT)

    with thread_limit.limited(2):
        assert list(Pipeline(range(6), [first, second, gauge])) == list(range(6))
    assert gauge.most <= 2


def test_the_source_waits_without_holding_a_thread():
    arrived = threading.Event()

    def source():
        yield 0
        assert arrived.wait(WAIT)  # for the first item to pass the stage, as a program that talks to xclass does
        yield 1

    with thread_limit.limited(1):
        assert list(Pipeline(source(), [lambda item: arrived.set()])) == [0, 1]


def test_an_error_of_a_stage_frees_its_thread():
    def fail(item: int) -> None:
        raise ValueError(item)

    with thread_limit.limited(1):
        with pytest.raises(ValueError, match="5"):
            list(Pipeline([5], [fail]))
        assert list(Pipeline([6], [lambda item: None])) == [6]
