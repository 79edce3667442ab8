"""Explain a prediction of a recall tree by the routers on the way and by the scorers of the candidates."""

from __future__ import annotations

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ...reductions.recall_tree import label_counts, routing, scoring
from ...reductions.recall_tree.reduction import RecallTree
from ...reductions.recall_tree.scoring import SHARDS
from ..inspect.recall_tree import path_nodes
from . import shares
from .reasons import Candidate, Reasons, Term, Turn, chosen, terms_of

LIMIT = scoring.LARGEST_SCORE


def explain(learner: RecallTree, batch: Batch, k: int) -> Reasons:
    features = learner.new_features(batch)
    node, path = _route(learner, batch, features)
    scored = []
    for c in learner.counts.top_label[node, : learner.counts.top_size[node]].tolist():
        scored.append((c + 1, *_score_candidate(learner, c, node, batch, features)))
    return _ranked(learner, path, node, scored, float(batch.label[0]), k)


def _route(learner: RecallTree, batch: Batch, features: routing.Features) -> tuple[int, tuple[Turn, ...]]:
    """Return the node at which the only example of a batch ends, and its way.

    Parameters
    ----------
    features : buffers, written
    """
    routers, tree = learner.tables[0], learner.tree
    place, x = features
    count = routing.load(batch, 0, routers.width, place, x)
    node, path = 0, []
    while tree.router[node] >= 0:
        router = int(tree.router[node])
        score = float(gd.score(routers, place, x, count, np.uint64(router), batch.initial[0]))
        terms = terms_of(shares.of_table(routers, place[:count], x[:count], router))
        if batch.initial[0]:
            terms += (Term(float(batch.initial[0]), name="initial prediction of the example"),)
        child = int(tree.left[node]) + (0 if score < 0 else 1)
        stays = routing.stops(learner.counts, learner.settings, node, child)
        side = "stays" if stays else "left" if score < 0 else "right"
        path.append(Turn(str(node), side, score, None, terms))
        if stays:
            break
        node = child
    return node, tuple(path)


def _score_candidate(
    learner: RecallTree, c: int, node: int, batch: Batch, features: routing.Features
) -> tuple[float, tuple[Term, ...]]:
    """Return the score of candidate c of a node for the only example of a batch, and its terms.

    Parameters
    ----------
    features : buffers, written
    """
    table, sub = learner.tables[0], learner.routers + c
    if not learner.sequential:
        table, sub = learner.tables[1 + c % SHARDS], c // SHARDS
    width = np.uint64(1) if learner.sequential else table.width
    place, x = features
    count = routing.load(batch, 0, table.width, place, x)
    full = scoring.path(learner.tree, learner.settings, learner.pairs, node, width, batch, 0, place, x, count)
    score = float(gd.score(table, place, x, full, np.uint64(sub), np.float32(0)))
    products = shares.of_table(table, place[:full], x[:full], sub)
    way = path_nodes(learner, node)
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


def _ranked(
    learner: RecallTree, path: tuple[Turn, ...], node: int, scored: list[tuple[int, float, tuple[Term, ...]]],
    label: float, k: int,
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
    classes = learner.classes
    recall = float(label_counts.recall(learner.counts, classes, node))
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
