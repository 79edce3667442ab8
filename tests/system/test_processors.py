"""How many processors a process may use."""

import os

import pytest
from command import learn, xclass_process

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


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to processors")
def test_one_processor_gives_the_same_bytes(tmp_path):
    from streams import multiclass

    (tmp_path / "d.vw").write_text(multiclass(5, 9, 1500))
    run = ("-d", "d.vw", "--cpt", 9, "-b", 14, "--trees", 3, "--rerank", "--quiet", "-f")
    learn(*run, "all", cwd=tmp_path)
    processor = min(os.sched_getaffinity(0))
    xclass_process(*run, "one", cwd=tmp_path, preexec_fn=lambda: os.sched_setaffinity(0, {processor}))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "all").read_bytes()
