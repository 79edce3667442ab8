"""--rerank: against its oracle, its probabilities, what it reports, and what a model keeps."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from command import learn, xclass
from cpt_runs import examples, fact, lines_of, pairs
from streams import multiclass

from tests.oracles.cpt import Tree
from tests.oracles.feature_scales import as_learned
from tests.oracles.reranking import Scorers
from xclass.binary import adagrad
from xclass.data.batch import Batch
from xclass.kernels.constants import GOLDEN
from xclass.reductions.cpt import reranking

BITS = ("-b", 20)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def proposals_of(tree: Tree, row, k: int, cut: float) -> list[tuple[int, float]]:
    """The k most probable labels; none less than `cut` times as likely as the best."""
    found = sorted(tree.probabilities(row).items(), key=lambda item: -item[1])[:k]
    return [(y, p) for y, p in found if p >= cut * found[0][1]]


@pytest.mark.parametrize("cut", [0.0, 0.3])
def test_one_tree_and_its_scorers_are_the_oracles_example_by_example(cut):
    classes, k = 12, 4
    text = multiclass(21, classes, 300, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    run = ("--cpt", classes, "-b", 24, "--rerank", "--candidates", k, "--candidate_cut", cut, "--rerank_rate", 0.3)
    done = learn(*run, "--top_k", k, "-p", "p", stdin=text)
    tree, scorers = Tree(), Scorers(0.3)
    missed = mistaken = weight_sum = 0.0
    for number, ((row, y, weight), line) in enumerate(zip(as_learned(examples(text)), lines_of("p"), strict=True), 1):
        got, rest = pairs(line)
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
    assert fact(done.err, "(routing error)") == pytest.approx(missed / weight_sum, abs=1e-6)
    assert fact(done.err, "(scoring error)") == pytest.approx(mistaken / weight_sum, abs=1e-6)
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
    found = reranking.Ranked(np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n), np.zeros(n, bool))
    proposed = reranking.Proposed(top, top_p, np.zeros((trees, n)), candidate)
    scratch = reranking.scratch(batch, trees * k)
    reranking.rank(scorers, True, batch, label, np.full(n, learns), 0, n, proposed, scratch, found)
    return found


def test_several_trees_that_disagree_are_the_oracles():
    trees, k, labels, n = 3, 3, 8, 150
    rng = np.random.default_rng(5)
    mine, plain = reranking.new_scorers(18, 0, 0.35), Scorers(0.35)
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
        found = rank_rows(mine, [row], np.array([y]), top, top_p, True)
        scaled = Tree().scaled(row)
        want, outside = plain.rank(proposals, scaled)
        assert found.top_p[0].sum() <= 1 - outside + 1e-6
        for label, p in zip(found.top[0], found.top_p[0], strict=True):
            if label > 0:
                assert p == pytest.approx(want[int(label)], rel=2e-3, abs=1e-6)
        assert found.inside[0] == (y in want)
        if y in want:
            assert found.p[0] == pytest.approx(want[y], rel=2e-3, abs=1e-6)
        plain.learn(proposals, scaled, y)
    assert mine.state[0, :3] == pytest.approx(plain.v, rel=1e-3)
    assert mine.state[0, 3:] == pytest.approx(plain.ab, rel=1e-3)


def test_features_so_large_that_scores_overflow_do_no_lasting_harm():
    scorers = reranking.new_scorers(10, 0, 0.35)
    scorers.weights.flat[:] = np.float32(3e38)
    top, top_p = np.array([[[1, 2]]]), np.array([[[0.6, 0.3]]])
    found = rank_rows(scorers, [[(1, 3.0), (2, 3.0)]], np.array([1]), top, top_p, False)
    assert np.isfinite(found.top_p).all() and found.top[0, 0] == 1


def test_probabilities_and_tail_are_one_and_top_1_is_the_prediction():
    text, test = multiclass(22, 30, 600), multiclass(23, 30, 100)
    learn("--cpt", 0, *BITS, "--trees", 3, "--rerank", "-f", "m", "--quiet", stdin=text)
    lists = [pairs(line) for line in learn("-i", "m", "-t", "--top_k", 50, "-p", "stdout", "--quiet", stdin=test).lines]
    best = learn("-i", "m", "-t", "-p", "stdout", "--quiet", stdin=test).lines
    for (found, rest), answer in zip(lists, best, strict=True):
        assert sum(found.values()) + rest == pytest.approx(1, abs=2e-5)
        assert int(answer.split()[0]) == next(iter(found))


def test_probabilities_of_all_classes_keep_those_of_the_best():
    text, test = multiclass(22, 30, 600), multiclass(23, 30, 50)
    learn("--cpt", 0, *BITS, "--trees", 2, "--rerank", "--candidates", 3, "-f", "m", "--quiet", stdin=text)
    run = ("-i", "m", "-t", "-p", "stdout", "--quiet")
    for all_line, top_line in zip(
        learn(*run, "--probabilities", stdin=test).lines, learn(*run, "--top_k", 6, stdin=test).lines, strict=True
    ):
        (every, left), (top, rest) = pairs(all_line), pairs(top_line)
        assert len(every) == 30 and list(every) == sorted(every) and left == 0
        assert all(every[y] == pytest.approx(p, rel=1e-4) for y, p in top.items())
        assert sum(p for y, p in every.items() if y not in top) == pytest.approx(rest, abs=1e-4)


def test_better_than_the_trees_alone_where_classes_differ_in_single_features():
    text, test = multiclass(24, 300, 2000, noise=0.5), multiclass(25, 300, 900, noise=0.5)
    error = {}
    for words in ((), ("--rerank",)):
        learn("--cpt", 300, *BITS, *words, "-f", "m", "--quiet", stdin=text)
        error[words] = fact(learn("-i", "m", "-t", stdin=test).err, "average loss")
    assert error[("--rerank",)] < error[()]


def test_same_bytes_on_any_number_of_threads_and_resumed(place, monkeypatch):
    text, test = multiclass(11, 25, 500), multiclass(12, 25, 200)
    run = ("--cpt", 25, *BITS, "--trees", 3, "--rerank", "--quiet")
    found = []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        done = learn(*run, "-p", "stdout", "-f", "m", stdin=text)
        tested = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", "--quiet", stdin=test)
        found.append((done.out, tested.out, (place / "m").read_bytes()))
    assert found[0] == found[1] == found[2]
    head, tail = text.splitlines(True)[:200], text.splitlines(True)[200:]
    learn(*run, "-f", "a", stdin="".join(head))
    learn("-i", "a", "-f", "b", "--quiet", stdin="".join(tail))
    assert Path("b").read_bytes() == found[0][2]


def test_new_label_is_outside_of_the_candidates_and_gets_in():
    text = "".join(f"{y} |w f{y} g\n" for _ in range(30) for y in (1, 2)) + "7 |w f7 g\n" * 10
    done = learn("--cpt", 0, *BITS, "--rerank", "--top_k", 3, "-p", "stdout", "--quiet", stdin=text)
    found = [pairs(line) for line in done.lines]
    assert 7 not in found[60][0]
    assert next(iter(found[69][0])) == 7
    assert all(math.isfinite(p) for one, _ in found for p in one.values())


def test_options_that_need_it_or_exclude_it_are_refused():
    for words in (
        ("--candidate_cut", 0.1), ("--rerank_rate", 0.1), ("--candidates", 3), ("--rerank", "--cpt_search", "greedy"),
        ("--rerank", "--cpt_report", "losses"),
    ):  # fmt: skip
        assert xclass("--cpt", 3, *words, stdin="1 |w a\n").status == 2, words
    for words in (("--rerank",), ("--trees", 2, "--candidates", 3)):
        assert xclass("--cpt", 3, "-b", 12, *words, stdin="1 |w a\n").status == 0, words


def test_scorers_share_slots_by_feature_and_class():
    weights = adagrad.new_weights(20, 0, 0.5)
    slots = {reranking._slot(weights, np.uint64(h * int(GOLDEN) % 2**64), y) for h in range(40) for y in range(1, 40)}
    assert len(slots) > 0.99 * 40 * 39
