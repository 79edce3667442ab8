"""Explain a prediction of a recall tree by the routers on the way and by the scorers of the candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import UInt8s
from ...binary import gd
from ...data.batch import Batch
from ..core import shares
from ..core.explanation import Candidate, Reasons, Term, Turn, chosen, terms_of
from . import label_counts, routing, scoring

LIMIT = scoring.LARGEST_SCORE


class Model(NamedTuple):
    """Hold the parts of a recall tree that a prediction needs."""

    tree: routing.Tree
    counts: label_counts.Counts
    settings: routing.Settings
    pairs: UInt8s  # see `scoring.path`
    routers: gd.Table  # table of the routers


class Scorer(NamedTuple):
    """Say where the scorer of a candidate is."""

    table: gd.Table
    sub: int
    width: np.uint64  # slots of a path feature


def route(model: Model, batch: Batch, features: routing.Features) -> tuple[int, tuple[Turn, ...]]:
    """Return the node at which the only example of a batch ends, and its way.

    Parameters
    ----------
    features : buffers, written
    """
    place, x = features
    count = routing.load(batch, 0, model.routers.width, place, x)
    node, path = 0, []
    while model.tree.router[node] >= 0:
        router = int(model.tree.router[node])
        score = float(gd.score(model.routers, place, x, count, np.uint64(router), batch.initial[0]))
        terms = terms_of(shares.of_table(model.routers, place[:count], x[:count], router))
        if batch.initial[0]:
            terms += (Term(float(batch.initial[0]), name="initial prediction of the example"),)
        child = int(model.tree.left[node]) + (0 if score < 0 else 1)
        stays = routing.stops(model.counts, model.settings, node, child)
        side = "stays" if stays else "left" if score < 0 else "right"
        path.append(Turn(str(node), side, score, None, terms))
        if stays:
            break
        node = child
    return node, tuple(path)


def score_candidate(
    model: Model, scorer: Scorer, node: int, way: list[int], batch: Batch, features: routing.Features
) -> tuple[float, tuple[Term, ...]]:  # fmt: skip
    """Return the score of a candidate of a node for the only example of a batch, and its terms.

    Parameters
    ----------
    way : nodes whose path features the example has, in their order
    features : buffers, written
    """
    place, x = features
    count = routing.load(batch, 0, scorer.table.width, place, x)
    full = scoring.path(model.tree, model.settings, model.pairs, node, scorer.width, batch, 0, place, x, count)
    score = float(gd.score(scorer.table, place, x, full, np.uint64(scorer.sub), np.float32(0)))
    products = shares.of_table(scorer.table, place[:full], x[:full], scorer.sub)
    end = count + len(way)
    terms = list(terms_of(products[:count], "scorer"))
    terms += [
        Term(float(share), name=f"reached node {a}", part="path")
        for a, share in zip(way, products[count:end], strict=True)
        if share
    ]
    if end < full:
        terms.append(Term(float(products[end:].sum()), name="features crossed with the path", part="path"))
    return score, tuple(terms)


def ranked(
    model: Model, path: tuple[Turn, ...], node: int, scored: list[tuple[int, float, tuple[Term, ...]]], label: float,
    k: int,
) -> Reasons:  # fmt: skip
    """Return the explanation of a prediction.

    Parameters
    ----------
    path : the way of the example
    node : where it ended
    scored : 1-based class, score and terms of each candidate, in the order of the candidates
    label : label of the example, NaN for none
    k : number of classes to explain
    """
    classes = model.settings.classes
    recall = float(label_counts.recall(model.counts, classes, node))
    scores = np.array([score for _, score, _ in scored])
    odds = np.exp(np.clip(np.where(np.isnan(scores), 0.0, scores), -LIMIT, LIMIT))
    p = recall * odds / odds.sum() if scored else odds
    order = np.argsort(-scores, kind="stable").tolist()
    explained, others = chosen(
        (Candidate(scored[c][0], scored[c][1], float(p[c]), scored[c][2], path) for c in order), k, label
    )
    if 1 <= label <= classes and label not in {y for y, _, _ in scored}:
        explained.append(Candidate(label, None, (1.0 - recall) / (classes - len(scored))))
    formula = f"{recall:.9g} * exp(min(max(score, -{LIMIT:g}), {LIMIT:g})) / {odds.sum():.9g}" if scored else ""
    return Reasons(explained, others, len(scored), formula)
