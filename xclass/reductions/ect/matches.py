"""The matches of an error-correcting tournament at play: an example asks them for an answer, and teaches them.

Source    Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009; see reductions/ect for what is
          learned, and where VW, which `Bracket.vw` follows, differs.
Names     place, entry as in `tournament` | K classes, E errors, M matches before the final.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int32s, Int64s
from ...binary import gd, gd_sequential
from ...data.batch import Batch
from ...kernels import fast_math, intrinsics
from ...kernels.constants import HALF, ONE, ZERO
from ...kernels.jit import jit


class Bracket(NamedTuple):
    """The matches, as kernels need them."""

    sides: Int32s  # int32[M, 2], see bracket.Draw
    entry: Int32s  # int32[K + 2 M]
    last: Int32s  # int32[E + 1]
    sub: Int32s  # int32[M + E], sub-problem of every match, those of the final behind
    classes: int
    vw: bool
    link: bool  # scores go through the logistic function before they are compared


class Answers(NamedTuple):
    """What n examples are answered, and the matches that were asked about each."""

    prediction: Float64s  # float64[n], as written in the file
    counted: Float32s  # float32[n], the weights that examples count with, which VW changes
    asked: Int64s  # int64[...], matches asked about example i: asked[first[i]:first[i + 1]]
    score: Float32s  # float32[...], their scores
    first: Int64s  # int64[n + 1]; int64[0] where matches are not kept, and there is room for one example's


# -- kernels


@jit
def _clipped(bracket: Bracket, table: gd.Table, s: np.float32) -> np.float32:
    """A score as it is compared with 0: above, the right side wins."""
    s = gd.clip(s, table.range)
    if bracket.link:
        s = ONE / (ONE + fast_math.expf(-s)) - HALF
    return s


@jit
def answer(
    bracket: Bracket, table: gd.Table, row: gd_sequential.Row, count: int, asked: Int64s, score: Float32s, taken: int
) -> tuple[np.int64, int]:
    """The label that wins; matches asked and their scores go to `asked` and `score` from `taken` on, up to what is
    returned too.
    """
    total = bracket.sides.shape[0]
    if total == 0:
        return np.int64(0), taken
    errors = bracket.last.shape[0] - 1
    won = 0  # the tournament whose winner wins the final
    bit = 1
    while 2 * bit <= errors:
        bit *= 2
    while bit > 0:
        if won + bit <= errors:
            match = total + won + bit - 1
            s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
            asked[taken] = match
            score[taken] = s
            taken += 1
            if s > ZERO:
                won += bit
        bit >>= 1
    at = bracket.classes + 2 * np.int64(bracket.last[won])
    while at >= bracket.classes:
        match = (at - bracket.classes) >> 1
        s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
        asked[taken] = match
        score[taken] = s
        taken += 1
        right = bool(s > ZERO)
        if (at - bracket.classes) & 1 and not bracket.vw:
            right = not right  # the loser is wanted
        at = np.int64(bracket.sides[match, 1 if right else 0])
    return at, taken


@jit
def _update(
    bracket: Bracket, table: gd.Table, rule: gd.Rule, row: gd_sequential.Row, count: int, quick: bool, match: Int,
    right: bool, weight: np.float32, clock: np.float64,
) -> np.float32:  # fmt: skip
    """Teach a match that the label's side is the right or the left one; return what it says afterwards."""
    y = ONE if right else -ONE
    s = gd_sequential.update(row, table, rule, count, quick, np.uint64(bracket.sub[match]), y, weight, clock)
    return _clipped(bracket, table, s)


@jit
def _learn(
    bracket: Bracket, table: gd.Table, rule: gd.Rule, row: gd_sequential.Row, count: int, quick: bool, label: Int,
    weight: np.float32, clock: np.float64, won: Bools,
) -> None:  # fmt: skip
    """Follow a label through its matches and the final; `won` is scratch, a bool for every tournament."""
    total = bracket.sides.shape[0]
    errors = bracket.last.shape[0] - 1
    won[:] = False
    t = 0  # the tournament not yet over
    any_won = False
    entry = np.int64(bracket.entry[label])
    while entry >= 0:
        match = entry >> 1
        right = entry & 1 == 1
        wins = (_update(bracket, table, rule, row, count, quick, match, right, weight, clock) > ZERO) == right
        while bracket.last[t] < match:
            t += 1
        if wins and bracket.last[t] == match:
            won[t] = True
            any_won = True
        entry = np.int64(bracket.entry[bracket.classes + 2 * match + (0 if wins else 1)])
    if not any_won:
        return
    bit = 1
    while bit <= errors:  # the final from its first round; won[j] is that of tournaments j..j + bit - 1
        for j in range(bit, errors + 1, 2 * bit):
            left, right = won[j - bit], won[j]
            if left != right:
                charge = np.float32(min(bit, errors + 1 - j) if right else bit)
                s = _update(bracket, table, rule, row, count, quick, total + j - 1, right, weight * charge, clock)
                won[j - bit] = (s > ZERO) == right
        bit *= 2


@jit
def _learn_as_vw(
    bracket: Bracket, table: gd.Table, rule: gd.Rule, row: gd_sequential.Row, count: int, quick: bool, label: Int,
    weight: np.float32, clock: np.float64, won: Bools,
) -> np.float32:  # fmt: skip
    """The same as VW has it; returns the weight the example is counted with from then on."""
    total = bracket.sides.shape[0]
    errors = bracket.last.shape[0] - 1
    noted = 0  # of `won`: the last matches, and the match that threw the label out
    t = 0
    entry = np.int64(bracket.entry[label])
    right = entry & 1 == 1
    while entry >= 0:
        match = entry >> 1
        s = _update(bracket, table, rule, row, count, quick, match, right, weight, clock)
        wins = s > ZERO if right else s < ZERO
        entry = np.int64(bracket.entry[bracket.classes + 2 * match + (0 if wins else 1)])
        while bracket.last[t] < match:
            t += 1
        if bracket.last[t] == match:
            won[noted] = wins
            noted += 1
        elif entry < 0:
            won[noted] = False
            noted += 1
        else:
            right = entry & 1 == 1
    own = weight
    bit = 1
    while bit <= errors:
        j = 0
        while j < noted // 2:
            left, right = won[2 * j], won[2 * j + 1]
            won[j] = left
            if left != right:
                clock -= np.float64(own)
                own = ONE
                while np.float32(2 * bit) * own <= np.float32(errors):
                    own *= np.float32(2)
                clock += np.float64(own)
                match = total + (2 * j + 1) * bit - 1
                if rule.widen:
                    gd.widen(table.range, ONE if right else -ONE)
                s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
                _update(bracket, table, rule, row, count, quick, match, right, own, clock)
                won[j] = (s > ZERO) == right
            if noted % 2 == 1:
                won[noted // 2] = won[noted - 1]
            noted = (noted + 1) // 2
            j += 1
        bit *= 2
    return own


@jit
def _fetch(bracket: Bracket, table: gd.Table, batch: Batch, i: int, label: Int) -> None:
    """Ask for the weights example i will need if its label wins all along."""
    block = np.uint64(1 << 62)
    entry = np.int64(bracket.entry[label])
    while entry >= 0:
        sub = np.uint64(bracket.sub[entry >> 1])
        if sub >> np.uint64(2) != block:
            block = sub >> np.uint64(2)
            for f in range(batch.start[i], batch.start[i + 1]):
                slot = (np.uint64(batch.index[f]) * table.width + sub) & table.mask
                intrinsics.prefetch(table.flat, np.int64(slot << np.uint64(2)))
        entry = np.int64(bracket.entry[bracket.classes + (entry >> 1 << 1)])


@jit
def play(
    bracket: Bracket, table: gd.Table, rule: gd.Rule, batch: Batch, label: Int64s, clock: Float64s, drift: Float64s,
    answers: Answers, row: gd_sequential.Row, won: Bools,
) -> None:  # fmt: skip
    """Answer every example of a batch, then learn from it where `label` (0-based) is not -1."""
    prediction, counted, asked, score, first = answers
    kept = first.shape[0] > 0
    at = 0
    for i in range(batch.label.shape[0]):
        if i + 1 < label.shape[0] and label[i + 1] >= 0:
            _fetch(bracket, table, batch, i + 1, label[i + 1])
        count, quick = gd_sequential.load(row, table, rule, batch, i)
        best, taken = answer(bracket, table, row, count, asked, score, at)
        prediction[i] = best + 1
        if kept:
            at = taken
            first[i + 1] = at
        if label[i] < 0 or bracket.sides.shape[0] == 0:
            continue
        weight = batch.weight[i]
        if bracket.vw:
            now = clock[i] + drift[0]
            counted[i] = _learn_as_vw(bracket, table, rule, row, count, quick, label[i], weight, now, won)
            drift[0] += np.float64(counted[i]) - np.float64(weight)
        else:
            _learn(bracket, table, rule, row, count, quick, label[i], weight, clock[i], won)


@jit
def trail(bracket: Bracket, table: gd.Table, row: gd_sequential.Row, count: int, label: Int, asked: Int64s) -> int:
    """The matches of the tournaments a label would go through as scores are now, to `asked`; return how many."""
    taken = 0
    entry = np.int64(bracket.entry[label])
    while entry >= 0:
        match = entry >> 1
        s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
        wins = (s > ZERO) == (entry & 1 == 1)
        asked[taken] = match
        taken += 1
        entry = np.int64(bracket.entry[bracket.classes + 2 * match + (0 if wins else 1)])
    return taken
