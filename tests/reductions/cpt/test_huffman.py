"""Huffman's tree, and the hierarchical softmax that stands on it."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest
import streams
from command import learn, xclass
from hypothesis import given
from hypothesis import strategies as st
from library import go_through, same_arrays, same_contents, summary_of, trained

from tests.oracles.hierarchical_softmax import HierarchicalSoftmax
from xclass import Learner, UsageError, load
from xclass.reductions.cpt import label_tree, sampled_tree


def least_length(weights: list[float]) -> float:
    """Huffman's weighted path length: the sum of all masses that are put together."""
    heap = list(weights)
    heapq.heapify(heap)
    total = 0.0
    while len(heap) > 1:
        mass = heapq.heappop(heap) + heapq.heappop(heap)
        total += mass
        heapq.heappush(heap, mass)
    return total


def leaves(tree: label_tree.ClassTree) -> dict[int, int]:
    """Label -> depth of its leaf."""
    nodes = int(tree.size[label_tree.NODES])
    return {int(tree.label[a]): int(tree.depth[a]) for a in range(nodes) if tree.left[a] == 0}


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(0, 5))
def test_no_tree_has_shorter_paths(weights, seed):
    labels = np.arange(len(weights), dtype=np.int64) * 3 + 1
    tree = sampled_tree.huffman_tree(labels, np.array(weights, np.float64), np.random.default_rng(seed))
    depth = leaves(tree)
    assert set(depth) == set(labels.tolist())
    assert sum(w * depth[y] for w, y in zip(weights, labels.tolist(), strict=True)) == least_length(weights)
    mass = np.zeros(2 * len(weights) - 1)
    for a in range(len(mass) - 1, -1, -1):
        child = tree.left[a]
        mass[a] = mass[child] + mass[child + 1] if child else weights[int(tree.label[a]) // 3]
        assert not child or mass[child] >= mass[child + 1]


def test_equal_weights_are_ordered_by_the_seed():
    labels, weight = np.arange(1, 40), np.ones(39)
    trees = [sampled_tree.huffman_tree(labels, weight, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    orders = [tree.label[:77].tolist() for tree in trees]
    assert orders[0] == orders[1] != orders[2]


def test_counts_are_of_the_first_examples_and_by_importance():
    counts = sampled_tree.LabelCounts(4)
    batch = SimpleNamespace(label=np.array([1.0, 2.0, np.nan, 1.0]), weight=np.array([1, 2, 3, 4], np.float32))
    assert counts.add(batch, np.array([True, True, False, True]))
    batch = SimpleNamespace(label=np.array([3.0, 4.0, 5.0]), weight=np.array([0.5, 1, 1], np.float32))
    assert not counts.add(batch, np.array([True, True, True]))
    assert counts.seen == 4
    (tree,) = counts.trees([0], None, 0)
    assert leaves(tree) == {1: 1, 2: 2, 3: 2}
    assert sampled_tree.LabelCounts(9).trees([0], None, 0) == []


def test_hsm_stands_for_ordinary_options():
    text = streams.multiclass(5, 9, 300, popular=2)
    options = {"cpt_tree": "huffman", "loss_function": "logistic", "sgd": True}
    with trained("hsm", 9, text, bits=14) as hsm, trained("cpt", 9, text, bits=14, **options) as cpt:
        assert same_contents(hsm, cpt)
        assert "9 of them placed by a sample of 300 examples" in summary_of(hsm)
        exact = hsm.predict_many(text)
    with trained("hsm", 9, text, bits=14, beam=1) as model:
        assert np.count_nonzero(model.predict_many(text) == exact) > 200


def test_hsm_paper_stands_for_the_settings_of_its_paper():
    text = streams.multiclass(5, 9, 200, popular=2)
    options = {"momentum": 0.9, "learning_rate": 0.005, "decay_learning_rate": 0.995, "normalize_features": "none"}
    with trained("hsm", 9, text, bits=14, hsm_paper=True) as short:
        with trained("hsm", 9, text, bits=14, tree_sample=0, **options) as long:
            assert same_contents(short, long)
        with pytest.raises(UsageError, match=r"momentum 0\.9 needs the plain steps of sgd"):
            Learner("hsm", 9, hsm_paper=True, sgd=False)
        assert short.options["momentum"] == 0.9 and "momentum" not in Learner("hsm", 9).core.config.stored()


@pytest.mark.parametrize(("absent", "tolerance"), [(0.0, 0.02), (0.5, 0.15)])
def test_momentum_is_that_of_the_paper(absent, tolerance):
    """With one node, it differs only where features are absent, up to the rounding of the words."""
    random = np.random.default_rng(3)
    x = np.hstack([random.normal(size=(200, 3)) * (random.random((200, 3)) >= absent), np.ones((200, 1))]).round(3)
    y = np.where(x[:, 0] + 0.5 * random.normal(size=200) > 0.3, 1, 2)
    text = "".join(f"{label} | a:{row[0]} b:{row[1]} c:{row[2]}\n" for label, row in zip(y, x, strict=True))
    oracle = HierarchicalSoftmax({label: int((y == label).sum()) for label in (1, 2)}, 4, 0.02)
    wanted = []
    for label, row in zip(y.tolist(), x, strict=True):
        wanted.append(oracle.probability(row, label))
        oracle.learn(row, label)
    with Learner("hsm", 2, bits=14, hsm_paper=True, learning_rate=0.02) as model:
        lists = go_through(model, text, top_k=2).lists
    got = np.array([listing[label] for listing, label in zip(lists, y.tolist(), strict=True)])
    assert abs(got - wanted).max() < tolerance
    assert abs(got - wanted).max() > tolerance / 100


def test_plain_steps_agree_with_arithmetic():
    """One node, squared loss: w -= rate * 2 (s - y) x, after a preview of both labels."""
    options = {"cpt_tree": "huffman", "sgd": True, "learning_rate": 0.25, "noconstant": True}
    with Learner("cpt", 2, bits=10, **options) as model:
        results = go_through(model, "1 | a\n1 | a\n2 | b\n1 | a\n", top_k=2)
    # label 1 is left, y = -1: s = 0, then 0 - .25 * 2 * 1 = -.5, then -.5 - .25 * 2 * .5 = -.75
    assert [listing[1] for listing in results.lists] == [0.5, 0.75, 0.5, 0.875]


def test_new_labels_come_after_the_tree_was_made():
    text = streams.multiclass(5, 9, 200) + "77 | new\n"
    with trained("hsm", 0, text, bits=14, tree_sample=50) as model:
        assert "classes in the tree = 10, " in summary_of(model)
        assert "placed by a sample of 50 examples" in summary_of(model)


def test_a_test_without_a_model_has_no_tree():
    result = xclass("-t", "--cpt", 3, "--cpt_tree", "huffman", "-b", 12, stdin="1 | a\n")
    assert result.status == 0
    assert "-t without -i predicts with a new model" in result.err
    assert "classes in the tree = 0, " in result.err


def test_preset_that_contradicts_the_model_is_refused(tmp_path):
    (tmp_path / "d.vw").write_text(streams.multiclass(5, 9, 100))
    learn("d.vw", "-b", 12, "--cpt", 9, "-f", "m", cwd=tmp_path)
    result = xclass("d.vw", "-i", "m", "--hsm", 9, cwd=tmp_path)
    assert result.status == 2
    assert "--hsm 9 disagrees with m, which was trained with --cpt_tree general" in result.err


@pytest.mark.parametrize("words", [("--hsm", 9, "--tree_sample", 0), ("--cpt", 9, "--cpt_arity", 4)], ids=str)
def test_rate_falls_from_pass_to_pass(words, tmp_path):
    """Two passes at a falling rate are one at the first rate, and one more at the second rate."""
    (tmp_path / "train.vw").write_text(streams.multiclass(2, 9, 60))
    learning = ("-d", "train.vw", "-b", 12, "--holdout_off", "--quiet")
    both = ("--passes", 2, "-c", "-k", "--decay_learning_rate", 0.25, "-l", 0.8, "-f", "both")
    learn(*learning, *words, *both, cwd=tmp_path)
    learn(*learning, *words, "-l", 0.8, "-f", "first", cwd=tmp_path)
    learn(*learning, "-i", "first", "-l", 0.2, "-f", "second", cwd=tmp_path)
    with load(str(tmp_path / "both")) as whole, load(str(tmp_path / "second")) as parts:
        assert same_arrays(whole, parts)
    result = xclass("-d", "train.vw", "--multiclass", 9, "--passes", 2, "--decay_learning_rate", 0.5, cwd=tmp_path)
    assert "--decay_learning_rate" in result.err and "--rerank_rate" in result.err and result.status == 2
