"""Steps of a job: other work goes on between them, and one that is abandoned has ended when the call returns."""

import threading
import time

import pytest

from xclass.system import steps


def running():
    return [thread for thread in threading.enumerate() if thread.name == "xclass-steps"]


def test_a_job_that_is_abandoned_has_ended_when_the_call_returns(monkeypatch):
    monkeypatch.setattr(steps, "SECONDS", -1.0)
    done = []

    def job():
        try:
            for i in range(9):
                done.append(i)
                steps.pause()
        finally:
            time.sleep(0.05)  # it cleans up
            done.append("end")

    one = steps.Steps(job)
    assert not one.resume() and not one.resume()
    one.abandon()
    assert done == [0, 1, "end"]
    one.abandon()  # it has ended
    for thread in running():
        thread.join(10)
    assert not running()


def test_a_job_that_is_abandoned_before_it_begins_does_not_begin():
    one = steps.Steps(lambda: 1)
    one.abandon()
    assert not running()


def test_a_job_gives_its_result_or_its_error():
    one = steps.Steps(lambda: 3)
    assert one.resume() and one.result() == 3
    other = steps.Steps(lambda: 1 // 0)
    assert other.resume()
    with pytest.raises(ZeroDivisionError):
        other.result()
