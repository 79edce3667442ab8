"""The probabilistic label tree of VW: against its oracle, and what it does with labels that VW gets wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest
from command import learn, xclass
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from oracles.learner import resolve_rule
from oracles.plt import LabelTree

from xclass import load


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
@pytest.mark.parametrize(("k", "arity", "words"), [(1, 2, ()), (10, 2, ("-l", 2)), (40, 4, ()), (23, 2, ("--sgd",))])
def test_kernel_follows_the_oracle(k, arity, words):
    """Check labels, probabilities, losses and updates; slots are so many that no two regressors share one."""
    exact = ("--vw_exact", "--loss_function", "logistic")
    config = configure("--plt", k, "--kary_tree", arity, "-b", 24, *exact, *words)
    learner = learner_of(config)
    batch = batch_of(config, lists(k, 60))
    task, _ = go_through_stages(learner, batch)
    rule = resolve_rule(sgd="--sgd" in words, learning_rate=2 if "-l" in words else None, loss="logistic")
    plain = LabelTree(k, arity, bits=24, **rule)
    for i, (features, count, weight) in enumerate(examples_of(batch)):
        own = labels_of(batch, i)
        best = plain.best(features, min(k, 5))
        ranked = slice(task.ranked.start[i], task.ranked.start[i] + len(best))
        assert np.allclose(task.ranked.scores[ranked], [p for _, p in best], atol=1e-5)
        own_p = [plain.probability(features, y) for y in task.ranked.labels[ranked]]
        assert np.allclose(task.ranked.scores[ranked], own_p, atol=1e-5)
        found = task.chosen.labels[task.chosen.start[i] : task.chosen.start[i + 1]].tolist()
        assert found == plain.above(features, 0.5)
        if count is not None:
            assert task.loss[i] == pytest.approx(plain.loss(features, own), rel=1e-4)
            plain.learn(features, own, weight)
        else:
            plain.left_out += 1
    assert learner.updated.tolist() == plain.updates
    learner.close()


def test_labels_that_do_not_exist_are_never_predicted():
    """VW takes the last inner node of a tree of 3 branches and 10 labels to have three children."""
    config = configure("--plt", 10, "--kary_tree", 3, "--threshold", 0, "--vw_exact", "--loss_function", "logistic")
    learner = learner_of(config)
    task, _ = go_through_stages(learner, batch_of(config, lists(10, 30)))
    for found in (task.ranked, task.chosen):
        assert np.diff(found.start).tolist() == [10] * 30
        assert set(found.labels.tolist()) == set(range(10))
    learner.close()


def test_model_is_continued_without_vw_exact(tmp_path):
    """The same rules go on but for rounding, and lists are written in order."""
    (tmp_path / "d").write_text(lists(9, 60))
    first = ("--plt", 9, "--vw_exact", "--loss_function", "logistic", "-f", "m")
    learn("d", *first, "--quiet", cwd=tmp_path)
    for name, words in (("a", ("--vw_exact",)), ("b", ())):
        learn("d", "-i", "m", "-f", name, "--quiet", *words, cwd=tmp_path)
    exact, own = (load(tmp_path / name).core.reduction for name in "ab")
    assert exact.updated.tolist() == own.updated.tolist()
    assert np.allclose(exact.table.flat, own.table.flat, atol=0.1)  # VW rounds some sums differently
    for words, message in (
        (("--save_tree", "t"), "--save_tree has no effect on this model, which was trained with --vw_exact"),
        (("-i", "own", "--vw_exact"), "--vw_exact cannot continue this model, which was trained without it"),
    ):
        learn("d", "--plt", 9, "-f", "own", "--quiet", cwd=tmp_path)
        result = xclass("-d", "d", *(("-i", "m") if "-i" not in words else ()), *words, cwd=tmp_path)
        assert result.status == 2 and message in result.err
