"""Spread conditional probability trees: each is a unit, and the scorers together with the index are another one.

    round 1    every tree predicts and learns the batch; what it proposes goes on to the scorers
    round 2    index and scorers, with the proposals of all trees

A tree has its own table of weights and its own random numbers. All trees are searched, because `searched_trees` would
have to tell trees what the scorers have seen. The scorers of --rerank are one unit: they learn together, because the
slope of each depends on the scores of all candidates. Sizes of columns and frequencies of features are computed by
every part, from the same examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...array_types import AnyArray, Float64s, UInt32s
from ...binary import document_frequency, feature_scaling, tagged_words
from ...reductions.core.contract import BatchTask
from ...reductions.cpt import label_tree
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.multiclass import reranking
from ...reductions.multiclass.reduction import Multiclass
from ...reductions.multiclass.searched_trees import SEARCHED
from . import parts
from .parts import Message, Round, State


class Proposals(NamedTuple):
    """Hold what the scorers need from the trees of a part, for n examples."""

    trees: Sequence[int]
    top: UInt32s  # uint32[trees, n, k], labels, then 0
    top_p: Float64s  # float64[trees, n, k]
    p: Float64s  # float64[trees, n]


class TreeResults(NamedTuple):
    """Hold what the whole needs from the trees of a part."""

    trees: Sequence[int]
    arrays: Mapping[str, AnyArray]  # fields of `Predictions`, without proposals if there are scorers
    distributions: Any  # see `reduction.Distributions`, or None


def units(learner: ProbabilityTree) -> tuple[int, str]:
    """Return the largest number of parts: each tree is one, and the scorers are one."""
    number = learner.options.trees + bool(learner.options.rerank)
    return number, "" if number > 1 else "--cpt has a single tree; with --trees T or --rerank there are more parts"


# learning


def rounds(learner: ProbabilityTree) -> list[Round]:
    trees = partial(_learn_own_trees, learner)
    return [trees, partial(_rerank_own, learner)] if isinstance(learner, Multiclass) else [trees]


def _learn_own_trees(learner: ProbabilityTree, task: BatchTask, received: Sequence[Any]) -> Message:
    if learner.scales is not None or learner.frequencies is not None:
        learner.prepare(task)
    plan = learner.begin(task)
    learner.learn_rows(task, plan, 0, task.batch.n, len(learner.members))
    task.plan = plan
    trees = list(learner.own_trees)
    own = {name: array[trees] for name, array in plan.output._asdict().items()}
    proposals = None
    if learner.scorers is not None:
        top, top_p = own.pop("top"), own.pop("top_p")
        proposals = Proposals(trees, top.astype(np.uint32), top_p, own["p"])
    return Message(proposals, TreeResults(trees, own, plan.distributions))


def _rerank_own(learner: Multiclass, task: BatchTask, received: Sequence[Any]) -> Message:
    """Rerank the proposals of all trees, as the second round of the part with the scorers."""
    output = task.plan.output
    for proposals in received:
        t = proposals.trees
        output.top[t], output.top_p[t], output.p[t] = proposals.top, proposals.top_p, proposals.p
    learner.propose(task)
    learner.count_proposed(task, task.plan)
    ranked = learner.rank_batch(task, task.plan)
    task.plan = None
    return Message(None, ranked)


def combine(learner: ProbabilityTree, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
    output = learner.new_output(task.batch.n, learner.proposals)
    distributions: list[Any] = [None] * len(learner.members)
    for part in results[0]:
        for name, array in part.arrays.items():
            getattr(output, name)[part.trees] = array
        for t, lists in zip(part.trees, part.distributions or [], strict=False):
            distributions[t] = lists
    if distributions[0] is not None:
        task.class_lists = learner.mean_class_lists(distributions)
    if isinstance(learner, Multiclass):
        learner.finish_ranked(task, output, results[1][0])
    else:
        learner.finish_trees(task, output, None)


# states


def part_state(learner: ProbabilityTree) -> State:
    state: dict[str, Any] = {}
    for t in learner.own_trees:
        member = learner.members[t]
        state |= label_tree.arrays(f"tree.{t}", member.tree)
        state |= tagged_words.arrays(f"weights.{t}", member.weights.words)
        state[f"random.{t}"] = member.random
    if learner.owns_scorers and isinstance(learner, Multiclass):
        state |= reranking.arrays(learner.scorers)
        if learner.index is not None:
            state |= learner.index.arrays()
        if learner.searched is not None:
            state |= learner.searched.arrays()
        if learner.scorers_copy is not None:
            state |= {f"copy.{name}": array for name, array in reranking.arrays(learner.scorers_copy).items()}
        if learner.further is not None:
            state["gain"], state["scorers_learn"] = learner.further.gain, learner.further.scorers_learn
    for counts in (learner.scales, learner.frequencies):
        if counts is not None:
            state |= counts.arrays()
    if learner.further is not None:
        state["left_out_of"] = learner.further.examples
    numbers = {"passes_ended": learner.passes_ended}
    placed = {"placed_text": learner.placed_text, "highest_placed": learner.highest_placed}
    return {**{name: _plain(value) for name, value in state.items()}, **numbers, **placed}


def restore_part(learner: ProbabilityTree, states: Sequence[State]) -> None:
    learner.sample = learner.sample_scales = None
    state: State = {}
    for other in states:
        state |= other
    for t in learner.own_trees:
        member = learner.members[t]
        member.tree = label_tree.restored(f"tree.{t}", state)
        weights = member.new_weights()
        member.weights = weights._replace(words=tagged_words.restored(f"weights.{t}", weights.words, state))
        member.random[:] = state[f"random.{t}"]
    if learner.scales is not None:
        learner.scales = feature_scaling.from_option(learner.options.normalize_features)
        assert learner.scales is not None  # as before
        learner.scales.restore(state)
    if learner.frequencies is not None:
        old = learner.frequencies
        learner.frequencies = document_frequency.Frequencies(old.weighting, old.constant)
        learner.frequencies.restore(state)
    learner.passes_ended = state["passes_ended"]
    learner.placed_text, learner.highest_placed = state["placed_text"], state["highest_placed"]
    if learner.passes_ended >= learner.passes:
        learner.further = None
    if learner.further is not None:
        learner.further.examples = state["left_out_of"]
    if learner.owns_scorers and isinstance(learner, Multiclass):
        _restore_scorers(learner, state)


def _restore_scorers(learner: Multiclass, state: State) -> None:
    learner.scorers = reranking.restored(learner.new_scorers(), state)
    copy = {name[len("copy.") :]: array for name, array in state.items() if name.startswith("copy.")}
    learner.scorers_copy = reranking.restored(learner.new_scorers(), copy) if copy else None
    if learner.index is not None:
        learner.index = learner.new_index()
        learner.index.restore(state)
    if learner.searched is not None:
        learner.searched.restore(state)
    if learner.further is not None and "gain" in state:
        learner.further.gain, learner.further.scorers_learn = state["gain"], state["scorers_learn"]


def join(learner: ProbabilityTree, states: Sequence[State]) -> None:
    learner.own_trees, learner.owns_scorers = range(learner.options.trees), bool(learner.options.rerank)
    restore_part(learner, states)
    if learner.searched is not None:
        learner.searched.state[SEARCHED] = learner.options.trees  # the scorers have learned from the proposals of all
    learner.owns_scorers = False  # the whole copies none at the end of a pass


def _plain(value: Any) -> AnyArray | float:
    """Return an array in memory for one in a form that is only written; other values stay."""
    return np.asarray(value) if hasattr(value, "shape") else value


pass_rounds = parts.end_pass
whole_state, restore_whole = parts.whole_state, parts.restore_whole
