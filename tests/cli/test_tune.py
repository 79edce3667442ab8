"""The command `xclass tune`: its table, its model, continuing, stopping, and its messages."""

import json
import re
import shlex
import signal
import threading

import pytest
import streams
from command import learn, start_process, xclass

from xclass.system import thread_limit
from xclass.tuning.results import Candidate, Evaluator

K = 12
SMALL = ("--settings", 4, "-b", 14)
ALONE = ("--oaa", K)  # one reduction is searched in a quarter of the time of all


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data."""
    folder = tmp_path_factory.mktemp("tune")
    (folder / "train.vw").write_text(streams.multiclass(3, K, 200))
    (folder / "few.vw").write_text("1 |a b\n2 |a c\n3 |a d\n")
    return folder


def tuned(place, *words):
    """Return the lines of the output of a search in a folder of its own name, and what it wrote to standard error."""
    result = learn("tune", "-d", "train.vw", *SMALL, *words, cwd=place)
    return result.lines, result.err


def started(place, state, *words):
    """Start a search that goes on for an hour, and return its process when it has a first result."""
    child = start_process(
        "tune", "-d", "train.vw", "-b", 14, *ALONE, "--time", "1h", "--state", state, *words, cwd=place
    )
    for line in child.stderr:
        if b"learned  0." in line:
            break
    return child


def test_a_table_and_the_command_line_are_printed(place, tmp_path):
    lines, err = tuned(place, "--state", tmp_path / "state")
    assert re.fullmatch(r"200 examples, 12 classes, parsed in [\d.]+ s", err.splitlines()[1])
    head = next(line for line in lines if line)
    assert head.split() == ["error", "defaults", "difference", "compared", "learned", "s", "options"]
    rows = [line for line in lines if re.match(r"[ *] +0\.\d{4} ", line)]
    assert len(rows) == 4 and sum(row[0] == "*" for row in rows) == 1
    assert all(len(line) <= 80 for line in lines[:-1])
    words = shlex.split(lines[-1])
    assert words[:3] == ["xclass", "-d", "train.vw"] and words[-2:] == ["-f", "model.bin"] and "-b" in words
    marked = next(row for row in rows if row[0] == "*").split("  ")[-1]
    assert marked == "(defaults)" or set(marked.split()) <= set(words)


def test_the_model_is_that_of_the_command_line(place, tmp_path):
    lines, _ = tuned(place, "--state", tmp_path / "state", "-f", "tuned.bin", "--quiet")
    assert len(lines) == 1
    words = shlex.split(lines[0])
    assert words[-2:] == ["-f", "tuned.bin"]
    learn(*words[1:-1], "again.bin", cwd=place)
    assert (place / "tuned.bin").read_bytes() == (place / "again.bin").read_bytes()


def test_results_do_not_depend_on_the_number_of_threads(place, tmp_path, monkeypatch):
    def losses(name, *words):
        tuned(place, "--state", tmp_path / name, *ALONE, *words)
        rows = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()[1:]]
        return sorted((row["setting"], row["sums"]) for row in rows)

    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    one = losses("first")
    assert losses("second", "--threads", 1) == losses("third", "--threads", 2) == one and len(one) > 4


def test_no_more_settings_than_threads_learn_at_the_same_time(place, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    running, most, lock = [], [], threading.Lock()
    run = Candidate.run

    def counted(self, *args):
        with lock:
            running.append(self)
            most.append(len(running))
        try:
            return run(self, *args)
        finally:
            with lock:
                running.remove(self)

    monkeypatch.setattr(Candidate, "run", counted)
    tuned(place, "--state", tmp_path / "state", "--threads", 1, "-f", tmp_path / "m", *ALONE)
    assert max(most) == 1 and thread_limit.most() is None


def test_the_same_command_continues(place, tmp_path, monkeypatch):
    state = tmp_path / "state"
    first, _ = tuned(place, "--state", state, *ALONE)
    whole = state.read_text().splitlines()
    state.write_text("".join(line + "\n" for line in whole[:3]))
    computed = []
    add = Evaluator._try
    monkeypatch.setattr(
        Evaluator, "_try", lambda self, job, alone=False: (computed.append(job), add(self, job, alone))[1]
    )
    second, err = tuned(place, "--state", state, *ALONE)
    assert "continuing with 2 results" in err
    assert len(computed) == len(whole) - 3
    assert re.sub(r" +[\d.]+  ", " ", second[-1]) == re.sub(r" +[\d.]+  ", " ", first[-1])
    computed.clear()
    tuned(place, "--state", state, *ALONE)
    assert not computed


def test_the_state_is_beside_the_data_by_default(place, tmp_path):
    (tmp_path / "train.vw").write_bytes((place / "train.vw").read_bytes())
    tuned(tmp_path, *ALONE)
    assert (tmp_path / "train.vw.tune").is_file()
    result = xclass("tune", "-d", "train.vw", *SMALL, *ALONE, "--metric", "top5", cwd=tmp_path)
    assert result.status == 1
    assert "train.vw.tune: it is of another search: metric was 'error' and is 'top5'; remove the" in result.err


def test_ctrl_c_keeps_the_best_and_the_search_continues(place, tmp_path):
    state = tmp_path / "state"
    child = started(place, state, "-f", "m")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 128 + signal.SIGINT
    kept = len(state.read_text().splitlines()) - 1
    assert re.search(rf"Stopped after \d+ s; m was not written. .* \({kept} results in {state}\)", err.decode())
    assert b"options\n" in out and out.splitlines()[-1].startswith(b"xclass -d train.vw -b 14 --oaa 12")
    assert state.is_file() and not (place / "m").exists()
    result = learn("tune", "-d", "train.vw", "-b", 14, *ALONE, "--settings", 2, "--state", state, cwd=place)
    assert "continuing with" in result.err


def test_a_second_signal_ends_at_once_and_says_so(place, tmp_path):
    state = tmp_path / "state"
    child = started(place, state)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=120)
    assert child.returncode - 128 in (signal.SIGINT, signal.SIGTERM)
    assert not out and re.search(r"a second signal, SIG\w+, ended the search at once", err.decode())
    assert f"results in {state})" in err.decode() and state.is_file()


def test_classes_that_do_not_occur_are_not_counted(place, tmp_path):
    (tmp_path / "gaps.vw").write_text("1 |a b\n20304 |a c\n3 |a d\n" * 2)
    result = learn("tune", "-d", "gaps.vw", *SMALL, "--random_tree", 20304, cwd=tmp_path)
    assert re.search(r"^6 examples, 3 classes \(labels up to 20,304\), parsed", result.err, re.MULTILINE)


def test_a_killed_search_leaves_a_whole_state(place, tmp_path):
    state = tmp_path / "state"
    child = started(place, state)
    for _ in child.stderr:
        if state.exists():
            break
    child.kill()
    child.communicate()
    assert not [path for path in tmp_path.iterdir() if path != state]
    assert (
        "continuing with"
        in learn("tune", "-d", "train.vw", "-b", 14, *ALONE, "--settings", 2, "--state", state, cwd=place).err
    )


def test_a_given_range_alone_is_searched(place, tmp_path):
    lines, _ = tuned(
        place, "--state", tmp_path / "s", "--recall_tree", K,
        "--range", "-l log 0.5 2", "--range", "--max_depth one 2 3",
    )  # fmt: skip
    rows = [json.loads(line)["setting"].split() for line in (tmp_path / "s").read_text().splitlines()[1:]]
    values = {flag: {row[row.index(flag) + 1] for row in rows if flag in row} for flag in ("--max_depth", "-l")}
    assert values["--max_depth"] == {"2", "3"} and values["-l"] and all(0.5 <= float(x) <= 2 for x in values["-l"])
    assert not any(set(row) & {"--passes", "--ngram", "--bern_hyper"} for row in [*rows, shlex.split(lines[-1])])


def test_names_and_standard_input(place):
    names = re.sub(r"^(\d+)", r"class\1", (place / "train.vw").read_text(), flags=re.MULTILINE)
    result = learn("tune", *SMALL, stdin=names, cwd=place)
    assert "labels are names" in result.err
    assert result.lines[-1].startswith("xclass") and "--learn_names" in result.lines[-1]
    assert not list(place.glob("*.tune"))


def test_other_metrics(place, tmp_path):
    for metric, title in (("log_loss", "log loss"), ("squared", "squared loss"), ("top5", "top 5")):
        lines, _ = tuned(place, "--state", tmp_path / metric, "--metric", metric, *ALONE)
        assert next(line for line in lines if line).strip().startswith(title)


def test_a_setting_that_needs_too_much_memory_is_named(place, tmp_path, monkeypatch):
    monkeypatch.setattr("xclass.system.memory.taken", lambda: 1 << 40)
    monkeypatch.setattr("xclass.system.thread_limit.processors", lambda: 1)  # of two at once only the later one yields
    result = xclass("tune", "-d", "train.vw", *SMALL, "--state", tmp_path / "s", "--memory", "300M", cwd=place)
    assert result.status == 2
    assert "no setting can be used; the first one: it needs more memory than --memory allows" in result.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("-d", "train.vw", "--method", "random"), 2, "xclass tune searches by successive halving alone"),
        (("-d", "train.vw", "-p", "x"), 2, "there is no option -p"),
        (("-d", "missing.vw"), 1, "missing.vw: No such file"),
        (("-d", "missing.vw", "--multiclass"), 1, "missing.vw"),
    ],
)
def test_messages(place, words, status, message):
    result = xclass("tune", *words, cwd=place)
    assert result.status == status and message in result.err, result.err
    assert not list(place.glob("*.tune")) and "Traceback" not in result.err


def test_few_examples_are_enough_to_run(place, tmp_path):
    result = learn("tune", "-d", "few.vw", "--oaa", 3, *SMALL, "--state", tmp_path / "s", cwd=place)
    assert result.lines[-1].startswith("xclass -d few.vw -b 14 --oaa 3")
