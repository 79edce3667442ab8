"""Examples that a program passes mean what NumPy, SciPy and pandas mean; each case is one of a public report."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xclass
from xclass.cluster.program.blocks import Block
from xclass.data import tables
from xclass.sklearn import XClassifier

HALF = json.loads('"smile \\ud83d"')  # half of a surrogate pair
TEXTS = ["red wine", "white wine", "pale ale", "brown ale", "green tea", "black tea"]
DRINKS = ["wine", "wine", "beer", "beer", "tea", "tea"]


def learned_bytes(*args) -> bytes:
    """Return the model that is learned from examples."""
    with xclass.Learner("oaa", 3, bits=10) as model:
        model.learn_many(*args)
        return pickle.dumps(model)


# -- texts


def test_half_a_surrogate_in_a_label_is_refused_and_the_model_can_be_saved(tmp_path):
    """Show that nothing is learned with which `save` and `pickle` fail (openai/tiktoken#82, RasaHQ/rasa#1489)."""
    with xclass.Learner(bits=12) as model:
        model.learn("a b", "p")
        with pytest.raises(xclass.DataError, match=r"y\[0\] is 'smile \\ud83d'; a name has no .*halves of surrogate"):
            model.learn("c d", HALF)
        model.learn("c d", "q")
        model.save(tmp_path / "m")
        assert pickle.loads(pickle.dumps(model)).classes == ["p", "q"]


def test_half_a_surrogate_in_a_text_is_the_word_that_the_command_reads(tmp_path):
    """Show that the library hashes the bytes that the reader of JSON lines hashes (openai/tiktoken#82)."""
    (tmp_path / "d.jsonl").write_text('{"label": "p", "text": "a \\ud83d"}\n{"label": "q", "text": "b"}\n')
    with xclass.Learner(bits=12) as model:
        model.learn_file(tmp_path / "d.jsonl", passes=4)
        assert model.predict("\ud83d") == "p"
        assert model.predict_many(["\ud83d", "b"]).tolist() == ["p", "q"]
        for example in ({"t": HALF}, {HALF: 1.0}, f"| {HALF}"):
            assert model.predict(example) in ("p", "q")


@pytest.mark.parametrize("other", ["ale | stout", None, float("nan"), ""])
def test_no_text_changes_how_another_one_is_read(other):
    """Show that a bar or a missing text concerns its own example alone (VowpalWabbit/vowpal_wabbit#4467, #251)."""
    with xclass.Learner(bits=14) as model:
        for _ in range(8):
            model.learn_many(TEXTS, DRINKS)
        if other and "|" in str(other):
            with pytest.warns(xclass.XclassWarning, match="'red wine' has no bar, so it is plain text, and 'ale | st"):
                predicted = model.predict_many([*TEXTS, other])
            with pytest.warns(xclass.XclassWarning, match="has learned from plain texts; give xclass.Documents"):
                model.predict("red | wine")
        else:
            predicted = model.predict_many([other, *TEXTS])[[*range(1, 7), 0]]
        assert predicted[:6].tolist() == DRINKS and len(predicted) == 7


def test_a_list_of_lines_has_one_prediction_for_each():
    """Show that an empty line is an example without features, in its place (VowpalWabbit/vowpal_wabbit#251)."""
    with xclass.Learner("oaa", 2, bits=12) as model:
        for _ in range(4):
            model.learn_many(["1 | a", "", "2 | b"])
        assert model.predict_many(["| a", "", "| b"])[[0, 2]].tolist() == [1, 2]


# -- columns of DataFrames

STORES = np.tile(["x", "y", "z"], 8)


def stores():
    """Return the forms that a column of the numbers 3, 7 and 12 has in pandas."""
    pandas = pytest.importorskip("pandas")
    numbers = pandas.DataFrame({"store": np.tile([3, 7, 12], 8), "noise": np.arange(24) % 5})
    forms = {
        "int64": numbers.store,
        "float64": numbers.store.astype(float),
        "Int64": numbers.store.astype("Int64"),
        "category": numbers.store.astype("category"),
        "category of floats": numbers.store.astype(float).astype("category"),
        "text": numbers.store.astype(str),
        "objects": numbers.store.astype(object),
    }
    return {name: numbers.assign(store=column)[["noise", "store"]] for name, column in forms.items()}


@pytest.mark.parametrize("first", ["category", "category of floats", "text", "int64"])
def test_a_column_means_the_same_whatever_its_type_is_later(first):
    """Show that later types are converted (lightgbm-org/LightGBM#3626, PriorLabs/TabPFN#1015, alteryx/evalml#3498)."""
    forms = stores()
    with xclass.Learner(bits=14) as model:
        for _ in range(4):
            model.learn_many(forms[first], STORES)
        expected = model.predict_many(forms[first]).tolist()
        assert first == "int64" or expected == STORES.tolist()
        for name, frame in forms.items():
            assert model.predict_many(frame).tolist() == expected, name
            assert model.predict_many(frame[["store", "noise"]]).tolist() == expected, name
        with pytest.raises(xclass.DataError, match="the DataFrame has no column 'store', from which the model has"):
            model.predict_many(forms[first][["noise"]])
        with pytest.warns(xclass.XclassWarning, match="'more'"):
            assert model.predict_many(forms[first].assign(more=1)).tolist() == expected


def test_text_in_a_column_of_numbers_is_refused_by_name_and_row():
    frame = stores()["int64"]
    with xclass.Learner(bits=14) as model:
        model.learn_many(frame, STORES)
        frame = frame.astype({"store": object})
        frame.loc[4, "store"] = "unknown"
        with pytest.raises(xclass.DataError, match=r"row 4, column 'store': the value is str 'unknown'.*as numb"):
            model.predict_many(frame)


def test_estimators_read_columns_as_they_were_fitted():
    """Show the same for estimators (alteryx/evalml#3498)."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    forms = stores()
    for first in ("text", "int64"):
        model = XClassifier(passes=4, bits=14).fit(forms[first], STORES)
        expected = model.predict(forms[first]).tolist()
        for name, frame in forms.items():
            assert model.predict(frame).tolist() == expected, (first, name)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(forms[first][["store", "noise"]])
    with pytest.raises(ValueError, match="row 0, column 'store': the value is str 'q'"):
        model.predict(forms["text"].assign(store="q"))


def test_files_and_frames_have_one_schema(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "t.csv").write_text("size,store,label\n" + "0.25,x 1,A\n3,y,B\n" * 4)
    frame = pandas.read_csv(tmp_path / "t.csv")
    with xclass.Learner(bits=12) as model:
        model.learn_file(tmp_path / "t.csv", passes=4)
        assert model.predict_many(frame.drop(columns="label")[["store", "size"]]).tolist() == ["A", "B"] * 4
        assert model.predict_many(frame.astype(str)).tolist() == ["A", "B"] * 4
    with xclass.Learner(bits=12) as model:
        for _ in range(4):
            model.learn_many(frame[["store", "size"]], frame.label)
        assert model.evaluate(tmp_path / "t.csv", label_column="label")["average_loss"] == 0


def test_missing_cells_are_no_features():
    """Show that NaN in a DataFrame is a missing cell, as an empty cell of a CSV file is."""
    pandas = pytest.importorskip("pandas")
    columns = {"a": [1.5, np.nan], "b": ["x", None], "c": pandas.array([1, None], "Int64"), "d": [True, pandas.NA]}
    with xclass.Learner("oaa", 2, bits=10, noconstant=True) as model:
        model.learn_many(pandas.DataFrame(columns), [1, 2])
        assert model.core.progress.features == 4
        model.predict_many(pandas.DataFrame({name: [pandas.NaT] for name in columns}, dtype=object))


def test_nan_in_a_data_set_of_ray_is_a_missing_cell(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"label": ["a"], "v": [np.nan], "w": [1.5]})
    monkeypatch.setattr(Block, "table", lambda block: table)
    assert Block("block", None, table.column_names).opened().read() == b'"label","v","w"\n"a",,1.5\n'


# -- arrays

MATRIX = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])


def test_arrays_mean_what_numpy_and_scipy_mean():
    expected = learned_bytes(MATRIX, [1, 2])
    twice = sparse.csr_matrix(([0.5, 0.5, 2, 4, 3], [0, 0, 1, 2, 1], [0, 3, 5]), shape=(2, 3))  # and not sorted
    hidden = np.ma.array([[1, 2, np.nan], [9, 3, 4]], mask=[[0, 0, 1], [1, 0, 0]])
    given = [
        twice,
        twice.tocoo(),
        hidden,
        MATRIX.tolist(),
        MATRIX.astype(object),
        MATRIX.astype(">f8"),
        memoryview(MATRIX),
    ]
    given += [sparse.csr_array(MATRIX).asformat(name) for name in ("csc", "bsr", "lil", "dok", "dia")]
    assert all(learned_bytes(x, [1, 2]) == expected for x in given)
    assert twice.data.tolist() == [0.5, 0.5, 2, 4, 3]


def rows(indptr, indices, data, **shape) -> SimpleNamespace:
    """Return a sparse matrix that is not one of SciPy's."""
    return SimpleNamespace(indptr=indptr, indices=indices, data=data, **shape)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            rows(np.array([0, 5, 1], np.uint64), np.arange(5), np.ones(5)),
            "indptr has to start at 0, and never decrease",
        ),
        (rows([0, 1, 3], [1, 1], [3, 4]), "indptr has to end at most at 2, the length of indices"),
        (rows([0, 1, 2], [1, 1], [3]), "indices and data have 2 and 1 entries"),
        (rows([0, 1, 2], [1, 1], ["3", "4"]), r"data is an array <U1\[2\] with the entry '3'"),
        (sparse.csc_matrix(MATRIX).astype(complex), "data is an array complex128"),
        (rows([0, 1, 2], [1, 1], [1, 1], shape=(2, 1)), "row 0: indices contains 1; allowed are 0 to 0"),
        ([[1, "3"], [2, 3]], "row 0, column 1: the value is str '3'; allowed are numbers"),
        ([[1, 2], [3]], r"row 1 is \[3\]; allowed are rows of 2 numbers"),
        ([[1, 2], [3, None]], "row 1, column 1: the value is nan"),
        ([{"a": np.complex64(1j)}, {}], "the feature 'a' has the value"),
        (MATRIX + 1j, r"examples are an array complex128\[2, 3\]"),
    ],
)
def test_what_would_lose_a_part_of_a_value_is_refused(x, message):
    with xclass.Learner("oaa", 3, bits=10) as model:
        with pytest.raises(xclass.XclassError, match=message):
            model.learn_many(x, [1, 2])
        assert model.examples == 0


# -- columns, labels and weights


def test_examples_of_another_form_than_the_learned_ones_are_refused_or_read_by_position():
    """Show that an array is no DataFrame, nor a text a row (scikit-learn/scikit-learn#18010: names of features)."""
    frame, other = "a table with the columns 'a', 'b'", "the learner has learned from "
    table = pd.DataFrame({"a": [1.0, 0.0] * 8, "b": [0.0, 1.0] * 8})
    with xclass.Learner("oaa", 2, bits=12) as model, xclass.Learner("oaa", 2, bits=12) as second:
        model.learn_many(table, [1, 2] * 8)
        with pytest.warns(xclass.XclassWarning, match="its columns are taken for 'a', 'b', in this order"):
            assert model.predict_many(np.eye(2)).tolist() == [1, 2]
        assert model.predict_many([{"a": 1}, {"b": 1}]).tolist() == [1, 2]
        for examples in (np.eye(3), sparse.csr_matrix(np.eye(2)), ["a"]):
            with pytest.raises(xclass.UsageError, match=other + frame):
                model.predict_many(examples)
        second.learn_many(np.eye(2), [1, 2])
        with pytest.raises(xclass.UsageError, match=f"the columns 'a', 'b', and {other}matrices"):
            second.predict_many(table)
        assert second.predict_many(pd.DataFrame(np.eye(2))).tolist() == second.predict_many(np.eye(2)).tolist()


def test_a_model_file_keeps_the_form_of_the_examples(tmp_path):
    """Show that a table is refused after `load` too, if the model has learned from matrices or plain texts alone."""
    table, other = pd.DataFrame({"p": [1.0], "q": [0.0]}), "the learner has learned from "
    (tmp_path / "t.csv").write_text("label,p,q\na,1,0\n")
    for examples, name, others in (
        (np.eye(2), "matrices", (table, [{"p": 1}], xclass.Documents(["p"]))),
        (["red", "blue"], "plain texts", (table, [{"p": "red"}], np.eye(2))),
    ):
        with xclass.Learner("oaa", 2, bits=12, learn_names=True) as model:
            model.learn_many(examples, ["a", "b"])
            model.save(tmp_path / "m")
        with xclass.load(tmp_path / "m") as model:
            assert model.predict_many(examples).tolist() == ["a", "b"]
            assert model.predict({"1": 1} if name == "matrices" else {"blue": 1}) == "b"
            for given in others:
                with pytest.raises(xclass.UsageError, match=other + name):
                    model.predict_many(given)
            with pytest.raises(xclass.DataError, match=f"t.csv.*columns 'p', 'q', and the model .* from {name}"):
                model.evaluate(tmp_path / "t.csv")
            model.learn_many(["| p q"], ["a"])  # features of both forms: what is given then cannot be known
            model.predict_many(table)
    with xclass.Learner("oaa", 2, bits=12, learn_names=True) as model:
        for nothing in (np.zeros((0, 2)), xclass.Documents([]), ["", ""], [], table[:0], [{}]):
            model.learn_many(nothing, ["a", "b"][: len(nothing)])  # without features, so the learner has no form yet
        assert (model.core.schema.form, model.core.schema.columns) == ("", {})
        model.learn_many(np.eye(2), ["a", "b"])
        (tmp_path / "n.csv").write_text("a,1,\nb,0,1\n")
        assert model.evaluate(tmp_path / "n.csv", header=["label", "0", "1"])["average_loss"] == 0
        with pytest.raises(xclass.DataError, match="columns '0', '1', and the model"):
            model.evaluate(tmp_path / "t.csv", header=["label", "0", "1"])
        assert model.predict_many([{"": {"1": 1}}, {" ": {"0": 1}}]).tolist() == ["b", "a"]
        assert len(model.predict_many(["", ""])) == 2


def test_a_dictionary_is_a_row_of_the_learned_table():
    """Show that a row as a dictionary is read by the kinds of the columns, as the row of a DataFrame is."""
    table = pd.DataFrame({"t": ["hot leaf", "cold hops"], "n": [1, 2]})
    with xclass.Learner("oaa", 2, bits=12, learn_names=True) as model:
        model.learn_many(table, ["tea", "beer"])
        assert [model.predict(row) for row in table.to_dict("records")] == model.predict_many(table).tolist()
        assert [share.name for share in model.explain({"t": "leaf"}).classes[0].shares] == ["t^leaf", "Constant"]
        with pytest.raises(xclass.DataError, match="column 'n': the value is str 'q'"):
            model.predict({"n": "q"})


def test_names_of_classes_come_back_as_they_were_given(tmp_path):
    """Show that blanks at the ends and tabs stay, or two names that differ only in them are refused."""
    names = ["a ", "x\ty", "n  b"]
    with xclass.Learner(bits=12) as model:
        for _ in range(3):
            model.learn_many(np.eye(3), names)
        model.save(tmp_path / "m")
        assert model.predict_many(np.eye(3)).tolist() == names
        with pytest.raises(xclass.DataError, match=r"y\[0\] is 'a', which is the same class as 'a '"):
            model.learn_many(np.eye(3)[:1], ["a"])
    with xclass.load(tmp_path / "m") as model:
        assert model.predict_many(np.eye(3)).tolist() == names


@pytest.mark.parametrize("names", [["a", "b", "a"], [1, 2, 1]])
def test_labels_may_be_a_column_or_an_iterator(names):
    """Show that a column of labels is what scikit-learn takes it for, and that an iterator is read once."""
    with xclass.Learner("oaa", 2, bits=12, learn_names=isinstance(names[0], str)) as model:
        for y in (np.array(names)[:, None], pd.DataFrame({"y": names}), [[name] for name in names], iter(names)):
            model.learn_many(np.eye(3), y, iter([1.0] * 3))
        assert model.examples == 12 and model.predict_many(np.eye(3)).tolist() == names


def test_an_estimator_names_the_label_and_the_weight_that_it_refuses():
    """Show what becomes of missing and mixed labels, iterators, and keys of class_weight that equal no label."""
    X, y = np.eye(3), ["1", "01", "2"]
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(ValueError, match=r"missing values: y\[1\] is "):
            XClassifier().fit(X, ["a", missing, "b"])
    with pytest.raises(xclass.UsageError, match="no label is '3', and the label '1' has no weight"):
        XClassifier(class_weight={"3": 2}).fit(X, y)
    model = XClassifier("oaa", bits=12, passes=3, class_weight={"1": 2}).fit(iter(X), iter(y))
    assert model.score(X, iter(y)) == 1


@pytest.mark.parametrize(("kind", "count"), [(np.int8, 100), (np.uint8, 200), (np.int64, 2**62)])
@pytest.mark.parametrize("form", ["csr_matrix", "coo_matrix"])
def test_counts_in_the_same_place_are_added_without_overflow(kind, count, form):
    """Show that a sparse matrix of small integers has the sums of its entries (scipy/scipy#9722, #2534)."""
    data, column = np.array([count, count], kind), np.array([1, 1])
    given = (data, column, np.array([0, 2])) if form == "csr_matrix" else (data, (np.array([0, 0]), column))
    start, columns, value = tables.sparse_arrays(getattr(sparse, form)(given, shape=(1, 3)))
    assert (start.tolist(), columns.tolist(), value.tolist()) == ([0, 1], [1], [2.0 * count])


def test_bytes_are_no_labels_and_no_names_of_features():
    """Show that labels come back equal to those that were given (mljar/mljar-supervised#66)."""
    with xclass.Learner("oaa", 2, bits=8) as model:
        for labels in ([b"spam", b"ham"], np.array([b"spam", b"ham"]), ["spam", b"ham"]):
            with pytest.raises(
                xclass.DataError, match=r"y\[[01]\] is b'.*', bytes that would be predicted as text; decode"
            ):
                model.learn_many(np.eye(2), labels)
    wrong = pytest.raises(xclass.DataError, match=r"y\[1\] is str 'x'; allowed are numbers")
    with xclass.Learner("oaa", 2, bits=8) as model, wrong:
        model.learn_many(np.eye(2), [1, "x"])


def test_a_table_that_is_read_as_vw_text_is_told(tmp_path):
    """Show that a reader whose lines are all of another format says so (VowpalWabbit/vowpal_wabbit#2719)."""
    (tmp_path / "table.csv").write_text("label,x\na,1\nb,2\n")
    with pytest.warns(xclass.XclassWarning, match="no example has a feature; .* and format names the format of other"):
        list(xclass.read_vw(tmp_path / "table.csv"))
    assert len(list(xclass.read_vw(tmp_path / "table.csv", labels="numbers", format="csv", label_column="x"))) == 1
