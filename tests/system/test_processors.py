"""How many processors a process may use."""

import os

from xclass.system import thread_limit


def test_memory_available_to_this_process(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7}, raising=False)
    assert thread_limit.processors() == 3


def test_all_processors_count_where_affinity_is_unknown(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert thread_limit.processors() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert thread_limit.processors() == 1
