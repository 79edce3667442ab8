"""`xclass.sklearn.XMultilabelClassifier`: scikit-learn's checks, labels in every form, and the command's models."""

import pickle

import numpy as np
import pytest
from command import learn as run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import xclass

pytest.importorskip("sklearn", "1.6")
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_classifier_multioutput, parametrize_with_checks
from test_sklearn import EXPECTED_FAILURES

from xclass.api import files
from xclass.sklearn import XClassifier, XMultilabelClassifier

REDUCTIONS = ("multilabel_oaa", "plt", "multilabel")


@pytest.mark.sampled(5)
@parametrize_with_checks(
    [XMultilabelClassifier(name) for name in REDUCTIONS], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_check_of_several_outputs_passes_too(name):
    assert XMultilabelClassifier(name).__sklearn_tags__().classifier_tags.multi_label
    check_classifier_multioutput("XMultilabelClassifier", XMultilabelClassifier(name))


def data(n: int = 300, classes: int = 6, seed: int = 0):
    """A matrix whose column j is 1 where an example has the label j, beside columns of noise; and the labels."""
    rng = np.random.default_rng(seed)
    y = (rng.random((n, classes)) < 0.3).astype(int)
    y[:, 0] |= y.sum(axis=1) == 0
    noise = sparse.random(n, 20, 0.1, "csr", np.float32, rng, data_rvs=lambda size: rng.integers(1, 4, size))
    return sparse.hstack([sparse.csr_matrix(y), noise]).astype(np.float32).tocsr(), y


def lists_of(y, names=None):
    names = np.arange(y.shape[1]) if names is None else names
    return [names[row.astype(bool)].tolist() for row in y]


NAMES = np.array(["tea", "black tea", "c,d", "e", "f", "g"])
FORMS = {
    "dense": (lambda y: y, np.ndarray),
    "bool": (lambda y: y.astype(bool), np.ndarray),
    "rows": (lambda y: y.tolist(), np.ndarray),
    "sparse": (sparse.csr_matrix, sparse.csr_matrix),
    "csc_array": (sparse.csc_array, sparse.csr_matrix),
    "lists": (lists_of, list),
    "sets": (lambda y: [*map(set, lists_of(y))], list),
    "objects": (lambda y: np.array(lists_of(y), object), list),
    "names": (lambda y: lists_of(y, NAMES), list),
}


@pytest.mark.parametrize("form", FORMS)
def test_predictions_have_the_form_of_the_labels(form):
    X, y = data()
    convert, kind = FORMS[form]
    model = XMultilabelClassifier(passes=3, bits=14).fit(X, convert(y))
    names = np.sort(NAMES) if form == "names" else np.arange(6)
    assert_array_equal(model.classes_, names)
    predicted = model.predict(X)
    assert type(predicted) is kind
    chosen = model.predict_proba(X) > 0.5
    if kind is list:
        assert predicted == lists_of(chosen, model.classes_)
    else:
        assert_array_equal(predicted.toarray() if kind is sparse.csr_matrix else predicted, chosen)
        assert predicted.dtype == int
    assert model.score(X, convert(y)) > 0.9
    assert model.score(X, predicted) == 1
    weight = (y[:, 0] == 0).astype(float)
    assert model.score(X, convert(y), weight) == model.score(X[weight > 0], convert(y[weight > 0]))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("named", [False, True])
def test_fit_learns_the_model_of_the_command(tmp_path, name, named):
    X, y = data()
    labels = lists_of(y, np.array(["a", "b", "c", "d", "e", "f"])) if named else lists_of(y)
    lines = files.vw_lines(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, labels, None)
    words = ["--" + name] + [6] * (name == "multilabel_oaa")  # the others need no number of labels
    run(*words, *["--learn_names"] * named, "-b", 14, "--quiet", "-f", "c", stdin="".join(lines), cwd=tmp_path)
    model = XMultilabelClassifier(name, bits=14).fit(X, labels)
    model.learner_.core.schema.form = ""
    model.save(tmp_path / "e")
    assert (tmp_path / "e").read_bytes() == (tmp_path / "c").read_bytes()
    with xclass.load(tmp_path / "e") as learner:
        assert [sorted(labels) for labels in map(list, learner.predict_many(X))] == [*map(sorted, model.predict(X))]


def test_names_have_no_commas_in_a_model(tmp_path):
    X, y = data()
    model = XMultilabelClassifier(passes=3, bits=14).fit(X, lists_of(y, NAMES))
    model.save(tmp_path / "m")
    with xclass.load(tmp_path / "m") as learner:
        assert sorted(learner.classes) == sorted(name.replace(",", ";") for name in NAMES.tolist())
    assert "c,d" in {entry.label for explained in model.explain(X[:9]) for entry in explained.classes}
    with pytest.raises(ValueError, match=r"'c,d' and 'c;d', which have the same name .* ; in place of commas"):
        XMultilabelClassifier().fit(np.eye(2), [["c,d"], ["c;d"]])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_top_labels_are_the_most_probable_ones(name):
    X, y = data()
    model = XMultilabelClassifier(name, passes=2, bits=14).fit(X, y)
    p = model.predict_proba(X)
    labels, top = model.predict_top_k(X, 6)
    assert_array_equal(np.take_along_axis(p, labels, axis=1), top)
    assert (np.diff(top, axis=1) <= 0).all()
    assert_array_equal(model.predict_top_k(X, 2)[0], labels[:, :2])
    assert_array_equal(model.decision_function(X) > 0, p > 0.5)
    assert_array_equal(model.predict_top_k(X, 7)[0], labels)
    assert [e.label for e in model.explain(X[:1], k=2)[0].classes] == labels[0, :2].tolist()


def test_pieces_bring_new_labels_and_a_matrix_keeps_its_columns():
    X, y = data()
    model = XMultilabelClassifier("multilabel_oaa", bits=16, max_classes=9).partial_fit(X[:100], lists_of(y[:100, :3]))
    assert_array_equal(model.classes_, [0, 1, 2])
    model.partial_fit(X, lists_of(y))
    assert_array_equal(model.classes_, np.arange(6))
    for _ in range(3):
        model.partial_fit(X, sparse.csr_matrix(y))
    assert model.score(X, y) > 0.9 and isinstance(model.predict(X), list)
    assert model.predict_top_k(X, 3)[0].max() == 5  # labels 6 to 8 do not exist
    with pytest.raises(ValueError, match=r"the number of labels 12 is above the 9 classes .*; give max_classes=12"):
        model.partial_fit(X[:1], [[11]])
    assert model.partial_fit(X[:2], [[], []]).predict(X[:1]) == model.predict(X[:1])
    given = XMultilabelClassifier(bits=14).partial_fit(X, y, classes=NAMES)
    assert_array_equal(given.classes_, np.sort(NAMES))
    assert len(XMultilabelClassifier(bits=14).fit(X, np.c_[y, 0 * y]).classes_) == 12


def test_labels_of_the_default_grow_through_pieces():
    X, y = data()
    model = XMultilabelClassifier(bits=16).partial_fit(X[:100], lists_of(y[:100, :3]))
    for _ in range(4):
        model.partial_fit(X, lists_of(y))
    model.partial_fit(X[:1], [[11]])
    assert_array_equal(model.classes_, [*range(6), 11])
    assert model.score(X, lists_of(y)) > 0.8
    assert model.predict_proba(X).shape == (X.shape[0], 7)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 5], [2, None]], r"y\[1\]\[1\] is None"),
        ([[1.5], [2, 3]], "Unknown label type|continuous"),
        (np.array([[1, 2], [0, 1]]), r"y\[0\]\[1\] is 2; allowed in a matrix are 0 and 1"),
        (np.array([[1, np.nan], [0, 1]]), "NaN"),
        ([[1]], "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_are_not_allowed_are_named(y, message):
    model = XMultilabelClassifier(bits=10)
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(2), y)
    assert not hasattr(model, "learner_")


def test_labels_may_be_a_column_of_a_table():
    pandas = pytest.importorskip("pandas")
    lists = [["x"], ["y", "z"], []]
    frame = pandas.DataFrame({"labels": lists, "x": [1, 0, 0], "y": [0, 1, 0]})
    for y in (frame["labels"], frame[["labels"]]):
        assert XMultilabelClassifier("multilabel_oaa", 9, 10).fit(np.eye(3), y).predict(np.eye(3)) == lists
    predicted = XMultilabelClassifier("multilabel_oaa", 9, 10).fit(np.eye(3), frame[["x", "y"]]).predict(np.eye(3))
    assert_array_equal(predicted, frame[["x", "y"]])
    mixed = XMultilabelClassifier("multilabel_oaa", 9, 10).fit(np.eye(3), [1, [2, 3], []])
    assert mixed.predict(np.eye(3)) == [[1], [2, 3], []]


def test_each_classifier_names_the_other_one():
    for y in ([[1, 2], [3]], np.eye(2, 3, dtype=int)):
        with pytest.raises(
            ValueError, match=r"a list of labels.*, and XClassifier learns one; XMultilabelClassifier lea"
        ):
            XClassifier().fit(np.eye(2), y)
    with pytest.raises(ValueError, match=r"reduction: 'oaa' is none of multilabel, .*plt; give it to XClassifier"):
        XMultilabelClassifier("oaa").fit(np.eye(2), [[1], [2]])
    with pytest.raises(ValueError, match=r"reduction: 'plt' is none of .*; give it to XMultilabelClassifier"):
        XClassifier("plt").fit(np.eye(2), [1, 2])


def test_searches_copies_and_a_scorer_for_each_label_beside_it():
    X, y = data(600)
    own = XMultilabelClassifier(passes=5, random_state=1).fit(X[:400], y[:400])
    peer = OneVsRestClassifier(SGDClassifier(loss="log_loss", random_state=1)).fit(X[:400], y[:400])
    scores = [f1_score(y[400:], model.predict(X[400:]), average="micro") for model in (own, peer)]
    assert scores[0] > scores[1] - 0.02 and scores[1] > 0.9
    assert_array_equal(own.classes_, peer.classes_)
    for same in (pickle.loads(pickle.dumps(own)), clone(own).fit(X[:400], y[:400])):
        assert_allclose(same.predict_proba(X), own.predict_proba(X))
    search = GridSearchCV(XMultilabelClassifier(), {"passes": [1, 5]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5 and search.predict(X).shape == y.shape


@pytest.mark.parametrize("name", ["multilabel", "plt"])
def test_later_labels_of_lists_may_be_any_whole_numbers(name):
    X = np.eye(3)
    model = XMultilabelClassifier(name, bits=14)
    for _ in range(8):
        model.partial_fit(X[:2], [[3, 1], [0]])
    for _ in range(20):
        model.partial_fit(X, [[3, 1], [0], [-1, 20_000_000]])
    assert model.predict(X) == [[1, 3], [0], [-1, 20_000_000]]
