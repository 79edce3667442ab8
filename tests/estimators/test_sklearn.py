"""`xclass.sklearn.XClassifier`: what scikit-learn expects, the command's models, and labels of all kinds.

To run this file with another scikit-learn, see CONTRIBUTING.md.
"""

import copy
import doctest
import gc
import importlib
import io
import pickle
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from command import learn as run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from servers import wait_for

import xclass

pytest.importorskip("sklearn", "1.6")
import joblib
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from xclass.api import files
from xclass.sklearn import XClassifier

ALL = ("multiclass", "cpt", "hsm", "oaa", "recall_tree", "log_multi", "ect", "random_tree", "softmax_tree")
WITH_PROBABILITIES = ("multiclass", "cpt", "hsm", "oaa", "recall_tree", "softmax_tree")
FIXED = ("oaa", "recall_tree", "log_multi", "ect", "random_tree")
REPEATED = "each example is learned at the current rate, so that a weight of 2 is not the example twice"
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
}


def expected_failures(estimator):
    if estimator.reduction not in ("cpt", "hsm"):
        return EXPECTED_FAILURES
    return {**EXPECTED_FAILURES, "check_class_weight_classifiers": "adaptive steps hardly grow with the weight"}


@pytest.mark.sampled(5)
@parametrize_with_checks([XClassifier(name) for name in ALL], expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_only_two_checks_may_fail_and_scores_are_not_declared_poor():
    assert len(EXPECTED_FAILURES) == 2
    assert not XClassifier().__sklearn_tags__().classifier_tags.poor_score


def data(n: int = 400, classes: int = 6, seed: int = 0, labels: int = 1):
    """Return a matrix of small whole numbers, whose text is exact, and labels from `labels` on."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = sparse.random(n, 60, 0.1, "csr", np.float32, rng, data_rvs=lambda size: rng.integers(1, 4, size))
    X = (X + sparse.csr_matrix((np.full(n, 2.0), (np.arange(n), 60 + y)), (n, 60 + classes))[:, :60]).tocsr()
    own = sparse.csr_matrix((np.ones(n), (np.arange(n), y)), (n, classes))
    return sparse.hstack([own, X]).astype(np.float32).tocsr(), y + labels


def text_of(X, labels) -> str:
    return "".join(files.vw_lines(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, labels, None))


# -- the command's models


def save_as_of_text(classifier: XClassifier, path: Path) -> None:
    """Save a model as if its examples had come from a file of VW text instead of a matrix."""
    classifier.learner_.core.schema.form = ""
    classifier.save(path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
def test_fit_learns_the_model_of_the_command(tmp_path, name, named):
    X, y = data()
    labels = np.array([f"class-{label}" for label in y]) if named else y
    words = ("--" + name,) if name in ("multiclass", "cpt", "hsm") else ("--" + name, 6)
    words = (*words, 0) if name in ("cpt", "hsm") else words
    named_words = ("--learn_names",) if named else ()
    run(*words, *named_words, "-b", 14, "--quiet", "-f", "c", stdin=text_of(X, labels), cwd=tmp_path)
    save_as_of_text(XClassifier(name, bits=14).fit(X, labels), tmp_path / "e")
    assert (tmp_path / "e").read_bytes() == (tmp_path / "c").read_bytes()


def test_fit_without_options_learns_the_model_of_the_command_without_options(tmp_path):
    X, y = data()
    run("--quiet", "-f", "c", stdin=text_of(X, y), cwd=tmp_path)
    save_as_of_text(XClassifier().fit(X, y), tmp_path / "e")
    assert (tmp_path / "e").read_bytes() == (tmp_path / "c").read_bytes()


def test_several_passes_and_options_are_those_of_the_command(tmp_path):
    X, y = data()
    (tmp_path / "t").write_text(text_of(X, y))
    words = "--trees 2 --cpt_tree kmeans --tree_sample 100"
    run(*f"-d t --cpt 0 -b 14 -c --passes 3 --holdout_off --random_seed 5 {words} --quiet -f c".split(), cwd=tmp_path)
    for options in (words, {"trees": 2, "cpt_tree": "kmeans", "tree_sample": 100}):
        model = XClassifier("cpt", passes=3, bits=14, random_state=5, options=options).fit(X, y)
        save_as_of_text(model, tmp_path / "e")
        assert (tmp_path / "e").read_bytes() == (tmp_path / "c").read_bytes()
        assert model.n_iter_ == 3


def test_options_by_name_are_those_of_a_grid(tmp_path):
    X, y = ["a b c", "c d e"] * 6, ["p", "q"] * 6
    for options in (None, "--trees 2", {"trees": 2}):
        model = clone(XClassifier(options=options)).set_params(options__text_ngram=1, options__trees=None)
        assert clone(model).get_params()["options"] == {"text_ngram": 1}
        assert model.fit(X, y).learner_.options["text_ngram"] == 1
    grid = {"xclassifier__options__text_ngram": [1, 2, None], "xclassifier__options": [None, "--trees 2", {"trees": 1}]}
    pipe = make_pipeline(XClassifier(bits=12))
    assert GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y).best_score_ == 1


@pytest.mark.parametrize("name", ["multiclass", *FIXED])
def test_thirty_pieces_are_one_fit_and_new_labels_are_predicted(tmp_path, name):
    X, y = data(900, 40)
    XClassifier(name, bits=16, max_classes=40).fit(X, y).save(tmp_path / "w")
    pieces = XClassifier(name, bits=16, max_classes=40)
    for rows in np.array_split(np.arange(900), 30):
        pieces.partial_fit(X[rows], y[rows])
    pieces.save(tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize("kind", [int, str])
def test_five_hundred_new_labels_in_the_last_piece_are_predicted(kind):
    def piece(low, high):
        label = np.arange(low, high).repeat(4)
        return sparse.csr_matrix((np.ones(len(label)), (np.arange(len(label)), label)), (len(label), 700)), label

    X, y = piece(1, 101)
    model = XClassifier(bits=20).partial_fit(X, y.astype(kind))
    assert len(model.classes_) == 100
    X, y = piece(101, 601)
    model.partial_fit(X, y.astype(kind))
    assert len(model.classes_) == 600 and (np.sort(model.classes_) == model.classes_).all()
    assert (model.predict(X) == y.astype(kind)).mean() > 0.95
    assert model.predict_proba(X[:3]).shape == (3, 600)


# -- labels

LABELS = {
    "numbers": lambda y: y,
    "from zero": lambda y: y - 1,
    "negative": lambda y: -y,
    "identifiers": lambda y: y + 10**12,
    "floats": lambda y: y / 1.0,
    "strings": lambda y: np.array([f"label {label}" for label in y]),
    "objects": lambda y: np.array([f"label {label}" for label in y], object),
    "odd strings": lambda y: np.array(["", "\n", "a|b", "a,b", "é", " "])[y - 1],
    "list": lambda y: [f"label {label}" for label in y],
    "booleans": lambda y: y > 3,
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["multiclass", "oaa"])
def test_labels_of_all_kinds_come_back(name, kind):
    X, y = data()
    labels = LABELS[kind](y)
    model = XClassifier(name, passes=2, bits=14).fit(X, labels)
    labels = np.asarray(labels)
    assert_array_equal(model.classes_, np.unique(labels))
    assert model.predict(X).dtype == labels.dtype
    assert model.score(X, labels) > 0.9
    p = model.predict_proba(X)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert_array_equal(model.predict_top_k(X, 2)[0][:, 0], model.predict(X))


@pytest.mark.parametrize("kind", [int, str, object])
@pytest.mark.filterwarnings("error")
def test_many_classes_are_no_reason_for_a_warning(kind):
    y = np.arange(1, 101).astype(str).astype(kind)
    assert XClassifier(bits=14).fit(np.eye(100), y).partial_fit(np.eye(100), y).predict(np.eye(100)).shape == (100,)


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ([1, 2], ["a", "b"], "y holds strings"),
        (["a", "b"], [1, 2], "y holds integers"),
        ([True, False], [1, 2], "y holds integers"),
    ],
)
def test_later_labels_of_another_kind_are_refused(first, later, message):
    model = XClassifier(bits=10).partial_fit([[1.0], [2.0]], first)
    before = pickle.dumps(model.learner_)
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit([[1.0], [2.0]], later)
    assert pickle.dumps(model.learner_) == before and len(model.classes_) == 2


@pytest.mark.parametrize("name", ["multiclass", "cpt", "oaa", "recall_tree", "ect"])
@pytest.mark.parametrize("kind", [int, float])
def test_a_later_label_may_be_any_whole_number(name, kind):
    X = np.eye(6)
    model = XClassifier(name, bits=14)
    for _ in range(5):
        model.partial_fit(X[:2], np.array([3, 1], kind))
    for _ in range(20):
        model.partial_fit(X[2:], np.array([0, 20_000_000, -7, 2], kind))
    assert_array_equal(model.classes_, [-7, 0, 1, 2, 3, 20_000_000])
    model = pickle.loads(pickle.dumps(model))
    assert_array_equal(model.predict(X[2:]), [0, 20_000_000, -7, 2])
    assert model.classes_.dtype == kind and model.score(X[2:], [0, 20_000_000, -7, 2]) == 1
    assert model.explain(X[3:4])[0].prediction == 20_000_000


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_number_of_classes_has_room_and_a_limit(name):
    X, y = data(classes=6)
    model = XClassifier(name, bits=16).partial_fit(X[:200], y[:200])
    assert model.learner_.core.label_range.highest == 1006
    model.partial_fit(X[200:], y[200:] + 100)
    with pytest.raises(ValueError, match="max_classes=1007"):
        model.partial_fit(X[:1], [1007])
    exact = XClassifier(name, bits=14).fit(X, y)
    assert exact.learner_.core.label_range.highest == 6
    with pytest.raises(ValueError, match="max_classes=7 or more, or a reduction whose classes grow"):
        exact.partial_fit(X[:1], [7])
    given = XClassifier(name, bits=14).partial_fit(X, y, classes=range(1, 10))
    assert given.learner_.core.label_range.highest == 9 and len(given.classes_) == 9
    with pytest.raises(ValueError, match="max_classes=6"):
        XClassifier(name, max_classes=5).fit(X, y.astype(str))


@pytest.mark.parametrize("name", ALL)
def test_classes_without_examples_are_not_predicted(name):
    X, y = data(60)
    y = np.where(y % 2 == 0, 3 * y, 1)  # numbers with gaps
    model = XClassifier(name, bits=14).fit(X, y)
    strange = sparse.csr_matrix(np.random.default_rng(1).normal(size=(300, X.shape[1])))
    assert set(model.predict(strange)) <= set(y)
    if name in WITH_PROBABILITIES:
        assert set(model.predict_top_k(strange, 3)[0].ravel()) <= set(y)


def test_the_best_learned_class_replaces_one_without_examples():
    X, y = data(classes=3)
    model = XClassifier("oaa", bits=14, max_classes=5).partial_fit(X, y)
    model.learner_.learn_many(X, np.full(len(y), 5))  # behind the back of the estimator: class 5 is always best
    assert set(model.learner_.predict_many(X)) == {5}
    model.learner_.core.reduction.want(xclass.api.learner.LearnerUse())
    _, p = model.learner_.probabilities(X)
    assert_array_equal(model.predict(X), p[:, :3].argmax(axis=1) + 1)
    assert_array_equal(model.predict_top_k(X, 3)[0][:, 0], model.predict(X))
    assert_array_equal(model.decision_function(X).argmax(axis=1) + 1, model.predict(X))
    trees = XClassifier("random_tree", bits=14, max_classes=5).partial_fit(X, y)
    trees.learner_.learn_many(X, np.full(len(y), 5))
    wrong = trees.learner_.predict_many(X) == 5
    assert wrong.any() and (trees.predict(X)[wrong] == np.bincount(y).argmax()).all()


# -- probabilities


@pytest.mark.parametrize("name", WITH_PROBABILITIES)
def test_probabilities_are_complete_and_top_k_is_their_beginning(name):
    X, y = data(classes=20)
    model = XClassifier(name, bits=16).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (400, 20) and (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    labels, top = model.predict_top_k(X, 20)
    for given, expected in zip(model.predict_top_k(X, 99), (labels, top), strict=True):
        assert_array_equal(given, expected)
    assert_array_equal(np.sort(labels, axis=1), np.tile(model.classes_, (400, 1)))
    assert (np.diff(top, axis=1) <= 1e-12).all()
    assert_array_equal(labels[:, 0], model.predict(X))
    if name != "multiclass":  # whose lists hold the candidates of its trees
        assert_allclose(model.predict_top_k(X, 3)[1], -np.sort(-p, axis=1)[:, :3], atol=1e-6)
    with np.errstate(divide="ignore"):
        assert_allclose(model.predict_log_proba(X), np.log(p))
    assert np.isfinite(model.decision_function(X)).all()
    assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("name", WITH_PROBABILITIES)
@pytest.mark.parametrize(("classes", "copies"), [(40, 1), (40, 4), (120, 1)])
def test_the_predicted_label_is_the_most_probable_one_also_if_labels_occur_once(name, classes, copies):
    texts = [f"word{i} other{i % 7} other{i % 5}" for i in range(classes)]
    model = XClassifier(name, bits=14).fit(texts * copies, list(range(1, classes + 1)) * copies)
    p = model.predict_proba(texts)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(texts))
    found, p = model.learner_.probabilities(texts)
    assert_array_equal(found[p.argmax(axis=1)], model.learner_.predict_many(texts))
    assert (p.sum(axis=1) < 1 + 1e-5).all()


def test_scores_of_oaa_are_those_of_its_regressors():
    X, y = data()
    model = XClassifier("oaa", bits=14, loss="logistic").fit(X, y)
    p = 1 / (1 + np.exp(-model.decision_function(X)))
    assert_allclose(p / p.sum(axis=1, keepdims=True), model.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_reductions_without_probabilities_have_no_such_methods():
    for name in ("log_multi", "ect", "random_tree"):
        for method in ("predict_proba", "predict_log_proba", "predict_top_k", "decision_function"):
            assert not hasattr(XClassifier(name), method)
    assert not hasattr(XClassifier("softmax_tree"), "partial_fit")
    assert hasattr(XClassifier("hsm"), "partial_fit")


def test_examples_held_for_a_tree_are_learned_before_predicting():
    X, y = data()
    model = XClassifier("hsm", bits=14, passes=1)
    for rows in np.array_split(np.arange(400), 4):
        model.partial_fit(X[rows], y[rows])
    assert model.learner_.preview_size is not None
    assert model.score(X, y) > 0.3 and model.learner_.preview_size is None
    model.partial_fit(X, y)
    pickle.loads(pickle.dumps(XClassifier("hsm", bits=14).partial_fit(X, y)))
    whole = XClassifier("cpt", options="--cpt_tree huffman --tree_sample 0").partial_fit(X, y)
    assert whole.score(X, y) > 0.3
    whole = XClassifier("cpt", bits=14, options="--cpt_tree huffman --tree_sample 0").fit(X, y)
    assert whole.predict(X).shape == (400,)


# -- inputs


def test_sparse_dense_and_frames_are_learned_alike():
    pandas = pytest.importorskip("pandas")
    X, y = data(150)
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    frame = pandas.DataFrame(X.toarray(), columns=[f"f{j}" for j in range(X.shape[1])])
    sparse_forms = (X, sparse.csr_array(X), wide, X.tocsc())
    dense_forms = (X.toarray(), np.asfortranarray(X.toarray(), np.float64), frame)
    for reduction, forms in (("oaa", (*sparse_forms, *dense_forms)), ("multiclass", sparse_forms)):
        models = [XClassifier(reduction, bits=14).fit(same, y) for same in forms]
        assert len({pickle.dumps(model.learner_) for model in models}) == 1
        assert {model.n_features_in_ for model in models} == {X.shape[1]}
    models = [XClassifier(bits=14).fit(same, y) for same in dense_forms]  # class means learn the rows as they are
    assert len({pickle.dumps(model.learner_) for model in models[:2]}) == 1
    np.testing.assert_array_equal(models[0].predict_proba(dense_forms[0]), models[2].predict_proba(frame))
    model = models[2]
    assert model.feature_names_in_[:2].tolist() == ["f0", "f1"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"f0": "other"}))


def test_texts_and_columns_of_text():
    texts = ["red | green", "blue black", "red yellow", "blue white"] * 20
    y = ["warm", "cold"] * 40
    for X in (texts, np.array(texts), np.array(texts, object)):
        model = XClassifier(bits=14).fit(X, y)
        assert model.predict(["a red one", "blue"]).tolist() == ["warm", "cold"]
        assert not hasattr(model, "n_features_in_")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": texts, "size": np.arange(80.0)})
    mixed = XClassifier(bits=14).fit(frame, y)
    assert mixed.score(frame, y) > 0.9 and mixed.feature_names_in_.tolist() == ["colour", "size"]
    assert mixed.predict(frame[:3]).shape == (3,)
    with pytest.raises(ValueError, match="feature names"):
        mixed.predict(frame[["colour"]])


X_GOOD, Y_GOOD = [[1.0, 0.0], [0.0, 2.0]], [1, 2]


@pytest.mark.parametrize(
    ("X", "y", "weight", "error"),
    [
        ([[1.0, np.nan], [0, 1]], Y_GOOD, None, ValueError),
        ([[1.0, np.inf], [0, 1]], Y_GOOD, None, ValueError),
        ([[1.0, 1e300], [0, 1]], Y_GOOD, None, ValueError),
        (sparse.csr_matrix([[1.0, np.nan], [0, 1]]), Y_GOOD, None, ValueError),
        (X_GOOD, [1], None, ValueError),
        (X_GOOD, [1, np.nan], None, ValueError),
        (X_GOOD, [[1, 2], [2, 1]], None, ValueError),
        (X_GOOD, [0.5, 1.5], None, ValueError),
        (X_GOOD, None, None, ValueError),
        (X_GOOD, [1 + 1j, 2], None, ValueError),
        (X_GOOD, [], None, ValueError),
        (X_GOOD, Y_GOOD, [1.0, -1.0], ValueError),
        (X_GOOD, Y_GOOD, [1.0, np.nan], ValueError),
        (X_GOOD, Y_GOOD, [0.0, 0.0], ValueError),
        (X_GOOD, Y_GOOD, [1.0], ValueError),
        ([[1.0], [2.0]], Y_GOOD, None, ValueError),
        (np.empty((0, 2)), [], None, ValueError),
        (np.empty((2, 0)), Y_GOOD, None, ValueError),
        (np.array([[{}, 1], [2, 3]], object), Y_GOOD, None, TypeError),
        (np.array([["a", 1], [2, 3]], object), Y_GOOD, None, ValueError),
        ([1.0, 2.0], Y_GOOD, None, ValueError),
        (["text", "more"], Y_GOOD, None, ValueError),
    ],
)
def test_bad_data_are_refused_and_nothing_is_learned(X, y, weight, error):
    model = XClassifier(bits=10).fit(X_GOOD, Y_GOOD)
    before = pickle.dumps(model)
    with pytest.raises(error):
        model.partial_fit(X, y, sample_weight=weight)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reduction": "tree"}, "'tree' is none of multiclass"),
        ({"reduction": "scalar"}, "'scalar' is none of"),
        ({"passes": 0}, "passes: 0"),
        ({"passes": 1.5}, "passes: 1.5"),
        ({"bits": 99}, "bits: 99"),
        ({"learning_rate": "fast"}, "learning_rate: 'fast'"),
        ({"random_state": -1}, "^random_state: -1 is not"),
        ({"max_classes": 0}, "max_classes: 0"),
        ({"n_jobs": 0}, "n_jobs: 0"),
        ({"options": "--nothing 3"}, "no option --nothing"),
        ({"options": "-l 0.5 --passes=3"}, "'--passes' belongs to a run of the command; give passes=N"),
        ({"options": {"learn_names": True}}, "the estimator sets it"),
        ({"options": {"nothing": 3}}, "no option 'nothing'"),
        ({"options": "-q a"}, "^options: quadratic a names 1 namespace"),
        ({"options": 3}, "neither text nor a dictionary"),
    ],
)
def test_parameters_that_are_not_allowed_are_refused_by_fit(parameters, message):
    model = XClassifier(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X_GOOD, Y_GOOD)


# -- tools of scikit-learn


def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.array(["setosa", "versicolor", "virginica"])[y[order]]


def test_copies_predict_alike(tmp_path):
    X, y = iris()
    model = XClassifier(passes=3, bits=12, n_jobs=2).fit(X, y)
    joblib.dump(model, tmp_path / "m")
    shallow = copy.copy(model)
    for same in (
        pickle.loads(pickle.dumps(model)), copy.deepcopy(model), shallow, joblib.load(tmp_path / "m", mmap_mode="r"),
    ):  # fmt: skip
        assert_array_equal(same.predict_proba(X), model.predict_proba(X))
        assert same.learner_.core.reduction.workers == 2
    empty = clone(model)
    assert empty.get_params() == model.get_params() and not hasattr(empty, "learner_")
    resumed = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    model.partial_fit(X, y)
    assert pickle.dumps(resumed.learner_) == pickle.dumps(model.learner_)


def test_a_small_model_is_a_small_pickle_and_searches_are_fast():
    X, y = iris()
    model = XClassifier(passes=3).fit(X, y)
    assert len(pickle.dumps(model)) < 200_000  # with the latest rows
    start = time.perf_counter()
    search = GridSearchCV(XClassifier(passes=5), {"learning_rate": [0.1, 0.5]}, cv=3).fit(X, y)
    assert time.perf_counter() - start < 30  # about a second; much more if the weight tables were written
    assert search.best_score_ > 0.7


def test_texts_go_through_pipelines():
    texts = ["free money now", "meeting at ten", "dinner on sunday"] * 30
    labels = ["spam", "work", "family"] * 30
    for vectorizer in (HashingVectorizer(), TfidfVectorizer()):
        model = make_pipeline(vectorizer, XClassifier(bits=16)).fit(texts, labels)
        assert model.predict(["money", "the meeting", "sunday"]).tolist() == ["spam", "work", "family"]
        assert model.score(texts, labels) == 1


def test_calibration_and_cross_validation():
    X, y = iris()
    for name in ("oaa", "multiclass"):
        calibrated = CalibratedClassifierCV(XClassifier(name, passes=5, bits=14), cv=2).fit(X, y)
        assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert CalibratedClassifierCV(XClassifier("softmax_tree"), cv=3).fit(X, y).score(X, y) > 0.9
    p = cross_val_predict(XClassifier("softmax_tree"), X, y, cv=3, method="predict_proba")
    assert p.shape == (150, 3) and (np.unique(y)[p.argmax(axis=1)] == y).mean() > 0.9


@pytest.mark.parametrize(
    ("parameters", "X"),
    [({"options": "--foo"}, X_GOOD), ({"passes": 0}, X_GOOD), ({}, [[1e300], [1.0]]), ({}, [["a"], [1.0]])],
)
def test_a_fit_that_is_refused_leaves_the_earlier_model_as_it_is(parameters, X):
    model = XClassifier(bits=10, passes=5).fit(X_GOOD, ["a", "b"])
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError):
        model.set_params(**parameters).fit(X, [1, 2])
    assert {name: value for name, value in vars(model).items() if name.endswith("_")} == fitted
    assert model.predict(X_GOOD).tolist() == ["a", "b"]
    new = XClassifier(bits=10)
    with pytest.raises(ValueError):
        new.set_params(**parameters).partial_fit(X_GOOD, [1, 2], sample_weight=[0, 0])
    assert not hasattr(new, "n_features_in_")


def test_a_fit_that_does_not_end_leaves_the_earlier_model(monkeypatch):
    model, new = XClassifier(bits=10).fit(X_GOOD, ["a", "b"]), XClassifier(bits=10)

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(xclass.Learner, "end_pass", interrupted)
    for estimator in (model, new):
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X_GOOD, [1, 2])
    assert model.predict(X_GOOD).tolist() == ["a", "b"]
    assert vars(new) == vars(XClassifier(bits=10)) | {"_own_turn": new._own_turn}
    assert new.partial_fit(X_GOOD, ["c", "d"]).predict(X_GOOD).tolist() == ["c", "d"]


def test_learning_goes_on_only_with_the_same_reduction():
    model = XClassifier(bits=10).partial_fit(X_GOOD, Y_GOOD).set_params(reduction="oaa", warm_start=True)
    before = pickle.dumps(model)
    for call in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="reduction: 'oaa' is not 'multiclass', by which the model was made"):
            call(X_GOOD, Y_GOOD)
    assert pickle.dumps(model) == before
    assert model.set_params(warm_start=False).fit(X_GOOD, Y_GOOD).learner_.core.config.reduction.name == "oaa"
    assert model.partial_fit(X_GOOD, Y_GOOD).learner_.examples == 4


@pytest.mark.parametrize("column", [9, -1])
def test_a_column_that_the_matrix_does_not_have_is_refused(column):
    X, y = sparse.csr_matrix(np.eye(4)), [1, 2, 3, 4]
    model = XClassifier(bits=10).fit(X, y)
    X.indices[2] = column
    message = f"row 2: indices contains {column}; allowed are 0 to 3, because the matrix has 4 columns"
    for call in (lambda: XClassifier(bits=10).fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("name", ["multiclass", "oaa", "recall_tree"])
def test_threads_and_seeds(name):
    X, y = data(600, 40)
    first, *others = [pickle.dumps(XClassifier(name, bits=16, n_jobs=n).fit(X, y).learner_) for n in (None, 1, 2, -1)]
    assert all(other == first for other in others)
    if name == "recall_tree":
        options = "--randomized_routing"
        default, zero, seven, state = [
            pickle.dumps(XClassifier(name, bits=16, options=options, random_state=seed).fit(X, y).learner_)
            for seed in (None, 0, 7, np.random.RandomState(0))
        ]
        assert default == zero and len({zero, seven, state}) == 3


def test_warm_start_continues():
    X, y = data()
    twice = XClassifier(bits=14, warm_start=True).fit(X, y).fit(X, y)
    pieces = XClassifier(bits=14).partial_fit(X, y).partial_fit(X, y)
    assert pickle.dumps(twice.learner_) == pickle.dumps(pieces.learner_)
    assert twice.set_params(warm_start=False).fit(X, y).learner_.examples == len(y)
    with pytest.raises(ValueError, match="features"):
        XClassifier(bits=14, warm_start=True).fit(X, y).fit(X[:, :5], y)


def test_weights_are_those_of_the_learner():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0, 2, len(y))
    weight[y == 3] = 0
    model = XClassifier("oaa", bits=14).fit(X, y, weight)
    with xclass.Learner("oaa", 6, bits=14) as learner:
        learner.learn_many(X, y, weight)
        learner.end_pass()
        assert pickle.dumps(model.learner_) == pickle.dumps(learner)
    assert 3 in model.classes_ and 3 not in model.predict(X)


@pytest.mark.slow
def test_the_top_classes_of_many_rows_need_little_memory():
    """The peak of a process of its own: an array of all rows and all classes would be 320 MB per 50,000 rows."""
    script = """
        import resource
        import numpy as np
        from scipy import sparse
        from xclass.sklearn import XClassifier

        rng = np.random.default_rng(0)
        def rows(n):
            y = rng.integers(1, 801, n)
            columns = np.stack([y, 801 + rng.integers(0, 50, n)], axis=1).ravel()
            return sparse.csr_matrix((np.ones(2 * n, np.float32), columns, np.arange(0, 2 * n + 1, 2)), (n, 851)), y
        model = XClassifier("oaa", bits=16).fit(*rows(4000))
        model.predict_top_k(rows(100)[0], 5)
        X, _ = rows(50_000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        labels, p = model.predict_top_k(X, 5)
        assert labels.shape == p.shape == (50_000, 5)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 150


def test_dropped_estimators_free_their_memory():
    X, y = iris()
    reductions = []
    gc.disable()
    try:
        for _ in range(3):
            reductions.append(weakref.ref(XClassifier(bits=16).fit(X, y).learner_.core.reduction))
        wait_for(lambda: not any(reduction() for reduction in reductions))  # the thread of the last call may end late
    finally:
        gc.enable()


def test_docstrings_run():
    module = importlib.import_module("xclass.sklearn")
    output = io.StringIO()
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(module, "xclass.sklearn"):
        runner.run(test, out=output.write)
    assert runner.summarize(verbose=False).failed == 0, output.getvalue()
    assert runner.tries > 5


def test_explanations_have_the_labels_and_columns_of_the_program():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": [1.0, 0.1] * 10, "weight": [0.2, 2.0] * 10})
    model = XClassifier("oaa").fit(frame, ["small", "large"] * 10)
    first, second = model.explain(frame.iloc[:2], k=2)
    assert [first.prediction, second.prediction] == model.predict(frame.iloc[:2]).tolist() == ["small", "large"]
    assert [entry.label for entry in first.classes] == ["small", "large"]
    assert {share.name for share in first.classes[0].shares} == {"size", "weight", "Constant"}
    (of_text,) = XClassifier("multiclass").fit(["red ball", "blue sky"] * 5, [True, False] * 5).explain(["red sun"], 1)
    assert of_text.prediction is True
    assert "red" in {share.name for share in of_text.classes[0].shares}


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "int64[pyarrow]"])
def test_large_labels_of_pandas_own_types_are_not_rounded(kind):
    pandas = pytest.importorskip("pandas")
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    ids = 10**17 + np.arange(40) % 4
    rows = np.eye(4)[np.arange(40) % 4]
    y = pandas.Series(ids).astype(kind)
    for given in (y, y.to_frame()):
        assert XClassifier(passes=3).fit(rows, given).predict(rows[:4]).tolist() == ids[:4].tolist()
        assert XClassifier().partial_fit(rows, given).classes_.tolist() == ids[:4].tolist()
