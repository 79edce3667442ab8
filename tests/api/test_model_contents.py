"""What a run takes from a model of unknown origin, and that nothing learned is lost when a model is saved."""

import json
import os
import re

import numpy as np
import pytest
from command import learn, xclass

from xclass.api import model_contents, progress
from xclass.api.learner import Learner, load
from xclass.api.progress import VW_COUNTS, VW_SUMS
from xclass.data.schema import Column, Schema
from xclass.errors import ModelError
from xclass.model import model_file
from xclass.run.report import console

TEXT = "".join(f"c{i % 5} | w{i % 5} v{i % 7}\n" for i in range(60))


def edited(path, source, options=None, facts=None, arrays=None, drop=()) -> str:
    """Write a copy of a model with other options, facts and arrays, whose checksums are right."""
    model = model_file.load(str(source))
    changed = {**model.options, **(options or {})}, {**model.facts, **(facts or {})}, {**model.arrays, **(arrays or {})}
    parts = [{name: value for name, value in part.items() if name not in drop} for part in changed]
    model_file.save(path, options=parts[0], facts=parts[1], arrays=parts[2])
    return str(path)


@pytest.fixture(scope="module")
def named(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("named")
    with Learner("cpt", 5, bits=10, learn_names=True) as model:
        model.learn_many(TEXT)
        model.save(str(folder / "m"))
    return str(folder / "m")


# -- options that belong to a run


@pytest.mark.parametrize(
    "field",
    ["predictions", "raw_predictions", "final_regressor", "save_tree", "print_tree", "dot_tree", "readable_model",
     "invert_hash", "cache_file", "calibration", "data", "initial_regressor"],
)  # fmt: skip
def test_no_file_is_named_by_a_model(tmp_path, named, field):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    value = [str(victim)] if field == "data" else str(victim)
    edited(tmp_path / "evil", named, {field: value, "named_labels": None})
    result = xclass("-t", "-i", "evil", stdin=TEXT, cwd=tmp_path)
    assert result.status == 1
    assert "which belongs to a run and not to a model" in result.err
    assert victim.read_text() == "precious\n"
    assert sorted(os.listdir(tmp_path)) == ["evil", "victim"]


# -- counters


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"learner": []}, "evil: the fact 'learner' is [], and has to be an object"),
        ({"examples": 2**63 - 1}, f"evil: the fact 'examples' is {2**63 - 1}, and has to be a whole number from 0 to"),
        ({"examples": -1}, "evil: the fact 'examples' is -1, and has to be a whole number from 0 to 2**62"),
        ({"examples": True}, "evil: the fact 'examples' is True, and has to be a whole number from 0 to 2**62"),
        ({"examples": 2.5}, "evil: the fact 'examples' is 2.5, and has to be a whole number from 0 to 2**62"),
        ({"clock": "x"}, "evil: the fact 'clock' is 'x', and has to be a number"),
        ({"clock": None}, "evil: the fact 'clock' is None, and has to be a number"),
        ({"counters": []}, "evil: the fact 'counters' is [], and has to be an object of features, label_sum"),
        ({"warp": 1}, "evil: it holds a fact 'warp', which this xclass does not know"),
    ],
)
def test_counters_are_checked(tmp_path, named, facts, message):
    path = edited(tmp_path / "evil", named, facts=facts)
    with pytest.raises(ModelError, match="^" + re.escape(f"{tmp_path}/{message}")):
        load(path)


@pytest.mark.parametrize("name", ["learner", "examples", "clock", "counters"])
def test_missing_counters_are_named(tmp_path, named, name):
    path = edited(tmp_path / "evil", named, drop=(name,))
    with pytest.raises(ModelError, match=f"it does not hold the fact '{name}'"):
        model_contents.load(path)


def test_counters_of_earlier_runs_are_checked(tmp_path, named):
    counters = model_file.load(named).facts["counters"]
    for change in ({"features": -1}, {"loss_sum": "x"}, {"loss_sum": 1.0}, {"label_sum": None}, {"more": "1"}):
        path = edited(tmp_path / "evil", named, facts={"counters": {**counters, **change}})
        with pytest.raises(ModelError, match="the fact 'counters"):
            model_contents.load(path)
    vw = {"t": "1.0", **dict.fromkeys(VW_SUMS, "0.0"), **dict.fromkeys(VW_COUNTS, 1)}
    changes = {"t": "x"}, {"t": 1.0}, {"sum_loss": None}, {"example_number": -1}, {"current_pass": "1"}, {"x": 1}
    without_t = {name: value for name, value in vw.items() if name != "t"}
    for more in (*({**vw, **change} for change in changes), [], {}, without_t):
        path = edited(tmp_path / "evil", named, facts={"counters": {**counters, "vw": more}})
        with pytest.raises(ModelError, match=r"the fact 'counters\.vw"):
            model_contents.load(path)
    path = edited(tmp_path / "good", named, facts={"counters": {**counters, "vw": vw}})
    assert model_contents.load(path).counters["vw"] == vw
    path = edited(tmp_path / "good", named, facts={"counters": {**counters, "loss_sum": "inf"}})
    assert model_contents.load(path).counters["loss_sum"] == "inf"


# -- names of classes


def test_more_names_than_a_header_holds(tmp_path):
    names = [f"label_number_{i:030}" for i in range(30_000)]
    path = str(tmp_path / "m")
    with Learner("random_tree", 30_000, bits=10, learn_names=True) as model:
        model.learn_many(f"{name} | a{i % 50}" for i, name in enumerate(names))
        model.save(path)
    with load(path) as model:
        assert model.classes == names
        assert model.predict_many("| a1")[0] in names


def test_names_as_an_option_are_refused(tmp_path, named):
    evil = edited(tmp_path / "evil", named, {"named_labels": "a,b"}, drop=("class_names",))
    with pytest.raises(ModelError, match="it holds the names of its classes as an option"):
        load(evil)


@pytest.mark.parametrize(
    ("letters", "message"),
    [
        (np.frombuffer(b"a,\x1b[2J,c", np.uint8), "holds control characters"),
        (np.frombuffer(b"a,a,b,c,d", np.uint8), "lists 'a' twice"),
        (np.zeros(0, np.uint8), r"is uint8\[0\], and has to be uint8\[any\]"),
        (np.zeros((2, 2), np.uint8), r"is uint8\[2, 2\], and has to be uint8\[any\]"),
        (np.zeros(3, np.int64), r"is int64\[3\], and has to be uint8\[any\]"),
    ],
)
def test_names_are_checked(tmp_path, named, letters, message):
    path = edited(tmp_path / "evil", named, arrays={"class_names": letters})
    with pytest.raises(ModelError, match=message):
        load(path)


# -- nothing learned is lost


@pytest.mark.parametrize("exact", [(), ("--vw_exact",)])
def test_weights_that_are_infinite_end_with_a_model(tmp_path, exact):
    text = "1 | a\n1 inf | a b\n1 | c\n2 | d\n"
    for more in ((), ("--quiet",), ("-P", "1")):
        words = ("--oaa", 2, "-b", 12, "--on_bad_line", "vw", *exact)
        learn(*words, "-f", "m", *more, stdin=text, cwd=tmp_path)
        # Vowpal Wabbit counts the infinite weight; without --vw_exact the example is not learned from.
        assert model_contents.load(str(tmp_path / "m")).clock == (np.inf if exact else 3.0)
        for going_on in ((), ("--preserve_performance_counters", "-P", "1"), ("--quiet",)):
            learn("-i", "m", "-f", "n", *exact, *going_on, stdin=text[:6], cwd=tmp_path)


STATUS = [(ValueError, 70), (KeyError, 70), (MemoryError, 1), (OSError, 1)]
LEARN = ("-d", "d", "--oaa", 5, "-b", 10, "--learn_names", "-f", "m")


def raising(error, when=lambda *args: True, otherwise=None):
    """Return a function that raises an error when its arguments are so, and else calls another one."""

    def broken(*args, **more):
        if when(*args):
            raise error("nobody expected this")
        return otherwise(*args, **more)

    return broken


@pytest.mark.parametrize(("error", "status"), STATUS)
def test_a_summary_that_fails_costs_no_model(place, monkeypatch, error, status):
    (place / "d").write_text(TEXT)
    monkeypatch.setattr(console, "summary", raising(error))
    result = xclass(*LEARN)
    assert result.status == status
    assert ("Traceback" in result.err) == ("please report it" in result.err) == (status == 70)
    assert "nobody expected this" in result.err
    learn("-t", "-i", "m", "--quiet", stdin=TEXT)


@pytest.mark.parametrize(("error", "status"), [(ValueError, 70), (MemoryError, 1)])
def test_an_error_in_the_middle_leaves_what_was_learned(place, monkeypatch, error, status):
    (place / "d").write_text(TEXT * 9)
    with monkeypatch.context() as patch:
        patch.setattr(progress.Progress, "end_pass", raising(error))
        result = xclass(*LEARN)
    assert result.status == status
    assert "nobody expected this" in result.err
    assert f"what was learned from {60 * 9} examples is in m.interrupted; m was not written" in result.err
    learn("-t", "-i", "m.interrupted", stdin=TEXT)


@pytest.mark.parametrize(("error", "status"), [(ValueError, 70), (ModelError, 1)])
def test_a_model_that_cannot_be_saved_is_saved_beside(place, monkeypatch, error, status):
    (place / "d").write_text(TEXT)
    save = model_file.save
    monkeypatch.setattr(model_file, "save", raising(error, lambda path: str(path).endswith("m"), save))
    result = xclass(*LEARN, "--summary", "s")
    assert result.status == status
    assert json.loads((place / "s").read_text())["status"] == "failed"
    assert "nobody expected this" in result.err
    assert "what was learned is in m.interrupted" in result.err
    assert ("Traceback" in result.err) == (status == 70)
    learn("-t", "-i", "m.interrupted", stdin=TEXT)
    monkeypatch.setattr(model_file, "save", raising(error))
    result = xclass(*LEARN)
    assert result.status == status
    assert "what was learned is lost: nobody expected this" in result.err


# -- resuming with other rates


@pytest.mark.parametrize("reduction", [("--oaa", 5), ("--recall_tree", 5), ("--log_multi", 5), ("--ect", 5)])
def test_resuming_with_another_learning_rate(tmp_path, reduction):
    words = (*reduction, "-b", 12, "--learn_names")
    learn(*words, "-f", "m", stdin=TEXT, cwd=tmp_path)
    power = () if "--log_multi" in reduction else ("--power_t", 0.4)  # its routers have none
    result = learn("-i", "m", "-l", 0.1, *power, "-f", "n", stdin=TEXT, cwd=tmp_path)
    assert "continuing with --learning_rate 0.1; m was trained with --learning_rate " in result.err
    assert ("continuing with --power_t 0.4; m was trained with --power_t 0.5\n" in result.err) == bool(power)
    options = model_contents.load(str(tmp_path / "n")).options
    assert (options["learning_rate"], options["power_t"]) == (0.1, 0.4 if power else 0.5)
    learn("-i", "m", "-f", "o", stdin=TEXT, cwd=tmp_path)
    first, second = (model_file.load(str(tmp_path / name)).arrays for name in "no")
    assert any(not np.array_equal(first[name], second[name]) for name in first)
    result = xclass("-t", "-i", "m", "-l", 0.1, stdin=TEXT, cwd=tmp_path)
    assert (result.status, "disagrees with m" in result.err) == (2, True)


@pytest.mark.parametrize("reduction", [(), ("--oaa", 5), ("--ect", 5, "--layout", "vw")])
def test_resuming_with_and_without_regularisation(tmp_path, reduction):
    """What regularisation has done to the weights stays; only what comes later is learned without."""
    words = (*reduction, "-b", 12, *(("--learn_names",) if reduction else ()))
    text = TEXT if reduction else TEXT.replace("c", "")
    plain, shrunk = (*words, "-f", "plain"), (*words, "--l1", 1e-3, "--l2", 1e-4, "-f", "shrunk")
    learn(*plain, stdin=text, cwd=tmp_path)
    learn(*shrunk, stdin=text, cwd=tmp_path)
    learn("-i", "plain", "--l1", 1e-3, "-f", "a", stdin=text, cwd=tmp_path)
    learn("-i", "shrunk", "--l1", 0, "--l2", 0, "-f", "b", stdin=text, cwd=tmp_path)
    counters = {
        name: [array for array in model_file.load(str(tmp_path / name)).arrays if array.endswith("shrunk")]
        for name in "ab"
    }
    assert counters["a"] and not counters["b"]
    first = text.splitlines(keepends=True)[0]
    outputs = []
    for words in (("-t",), ("--l1", 0, "--l2", 0)):  # predicted before anything is learned without regularisation
        learn("-i", "shrunk", *words, "-p", "p", "-r", "r", stdin=first, cwd=tmp_path)
        outputs.append(re.findall(r"[-.\w]+", (tmp_path / "p").read_text() + (tmp_path / "r").read_text()))
    for one, other in zip(*outputs, strict=True):
        assert one == other or abs(float(one) - float(other)) < 1e-5  # weights are rounded once more without
    assert outputs[0]


# -- the schema of columns


def test_a_model_keeps_the_schema_of_its_columns_and_checks_that_of_a_stranger(tmp_path, named):
    with load(named) as model:
        model.core.schema.adopt([Column("a", "number"), Column("b", "text")], "y", "the table")
        model.save(str(tmp_path / "m"))
        expected = model.core.schema.copy()
    with load(str(tmp_path / "m")) as model:
        assert model.core.schema == expected
    assert xclass("shrink", "m", "-f", "s", cwd=tmp_path).status == 0
    assert model_contents.load(str(tmp_path / "s")).schema == expected
    for content in (np.zeros(3, np.int64), np.zeros((1, 2), np.uint8), np.zeros(0, np.uint8), np.zeros(5, np.uint8)):
        with pytest.raises(ModelError, match="schema"):
            load(edited(tmp_path / "evil", tmp_path / "m", arrays={"schema": content}))


def test_models_of_other_columns_are_not_merged(tmp_path, named):
    for name, kind in (("m1", "number"), ("m2", "number"), ("m3", "text")):
        with load(named) as model:
            model.core.schema.adopt([Column("a", kind)], "y", "the table")
            model.learn_many(f"c1 | {name}")
            model.save(str(tmp_path / name))
    assert xclass("merge", "m1", "m2", "-f", "m", cwd=tmp_path).status == 0
    assert model_contents.load(str(tmp_path / "m")).schema == Schema([Column("a", "number")], "y")
    refused = xclass("merge", "m1", "m3", "-f", "m", cwd=tmp_path)
    assert refused.status == 1
    assert "'a' is a column of kind number in m1 and a column of kind text in m3" in refused.err
