"""The classifier with River's interface: River's own checks, and what it promises beside them."""

import copy
import doctest
import functools
import pickle
import random

import numpy as np
import pytest
from command import learn as run

import xclass

pytest.importorskip("river", reason="needs River")
pd = pytest.importorskip("pandas", reason="needs pandas")

from river import checks, compose, feature_extraction, metrics, preprocessing  # noqa: E402

import xclass.river  # noqa: E402
from xclass.river import Classifier, MultiLabelClassifier  # noqa: E402


def music():
    """Rows in place of River's multi-label data set Music, which it downloads."""
    generator = random.Random(1)
    for _ in range(50):
        y = {"calm": generator.random() < 0.5, "sad": generator.random() < 0.2, "loud": generator.random() < 0.3}
        yield {name: generator.random() + (y["sad"] if name == "slow" else 0) for name in ("slow", "high", "long")}, y


def river_checks():
    models = [kind(**params) for kind in (Classifier, MultiLabelClassifier) for params in kind._unit_test_params()]
    for model in models:
        for number, check in enumerate(checks.yield_checks(model)):
            name = f"{model.reduction}-{check.__name__}-{number}"
            growth = check.__name__ == "check_bounded_memory_growth"
            yield pytest.param(model, check, id=name, marks=[pytest.mark.slow] if growth else [])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_checks_of_river(model, check):
    random.seed(5)
    assert check.__name__ not in model._unit_test_skips()
    if isinstance(model, MultiLabelClassifier) and "dataset" in getattr(check, "keywords", ()):
        check = functools.partial(check, dataset=list(music()))
    check(model.clone())


def examples(n: int, labels=("tea", "coffee", "wine")):
    generator = random.Random(3)
    for i in range(n):
        number = i * 7 % len(labels)
        colour = ("red", "green")[number % 2]
        yield {f"word{number}": True, "size": generator.random(), "colour": colour}, labels[number]


@pytest.mark.parametrize(
    "labels",
    [
        ("tea", "coffee", "wine"),
        (3, 1, 2),
        (True, False),
        (np.bool_(True), np.bool_(False)),
        ((1, 2), (3, 4), "x"),
        ("a b", "c,d", "é"),
    ],
    ids=str,
)
def test_labels_come_back_as_they_were_given(labels):
    model = Classifier(bits=12)
    for x, y in examples(60, labels):
        model.learn_one(x, y)
    for x, y in examples(10, labels):
        assert model.predict_one(x) == y
        probabilities = model.predict_proba_one(x)
        assert set(probabilities) == set(labels)
        assert next(iter(probabilities)) == y
        assert abs(sum(probabilities.values()) - 1) < 1e-9


def test_a_new_model_predicts_nothing():
    model = Classifier(bits=12)
    assert model.predict_one({"a": 1}) is None
    assert model.predict_proba_one({"a": 1}) == {}
    assert model.predict_many(pd.DataFrame({"a": [1, 2]})).tolist() == [None, None]
    assert model.predict_proba_many(pd.DataFrame({"a": [1, 2]})).shape == (2, 0)


def test_probabilities_are_of_the_most_probable_labels():
    labels = [f"c{i}" for i in range(30)]
    model, short = Classifier(bits=14), Classifier(bits=14, top_k=4)
    for _ in range(3):
        for i, label in enumerate(labels):
            for classifier in (model, short):
                classifier.learn_one({f"word{i}": 1.0}, label)
    assert len(model.predict_proba_one({"word7": 1.0})) == 30
    listed = short.predict_proba_one({"word7": 1.0})
    assert len(listed) == 4
    assert next(iter(listed)) == "c7"
    assert abs(sum(listed.values()) - 1) < 1e-9
    many = short.predict_proba_many(pd.DataFrame({"word7": [1.0, 0.0], "word9": [0.0, 1.0]}))
    assert ((many > 0).sum(axis=1) <= 4).all()
    assert many.idxmax(axis=1).tolist() == ["c7", "c9"]


def test_a_reduction_without_probabilities_says_so_as_river_expects():
    model = Classifier("log_multi", 3, bits=12)
    with pytest.raises(NotImplementedError, match="log_multi does not estimate probabilities"):
        model.predict_proba_one({"a": 1})
    with pytest.raises(NotImplementedError):
        model.predict_proba_many(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize("text", [False, True])
def test_a_mini_batch_gives_the_bytes_of_single_examples(tmp_path, text):
    rows = list(examples(90))
    if not text:
        rows = [({name: value for name, value in x.items() if name != "colour"}, y) for x, y in rows]
    single, many = Classifier(bits=12), Classifier(bits=12)
    for x, y in rows:
        single.learn_one(x, y, w=2.0)
    for i in range(0, 90, 30):
        X = pd.DataFrame([x for x, _ in rows[i : i + 30]], index=range(100, 130))
        X = X.astype(object).where(X.notna(), None) if text else X.fillna(0.0).astype(float)
        labels = pd.Series([y for _, y in rows[i : i + 30]])
        many.learn_many(X, labels, w=pd.Series([2.0] * 30))
    single.learner.save(tmp_path / "single")
    many.learner.save(tmp_path / "many")
    assert (tmp_path / "single").read_bytes() == (tmp_path / "many").read_bytes()
    predicted = many.predict_many(X)
    assert predicted.index.tolist() == list(range(100, 130))
    assert predicted.tolist() == labels.tolist()


def test_the_command_reads_the_model(tmp_path):
    model = Classifier("oaa", 3, bits=12)
    for x, y in examples(60):
        model.learn_one(x, y)
    model.learner.save(tmp_path / "model")
    (tmp_path / "data").write_text("| word1:1\n| word2:1\n")
    lines = run("-i", "model", "-t", "-d", "data", "-p", "stdout", "--quiet", cwd=tmp_path).lines
    assert lines == ["coffee", "wine"]


def test_copies_and_pickles_hold_what_was_learned():
    model = Classifier(bits=12)
    for x, y in examples(60, (1, 2, 3)):
        model.learn_one(x, y)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.clone(include_attributes=True)):
        assert [other.predict_one(x) for x, _ in examples(9)] == [model.predict_one(x) for x, _ in examples(9)]
        other.learn_one({"new": 1.0}, 4)
        assert model.learner.examples == 60
    assert model.clone().predict_one({"word1": 1}) is None
    changed = model.clone({"bits": 13, "top_k": 7})
    assert changed.learner.options["bits"] == 13
    assert changed.top_k == 7


def test_features_have_any_name():
    model = Classifier(bits=12)
    for _ in range(10):
        model.learn_one({("pair", 1): 1, 5: True, "s": "text", "missing": None, None: 0.5}, "a")
        model.learn_one({("pair", 2): 1, 6: np.float32(2), "s": "other"}, "b")
    assert model.predict_one({("pair", 2): 1}) == "b"
    assert model.predict_one({"s": "text"}) == "a"


@pytest.mark.parametrize(
    ("x", "y", "w", "message"),
    [
        ({"a": float("inf")}, "b", 1.0, "the feature 'a' has the value inf"),
        ({"a": [1]}, "b", 1.0, "the feature 'a' has the value"),
        ({"a": 1}, "b", -1.0, "sample_weight"),
        ({"a": 1}, "b\x01", 1.0, r"control character .* at position 2"),
        ({"a": 1}, pd.NA, 1.0, "the label <NA> is a missing value; give None"),
    ],
)
def test_nothing_is_learned_from_what_is_not_allowed(x, y, w, message):
    model = Classifier(bits=12)
    model.learn_one({"a": 1}, "a")
    with pytest.raises(xclass.DataError, match=message):
        model.learn_one(x, y, w)
    assert model.learner.examples == 1
    assert model.learner.classes == ["a"]


def test_examples_of_another_type_are_refused():
    model = Classifier(bits=12)
    for call in (
        lambda: model.learn_one("free money", "spam"),
        lambda: model.predict_proba_one("free money"),
        lambda: model.predict_many([{"a": 1}]),
    ):
        with pytest.raises(TypeError):
            call()
    assert model.learner.examples == 0


def test_missing_labels_of_a_series():
    X, model = pd.DataFrame({"a": [1, 2, 3]}), Classifier(bits=12)
    model.learn_many(X, pd.Series(["x", None, "y"]))
    assert (model.learner.examples, model.learner.classes) == (2, ["x", "y"])
    with pytest.raises(xclass.DataError, match="the label nan is a missing value"):
        model.learn_many(X, pd.Series([1.0, np.nan, 2.0]))


def test_more_labels_than_classes_are_refused():
    with pytest.raises(xclass.UsageError, match="top_k: 0"):
        Classifier(top_k=0)
    model = Classifier("oaa", 2, bits=12)
    model.learn_one({"a": 1}, "a")
    model.learn_one({"b": 1}, "b")
    with pytest.raises(xclass.DataError, match="a name too many"):
        model.learn_one({"c": 1}, "c")


def test_it_is_the_last_step_of_pipelines():
    model = preprocessing.StandardScaler() | Classifier(bits=12)
    accuracy = metrics.Accuracy()
    for x, y in examples(100):
        x = {name: float(value) for name, value in x.items() if name != "colour"}
        predicted = model.predict_one(x)
        if predicted is not None:
            accuracy.update(y, predicted)
        model.learn_one({**dict.fromkeys(("word0", "word1", "word2"), 0.0), **x}, y)
    assert accuracy.get() > 0.8
    words = compose.Pipeline(feature_extraction.BagOfWords(), Classifier(bits=12))
    for text, label in (("kettle leaf", "tea"), ("bean cup", "coffee")) * 5:
        words.learn_one(text, label)
    assert words.predict_one("a cup of beans") == "coffee"


def test_the_examples_of_the_docstrings_run():
    failed, tried = doctest.testmod(xclass.river)
    assert (failed, tried > 3) == (0, True)


def test_several_labels_come_back_as_they_were_given():
    model = MultiLabelClassifier(classes=3, bits=12)
    assert model.predict_one({"a": 1}) == {} == model.predict_proba_one({"a": 1})
    for _ in range(20):
        model.learn_one({"tea": 1, "cup": 1}, {1: True, ("a", 2): False, "never": False})
        model.learn_one({"cake": 1}, {1: np.False_, ("a", 2): np.True_})
    assert model.predict_one({"cake": 1}) == {1: False, ("a", 2): True, "never": False}
    assert model.learner.classes == ["1", "('a'; 2)"]
    with pytest.raises(
        xclass.DataError, match=r"are both written .*, where blanks and _ are the same, and commas and ;"
    ):
        model.learn_one({"a": 1}, {"('a'; 2)": True})
    p = model.predict_proba_one({"cake": 1})
    assert p["never"] == {False: 1.0, True: 0.0} and p[("a", 2)][True] > 0.9 and sum(p[1].values()) == 1
    with pytest.raises(xclass.DataError):
        model.learn_one({"a": 1}, {None: True})
