"""The doubly sparse softmax: agreement with its oracle, pruning, and its probabilities."""

import harness
import numpy as np
import pytest
from oracles.sparse_experts import SparseExperts
from streams import multiclass

from xclass import Learner
from xclass.reductions.sparse_experts import kernels

K = 9


@pytest.mark.parametrize("options", [
    {"experts": 3, "group_lasso": 0.01, "prune_every": 40},
    {"experts": 2, "group_lasso": 0.1, "prune_every": 25, "prune_below": 1.0, "load_balance": 0.0},
    {"experts": 1},
], ids=str)  # fmt: skip
def test_agrees_with_the_oracle(options):
    """The predictions made before an example is learned, the classes of experts and probabilities are the oracle's."""
    text = multiclass(3, K, 300, weights=(1, 0.5, 2), unlabelled=0.1)
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    settled = harness.configure("--sparse_experts", K, "-b", 12, "-l", 2, "--random_seed", 5, *words)
    learner = harness.learner_of(settled)
    batch = harness.batch_of(settled, text)
    task, _ = harness.go_through_stages(learner, batch)
    o = learner.settings
    oracle = SparseExperts(
        K, options["experts"], len(learner.experts.gate), 5, 2.0, o.lasso, o.threshold, o.balance, o.every,
        float(kernels.SPREAD), int(kernels.WINDOW),
    )  # fmt: skip
    examples = harness.examples_of(batch)
    for (features, label, weight), prediction in zip(examples, task.prediction.tolist(), strict=True):
        expected = oracle.predict(features)
        if prediction != expected:  # scores that are equal up to the rounding of float32
            a = oracle.scores(features)[3]
            assert abs(a[prediction] - a[expected]) < 1e-5
        if label is not None:
            oracle.learn(features, label, weight)
    held = [{int(c) + 1 for c in learner.experts.label[e, :size]} for e, size in enumerate(learner.experts.size)]
    assert held == [set(classes) for classes in oracle.w]
    assert options["experts"] == 1 or sum(map(len, held)) < K * options["experts"]
    assert set().union(*held) == set(range(1, K + 1))
    scratch = kernels.new_scratch(batch.most_features, learner.experts)
    for i in range(0, 300, 30):
        _, e, lacking = kernels.score(learner.experts, batch, i, scratch)
        p = oracle.probabilities(examples[i].features)
        size = learner.experts.size[e]
        assert np.allclose(scratch.p[:size], list(p.values()), rtol=1e-3, atol=1e-6)
        assert np.isclose(float(scratch.p[:size].sum()) + (K - size) * float(lacking), 1.0)


def test_load_balancing_spreads_the_examples_over_the_experts():
    text = multiclass(1, K, 600, noise=0)
    shares = []
    for balance in (0.0, 20.0):
        with Learner("sparse_experts", K, bits=12, experts=3, load_balance=balance) as model:
            model.learn_many(text)
            mean = model.core.reduction.experts.mean
            shares.append(float(mean.max() / mean.sum()))
    assert shares[1] < min(0.5, shares[0])
