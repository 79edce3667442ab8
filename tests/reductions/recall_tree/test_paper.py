"""The recall tree's kernels against the oracle that was written from the paper alone, and the paper's propositions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from oracles import learner as oracle_learner
from oracles.recall_tree_paper import BinaryTree, Features, RecallTree
from streams import multiclass
from variants import names

from xclass.binary import gd
from xclass.reductions.recall_tree import label_counts, scoring

K = 30
F = np.float32


class Learners:
    """Give the oracle the binary learner of the package: VW's update rule in float32.

    `sub` is the learner's number of a problem, and `sign` is -1 for routers, which go left where they are negative.
    Routers get no path features (see "Differs" of `reduction`); scorers get them from the last node up, as in VW.
    """

    def __init__(self, learner: oracle_learner.Learner, sub, kernel_node: dict[int, int], sign: int = 1):
        self.learner, self.sub, self.kernel_node, self.sign = learner, sub, kernel_node, sign
        self.clock = 0.0

    def items(self, x: Features) -> list[tuple]:
        own = [item for item in x if not isinstance(item[0], tuple)]
        path = [key[1] for key, _ in x[len(own) :]] if self.sign > 0 else []
        return own + [(scoring.PATH_HASH * self.kernel_node[a], F(1), False) for a in reversed(path)]

    def predict(self, x: Features, problem: int) -> float:
        return self.sign * float(self.learner.score(self.items(x), self.sub(problem)))

    def learn(self, x: Features, label: int, weight: float, problem: int) -> None:
        sub = self.sub(problem)
        self.learner.learn(self.items(x), self.sign * label, weight, sub, self.clock, clock_weight=1.0)


def kernel_nodes(tree) -> dict[int, int]:
    """Return the kernel's number of each node of the oracle."""
    numbers, below = {1: 0}, [1]
    for a in below:
        left = int(tree.left[numbers[a]])
        if left:
            numbers[2 * a], numbers[2 * a + 1] = left, left + 1
            below += [2 * a, 2 * a + 1]
    return numbers


def oracle_of(config, tree, **more) -> RecallTree:
    o = config.recall_tree
    rule = oracle_learner.resolve_rule(learning_rate=config.learner.learning_rate, loss=config.learner.loss_function)
    rule["label_range"] = config.learner.label_range
    slots, numbers = 1 << config.learner.bits - 2, kernel_nodes(tree.tree)
    router_width, width = int(tree.tables[0].width), gd.odd_width(math.ceil(K / scoring.SHARDS))

    def scorer_slot(index, c):
        return c % scoring.SHARDS, (index * width + c // scoring.SHARDS) % slots

    routers = oracle_learner.Learner(lambda index, sub: (index * router_width + sub) % slots, **rule)
    scorers = oracle_learner.Learner(scorer_slot, unscaled=scorer_slot, **rule)
    return RecallTree(
        Learners(routers, lambda a: int(tree.tree.router[numbers[a]]), numbers, -1),
        Learners(scorers, lambda y: y - 1, numbers),
        F=o.max_candidates,
        depth=o.max_depth,
        lam=o.bern_hyper,
        always_descend=o.recall_stop == "never",
        path_features=not o.no_path_features,
        **more,
    )


TEXT = multiclass(1, K, 300, noise=0.3, unlabelled=0.1, popular=2.0)
LITERAL = ("--router_weight", "paper", "--recall_stop")


@pytest.mark.parametrize(
    "words",
    [
        ("paper", "--max_candidates", 4),
        ("paper", "--max_candidates", 4, "--bern_hyper", 0.05),
        ("paper", "--max_candidates", 3, "--bern_hyper", 0, "--max_depth", 7),
        ("paper", "--max_candidates", 2, "--bern_hyper", 5, "--loss_function", "squared"),
        ("paper", "--max_candidates", 1, "--bern_hyper", 0.1, "--no_path_features"),
        ("never", "--max_candidates", 4, "--max_depth", 4),
    ],
    ids=names,
)
def test_the_literal_variants_follow_the_oracle_of_the_paper(words):
    config = configure("--recall_tree", K, "-b", 22, *LITERAL, *words)
    tree = learner_of(config)
    try:
        batch = batch_of(config, TEXT)
        task, plan = go_through_stages(tree, batch)
    finally:
        tree.close()
    plain = oracle_of(config, tree)
    numbers = plain.scorers.kernel_node
    ends = set()
    for i, (features, label, _) in enumerate(examples_of(batch)):
        where = f"example {i} of {words}"
        answer = plain.predict(features)
        assert plan.node[i] == numbers[plain.ended.id], where
        ends.add(plain.ended.id)
        scored = slice(plan.first[i], plan.scored[i])
        candidates = plain.ended.candidates(plain.F)
        assert (plan.item[scored] + 1).tolist() == candidates, where
        _, x = plain.descend(features)
        scores = [plain.scorers.predict(x, y) for y in candidates]
        np.testing.assert_allclose(plan.score[scored], np.array(scores, F), rtol=2e-4, atol=2e-6, err_msg=where)
        if task.prediction[i] != (answer or 0):  # only where both scores are as good
            assert np.ptp(sorted(scores)[-2:]) < 1e-5, where
        if label is not None:
            plain.learn(features, label)
            plain.routers.clock = plain.scorers.clock = plain.scorers.clock + 1.0
            assert plan.last[i] == numbers[plain.ended.id], where
    assert len(ends) > 2, "this stream does not test routing"
    compare_nodes(tree.counts, plain, numbers)


def compare_nodes(counts: label_counts.Counts, plain: RecallTree, numbers: dict[int, int]) -> None:
    nodes: list[BinaryTree] = [plain.root]
    for node in nodes:
        nodes += [] if node.leaf else [child for child in (node.left, node.right) if child.total]
        a = numbers[node.id]
        assert counts.node[a, label_counts.WEIGHT] == node.total
        if not plain.always_descend:
            assert counts.node[a, label_counts.BOUND] == pytest.approx(plain.recall(node), rel=1e-5, abs=1e-6)
        top = counts.top_label[a, : counts.top_size[a]]
        assert (top + 1).tolist() == node.candidates(plain.F)
