"""Single examples: a stream learned one by one leaves what `learn_many` leaves, and gives the same answers."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import state_of
from streams import of_kind
from variants import KINDS, K, every_variant, learner

import xclass
from xclass.kernels.direct import DirectCall
from xclass.reductions.core import label_arrays

FAST = ("recall_tree", "log_multi", "cpt", "multiclass", "oaa")
NAMES = st.sampled_from(["a", "b", "7", "long name", "ü", ""])
VALUES = st.sampled_from([1.0, 0.0, -2.5, 3, 1e-30, 1e20, 3e38, "red", None, True])
FLAT = st.dictionaries(NAMES, VALUES, max_size=5)
EXAMPLES = st.tuples(
    st.one_of(FLAT, st.dictionaries(st.sampled_from(["n", "m", "nn"]), FLAT, max_size=3)),
    st.one_of(st.none(), st.integers(1, 4)),
    st.sampled_from([None, 1.0, 0.0, 0.5, 1e30]),
)


def stream(name: str, n: int) -> list[str]:
    """Lines with weights, some without a label."""
    kind = KINDS[name]
    lines = of_kind(kind, 3, K, n, **({} if kind == "simple" else {"weights": (1, 0.5, 0)})).splitlines()
    return [line if i % 7 else "|" + line.partition("|")[2] for i, line in enumerate(lines)]


def noted(call, *args):
    """Return what a call returns, and the texts of its warnings without the name of what was read."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        result = call(*args)
    return result, [str(one.message).replace("example:", "batch:") for one in issued]


def as_label(model, array):
    """Return the first of the predictions of `learn_many` or `predict_many` as `learn` and `predict` return it."""
    if not len(array):
        return None
    if isinstance(array[0], (float, list)):
        return array[0]
    return (
        array[0] if isinstance(array[0], str) else int(array[0]) or (0 if model.core.label_range.lowest == 0 else None)
    )


def counters(model) -> dict:
    return {**model.core.progress.counters(), "examples": model.examples, "shown": model.core.progress.examples}


@pytest.mark.sampled(4)
@every_variant()
def test_lines_one_by_one(name, options):
    lines = stream(name, 60)
    with learner(name, **options) as single, learner(name, **options) as rows, learner(name, **options) as whole:
        if single.preview_size == 0:
            pytest.skip("it has to see all of the data first")
        for line in lines:
            result, notes = noted(single.learn, line)
            outcome, expected = noted(rows.learn_many, line)
            assert (result, notes) == (as_label(rows, outcome.prediction), expected)
            result, notes = noted(single.predict, line)
            prediction, expected = noted(rows.predict_many, line)
            assert (result, notes) == (as_label(rows, prediction), expected)
        whole.learn_many(lines)
        for model in (single, rows, whole):
            model.end_pass()
        assert state_of(single) == state_of(rows) == state_of(whole)
        assert counters(single) == counters(rows) == counters(whole)


@pytest.mark.parametrize("name", FAST)
@settings(max_examples=8, deadline=None)
@given(st.lists(EXAMPLES, min_size=1, max_size=12))
def test_dictionaries_one_by_one(name, examples):
    options = {"bits": 10, **({} if name in ("cpt", "multiclass") else {"classes": 4})}
    features, labels, weights = zip(*examples, strict=True)
    filled = [1.0 if weight is None else weight for weight in weights]
    with xclass.Learner(name, **options) as single, xclass.Learner(name, **options) as whole:
        made = [noted(single.learn, *example)[0] for example in examples]
        outcome, _ = noted(whole.learn_many, list(features), list(labels), filled)
        assert made == [as_label(whole, outcome.prediction[i:]) for i in range(len(examples))]
        assert state_of(single) == state_of(whole)
        assert counters(single) == counters(whole)
        assert single.average_loss == whole.average_loss
        assert [single.predict(one) for one in features] == [
            as_label(whole, whole.predict_many([one])) for one in features
        ]


def test_named_labels():
    with xclass.Learner("cpt", bits=12) as single, xclass.Learner("cpt", bits=12) as whole:
        examples = [({"x": i % 3, "y": 1.0}, "abc"[i % 3]) for i in range(30)]
        made = [single.learn(*example) for example in examples]
        outcome = whole.learn_many([one for one, _ in examples], [label for _, label in examples])
        assert [name or "" for name in made] == outcome.prediction.tolist()
        assert state_of(single) == state_of(whole)
        assert single.classes == whole.classes == ["a", "b", "c"]


def test_warnings_of_single_examples_are_issued():
    with xclass.Learner("oaa", classes=2, bits=10) as model, pytest.warns(xclass.XclassWarning, match="is skipped"):
        model.learn({"x": 3e38}, 1, weight=1e38)


def test_a_longer_example_than_the_buffers_hold():
    lines = [f"{1 + i % 3} | " + " ".join(f"w{i * j}" for j in range(i * 80)) for i in range(1, 20)]
    for name in FAST:
        options = {"bits": 12, **({} if name in ("cpt", "multiclass") else {"classes": 3})}
        with xclass.Learner(name, **options) as single, xclass.Learner(name, **options) as whole:
            for line in lines:
                single.learn(line)
            whole.learn_many(lines)
            assert state_of(single) == state_of(whole), name


def test_later_examples_leave_earlier_predictions_as_they_are():
    """Learners reuse buffers for single examples, which results must not share."""
    for name in FAST:
        options = {"bits": 12, **({} if name in ("cpt", "multiclass") else {"classes": 3})}
        with xclass.Learner(name, **options) as model:
            model.learn_many(["1 | a", "2 | b", "3 | c"] * 20)
            tasks = [task for line in ("| a", "| b", "| c") for task in model.predict_each(line, lambda task: task)]
            assert [task.prediction.tolist() for task in tasks] == [[1.0], [2.0], [3.0]], name


def test_a_batch_with_arrays_of_other_types():
    """A `DirectCall` passes arrays as they are, so a batch of a program gets the types that it declares."""
    with xclass.Learner("log_multi", classes=3, bits=12) as usual, xclass.Learner("log_multi", classes=3) as other:
        lines = ["1 | a b:2", "2 2.0 | c", "3 | a c:0.5"]
        batch = usual._example(lines[0], None, None, True)
        twice = np.repeat(batch.value, 2)[::2]  # not contiguous
        usual.learn_many(batch)
        changed = batch._replace(
            value=twice, weight=batch.weight.astype(np.float64), start=batch.start.astype(np.int32)
        )
        other.learn_many(changed)
        assert [usual.predict(line) for line in lines] == [other.predict(line) for line in lines]


def test_direct_calls_notice_other_types():
    call = DirectCall(label_arrays, "wrong_weights")
    ones, halves = np.ones(1), np.full(1, 0.5, np.float32)
    for weight, _ in itertools.product((halves, halves, np.full(1, 0.5), halves), range(2)):
        assert call(ones, 2 * ones, weight).tolist() == [0.5]
    assert call(ones, ones, halves).tolist() == [0.0]
