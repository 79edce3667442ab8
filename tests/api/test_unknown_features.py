"""Answers to examples of which no feature was learned say so, from every reduction and in every interface."""

import pickle
import random
import warnings

import numpy as np
import pytest
from command import xclass as run
from variants import BY_NAME, KINDS, learner

import xclass

SAID = "has no feature that the model has learned, so it gets the answer of an example without features"
CLASSES = 4


def lines(kind: str, space: str = "w", n: int = 400) -> list[str]:
    draw = random.Random(0)
    labels = {"multilabel": lambda y: f"{y},{y % CLASSES + 1}"}.get(kind, str)
    return [
        f"{labels(y)} |{space} class{y} {' '.join(draw.choices(WORDS, k=4))}"
        for y in (i % CLASSES + 1 for i in range(n))
    ]


WORDS = [f"word{i}" for i in range(30)]


def notes(call, *args, **more) -> list[str]:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        call(*args, **more)
    return [str(one.message) for one in issued]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "means"])
def test_every_reduction_says_it(name, tmp_path):
    with learner(name, bits=18) as model:
        model.learn_many(lines(KINDS[name]))
        model.end_pass()
        model.save(tmp_path / "m")
        for one in (model, xclass.load(tmp_path / "m")):
            assert any(SAID in note for note in notes(one.predict, "|x unheard of")), name
            for known in ("|w class1 unheard", "|w unheard class2", "|", "|w class1"):
                assert not notes(one.predict, known)
            assert [note[:35] for note in notes(one.predict_many, ["|x never", "|x unheard", "|w class1"])] == [
                "2 of the first 3 examples have no f"
            ]
            assert not notes(one.predict_many, ["|x never", "|w class2", "|w class1"])


def test_it_names_the_namespace_in_which_the_words_were_learned():
    model, of_texts = xclass.Learner(), xclass.Learner()
    model.learn_many(lines("multiclass"))
    of_texts.learn_many([line.partition("|w ")[2] for line in lines("multiclass")], [1, 2, 3, 4] * 100)
    cases = [
        (model, "class1 word3", "; it has learned these words in the namespace 'w': write `|w words of the text`"),
        (model, "|x class1 word3:2", "in the namespace 'w'"),
        (of_texts, "|x class1 word3", "without a namespace: write `| words of the text`"),
        (model, "neither nor", "without features"),
    ]
    for one, text, end in cases:
        *_, note = notes(one.predict, text)
        assert SAID in note and (end in note if end != "without features" else note.endswith(end)), text


def test_the_first_examples_of_a_stream_say_nothing():
    with xclass.Learner() as model:
        for line in lines("multiclass", n=40):
            model.learn(line)
            assert not notes(model.predict, "|x unheard")


def test_tasks_say_which_examples():
    with xclass.Learner() as model:
        model.learn_many(lines("multiclass"))
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for examples in (["|x never", "|w word1", "|"], ["|x never"], ["|w word1 never"]):
                found += model.predict_each(examples, lambda task: model.core.unknown_features.found.tolist())
    assert found == [[True, False, False], [True], [False]]


@pytest.mark.parametrize("options", [(), ("--recall_tree", CLASSES), ("--vw_exact", "--oaa", CLASSES)])
def test_a_run_says_it_once_at_its_end_or_after_the_first_examples(options, tmp_path):
    (tmp_path / "a.vw").write_text("\n".join(lines("multiclass")))
    (tmp_path / "b.vw").write_text("\n".join(lines("multiclass", space="other", n=600)))
    (tmp_path / "c.vw").write_text("\n".join(lines("multiclass", space="other", n=6)))
    assert not run(*options, "-d", "a.vw", "-f", "m", cwd=tmp_path).status
    for name, said in (("a.vw", 0), ("b.vw", 1), ("c.vw", 1)):
        ended = run("-t", "-i", "m", "-d", name, cwd=tmp_path)
        exact = ["--vw_exact"] * ("--vw_exact" in options)
        if exact:
            ended = run(*exact, "-t", "-i", "m", "-d", name, cwd=tmp_path)
        assert ended.err.count("no feature that the model has learned") == said * (not exact), ended.err


def test_files_and_estimators_say_it(tmp_path):
    sklearn = pytest.importorskip("xclass.sklearn")
    (tmp_path / "b.vw").write_text("\n".join(lines("multiclass", space="other", n=10)))
    with xclass.Learner() as model:
        model.learn_many(lines("multiclass"))
        assert notes(model.evaluate, tmp_path / "b.vw")[0].startswith("10 of the first 10 examples have no feature")
    texts, y = ["green tea", "black tea", "cold beer", "warm beer"] * 10, ["tea", "tea", "beer", "beer"] * 10
    fitted = sklearn.XClassifier().fit(texts, y)
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function):
        assert SAID in notes(call, ["sunshine"])[0]
        assert not notes(call, ["tea"])


def test_missing_rows_beside_features():
    rows = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    with xclass.Learner() as model:
        model.learn_many(rows, np.arange(100) % 3 + 1)
        assert not notes(model.predict_many, rows)


@pytest.mark.parametrize("reduction", [(), ("oaa", 3)])
def test_columns_that_count_from_another_number(reduction):
    sparse = pytest.importorskip("scipy.sparse")
    from_0 = sparse.random(300, 12, 0.4, format="csr", random_state=1)
    from_1 = sparse.hstack([sparse.csr_matrix((300, 1)), from_0]).tocsr()
    few = from_0[:, :8]
    cases = [(from_0, from_0, ""), (from_1, from_1, ""), (from_0, few, "")]
    for learned, given, said in [*cases, (from_1, from_0, "from 0:"), (from_0, from_1, "from 1:")]:
        with xclass.Learner(*reduction) as model:
            model.learn_many(learned, np.arange(300) % 3 + 1)
            found = notes(model.predict_many, given)
            assert len(found) == bool(said) and all(said in one and "zero_based=True" in one for one in found)
            assert not notes(model.predict_many, given)
            again = pickle.loads(pickle.dumps(model))
            assert bool(notes(again.learn_many, given, np.arange(300) % 3 + 1)) == bool(said)


OF_NO_USE = "to learn from have no feature that the model has learned, so what it has learned is of no use for them"


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "means"])
def test_every_reduction_says_it_when_it_learns_on(name, tmp_path):
    with learner(name, bits=18) as model:
        model.learn_many(lines(KINDS[name]))
        model.end_pass()
        model.save(tmp_path / "m")
    for space, said in (("w", 0), ("other", 1)):
        with xclass.load(tmp_path / "m") as model:
            if model.core.config.reduction.learns_at_end:
                continue  # it does not learn on
            found = [*notes(model.learn_many, lines(KINDS[name], space)), *notes(model.end_pass)]
            assert sum(OF_NO_USE in note for note in found) == said, (space, found)
            assert not [note for note in notes(model.learn_many, lines(KINDS[name], "third")) if OF_NO_USE in note]


def test_files_in_formats_whose_features_differ_say_it_when_a_model_learns_on(tmp_path):
    words = [line.split(" |w ") for line in lines("multiclass")]
    of = {word: i for i, word in enumerate(sorted({word for _, text in words for word in text.split()}), 1)}
    columns = [(y, sorted({of[word] for word in text.split()})) for y, text in words]
    (tmp_path / "libsvm").write_text("".join(f"{y} {' '.join(f'{i}:1' for i in row)}\n" for y, row in columns))
    (tmp_path / "fasttext").write_text("".join(f"__label__{y} {text}\n" for y, text in words))
    (tmp_path / "csv").write_text("label,text\n" + "".join(f"{y},{text}\n" for y, text in words))
    meet = {("libsvm", "libsvm"), ("fasttext", "fasttext"), ("csv", "csv")}
    for first in ("libsvm", "fasttext"):
        assert not run("-d", first, "--format", first, "-f", first[0], "--quiet", cwd=tmp_path).status
        for second in ("libsvm", "fasttext", "csv"):
            said = (first, second) not in meet
            ended = run("-d", second, "--format", second, "-i", first[0], "-f", "m", cwd=tmp_path)
            assert (ended.status, ended.err.count(OF_NO_USE)) == (0, said), (first, second, ended.err)
            with xclass.load(tmp_path / first[0]) as model:
                found = notes(model.learn_file, tmp_path / second, format=second)
                assert sum(OF_NO_USE in note for note in found) == said, (first, second, found)
    with xclass.Learner() as model:  # a second file, without saving the model
        assert not notes(model.learn_file, tmp_path / "fasttext")
        assert any(OF_NO_USE in note for note in notes(model.learn_file, tmp_path / "libsvm", format="libsvm"))


def test_a_model_of_few_examples_says_nothing_when_it_learns_on(tmp_path):
    with xclass.Learner() as model:
        model.learn_many(lines("multiclass", n=5))
        model.save(tmp_path / "m")
    assert not notes(xclass.load(tmp_path / "m").learn_many, lines("multiclass", "other"))
