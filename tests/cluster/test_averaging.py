"""Averages of parts: the result depends on the data, the options and the number of parts alone."""

import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command import learn
from hypothesis import given
from hypothesis import strategies as st
from streams import multiclass

import xclass
from xclass import merging
from xclass.api import model_contents
from xclass.cli import arguments
from xclass.cli import command as cli
from xclass.cli.declared import resolved
from xclass.cluster import delta, round_length, shards
from xclass.cluster.averaging import Averaging
from xclass.cluster.part_learner import PartLearner
from xclass.errors import DataError
from xclass.kernels import jit

CASES = {
    "scalar": [],
    "oaa": ["--oaa", "30", "-b", "12"],
    "names": ["--oaa", "30", "-b", "12", "--learn_names"],
    "cpt": ["--cpt", "30", "-b", "14"],
    "multiclass": ["--multiclass", "30", "-b", "14", "--index_bits", "8", "--learn_names", "--passes", "2"],
    "plt": ["--plt", "-b", "14"],
}

UNTAGGED = {
    "sgd": ["--oaa", "30", "-b", "12", "--sgd"],
    "l1": ["--oaa", "30", "-b", "12", "--l1", "1e-4"],
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


def begun(words, data, parts=3, workers=3, forgetful=False):
    """Averaging in this process; if it is forgetful, every part of every round has a new worker."""
    jit.activate()
    config = config_of([*words, "--workers", str(parts), "--sync_every", "40"])
    every = [PartLearner(number, ".", config) for number in range(1, workers + 1)]

    def execute(model, works):
        for work in reversed(works) if forgetful else works:  # the order does not matter
            worker = PartLearner(9, ".", config) if forgetful else every[work.part.number % workers]
            results[work.part.number] = read_only(worker.learn(read_only(model), work))
        return iter([results[work.part.number] for work in works])

    results = {}
    return Averaging(config, shards.deal(shards.PartFiles(data, shards.sizes_of(data), True), parts), execute, None)


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
    added = sum(len(round_.added) for round_ in rounds)
    assert (waited > 0) == (added > 0) == (case in ("names", "cpt", "multiclass", "plt"))


@pytest.mark.parametrize("case", ["oaa", pytest.param("multiclass", marks=pytest.mark.slow), "sgd", "l1"])
def test_merging_the_changes_of_tables_gives_what_merging_the_tables_gives(data, case, monkeypatch):
    words = {**CASES, **UNTAGGED}[case]
    if case == "scalar":
        data = [_with_numbers(path) for path in data]
    model, _ = averaged(words, data)
    monkeypatch.setattr(delta, "MERGED", ())
    assert model == averaged(words, data)[0]


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


def test_a_model_that_was_not_merged_completely_is_not_used(data, monkeypatch):
    averaging = begun(CASES["oaa"], data)
    rounds = averaging.rounds_of_pass()
    next(rounds)
    before = averaging.cursors.copy()
    with monkeypatch.context() as patch:
        patch.setattr(merging, "merged_parts", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            next(rounds)
    assert averaging.damaged
    assert (averaging.cursors, averaging.rounds) == (before, 1)


def test_what_was_merged_is_kept_if_a_class_cannot_be_added(data):
    words = ["--oaa", "20", "-b", "12", "--learn_names"]
    averaging = begun(words, data)
    with pytest.raises(DataError, match=r"is class number 21 of the data, and --oaa 20 allows 20"):
        list(averaging.rounds_of_pass())
    assert not averaging.damaged
    with merging.restored(averaging.model) as learner:
        assert learner.examples > 40 and len(learner.names.names) == 20  # the first round had 40 examples


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_changes_of_arrays_are_restored(seed, sparse_before, sparse_after):
    random = np.random.default_rng(seed)

    def table(sparse, dense):
        if not sparse:
            return {"t.w": dense[0].copy(), "t.g": dense[1].copy()}
        index = np.flatnonzero(dense.any(axis=0)).astype(np.uint32)
        return {"t.index": index, "t.w": dense[0][index], "t.g": dense[1][index]}

    dense = random.integers(0, 3, (2, 40)).astype(np.float32)
    base = {**table(sparse_before, dense), "state": random.random((2, 3)), "t.state": np.arange(3)}
    changed = np.where(random.random((2, 40)) < 0.2, random.integers(0, 3, (2, 40)), dense).astype(np.float32)
    new = {**table(sparse_after, changed), "state": base["state"] + random.integers(0, 2), "t.state": np.arange(4)}
    encoded = delta.encode(new, base)
    decoded = delta.decode(encoded, base)
    assert decoded.keys() == new.keys()
    for name, array in new.items():
        np.testing.assert_array_equal(decoded[name], array)
        assert decoded[name].dtype == array.dtype
    assert delta.encode(base, base).nbytes == 0


def exchanged(sent, waiting=0, examples=1000, features=20_000):
    """Return what a round needs to know of two workers that have learned as many examples."""
    counts = SimpleNamespace(examples=examples, features=features)
    result = SimpleNamespace(counts=counts, cost=SimpleNamespace(sent=sent))
    return [SimpleNamespace(result=result, cursor=SimpleNamespace(waiting=range(waiting)))] * 2


@pytest.mark.parametrize(
    ("sent", "waiting", "expected"),
    [(10_000_000, 0, 2000), (10_000_000, 21, 1000), (0, 0, 1000), (833_333, 0, 1499), (400_000, 20, 1000)],
)
def test_the_next_round_is_as_long_as_the_exchange_asks_for(sent, waiting, expected):
    config = config_of(["--multiclass", "--workers", "2"])
    assert round_length.next_length(config, 1000, exchanged(sent, waiting)) == expected


def test_learners_of_all_classes_take_time_for_each():
    costs = [round_length.learning_cost(config_of(words), 10, 1000) for words in (["--oaa", "9"], ["--oaa", "9000"])]
    assert costs[0] < costs[1] / 10
