"""Exact mode: the model has the bytes of one process with any number of workers, whatever happens to them."""

from __future__ import annotations

import re

import pytest
from command import learn, xclass
from mortal_worker import MortalWorker
from streams import multiclass, multilabel

from xclass.cluster import dispatch
from xclass.cluster.exact import crew
from xclass.run.run import Run

CASES = {
    "oaa": ["--oaa", 30, "-b", 14],
    "multiclass": ["--multiclass", 30, "-b", 14, "--learn_names", "--passes", 2, "--shuffle", 120, "-q", "wn"],
    "softmax_tree": ["--softmax_tree", 30, "--depth", 2],
}
FINAL = ("finished run", "average loss", "number of examples", "classes in the tree", "leaves")


@pytest.fixture(autouse=True)
def small_steps(tmp_path, monkeypatch):
    """An empty folder to run in, and workers that read small batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crew, "Worker", MortalWorker)
    return tmp_path


@pytest.fixture
def data(tmp_path):
    (tmp_path / "a.vw").write_text(multiclass(1, 30, 500, tags=True, weights=(1, 2), unlabelled=0.05))
    (tmp_path / "b.vw").write_text(multiclass(2, 30, 200))
    return ["-d", "a.vw", "-d", "b.vw"]


def outcome(place, name: str) -> tuple[bytes, bytes]:
    return (place / f"{name}.bin").read_bytes(), (place / f"{name}.txt").read_bytes()


def measures(messages: str) -> list[tuple[str, list[float]]]:
    """Return the lines of the summary that measure lists, or probabilities, and their numbers."""
    found = re.findall(r"^((?:precision|psp|coverage|micro F1|macro F1|.* loss|.* error)\b.*) = (.*)$", messages, re.M)
    assert found
    return [(name, [float(number) for number in re.findall(r"[\d.]+", text)]) for name, text in found]


def both(place, words, **more) -> tuple:
    """Return the results of one process and of a cluster, and the messages of the second."""
    one = learn(*words, "-f", "one.bin", "-p", "one.txt")
    many = learn(*words, "-f", "many.bin", "-p", "many.txt", "--workers", more.get("workers", 2))
    shown = [[line for line in result.err.splitlines() if line.startswith(FINAL)] for result in (one, many)]
    assert shown[0] == shown[1]
    return outcome(place, "one"), outcome(place, "many"), many.err


@pytest.fixture
def either(request):
    """Workers of Ray or, with the parameter `inline`, of this process."""
    request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("case", "either"),
    [("multiclass", "cluster"), ("softmax_tree", "inline"), ("oaa", "inline")],
    indirect=["either"],
)
def test_the_bytes_are_those_of_one_process(either, small_steps, data, case):
    one, many, messages = both(small_steps, [*CASES[case], *data])
    assert one == many
    assert "exact mode: the model is spread over 2 workers" in messages
    costs = re.findall(
        r"^worker (\d): examples = (\d+), CPU seconds = [\d.]+, bytes sent = \d+, bytes received = \d+, "
        r"seconds waiting = [\d.]+$",
        messages,
        re.MULTILINE,
    )
    assert [number for number, _ in costs] == ["1", "2"]
    assert {examples for _, examples in costs} == {"1400" if "--passes" in CASES[case] else "700"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "deaths", "seconds"),
    [
        ("multiclass", ["die-1-5.5", "die-2-6"], 0.0),  # in the second pass, with a snapshot before every step
        ("softmax_tree", ["die-2-8", "die-1-10"], 60.0),  # at the end of the pass
    ],
)
def test_workers_that_die_come_back(cluster, small_steps, data, monkeypatch, case, deaths, seconds):
    monkeypatch.setattr(crew, "SNAPSHOT_SECONDS", seconds)
    monkeypatch.setattr(crew, "SNAPSHOT_SHARE", 0.0)
    for name in deaths:
        (small_steps / name).touch()
    one, many, messages = both(small_steps, [*CASES[case], *data])
    assert not list(small_steps.glob("die-*"))
    assert one == many
    assert "was lost; it learns again from step" in messages
    assert ("learns again from step 0 on" in messages) == (seconds > 0)


class Death(BaseException):
    """The end of the process that coordinates."""


@pytest.mark.slow
def test_a_run_goes_on_after_its_death_with_fewer_workers(cluster, small_steps, data, monkeypatch):
    words = [*CASES["multiclass"], *data, "--checkpoint", 400, "--holdout_off"]
    one = learn(*words, "-f", "one.bin")
    save, saved = Run.save_at, []

    def die_at_the_last(self, point):
        save(self, point)
        saved.append(point)
        if len(saved) == 2:
            raise Death

    monkeypatch.setattr(Run, "save_at", die_at_the_last)
    with pytest.raises(Death):
        xclass(*words, "-f", "many.bin", "--workers", 3)
    monkeypatch.setattr(Run, "save_at", save)
    assert (small_steps / "many.bin.parts").exists()
    resumed = learn(*words, "-f", "many.bin", "--workers", 2, "--resume_run")
    assert (small_steps / "one.bin").read_bytes() == (small_steps / "many.bin").read_bytes()
    loss = [re.search("average loss = .*", result.err)[0] for result in (one, resumed)]
    assert loss[0] == loss[1]
    before = int(re.search(r"^continues from many\.bin\.parts, after (\d+) examples$", resumed.err, re.MULTILINE)[1])
    of_pass, passes = re.search(r"examples per pass = (\d+)\npasses used = (\d+)", resumed.err).groups()
    counted = int(of_pass) * int(passes) - before
    seconds, rate = map(float, re.search(r"seconds = (.*), examples per second = (\d+)", resumed.err).groups())
    assert before >= 400 and rate == pytest.approx(counted / seconds, rel=0.05)
    assert not (small_steps / "many.bin.parts").exists()


def test_a_run_with_other_options_is_not_continued(inline, small_steps, data):
    result = xclass(*CASES["oaa"], *data, "-f", "m.bin", "--workers", 2, "--resume")
    assert (result.status, "m.bin.parts: there is no state of a run" in result.err) == (1, True)


def test_learning_continues_from_a_model(inline, small_steps, data):
    learn(*CASES["multiclass"][:4], "-d", "a.vw", "-f", "first.bin")
    one, many, _ = both(small_steps, ["-i", "first.bin", "-d", "b.vw"])
    assert one == many


@pytest.mark.parametrize("threshold", ["0.3", "auto"])
def test_lists_go_on_with_their_counts_and_threshold(inline, small_steps, monkeypatch, threshold):
    """From a model, in further passes, and after the death of a run in its last pass."""
    (small_steps / "a.vw").write_text(multilabel(1, 12, 500))
    learn("-d", "a.vw", "--multilabel_oaa", 12, "-b", 12, "--threshold", threshold, "-f", "first.bin")
    words = ["-i", "first.bin", "-d", "a.vw", "--passes", 3, "--holdout_off", "--checkpoint", 400]
    one, many, messages = both(small_steps, words)
    assert one == many
    save, saved = Run.save_at, []

    def die_at_the_last(self, point):
        save(self, point)
        saved.append(point)
        if len(saved) == 2:
            raise Death

    monkeypatch.setattr(Run, "save_at", die_at_the_last)
    with pytest.raises(Death):
        xclass(*words, "-f", "again.bin", "--workers", 2)
    monkeypatch.setattr(Run, "save_at", save)
    resumed = learn(*words, "-f", "again.bin", "--workers", 2, "--resume_run").err
    assert (small_steps / "again.bin").read_bytes() == one[0]
    assert measures(resumed) == measures(messages)


def test_a_malformed_line_is_named_and_what_was_learned_is_kept(inline, small_steps, data):
    with open("a.vw", "a") as file:
        file.write("31 | x\n")
    for name, words in (("one", []), ("many", ["--workers", 2])):
        result = xclass(*CASES["oaa"], *data, "-f", f"{name}.bin", *words)
        assert result.status == 1
        place = r".* \(worker 1, process \d+ on \S+\)$" if words else ""
        assert re.search(rf"^xclass: a\.vw:501:1: label 31 is outside 1\.\.30{place}", result.err, re.MULTILINE)
    models = [(small_steps / f"{name}.bin.interrupted").read_bytes() for name in ("one", "many")]
    assert models[0] == models[1]
    assert not (small_steps / "many.bin").exists()


def test_a_file_that_is_missing_is_named_with_the_worker(inline, small_steps):
    result = xclass(*CASES["oaa"], "-d", "missing.vw", "--workers", 2, "-f", "m.bin")
    assert result.status == 1
    assert re.search(r"missing\.vw: there is no such file; check its name \(worker 1, process \d+ on ", result.err)


def test_there_are_no_more_workers_than_parts(inline, small_steps, data):
    one, many, messages = both(small_steps, ["--cpt", 30, "--trees", 2, "-b", 12, *data], workers=4)
    assert one == many
    assert "2 of 4 workers are used" in messages


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--oaa", 3, "--audit"], "--audit cannot be combined with --workers in exact mode"),
        (["--oaa", 3, "-c"], "--cache cannot be combined with --workers in exact mode"),
        (["--ect", 3], "--ect has no parts that learn by themselves"),
        (["--index_bits", 9, "--audit"], "--audit cannot be combined with --workers in exact mode"),
        (["--oaa", 3, "--resume_run"], "give -f MODEL"),
        (["--oaa", 3, "--resume_run", "-f", "m", "-p", "p"], "--predictions would lack the predictions before"),
        (["--oaa", 3, "--resume_run", "-f", "m", "--passes", 2], "that saves the model of its best pass"),
    ],
)
def test_options_that_need_one_process_are_refused_before_ray_is_started(data, words, message, monkeypatch):
    monkeypatch.setattr(dispatch, "Session", None)
    result = xclass(*words, *data, "--workers", 2)
    assert result.status == 2
    assert message in result.err


@pytest.mark.parametrize("flag", ["--resume_run", "--resume"])
def test_options_of_the_cluster_need_workers(data, flag):
    result = xclass("--oaa", 3, *data, flag)
    assert result.status == 2
    assert "--resume_run has no effect without --workers N" in result.err
