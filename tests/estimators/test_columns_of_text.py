"""Texts in every container that holds them, and texts for a model that has learned a single column of text."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import xclass
from xclass.errors import UsageError
from xclass.sklearn import XClassifier

TEXTS = ["green tea leaf", "black tea cup", "cold beer glass", "warm beer can"] * 10
LABELS = ["tea", "tea", "beer", "beer"] * 10
ROWS = [np.array([1.0, i % 4 > 1, 0.5]) for i in range(40)]


def of(module: str, make):
    return lambda given: make(pytest.importorskip(module), given)


COLUMNS = {
    "a Series of pandas": lambda given: pd.Series(given),
    "a Series of polars": of("polars", lambda pl, given: pl.Series(given)),
    "an array of Arrow": of("pyarrow", lambda pa, given: pa.array(given)),
    "chunks of Arrow": of("pyarrow", lambda pa, given: pa.chunked_array([given])),
    "an array of objects": lambda given: np.array([*given, None], object)[:-1],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("items", [TEXTS, [row.tolist() for row in ROWS]], ids=["texts", "rows"])
def test_a_column_is_read_as_a_list(name, items):
    X = COLUMNS[name](items)
    assert XClassifier().fit(X, LABELS).predict(X).tolist() == XClassifier().fit(items, LABELS).predict(items).tolist()
    with xclass.Learner() as one, xclass.Learner() as other:
        learned = [model.learn_many(given, LABELS).prediction.tolist() for model, given in ((one, X), (other, items))]
        assert learned[0] == learned[1]


@pytest.mark.parametrize("missing", [[None], pd.Series([None, None]), pd.Series([np.nan]), [np.nan, "tea"]])
def test_texts_that_are_all_missing_are_texts_for_an_estimator_of_texts(missing):
    model = XClassifier().fit(TEXTS, LABELS)
    assert len(model.predict(missing)) == len(missing)
    assert model.partial_fit(missing, LABELS[: len(missing)]).predict(["cold beer"]).tolist() == ["beer"]
    with pytest.raises(UsageError, match="X has int 1 among its items, and the estimator was fitted on texts"):
        model.predict([None, 1])


@pytest.mark.parametrize("name", COLUMNS)
def test_numbers_in_one_dimension_are_refused_in_a_line(name):
    with pytest.raises(ValueError, match=r"float64\[40\] .*Reshape your data") as refused:
        XClassifier().fit(COLUMNS[name]([1.5] * 40) if "objects" not in name else np.full(40, 1.5), LABELS)
    assert "\n" not in str(refused.value)


def test_arrays_with_text_are_read_by_their_columns():
    frame = pd.DataFrame({"text": TEXTS, "size": np.arange(40.0)})
    for X in (np.array(TEXTS)[:, None], np.array(TEXTS, object)[:, None], frame.to_numpy(object)):
        model = XClassifier().fit(X, LABELS)
        assert model.score(X, LABELS) > 0.9
        assert set(model.learner_.core.schema.columns.values()) <= {"text", "number"}
    both = make_column_transformer(("passthrough", ["text"]), ("passthrough", ["size"]))
    for step in (both, SimpleImputer(strategy="most_frequent")):
        assert make_pipeline(step, XClassifier()).fit(frame, LABELS).score(frame, LABELS) > 0.9
    with pytest.raises(ValueError, match="1 columns, and the model has learned from a table of 2"):
        XClassifier().fit(frame, LABELS).learner_.predict_many(frame[["text"]].to_numpy(object))


def test_a_text_is_the_only_column_of_a_table(tmp_path):
    (tmp_path / "a.csv").write_text("label,text\n" + "".join(f"{y},{x}\n" for x, y in zip(TEXTS, LABELS, strict=True)))
    with xclass.Learner() as model:
        model.learn_file(tmp_path / "a.csv")
        rows = pd.DataFrame({"text": ["tea cup", "a beer"]})
        wanted = model.predict_many(rows).tolist()
        for texts in (["tea cup", "a beer"], xclass.Documents(["tea cup", "a beer"]), pd.Series(["tea cup", "a beer"])):
            assert model.predict_many(texts).tolist() == wanted == ["tea", "beer"]
        assert [model.predict(text) for text in ("tea cup", "a beer")] == wanted
        assert model.predict_many(["tea cup", None]).tolist()[0] == "tea"
        assert "tea" in str(model.explain("tea cup")) and len(model.explain_many(["tea cup"])) == 1
        assert model.learn("tea pot", "tea") == "tea" and len(model.learn_many(["beer"], ["beer"]).prediction) == 1
    fitted = XClassifier().fit(pd.DataFrame({"text": TEXTS}), LABELS)
    assert fitted.predict(["tea cup", "a beer"]).tolist() == wanted
    with xclass.Learner() as model:
        model.learn_many(pd.DataFrame({"text": TEXTS, "title": TEXTS}), LABELS)
        with pytest.raises(UsageError, match="plain text"):
            model.predict("tea cup")


@pytest.mark.parametrize("names", [[7, 8, 9], [("a", 1), ("a", 2), ("b", 1)], [2, 0, 1], ["x", 5, None]])
def test_names_that_are_no_text_are_names(names):
    frame = pd.DataFrame(np.array([[i % 2, 5 * (i % 2), 1] for i in range(40)], float), columns=names)
    other = frame.iloc[:, ::-1]
    model = XClassifier().fit(frame, LABELS)
    if names == [2, 0, 1]:  # which are positions
        assert model.predict(other).tolist() == model.predict(frame).tolist()
    else:
        assert [*model.feature_names_in_] == [*map(str, names)]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)
