"""Runs with averages and with -t on a cluster: the same bytes whatever dies, and errors that name the place."""

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import learn, xclass
from mortal_part import MortalPartLearner, MortalPredictor
from streams import multiclass

from xclass import load
from xclass.cluster import dispatch, predicting
from xclass.model import model_file
from xclass.run.run import Run

pytestmark = pytest.mark.slow

WORDS = ["--oaa", 30, "-b", 12, "--learn_names", "--sync_every", 60]


@pytest.fixture(autouse=True)
def place(cluster, tmp_path, monkeypatch):
    """A folder with four files to run in, and workers that read small batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dispatch, "PartLearner", MortalPartLearner)
    monkeypatch.setattr(predicting, "PartPredictor", MortalPredictor)
    for k in range(4):
        (tmp_path / f"part-{k}.vw").write_text(multiclass(k, 30, 150, tags=True, unlabelled=0.05))
    return tmp_path


def run(*words, workers=2):
    """Run on the cluster and return the bytes of the model and the messages."""
    messages = learn(*WORDS, "-d", "part-*.vw", "--workers", workers, "-f", "many.bin", *words).err
    return Path("many.bin").read_bytes(), messages


@functools.cache
def undisturbed(*words, workers=2):
    """Return what `run` returns if nothing dies; the data are the same in all tests."""
    return run(*words, workers=workers)


def learned_alone():
    """Learn a model in this process, and return its bytes."""
    learn("--oaa", 30, "-b", 12, "--learn_names", "-d", "part-0.vw", "-f", "many.bin")
    return Path("many.bin").read_bytes()


def test_workers_that_die_do_not_change_the_model(place):
    model, messages = undisturbed()
    assert "2 workers are averaged after every 60 examples of each" in messages
    costs = re.findall(r"^worker (\d): examples = (\d+), CPU seconds = \S+, bytes sent = (\d+)", messages, re.MULTILINE)
    assert [number for number, *_ in costs] == ["1", "2"]
    assert sum(int(examples) for _, examples, _ in costs) <= 600
    assert all(int(sent) > 0 for *_, sent in costs)
    assert re.search(r"^number of examples = 600$", messages, re.MULTILINE)
    (place / "die-1").touch()
    (place / "die-2").touch()
    again, _ = run()
    assert not list(place.glob("die-*"))
    assert again == model


class Death(BaseException):
    """The end of the process that coordinates."""


def test_a_driver_that_dies_is_continued_with_fewer_workers(place, monkeypatch):
    words = ["--checkpoint", 150, "--passes", 2, "--holdout_off"]
    model, messages = run(*words)
    save = Run.save_at
    saved = []

    def die_at_the_third(self, point):
        save(self, point)
        saved.append(Path("many.bin.parts").stat().st_size)
        if len(saved) == 3:
            raise Death

    monkeypatch.setattr(Run, "save_at", die_at_the_third)
    with pytest.raises(Death):
        run(*words)
    monkeypatch.setattr(Run, "save_at", save)
    assert Path("many.bin").read_bytes() != model
    again, others = run(*words, "--resume_run", workers=1)
    assert again == model
    losses = [re.search("average loss = .*", text)[0] for text in (messages, others)]
    assert losses[0] == losses[1]
    assert re.search(r"^continues from many\.bin\.parts, after [1-9]\d+ examples$", others, re.MULTILINE)
    assert not Path("many.bin.parts").exists()


def test_a_killed_driver_leaves_the_model_and_a_checkpoint(place):
    """Kill the command itself, with a Ray of its own, by SIGKILL, and let another process continue."""
    model, _ = undisturbed()
    Path("many.bin").unlink(missing_ok=True)
    words = [*map(str, WORDS), "-d", "part-*.vw", "--workers", "2", "-f", "many.bin", "--checkpoint", "100"]
    body = (
        "import os, signal\nfrom xclass.run.run import Run\nsave = Run.save_at\n"
        "def die(self, point):\n    save(self, point)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Run.save_at = die\nfrom xclass.cli import command\ncommand.main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    process = subprocess.run([sys.executable, "-c", body, *words], env=environment, capture_output=True, timeout=100)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert Path("many.bin").read_bytes() != model
    assert run("--checkpoint", 100, "--resume_run")[0] == model


def test_predictions_are_those_of_one_process(place):
    learn("--multiclass", 30, "-b", 14, "--index_bits", 8, "-d", "part-0.vw", "-d", "part-1.vw", "-f", "m.bin")
    words = ["-t", "-i", "m.bin", "-d", "part-2.vw", "-d", "part-3.vw", "-d", "part-0.vw", "--top_k", 3]
    one = learn(*words, "-p", "one.txt", "-r", "one.raw").err
    (place / "die-2").touch()
    many = learn(*words, "-p", "many.txt", "-r", "many.raw", "--workers", 2).err
    assert not (place / "die-2").exists()
    assert Path("one.txt").read_bytes() == Path("many.txt").read_bytes()
    assert Path("one.raw").read_bytes() == Path("many.raw").read_bytes()

    def summary(text):
        lines = text[text.index("finished run") :].splitlines()
        return [line for line in lines if not line.startswith(("seconds = ", "worker "))]

    assert summary(one) == summary(many)
    probabilities = ["-t", "-i", "m.bin", "-d", "part-2.vw", "--probabilities"]
    learn(*probabilities, "-p", "one.txt")
    learn(*probabilities, "-p", "many.txt", "--workers", 2)  # each predicts a range of the file
    assert Path("one.txt").read_bytes() == Path("many.txt").read_bytes()


def test_errors_name_the_place_and_the_worker(place):
    old = learned_alone()
    lines = Path("part-1.vw").read_text().splitlines()
    lines[120] = "1 2 3 4 5 |n a"
    Path("part-1.vw").write_text("\n".join(lines))
    result = xclass(*WORDS, "-d", "part-*.vw", "--workers", 2, "-f", "many.bin")
    assert result.status == 1
    assert re.search(r"^xclass: part-1\.vw:121:.*\(worker 2, process \d+ on \S+\)$", result.err, re.MULTILINE)
    assert "many.bin.interrupted" in result.err
    result = xclass(*WORDS, "-d", "part-0.vw", "-d", "nothing.vw", "--workers", 2, "-f", "many.bin")
    assert (result.status, bool(re.search(r"nothing\.vw: there is no such file.*\(worker 2,", result.err))) == (1, True)
    result = xclass("-t", "-i", "many.bin", "-d", "part-0.vw", "-d", "nothing.vw", "--workers", 2)
    assert (result.status, bool(re.search(r"nothing\.vw: there is no such file.*\(worker 2,", result.err))) == (1, True)
    assert Path("many.bin").read_bytes() == old


def test_what_was_merged_is_saved_if_a_class_is_one_too_many(place):
    Path("first.vw").write_text("".join(f"c{i % 5} | w{i % 5}\n" for i in range(120)))
    Path("second.vw").write_text("".join(f"c{4 + i % 5} | w{4 + i % 5}\n" for i in range(60)))
    words = ["--oaa", 7, "-b", 12, "--learn_names", "--sync_every", 60, "--workers", 2]
    result = xclass(*words, "-d", "first.vw", "-d", "second.vw", "-f", "m.bin")
    assert result.status == 1
    assert "second.vw: 'c7' is class number 8 of the data, and --oaa 7 allows 7" in result.err
    with load("m.bin.interrupted") as model:
        assert list(model.classes) == [f"c{i}" for i in range(5)]
        assert model.examples > 100
        assert model.predict_many([f"| w{i}" for i in range(5)]).tolist() == [f"c{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--oaa", 30, "-p", "x.txt"], "--predictions cannot be combined with --workers: predictions are made while"),
        (["--oaa", 30, "--shuffle", 9], "--shuffle cannot be combined with --workers"),
        (["--oaa", 30, "--audit"], "--audit cannot be combined with --workers: it needs all examples in one process"),
        (["--oaa", 30, "-c"], "--cache cannot be combined with --workers: the workers keep no cache; leave it out"),
        (["--oaa", 30, "--vw_exact"], "--vw_exact cannot be combined with --workers"),
        (["--oaa", 30, "--resume_run"], "give -f MODEL"),
        (["--oaa", 30, "--resume_run", "-f", "m", "--passes", 2], "that saves the model of its best pass"),
        (["--oaa", 30, "-t"], "--sync_every cannot be combined with -t and --workers: with -t nothing is learned"),
    ],
)
def test_what_cannot_be_averaged_is_refused(words, message):
    result = xclass(*words, "-d", "part-0.vw", "--workers", 2, "--sync_every", 9)
    assert result.status == 2
    assert message in result.err


@pytest.mark.parametrize("reduction", [["--plt", 4], ["--multilabel"]])
def test_lists_with_listed_names_are_averaged_and_counted_once(reduction, inline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["cold | ice\n", "tea,hot | leaf boil\n", "cake | dough\n", "hot,cake | boil dough\n"] * 40
    (tmp_path / "a.vw").write_text("".join(lines))
    (tmp_path / "b.vw").write_text("".join(reversed(lines)))
    words = [*reduction, "--named_labels", "tea,hot,cake,cold", "-b", 10, "--passes", 2, "--holdout_off"]
    learn(*words, "-d", "a.vw", "-d", "b.vw", "--workers", 2, "--sync_every", 60, "-f", "m")
    assert model_file.load("m").arrays["label_counts"].tolist() == [80, 160, 160, 80, 320]
    learn("-t", "-i", "m", "-d", "a.vw", "-p", "p", "--quiet")
    assert (tmp_path / "p").read_text().split()[:4] == ["cold", "tea,hot", "cake", "hot,cake"]


@pytest.mark.parametrize("options", [(), ("--plt_tree", "kmeans", "--tree_sample", 20)])
def test_labels_that_several_workers_meet_enter_one_tree(options, inline, tmp_path, monkeypatch):
    """An example waits while the tree lacks one of its labels; the summary counts those that the driver learns, too."""
    monkeypatch.chdir(tmp_path)
    lists = [f"{y},{(y * y + 3) % 40} | w{y}\n" for y in range(40)]
    (tmp_path / "a.vw").write_text("".join(lists[:25] * 4))
    (tmp_path / "b.vw").write_text("".join(lists[15:] * 4))
    words = ["--plt", *options, "-b", 12, "-d", "a.vw", "-d", "b.vw"]
    said = learn(*words, "--workers", 2, "--sync_every", 30, "-f", "m").err
    assert "number of examples = 200" in said and "leaves = 40" in said
    loss, best = (float(re.search(rf"{name} = ([\d.]+)", said)[1]) for name in ("average loss", "precision at 1, 3, 5"))
    assert loss == pytest.approx(1 - best, abs=1e-5)
    assert model_file.load("m").arrays["label_counts"][-1] == 200
    tested = learn("-t", "-i", "m", "-d", "a.vw", "-d", "b.vw").err
    assert float(re.search(r"precision at 1, 3, 5 = ([\d.]+)", tested)[1]) > 0.95


def test_a_full_object_store_is_an_error_that_says_so(place):
    """Fill the object store of another Ray, which has no disk to spill to, and run there; the old model stays."""
    old = learned_alone()
    body = (
        "import numpy as np, ray\n"
        "ray.init('local', num_cpus=2, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=False,\n"
        "    _system_config={'local_fs_capacity_threshold': 0.001, 'automatic_object_spilling_enabled': False})\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(ray.put(np.zeros(2 << 20, np.uint8)))\n"
        "except ray.exceptions.OutOfDiskError: pass\n"
        "from xclass.cli import command\ncommand.main()"
    )
    lines = (f"{i % 30 + 1} | " + " ".join(f"u{i}_{j}" for j in range(50)) for i in range(400))
    Path("large.vw").write_text("\n".join(lines) + "\n")  # the model has megabytes
    words = ["--oaa", "30", "-b", "20", "--sync_every", "100", "-d", "large.vw", "--workers", "2", "-f", "many.bin"]
    result = subprocess.run([sys.executable, "-c", body, *words], capture_output=True, text=True, timeout=100)
    assert result.returncode == 1, result.stderr
    assert "xclass: the object store of the cluster is full" in result.stderr
    assert Path("many.bin").read_bytes() == old
