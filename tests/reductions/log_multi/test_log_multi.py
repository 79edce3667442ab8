"""LOMTree: against its oracle example by example, models and what the command says; see also test_split_tree."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from command import learn, xclass
from harness import batch_of, configure, examples_of, go_through_stages, learner_of
from oracles import learner as oracle_learner
from oracles import log_multi as oracle
from streams import multiclass

from xclass.errors import ModelError, UsageError
from xclass.model import model_file
from xclass.reductions.core import tree_routers
from xclass.reductions.log_multi import reduction as log_multi
from xclass.reductions.log_multi import split_cells, split_tree
from xclass.reductions.log_multi.split_tree import (
    ANSWER,
    LABELS,
    LARGEST,
    NODES,
    RECYCLED,
    ROOT,
    ROUTER,
    SMALLEST,
    SWAPS,
)

K = 13
F = np.float32


@pytest.fixture(autouse=True)
def exponential(monkeypatch):
    """The oracle's exponential as near to the true one as float32 allows."""

    def exp(x):
        return F(math.exp(min(float(x), 700.0)))

    monkeypatch.setattr(oracle_learner, "_exp", exp)


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
        found = oracle.Routers(learning.loss_function, learning.learning_rate, learning.quantile_tau)
        at_root = "vw" if o.lom_rules == "vw" else "sibling"
        self.routers = found
        self.tree = oracle.LomTree(
            o.log_multi, most=o.max_predictors, resistance=o.swap_resistance, at_root=at_root,
            skip_zero_weight=o.lom_rules != "vw", learner=found,
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
        found = oracle.VwRouters(slot, tau=learning.quantile_tau, label_range=learning.label_range, **rule)
        self.tree = oracle.LomTree(
            o.log_multi, most=o.max_predictors, resistance=o.swap_resistance,
            at_root="vw" if o.lom_rules == "vw" else "sibling", skip_zero_weight=o.lom_rules != "vw", learner=found,
        )  # fmt: skip
        self.skips = o.lom_rules != "vw"

    def predict(self, features, learned):
        self.row = features
        return self.tree.predict(features)


def assert_same_tree(found: log_multi.LomTree, plain: oracle.LomTree) -> None:
    """Shape, counts and sums of every node."""
    tree = found.tree
    counted = split_cells.by_node(split_tree.arrays(tree, found.cells)["cells"])
    pairs = [(int(tree.size[ROOT]), plain.r if not plain.lost else root_alone(plain))]
    seen = 0
    while pairs:
        a, node = pairs.pop()
        seen += 1
        count = tree.count[a]
        assert (tree.link[a, ROUTER] < 0) == node.is_leaf()
        assert (count[SMALLEST], count[ANSWER], count[LARGEST], count[LABELS]) == (
            node.C, node.answer, node.most, len(node.l),
        )  # fmt: skip
        assert {y: n + ended for y, _, n, ended in counted.get(a, [])} == node.l
        for y, total, n, _ in counted.get(a, []):
            assert n == node.n.get(y, 0)
            assert total == pytest.approx(node.m.get(y, 0.0), rel=5e-3, abs=5e-3)
        if not plain.lost:
            assert count[RECYCLED] == node.recycled
        if not node.is_leaf():
            pairs += [(int(tree.link[a, 0]), node.left), (int(tree.link[a, 1]), node.right)]
    assert seen == tree.size[NODES]
    assert tree.size[SWAPS] == plain.swaps


def root_alone(plain: oracle.LomTree) -> oracle.Node:
    """The root VW goes on with: a leaf."""
    assert plain.r.is_leaf()
    return plain.r


def check(text: str, *words, k: int = K) -> oracle.LomTree:
    """Run both over a text and compare the answers, and the trees at the end; return the oracle's."""
    config = configure("--log_multi", k, *words)
    found = learner_of(config)
    batch = batch_of(config, text)
    task, _ = go_through_stages(found, batch)
    plain = (FollowingVw if config.learner.layout == "vw" else Following)(config)
    clock = 0.0
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        learned = label is not None and not (plain.skips and weight == 0)
        assert task.prediction[i] == plain.predict(features, learned), f"example {i} of {words}"
        if label is not None:
            plain.learn(features, label, weight, clock)
            clock += weight
    assert_same_tree(found, plain.tree)
    found.close()
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


def names(words) -> str:
    return " ".join(map(str, words)) or "defaults"


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
    lost = 0
    rooted = 0
    for seed in (0, 2, 4, 6, 7, 8, 9, 10, 11):  # 1, 3 and 5 come to scores of 1 or the number before
        text = drifting(seed, 6, 300)
        words = ("-b", 18, "--swap_resistance", 1, "--max_predictors", 2, *layout)
        rooted += check(text, *words, k=6).rooted
        lost += check(text, *words, "--lom_rules", "vw", k=6).lost
    assert lost > 0
    assert rooted > 0


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@pytest.mark.parametrize("layout", [(), ("--layout", "vw", "--loss_function", "quantile")])
def test_kernel_follows_the_oracle_without_compiling(layout):
    check(drifting(1, 4, 60), "-b", 16, "--max_predictors", 3, "--swap_resistance", 1, *layout, k=4)


def test_tree_is_told_when_it_is_lost(tmp_path):
    for seed in range(12):
        (tmp_path / "data").write_text(drifting(seed, 3, 300))
        words = ("--log_multi", 3, "--swap_resistance", 1, "--vw_exact")
        done = learn("data", *words, "-f", "m", cwd=tmp_path)
        if "nodes = 1, leaves = 1" in done.err:
            assert done.err.count("where VW loses its tree") == 1
            again = learn("-i", "m", "data", "-t", "-p", "stdout", "--quiet", cwd=tmp_path)
            assert len({line.split()[0] for line in again.lines}) == 1
            return
    pytest.fail("no stream lost its tree")


# -- models --------------------------------------------------------------------------------------------------------


def saved(tmp_path, *words) -> dict:
    (tmp_path / "data").write_text(drifting(2, K, 400))
    learn("data", "--log_multi", K, "-b", 14, "--quiet", "-f", "m", *words, cwd=tmp_path)
    model = model_file.load(tmp_path / "m")
    return {name: np.array(array) for name, array in model.arrays.items()}


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, 0, 0), (1, 2, 5), (2, 1, 2**20), (0, 2, 1), (3, ROUTER, -1)],
)
def test_model_that_is_no_tree_is_refused(tmp_path, row, column, value):
    arrays = saved(tmp_path)
    arrays["tree.link"][row, column] = value
    with pytest.raises(ModelError, match=r"tree\.link|cells|tree\.count"):
        split_tree.restored(arrays, (1, K), len(arrays["tree.link"]), blocked=True)


def test_model_with_an_impossible_depth_is_refused(tmp_path):
    arrays = saved(tmp_path)
    arrays["tree.size"][split_tree.DEEPEST] = 2**40
    with pytest.raises(ModelError, match=r"tree\.size"):
        split_tree.restored(arrays, (1, K), len(arrays["tree.link"]), blocked=True)


def test_model_with_a_ring_beside_the_tree_is_refused(tmp_path):
    arrays = saved(tmp_path)
    link = arrays["tree.link"]
    inner = [a for a in range(1, len(link)) if link[a, ROUTER] >= 0 and link[a, 2] != 0]
    a = inner[-1]
    up, left = int(link[a, 2]), int(link[a, 0])
    side = 0 if link[up, 0] == a else 1
    link[up, side], link[left, 2] = left, up  # the left child goes up, and a becomes its own child
    link[a, 0], link[a, 2] = a, a
    with pytest.raises(ModelError, match=r"tree\.link"):
        split_tree.restored(arrays, (1, K), len(arrays["tree.link"]), blocked=True)


def test_router_that_is_not_there_is_refused(tmp_path):
    config = configure("--log_multi", K, "--layout", "vw", "-b", 14)
    arrays = saved(tmp_path, "--layout", "vw")
    inner = np.flatnonzero(arrays["tree.link"][:, ROUTER] >= 0)
    arrays["tree.link"][inner[0], ROUTER] = 4000
    found = learner_of(config)
    with pytest.raises(ModelError, match=r"tree\.link"):
        found.restore(arrays, {})
    found.close()


def test_prediction_by_several_threads_is_that_of_one(tmp_path, monkeypatch):
    """Of a tree with more nodes than there is room for at first."""
    k = 700
    for name, text in (("data", multiclass(5, k, 3000)), ("test", multiclass(6, k, 900))):
        (tmp_path / name).write_text(text)
    for reduction in ("--log_multi", "--random_tree"):
        learn("data", reduction, k, "--quiet", "-f", "m", cwd=tmp_path)
        if reduction == "--log_multi":
            assert len(model_file.load(tmp_path / "m").arrays["tree.link"]) > split_tree.FIRST_NODES
        found = []
        for processors in (1, 2, 5):
            monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
            found.append(learn("-i", "m", "-t", "test", "--quiet", "-p", "stdout", cwd=tmp_path).out)
        one_by_one = learn("-i", "m", "-t", "test", "--quiet", "-p", "stdout", "-r", "r", cwd=tmp_path).out
        assert found == [one_by_one] * 3


# -- what the command says -----------------------------------------------------------------------------------------


def test_summary_tells_what_the_tree_is(tmp_path):
    (tmp_path / "data").write_text(drifting(3, 5, 600))
    done = learn("data", "--log_multi", 5, "--max_predictors", 4, "--swap_resistance", 1, "-f", "m", cwd=tmp_path)
    arrays = model_file.load(tmp_path / "m").arrays
    link, count, size = arrays["tree.link"], arrays["tree.count"], arrays["tree.size"]

    def below(a: int, depth: int) -> list[int]:
        left, right, _, router = link[a].tolist()
        return [depth] if router < 0 else below(left, depth + 1) + below(right, depth + 1)

    depths = below(int(size[ROOT]), 0)
    assert (
        f"nodes = {len(link)}, leaves = {len(depths)}, depth mean = {np.mean(depths):.2f}, max = {max(depths)}\n"
        in done.err
    )
    times = count[:, RECYCLED]
    assert size[SWAPS] > 0
    assert f"swaps = {size[SWAPS]}, recycled nodes = {(times > 0).sum()}, one at most {times.max()} times\n" in done.err


def test_raw_predictions_are_the_routers_on_the_way(tmp_path):
    (tmp_path / "data").write_text(multiclass(3, K, 200, tags=True))
    (tmp_path / "test").write_text(multiclass(4, K, 50))
    learn("data", "--log_multi", K, "--quiet", "-f", "m", cwd=tmp_path)
    learn("-i", "m", "-t", "test", "--quiet", "-p", "p", "-r", "r", cwd=tmp_path)
    arrays = model_file.load(tmp_path / "m").arrays
    link, count, size = arrays["tree.link"], arrays["tree.count"], arrays["tree.size"]
    answers = (tmp_path / "p").read_text().split()
    for answer, line in zip(answers, (tmp_path / "r").read_text().splitlines(), strict=True):
        a = int(size[ROOT])
        for word in line.split():
            node, score = word.split(":")
            assert int(node) == a
            a = int(link[a, 0 if float(score) < 0 else 1])
        assert link[a, ROUTER] < 0
        assert str(count[a, ANSWER]) == answer


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--sgd",), "--sgd has no effect: the routers of --log_multi learn by plain AdaGrad"),
        (("--power_t", "0.3"), "give --layout vw for VW's learner"),
        (("--error", "1"), "--error belongs to --ect, which was not chosen"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, why):
    with pytest.raises(UsageError, match=why):
        configure("--log_multi", K, *words)


def test_random_tree_refuses_what_vw_has_not():
    with pytest.raises(UsageError, match="VW has no --random_tree"):
        configure("--random_tree", K, "--vw_exact")


def test_vw_exact_takes_vws_loss_whatever_is_asked_for():
    assert configure("--vw_exact", "--log_multi", K, "--loss_function", "hinge").learner.loss_function == "quantile"
    logistic = configure("--vw_exact", "--log_multi", K, "--loss_function", "logistic").learner
    assert (logistic.loss_function, logistic.min_prediction, logistic.max_prediction) == ("quantile", -50, 50)
    assert configure("--log_multi", K).learner.loss_function == "hinge"
    assert configure("--log_multi", K).log_multi.max_predictors == 4 * K - 1
    assert configure("--log_multi", K, "--vw_exact").log_multi.max_predictors == K - 1
    assert configure("--log_multi", K, "--loss_function", "quantile").learner.loss_function == "quantile"


def test_label_outside_is_refused(tmp_path):
    (tmp_path / "data").write_text("1 |w a\n14 |w b\n")
    done = xclass("data", "--log_multi", K, cwd=tmp_path)
    assert done.status == 1
    assert "data:2" in done.err
    assert "1..13 (--log_multi 13)" in done.err


@pytest.mark.parametrize("reduction", ["--log_multi", "--random_tree"])
def test_time_does_not_grow_with_the_classes(tmp_path, reduction):
    """An example asks as many routers as the tree is deep, whatever K."""
    (tmp_path / "data").write_text(multiclass(5, 9, 300))
    for k in (9, 1000, 1_000_000):
        learn("data", reduction, k, "-b", 18, "--quiet", "-r", "r", cwd=tmp_path)
        asked = max(len(line.split()) for line in (tmp_path / "r").read_text().splitlines())
        assert asked <= (min(k, 300) - 1 if reduction == "--log_multi" else (k - 1).bit_length())


def test_large_values_are_scaled_by_the_largest_seen(tmp_path):
    """A feature in other units gives the same tree."""
    rng = random.Random(2)
    lines = [(rng.randrange(1, 6), rng.random(), rng.random()) for _ in range(300)]
    for name, unit in (("one", 1.0), ("other", 1024.0)):
        text = "".join(f"{y} |a x:{u * y} y:{v * unit:.9f}\n" for y, u, v in lines)
        (tmp_path / name).write_text(text)
        learn(name, "--log_multi", 5, "--quiet", "-p", name + ".p", cwd=tmp_path)
    first, second = ((tmp_path / f"{name}.p").read_text().split() for name in ("one", "other"))
    assert sum(a != b for a, b in zip(first, second, strict=True)) < 15


def test_herds_are_as_large_as_rows():
    batch = batch_of(configure("--log_multi", K), "1 |a b\n2 |a c d\n")
    row = tree_routers.new_row(batch, 5)
    assert row.h.shape == row.x.shape == row.slot.shape == (tree_routers.GROUP_SIZE, 3)
