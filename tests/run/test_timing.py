"""--timing: where the seconds of a run go."""

import re
import time

import pytest
import streams
from command import learn

from xclass.run import timing


def test_a_stopwatch_counts_work_and_not_what_is_between(monkeypatch):
    now = 0

    def wait(seconds: int) -> int:
        nonlocal now
        now += seconds
        return seconds

    monkeypatch.setattr("xclass.run.timing.time.perf_counter", lambda: now)
    watch = timing.Stopwatch()
    nap = watch.timed("nap")(wait)
    assert nap(2) == 2
    wait(5)
    nap(1)
    assert watch.seconds["nap"] == 3
    assert list(watch.each("source", [1, 2])) == [1, 2]
    watch.stages([lambda item: item.append(1)])[0](items := [])
    assert items == [1]
    assert set(watch.seconds) == {"nap", "source", "learning 0"}


def test_work_that_fails_is_counted_and_still_fails():
    watch = timing.Stopwatch()
    with pytest.raises(ZeroDivisionError):
        watch.timed("it")(lambda: 1 / 0)()
    assert "it" in watch.seconds


def test_time_since_start_grows(monkeypatch):
    first = timing.since_start()
    if first == 0:
        pytest.skip("this system does not tell when a process began")
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    monkeypatch.setattr("xclass.run.timing.time.clock_gettime", lambda clock: now + 1000)
    assert timing.since_start() >= first + 999


@pytest.mark.parametrize(
    ("words", "stages"),
    [(("--loss_function", "squared"), 1), (("--recall_tree", 9), 3), (("--cpt", 9, "--rerank"), 4)],
)
def test_the_summary_tells_all_parts(tmp_path, words, stages):
    (tmp_path / "d.vw").write_text(streams.multiclass(1, 9, 300))
    result = learn("d.vw", "-b", 12, *words, "--timing", "-p", "p", cwd=tmp_path)
    (line,) = [line for line in result.err.splitlines() if line.startswith("timing")]
    number = r"\d+\.\d\d"
    expected = (
        f"timing, seconds: start {number}, reading {number}, parsing and hashing {number}, crossing features {number}, "
        f"learning (.*), writing {number}"
    )
    match = re.fullmatch(expected, line)
    assert match, line
    assert 1 <= len(match.group(1).split(" + ")) <= stages
    assert "timing" not in learn("d.vw", "-b", 12, *words, cwd=tmp_path).err
