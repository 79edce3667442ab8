"""One scorer for each label of lists: the kernels against the plain oracle, and VW's examples."""

import numpy as np
import pytest
from command import learn
from harness import configure, examples_of, learned
from oracles import learner as oracle_learner
from oracles import multilabel_oaa as oracle
from streams import multilabel
from variants import names

K = 7
VW = """0,1 | one\n1,2 | two\n2,3 | three\n3,4 | four\n2,3,4,5 | five
6 | six\n5,7 | seven\n8 | eight\n9 | nine\n1,8 | ten\n"""

pytestmark = pytest.mark.usefixtures("exponential")


@pytest.mark.parametrize(
    "words",
    [
        (), ("--layout", "vw", "--loss_function", "squared", "--label_range", "seen"), ("--link", "logistic"),
        ("--sgd", "-l", 0.2), ("--vw_exact",), ("--loss_function", "squared", "--threshold", 0.6),
    ],
    ids=names,
)  # fmt: skip
def test_agrees_with_the_oracle(words):
    exact = "--vw_exact" in words
    config = configure("--multilabel_oaa", K, "-b", 10, *words)
    text = multilabel(1, K, 150, unlabelled=0.1, weights=() if exact else (1, 2, 0.5))
    if exact:
        text += "3,1 | y3_1 y1_1\n1,1,3 | y1_1\n2,9 | y2_0\n2 | y2_0\n"
    many, batch, task, _ = learned(config, text)
    o = config.learner
    rule = oracle_learner.resolve_rule(
        **{name: getattr(o, name) for name in ("sgd", "adaptive", "normalized", "invariant")},
        learning_rate=o.learning_rate, initial_t=o.initial_t, power_t=o.power_t, loss=o.loss_function,
    )  # fmt: skip
    plain = oracle.LabelScorers(
        K, play="vw" if exact else "paper", link=o.link == "logistic", bits=10, **rule, label_range=o.label_range
    )
    if o.layout == "odd":
        plain.learner.slot = lambda index, c: index % ((1 << 10) // K) * K + c
    clock = 0.0
    given = task.label_lists
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        scores = plain.scores(features)
        chosen = given.chosen.labels[given.chosen.start[i] : given.chosen.start[i + 1]].tolist()
        bound = 0.2 if "--threshold" in words else 0.5 if o.link == "logistic" else 0.0
        np.testing.assert_array_equal(chosen, [y for y, s in enumerate(scores) if s > bound])
        best = given.ranked.labels[given.ranked.start[i] : given.ranked.start[i + 1]]
        np.testing.assert_allclose([scores[y] for y in best], sorted(scores, reverse=True)[:5], rtol=1e-4, atol=1e-5)
        if label is None:
            continue
        own = batch.labels[batch.label_start[i] : batch.label_start[i + 1]].astype(int).tolist()
        if exact:
            assert task.loss[i] == plain.loss(chosen, own)
        else:
            assert task.loss[i] == (0 if best[0] in own or not (own or chosen) else weight)
        plain.learn(features, own, weight, clock)
        clock += weight
    assert many.counts[:-1].tolist() == [sum(batch.labels == y) for y in range(K)] or exact


@pytest.mark.parametrize(
    ("words", "expected", "loss"),
    [((), [[], [0, 1], [0, 1], [1, 2], [1], [2, 3], [], [], [], []], "2.600000")],
)
def test_vw_on_its_own_example(place, words, expected, loss):
    result = learn("--multilabel_oaa", 10, "--vw_exact", *words, "-p", "p", stdin=VW)
    assert (place / "p").read_text() == "".join(",".join(map(str, labels)) + " \n" for labels in expected)
    assert f"average loss = {loss}" in result.err
