"""Lists of labels that a program gives: every form of them, and the places that errors name."""

import itertools

import numpy as np
import pytest
from scipy import sparse

import xclass
from xclass.api.labels import LabelConverter, are_names
from xclass.data.class_names import Names
from xclass.data.schema import Schema
from xclass.reductions.core.spec import LabelRange

MATRIX = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])


def converted(y, n: int, names=None, highest: int = 9, learn: bool = True):
    """The list of each example, None if its labels are not known, as a learner of numbers or of `names` reads them."""
    converter = LabelConverter(
        Names(names or (), names == ()), LabelRange(int(names is not None), highest), True, Schema()
    )
    fields = converter.fields(y, n, learn)
    start = fields["label_start"]
    lists = [fields["labels"][low:high].tolist() for low, high in itertools.pairwise(start)]
    assert [len(x) for x, k in zip(lists, fields["label"], strict=True) if k == k] == [
        k for k in fields["label"] if k == k
    ]
    return [None if np.isnan(k) else x for x, k in zip(lists, fields["label"], strict=True)]


def test_lists_are_put_in_order_and_none_is_no_list():
    lists = [[5, 1], [], None, (3, 1, 3), {2}, 4, np.array([7, 6])]
    wanted = [[1, 5], [], None, [1, 3], [2], [4], [6, 7]]
    pandas = pytest.importorskip("pandas")
    for y in (lists, tuple(lists), np.array(lists, object), pandas.Series(lists, index=range(5, 12))):
        assert converted(y, 7) == wanted
    assert converted(pandas.DataFrame({"y": lists}), 7) == wanted
    assert converted(None, 2) == [None, None]


@pytest.mark.parametrize(
    "form",
    [
        np.array,
        lambda y: y.astype(bool),
        lambda y: y / 1.0,
        lambda y: y.astype(object),
        sparse.csr_matrix,
        sparse.csc_array,
    ],
)
def test_a_matrix_of_0_and_1_has_a_column_for_each_label(form):
    assert converted(form(MATRIX), 3) == [[0, 2], [], [1]]
    assert converted(form(MATRIX), 3, ("a", "b", "c")) == [[1, 3], [], [2]]
    with pytest.raises(xclass.DataError, match="y has 3 columns; give one for each of the 2 labels, or lists of them"):
        converted(form(MATRIX), 3, highest=1)


def test_names_are_numbered_as_they_come():
    assert converted([["tea", "b"], ["c", "tea"], {"z", "y", "x"}], 3, ()) == [[1, 2], [1, 3], [4, 5, 6]]
    assert converted([["a", "other"]], 1, ("a", "b"), learn=False) == [[1, xclass.data.class_names.UNKNOWN]]
    assert are_names([[], ["a"]]) and not are_names([[], [1]]) and not are_names(MATRIX)


@pytest.mark.parametrize("reduction", [None, "multilabel", "plt"])
@pytest.mark.parametrize("empty", [("a b", []), (", | a b", None), (["a b"], [[]]), ([", | a"], None)])
def test_lists_without_a_label_do_not_say_what_labels_are(reduction, empty):
    for first, second in (("tea", "2"), (3, 5)):
        with xclass.Learner(reduction, 9 if reduction == "plt" else None, bits=10) as model:
            (model.learn if isinstance(empty[0], str) else model.learn_many)(*empty)
            for _ in range(30):
                model.learn_many(["a", "b"], [[first], [second]])
            assert model.predict_many(["a", "b"]).tolist() == [[first], [second]]


def test_columns_of_a_table_are_names_where_labels_are_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(MATRIX, columns=["tea", "cake", "hot"])
    assert are_names(table) and not are_names(pandas.DataFrame(MATRIX))
    assert converted(table, 3, ()) == converted(table, 3, ("tea", "cake", "hot", "other")) == [[1, 3], [], [2]]
    assert converted(table, 3, ("hot", "tea"), learn=False) == [[1, 2], [], [xclass.data.class_names.UNKNOWN]]
    assert converted(table, 3) == [[0, 2], [], [1]]  # numbers
    with pytest.raises(xclass.DataError, match=r"y.columns\[2\] is 'hot', a name too many: allowed are 2"):
        converted(table, 3, (), highest=2)
    with xclass.Learner("multilabel_oaa", 3, bits=10) as model:
        model.learn_many(np.tile(np.eye(3), (9, 1)), pandas.concat([table] * 9))
        assert model.predict_many(np.eye(3)).tolist() == [["tea", "hot"], [], ["cake"]]
        for unnamed in (MATRIX, MATRIX.tolist(), sparse.csr_matrix(MATRIX), pandas.DataFrame(MATRIX)):
            with pytest.raises(xclass.DataError, match="columns have no names, and the labels learned are names"):
                model.learn_many(np.eye(3), unnamed)
    xclass.write_vw(tmp_path / "a", np.eye(3), table)
    assert (tmp_path / "a").read_text() == "tea,hot | 0\n, | 1\ncake | 2\n"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 2], [3, 99]], r"y\[1\]\[1\] is 99; allowed are whole numbers from 0 to 9"),
        ([[1], [], [2.5]], r"y\[2\]\[0\] is 2.5; allowed"),
        ([[1], [3, "x"]], r"y\[1\]\[1\] is str 'x'; allowed are numbers"),
        ([[1], [3, None]], r"y\[1\]\[1\] is None; allowed are lists of names or numbers"),
        ([[1], [[3]]], r"y\[1\]\[0\] is \[3\]; allowed are lists"),
        ([[True], [False]], r"y\[0\]\[0\] is True; allowed are lists"),
        (MATRIX * 2, r"y\[0\]\[0\] is 2; allowed in a matrix are 0 and 1"),
        (sparse.csr_matrix(MATRIX * 0.5), r"y\[0\]\[0\] is 0.5; allowed in a matrix"),
        ([[1]] * 4, "y has 4 labels for 3 examples"),
        (MATRIX[:2], "y has 2 rows for 3 examples"),
        ({1, 2, 3}, "y is a set"),
    ],
)
def test_errors_name_the_place_in_the_list(y, message):
    with pytest.raises(xclass.DataError, match=message):
        converted(y, len(y) if isinstance(y, list) and len(y) < 4 else 3)


@pytest.mark.parametrize(
    "y", [[[1, 5], [2]], [1, (2, 1)], MATRIX[:2], sparse.csr_matrix(MATRIX[:2]), [{1}, 2]], ids=repr
)
def test_a_reduction_of_one_label_names_what_learns_lists(y):
    message = (
        r"y(\[\d\] is .*| has the shape \(2, 3\)), a list of labels.*, and this reduction learns one; .*multilabel_oaa"
    )
    with xclass.Learner("oaa", 3, bits=10) as model:
        with pytest.raises(xclass.DataError, match=message):
            model.learn_many(np.eye(2), y)
        with pytest.raises(xclass.DataError, match=message):
            model.learn({"a": 1}, [1, 2])
        assert model.examples == 0


def test_lists_are_written_as_vw_text(tmp_path):
    xclass.write_vw(tmp_path / "a", np.eye(4), [[1, 5], [], None, ("tea", "b")])
    xclass.write_vw(tmp_path / "b", np.eye(3), sparse.csr_matrix(MATRIX))
    assert (tmp_path / "a").read_text() == "1,5 | 0\n, | 1\n| 2\ntea,b | 3\n"
    assert (tmp_path / "b").read_text() == "0,2 | 0\n, | 1\n1 | 2\n"
