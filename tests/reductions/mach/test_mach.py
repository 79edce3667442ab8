"""MACH: agreement with its oracle, the contract, and what its option and its models may hold."""

import harness
import numpy as np
import pytest
from command import xclass as command
from oracles import learner as oracle_learner
from oracles.mach import Mach
from streams import multiclass

import xclass
from xclass import Learner
from xclass.errors import ModelError, UsageError
from xclass.model import model_file

K = 9
pytestmark = pytest.mark.usefixtures("exponential", "place")


def check(size: str, *words, text: str) -> float:
    """Compare the predictions and probabilities for a text with those of the oracle; return the share that is right."""
    config = harness.configure("--mach", size, "-b", 14, "--top_k", 3, *words)
    learner = harness.learner_of(config)
    batch = harness.batch_of(config, text)
    task, _ = harness.go_through_stages(learner, batch)
    repetitions, buckets = learner.repetitions, learner.buckets
    learner.close()
    o, columns = config.learner, repetitions * buckets
    rule = oracle_learner.resolve_rule(sgd=o.sgd, learning_rate=o.learning_rate, loss=o.loss_function)
    rows = (1 << o.bits) // columns
    oracle = Mach(
        repetitions, buckets, slot=lambda index, column: index % rows * columns + column,
        seed=config.run.random_seed, label_range=o.label_range, **rule,
    )  # fmt: skip
    clock = 0.0
    for i, (features, label, weight) in enumerate(harness.examples_of(batch)):
        where = f"example {i} of {size} {words}"
        p, means = oracle.probabilities(features), oracle.means(features)
        answer = int(task.prediction[i])
        if not p:
            assert answer == 0, where
        elif answer != oracle.predict(features):  # only where both are as good
            assert means[answer] > max(means.values()) - 1e-5, where
        else:
            assert task.answer_probability[i] == pytest.approx(p[answer], rel=1e-3, abs=1e-5), where
        if label is not None:
            assert task.label_probability[i] == pytest.approx(p.get(label, np.nan), rel=1e-3, abs=1e-5, nan_ok=True)
            clock += weight
            if weight > 0:
                oracle.learn(features, label, weight, clock - weight)
    return float(np.mean(task.prediction == batch.label))


@pytest.mark.bounds
@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("3,4", ()),
        ("4,5", ("--loss_function", "logistic", "--random_seed", 7)),
        ("5,3", ("--sgd", "-l", 0.2, "--loss_function", "logistic")),
        ("1,1", ()),
    ],
)
def test_agrees_with_the_oracle(size, words):
    right = check(size, *words, text=multiclass(3, K, 150, weights=(1, 0.5, 2, 0), unlabelled=0.1))
    assert right > 2 / K or size == "1,1"


def test_classes_of_any_number_share_the_buckets():
    """A thousand classes with labels up to 2**31 are told apart by 4 times 64 buckets, which predict no other class."""
    labels = [2**31 - 7919 * i for i in range(1000)]
    text = "".join(f"{y} |w w{y}\n" for y in labels * 3)
    with Learner("mach", "4,64", bits=22) as model:
        model.learn_many(text)
        assert model.classes == 1000
        answers = model.predict_many([f"|w w{y}" for y in labels])
        (listed, p) = model.predict_many([f"|w w{y}" for y in labels[:5]], k=3)
    assert float(np.mean(answers == labels)) > 0.9
    assert (listed[:, 0] == answers[:5]).all()
    assert (p[:, 0] > p[:, 1]).all()


@pytest.mark.parametrize("value", ["", "4,", "4;8", "0,8", "4,0", "300,2", "256,99999999", "-3", "4,8,2"])
def test_a_wrong_size_is_refused(value):
    with pytest.raises(UsageError, match=r"mach: .* is not \[R,\]B"):
        Learner("mach", value)


def test_a_value_is_required():
    with pytest.raises(UsageError, match=r"classes: 'mach' needs \[R,\]B"):
        Learner("mach")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda model: model.options.update(mach="4;8"), "is not"),
        (lambda model: model.options.update(mach="2,8"), "weights.sums"),
        (lambda model: model.arrays.update(label=model.arrays["label"] * 0), "from 1 to"),
        (lambda model: model.arrays.update(label=model.arrays["label"] * 0 + 3), "twice"),
        (lambda model: model.arrays.update(label=model.arrays["label"].astype(np.int32)), "int64"),
        (lambda model: model.arrays.pop("label"), "missing"),
    ],
)
def test_a_hostile_model_is_refused(edit, message):
    command("--mach", "3,8", "-b", 8, "--quiet", "-f", "m", stdin=multiclass(1, K, 50))
    loaded = model_file.load("m")
    model = model_file.Model(dict(loaded.options), loaded.facts, {k: np.array(v) for k, v in loaded.arrays.items()})
    edit(model)
    model_file.save("m", options=model.options, facts=model.facts, arrays=model.arrays)
    with pytest.raises(ModelError, match=message):
        xclass.load("m")
