"""Order, errors and early ends of the pipeline."""

import threading

import pytest

from xclass.system.pipeline import Pipeline


def test_items_keep_their_order_through_slow_and_fast_stages():
    def slow(item):
        sum(range(50_000 * (item[0] % 3)))
        item.append("slow")

    items = [[i] for i in range(40)]
    assert list(Pipeline(items, [slow, lambda item: item.append("fast")])) == [[i, "slow", "fast"] for i in range(40)]


def test_error_of_the_source_comes_after_all_items_before_it():
    def source():
        yield [1]
        yield [2]
        raise ValueError("line 3")

    pipeline = Pipeline(source(), [lambda item: item.append("done")])
    got = []
    with pytest.raises(ValueError, match="line 3"):
        for item in pipeline:
            got.append(item)
    assert got == [[1, "done"], [2, "done"]]
    assert list(pipeline) == []  # and nothing comes after it


def test_error_of_a_stage_reaches_the_iterator():
    def stage(item):
        if item == [2]:
            raise RuntimeError("bad")

    got = []
    with pytest.raises(RuntimeError, match="bad"):
        for item in Pipeline([[1], [2], [3]], [stage]):
            got.append(item)
    assert got == [[1]]


def test_stop_ends_the_iteration_while_the_source_waits_for_ever():
    never = threading.Event()

    def source():
        yield [1]
        never.wait()
        yield [2]

    pipeline = Pipeline(source(), [lambda item: None])
    got = []
    for item in pipeline:
        got.append(item)
        pipeline.stop()
    assert got == [[1]]
