"""Describe a recall tree, and explain its predictions by the routers on the way and the candidates' scorers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ...array_types import Bools, Int32s, Int64s
from ...binary import gd, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.recall_tree import label_counts, routing, scoring
from ...reductions.recall_tree.label_counts import BOUND, ENTROPY, WEIGHT, Counts
from ...reductions.recall_tree.reduction import RecallTree
from ...reductions.recall_tree.routing import RouterTree
from ...reductions.recall_tree.scoring import SHARDS
from . import reasons, views
from .reasons import chosen, initial_share, shares_of
from .views import NodeView, TableView, TreeNode, WeightLookup

MOST_SHOWN = 5  # most candidates in the view of a node
LIMIT = scoring.LARGEST_SCORE


def banner(learner: RecallTree) -> list[str]:
    o, nodes = learner.settings, len(learner.tree.left)
    lines = [
        f"Tree: up to {nodes:,} nodes in {learner.depth} levels, {learner.candidates} candidates each, at most "
        f"{in_words.size(learner.memory[1])}"
    ]
    if o.randomized:
        lines.append("Routing: random while learning, by the scores of the routers")
    if o.bern != 1:
        lines.append(f"Recall bound: penalty with weight {o.bern:g}")
    if not o.path or o.node_only:
        lines.append(f"Path features: {'the node reached' if o.path else 'none'}")
    return [*lines, in_words.table(learner.learner_options.bits, gd.SLOT_BYTES), *learner.crowding]


def vw_banner(learner: RecallTree) -> list[str]:
    o = learner.settings
    mode = "randomized" if o.randomized else "deterministic"
    return [
        f"recall_tree: node_only = {int(o.node_only)} bern_hyper = {o.bern:g} max_depth = {learner.depth} "
        f"routing = {mode}",
        f"memory: {learner.memory[0] / 2**20:.0f} MB of weights, at most {learner.memory[1] / 2**20:.0f} MB for "
        f"{len(learner.tree.left)} nodes of {learner.candidates} candidates",
        *learner.crowding,
    ]


def figures(learner: RecallTree) -> dict[str, float]:
    return {**learner.report.figures(), **views.figures(*_size(learner.tree, learner.counts))}


def outline(learner: RecallTree, levels: int) -> Iterator[TreeNode]:
    """Yield the nodes of the first `levels` levels that examples have reached, and their siblings."""
    return views.preorder(0, levels, partial(_node_view, learner.tree, learner.counts))


def _node_view(tree: RouterTree, counts: Counts, a: int) -> NodeView:
    """Return the printable view of a node; a node whose children have seen no example appears as a leaf."""
    has_children = _children_seen(tree, counts, np.array([a]))
    weight, nats = float(counts.node[a, WEIGHT]), float(counts.node[a, ENTROPY])
    size = int(counts.top_size[a])
    top = zip(counts.top_label[a, :MOST_SHOWN].tolist(), counts.top_count[a, :MOST_SHOWN].tolist(), strict=True)
    facts: dict[str, object] = {
        "candidates": size,
        "weight": f"{weight:g}",
        "bits": f"{nats / math.log(2.0):.2f}" if weight > 0 else "0.00",
        "recall at least": f"{float(counts.node[a, BOUND]):.3f}",
    }
    left = int(tree.left[a])
    return NodeView((left, left + 1) if has_children[0] else (), tuple((y + 1, c) for y, c in list(top)[:size]), facts)


def _children_seen(tree: RouterTree, counts: Counts, nodes: Int64s) -> Bools:
    """Return for each of `nodes` (int64[k]) whether a child of it has seen an example, as bool[k]."""
    left = tree.left[nodes]
    seen: Bools = (counts.node[left, WEIGHT] > 0) | (counts.node[np.minimum(left + 1, len(tree.left) - 1), WEIGHT] > 0)
    return seen & (left > 0)


def _size(tree: RouterTree, counts: Counts) -> tuple[int, Int64s]:
    level, depth, nodes, depths = np.zeros(1, np.int64), 0, 0, []
    while len(level):
        nodes += len(level)
        inner = _children_seen(tree, counts, level)
        depths.append(np.full(len(level) - np.count_nonzero(inner), depth))
        left = tree.left[level[inner]]
        level, depth = np.concatenate([left, left + 1]), depth + 1
    return nodes, np.concatenate(depths)


def table_view(learner: RecallTree) -> TableView:
    exclusive = learner.sequential and learner.crosser is None
    extra, lines = partial(_extra, learner), partial(_lines, learner)
    return TableView(partial(_lookups, learner), exclusive, extra=extra, lines=lines)


def _lookups(learner: RecallTree, batch: Batch) -> list[WeightLookup]:
    """Return the routers on the path, the candidates at its end and the scorer of the label."""
    features = learner.new_features(batch)
    node, path = _route(learner, batch, features)
    routers = [int(learner.tree.router[int(turn.node)]) for turn in path]
    labels = learner.counts.top_label[node, : learner.counts.top_size[node]].tolist()
    y = batch.label[0] - 1
    if 0 <= y < learner.classes and y not in labels and not learner.tests_as_vw:
        labels.append(int(y))
    lookups = [WeightLookup(0, router, router) for router in routers]
    for c in labels:
        table, sub, count, full = _load(learner, c, node, batch, features)
        extra = tuple(zip(features.place[count:full].tolist(), features.x[count:full].tolist(), strict=True))
        lookups.append(WeightLookup(table, sub, learner.routers + c, extra))
    return lookups


def _load(
    learner: RecallTree, c: int, node: int, batch: Batch, features: routing.FeatureBuffers
) -> tuple[int, int, int, int]:
    """Write the features with which candidate c of a node is scored to `features`.

    Return the table and the subproblem of its scorer, and the number of features without and with those of the path.
    """
    table, sub = (0, learner.routers + c) if learner.sequential else (1 + c % SHARDS, c // SHARDS)
    width = learner.tables[table].width
    place, x = features
    count = routing.load(batch, 0, width, place, x)
    width = np.uint64(1) if learner.sequential else width
    crosses = learner.crosses(batch)
    _, full = scoring.path(learner.tree, learner.settings, crosses, node, width, batch, 0, place, x, count)
    return table, sub, count, full


def _extra(learner: RecallTree) -> list[WeightLookup]:
    """Return the path features of every node for the labels counted there."""
    lookups = []
    for a, labels in _labels_of_nodes(learner.counts, learner.tree.left).items():
        path = tuple((scoring.PATH_HASH * b, 1.0) for b in path_nodes(learner, a))
        lookups += [WeightLookup(0, learner.routers + y, learner.routers + y, path) for y in labels]
    return lookups


def path_nodes(learner: RecallTree, a: int) -> list[int]:
    """Return the nodes whose path features an example at node a has."""
    if not learner.settings.path or learner.settings.node_only:
        return [a] if learner.settings.path else []
    nodes = []
    while a > 0:
        nodes.append(a)
        a = int(learner.tree.parent[a])
    return nodes


def _lines(learner: RecallTree) -> list[str]:
    """Return VW's description of the tree, with the labels counted at each node, candidates first."""
    tree, counts = learner.tree, learner.counts
    counted = _labels_of_nodes(counts, tree.left)
    lines = [
        f"k = {learner.settings.classes}",
        f"node_only = {str(learner.settings.node_only).lower()}",
        f"nodes = {len(tree.left)}",
        f"max_candidates = {counts.top_label.shape[1]}",
        f"max_depth = {learner.depth}",
    ]
    level = np.zeros(len(tree.left), np.int64)
    for a in range(len(tree.left)):
        internal = bool(tree.router[a] >= 0)
        if a:
            level[a] = level[tree.parent[a]] + 1
        top = counts.top_label[a, : counts.top_size[a]].tolist()
        seen = counted.get(a, {})
        others = sorted((-seen[y], y) for y in set(seen) - set(top))
        labels = top + [y for _, y in others]
        lines += [
            f"parent = {max(tree.parent[a], 0)}",
            f"recall_lbest = {_number_text(np.float32(counts.node[a, label_counts.BOUND]))}",
            f"internal = {str(internal).lower()}",
            f"depth = {level[a]}",
            f"base_router = {max(tree.router[a], 0)}",
            f"left = {tree.left[a]}",
            f"right = {tree.left[a] + 1 if internal else 0}",
            f"n = {_number_text(counts.node[a, label_counts.WEIGHT])}",
            f"entropy = {_number_text(counts.node[a, label_counts.ENTROPY])}",
            "passes = 1",
            f"n_preds = {len(labels)}",
        ]
        for y in labels:
            # a model may have a candidate that it never counted
            lines += [f"label = {y + 1}", f"label_count = {_number_text(seen.get(y, 0.0))}"]
    return lines


def _labels_of_nodes(counts: Counts, left: Int32s) -> dict[int, dict[int, float]]:
    """Return the counts as nested dictionaries: node -> 0-based label -> count; `left` has the child of each node."""
    counted: dict[int, dict[int, float]] = {}
    for at in np.flatnonzero(counts.cell_key[:, 0]).tolist():
        key = int(counts.cell_key[at, 0])
        above, y = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
        child = int(left[above]) if above >= 0 else 0  # the root is a left child
        for side in (0, 1):
            if counts.cell_count[at, 1 + side] > 0:
                counted.setdefault(child + side, {})[y] = float(counts.cell_count[at, 1 + side])
    return counted


def _number_text(value: float | np.float32) -> str:
    """Return a number without trailing ".0", for example 2, 0.5 or 0.21432579."""
    text = str(value)
    return text.removesuffix(".0")


def explain(learner: RecallTree, batch: Batch, k: int) -> Reasons:
    features = learner.new_features(batch)
    node, path = _route(learner, batch, features)
    scored = []
    for c in learner.counts.top_label[node, : learner.counts.top_size[node]].tolist():
        scored.append((c + 1, *_score_candidate(learner, c, node, batch, features)))
    return _ranked(learner, path, node, scored, float(batch.label[0]), k)


def _route(learner: RecallTree, batch: Batch, features: routing.FeatureBuffers) -> tuple[int, tuple[Turn, ...]]:
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
    learner: RecallTree, c: int, node: int, batch: Batch, features: routing.FeatureBuffers
) -> tuple[float, tuple[Share, ...]]:
    """Return the score of candidate c of a node, and its shares; `features` are buffers, written."""
    number, sub, count, full = _load(learner, c, node, batch, features)
    (place, x), table = features, learner.tables[number]
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
    power = scoring.power(learner.settings)
    odds = np.exp(np.clip(power * np.where(np.isnan(scores), 0.0, scores), -LIMIT, LIMIT))
    p = recall * odds / odds.sum() if scored else odds
    order = np.argsort(-scores, kind="stable").tolist()
    explained, others = chosen(
        (ExplainedClass(scored[c][0], scored[c][1], float(p[c]), scored[c][2], path) for c in order), k, label
    )
    if 1 <= label <= classes and label not in {y for y, _, _ in scored}:
        explained.append(ExplainedClass(label, None, (1.0 - recall) / (classes - len(scored))))
    formula = (
        f"{recall:.9g} * exp(min(max({power:.9g} * score, -{LIMIT:g}), {LIMIT:g})) / {odds.sum():.9g}" if scored else ""
    )
    return Reasons(explained, others, len(scored), formula)
