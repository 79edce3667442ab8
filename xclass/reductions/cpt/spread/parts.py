"""Spread conditional probability trees: each is a unit, and the scorers together with the index are another one.

    round 1    every tree predicts and learns the batch; what it proposes goes on to the scorers
    round 2    index and scorers, with the proposals of all trees

A tree has its own table of weights and its own random numbers. All trees are searched, because `searched_trees` would
have to tell trees what the scorers have seen. The scorers of --rerank are one unit: they learn together, because the
slope of each depends on the scores of all candidates. Sizes of columns and frequencies of features are computed by
every part, from the same examples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....array_types import AnyArray, Bools, Float64s, UInt32s
from ....binary import adagrad, document_frequency, feature_scaling
from ...core.contract import BatchTask
from ...core.parts import Message, Round, Spreadable, State
from ...core.spec import Part
from .. import feature_index, label_tree, reranking
from ..binary_nodes import Predictions
from ..further_passes import FurtherPasses
from ..options import Options
from ..searched_trees import SEARCHED, SearchedTrees
from ..tree_member import Member


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


class TreesInParts(Spreadable):
    """The methods of a `ProbabilityTree` that concern its parts; the attributes are described there."""

    options: Options
    members: list[Member]
    own_trees: Sequence[int]
    owns_scorers: bool
    scorers: reranking.Scorers | None
    scorers_copy: reranking.Scorers | None
    index: feature_index.FeatureIndex | None
    scales: feature_scaling.Scales | None
    frequencies: document_frequency.Frequencies | None
    further: FurtherPasses | None
    passes: int
    passes_ended: int
    placed_text: str
    highest_placed: int
    sample: Any
    sample_scales: Any
    _new_scorers: Callable[[], reranking.Scorers]
    _begin: Callable[[BatchTask], Any]
    searched: SearchedTrees | None
    _learn_trees: Callable[[BatchTask, Any], tuple[Predictions, Bools, Any]]
    _plan: Callable[[Any, Predictions, Bools], Any]
    _count_proposed: Callable[[BatchTask, Any], None]
    _propose: Callable[[BatchTask], None]
    _prepare: Callable[[BatchTask], None]
    _rank_batch: Callable[[BatchTask, Any], reranking.Ranked]
    _finish_ranked: Callable[[BatchTask, Predictions, reranking.Ranked], None]
    _finish_trees: Callable[[BatchTask, Predictions, Any], None]
    _mean_class_lists: Callable[[Any], Any]

    @abstractmethod
    def new_output(self, n: int, k: int) -> Predictions: ...

    @abstractmethod
    def _new_index(self) -> feature_index.FeatureIndex: ...

    @property
    @abstractmethod
    def _proposals(self) -> int: ...

    def own_units(self, part: Part | None) -> tuple[Sequence[int], bool]:
        """Return the trees of a part, and whether the scorers are its own."""
        rerank = bool(self.options.rerank)
        trees = range(self.options.trees)
        if part is None or part.number is None:
            return trees, rerank and part is None
        return [t for t in trees if (t + rerank) % part.of == part.number], rerank and part.number == 0

    @property
    def units(self) -> int:
        return self.options.trees + bool(self.options.rerank)

    @property
    def one_unit(self) -> str:
        return "" if self.units > 1 else "--cpt has a single tree; with --trees T or --rerank there are more parts"

    # learning

    @property
    def rounds(self) -> list[Round]:
        return [self._learn_own_trees, *([self._rerank_own] if self.scorers is not None else [])]

    def takes_part(self, number: int, part: Part) -> bool:
        return number == 0 or part.number == 0

    def _learn_own_trees(self, task: BatchTask, received: Sequence[Any]) -> Message:
        """Learn the own trees, as the first round."""
        if self.scales is not None or self.frequencies is not None:
            self._prepare(task)
        begun = self._begin(task)
        output, _, distributions = self._learn_trees(task, begun)
        task.plan = begun
        trees = list(self.own_trees)
        own = {name: array[trees] for name, array in output._asdict().items()}
        proposals = None
        if self.scorers is not None:
            top, top_p = own.pop("top"), own.pop("top_p")
            proposals = Proposals(trees, top.astype(np.uint32), top_p, own["p"])
        return Message(proposals, TreeResults(trees, own, distributions))

    def _rerank_own(self, task: BatchTask, received: Sequence[Any]) -> Message:
        """Rerank the proposals of all trees, as the second round of the part with the scorers."""
        output = self.new_output(task.batch.n, self._proposals)
        for proposals in received:
            t = proposals.trees
            output.top[t], output.top_p[t], output.p[t] = proposals.top, proposals.top_p, proposals.p
        task.plan = self._plan(task.plan, output, np.zeros(output.p.shape, bool))
        if self.index is not None:
            self._propose(task)
        self._count_proposed(task, task.plan)
        ranked = self._rank_batch(task, task.plan)
        task.plan = None
        return Message(None, ranked)

    def combine(self, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
        output = self.new_output(task.batch.n, self._proposals)
        distributions: list[Any] = [None] * len(self.members)
        for part in results[0]:
            for name, array in part.arrays.items():
                getattr(output, name)[part.trees] = array
            for t, lists in zip(part.trees, part.distributions or [], strict=False):
                distributions[t] = lists
        if distributions[0] is not None:
            task.class_lists = self._mean_class_lists(distributions)
        if self.scorers is not None:
            self._finish_ranked(task, output, results[1][0])
        else:
            self._finish_trees(task, output, None)

    # states

    def part_state(self) -> State:
        state: dict[str, Any] = {}
        for t in self.own_trees:
            member = self.members[t]
            state |= label_tree.arrays(f"tree.{t}", member.tree)
            state |= adagrad.weights_arrays(f"weights.{t}", member.weights)
            state[f"random.{t}"] = member.random
        if self.owns_scorers and self.scorers is not None:
            state |= reranking.arrays(self.scorers)
            if self.index is not None:
                state |= self.index.arrays()
            if self.searched is not None:
                state |= self.searched.arrays()
            if self.scorers_copy is not None:
                state |= {f"copy.{name}": array for name, array in reranking.arrays(self.scorers_copy).items()}
            if self.further is not None:
                state["gain"], state["scorers_learn"] = self.further.gain, self.further.scorers_learn
        for counts in (self.scales, self.frequencies):
            if counts is not None:
                state |= counts.arrays()
        if self.further is not None:
            state["left_out_of"] = self.further.examples
        numbers = {"passes_ended": self.passes_ended}
        placed = {"placed_text": self.placed_text, "highest_placed": self.highest_placed}
        return {**{name: _plain(value) for name, value in state.items()}, **numbers, **placed}

    def restore_part(self, states: Sequence[State]) -> None:
        self.sample = self.sample_scales = None
        state: State = {}
        for other in states:
            state |= other
        for t in self.own_trees:
            member = self.members[t]
            member.tree = label_tree.restored(f"tree.{t}", state)
            member.weights = adagrad.restored_weights(f"weights.{t}", member.new_weights(), state)
            member.random[:] = state[f"random.{t}"]
        if self.scales is not None:
            self.scales = feature_scaling.from_option(self.options.normalize_features)
            assert self.scales is not None  # as before
            self.scales.restore(state)
        if self.frequencies is not None:
            old = self.frequencies
            self.frequencies = document_frequency.Frequencies(old.weighting, old.constant)
            self.frequencies.restore(state)
        self.passes_ended = state["passes_ended"]
        self.placed_text, self.highest_placed = state["placed_text"], state["highest_placed"]
        if self.passes_ended >= self.passes:
            self.further = None
        if self.further is not None:
            self.further.examples = state["left_out_of"]
        if self.owns_scorers and self.scorers is not None:
            self._restore_scorers(state)

    def _restore_scorers(self, state: State) -> None:
        """Continue from the state of scorers and index."""
        self.scorers = reranking.restored(self._new_scorers(), state)
        copy = {name[len("copy.") :]: array for name, array in state.items() if name.startswith("copy.")}
        self.scorers_copy = reranking.restored(self._new_scorers(), copy) if copy else None
        if self.index is not None:
            self.index = self._new_index()
            self.index.restore(state)
        if self.searched is not None:
            self.searched.restore(state)
        if self.further is not None and "gain" in state:
            self.further.gain, self.further.scorers_learn = state["gain"], state["scorers_learn"]

    def join(self, states: Sequence[State]) -> None:
        self.own_trees, self.owns_scorers = range(self.options.trees), bool(self.options.rerank)
        self.restore_part(states)
        if self.searched is not None:
            self.searched.state[SEARCHED] = self.options.trees  # the scorers have learned from the proposals of all
        self.owns_scorers = False  # the whole copies none at the end of a pass


def _plain(value: Any) -> AnyArray | float:
    """Return an array in memory for one in a form that is only written; other values stay."""
    return np.asarray(value) if hasattr(value, "shape") else value
