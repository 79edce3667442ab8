"""Explain a prediction of a recall tree by the routers on the way and by the scorers of the candidates."""

from __future__ import annotations

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.recall_tree import label_counts, routing, scoring
from ...reductions.recall_tree.reduction import RecallTree
from ...reductions.recall_tree.scoring import SHARDS
from ..describe.recall_tree import path_nodes
from . import reasons
from .reasons import chosen, initial_share, shares_of

LIMIT = scoring.LARGEST_SCORE


def explain(learner: RecallTree, batch: Batch, k: int) -> Reasons:
    features = learner.new_features(batch)
    node, path = _route(learner, batch, features)
    scored = []
    for c in learner.counts.top_label[node, : learner.counts.top_size[node]].tolist():
        scored.append((c + 1, *_score_candidate(learner, c, node, batch, features)))
    return _ranked(learner, path, node, scored, float(batch.label[0]), k)


def _route(learner: RecallTree, batch: Batch, features: routing.Features) -> tuple[int, tuple[Turn, ...]]:
    """Return the node at which the only example of a batch ends, and its way; `features` are buffers, written."""
    routers, tree = learner.tables[0], learner.tree
    place, x = features
    count = routing.load(batch, 0, routers.width, place, x)
    node, path = 0, []
    while tree.router[node] >= 0:
        router = int(tree.router[node])
        score = float(gd.score(routers, place, x, count, np.uint64(router), batch.initial[0]))
        own = shares_of(reasons.of_table(routers, place[:count], x[:count], router)) + initial_share(batch.initial[0])
        child = int(tree.left[node]) + (0 if score < 0 else 1)
        stays = routing.stops(learner.counts, learner.settings, node, child)
        side = "stays" if stays else "left" if score < 0 else "right"
        path.append(Turn(str(node), side, score, None, own))
        if stays:
            break
        node = child
    return node, tuple(path)


def _score_candidate(
    learner: RecallTree, c: int, node: int, batch: Batch, features: routing.Features
) -> tuple[float, tuple[Share, ...]]:
    """Return the score of candidate c of a node, and its shares; `features` are buffers, written."""
    table, sub = learner.tables[0], learner.routers + c
    if not learner.sequential:
        table, sub = learner.tables[1 + c % SHARDS], c // SHARDS
    width = np.uint64(1) if learner.sequential else table.width
    place, x = features
    count = routing.load(batch, 0, table.width, place, x)
    full = scoring.path(learner.tree, learner.settings, learner.crosses(batch), node, width, batch, 0, place, x, count)
    score = float(gd.score(table, place, x, full, np.uint64(sub), np.float32(0)))
    products = reasons.of_table(table, place[:full], x[:full], sub)
    way = path_nodes(learner, node)
    end = count + len(way)
    own = list(shares_of(products[:count], "scorer"))
    own += [
        Share(f"reached node {a}", float(share), "path")
        for a, share in zip(way, products[count:end], strict=True)
        if share
    ]
    if end < full:
        own.append(Share("features crossed with the path", float(products[end:].sum()), "path"))
    return score, tuple(own)


def _ranked(
    learner: RecallTree, path: tuple[Turn, ...], node: int, scored: list[tuple[int, float, tuple[Share, ...]]],
    label: float, k: int,
) -> Reasons:  # fmt: skip
    """Return the explanation of a prediction.

    `path` is the way of the example and `node` where it ended. `scored` has the 1-based class, score and shares of each
    candidate, and `label` is NaN for none.
    """
    classes = learner.classes
    recall = float(label_counts.recall(learner.counts, classes, node))
    scores = np.array([score for _, score, _ in scored])
    odds = np.exp(np.clip(np.where(np.isnan(scores), 0.0, scores), -LIMIT, LIMIT))
    p = recall * odds / odds.sum() if scored else odds
    order = np.argsort(-scores, kind="stable").tolist()
    explained, others = chosen(
        (ExplainedClass(scored[c][0], scored[c][1], float(p[c]), scored[c][2], path) for c in order), k, label
    )
    if 1 <= label <= classes and label not in {y for y, _, _ in scored}:
        explained.append(ExplainedClass(label, None, (1.0 - recall) / (classes - len(scored))))
    formula = f"{recall:.9g} * exp(min(max(score, -{LIMIT:g}), {LIMIT:g})) / {odds.sum():.9g}" if scored else ""
    return Reasons(explained, others, len(scored), formula)
