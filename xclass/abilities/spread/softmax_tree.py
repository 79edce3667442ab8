"""Spread a softmax tree: each part learns some nodes of a level at the end of the data, which all parts store."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...binary import feature_scaling
from ...reductions.core.contract import BatchTask
from ...reductions.softmax_tree.options import MOST_DEPTH
from ...reductions.softmax_tree.reduction import SoftmaxTree
from . import parts
from .parts import Message, Round, State


def units(learner: SoftmaxTree) -> tuple[int, str]:
    """Return the largest number of nodes of a level, as far as it is known before the data are."""
    depth = learner.options.depth
    return int(1 << (MOST_DEPTH if depth is None else depth)), ""


def rounds(learner: SoftmaxTree) -> list[Round]:
    return [partial(_store_examples, learner)]


def _store_examples(learner: SoftmaxTree, task: BatchTask, received: Sequence[Any]) -> Message:
    """Store the examples of a task; the first part predicts them before."""
    results = learner.walk(task) if learner.part.number == 0 else None
    learner.collect(task)
    return Message(None, (results, learner.eps))


def combine(learner: SoftmaxTree, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
    walked, learner.eps = results[0][0]
    learner.set_results(task, walked)


def part_state(learner: SoftmaxTree) -> State:
    """Return what a part has learned, which is the same in all."""
    arrays = {name: np.asarray(array) for name, array in learner.arrays().items()}
    return {**arrays, **learner.facts(), "training_lines": learner.training_lines}


def restore_part(learner: SoftmaxTree, states: Sequence[State]) -> None:
    state = dict(states[0])
    learner.training_lines = state.pop("training_lines")
    if learner.scales is not None:
        learner.scales = feature_scaling.from_option(learner.options.normalize_features, math.inf)
    learner.restore(state, {"smooth": state.pop("smooth")})


whole_state, restore_whole = parts.whole_state, parts.restore_whole


def pass_rounds(learner: SoftmaxTree) -> Generator[Any, list[Any], None]:
    """End a pass in a part; a round is a level of an iteration."""
    return learner.pass_rounds()


join = restore_part
