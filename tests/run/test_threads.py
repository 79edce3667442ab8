"""A run with a limit of its threads (--threads)."""

import pytest
from command import learn, xclass
from streams import multiclass

import xclass as library
from xclass.system import thread_limit


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder with data to run in, for a process with eight processors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "d.vw").write_text(multiclass(1, 5, 300))
    return tmp_path


def test_programs_are_told_what_limits_their_threads():
    with pytest.raises(library.UsageError, match="sched_setaffinity"):
        library.Learner("oaa", classes=5, threads=2)


@pytest.mark.parametrize("options", [(), ("-c", "--passes", 3), ("--shuffle", 100), ("--probabilities",)])
def test_passes_and_outputs_do_not_depend_on_the_limit(place, options):
    outputs = []
    for threads in ((), ("--threads", 1), ("--threads", 3)):
        (place / "d.vw.cache").unlink(missing_ok=True)
        result = learn("-d", "d.vw", "--oaa", 5, *options, *threads, "-p", "stdout", "-f", "m", "--quiet")
        outputs.append((result.out, (place / "m").read_bytes()))
    assert outputs[0] == outputs[1] == outputs[2]


def test_the_limit_ends_with_the_run(place):
    learn("-d", "d.vw", "--oaa", 5, "--threads", 1, "--quiet")
    assert thread_limit.most() is None
    (place / "bad.vw").write_text("1 | a\nx y z | b\n")
    assert xclass("-d", "bad.vw", "--oaa", 5, "--threads", 1, "--quiet").status == 1
    assert thread_limit.most() is None
