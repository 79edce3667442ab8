"""--rerank: against its oracle, its probabilities, what it reports, and what a model keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from library import fact, go_through, state_of, trained
from probability_trees import examples
from streams import multiclass

from tests.oracles.cpt import Tree
from tests.oracles.feature_scales import as_learned
from tests.oracles.reranking import Scorers
from xclass import Learner, UsageError, load
from xclass.binary import adagrad
from xclass.data.batch import Batch
from xclass.kernels.constants import GOLDEN
from xclass.reductions.cpt import reranking


def proposals_of(tree: Tree, row, k: int, cut: float) -> list[tuple[int, float]]:
    """The k most probable labels; none less than `cut` times as likely as the best."""
    pairs = sorted(tree.probabilities(row).items(), key=lambda item: -item[1])[:k]
    return [(y, p) for y, p in pairs if p >= cut * pairs[0][1]]


@pytest.mark.parametrize("cut", [0.0, 0.3])
def test_one_tree_and_its_scorers_are_the_oracles_example_by_example(cut):
    classes, k = 12, 4
    text = multiclass(21, classes, 300, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    options = {"bits": 22, "rerank": True, "candidates": k, "candidate_cut": cut, "rerank_rate": 0.3}
    with Learner("cpt", classes, **options) as model:
        results = go_through(model, text, top_k=k)
    tree, scorers = Tree(), Scorers(0.3)
    missed = mistaken = weight_sum = 0.0
    for number, ((row, y, weight), got) in enumerate(zip(as_learned(examples(text)), results.lists, strict=True), 1):
        rest = got.pop(0)
        proposed = [proposals_of(tree, row, k, cut)]
        if tree.root is None:
            assert got == {} and rest == 1
        else:
            want, outside = scorers.rank(proposed, tree.scaled(row))
            assert set(got) == set(want), number
            for label, p in got.items():
                assert p == pytest.approx(want[label], rel=5e-3, abs=1e-5), (number, label)
            assert rest == pytest.approx(outside, rel=5e-3, abs=1e-5)
            assert list(got.values()) == sorted(got.values(), reverse=True)
        if y is None:
            continue
        weight_sum += weight
        missed += weight * (y not in got)
        mistaken += weight * (y in got and next(iter(got)) != y)
        if weight > 0:
            if tree.root is not None:
                scorers.learn(proposed, tree.scaled(row), y, weight)
            tree.learn(row, y, weight)
    assert fact(results.summary, "(routing error)") == pytest.approx(missed / weight_sum, abs=1e-6)
    assert fact(results.summary, "(scoring error)") == pytest.approx(mistaken / weight_sum, abs=1e-6)
    assert missed > 0 and mistaken > 0


def rank_rows(scorers: reranking.Scorers, rows, label, top, top_p, learns: bool):
    """Call the kernel on rows of (index, value) pairs."""
    n = len(rows)
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    index = np.array([i for row in rows for i, _ in row], np.uint32)
    value = np.array([x for row in rows for _, x in row], np.float32)
    batch = Batch(
        start, index, value, label.astype(np.float32), np.ones(n, np.float32), np.zeros(n, np.float32),
        np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.arange(1, n + 1), np.zeros(1, np.uint8),
    )  # fmt: skip
    trees, _, k = top.shape
    candidate = np.zeros((n, trees * k), np.int64)
    for i in range(n):
        seen = list(dict.fromkeys(int(top[t, i, j]) for j in range(k) for t in range(trees) if top[t, i, j] > 0))
        candidate[i, : len(seen)] = seen
    ranked = reranking.Ranked(np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n), np.zeros(n, bool))
    proposed = reranking.Proposed(top, top_p, np.zeros((trees, n)), candidate)
    scratch = reranking.scratch(batch, trees * k)
    reranking.rank(scorers, True, batch, label, np.full(n, learns), 0, n, proposed, scratch, ranked)
    return ranked


def test_several_trees_that_disagree_are_the_oracles():
    trees, k, labels, n = 3, 3, 8, 150
    rng = np.random.default_rng(5)
    kernel, oracle = reranking.new_scorers(18, 0, 0.35), Scorers(0.35)
    for _ in range(n):
        top, top_p = np.zeros((trees, 1, k), np.int64), np.zeros((trees, 1, k))
        proposals = []
        for t in range(trees):
            size = int(rng.integers(1, k + 1))
            chosen = rng.permutation(labels)[:size] + 1
            p = np.sort(rng.dirichlet(np.ones(size + 1))[:size])[::-1]
            top[t, 0, :size], top_p[t, 0, :size] = chosen, p
            proposals.append([(int(y), float(x)) for y, x in zip(chosen, p, strict=True)])
        y = int(rng.integers(1, labels + 1))
        row = [(int(i), float(rng.integers(1, 3))) for i in rng.permutation(6)[:3] + 10 * y]
        ranked = rank_rows(kernel, [row], np.array([y]), top, top_p, True)
        scaled = Tree().scaled(row)
        want, outside = oracle.rank(proposals, scaled)
        assert ranked.top_p[0].sum() <= 1 - outside + 1e-6
        for label, p in zip(ranked.top[0], ranked.top_p[0], strict=True):
            if label > 0:
                assert p == pytest.approx(want[int(label)], rel=2e-3, abs=1e-6)
        assert ranked.inside[0] == (y in want)
        if y in want:
            assert ranked.p[0] == pytest.approx(want[y], rel=2e-3, abs=1e-6)
        oracle.learn(proposals, scaled, y)
    assert kernel.state[0, :3] == pytest.approx(oracle.v, rel=1e-3)
    assert kernel.state[0, 3:] == pytest.approx(oracle.ab, rel=1e-3)


def test_features_so_large_that_scores_overflow_do_no_lasting_harm():
    scorers = reranking.new_scorers(10, 0, 0.35)
    scorers.weights.flat[:] = np.float32(3e38)
    top, top_p = np.array([[[1, 2]]]), np.array([[[0.6, 0.3]]])
    ranked = rank_rows(scorers, [[(1, 3.0), (2, 3.0)]], np.array([1]), top, top_p, False)
    assert np.isfinite(ranked.top_p).all() and ranked.top[0, 0] == 1


def test_probabilities_and_tail_are_one_and_top_1_is_the_prediction():
    text, test = multiclass(22, 30, 600), multiclass(23, 30, 100)
    with trained("cpt", 0, text, bits=20, trees=3, rerank=True) as model:
        lists = go_through(model, test, learn=False, top_k=50).lists
        assert [sum(listing.values()) for listing in lists] == pytest.approx([1] * 100, abs=1e-6)
        assert [next(iter(listing)) for listing in lists] == model.predict_many(test).tolist()


def test_probabilities_of_all_classes_keep_those_of_the_best():
    text, test = multiclass(22, 30, 600), multiclass(23, 30, 50)
    with trained("cpt", 0, text, bits=20, trees=2, rerank=True, candidates=3) as model:
        every = go_through(model, test, learn=False, probabilities=True).lists
        best = go_through(model, test, learn=False, top_k=6).lists
    for all_of_them, top in zip(every, best, strict=True):
        tail, rest = all_of_them.pop(0), top.pop(0)
        assert list(all_of_them) == list(range(1, 31)) and tail == 0
        assert all(all_of_them[y] == pytest.approx(p, rel=1e-4) for y, p in top.items())
        assert sum(p for y, p in all_of_them.items() if y not in top) == pytest.approx(rest, abs=1e-4)


def test_better_than_the_trees_alone_where_classes_differ_in_single_features():
    text, test = multiclass(24, 300, 2000, noise=0.5), multiclass(25, 300, 900, noise=0.5)
    with trained("cpt", 300, text, bits=20) as alone, trained("cpt", 300, text, bits=20, rerank=True) as reranked:
        assert go_through(reranked, test, learn=False).loss < go_through(alone, test, learn=False).loss


def test_same_model_on_any_number_of_threads_and_resumed(tmp_path, monkeypatch):
    text, test = multiclass(11, 25, 500), multiclass(12, 25, 200)
    options = {"bits": 20, "trees": 3, "rerank": True}
    states, results = [], []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        with Learner("cpt", 25, **options) as model:
            results.append((go_through(model, text), go_through(model, test, learn=False, top_k=3)))
            states.append(state_of(model))
    assert results[0] == results[1] == results[2]
    lines = text.splitlines()
    with trained("cpt", 25, lines[:200], **options) as model:
        model.save(str(tmp_path / "m"))
    with load(str(tmp_path / "m")) as model:
        model.learn_many(lines[200:])
        states.append(state_of(model))
    assert all(state == states[0] for state in states)


def test_new_label_becomes_a_candidate():
    text = "".join(f"{y} |w f{y} g\n" for _ in range(30) for y in (1, 2)) + "7 |w f7 g\n" * 10
    with Learner("cpt", 0, bits=20, rerank=True) as model:
        lists = go_through(model, text, top_k=3).lists
    assert 7 not in lists[60]
    assert next(iter(lists[69])) == 7
    assert all(math.isfinite(p) for listing in lists for p in listing.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidate_cut": 0.1}, "candidate_cut has no effect: it belongs to rerank"),
        ({"rerank_rate": 0.1}, "rerank_rate has no effect: it belongs to rerank"),
        ({"candidates": 3}, "candidates has no effect with a single tree"),
        ({"rerank": True, "cpt_search": "greedy"}, "cpt_search greedy leaves out the search"),
        ({"rerank": True, "cpt_report": "losses"}, "cpt_report losses leaves out the search"),
    ],
)
def test_options_that_need_it_or_exclude_it_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Learner("cpt", 3, **options)


def test_options_that_go_with_several_trees_or_with_it_are_taken():
    for options in ({"rerank": True}, {"trees": 2, "candidates": 3}):
        trained("cpt", 3, "1 |w a\n", bits=12, **options).close()


def test_scorers_share_slots_by_feature_and_class():
    weights = adagrad.new_weights(20, 0, 0.5)
    slots = {reranking._slot(weights, np.uint64(h * int(GOLDEN) % 2**64), y) for h in range(40) for y in range(1, 40)}
    assert len(slots) > 0.99 * 40 * 39
