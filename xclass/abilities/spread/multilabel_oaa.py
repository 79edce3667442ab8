"""Spread one-against-all for lists of labels as that for one label; the whole counts the labels itself."""

from __future__ import annotations

from ...reductions.core.label_lists import MultilabelLearner
from .oaa import combine, pass_rounds, restore_scorers, rounds, scorers_state, units
from .parts import State

part_state = scorers_state
join = restore_part = restore_scorers

__all__ = [
    "combine", "join", "part_state", "pass_rounds", "restore_part", "restore_whole", "rounds", "units", "whole_state",
]  # fmt: skip


def whole_state(learner: MultilabelLearner) -> State:
    return {**learner.count_arrays(), **learner.facts()}


def restore_whole(learner: MultilabelLearner, state: State) -> None:
    learner.restore_counts(state, state)
