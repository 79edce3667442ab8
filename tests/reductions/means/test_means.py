"""Class means: agreement with the oracle, the same model however rows come, merging, growth, and hostile models."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles.means import Means as Oracle

import xclass
from xclass import Learner
from xclass.errors import ModelError
from xclass.model import model_file
from xclass.reductions.means import class_means, kernels, space
from xclass.system import thread_limit

F = np.float32
ROOT = Path(xclass.__file__).parent.parent
pytestmark = pytest.mark.usefixtures("place")


def clusters(seed: int, classes: int, n: int, d: int = 6, noise: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Rows of classes 1, 2, ... around random centres, of columns with different scales, one of them constant."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((classes, d))
    y = rng.integers(0, classes, n)
    x = centres[y] + noise * rng.standard_normal((n, d)) @ (np.eye(d) + 0.5)
    x = x * 3.0 ** np.arange(d) + 50
    x[:, -1] = 7
    return x.astype(F), y + 1


def learned(x, y, weight=None, **options) -> Learner:
    model = Learner("means", **options)
    model.learn_many(x, y, weight)
    return model


def means_of(model: Learner) -> class_means.ClassMeans:
    return model.core.reduction.classes


@pytest.mark.parametrize(("classes", "n", "noise"), [(5, 420, 0.4), (40, 420, 1.0), (2, 60, 2.0)])
def test_agrees_with_the_oracle(classes, n, noise):
    """Each row is predicted as the oracle does, or as a class whose score is as high."""
    x, y = clusters(3, classes, n, noise=noise)
    weight = np.random.default_rng(5).choice([1, 0.5, 2], n).astype(F)
    learner = Learner("means")
    oracle = Oracle(x.shape[1], class_means.compared_classes(x.shape[1]), kernels.REPLAYS)
    number: dict[int, int] = {}
    for i in range(n):
        scores = oracle.scores(x[i])
        answer = int(learner.learn_many(x[i : i + 1], y[i : i + 1], weight[i : i + 1]).prediction[0])
        if not scores:
            assert answer == 0
        else:
            best = max(scores.values())
            assert scores[number[answer]] == pytest.approx(best, rel=2e-3, abs=2e-3), f"row {i}"
        oracle.learn(x[i], number.setdefault(int(y[i]), len(number)), float(weight[i]))
        own = means_of(learner)
        assert own.rows == len(oracle.x)
    assert own.log_tau == pytest.approx(oracle.log_tau, rel=1e-3)
    assert own.log_means_tau == pytest.approx(oracle.log_means_tau, rel=1e-3, abs=1e-3)
    assert own.omega == pytest.approx(oracle.omega, rel=1e-3, abs=1e-3)
    assert own.hits == pytest.approx(oracle.hits, rel=1e-3, abs=1.0)
    for row in x[:50]:
        (labels,), (p,) = learner.predict_many(row[None], k=3)
        scores = oracle.scores(row)
        expected = np.exp([scores[number[label]] for label in labels.tolist() if label > 0])
        total = sum(np.exp(list(scores.values())))
        assert p[: len(expected)] == pytest.approx(expected / total, rel=0.02, abs=1e-3)


def test_predictions_are_sensible_after_few_rows():
    x, y = clusters(1, 4, 40, noise=0.2)
    for n in (1, 2, 4, 8, 40):
        model = learned(x[:n], y[:n])
        assert (model.predict_many(x[:n]) == y[:n]).mean() > (0.6 if n < 40 else 0.9), n


def test_bytes_do_not_depend_on_the_threads_of_blas():
    """A process whose OpenBLAS has one thread learns the bytes that one with two threads learns."""
    program = (
        "import hashlib, numpy as np, xclass\n"
        "from xclass.api import model_contents\n"
        "rng = np.random.default_rng(1)\n"
        "y = rng.integers(0, 20, 900)\n"
        "x = (rng.standard_normal((20, 160))[y] + rng.standard_normal((900, 160))).astype(np.float32)\n"
        "model = xclass.Learner('means')\n"
        "model.learn_many(x, y + 1)\n"
        "print(hashlib.sha256(model_contents.to_bytes(model.core.contents())).hexdigest())\n"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    ]  # fmt: skip
    with thread_limit.one_blas_thread() as limited:
        if not limited:
            pytest.skip("NumPy has no OpenBLAS whose threads can be limited")
    assert found[0] == found[1]
    assert len(found[0]) == 65


@pytest.mark.parametrize("from_base", [False, True])
def test_merged_models_estimate_what_a_single_run_does(from_base):
    x, y = clusters(4, 12, 900)
    whole = learned(x, y)
    base = learned(x[:100], y[:100]) if from_base else None
    start = pickle.dumps(base) if from_base else pickle.dumps(Learner("means"))
    parts = []
    for part in (slice(100 if from_base else 0, 400), slice(400, 900)):
        model = pickle.loads(start)
        model.learn_many(x[part], y[part])
        parts.append(model)
    merged = xclass.merge(parts, base=base)
    test, truth = clusters(5, 12, 300)
    accuracy = (merged.predict_many(test) == truth).mean()
    assert accuracy >= (whole.predict_many(test) == truth).mean() - 0.05
    one, other = means_of(whole), means_of(merged)
    one.finish_block()
    one.use(one.class_sums(), one.classes.weight[: one.size].copy(), one.scatter)
    scores = []
    for model, own in ((whole, one), (merged, other)):
        own.hits[:], own.log_means_tau = (1, 0), 0.0
        own.pack()
        order = np.argsort(model.core.reduction.numbered.label[: own.size])
        scores.append(own.scores(own.transformed(test))[:, order])
    assert other.weight == one.weight == 900
    assert np.abs(scores[0] - scores[1]).max() <= 1e-4 * np.abs(scores[0]).max()


def test_merged_names_keep_their_classes():
    x, y = clusters(4, 4, 400, noise=0.2)
    names = np.array(["zero", "one", "two", "three", "four"])[y]
    order = np.roll(np.arange(200), -int(np.argmax(names[200:] == "two")))
    first, second = learned(x[:200], names[:200]), learned(x[200:][order], names[200:][order])
    assert first.core.names.names != second.core.names.names
    merged = xclass.merge([first, second])
    assert (merged.predict_many(x) == names).mean() > 0.9
    merged.learn_many(x, names)
    assert (merged.predict_many(x) == names).mean() > 0.9


def test_classes_are_added_as_they_come():
    """300 classes with labels up to 2**31, more than the room at first, are told apart."""
    rng = np.random.default_rng(0)
    labels = 2**31 - 7919 * np.arange(300)
    centres = rng.standard_normal((300, 20)).astype(F) * 5
    y = np.tile(np.arange(300), 6)
    x = centres[y] + rng.standard_normal((1800, 20)).astype(F)
    model = learned(x, labels[y])
    assert len(model.classes) == 300
    assert (model.predict_many(centres) == labels).mean() > 0.95


def test_the_first_columns_choose_among_many_classes(monkeypatch):
    """Above FEW_CLASSES, the classes that the first columns choose are scored by all, as if there were few."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((700, 80)).astype(F)
    y = np.tile(np.arange(700), 4)
    x = centres[y] + 0.7 * rng.standard_normal((2800, 80)).astype(F)
    exact = learned(x, y + 1)
    scores = exact.predict_many(x[:200], k=5)
    monkeypatch.setattr(class_means, "FEW_CLASSES", 600)
    coarse = pickle.loads(pickle.dumps(exact))
    assert means_of(coarse).packed.weight.shape[1] == class_means.COARSE
    labels, p = coarse.predict_many(x[:200], k=5)
    assert (labels[:, 0] == scores[0][:, 0]).mean() > 0.98
    same = labels[:, 0] == scores[0][:, 0]
    assert p[same, 0] == pytest.approx(scores[1][same, 0], abs=0.05)
    again = learned(x, y + 1)
    assert (again.predict_many(x) == y + 1).mean() > 0.9


def test_columns_that_depend_on_each_other_or_never_vary_do_no_harm():
    x, y = clusters(2, 5, 400)
    double = np.hstack([x, x, np.zeros_like(x)])
    accuracy = (learned(x, y).predict_many(x) == y).mean()
    assert (learned(double, y).predict_many(double) == y).mean() > accuracy - 0.05
    tiny = (x * F(1e-36)).astype(F)
    model = learned(tiny, y)
    assert set(model.predict_many(tiny).tolist()) <= set(range(1, 6))
    assert all(np.isfinite(array).all() for array in model.core.contents().arrays.values())
    same = np.ones((50, 3), F)
    assert learned(same, np.full(50, 4)).predict_many(same).tolist() == [4] * 50


def test_products_do_not_depend_on_the_rows_beside():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 37)).astype(F), rng.standard_normal((37, 1030)).astype(F)
    whole = np.zeros((9, 1030), F)
    kernels.product(a, b, 0, 9, whole)
    assert whole == pytest.approx(a @ b, abs=1e-4)
    for i in range(9):
        one = np.zeros((1, 1030), F)
        kernels.product(np.ascontiguousarray(a[i : i + 1]), b, 0, 1, one)
        assert (one[0] == whole[i]).all()


def test_a_function_of_rows_stays_the_same_in_another_space():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 4))
    spaces = [
        space.WhitenedSpace(rng.standard_normal(4), into.astype(F), np.linalg.inv(into).astype(F), np.ones(4, F))
        for into in rng.standard_normal((2, 4, 4))
    ]
    rows, row_shift, weights, weight_shift = space.between_spaces(*spaces, np.matmul)
    old, new = ((x - one.centre) @ one.into for one in spaces)
    v = rng.standard_normal((3, 4))
    assert old @ rows + row_shift == pytest.approx(new, abs=1e-4)
    assert new @ (v @ weights).T + v @ weight_shift == pytest.approx(old @ v.T, abs=1e-4)


def test_a_model_whose_sums_are_too_large_is_refused_when_it_learns():
    x, y = clusters(2, 5, 100)
    learned(x, y).save("m")
    loaded = model_file.load("m")
    arrays = {k: np.array(v) for k, v in loaded.arrays.items()}
    arrays["mean"] += F(1e30)
    arrays["back"] += F(1e30)
    model_file.save("m", options=loaded.options, facts=loaded.facts, arrays=arrays)
    model = xclass.load("m")
    with pytest.raises(ModelError, match=r"the sums of .*means are not finite"):
        model.learn_many(x, y)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda model: model.arrays.update(label=model.arrays["label"] * 0), "from 1 to"),
        (lambda model: model.arrays.update(label=model.arrays["label"] * 0 + 3), "twice"),
        (lambda model: model.arrays.pop("label"), "missing"),
        (lambda model: model.arrays.update(label=model.arrays["label"][:2]), "labels"),
        (lambda model: model.arrays.update(mean=model.arrays["mean"] * np.float32(np.nan)), "'mean'"),
        (lambda model: model.arrays.update(into=model.arrays["into"][:2]), "'into'"),
        (lambda model: model.arrays.update(psi=-model.arrays["psi"]), "'psi'"),
        (lambda model: model.arrays.update(count=model.arrays["count"] * 0), "'count'"),
        (lambda model: model.arrays["ring.own"].__setitem__(0, 5), "'ring.own'"),
        (lambda model: model.arrays["ring.near"].__setitem__((0, 0), 9), "'ring.near'"),
        (lambda model: model.arrays["ring.near"].__setitem__((0, 0), -2), "'ring.near'"),
        (lambda model: model.arrays["pending.own"].__setitem__(0, 77), "'pending.own'"),
        (lambda model: model.arrays["pending.weight"].__setitem__(0, -1), "'pending.weight'"),
        (lambda model: model.arrays["ring.z"].__setitem__((0, 0), np.inf), "'ring.z'"),
        (lambda model: model.facts["learner"].update(rows=-1), "'rows'"),
        (lambda model: model.facts["learner"].update(rows=10), "fill a block"),
        (lambda model: model.facts["learner"].update(ring_at=3), "next place"),
        (lambda model: model.facts["learner"].update(hits=[1, "x"]), "hits"),
        (lambda model: model.facts["learner"].update(log_tau=11.0), "'log_tau'"),
        (lambda model: model.facts["learner"].update(more=1), "'more'"),
    ],
)
def test_a_hostile_model_is_refused(edit, message):
    x, y = clusters(2, 5, 100)
    learned(x, y).save("m")
    loaded = model_file.load("m")
    model = model_file.Model(dict(loaded.options), loaded.facts, {k: np.array(v) for k, v in loaded.arrays.items()})
    assert len(model.arrays["pending.own"])
    edit(model)
    model_file.save("m", options=model.options, facts=model.facts, arrays=model.arrays)
    with pytest.raises(ModelError, match=message):
        xclass.load("m")
