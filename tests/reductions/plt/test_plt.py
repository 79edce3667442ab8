"""The probabilistic label tree: against its oracle, and what it does with labels that VW gets wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from oracles.learner import resolve_rule
from oracles.plt import LabelTree

from xclass.data import batch_ops


def lists(k: int, n: int, weights: tuple[str, ...] = ("",)) -> str:
    """Return n lines with lists of labels, some of them empty or unknown, whose words depend on the labels."""
    rng = random.Random(0)
    lines = []
    for i in range(n):
        labels = sorted({int(k * rng.random() ** 2) for _ in range(rng.choice((1, 1, 2, 3, 5)))})
        words = [f"t{y}" for y in labels] + [f"w{rng.randrange(9)}:{rng.choice((1, 2, 0.5))}" for _ in range(3)]
        label = ",".join(map(str, labels)) + rng.choice(weights) if i % 9 else rng.choice((",", ""))
        lines.append(f"{label} | {' '.join(words)}\n")
    return "".join(lines)


def labels_of(batch, i: int) -> list[int]:
    return batch.labels[batch.label_start[i] : batch.label_start[i + 1]].astype(int).tolist()


@pytest.mark.bounds
@pytest.mark.parametrize("play", ["paper", "vw"])
@pytest.mark.parametrize(("k", "arity", "words"), [(1, 2, ()), (10, 2, ("-l", 2)), (40, 4, ()), (23, 2, ("--sgd",))])
def test_kernel_follows_the_oracle(play, k, arity, words):
    """Check labels, probabilities, losses and updates; slots are so many that no two regressors share one."""
    exact = ("--vw_exact", "--loss_function", "logistic") if play == "vw" else ("--layout", "vw")
    config = configure("--plt", k, "--kary_tree", arity, "-b", 24, *exact, *words)
    learner = learner_of(config)
    batch = batch_of(config, lists(k, 60, ("",) if play == "vw" else ("", " 2", " 0.5")))
    task, _ = go_through_stages(learner, batch)
    rule = resolve_rule(sgd="--sgd" in words, learning_rate=2 if "-l" in words else None, loss="logistic")
    plain = LabelTree(k, arity, play=play, bits=24, sure=4, **rule)
    for i, (features, count, weight) in enumerate(examples_of(batch)):
        own = labels_of(batch, i)
        best = plain.best(features, min(k, 5))
        ranked = slice(task.ranked.start[i], task.ranked.start[i] + len(best))
        assert np.allclose(task.ranked.scores[ranked], [p for _, p in best], atol=1e-5)
        own_p = [plain.probability(features, y) for y in task.ranked.labels[ranked]]
        assert np.allclose(task.ranked.scores[ranked], own_p, atol=1e-5)
        above = plain.above(features, 0.5)
        found = task.chosen.labels[task.chosen.start[i] : task.chosen.start[i + 1]].tolist()
        assert found == (above if play == "vw" else sorted(above))
        if count is not None:
            if play == "vw":
                assert task.loss[i] == pytest.approx(plain.loss(features, own), rel=1e-4)
            plain.learn(features, own, weight)
        else:
            plain.left_out += 1
    assert learner.updated.tolist() == plain.updates
    learner.close()


def test_order_and_repeats_of_labels_do_not_matter():
    models = []
    for text in ("1,3,5 | a b\n0,5 | a\n", "5,1,3,1 | a b\n5,0,5 | a\n"):
        learner = learner_of(config := configure("--plt", 7, "-b", 10))
        go_through_stages(learner, batch_of(config, text))
        models.append(learner.table.flat.tobytes())
        learner.close()
    assert models[0] == models[1]


@pytest.mark.parametrize("exact", [False, True])
def test_labels_that_do_not_exist_are_never_predicted(exact):
    """VW takes the last inner node of a tree of 3 branches and 10 labels to have three children."""
    words = ("--vw_exact", "--loss_function", "logistic") if exact else ()
    config = configure("--plt", 10, "--kary_tree", 3, "--threshold", 0, *words)
    learner = learner_of(config)
    task, _ = go_through_stages(learner, batch_of(config, lists(10, 30)))
    for found in (task.ranked, task.chosen):
        assert np.diff(found.start).tolist() == [10] * 30
        assert set(found.labels.tolist()) == set(range(10))
    learner.close()


def test_a_search_finds_all_labels_above_the_threshold_and_the_best_ones():
    config = configure("--plt", 50, "--threshold", 0.05)
    learner = learner_of(config)
    batch = batch_of(config, lists(50, 200))
    go_through_stages(learner, batch)
    task, _ = go_through_stages(learner, batch, learn=False)
    for i in range(batch.n):
        label, p = learner.best_labels(batch_ops.cut(batch, i, i + 1), 50)
        ranked = slice(task.ranked.start[i], task.ranked.start[i + 1])
        count = max(5, int(np.count_nonzero(p > np.float32(0.05))))
        assert task.ranked.labels[ranked].tolist() == label[:count].tolist()
    learner.close()
