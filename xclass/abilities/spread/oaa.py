"""Spread one-against-all: each part has a block of neighbouring classes, and learns them as one process does.

The tables of the parts have the rows of the whole one, and in each row the weights of their own classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float32s, Int64s, UInt8s
from ...binary import gd
from ...model import stored_arrays
from ...reductions.core.base import split_range
from ...reductions.core.contract import BatchTask
from ...reductions.oaa.reduction import OneAgainstAll
from ...reductions.oaa.scorers import Block, ClassScorers
from . import parts
from .parts import Message, Round, State

TABLE = "weights"


class Best(NamedTuple):
    """Hold what a part finds out about a batch of n examples."""

    best: Int64s  # int64[n], the best of its classes, counted from its first one
    score: Float32s  # float32[n], the score of this class
    scores: Float32s  # float32[n, classes], or float32[0, classes] if they are not wanted
    skipped: UInt8s  # uint8[n], see `finite.StepGuard`


def units(learner: ClassScorers) -> tuple[int, str]:
    """Return the largest number of parts: each class is one."""
    if learner.indivisible:
        return 1, "with --l1, --l2 or --label_range seen, what one class learns changes the others"
    return learner.classes, ""


def rounds(learner: ClassScorers) -> list[Round]:
    return [partial(_learn_own, learner)]


def _learn_own(learner: ClassScorers, task: BatchTask, received: Sequence[Any]) -> Message:
    best, best_score, scores = learner.learn_classes(task, learner.labels_of(task))
    return Message(None, Best(best[0], best_score[0], scores, task.skipped))


def combine(learner: ClassScorers, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
    (bests,) = results
    for best in bests:
        np.maximum(task.skipped, best.skipped, out=task.skipped)
    learner.report_best(task, learner.labels_of(task), *_joined(bests, learner.classes))


def part_state(learner: OneAgainstAll) -> State:
    facts = {"indexing": learner.indexing, "next": int(learner.next_negative)}
    return {**scorers_state(learner), "order": learner.order, "random": learner.random, **facts}


def scorers_state(learner: ClassScorers) -> State:
    return {**_state(learner.table, int(learner.rows), learner.own), "rate": float(learner.rule.rate)}


def restore_scorers(learner: ClassScorers, states: Sequence[State]) -> None:
    _fill(learner.table, int(learner.rows), learner.own, states)
    learner.rule = learner.rule._replace(rate=np.float32(states[0]["rate"]))


def restore_part(learner: OneAgainstAll, states: Sequence[State]) -> None:
    restore_scorers(learner, states)
    shared = states[0]
    learner.order[:], learner.random[:] = shared["order"], shared["random"]
    learner.indexing, learner.next_negative = shared["indexing"], shared["next"]


join = restore_part
pass_rounds = parts.end_pass
whole_state, restore_whole = parts.whole_state, parts.restore_whole


def _joined(bests: Sequence[Best], classes: int) -> tuple[Int64s, Float32s, Float32s]:
    """Return the best class of each part, int64[parts, n], its score, float32[parts, n], and all scores."""
    first = [begin for begin, _ in split_range(classes, len(bests))]
    best = np.stack([part.best + begin for part, begin in zip(bests, first, strict=True)])
    return best, np.stack([part.score for part in bests]), np.concatenate([part.scores for part in bests], axis=1)


def _columns(table: gd.Table, rows: int, own: Block, block: Block) -> dict[str, Float32s]:
    """Return w, G and N of some of the own classes of a table, as views: float32[rows, classes] each."""
    width, begin, end = int(table.width), block[0] - own[0], block[1] - own[0]
    return {name: plane[: rows * width].reshape(rows, width)[:, begin:end] for name, plane in gd.columns(table).items()}


def _state(table: gd.Table, rows: int, own: Block) -> State:
    """Return the arrays of the own classes of a table, without slots that are all 0."""
    columns = {name: np.ascontiguousarray(c).reshape(-1) for name, c in _columns(table, rows, own, own).items()}
    packed = {name: np.asarray(array) for name, array in stored_arrays.pack_table(TABLE, columns).items()}
    return {**packed, "first": own[0], "sums": table.sums, "range": table.range}


def _fill(table: gd.Table, rows: int, own: Block, states: Sequence[State]) -> None:
    """Fill the own classes of a table from what `state` has returned for the blocks of all classes."""
    for state in states:
        first, width = state["first"], len(state["sums"])
        common = max(own[0], first), min(own[1], first + width)
        if common[0] >= common[1]:
            continue
        columns = {name: np.zeros(rows * width, np.float32) for name in gd.columns(table)}
        stored_arrays.unpack_table(TABLE, state, columns)
        for name, target in _columns(table, rows, own, common).items():
            target[:] = columns[name].reshape(rows, width)[:, common[0] - first : common[1] - first]
        table.sums[common[0] - own[0] : common[1] - own[0]] = state["sums"][common[0] - first : common[1] - first]
    table.range[:] = states[0]["range"]
