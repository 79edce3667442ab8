"""Data in memory: matrices, DataFrames, texts and dictionaries are learned from like the same data in VW text."""

import copy
import math
import pickle
import re
import tracemalloc
from pathlib import Path

import mmh3
import numpy as np
import pytest
from command import learn
from hypothesis import given
from hypothesis import strategies as st
from library import state_of
from scipy import sparse

import xclass
from xclass.data import feature_names, hashing
from xclass.data.schema import Schema
from xclass.kernels import jit

jit.activate(hide_scipy=False)
NAMES = ["tea", "coffee", "milk", "hot chocolate; dark", "water"]


def matrix(rows: int = 300, columns: int = 40, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return a sparse matrix whose largest entries tell the class, and the classes, from 1 to 5."""
    rng = np.random.default_rng(seed)
    label = rng.integers(1, 6, rows)
    x = np.where(rng.random((rows, columns)) < 0.2, rng.normal(size=(rows, columns)), 0)
    x[np.arange(rows), label] = 3
    return sparse.csr_matrix(x), label


def model_bytes(model: xclass.Learner, folder: Path) -> bytes:
    """Return the bytes of the file that a learner saves, as if its examples had come from a file of VW text."""
    model.core.schema.form = ""
    model.save(folder / "library.model")
    return (folder / "library.model").read_bytes()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("words", [(), ("--hash", "all"), ("--hash_seed", 7), ("--hash", "all", "--hash_seed", 7)])
@pytest.mark.parametrize("reduction", [("oaa", 5), ("multiclass", None)])
def test_a_matrix_is_learned_like_its_text(tmp_path, reduction, words):
    name, classes = reduction
    x, y = matrix(100)
    weight = np.random.default_rng(1).integers(1, 4, len(y)) / 2
    xclass.write_vw(tmp_path / "train.vw", x, y, weight)
    learn("-d", "train.vw", f"--{name}", classes or 0, "-b", 12, *words, "-f", "m", "-p", "p", cwd=tmp_path)
    expected = (tmp_path / "m").read_bytes()
    options = {word.lstrip("-"): value for word, value in zip(words[::2], words[1::2], strict=True)}
    forms = [x, x.tocsc(), x.tocoo(), sparse.csr_array(x), x.astype(np.float32)]
    if name != "multiclass":  # which learns rows of numbers as they are
        forms += [x.toarray(), x.toarray(order="F")]
    for given_x in forms:
        with xclass.Learner(name, classes, bits=12, **options) as model:
            outcome = model.learn_many(given_x, y, weight)
            assert model_bytes(model, tmp_path) == expected
        assert outcome.prediction.tolist() == [int(line) for line in (tmp_path / "p").read_text().split()]


def test_pieces_of_a_large_matrix_are_learned_in_order(tmp_path, monkeypatch):
    x, y = matrix(400)
    with xclass.Learner("multiclass", bits=14) as whole:
        whole.learn_many(x, y)
        expected = model_bytes(whole, tmp_path)
        best, (labels, p) = whole.predict_many(x), whole.predict_many(x, k=3)
    monkeypatch.setattr("xclass.data.tables.PIECE", 40)
    with xclass.Learner("multiclass", bits=14) as pieces:
        for begin in range(0, 400, 100):
            pieces.learn_many(x[begin : begin + 100], y[begin : begin + 100])
        assert model_bytes(pieces, tmp_path) == expected
        assert np.array_equal(pieces.predict_many(x), best)
        again = pieces.predict_many(x, k=3)
        assert np.array_equal(again[0], labels) and np.array_equal(again[1], p)
        assert labels.shape == p.shape == (400, 3) and np.array_equal(labels[:, 0], best)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.booleans())
def test_the_number_of_a_column_is_hashed_like_its_digits(column, seed, hash_all):
    rule = feature_names.new_hashing(seed, hash_all, 32)
    unnamed = mmh3.hash(b"", seed, signed=False) if seed else 0
    name = str(column).encode()
    expected = mmh3.hash(name, unnamed, signed=False) if hash_all else (column + unnamed) % 2**32
    assert feature_names.column_indices(np.array([column]), rule).tolist() == [expected]


@given(
    st.text() | st.from_regex(r"\A\s*[0-9]*\s*\Z") | st.text(min_size=301), st.integers(0, 2**32 - 1), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_names_are_hashed_like_those_of_text(name, seed, hash_all, vw_text):
    name = name.encode("utf-8", "ignore").decode()
    letters = np.frombuffer(name.encode(), np.uint8)
    hasher = feature_names.NameHasher(feature_names.new_hashing(0, hash_all, 32, vw_text=vw_text))
    assert hasher.hash(name, seed) == hashing.name_hash(letters, 0, len(letters), np.uint32(seed), hash_all, vw_text)


def test_a_name_whose_copy_is_a_mapping_of_its_own_is_hashed():
    """The C library maps an array of 64 MB, and unmaps it when it is freed."""
    name = "a" * (1 << 26)
    hasher = feature_names.NameHasher(feature_names.new_hashing(0, False, 32))
    assert hasher.hash(name, 7) == mmh3.hash(name, 7, signed=False)


def test_column_numbers_can_be_indices(tmp_path):
    x, y = matrix()
    models = []
    for feature_hash in ("names", "identity"):
        with xclass.Learner("oaa", 5, bits=16, hash="all", feature_hash=feature_hash) as model:
            model.learn_many(x, y)
            models.append(model_bytes(model, tmp_path))
            again = xclass.load(tmp_path / "library.model", feature_hash=feature_hash)
            assert np.array_equal(again.predict_many(x), model.predict_many(x))
            again.close()
    assert models[0] != models[1]
    with pytest.raises(xclass.UsageError, match="'names', 'identity'"):
        xclass.Learner("oaa", 5, feature_hash="none")


EXAMPLES = [
    ({"sunny": 1, "warm": 2.5}, "| sunny warm:2.5"),
    ({"colour": "red", "7": 2, "x": 0, "y": None, "z": True}, "| colour:red 7:2 z"),
    ({"wind": {"speed": 3.5, "from": "north"}, "rain": 1}, "| rain |wind speed:3.5 from:north"),
    ({"wind": {"a": 1}, "sun": {"b": 2}, "water": {"c": 3}}, "|wind a |sun b:2 |water c:3"),
    ({}, "| "),
    ({"wind": {}}, "| "),
    ({3: 0.5, 4: np.float32(2)}, "| 3:0.5 4:2"),
]


@pytest.mark.parametrize("options", [{}, {"hash": "all", "hash_seed": 3}, {"noconstant": True}, {"quadratic": "ws"}])
def test_dictionaries_are_learned_like_text(tmp_path, options):
    contents = []
    for use in (0, 1):
        with xclass.Learner("oaa", 3, bits=16, **options) as model:
            for i, example in enumerate(EXAMPLES):
                model.learn(example[use], i % 3 + 1)
            model.learn_many([example[use] for example in EXAMPLES], [i % 3 + 1 for i in range(len(EXAMPLES))])
            model.core.schema.names = {}  # kinds, which text has not
            contents.append(model_bytes(model, tmp_path))
            predictions = model.predict_many([example[0] for example in EXAMPLES]).tolist()
            assert predictions == [model.predict(example[1]) for example in EXAMPLES]
    assert contents[0] == contents[1]


def test_texts_are_bags_of_words(tmp_path):
    texts = ["a red shoe", "green tea", "", "red tea 7", "caf\u00e9 au lait"]
    y = ["shoes", "tea", "none", "tea", "coffee"]
    lines = [f"{label} | {text}" for label, text in zip(y, texts, strict=True)]
    contents = []
    for arguments in ((texts, y), (lines,), (np.array(texts), np.array(y)), (xclass.Documents(texts), y)):
        with xclass.Learner(bits=14, text_split="spaces") as model:
            model.learn_many(*arguments)
            contents.append(model_bytes(model, tmp_path))
            assert model.predict("red tea") == "tea" and model.predict_many(["red tea"]).tolist() == ["tea"]
    assert len(set(contents)) == 1
    with xclass.Learner("oaa", 2) as model:
        for label, error in (("b", xclass.DataError), (2, xclass.UsageError)):
            with pytest.raises(error, match=r"batch:2:.*xclass\.Documents"):
                model.learn_many(["| a", f"{label} | c"], [1, 2])
        with pytest.raises(xclass.UsageError, match="y is missing"):
            model.learn_many(["a b", "c d"])
        model.learn_many(xclass.Documents(["a | b:3", "c d"]), [1, 2])
        assert model.predict_many(xclass.Documents(["a | b:3"])).tolist() == [1]


def test_columns_of_a_dataframe_are_named_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "height": [1.5, 2.0, 0.0],
            "tall": [True, False, True],
            "title": ["red shoe", None, "tea"],
            "count": pandas.array([1, 2, 3], "Int64"),
            "kind": pandas.Categorical(["x", "y", "x"]),
        }
    )
    lines = [
        "1 | height:1.5 tall count |title red shoe |kind x",
        "2 | height:2 count:2 |kind y",
        "1 | tall count:3 |title tea |kind x",
    ]
    contents = []
    for arguments in ((frame, [1, 2, 1]), (lines,)):
        with xclass.Learner("oaa", 2, bits=14, text_split="spaces") as model:
            model.learn_many(*arguments)
            model.core.schema.replace(Schema())  # which a model of VW text does not have
            contents.append(model_bytes(model, tmp_path))
    assert contents[0] == contents[1]
    with xclass.Learner("oaa", 2) as model:
        frame.loc[1, "height"] = np.inf
        with pytest.raises(xclass.DataError, match="row 1, column 'height': the value is inf"):
            model.learn_many(frame, [1, 2, 1])
        with pytest.raises(xclass.UsageError, match="column 'day' holds datetime"):
            model.learn_many(pandas.DataFrame({"day": pandas.to_datetime(["2020-01-01"])}), [1])
        assert model.examples == 0


def test_cells_of_a_frame_that_are_neither_text_nor_numbers_are_refused():
    pandas = pytest.importorskip("pandas")
    missing = pandas.DataFrame({"a": ["x y", None, pandas.NA, pandas.NaT, 1.5, float("nan")]})
    with xclass.Learner("oaa", 2, bits=10, noconstant=True, text_split="spaces") as model:
        model.learn_many(missing, [1] * 6)
        assert model.core.progress.features == 3
        for cells, shown in (([[1], [2, 3]], r"row 0, column 'a': the value is list \[1\]"), (["x", {"b"}], "row 1")):
            with pytest.raises(xclass.DataError, match=shown):
                model.learn_many(pandas.DataFrame({"a": cells}), [1, 2])
        assert model.examples == 6


def test_a_column_that_the_model_does_not_know_may_have_any_type():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"height": [1.0, 2.0]})
    with xclass.Learner("oaa", 2, bits=10) as model:
        model.learn_many(frame, [1, 2])
        with pytest.warns(xclass.XclassWarning, match="not learned from column 'day'"):
            model.predict_many(frame.assign(day=pandas.Timestamp("2020-01-01")))


def test_polars_frames_are_read_like_those_of_pandas(tmp_path):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"height": [1.5, 2.0], "tall": [True, False], "title": ["red shoe", None]}
    contents = []
    for frame in (pandas.DataFrame(columns), polars.DataFrame(columns)):
        with xclass.Learner("oaa", 2, bits=14) as model:
            model.learn_many(frame, [1, 2])
            contents.append(model_bytes(model, tmp_path))
    assert contents[0] == contents[1]


def test_labels_become_names_by_themselves():
    x, y = matrix()
    names = np.array(NAMES, object)[y - 1]
    with xclass.Learner(bits=16) as model:
        model.learn_many(x, names)
        assert set(model.predict_many(x)) <= set(NAMES) and sorted(model.classes) == sorted(NAMES)
        assert (model.predict_many(x) == names).mean() > 0.9
        labels, p = model.predict_many(x[:2], k=9)
        assert labels.shape == p.shape == (2, 9) and labels[0, -1] is None and p[0, -1] == 0
        listed = model.predict({"1": 3}, k=9)
        assert 1 <= len(listed) <= 5 and all(name in NAMES for name, _ in listed)
        model.learn_many(x[:3], [None, float("nan"), "new one"])
        assert model.classes[-1] == "new one"
    with xclass.Learner("oaa", 3, bits=16) as model:
        with pytest.raises(xclass.DataError, match=r"y\[\d+\] is .*, a name too many: allowed are 3"):
            model.learn_many(x, names)
        assert model.examples == 0 and model.classes == []
    with xclass.Learner("oaa", 2, named_labels="a,b") as model, pytest.raises(xclass.DataError, match=r"y\[0\] is 'c'"):
        model.learn_many(x[:1], ["c"])


def test_labels_may_come_from_an_iterator_and_must_be_names_if_the_first_one_is():
    with xclass.Learner(bits=10) as model:
        model.learn_many([{"a": 1}] * 2, iter(["tea", "beer"]))
        assert model.classes == ["tea", "beer"]
        for wrong in (["milk"], ("milk", []), True):
            with pytest.raises(xclass.DataError, match=r"y\[1\] is .*(allowed are names|a list of labels)"):
                model.learn_many([{"a": 1}] * 2, ["tea", wrong])


def test_a_number_in_a_learner_of_names_is_a_name():
    with xclass.Learner(bits=12) as model:
        model.learn_many([{"a": 1}, {"b": 1}], ["cat", "dog"])
        model.learn({"c": 1}, 2)
        model.learn("2.0 | c")
        model.learn_many(["c"] * 3, np.array([2, 2.5, math.nan]))
        assert model.classes == ["cat", "dog", "2", "2.0", "2.5"]


def test_a_learner_takes_any_whole_number_at_any_time():
    texts = ["a b", "c d", "e f", "g h"]
    for first in ([3, 1], [3, 0]):
        model = xclass.Learner(bits=12)
        model.learn_many(texts[:2], first)
        for _ in range(5):
            model.learn("e f", 0)
            model.learn("-7 | g h")
            model.learn("i j", 20_000_000)
            model.learn_many(["k l"], ["99999999999999999999"])
        model = pickle.loads(pickle.dumps(model))
        assert model.predict("e f") == 0 and model.predict("g h", 1)[0][0] == -7
        assert model.predict_many(["i j", "k l"]).tolist() == [20_000_000, 99999999999999999999]
        assert set(model.classes) >= {3, 0, -7, 20_000_000}
        model.learn_many(["m n"], [[0, 1]] if model.core.config.reduction.labels == "multilabel" else [1])
        model.close()
    with xclass.Learner("multilabel", bits=12) as model:
        model.learn_many(texts[:2] * 5, [[3, 1], [0]] * 5)
        model.learn_many(["e f"] * 9, [[-1, 20_000_000]] * 9)
        assert model.predict_many(texts[:3]).tolist() == [[1, 3], [0], [-1, 20_000_000]]
        model.learn_many(texts[:2], np.array([[0, 1, 0, 1], [1, 0, 0, 0]]))
        assert model.classes == [0, 1, 2, 3, -1, 20_000_000]


def test_rows_of_0_and_1_are_a_matrix_and_the_labels_of_one_example_a_list():
    rows = [[0, 1, 1], [1, 0, 0]]
    for y in (rows, list(map(tuple, rows)), np.array(rows), list(np.array(rows))):
        with xclass.Learner("multilabel", bits=12) as model:
            model.learn_many(["a b", "c d"] * 9, [*y] * 9 if isinstance(y, list) else np.tile(y, (9, 1)))
            assert model.predict_many(["a b", "c d"]).tolist() == [[1, 2], [0]]
    with xclass.Learner("multilabel", bits=12) as model:
        for _ in range(9):
            model.learn("a b", [0, 1])
        assert model.predict("a b") == [0, 1]


def test_names_with_blanks_survive_a_model(tmp_path):
    names = ["hot chocolate; dark", "tea", "a b"]
    with xclass.Learner(bits=14) as model:
        for _ in range(5):
            model.learn_many([{"c": 1}, {"t": 1}, {"a": 1}], names)
        model.save(tmp_path / "m")
        expected = (tmp_path / "m").read_bytes()
    with xclass.load(tmp_path / "m") as again:
        assert again.classes == names
        assert again.predict_many([{"c": 1}, {"t": 1}, {"a": 1}]).tolist() == names
        again.save(tmp_path / "m2")
    assert (tmp_path / "m2").read_bytes() == expected
    learn("-t", "-i", "m", "-p", "p", stdin="| t\n| c\n", cwd=tmp_path)
    assert (tmp_path / "p").read_text() == "tea\nhot chocolate; dark\n"
    with xclass.Learner() as model, pytest.raises(xclass.DataError, match="control character"):
        model.learn({"a": 1}, "two\x01lines")


def test_a_single_example_is_learned_like_a_batch_of_one(tmp_path):
    x, y = matrix(60)
    dicts = [{str(j): v for j, v in zip(row.indices, row.data, strict=True)} for row in x]
    with xclass.Learner(bits=14) as one, xclass.Learner(bits=14) as many:
        predictions = [one.learn(example, int(label)) for example, label in zip(dicts, y, strict=True)]
        outcome = many.learn_many(x, y)
        assert predictions == [p or None for p in outcome.prediction.tolist()]
        one.core.schema.names = {}  # kinds, which a matrix has not
        assert model_bytes(one, tmp_path) == model_bytes(many, tmp_path)
        assert one.learn_one(dicts[0]) == one.predict_one(dicts[0]) == many.predict_many(x[:1])[0]
    with xclass.Learner("scalar") as model:
        assert model.learn({"a": 1}, 2.5, weight=2.0) == 0.0
        assert model.predict({"a": 1}) > 0.5 and model.predict("| a") == model.predict("a")


def test_a_text_has_its_label_in_one_place():
    with xclass.Learner("oaa", 3) as model:
        with pytest.raises(xclass.UsageError, match="the text has a label, and a label is given beside it"):
            model.learn("1 | a", 2)
        assert model.examples == 0


X = np.ones((3, 2))


@pytest.mark.parametrize(
    ("x", "y", "weight", "message"),
    [
        (np.array([[1, 2], [np.nan, 1]]), [1, 2], None, "row 1, column 0: the value is nan"),
        (sparse.csr_matrix([[1, 2], [0, np.inf]]), [1, 2], None, "row 1, column 1: the value is inf"),
        (np.array([[1e39, 1]]), [1], None, "row 0, column 0: the value is 1e"),
        (np.array([[1.0], [np.inf]], np.float16), [1, 2], None, "row 1, column 0: the value is inf"),
        (X, [1, 2], None, "y are of type|y: |give a number for each of the 3|3 numbers"),
        (X, [1, 2, 9], None, r"y\[2\] is 9; allowed"),
        (X, [1, 2, 1.5], None, r"y\[2\] is 1.5; allowed"),
        (X, ["1", None, ""], None, r"y\[2\] is empty text; give None for no label"),
        (X, [1, 2, 3], [1, 1], "sample_weight"),
        (X.astype(str), [1, 2, 3], None, "give numbers in two dimensions"),
        (np.ones(3), [1, 2, 3], None, "give numbers in two dimensions"),
        (np.ones((2, 2), complex), [1, 2], None, "give numbers in two dimensions"),
        (3, [1], None, "examples are int 3"),
        ([{"a": 1}, "| b"], [1, 2], None, "example 1"),
        (["| a", 3], None, None, "example 1: int 3; give"),
        ({"a": 1}, 1, None, "a dictionary is a single example"),
    ],
)
def test_tables_that_are_refused_leave_the_learner_as_it_was(x, y, weight, message):
    with xclass.Learner("oaa", 3) as model:
        with pytest.raises(xclass.XclassError, match=message):
            model.learn_many(x, y, weight)
        assert model.examples == 0 and model.core.reduction.saved().arrays is not None


def test_empty_tables_are_no_examples():
    with xclass.Learner("oaa", 3) as model:
        for x in (np.empty((0, 4)), sparse.csr_matrix((0, 4)), [], np.empty((0, 0))):
            assert len(model.learn_many(x, []).prediction) == 0
            assert model.predict_many(x).shape == (0,)
            assert model.predict_many(x, k=2)[0].shape == (0, 2)


def test_learners_are_pickled_and_copied(tmp_path):
    x, y = matrix()
    with xclass.Learner(bits=14) as model:
        model.learn_many(x, np.array(NAMES, object)[y - 1])
        expected = model_bytes(model, tmp_path)
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert model_bytes(other, tmp_path) == expected
            assert np.array_equal(other.predict_many(x), model.predict_many(x))
            other.learn({"new": 1}, "another")
            assert other.classes[-1] == "another" and "another" not in model.classes
            other.close()
    with xclass.Learner("softmax_tree", 5) as model:
        model.learn_many(x, y)
        with pytest.raises(xclass.UsageError, match="not learned yet"):
            pickle.dumps(model)


COUNTED = re.compile("frequencies.count|index.count|index_classes.weight")


def test_files_are_learned_like_by_the_command(tmp_path):
    x, y = matrix()
    xclass.write_vw(tmp_path / "train.vw", x, np.array(["a", "b", "c", "d", "e"])[y - 1])
    for name, options in (("multiclass", {}), ("cpt", {"cpt_tree": "kmeans", "tree_sample": 0})):
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        command = ("-d", "train.vw", f"--{name}", 0, "-b", 16, *words, "--passes", 2, "--holdout_off", "-k", "-c")
        learn(*command, "-f", "m", cwd=tmp_path)
        with xclass.Learner(name, bits=16, **options) as model:
            figures = model.learn_file(tmp_path / "train.vw", passes=2)
            assert figures["examples"] == figures["weighted_examples"] == 300
            evaluated = model.evaluate(tmp_path / "train.vw")
            assert evaluated["average_loss"] <= figures["average_loss"] < 0.5
            tested = learn("-d", "train.vw", "-t", "-i", "m", cwd=tmp_path)
            assert f"average loss = {evaluated['average_loss']:.6f}" in tested.err
            model.save(tmp_path / "library")
        ours, theirs = (xclass.load(tmp_path / path) for path in ("library", "m"))
        assert np.array_equal(ours.predict_many(x), theirs.predict_many(x))
        counts = [{k: a for k, a in state_of(model).arrays.items() if COUNTED.match(k)} for model in (ours, theirs)]
        assert len(counts[0]) == (3 if name == "multiclass" else 0)  # further passes count nothing again
        assert counts[0] == counts[1]
        ours.close(), theirs.close()


FILES = {
    "drinks.csv": ("csv", "label,size,smell\ntea,0.25,of leaves\nbeer,0.5,of hops\n", ["tea", "beer"]),
    "drinks.jsonl": ("jsonl", '{"label": "tea", "text": "leaf"}\n{"label": "beer", "text": "hops"}\n', ["tea", "beer"]),
    "tea.txt": ("fasttext", "__label__1 kettle leaf\n__label__beer hops\n", ["1", "beer"]),
    "numbers.txt": ("libsvm", "1 1:0.5\n2 2:1.5\n", 2),
    "books": ("xmc", "2 10 4\n0 1:0.5 7:2\n3 2:1.5\n", ["0", "3"]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FILES)
def test_files_of_every_format_are_learned_like_by_the_command(tmp_path, name):
    """The format is chosen by the first lines or given; so is the type of the labels."""
    chosen, text, classes = FILES[name]
    (tmp_path / name).write_text(text)
    learn("-d", name, "--multiclass", 0, "-b", 16, "-f", "m", cwd=tmp_path)
    for format in ("auto", chosen):
        with xclass.Learner(bits=16) as model:
            figures = model.learn_file(tmp_path / name, format=format)
            assert (figures["examples"], figures["weighted_examples"], model.classes) == (2, 2, classes)
            assert model.evaluate(tmp_path / name, format=format)["examples"] == 2
            model.save(tmp_path / "library")
        with xclass.load(tmp_path / "library") as ours, xclass.load(tmp_path / "m") as theirs:
            assert pickle.dumps(ours) == pickle.dumps(theirs)


def test_learning_from_a_file_without_labels_is_an_error(tmp_path):
    for name, text, advice in (
        ("a.vw", "| tea\n| beer\n", "a labelled line is `label | features`"),
        ("a.csv", "size,label\n1,\n2,\n", "all cells of the column 'label' are empty"),
    ):
        (tmp_path / name).write_text(text)
        with xclass.Learner(bits=10) as model:
            with pytest.raises(xclass.DataError, match=f"{name}: no example was learned from; {advice}"):
                model.learn_file(tmp_path / name)
            assert model.evaluate(tmp_path / name)["examples"] == 2


def test_a_missing_file_is_named_without_an_option_of_the_command(tmp_path):
    with xclass.Learner(bits=10) as model, pytest.raises(xclass.DataError, match=r"file; check its name$"):
        model.learn_file(tmp_path / "nowhere.vw")


def test_warnings_about_lines_before_an_error_are_issued(tmp_path):
    (tmp_path / "a.vw").write_text("3\n1 | a\n2 | b:nan\n")
    with xclass.Learner("oaa", 2, bits=10) as model:
        for call in (model.learn_file, model.evaluate):
            with pytest.raises(xclass.DataError), pytest.warns(xclass.XclassWarning, match="'3' touches the bar"):
                call(tmp_path / "a.vw")


def test_warnings_about_refused_data_are_not_those_of_the_next_call(tmp_path):
    (tmp_path / "bad.vw").write_text("2\n3 | a:nan\n")
    with xclass.Learner(bits=10, on_bad_line="stop") as model:
        model.learn_many(["1 | a"])
        refused = (
            lambda: model.learn_many("import x\nx y z | a\n"),
            lambda: model.learn_many("| a\nb\n", [1, 0.5]),
            lambda: model.learn("2 | a", 1),
            lambda: model.learn_file(tmp_path / "bad.vw"),
        )
        for call in refused:
            with pytest.raises(xclass.XclassError):
                call()
            assert model.learn_many([{"a": 1}], [1]).warnings == ()


def test_errors_about_the_format_of_a_file_say_what_to_give(tmp_path):
    (tmp_path / "a.csv").write_text("room,size\nhall,1\nkitchen,2\n")
    (tmp_path / "a.vw").write_text("1 | tea\n")
    with xclass.Learner(bits=10) as model:
        for file, arguments, message in (
            ("a.csv", {"label_column": "colour"}, "^label_column 'colour': .* has no such column"),
            ("a.vw", {"label_column": "room"}, "^label_column is for CSV"),
        ):
            with pytest.raises(xclass.UsageError, match=message):
                model.learn_file(tmp_path / file, **arguments)
        model.learn_file(tmp_path / "a.csv", label_column=1)
        assert model.classes == ["hall", "kitchen"]
    with xclass.Learner(bits=10) as model, pytest.raises(xclass.UsageError, match="passes: '2' is not a whole number"):
        model.learn_file(tmp_path / "a.vw", passes="2")
    with pytest.raises(xclass.DataError, match=r"where a model is new, learn_file\(\) of a Learner takes names"):
        list(xclass.read_vw(tmp_path / "a.csv", format="csv"))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_that_are_written_are_read_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("vw") / "x.vw"
    x = np.array([values], np.float32)
    xclass.write_vw(path, x)
    (batch,) = xclass.read_vw(path)
    assert np.array_equal(batch.value[:-1], x[0, x[0] != 0])


def test_labels_that_are_no_word_cannot_be_written(tmp_path):
    for label in ("a|b", "'tag", ""):
        with pytest.raises(xclass.DataError, match=r"y\[0\] is "):
            xclass.write_vw(tmp_path / "x.vw", np.ones((1, 1)), [label])
    with pytest.raises(xclass.DataError, match="y has 1 labels for 2 examples"):
        xclass.write_vw(tmp_path / "x.vw", np.ones((2, 1)), [1])
    with pytest.raises(xclass.UsageError, match="is not a sparse matrix"):
        xclass.write_vw(tmp_path / "x.vw", ["| a"], [1])


def test_long_names_are_not_kept():
    long = "x" * (feature_names.LETTERS + 1)
    with xclass.Learner("oaa", classes=2, bits=12) as learner:
        learner.predict_many([{"short": 1.0, long: 1.0, "space": {long: 1.0}, long + "y": {"a": 1.0}}])
        hasher = learner.inputs.hasher
        assert hasher.index.cache_info().currsize == 2  # `short` and `a`
        assert hasher.namespace(long) == hasher.hash(long, 0)
        assert hasher._namespace.cache_info().currsize == 1


def test_names_that_are_cached_take_little_memory():
    letters = "\N{GRINNING FACE}" * (feature_names.LETTERS - 6)
    with xclass.Learner("oaa", classes=2, bits=12) as learner:
        hasher = learner.inputs.hasher
        hasher.index("short", 0), hasher.namespace("short")
        tracemalloc.start()
        for i in range(70_000):
            hasher.index(f"{letters}{i}", 0)
            hasher.namespace(f"{letters}{i}")
        assert tracemalloc.get_traced_memory()[0] < 36e6
        tracemalloc.stop()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_break_in_an_element_is_a_blank(end):
    texts, lines = ["kettle{}leaf", "hops{0}{0}barley", "bean{}", "{}"], ["|w kettle{}leaf", "|w hops |v a{}b"]
    with xclass.Learner(bits=12) as broken, xclass.Learner(bits=12) as blank:
        for model, space in ((broken, end), (blank, " ")):
            outcome = model.learn_many([text.format(space) for text in texts] * 5, ["tea", "beer", "coffee", None] * 5)
            assert len(outcome.prediction) == 20
            assert model.learn(texts[0].format(space), "tea") == "tea"
        for one in (*texts, *lines):
            assert broken.predict(one.format(end)) == blank.predict(one.format(" "))
            assert str(broken.explain(one.format(end))) == str(blank.explain(one.format(" ")))
        for many in (texts, lines, [*texts, *lines]):
            given = [[one.format(space) for one in many] for space in (end, " ")]
            assert broken.predict_many(given[0]).tolist() == blank.predict_many(given[1]).tolist()
            assert list(map(str, broken.explain_many(given[0]))) == list(map(str, blank.explain_many(given[1])))
        with pytest.warns(xclass.XclassWarning, match="batch:2: .* holds several lines with a bar"):
            assert len(broken.predict_many(["|w a", f"|w a{end}|w b"])) == 2


def test_names_are_the_predictions_before_learning():
    with xclass.Learner() as model, xclass.Learner() as lists:
        assert model.learn_many(["a", "b", "a"], ["x", "y", "x"]).prediction.tolist()[1:] == ["x", "x"]
        lists.learn_many(["a", "b"] * 9, [["x"], ["y", "z"]] * 9)
        assert lists.learn_many(["a"], [["x"]]).prediction.tolist() == [["x"]]


def test_what_is_shown_goes_on_when_numbers_become_names(capsys):
    with xclass.Learner("cpt") as model:
        with model.shown(2, None, "pass"):
            model.learn_many([{"a": 1}, {"b": 1}] * 20, [1, 2] * 20)
            model.learn_many([{"a": 1}, {"c": 1}] * 20, [1, 20_000_000] * 20)
        assert model.classes == [1, 2, 20_000_000]
    count, loss = re.fullmatch(r"pass: (\d+) examples, loss (\S+)\n", capsys.readouterr().err).groups()
    assert count == "80" and 0 < float(loss) < 1
