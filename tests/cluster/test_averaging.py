"""Averages of parts: the result depends on the data, the options and the number of parts alone."""

import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command import learn
from streams import multiclass

import xclass
from xclass import merging
from xclass.api import model_contents
from xclass.cli import arguments
from xclass.cli import command as cli
from xclass.cli.declared import resolved
from xclass.cluster import round_length, shards
from xclass.cluster.averaging import Averaging
from xclass.cluster.part_learner import PartLearner
from xclass.errors import DataError
from xclass.kernels import jit

CASES = {
    "scalar": [],
    "sgd": ["--oaa", "30", "-b", "12", "--sgd"],
    "l1": ["--oaa", "30", "-b", "12", "--l1", "1e-4"],
    "oaa": ["--oaa", "30", "-b", "12"],
    "names": ["--oaa", "30", "-b", "12", "--learn_names"],
    "cpt": ["--cpt", "30", "-b", "14"],
    "multiclass": ["--multiclass", "30", "-b", "14", "--index_bits", "8", "--learn_names", "--passes", "2"],
    "plt": ["--plt", "-b", "14"],
}


def config_of(words):
    groups, reductions = cli.option_groups()
    typed = arguments.read(groups, reductions, words)
    return resolved(typed, None)


def read_only(value):
    """Return a copy whose arrays cannot be written, as Ray passes it."""
    buffers = []
    stored = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(stored, buffers=[bytes(buffer) for buffer in buffers])


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Four files, the later ones with classes that the earlier ones do not have."""
    monkeypatch.chdir(tmp_path)
    for k, classes in enumerate((12, 18, 30, 30)):
        (tmp_path / f"{k}.vw").write_text(multiclass(k, classes, 150, tags=True, weights=(1, 2), unlabelled=0.05))
    return [f"{k}.vw" for k in range(4)]


class Crew:
    """Workers in this process; if they are forgetful, every call has a new one."""

    def __init__(self, config, count, forgetful):
        self.config, self.forgetful = config, forgetful
        self.every = [PartLearner(number, ".", config) for number in range(1, count + 1)]

    def call(self, method, number, *arguments):
        worker = PartLearner(9, ".", self.config) if self.forgetful else self.every[number % len(self.every)]
        return read_only(getattr(worker, method)(*read_only(arguments)))

    def learn(self, state, works, changes):
        found = {}
        order = [*enumerate(works)]
        for k, work in order[::-1] if self.forgetful else order:  # the order does not matter
            found[k] = self.call("learn", work.part.number, state, work, k, len(works), *changes)
        return [found[k][0] for k in range(len(works))], [found[k][1:] for k in range(len(works))]

    def merge(self, base, facts, models):
        found = [
            self.call("merge", k, own, facts, *several)
            for k, (own, several) in enumerate(zip(base, models, strict=True))
        ]
        return [changes for _, changes in found], [report for report, _ in found]

    def contents(self, *arguments):
        state, passes_ended, changes = arguments
        return self.call("contents", 0, state, passes_ended, *changes)


def begun(words, data, parts=3, workers=3, forgetful=False):
    """Averaging in this process."""
    jit.activate()
    config = config_of([*words, "--workers", str(parts), "--sync_every", "40"])
    dealt = shards.deal(shards.PartFiles(data, shards.sizes_of(data), True), parts)
    return Averaging(config, dealt, Crew(config, workers, forgetful), None)


def averaged(words, data, **more):
    """Average in this process as `begun` says; return the bytes of the model and its rounds."""
    averaging, rounds = begun(words, data, **more), []
    for _ in range(config_of(words).passes.passes):
        rounds += averaging.rounds_of_pass()
        averaging.end_pass()
    return model_contents.to_bytes(averaging.model), rounds


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in ("cpt", "multiclass") else case for case in CASES]
)
def test_the_result_does_not_depend_on_who_learns_what(data, case):
    words = CASES[case]
    if case == "scalar":
        data = [_with_numbers(path) for path in data]
    if case == "plt":
        data = [_with_lists(path) for path in data]
    model, rounds = averaged(words, data)
    assert model == averaged(words, data, workers=2)[0] == averaged(words, data, forgetful=True)[0]
    assert (rounds[0].learned[0].result.counts.holdout is not None) == ("--passes" in words)
    learn(*words, "--keep_last", *(word for path in data for word in ("-d", path)), "-f", "one.bin")
    with xclass.load("one.bin") as one:
        # with several passes, parts count lines anew and hold out others
        assert "--passes" in words or model_contents.from_bytes(model).examples == one.examples
    waited = sum(len(one.cursor.waiting) for round_ in rounds for one in round_.learned)
    assert (waited > 0) == (case in ("names", "cpt", "multiclass", "plt"))


def _with_numbers(path):
    """Return a file with the labels of another as numbers from 0 to 1."""
    lines = []
    for line in Path(path).read_text().splitlines():
        label, bar, features = line.partition("|")
        words = label.split()
        number = words[0] if words and words[0].isdigit() else ""
        lines.append((f"{int(number) / 30:.3f} " if number else "") + bar + features)
    Path(path + ".numbers").write_text("\n".join(lines) + "\n")
    return path + ".numbers"


def _with_lists(path):
    """Return a file with two labels for each one of another, of which the second is new before or after the first."""
    lines = []
    for line in Path(path).read_text().splitlines():
        label, rest = re.fullmatch(r"(\d*)(.*)", line).groups()
        lines.append(f"{label},{31 - int(label)}{rest}" if label else rest)
    Path(path + ".lists").write_text("\n".join(lines) + "\n")
    return path + ".lists"


@pytest.mark.parametrize("case", ["oaa", "names", pytest.param("cpt", marks=pytest.mark.slow)])
def test_a_single_part_is_learned_as_in_one_process(data, case):
    model, rounds = averaged(CASES[case], data, parts=1, workers=1)
    assert len(rounds) > 5
    learn(*CASES[case], *(word for path in data for word in ("-d", path)), "-f", "one.bin")
    with open("one.bin", "rb") as file:
        one = model_contents.from_bytes(file.read())
    many = model_contents.from_bytes(model)
    assert (one.examples, one.clock, one.options, one.learner) == (
        many.examples,
        many.clock,
        many.options,
        many.learner,
    )
    for name, array in one.arrays.items():
        assert np.asarray(array).tobytes() == np.asarray(many.arrays[name]).tobytes(), name


def test_averages_are_better_than_a_part(data, tmp_path):
    lines = multiclass(7, 12, 1200).splitlines()
    (tmp_path / "all.vw").write_text("\n".join(lines[:900]) + "\n")
    (tmp_path / "test.vw").write_text("\n".join(lines[900:]) + "\n")
    (tmp_path / "part.vw").write_text("\n".join(lines[:60]) + "\n")
    model, _ = averaged(["--oaa", "12", "-b", "14"], [str(tmp_path / "all.vw")])
    (tmp_path / "many.bin").write_bytes(model)
    learn("--oaa", 12, "-b", 14, "-d", "part.vw", "-f", "part.bin")
    errors = []
    for name in ("many.bin", "part.bin"):
        with xclass.load(name) as learner:
            errors.append(learner.evaluate("test.vw")["average_loss"])
    assert errors[0] <= errors[1]


def test_what_was_merged_is_kept_if_a_class_cannot_be_added(data):
    words = ["--oaa", "20", "-b", "12", "--learn_names"]
    averaging = begun(words, data)
    with pytest.raises(DataError, match=r"is class number 21 of the data, and --oaa 20 allows 20"):
        list(averaging.rounds_of_pass())
    with merging.restored(averaging.model) as learner:
        assert learner.examples > 40 and len(learner.names.names) < 20  # the first round had 40 examples


def exchanged(sent, waiting=0, examples=1000, features=20_000):
    """Return what a round needs to know of two workers that have learned as many examples."""
    counts = SimpleNamespace(examples=examples, features=features)
    result = SimpleNamespace(counts=counts, cost=SimpleNamespace(sent=sent))
    return [SimpleNamespace(result=result, cursor=SimpleNamespace(waiting=range(waiting)))] * 2


@pytest.mark.parametrize(
    ("sent", "waiting", "expected"),
    [(10_000_000, 0, 2000), (10_000_000, 101, 1000), (0, 0, 1000), (833_333, 0, 1499), (400_000, 20, 1000)],
)
def test_the_next_round_is_as_long_as_the_exchange_asks_for(sent, waiting, expected):
    config = config_of(["--multiclass", "--workers", "2"])
    assert round_length.next_length(config, 1000, exchanged(sent, waiting)) == expected


@pytest.mark.parametrize("words", [["--oaa", "3"], ["--sgd"], ["--multiclass"]])
def test_rounds_without_features_grow(words):  # of lines that only have a label, with --noconstant
    assert round_length.next_length(config_of([*words, "--workers", "2"]), 1000, exchanged(10**7, features=0)) == 2000


def test_learners_of_all_classes_take_time_for_each():
    costs = [round_length.learning_cost(config_of(words), 10, 1000) for words in (["--oaa", "9"], ["--oaa", "9000"])]
    assert costs[0] < costs[1] / 10
