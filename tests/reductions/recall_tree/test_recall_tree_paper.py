"""The recall tree's kernels against the oracle that was written from the paper alone, and the paper's propositions."""

import math

import numpy as np
import pytest
from harness import batch_of, configure, examples_of, go_through_stages, learned, learner_of
from oracles import learner as oracle_learner
from oracles.recall_tree_paper import BinaryTree, Features, RecallTree
from streams import multiclass
from variants import names

from xclass.binary import gd, update_rule
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
LITERAL = ("--candidate_margin", 50, "--router_weight", "paper", "--recall_stop")


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
    tree, batch, task, plan = learned(config, TEXT)
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


# -- propositions of the paper


def test_proposition_1_the_bound_is_below_the_recall():
    """For lambda = 14/3 ln(2 C / delta), C sets of F labels, by theorem 4 of Maurer and Pontil for each of them."""
    rng = np.random.default_rng(7)
    labels, F_, delta, draws = 8, 2, 0.1, 300
    lam = np.float32(14 / 3 * math.log(2 * math.comb(labels, F_) / delta))
    for m in (2, 10, 100, 1000):
        wrong = optimistic = 0
        for _ in range(draws):
            p = rng.dirichlet(np.full(labels, rng.choice([0.1, 1.0])))
            counts = rng.multinomial(m, p)
            top = np.argsort(-counts, kind="stable")[:F_]
            recalled = float(counts[top].sum())
            wrong += label_counts.bound(lam, True, recalled, float(m)) > p[top].sum() + 1e-6
            optimistic += label_counts.bound(F(0), True, recalled, float(m)) > p[top].sum() + 1e-6
        assert wrong <= delta * draws
        assert optimistic > delta * draws, "the empirical recall alone is no bound"


def test_with_path_features_one_against_all_predicts_what_the_tree_predicts():
    """The proposition of section 3.2: w is 1 for a leaf and the label that the tree predicts there, and otherwise 0."""
    config = configure("--recall_tree", K, "-b", 22, "--recall_stop", "never", "--max_candidates", K, "--max_depth", 4)
    tree = learner_of(config)
    try:
        go_through_stages(tree, batch_of(config, TEXT))
        for table in tree.tables[1:]:
            table.flat[:] = 0
        used = set()
        for a in np.flatnonzero((tree.tree.router < 0) & (tree.counts.top_size > 0)).tolist():
            label = int(tree.counts.top_label[a, 0])
            table = tree.tables[1 + label % scoring.SHARDS]
            slot = (scoring.PATH_HASH * a * int(table.width) + label // scoring.SHARDS) & int(table.mask)
            assert (label % scoring.SHARDS, slot) not in used
            used.add((label % scoring.SHARDS, slot))
            table.flat.reshape(-1, update_rule.FIELDS)[slot, 0] = 1
        unlabelled = "".join(f"|{line.partition('|')[2]}\n" for line in TEXT.splitlines() if "|" in line)
        task, plan = go_through_stages(tree, batch_of(config, unlabelled))
    finally:
        tree.close()
    assert (task.prediction == tree.counts.top_label[plan.node, 0] + 1).all()
    assert len(set(task.prediction.tolist())) > 5


def entropy(weights: np.ndarray) -> float:
    """Return the entropy of labels, in nats, as nodes compute it: each label is added to the labels before."""
    h = n = 0.0
    for weight in weights[weights > 0].tolist():
        h, n = label_counts.entropy_with(n, h, 0.0, weight), n + weight
    return h


@pytest.mark.parametrize("seed", range(4))
def test_theorem_2_bounds_the_error_by_the_potential(seed):
    """On a population, gamma being the least gain of a split: after t of them W is at most H - gamma (1 + .. + 1/t).

    The entropy is in nats, as in the proof. The first version of the paper has the bound H - gamma (1 + ln t), which
    does not follow, since the sum is smaller than 1 + ln t; that of the published one is H - gamma ln(t + 1).
    """
    rng = np.random.default_rng(seed)
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    population = rng.dirichlet(np.full(5, 0.2), 256) * rng.dirichlet(np.full(256, 2.0))[:, None]  # P(x, y)
    leaves = [np.arange(256)]
    start = entropy(population.sum(axis=0))
    gains: list[float] = []
    for t in range(1, 40):
        mass = [population[leaf].sum() for leaf in leaves]
        assert max(mass) >= 1 / t - 1e-12
        leaf = leaves.pop(int(np.argmax(mass)))
        h, best, sides = entropy(population[leaf].sum(axis=0)), math.inf, ()
        for b in range(8):
            parts = [leaf[bits[leaf, b] == side] for side in (0, 1)]
            share = [population[part].sum() / max(mass) for part in parts]
            rest = sum(p * entropy(population[part].sum(axis=0)) for p, part in zip(share, parts, strict=True))
            if min(map(len, parts)) and rest < best:
                best, sides = rest, parts
        gains.append(h - best)
        leaves += sides
        potential = sum(population[leaf].sum() * entropy(population[leaf].sum(axis=0)) for leaf in leaves)
        error = sum(population[leaf].sum() - population[leaf].sum(axis=0).max() for leaf in leaves)
        gamma = min(gains)
        assert gamma > 0
        assert error <= potential <= start - gamma * sum(1 / i for i in range(1, t + 1)) + 1e-9
        assert error <= start - gamma * math.log(t + 1) + 1e-9
