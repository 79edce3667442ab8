"""Describe an error-correcting tournament, and explain its predictions by the matches that decided them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...binary import gd, gd_sequential, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Turn
from ...reductions.ect import bracket, matches
from ...reductions.ect.bracket import Draw
from ...reductions.ect.reduction import Tournament
from . import reasons, views
from .reasons import clipped, shares_of
from .views import NodeView, TableView, TreeNode, WeightLookup


def banner(learner: Tournament) -> list[str]:
    lost = f"; a class may lose {learner.errors}" if learner.errors else ""
    tournament = f"Tournament: {len(learner.bracket.sides):,} matches, {in_words.size(learner.memory[1])}{lost}"
    return [tournament, in_words.table(learner.learner_options.bits, gd.SLOT_BYTES), *learner.crowding]


def vw_banner(learner: Tournament) -> list[str]:
    return [
        f"memory: {learner.memory[0] / 2**20:.0f} MB of weights, {learner.memory[1] / 2**20:.0f} MB for "
        f"{len(learner.bracket.sides)} matches",
        *learner.crowding,
    ]


def figures(learner: Tournament) -> dict[str, float]:
    """Return the figures of the tree; with --error above 0 the matches form no tree."""
    if learner.errors:
        return {}
    return views.figures(2 * learner.classes - 1, bracket.depths(learner.draw, learner.classes))


def outline(learner: Tournament, levels: int) -> Iterator[TreeNode]:
    """Yield the last match and the matches below it; nodes are named by their places."""
    root = learner.classes + 2 * len(learner.draw.sides) - 2 if learner.classes > 1 else 0
    return views.preorder(root, levels, partial(_node_view, learner.draw, learner.classes))


def _node_view(draw: Draw, classes: int, place: int) -> NodeView:
    """Return the printable view of a place in a single tournament: a label, or a match and its two sides."""
    if place < classes:
        return NodeView(labels=((place + 1, None),))
    match = (place - classes) >> 1
    return NodeView(tuple(draw.sides[match].tolist()), facts={"match": match + 1})


def table_view(learner: Tournament) -> TableView:
    return TableView(partial(_lookups, learner), rows_are_exclusive=learner.vw_layout)


def _lookups(learner: Tournament, batch: Batch) -> list[WeightLookup]:
    """Return the matches of the prediction, then those of the label, the final included."""
    bracket, table = learner.bracket, learner.tables[0]
    row = gd_sequential.new_row(batch)
    count, _ = gd_sequential.load(row, table, learner.rule, batch, 0)
    buffer, score = np.empty(learner.most_matches, np.int64), np.empty(learner.most_matches, np.float32)
    _, end = matches.predict(bracket, table, row, count, buffer, score, 0)
    scored = buffer[:end].tolist()
    y = batch.label[0] - 1
    if 0 <= y < learner.classes and len(bracket.sides) and not learner.tests_as_vw:
        end = matches.label_matches(bracket, table, row, count, int(y), buffer)
        final = range(len(bracket.sides), len(bracket.sub))
        scored += [match for match in (*buffer[:end].tolist(), *final) if match not in scored]
    return [WeightLookup(0, int(bracket.sub[match]), match) for match in scored]


def explain(learner: Tournament, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; the score of a match is that before the link."""
    bracket, table, row = learner.bracket, learner.tables[0], gd_sequential.new_row(batch)
    count, _ = gd_sequential.load(row, table, learner.rule, batch, 0)
    decided, scores = np.empty(learner.most_matches, np.int64), np.empty(learner.most_matches, np.float32)
    best, end = matches.predict(bracket, table, row, count, decided, scores, 0)
    place, x = batch.index.astype(np.uint64) * table.width, batch.value
    path = []
    for match in decided[:end].tolist():
        sub = np.uint64(bracket.sub[match])
        unclipped = gd.score(table, place, x, len(place), sub, np.float32(0))
        score, own = clipped(unclipped, table.range, shares_of(reasons.of_table(table, place, x, int(sub))))
        path.append(Turn(f"match {match + 1}", "right" if score > 0 else "left", score, None, own))
    return Reasons([ExplainedClass(int(best) + 1, path=tuple(path))], [], 1)
