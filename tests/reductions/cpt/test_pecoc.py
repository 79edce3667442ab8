"""Trees whose nodes have m branches: against their oracle, the paper's bounds, brute force and the binary tree."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from command import learn, xclass
from cpt_runs import BITS, examples, fact, lines_of, pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import multiclass

from tests.oracles.feature_scales import as_learned
from tests.oracles.pecoc import LEAST, Tree, estimates, hadamard, nearest
from xclass.binary import adagrad, loss
from xclass.model import model_file
from xclass.reductions.cpt import label_tree, pecoc, wide_nodes
from xclass.reductions.cpt import reduction as cpt


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- the same numbers as the oracle


@pytest.mark.parametrize("m", [4, 8, 32])
@pytest.mark.parametrize("loss_function", ["squared", "logistic"])
@pytest.mark.parametrize(
    ("options", "oracle"),
    [
        ((), {}),
        (("--cpt_alpha", 0.1), {"alpha": 0.1}),
        (("--cpt_tree", "balanced"), {"rule": "balanced"}),
        (("--cpt_tree", "random", "--random_seed", 3), {"rule": "random", "seed": 3}),
        (("--normalize_features", "none", "-l", 0.2), {"unit": False, "rate": 0.2}),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_probabilities_are_the_oracles_example_by_example(m, loss_function, options, oracle):
    k = 17
    text = multiclass(1, k, 90, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    run = ("--cpt", k, "--cpt_arity", m, "-b", 24, "--loss_function", loss_function, *options)
    done = learn(*run, "--top_k", k, "-p", "p", stdin=text)
    scaled = as_learned(examples(text), "none" if "--normalize_features" in options else "auto")
    tree = Tree(m, loss=loss_function, **{"rate": 0.5 if loss_function == "squared" else 1.0, **oracle})
    squared = weight_sum = known_sum = asked = mean = 0.0
    for number, ((row, y, weight), line) in enumerate(zip(scaled, lines_of("p"), strict=True), 1):
        want = tree.probabilities(row)
        got, rest = pairs(line)
        assert set(got) == set(want), number
        for label, p in got.items():
            assert p == pytest.approx(want[label], rel=5e-4, abs=2e-6), (number, label)
        assert sum(got.values()) + rest == pytest.approx(1, abs=2e-5)
        if y is None:
            continue
        squared += weight * (1 - want.get(y, 0.0)) ** 2
        weight_sum += weight
        if y in want:
            regressors, total = tree.asked(row, y)
            known_sum += weight
            asked += weight * regressors
            mean += weight * total / max(regressors, 1)
        if weight > 0:
            tree.learn(row, y, weight)
    assert fact(done.err, "average squared loss") == pytest.approx(squared / weight_sum, rel=1e-4)
    assert fact(done.err, "regressors asked about a label") == pytest.approx(asked / known_sum, abs=0.006)
    assert fact(done.err, "their average squared loss") == pytest.approx(mean / known_sum, rel=1e-3)
    assert f"classes in the tree = {len(tree.way)}," in done.err
    assert f"99 % {tree.root.leaves()}" not in done.err
    assert tree.root.depth() == (1 if m == 32 else tree.root.depth())


# -- one node


@pytest.mark.parametrize("m", [2, 4, 8, 64])
def test_estimates_are_the_papers_by_its_matrix(m):
    weights = adagrad.new_weights(4, loss.SQUARED, 0.5)
    rng = np.random.default_rng(m)
    for used in (m, max(2, m // 3)):
        s = rng.uniform(-1.2, 1.2, m).astype(np.float32)
        child = np.where(np.isin(np.arange(m), rng.choice(m, used, replace=False)), 5, -1)
        p_odd = [0.0] + [min(max(0.5 + 0.5 * float(one), 0.01), 0.99) for one in s[1:]]
        plain = estimates(hadamard(m), [1 - p for p in p_odd])
        want = np.zeros(m)
        want[child >= 0] = np.maximum(nearest(plain[child >= 0]), LEAST / m)
        v = np.empty(m)
        pecoc.estimate(weights, s, child, v)
        assert v == pytest.approx(want / want.sum(), rel=1e-12)
        if m == 2:  # the very turns of the binary tree
            assert v.tolist() == pytest.approx([1 - p_odd[1], p_odd[1]], rel=1e-12)


@settings(max_examples=200)
@given(data=st.data())
def test_estimates_are_brought_nearer_to_any_truth(data):
    m = 8
    v = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=m, max_size=m)))
    child = np.array(data.draw(st.lists(st.sampled_from([-1, 5]), min_size=m, max_size=m)))
    child[data.draw(st.integers(0, m - 1))] = 5
    used = child >= 0
    got = np.where(used, np.maximum(v - pecoc.surplus(v, child), 0), 0)
    assert got.sum() == pytest.approx(1)
    truth = np.where(used, data.draw(st.lists(st.floats(0.01, 1), min_size=m, max_size=m)), 0)
    truth /= truth.sum()
    assert ((got - truth) ** 2)[used].sum() <= ((v - truth) ** 2)[used].sum() + 1e-12


@pytest.mark.parametrize("m", [2, 8, 1024])
def test_rows_ask_what_the_matrix_says(m):
    matrix = hadamard(m)
    assert (matrix[0] == 1).all()
    some = np.random.default_rng(1).integers(0, m, (300, 2))
    assert all(pecoc.odd(i, c) == 1 - matrix[i, c] for i, c in some.tolist())
    assert np.array_equal((2 * matrix - 1) @ (2 * matrix - 1).T, m * np.eye(m))  # every two rows differ in half


@settings(max_examples=200)
@given(data=st.data(), levels=st.integers(1, 5))
def test_squared_loss_is_within_the_papers_bound(data, levels):
    """4 (1 - 1/m)**2 times the regressors' mean squared loss in a node, d**2 times that over d nodes."""
    m = 1 << levels
    matrix = hadamard(m)
    depth = data.draw(st.integers(1, 4))
    product, losses = 1.0, []
    for _ in range(depth):
        c = data.draw(st.integers(0, m - 1))
        f = [1.0, *data.draw(st.lists(st.floats(0, 1), min_size=m - 1, max_size=m - 1))]
        product *= min(max(estimates(matrix, f)[c], 0.0), 1.0)
        losses += [(f[i] - matrix[i, c]) ** 2 for i in range(1, m)]
    bound = 4 * (1 - 1 / m) ** 2 * depth**2 * sum(losses) / len(losses)
    assert (1 - product) ** 2 <= bound + 1e-9


def test_neighbouring_places_are_neighbouring_slots():
    """What lets eight regressors share a cache line: the slot of place + q is that of place XOR q."""
    weights = adagrad.new_weights(12, loss.SQUARED, 0.5)
    rng = random.Random(2)
    for _ in range(200):
        feature = np.uint64(rng.getrandbits(64))
        for width in (2, 4, 8):
            first = width * rng.randrange(1 << 40)
            slots = [adagrad.slot(weights, feature, first + q) for q in range(width)]
            assert slots == [slots[0] ^ (2 * q) for q in range(width)]


# -- the tree


def blocks(tree, levels: int) -> dict[int, list[int]]:
    """Root of every block that has branches -> the nodes these lead to."""
    found = {}
    for root in range(int(tree.size[label_tree.NODES])):
        if tree.depth[root] % levels == 0 and tree.left[root] > 0:
            nodes = [root]
            for _ in range(levels):
                halves = [[int(tree.left[a]), int(tree.left[a]) + 1] if tree.left[a] > 0 else [a] for a in nodes]
                nodes = [a for half in halves for a in half]
            found[root] = nodes
    return found


@pytest.mark.parametrize("order", ["rising", "random", "clusters"])
@pytest.mark.parametrize("rule", [("--cpt_alpha", 0.02), ("--cpt_tree", "balanced"), ("--cpt_tree", "random")])
@pytest.mark.parametrize("m", [4, 16])
def test_a_block_fills_up_before_another_begins_below(order, rule, m):
    k, levels = 150, m.bit_length() - 1
    labels = {
        "rising": list(range(1, k + 1)),
        "random": random.Random(4).sample(range(1, 10**9), k),
        "clusters": [1 + (i * 37) % k for i in range(k)],
    }[order]
    text = "".join(f"{y} |w same a{y % 3} b{y}\n" for y in labels for _ in range(2))
    learn("--cpt", 0, *BITS, *rule, "--cpt_arity", m, "-f", "m", "--quiet", stdin=text)
    tree = label_tree.restored("tree.0", model_file.load("m").arrays)
    found = blocks(tree, levels)
    inner = 0
    for nodes in found.values():
        assert len(nodes) <= m
        if any(tree.left[a] > 0 for a in nodes):
            assert len(nodes) == m
            inner += 1
    assert inner > 0
    assert sum(tree.left[a] == 0 for nodes in found.values() for a in nodes) == k


def test_from_k_on_there_is_one_node():
    for k, m in ((30, 32), (16, 16), (5, 1024)):
        done = learn("--cpt", k, *BITS, "--cpt_arity", m, "--cpt_alpha", 0.01, stdin=multiclass(3, k, 400, noise=0.2))
        assert f"nodes opened by a search: mean 1.0, median 1, 99 % 1, {m - 1} regressors each" in done.err
        assert m - 2 < fact(done.err, "regressors asked about a label") <= m - 1  # none while there is one label
        assert int(fact(done.err, "depth")) <= math.log2(m)


@pytest.mark.parametrize("alpha", [0.6, 0.1])
def test_two_branches_are_the_binary_tree(monkeypatch, alpha):
    """The kernels for m branches, asked to take m = 2, which they never are, say what the binary tree says."""
    k = 40
    text = multiclass(5, k, 700, noise=0.3, weights=(1, 2, 0.5), unlabelled=0.05)
    run = ("--cpt", k, "-b", 24, "--cpt_alpha", alpha, "--top_k", 5, "-p", "stdout")
    plain = learn(*run, stdin=text)
    begin = cpt.Member.__init__

    def other(self, *args):
        begin(self, *args)
        self.kernels = wide_nodes

    monkeypatch.setattr(cpt.Member, "__init__", other)
    done = learn(*run, stdin=text)
    for one, two in zip(plain.lines, done.lines, strict=True):
        (first, rest), (second, same) = pairs(one), pairs(two)
        assert first == pytest.approx(second, rel=1e-3, abs=1e-5)
        assert rest == pytest.approx(same, abs=1e-4)
    for name in ("average squared loss", "regressors asked about a label", "their average squared loss"):
        assert fact(plain.err, name) == pytest.approx(fact(done.err, name), rel=1e-4)
    opened = [float(result.err.split("mean ")[1].split(",")[0]) for result in (done, plain)]
    assert 0.7 * opened[1] < opened[0] < 1.6 * opened[1]  # depth first here, best first there


# -- the search


@pytest.mark.parametrize("m", [4, 8, 64])
@pytest.mark.parametrize("loss_function", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(2))
def test_top_k_is_the_top_of_all_labels(m, loss_function, seed):
    k = 90
    learn(
        "--cpt", k, *BITS, "--cpt_arity", m, "--loss_function", loss_function, "-f", "m", "--quiet",
        stdin=multiclass(seed, k, 800, noise=0.3),
    )  # fmt: skip
    test = multiclass(seed + 100, k, 80, noise=0.5)
    every = learn("-i", "m", "-t", "--quiet", "--top_k", 1000, "-p", "stdout", stdin=test).lines
    for few in (1, 2, 10):
        best = learn("-i", "m", "-t", "--quiet", "--top_k", few, "-p", "stdout", stdin=test).lines
        for one, whole in zip(best, every, strict=True):
            got, rest = pairs(one)
            want, nothing = pairs(whole)
            assert nothing < 1e-6
            assert len(want) == k
            assert sum(want.values()) == pytest.approx(1, abs=1e-4)
            assert list(got.values()) == list(want.values())[:few]
            assert all(want[label] == p for label, p in got.items())
            assert rest == pytest.approx(1 - sum(got.values()), abs=2e-5)
    single = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=test).lines
    for label, whole in zip(single, every, strict=True):
        want = pairs(whole)[0]
        assert want[int(label)] == max(want.values())


@pytest.mark.parametrize("m", [4, 16])
def test_being_right_does_not_depend_on_what_is_written(m):
    """Without -p a search ends as soon as it knows whether the label wins."""
    text = multiclass(5, 70, 1500, noise=0.3, weights=(1, 2, 0.5), unlabelled=0.05)
    quick = learn("--cpt", 70, *BITS, "--cpt_arity", m, stdin=text)
    whole = learn("--cpt", 70, *BITS, "--cpt_arity", m, "-p", "p", stdin=text)
    for name in ("average loss", "average squared loss", "average log loss"):
        assert fact(quick.err, name) == fact(whole.err, name)
    opened = [float(done.err.split("mean ")[1].split(",")[0]) for done in (quick, whole)]
    assert opened[0] < opened[1]


def test_budget_leaves_an_answer_and_tells_the_gap():
    text = multiclass(6, 90, 900, noise=0.4)
    whole = learn("--cpt", 90, *BITS, "--cpt_arity", 4, stdin=text)
    done = learn("--cpt", 90, *BITS, "--cpt_arity", 4, "--max_expand", 1, "-p", "stdout", stdin=text)
    assert all(int(line) > 0 for line in done.lines[1:])
    assert fact(done.err, "searches ended by --max_expand") > 10
    assert 0 < float(done.err.split("may have up to ")[1].split()[0]) < 1
    assert fact(done.err, "average loss") > fact(whole.err, "average loss")


def test_greedy_search_follows_the_likeliest_branch():
    text = multiclass(7, 90, 1200, noise=0.4)
    run = ("--cpt", 90, *BITS, "--cpt_arity", 4)
    exact = learn(*run, "-f", "m", stdin=text)
    done = learn(*run, "--cpt_search", "greedy", stdin=text)
    assert fact(exact.err, "average loss") < fact(done.err, "average loss")
    levels = max(1, math.ceil(fact(done.err, "depth") / 2))
    assert float(done.err.split("mean ")[1].split(",")[0]) <= levels
    # what greedy answers never has more probability than the best
    test = multiclass(8, 90, 60, noise=0.5)
    some = learn("-i", "m", "-t", "--quiet", "--cpt_search", "greedy", "-p", "stdout", stdin=test).lines
    every = learn("-i", "m", "-t", "--quiet", "--top_k", 1000, "-p", "stdout", stdin=test).lines
    fell_short = 0
    for label, whole in zip(some, every, strict=True):
        want = pairs(whole)[0]
        fell_short += want[int(label)] < max(want.values())
    assert 0 < fell_short < 60


# -- several trees, labels that come later, models


def test_several_trees_give_the_same_bytes_on_any_number_of_threads(place, monkeypatch):
    text, test = multiclass(11, 45, 500), multiclass(12, 45, 200)
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        run = ("--cpt", 45, *BITS, "--cpt_arity", 4, "--trees", 3, "-p", "stdout", "-f", "m", "--quiet")
        done = learn(*run, stdin=text)
        tested = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", "--quiet", stdin=test)
        found.append((done.out, tested.out, (place / "m").read_bytes()))
    assert found[0] == found[1] == found[2]


def test_several_trees_tell_the_mean_probability():
    """`candidate_probabilities` agrees with the search: two trees without noise are one."""
    k = 45
    rng = random.Random(13)

    def lines(n):  # numbers as features: their index does not depend on -b
        for _ in range(n):
            y = rng.randrange(k)
            told = [y if rng.random() < 0.6 else rng.randrange(k) for _ in range(3)]
            yield f"{y + 1} | {' '.join(str(100 * j + z) for j, z in enumerate(told, 1))}\n"

    text, test = "".join(lines(500)), "".join(lines(100))
    run = ("--cpt", k, "--cpt_arity", 4, "--noconstant", "-f", "m", "--quiet")
    learn(*run, "-b", 20, stdin=text)
    one = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", "--quiet", stdin=test).lines
    learn(*run, "-b", 21, "--trees", 2, "--tree_noise", 0, stdin=text)
    two = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", "--quiet", stdin=test).lines
    for first, second in zip(one, two, strict=True):
        got, want = pairs(first)[0], pairs(second)[0]
        assert list(got) == list(want)
        assert list(got.values()) == pytest.approx(list(want.values()), rel=1e-5)


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow")  # of NumPy, in plain Python
def test_few_examples_go_all_the_way():
    text = multiclass(18, 9, 25)
    for m, kept, search in ((4, (), ()), (8, ("--trees", 2), ()), (16, (), ("--cpt_search", "greedy"))):
        done = learn(
            "--cpt", 9, "-b", 10, "--cpt_arity", m, *kept, *search, "-f", "m", "-p", "stdout", "--quiet", stdin=text
        )
        assert len(done.lines) == 25
        tested = learn("-i", "m", "-t", *search, "--quiet", "-p", "stdout", stdin=text)
        assert len(set(tested.lines)) > 2


@pytest.mark.bounds
def test_labels_that_come_later_find_their_place(place):
    for m, alpha in ((4, 0.05), (64, 0.6), (1024, 0.6)):
        some = "".join(f"{y} |w a{y % 50} b{y}\n" for y in range(1, 701))
        more = "".join(f"{y} |w a{y % 50} b{y}\n" for y in range(1, 1401))
        run = ("--cpt", 0, "-b", 20, "--cpt_alpha", alpha, "--cpt_arity", m, "--quiet")
        learn(*run, "-f", "m", stdin=some)
        done = learn("-i", "m", "-f", "n", stdin=more)
        assert "labels seen for the first time = 700," in done.err
        assert "classes in the tree = 1400," in done.err
        learn(*run, "-f", "whole", stdin=some + more)
        assert (place / "n").read_bytes() == (place / "whole").read_bytes()


def test_examples_held_out_are_never_learned_from():
    text = multiclass(15, 40, 500, noise=0.2)
    run = ("--cpt", 40, *BITS, "--cpt_arity", 8, "--quiet")
    learn(*run, "-f", "part", stdin=text)
    learn(*run, "--holdout_after", 500, "-f", "m", "-p", "p", stdin=text + multiclass(16, 60, 100))
    first, second = (model_file.load(name).arrays for name in ("part", "m"))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert len(set(lines_of("p")[500:])) > 20


def test_arity_that_is_none_is_refused():
    for m in (3, 6, 1000):
        done = xclass("--cpt", 3, "--cpt_arity", m, stdin="1 |w a\n")
        assert done.status == 2
        assert f"--cpt_arity {m} is no power of two" in done.err
    for m in (0, 1, 2048, "few"):
        assert xclass("--cpt", 3, "--cpt_arity", m, stdin="1 |w a\n").status == 2
    done = xclass("--oaa", 3, "--cpt_arity", 4, stdin="1 |w a\n")
    assert done.status == 2
    assert "--cpt_arity belongs to --cpt" in done.err
    learn("--cpt", 3, *BITS, "--cpt_arity", 4, "-f", "m", "--quiet", stdin="1 |w a\n2 |w b\n")
    assert "--cpt_arity 8 disagrees" in xclass("-i", "m", "--cpt_arity", 8, stdin="1 |w a\n").err
