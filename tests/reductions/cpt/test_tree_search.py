"""The search for the k most probable labels, against an oracle, with and without a preference for small subtrees."""

from __future__ import annotations

import harness
import numpy as np
import pytest
from library import trained
from oracles import tree_search as oracle
from streams import multiclass

from xclass.reductions.cpt import binary_nodes, node_scores, tree_search
from xclass.reductions.cpt.searching import beam_search

CLASSES, K = 150, 5


@pytest.fixture(scope="module")
def flat():
    """Return a tree whose probabilities are spread, its settings, and examples."""
    settled = harness.configure("--cpt", CLASSES, "-b", 18)
    with trained("cpt", CLASSES, multiclass(61, CLASSES, 1500, noise=0.5), bits=18) as model:
        yield model.reduction.members[0], harness.batch_of(settled, multiclass(62, CLASSES, 40, noise=0.5))


def searches(flat, budget: int, guided: bool, cut: float):
    """Yield for each example what the kernel and the oracle return: nodes opened, labels and probabilities, and gap."""
    member, batch = flat
    tree, weights, settings = member.tree, member.weights, member.settings._replace(cut=cut)
    scratch = member.scratch(batch)
    mass = np.empty(len(tree.left))
    plain = [tree.left.tolist(), tree.label.tolist(), tree.leaves.tolist()]
    for i in range(batch.n):
        binary_nodes.all_probabilities(tree, weights, settings, batch, i, scratch, mass)
        top, p = np.zeros(K, np.int64), np.zeros(K)
        count = int(batch.start[i + 1] - batch.start[i])
        opened, gap = tree_search.find_top_k(
            tree, weights, settings, budget, guided, scratch, count, np.int64(0), top, p
        )  # fmt: skip
        found = [pair for pair in zip(top.tolist(), p.tolist(), strict=True) if pair[0] > 0]
        yield (opened, found, gap), oracle.find_top_k(*plain, mass.tolist(), K, budget, guided, cut)


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("cut", [0.0, 0.1])
@pytest.mark.parametrize("budget", [1, 8, 24, 10**6])
def test_search_opens_the_nodes_that_the_oracle_opens(flat, budget, cut, guided):
    ended = 0
    for ours, expected in searches(flat, budget, guided, cut):
        assert ours == expected
        ended += ours[2] > 0
    assert (ended > 0) is (budget < 10**6)


def test_without_a_budget_both_orders_list_the_same_labels(flat):
    plain, guided = ([found for (_, found, _), _ in searches(flat, 10**6, order, 0.1)] for order in (False, True))
    assert plain == guided


def test_with_a_budget_the_preference_for_small_subtrees_finds_more(flat):
    plain, guided = (
        sum(p for (_, found, _), _ in searches(flat, 12, order, 0.0) for _, p in found) for order in (False, True)
    )
    assert guided > 1.05 * plain


def beams(flat, budget: int, beam: int, cut: float):
    """Yield for each example what the beam search and its oracle return."""
    member, batch = flat
    tree, weights, settings = member.tree, member.weights, member.settings._replace(cut=cut)
    scratch = member.scratch(batch)._replace(beam=beam_search.new_beam(beam, batch.most_features))
    mass = np.empty(len(tree.left))
    plain = [tree.left.tolist(), tree.label.tolist(), tree.place.tolist()]
    for i in range(batch.n):
        binary_nodes.all_probabilities(tree, weights, settings, batch, i, scratch, mass)
        node_scores.forget(scratch.memo)  # so that the search scores all blocks itself
        top, p = np.zeros(K, np.int64), np.zeros(K)
        count = int(batch.start[i + 1] - batch.start[i])
        opened, gap = beam_search.find_top_k(tree, weights, settings, budget, scratch, count, top, p)
        found = [pair for pair in zip(top.tolist(), p.tolist(), strict=True) if pair[0] > 0]
        yield (opened, found, gap), oracle.beam_search(*plain, mass.tolist(), K, budget, beam, cut)


@pytest.mark.parametrize("cut", [0.0, 0.1])
@pytest.mark.parametrize(("budget", "beam"), [(10**6, 1), (10**6, 3), (10**6, 100), (1, 3), (20, 3)])
def test_beam_search_keeps_the_blocks_that_the_oracle_keeps(flat, budget, beam, cut):
    gaps = 0
    for ours, expected in beams(flat, budget, beam, cut):
        assert ours == expected
        gaps += ours[2] > 0
    assert (gaps > 0) is (beam < 100 or cut > 0)


def test_beam_that_keeps_all_blocks_finds_the_most_probable_labels(flat):
    exact = [found for (_, found, _), _ in searches(flat, 10**6, False, 0.0)]
    assert [found for (_, found, _), _ in beams(flat, 10**6, 100, 0.0)] == exact


def test_blocks_that_were_scored_before_are_not_scored_again(flat):
    member, batch = flat
    expected = [ours for ours, _ in beams(flat, 10**6, 6, 0.0)]
    settings = member.settings._replace(cut=0.0)
    small = member.scratch(batch)._replace(beam=beam_search.new_beam(6, batch.most_features))
    tree = member.tree
    blocks = {int(place) >> 3 for place in tree.place[: int(tree.size[0])]}
    assert max(blocks) < node_scores.MEMO_ROWS  # so all blocks are kept by `all_probabilities`
    mass = np.empty(len(tree.left))
    for i, ours in enumerate(expected):
        binary_nodes.all_probabilities(tree, member.weights, settings, batch, i, small, mass)
        top, p = np.zeros(K, np.int64), np.zeros(K)  # all blocks have scores already
        count = int(batch.start[i + 1] - batch.start[i])
        opened, gap = beam_search.find_top_k(tree, member.weights, settings, 10**6, small, count, top, p)
        assert (opened, [pair for pair in zip(top.tolist(), p.tolist(), strict=True) if pair[0] > 0], gap) == ours
