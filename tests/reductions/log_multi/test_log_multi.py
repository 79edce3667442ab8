"""LOMTree: against its oracle example by example, models, messages; see also test_split_tree."""

import random

import numpy as np
import pytest
from archives import restored
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from library import go_through, summary_of, with_scores
from oracles import learner as oracle_learner
from oracles import log_multi as oracle
from streams import multiclass
from variants import names

import xclass
from xclass.errors import ModelError
from xclass.reductions.core import tree_routers
from xclass.reductions.log_multi import reduction as log_multi
from xclass.reductions.log_multi import split_cells, split_tree
from xclass.reductions.log_multi.split_tree import (
    LABELS,
    LARGEST,
    NODES,
    PREDICTION,
    RECYCLED,
    ROOT,
    ROUTER,
    SMALLEST,
    SWAPS,
)

K = 13


pytestmark = pytest.mark.usefixtures("exponential")


def drifting(seed: int, k: int, n: int) -> str:
    """A stream whose first part soon does not come any more, so that leaves made for it are taken back."""
    rng = random.Random(f"drifting {seed} {k} {n}")
    lines = []
    for i in range(n):
        y = rng.randrange(1, k + 1)
        old = rng.random() < max(0.02, 0.6 - 3 * i / n)
        word = "old" if old else f"q{y if rng.random() < 0.7 else rng.randrange(k)}"
        label = rng.choice(("", f"{y}", f"{y}", f"{y}", f"{y} 2", f"{y} 0", f"{y} 0.5"))
        lines.append(f"{label} |a {word} n{rng.randrange(4)} |b size:{rng.choice((0.5, 1, 2, -1.5))}\n")
    return "".join(lines)


# -- the same as the oracle ----------------------------------------------------------------------------------------


class Following:
    """The oracle with xclass' routers, given features as they are."""

    def __init__(self, config):
        o, learning = config.log_multi, config.learner
        routers = oracle.Routers(learning.loss_function, learning.learning_rate, learning.quantile_tau)
        at_root = "vw" if o.lom_rules == "vw" else "sibling"
        self.routers = routers
        self.tree = oracle.LomTree(
            o.log_multi, most=o.max_predictors, resistance=o.swap_resistance, at_root=at_root,
            skip_zero_weight=o.lom_rules != "vw", learner=routers,
        )  # fmt: skip
        self.skips = o.lom_rules != "vw"

    def predict(self, features, learned):
        self.row = self.routers.look(features, learned)
        return self.tree.predict(self.row)

    def learn(self, features, y, weight, clock):
        self.tree.learn(self.row, y, weight, clock)


class FollowingVw(Following):
    """The oracle with VW's learner."""

    def __init__(self, config):
        o, learning = config.log_multi, config.learner
        named = {name: getattr(learning, name) for name in ("sgd", "adaptive", "normalized", "invariant")}
        rule = oracle_learner.resolve_rule(
            **named, learning_rate=learning.learning_rate, initial_t=learning.initial_t, power_t=learning.power_t,
            loss=learning.loss_function,
        )  # fmt: skip
        slot = oracle_learner.vw_slot(max(1, o.max_predictors), learning.bits)
        routers = oracle.VwRouters(slot, tau=learning.quantile_tau, label_range=learning.label_range, **rule)
        self.tree = oracle.LomTree(
            o.log_multi, most=o.max_predictors, resistance=o.swap_resistance,
            at_root="vw" if o.lom_rules == "vw" else "sibling", skip_zero_weight=o.lom_rules != "vw", learner=routers,
        )  # fmt: skip
        self.skips = o.lom_rules != "vw"

    def predict(self, features, learned):
        self.row = features
        return self.tree.predict(features)


def assert_same_tree(learner: log_multi.LomTree, plain: oracle.LomTree) -> None:
    """Shape, counts and sums of every node."""
    tree = learner.tree
    counted = split_cells.by_node(split_cells.array(learner.cells, split_tree.versions(tree)))
    pairs = [(int(tree.size[ROOT]), plain.r if not plain.tree_lost else root_alone(plain))]
    seen = 0
    while pairs:
        a, node = pairs.pop()
        seen += 1
        count = tree.count[a]
        assert (tree.link[a, ROUTER] < 0) == node.is_leaf()
        assert (count[SMALLEST], count[PREDICTION], count[LARGEST], count[LABELS]) == (
            node.C, node.prediction, node.most, len(node.l),
        )  # fmt: skip
        assert {y: n + ended for y, _, n, ended in counted.get(a, [])} == node.l
        for y, total, n, _ in counted.get(a, []):
            assert n == node.n.get(y, 0)
            assert total == pytest.approx(node.m.get(y, 0.0), rel=5e-3, abs=5e-3)
        if not plain.tree_lost:
            assert count[RECYCLED] == node.recycled
        if not node.is_leaf():
            pairs += [(int(tree.link[a, 0]), node.left), (int(tree.link[a, 1]), node.right)]
    assert seen == tree.size[NODES]
    assert tree.size[SWAPS] == plain.swaps


def root_alone(plain: oracle.LomTree) -> oracle.Node:
    """The root with which VW continues: a leaf."""
    assert plain.r.is_leaf()
    return plain.r


def check(text: str, *words, k: int = K) -> oracle.LomTree:
    """Run both over a text and compare the predictions, and the trees at the end; return the oracle's tree."""
    config = configure("--log_multi", k, *words)
    learner = learner_of(config)
    batch = batch_of(config, text)
    task, _ = go_through_stages(learner, batch)
    plain = (FollowingVw if config.learner.layout == "vw" else Following)(config)
    clock = 0.0
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        learned = label is not None and not (plain.skips and weight == 0)
        assert task.prediction[i] == plain.predict(features, learned), f"example {i} of {words}"
        if label is not None:
            plain.learn(features, label, weight, clock)
            clock += weight
    assert_same_tree(learner, plain.tree)
    learner.close()
    return plain.tree


LEARNERS = [
    (),
    ("--loss_function", "squared", "-l", 0.5),
    ("--loss_function", "quantile", "-l", 0.7),
    ("--loss_function", "quantile", "--quantile_tau", 0.3, "-l", 0.2),
    ("--loss_function", "logistic", "-l", 0.3),
    ("--noconstant", "-q", "a:"),
    ("--layout", "vw", "--loss_function", "quantile"),
    ("--layout", "vw", "--loss_function", "quantile", "--label_range", "seen", "-b", 12),
    ("--layout", "vw", "--loss_function", "squared", "--sgd", "-l", 0.1),
    ("--layout", "vw", "--loss_function", "hinge", "--adaptive", "-l", 0.3),
    ("--layout", "vw", "--loss_function", "logistic"),
]


@pytest.mark.sampled(3)
@pytest.mark.bounds
@pytest.mark.parametrize("words", LEARNERS, ids=names)
def test_kernel_follows_the_oracle(words):
    bits = () if "-b" in words else ("-b", 22 if "vw" not in words else 18)
    text = multiclass(1, K, 250, noise=0.5, weights=(1, 0.5, 3, 0), unlabelled=0.1, popular=2.0)
    check(text, *bits, *words)
    swaps = 0
    for seed in range(3):
        swaps += check(drifting(seed, 4, 300), *bits, "--max_predictors", 3, "--swap_resistance", 1, *words, k=4).swaps
        swaps += check(drifting(seed, 9, 300), *bits, "--max_predictors", 3, *words, k=9).swaps
    assert swaps > 0, "these streams take nothing back"


@pytest.mark.sampled(2)
@pytest.mark.bounds
@pytest.mark.parametrize("most", [0, 1, 2, 5, 12, 40])
@pytest.mark.parametrize("resistance", [1, 4])
def test_kernel_follows_the_oracle_whatever_the_size(most, resistance):
    for seed in range(2):
        text = drifting(seed, 7, 400)
        tree = check(text, "-b", 22, "--max_predictors", most, "--swap_resistance", resistance, k=7)
        assert tree.t <= most


@pytest.mark.parametrize("layout", [(), ("--layout", "vw", "--loss_function", "quantile", "--label_range", "seen")])
def test_smallest_leaf_right_below_the_root(layout):
    """Its sibling becomes the root; with VW's rules one leaf is left."""
    trees_lost = 0
    rooted = 0
    for seed in (0, 2, 4, 6, 7, 8, 9, 10, 11):  # 1, 3 and 5 come to scores of 1 or the number before
        text = drifting(seed, 6, 300)
        words = ("-b", 18, "--swap_resistance", 1, "--max_predictors", 2, *layout)
        rooted += check(text, *words, k=6).rooted
        trees_lost += check(text, *words, "--lom_rules", "vw", k=6).tree_lost
    assert trees_lost > 0
    assert rooted > 0


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@pytest.mark.parametrize("layout", [(), ("--layout", "vw", "--loss_function", "quantile")])
def test_kernel_follows_the_oracle_without_compiling(layout):
    check(drifting(1, 4, 60), "-b", 16, "--max_predictors", 3, "--swap_resistance", 1, *layout, k=4)


def test_lost_tree_is_reported(tmp_path):
    for seed in range(12):
        text = drifting(seed, 3, 300)
        with xclass.Learner("log_multi", 3, swap_resistance=1, vw_exact=True) as model:
            results = go_through(model, text)
            if "nodes = 1, leaves = 1" not in results.summary:
                continue
            assert sum("where VW loses its tree" in note for note in results.notes) == 1
            model.save(tmp_path / "m")
        with xclass.load(tmp_path / "m") as model:
            assert len(set(model.predict_many(text).tolist())) == 1
        return
    pytest.fail("no stream lost its tree")


# -- models --------------------------------------------------------------------------------------------------------


def learned(**options) -> dict[str, np.ndarray]:
    """The arrays of a model."""
    with xclass.Learner("log_multi", K, bits=14, **options) as model:
        model.learn_many(drifting(2, K, 400))
        return {name: np.array(array) for name, array in model.core.contents().arrays.items()}


def restore_tree(arrays: dict[str, np.ndarray]) -> None:
    tree, cells = split_tree.new_tree(split_tree.FIRST_NODES), split_cells.new_cells(split_cells.FIRST_CELLS)
    restored(arrays, split_tree.serialize, tree, cells, (1, K), len(arrays["tree.link"]), True)


def test_model_with_a_ring_beside_the_tree_is_refused():
    arrays = learned()
    link = arrays["tree.link"]
    inner = [a for a in range(1, len(link)) if link[a, ROUTER] >= 0 and link[a, 2] != 0]
    a = inner[-1]
    up, left = int(link[a, 2]), int(link[a, 0])
    side = 0 if link[up, 0] == a else 1
    link[up, side], link[left, 2] = left, up  # the left child goes up, and a becomes its own child
    link[a, 0], link[a, 2] = a, a
    with pytest.raises(ModelError, match=r"tree\.link"):
        restore_tree(arrays)


@pytest.mark.parametrize("reduction", ["log_multi", "random_tree"])
def test_prediction_by_several_threads_is_that_of_one(tmp_path, monkeypatch, reduction):
    """For a tree with more nodes than its arrays hold at first."""
    k = 700
    text, test = multiclass(5, k, 3000), multiclass(6, k, 900)
    with xclass.Learner(reduction, k) as model:
        model.learn_many(text)
        model.save(tmp_path / "m")
        contents = model.core.contents()
    assert reduction != "log_multi" or len(contents.arrays["tree.link"]) > split_tree.FIRST_NODES
    predictions = []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.thread_limit.processors", lambda processors=processors: processors)
        with xclass.load(tmp_path / "m") as model:
            predictions.append(model.predict_many(test).tolist())
    with with_scores(reduction, k) as model:  # one thread, which lists the routers evaluated
        model.core.replace_contents(contents)
        assert predictions == [go_through(model, test, learn=False).predictions] * 3


# -- messages -------------------------------------------------------------------------------------


def test_summary_tells_what_the_tree_is():
    with xclass.Learner("log_multi", 5, max_predictors=4, swap_resistance=1) as model:
        model.learn_many(drifting(3, 5, 600))
        arrays, summary = model.core.contents().arrays, summary_of(model)
    link, count, size = arrays["tree.link"], arrays["tree.count"], arrays["tree.size"]

    def leaf_depths(a: int, depth: int) -> list[int]:
        left, right, _, router = link[a].tolist()
        return [depth] if router < 0 else leaf_depths(left, depth + 1) + leaf_depths(right, depth + 1)

    depths = leaf_depths(int(size[ROOT]), 0)
    times = count[:, RECYCLED]
    assert size[SWAPS] > 0
    assert summary == (
        f"nodes = {len(link)}, leaves = {len(depths)}, depth mean = {np.mean(depths):.2f}, max = {max(depths)}\n"
        f"swaps = {size[SWAPS]}, recycled nodes = {(times > 0).sum()}, each at most {times.max()} times\n"
    )


def test_scores_are_those_of_the_routers_on_the_way():
    with with_scores("log_multi", K) as model:
        model.learn_many(multiclass(3, K, 200, tags=True))
        results = go_through(model, multiclass(4, K, 50), learn=False)
        arrays = model.core.contents().arrays
    link, count, size = arrays["tree.link"], arrays["tree.count"], arrays["tree.size"]
    assert sum(map(len, results.scores)) > 50
    for predicted, scores in zip(results.predictions, results.scores, strict=True):
        a = int(size[ROOT])
        for node, score in scores.items():
            assert node == a
            a = int(link[a, 0 if score < 0 else 1])
        assert link[a, ROUTER] < 0
        assert count[a, PREDICTION] == predicted


def test_vw_exact_takes_vws_loss_whatever_is_asked_for():
    def chosen(**options) -> dict:
        with xclass.Learner("log_multi", K, **options) as model:
            return model.options

    assert chosen(vw_exact=True, loss_function="hinge")["loss_function"] == "quantile"
    logistic = chosen(vw_exact=True, loss_function="logistic")
    assert logistic["loss_function"] == "quantile"
    assert (logistic["min_prediction"], logistic["max_prediction"]) == (-50, 50)
    assert chosen()["loss_function"] == "hinge"
    assert chosen()["max_predictors"] == 4 * K - 1
    assert chosen(vw_exact=True)["max_predictors"] == K - 1
    assert chosen(loss_function="quantile")["loss_function"] == "quantile"


@pytest.mark.parametrize("reduction", ["log_multi", "random_tree"])
def test_time_does_not_grow_with_the_classes(reduction):
    """An example evaluates as many routers as the tree is deep, whatever K."""
    text = multiclass(5, 9, 300)
    for k in (9, 1000, 1_000_000):
        with with_scores(reduction, k, bits=18) as model:
            most_routers = max(map(len, go_through(model, text).scores))
        assert 0 < most_routers <= (min(k, 300) - 1 if reduction == "log_multi" else (k - 1).bit_length())


def test_large_values_are_scaled_by_the_largest_seen():
    """A feature in other units gives the same tree."""
    rng = random.Random(2)
    lines = [(rng.randrange(1, 6), rng.random(), rng.random()) for _ in range(300)]
    predictions = []
    for unit in (1.0, 1024.0):
        with xclass.Learner("log_multi", 5) as model:
            predictions.append(model.learn_many([f"{y} |a x:{u * y} y:{v * unit:.9f}" for y, u, v in lines]).prediction)
    assert (predictions[0] != predictions[1]).sum() < 15


def test_router_groups_have_the_width_of_the_longest_example():
    batch = batch_of(configure("--log_multi", K), "1 |a b\n2 |a c d\n")
    row = tree_routers.new_scratch(batch.most_features, 5)
    assert row.h.shape == row.x.shape == row.slot.shape == (tree_routers.GROUP_SIZE, 3)
