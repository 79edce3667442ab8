"""Runs and programs that only predict with packed tables: all results are those of tables with all of their lanes."""

import json

import numpy as np
import pytest
from command import learn, xclass
from streams import multiclass

from xclass import UsageError, load
from xclass.abilities.describe.cpt import word_tables
from xclass.api import configuration, model_contents
from xclass.api.learner import Learner
from xclass.api.learner_core import LearnerCore
from xclass.kernels import used_items
from xclass.model import model_file
from xclass.reductions.core.spec import LearnerUse

TEXT = multiclass(51, 20, 500, weights=(1, 0.5, 2))
TEST = multiclass(52, 20, 120, unlabelled=0.1)
MODELS = {
    "default": ("--multiclass",),
    "tree": ("--cpt", 20),
    "wide": ("--cpt", 20, "--cpt_arity", 16, "--trees", 2),
    "without an index": ("--cpt", 20, "--rerank", "--index_slots", 0, "--normalize_features", "columns"),
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with the data, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text(TEXT)
    (tmp_path / "test").write_text(TEST)
    return tmp_path


@pytest.fixture
def whole_tables(monkeypatch):
    """A function after which no table is packed."""
    return lambda: monkeypatch.setattr(used_items, "FEW", 2**40)


def made(name: str, *more) -> None:
    """Learn the model `m`."""
    learn("-d", "train", "-b", 18, *MODELS[name], *more, "-f", "m", "--quiet")


def tables(model: Learner) -> list:
    return [*word_tables(model.core.reduction).values()]


def of_test_run() -> Learner:
    """The learner of the model `m`, as a run with -t makes it."""
    contents = model_contents.load("m")
    use = LearnerUse(loaded=True, testing=True, weights_only=True)
    return Learner.of(LearnerCore(configuration.of_model("m", contents.options, use=use), contents))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "without an index"])
def test_results_are_those_of_tables_that_are_not_packed(place, whole_tables, name):
    made(name)
    with of_test_run() as model:
        assert all(len(words.lines.bitmap) and np.count_nonzero(words.word) for words in tables(model))
    results = []
    for packed in (True, False):
        if not packed:
            whole_tables()
        with of_test_run() as model:
            assert all(bool(len(words.lines.bitmap)) is packed for words in tables(model))
        shown = []
        for more in ([], ["--top_k", 3, "-r", "r"], ["--probabilities"], ["--explain", 2]):
            result = learn("-t", "-i", "m", "-d", "test", "-p", "p", "--threads", 2, *more)
            lines = [line for line in result.err.splitlines() if " = " in line and "second" not in line]
            shown.append((result.out, lines, (place / "p").read_text()))
        shown.append((place / "r").read_text())
        results.append(shown)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["default", "wide"])
@pytest.mark.parametrize("how", ["--predict_only_model", "shrink"])
def test_models_that_only_predict_are_packed_and_saved_and_shown_as_before(place, whole_tables, name, how):
    made(name, *(["--predict_only_model"] if how != "shrink" else []))
    if how == "shrink":
        learn("shrink", "m", "-f", "small", "--bits", 16, "--quiet")
        (place / "small").replace("m")
    results = []
    for packed in (True, False):
        if not packed:
            whole_tables()
        with load("m") as model:
            assert all(bool(len(words.lines.bitmap)) is packed for words in tables(model))
            prediction = model.predict_many(TEST).tolist()
            explained = json.dumps(model.explain(TEST.splitlines()[0]), default=str)
            with pytest.raises(UsageError, match="predict_only_model"):
                model.learn_many(TEST)
            used = [words.state.tolist() for words in tables(model)]
            model.save("again")
        learn("-t", "-i", "m", "-d", "test", "-f", "tested", "--quiet")
        results.append(
            (prediction, explained, used, {file: (place / file).read_bytes() for file in ("again", "tested")})
        )
    assert results[0][:-1] == results[1][:-1]
    assert [file for file, content in results[0][-1].items() if content != results[1][-1][file]] == []
    assert results[0][-1]["again"] == (place / "m").read_bytes() or how == "shrink"


def test_a_table_larger_than_the_memory_predicts_if_it_is_packed(place, monkeypatch):
    learn("-d", "train", "--multiclass", "-b", 22, "-f", "m", "--quiet", "-p", "before")
    learn("-t", "-i", "m", "-d", "test", "-p", "want", "--quiet")
    monkeypatch.setattr("xclass.system.memory.available", lambda: 40 << 20)
    assert "-b 22 needs 72 MB for the weights" in xclass("-i", "m", "-d", "test", "--quiet").err
    learn("-t", "-i", "m", "-d", "test", "-p", "got", "--quiet")
    assert (place / "got").read_bytes() == (place / "want").read_bytes()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("table", ["weights.0", "weights.1", "scorers", "index", "frequencies"])
@pytest.mark.parametrize("index", [[7, 7], [9, 8], [2**32 - 1]], ids=["twice", "falling", "outside"])
def test_model_files_with_positions_that_cannot_be_are_refused(place, table, index):
    made("default")
    options, facts, arrays = model_file.load("m")
    wrong = np.array(arrays[f"{table}.index"])
    wrong[-len(index) :] = index
    arrays = {**{name: np.array(array) for name, array in arrays.items()}, f"{table}.index": wrong}
    model_file.save("m", options=options, facts=facts, arrays=arrays)
    result = xclass("-t", "-i", "m", "-d", "test", "--quiet")
    assert result.status == 1 and f"{table}.index" in result.err and "Traceback" not in result.err
