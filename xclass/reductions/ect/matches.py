"""Predict and learn a batch with an error-correcting tournament: decide its matches and update their regressors.

Source    Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009.
Cost      O(s) per match, for s features; a prediction or an update takes about log2 K + E log2 log2 K matches.
Names     place and entry as in `bracket` | K classes, E errors, M matches before the final.
Idea      Each match is a regressor: the right side wins if its score is above 0. A prediction goes from the final back
          to a label; learning goes from the label forward to the final.
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
    """Hold the matches in the form that kernels need."""

    sides: Int32s  # int32[M, 2], see `bracket.Draw`
    entry: Int32s  # int32[K + 2 M], the same
    last: Int32s  # int32[E + 1], the same
    sub: Int32s  # int32[M + E], subproblem of each match; the final comes last
    classes: int  # K
    as_vw: bool  # follow VW
    link: bool  # scores go through the logistic function before they are compared


class EctPredictions(NamedTuple):
    """Hold the predictions for n examples and the matches scored for each of them."""

    prediction: Float64s  # float64[n], classes as written in the file
    counted: Float32s  # float32[n], weights with which examples are counted in the statistics; VW changes them
    scored: Int64s  # int64[...], matches of example i: scored[first[i]:first[i + 1]]
    score: Float32s  # float32[...], their scores
    first: Int64s  # int64[n + 1]; int64[0] if only the current example's matches are kept


# -- kernels


@jit
def _clipped(bracket: Bracket, table: gd.WeightTable, s: np.float32) -> np.float32:
    """Return a score clipped and linked as options say; the right side wins if the result is above 0."""
    s = gd.clip(s, table.range)
    if bracket.link:
        s = ONE / (ONE + fast_math.expf(-s)) - HALF
    return s


@jit
def predict(
    bracket: Bracket,
    table: gd.WeightTable,
    row: gd_sequential.ExampleScratch,
    count: int,
    scored: Int64s,
    score: Float32s,
    end: int,
) -> tuple[np.int64, int]:
    """Return the 0-based label that wins, and write the matches that decided it.

    `row` is loaded by `gd_sequential.load`. The matches and their scores are written to `scored` and `score`
    (int64[...], float32[...]) from position `end` on; the position after the last one is returned.
    """
    total = bracket.sides.shape[0]
    if total == 0:
        return np.int64(0), end
    errors = bracket.last.shape[0] - 1
    won = 0  # the tournament whose winner wins the final
    bit = 1
    while 2 * bit <= errors:
        bit *= 2
    while bit > 0:
        if won + bit <= errors:
            match = total + won + bit - 1
            s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
            scored[end] = match
            score[end] = s
            end += 1
            if s > ZERO:
                won += bit
        bit >>= 1
    place = bracket.classes + 2 * np.int64(bracket.last[won])
    while place >= bracket.classes:
        match = (place - bracket.classes) >> 1
        s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
        scored[end] = match
        score[end] = s
        end += 1
        right = bool(s > ZERO)
        if (place - bracket.classes) & 1 and not bracket.as_vw:
            right = not right  # this place is the match's loser
        place = np.int64(bracket.sides[match, 1 if right else 0])
    return place, end


@jit
def _update(
    bracket: Bracket, table: gd.WeightTable, rule: gd.UpdateRule, row: gd_sequential.ExampleScratch, count: int,
    quick: bool, match: Int, right: bool, weight: np.float32, clock: np.float64,
) -> np.float32:  # fmt: skip
    """Update the regressor of a match towards the label's side; return its new score, see `_clipped`."""
    y = ONE if right else -ONE
    s = gd_sequential.update(row, table, rule, count, quick, np.uint64(bracket.sub[match]), y, weight, clock)
    return _clipped(bracket, table, s)


@jit
def _learn(
    bracket: Bracket, table: gd.WeightTable, rule: gd.UpdateRule, row: gd_sequential.ExampleScratch, count: int,
    quick: bool, label: Int, weight: np.float32, clock: np.float64, won: Bools,
) -> None:  # fmt: skip
    """Update the matches of a 0-based label, from its first match to the final.

    `row`, `count` and `quick` are as `gd_sequential.load` returned them, and `clock` is the weight of the labelled
    examples so far. `won` is bool[E + 2], scratch: which tournaments the label won.
    """
    total = bracket.sides.shape[0]
    errors = bracket.last.shape[0] - 1
    won[:] = False
    t = 0  # tournament of the current match
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
    while bit <= errors:  # rounds of the final; won[j]: the label won one of tournaments j..j + bit - 1
        for j in range(bit, errors + 1, 2 * bit):
            left, right = won[j - bit], won[j]
            if left != right:
                charge = np.float32(min(bit, errors + 1 - j) if right else bit)
                s = _update(bracket, table, rule, row, count, quick, total + j - 1, right, weight * charge, clock)
                won[j - bit] = (s > ZERO) == right
        bit *= 2


@jit
def _learn_as_vw(
    bracket: Bracket, table: gd.WeightTable, rule: gd.UpdateRule, row: gd_sequential.ExampleScratch, count: int,
    quick: bool, label: Int, weight: np.float32, clock: np.float64, won: Bools,
) -> np.float32:  # fmt: skip
    """Update the matches of a label as VW does; return the weight with which the example is counted from then on."""
    total = bracket.sides.shape[0]
    errors = bracket.last.shape[0] - 1
    used = 0  # entries of `won`: last matches of tournaments, and the match that eliminated the label
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
            won[used] = wins
            used += 1
        elif entry < 0:
            won[used] = False
            used += 1
        else:
            right = entry & 1 == 1
    final_weight = weight
    bit = 1
    while bit <= errors:
        j = 0
        while j < used // 2:
            left, right = won[2 * j], won[2 * j + 1]
            won[j] = left
            if left != right:
                clock -= np.float64(final_weight)
                final_weight = ONE
                while np.float32(2 * bit) * final_weight <= np.float32(errors):
                    final_weight *= np.float32(2)
                clock += np.float64(final_weight)
                match = total + (2 * j + 1) * bit - 1
                if rule.widen:
                    gd.widen(table.range, ONE if right else -ONE)
                s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
                _update(bracket, table, rule, row, count, quick, match, right, final_weight, clock)
                won[j] = (s > ZERO) == right
            if used % 2 == 1:
                won[used // 2] = won[used - 1]
            used = (used + 1) // 2
            j += 1
        bit *= 2
    return final_weight


@jit
def _prefetch_matches(bracket: Bracket, table: gd.WeightTable, batch: Batch, i: int, label: Int) -> None:
    """Prefetch the weights that example i needs if its label wins every match."""
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
def process_batch(
    bracket: Bracket, table: gd.WeightTable, rule: gd.UpdateRule, batch: Batch, label: Int64s, clock: Float64s,
    drift: Float64s, results: EctPredictions, row: gd_sequential.ExampleScratch, won: Bools,
) -> None:  # fmt: skip
    """Predict every example of a batch, then learn from it where its label is known.

    Parameters
    ----------
    label : int64[n], 0-based, -1 for examples that are not learned from
    clock : float64[n], weight of the labelled examples up to and including this one
    drift : float64[1], written: sum by which VW's changes of weights have advanced the clock beyond `clock`
    won : bool[E + 2], scratch
    """
    prediction, counted, scored, score, first = results
    keeps_matches = first.shape[0] > 0
    begin = 0
    for i in range(batch.label.shape[0]):
        if i + 1 < label.shape[0] and label[i + 1] >= 0:
            _prefetch_matches(bracket, table, batch, i + 1, label[i + 1])
        count, quick = gd_sequential.load(row, table, rule, batch, i)
        best, end = predict(bracket, table, row, count, scored, score, begin)
        prediction[i] = best + 1
        if keeps_matches:
            begin = end
            first[i + 1] = begin
        if label[i] < 0 or bracket.sides.shape[0] == 0:
            continue
        weight = batch.weight[i]
        if bracket.as_vw:
            now = clock[i] + drift[0]
            counted[i] = _learn_as_vw(bracket, table, rule, row, count, quick, label[i], weight, now, won)
            drift[0] += np.float64(counted[i]) - np.float64(weight)
        else:
            _learn(bracket, table, rule, row, count, quick, label[i], weight, clock[i], won)


@jit
def label_matches(
    bracket: Bracket, table: gd.WeightTable, row: gd_sequential.ExampleScratch, count: int, label: Int, scored: Int64s
) -> int:
    """Write the matches that a label meets under the current scores to `scored` (int64[...]); return their number."""
    end = 0
    entry = np.int64(bracket.entry[label])
    while entry >= 0:
        match = entry >> 1
        s = _clipped(bracket, table, gd_sequential.score(row, table, count, np.uint64(bracket.sub[match])))
        wins = (s > ZERO) == (entry & 1 == 1)
        scored[end] = match
        end += 1
        entry = np.int64(bracket.entry[bracket.classes + 2 * match + (0 if wins else 1)])
    return end
