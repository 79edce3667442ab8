"""The random tree: against its oracle, and its shape."""

import numpy as np
import pytest
from command import learn
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from library import summary_of
from oracles import random_tree as oracle
from streams import multiclass

import xclass
from xclass.reductions.random_tree import reduction as random_tree


class PlainRouters:
    """Learn by the paper's gradient descent: a fixed step size, squared loss, features as they are."""

    def __init__(self, step: float):
        self.step, self.w = step, {}

    def look(self, features, learned):
        return [(index, float(value)) for index, value, *_ in features]

    def predict(self, row, sub) -> float:
        return max(-1.0, min(1.0, sum(self.w.get((index, sub), 0.0) * x for index, x in row)))

    def teach(self, row, y, weight, sub, clock) -> None:
        slope = 2 * (self.predict(row, sub) - y)
        for index, x in row:
            self.w[index, sub] = self.w.get((index, sub), 0.0) - self.step * weight * slope * x


def check(k: int, *words, n: int = 250, step: float = 0.0) -> float:
    """Compare the predictions for a stream; return the share that is right."""
    config = configure("--random_tree", k, *words)
    learner = learner_of(config)
    text = multiclass(1, k, n, noise=0.3, weights=(1, 0.5, 3, 0), unlabelled=0.1, popular=2.0)
    batch = batch_of(config, text)
    task, _ = go_through_stages(learner, batch)
    o = config.learner
    plain = oracle.RandomTree(k, config.run.random_seed, loss=o.loss_function, rate=o.learning_rate, tau=o.quantile_tau)
    if step:
        plain.routers = PlainRouters(step)
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        learned = label is not None and weight > 0
        row = plain.routers.look(features, learned)
        assert task.prediction[i] == plain.predict(row), f"example {i} of {words}"
        if learned:
            plain.learn(row, label, weight)
    learner.close()
    return float(np.mean(task.prediction == batch.label))


@pytest.mark.bounds
@pytest.mark.parametrize(
    "words",
    [(), ("--loss_function", "hinge", "-l", 1), ("--loss_function", "quantile"), ("--random_seed", 7)],
    ids=lambda words: " ".join(map(str, words)) or "defaults",
)
@pytest.mark.parametrize("k", [1, 2, 3, 8, 13, 40])
def test_kernel_follows_the_oracle(k, words):
    right = check(k, "-b", 22, *words)
    assert right > 1.5 / k or k < 4


@pytest.mark.parametrize("step", [0.25, 1])
def test_step_sizes_of_the_paper_are_a_setting(step):
    assert check(8, "-b", 24, "--layout", "vw", "--sgd", "--power_t", 0, "-l", step, step=step) > 0.1


@pytest.mark.plain
def test_kernel_follows_the_oracle_without_compiling():
    check(5, "-b", 16, n=40)


@pytest.mark.parametrize("k", [1, 2, 5, 64, 1000])
def test_labels_are_in_an_order_drawn_by_the_seed(k):
    orders = [random_tree.new_order(k, seed) for seed in (0, 0, 1)]
    for order in orders:
        assert sorted(order.label.tolist()) == list(range(k))
        assert (order.label[order.leaf] == np.arange(k)).all()
    np.testing.assert_array_equal(orders[0].label, orders[1].label)
    assert (orders[0].label + 1).tolist() == oracle.order_of(k, 0)
    assert k < 5 or not np.array_equal(orders[0].label, orders[2].label)


def test_every_order_is_as_likely():
    counts = np.zeros((4, 4))
    for seed in range(4000):
        counts[np.arange(4), random_tree.new_order(4, seed * 7919).label] += 1
    assert (abs(counts - 1000) < 150).all()


def test_places_of_routers_are_different_ones():
    for inner in (1, 2, 7, 8, 100, 5000):
        number = {-1: np.int64(-1)}
        for a in range(inner):
            number[a] = random_tree.router_below(number[(a - 1) // 2 if a else -1], np.int64(a), False)
        del number[-1]
        assert len(set(number.values())) == inner
        assert all(place >= 9 and place & 7 for place in number.values())


@pytest.mark.parametrize("k", [1, 2, 5, 64, 1000])
def test_summary_tells_the_shape(k):
    levels = [(place + 1).bit_length() - 1 for place in range(k - 1, 2 * k - 1)]  # of the leaves, in a heap
    with xclass.Learner("random_tree", k, bits=10) as model:
        summary = summary_of(model)
    assert summary == f"nodes = {2 * k - 1}, leaves = {k}, depth mean = {np.mean(levels):.2f}, max = {max(levels)}\n"


def test_the_command_shows_the_summary_of_the_learner():
    result = learn("--random_tree", 5, stdin=multiclass(2, 5, 50))
    assert "nodes = 9, leaves = 5, depth mean = 2.40, max = 3\n" in result.err
