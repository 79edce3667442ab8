"""Describe conditional probability trees and their scorers, and explain their predictions.

Without scorers, the score of a class is the logarithm of its probability, and with several trees the sum of the
logarithms over the trees, by which `binary_nodes.vote` compares the classes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from ...array_types import Float32s, Float64s, Int64s, UInt32s, UInt64s
from ...binary import adagrad, feature_scaling, gd, in_words, tagged_words
from ...binary.tagged_words import Words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...kernels.constants import LARGEST
from ...reductions.core.contract import BatchTask
from ...reductions.cpt import label_tree, wide_nodes
from ...reductions.cpt.binary_nodes import TreePredictions
from ...reductions.cpt.ensemble import Member, TreePlan
from ...reductions.cpt.label_tree import DEEPEST, NODES, ClassTree
from ...reductions.cpt.options import GROWN, SAMPLED, index_bytes, weight_bytes
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.means.reduction import Means
from ...reductions.multiclass import feature_index, opinion_pool, reranking
from ...reductions.multiclass.opinion_pool import LEAST as LEAST_OPINION
from ...reductions.multiclass.opinion_pool import Listed
from ...reductions.multiclass.reduction import Multiclass, MulticlassPlan
from ...system.steps import pause
from . import means, views
from .reasons import NOTHING, chosen, later, of_regressor, scaled, score_of, shares_of
from .views import NodeView, TreeNode

TreeLearner: TypeAlias = ProbabilityTree | Multiclass
LEAST = 1e-300  # probabilities are at least this when trees vote, see `binary_nodes.vote`
OPINIONS = (  # o(y) that are no sum over features: index, part, name
    (reranking.MEAN, "trees", "mean log probability"),
    (reranking.LARGEST, "trees", "largest log probability"),
    (reranking.SUPPORT, "trees", "share of the trees that propose it"),
    (reranking.OF_PROPOSAL, "index", "proposed"),
    (reranking.OF_BAYES, "index", "naive Bayes"),
)


def banner(learner: TreeLearner) -> list[str]:
    o = learner.options
    lines = [f"Trees: {o.trees}, {o.cpt_arity} branches per node", *_tree_origin(learner)]
    if o.rerank:
        index = f" and {o.index_candidates} from the index" if index_bytes(o) else ""
        lines.append(f"Candidates: {o.candidates} per tree{index}; one scorer per class decides")
    elif o.trees > 1:
        lines.append(f"Candidates: {o.candidates} per tree; the trees vote")
    number = sum(map(tagged_words.size, word_tables(learner).values()))
    may_grow = o.max_doublings and not learner.testing
    most = weight_bytes(o, learner.bits) << o.max_doublings if may_grow else 0
    lines.append(in_words.growing(number, learner.bits, most))
    if index_bytes(o):
        memory = in_words.size(index_bytes(o))
        lines.append(f"Index: {o.index_slots} classes for each of 2^{o.index_bits} features, at most {memory}")
    return lines


def _tree_origin(learner: TreeLearner) -> list[str]:
    """Return the line about how trees are built, for the banner; none for the default and for a loaded model."""
    o = learner.options
    if o.cpt_tree in SAMPLED:
        examples = f"the first {o.tree_sample:,} examples" if o.tree_sample else "all examples"
        basis = "similar classes" if o.cpt_tree == "kmeans" else "class frequencies"
        return [f"Tree built from: {basis} in {examples}"] if learner.preview_sample is not None else []
    if o.cpt_tree in GROWN:
        places = {"balanced": ["Classes placed: by balance alone"], "random": ["Classes placed: at random"]}
        return places.get(o.cpt_tree, [])
    return [] if learner.loaded else [f"Tree built from: {o.cpt_tree}"]


def learning_lines(learner: TreeLearner, binary: gd.BinaryOptions) -> list[str]:
    scorers = f" for trees, {learner.options.rerank_rate:g} for scorers" if learner.options.rerank else ""
    rule = "plain gradient descent" if binary.sgd else "AdaGrad"
    return [f"Learning rate: {binary.learning_rate:g}{scorers} ({rule})", in_words.loss(binary)]


def _means_alone(learner: TreeLearner) -> Means | None:
    """Return the class means of a learner that has learned nothing but dense rows, else None."""
    if not isinstance(learner, Multiclass) or learner.has_features or learner.means.classes is None:
        return None
    return learner.means


def summary(learner: TreeLearner) -> list[str]:
    alone = _means_alone(learner)
    if alone is not None:
        return means.summary(alone)
    known, shares = figures(learner), []
    depth = max(int(member.tree.size[DEEPEST]) for member in learner.trees.members)
    if isinstance(learner, Multiclass) and learner.label_weight > 0:
        shares.append(f"label not proposed (routing error) = {known['routing_error']:.6f}")
        shares.append(f"label proposed, not chosen (scoring error) = {known['scoring_error']:.6f}")
    weighted = []
    if learner.frequencies is not None and learner.frequencies.active:
        weighted.append("features are weighted by inverse document frequency")
    shares.append(tagged_words.occupancy([*word_tables(learner).values()]))
    return [
        *learner.report.lines(), *shares, *(learner.scales.summary_lines if learner.scales is not None else []),
        *weighted,
        *(_beside_trees(learner) if isinstance(learner, Multiclass) else []),
        f"classes in the tree = {known['classes_in_tree']}{learner.placed_text}, depth = {depth}",
        *views.lines(known),
    ]  # fmt: skip


def _beside_trees(learner: Multiclass) -> list[str]:
    searched = learner.searched.lines() if learner.searched is not None else []
    return [*means.facts_of_rows(learner.means), *searched]


def figures(learner: TreeLearner) -> dict[str, float]:
    alone = _means_alone(learner)
    if alone is not None:
        return alone.report.figures()
    figures = learner.report.figures()
    if isinstance(learner, Multiclass) and learner.label_weight > 0:
        figures["routing_error"] = learner.not_proposed / learner.label_weight
        figures["scoring_error"] = learner.not_chosen / learner.label_weight
    figures["classes_in_tree"] = (int(learner.trees.members[0].tree.size[NODES]) + 1) // 2
    nodes = sum(int(member.tree.size[NODES]) for member in learner.trees.members)
    depths = np.concatenate([label_tree.depths(member.tree) for member in learner.trees.members])
    return {**figures, **views.figures(nodes, depths)}


def outline(learner: TreeLearner, levels: int) -> Iterator[TreeNode]:
    for t, member in enumerate(learner.trees.members):
        if member.tree.size[NODES]:
            look = partial(_node_view, member.tree)
            yield from views.preorder(0, levels, look, learner.node_name(t))


def class_counts(learner: TreeLearner) -> tuple[Int64s, Float64s] | None:
    alone = _means_alone(learner)
    if alone is not None:
        return means.class_counts(alone)
    if not isinstance(learner, Multiclass) or learner.index is None:
        return None
    index = learner.index.index
    size = int(index.classes.size[0])
    return index.classes.label[:size], index.weight[:size]


def feature_counts(learner: TreeLearner, index: UInt32s) -> Float64s | None:
    """Return the weight of the learned examples with each feature, None if they are not counted or packed."""
    if learner.frequencies is None or len(learner.frequencies.bitmap):  # packed counts belong to other slots
        return None
    return learner.frequencies.count[feature_scaling.slots_of(index)]


def _node_view(tree: ClassTree, a: int) -> NodeView:
    left = int(tree.left[a])
    if left == 0:
        return NodeView(labels=((int(tree.label[a]), None),))
    return NodeView((left, left + 1), facts={"leaves": int(tree.leaves[a])})


def word_tables(learner: TreeLearner) -> dict[str, Words]:
    tables = {f"tree{t}": member.weights.words for t, member in enumerate(learner.trees.members)}
    return {**tables, "scorers": learner.scorers.weights.words} if isinstance(learner, Multiclass) else tables


def explain(learner: TreeLearner, batch: Batch, k: int) -> Reasons:
    task = BatchTask(batch, False, np.zeros(1))
    learner.prepare(task)
    batch, plan = task.batch, learner.begin(task)
    paths = [TreePaths(one, plan.batch_of(t), learner.node_name(t), t) for t, one in enumerate(learner.trees.members)]
    if isinstance(learner, Multiclass):
        assert isinstance(plan, MulticlassPlan)  # which it makes
        if plan.rows_alone:
            return means.explain(learner.means, batch, k)
        pause()
        learner.trees.propose(learner.share, plan, [(0, 1)], learner.number_searched)
        learner.add_candidates(task, plan)
        if not batch.columns:
            return _of_scorers(learner, batch, plan, paths, k)
        of_features = _of_scorers(learner, batch, plan, paths, plan.opinions.candidate.shape[1])
        rows = learner.means.classes
        of_rows = NOTHING  # of a row that is missing
        if rows is not None and (batch.dense.any() or len(batch.index) == learner.constants):
            of_rows = means.explain(learner.means, batch, rows.compared)
        return _pooled(learner.pool, [of_features, of_rows], ["features", "rows"], float(batch.label[0]), k)
    if len(paths) == 1:  # the search for k classes may find others than that for one
        found = [_predicted(learner, plan, size).top[0, 0].tolist() for size in (1, k)]
        ranked = np.array(list(dict.fromkeys([*found[0], *found[1]])))
    else:
        output = _predicted(learner, plan, max(learner.options.candidates, k))
        ranked = learner.trees.vote(learner.share, plan, output, output.top[:, 0].size, [(0, 1)])[0][0]
    return _of_trees(learner, plan, paths, ranked[ranked > 0], float(batch.label[0]), k)


def _predicted(learner: TreeLearner, plan: TreePlan, k: int) -> TreePredictions:
    """Return what the trees that are searched predict, each with k classes of the only example."""
    output = learner.trees.new_predictions(1, k)
    for t in range(learner.number_searched):
        pause()
        learner.trees.members[t].process_rows(plan.batch_of(t), plan.label, np.zeros(1, bool), 0, 1, output.of_tree(t))
    return output


def _of_trees(
    learner: TreeLearner, plan: TreePlan, paths: Sequence[TreePaths], ranked: Int64s, label: float, k: int
) -> Reasons:
    """Explain a prediction by the probabilities of classes, `ranked` (int64[n]) in the order that the trees propose."""
    members = learner.trees.members
    known = [*ranked.tolist()]
    if label > 0 and label not in known:
        known.append(int(label))
    p = np.zeros((len(members), len(known)))
    for t, member in enumerate(members):
        member.candidate_probabilities(plan.batch_of(t), 0, 1, np.array([known], np.int64), p[t : t + 1])
    voting = len(members) > 1
    shown = {*known[:k], label}

    def explained_class(c: int) -> ExplainedClass:
        y = known[c]
        score = float(np.log(np.maximum(p[:, c], LEAST)).sum())
        if y not in shown:
            return ExplainedClass(y, score, float(p[:, c].mean()))
        ways = [tree.to(y) for tree in paths]
        shares: list[Share] = []
        for t, path in enumerate(ways):
            part = f"tree{t}" if voting else ""
            shares += [Share("no leaf", math.log(LEAST), part)] if path is None else [
                Share(f"node {turn.node} {turn.side}", math.log(turn.probability), part)
                for turn in path
                if turn.probability is not None
            ]  # fmt: skip
        turns = tuple(turn for path in ways for turn in path or ())
        return ExplainedClass(y, score, float(p[:, c].mean()), tuple(shares), turns)

    in_any = [c for c in range(len(known)) if c < len(ranked) or p[:, c].any()]
    explained, others = chosen(map(explained_class, in_any), k, label)
    formula = "exp(score)"
    if voting:
        formula = f"({' + '.join(f'exp(tree{t})' for t in range(len(members)))}) / {len(members)}"
    compared = len(ranked) if voting else int(members[0].tree.leaves[0])  # a single tree is searched
    return Reasons(explained, others, compared if explained else 0, formula if explained else "")


def _of_scorers(learner: Multiclass, batch: Batch, plan: MulticlassPlan, paths: Sequence[TreePaths], k: int) -> Reasons:
    """Explain a prediction by the scores of the candidates, for a batch whose features are not weighted.

    The score of a class has three parts, see `reranking`: the features of its scorer; what the trees say about the
    class; and what the index says, whose cosine is a sum over features too.
    """
    pause()
    scorers, index, label = learner.scorers, learner.index, float(batch.label[0])
    candidates, factor = plan.opinions.candidate[0].tolist(), scorers.state[0]
    scratch, result = reranking.scratch(batch, len(candidates)), reranking.new_ranking(1, len(candidates))
    learner.rank_kernel(
        scorers, learner.options.normalize_features != "none", batch, plan.weighted.log_weight, plan.label, plan.learns,
        False, 0, 1, plan.proposed, scratch, result,
    )  # fmt: skip
    size, count = int(np.count_nonzero(result.top[0])), int(batch.start[1])
    if not size:
        return NOTHING
    ranked, p = result.top[0, :size].tolist(), result.top_p[0, :size].tolist()
    shown = {*ranked[:k], label}

    def path(y: int) -> tuple[Turn, ...]:
        return tuple(turn for tree in paths for turn in tree.to(y) or ())

    def explained_class(y: int, probability: float) -> ExplainedClass:
        pause()
        c = candidates.index(y)
        score = float(scratch.score[c])
        if y not in shown:
            return ExplainedClass(y, score, probability)
        products = scratch.pairs.w[c * count : (c + 1) * count].astype(np.float64) * scratch.x[:count]
        if abs(products.sum()) > LARGEST:  # as the kernel does
            products = np.zeros(count)
        cosine = np.zeros(count)
        if index is not None and feature_index.class_number(index.index, y) >= 0:
            feature_index.add_cosines(index.index, batch.index, plan.weighted.share, y, cosine)
        shares = [*shares_of(products, "scorer"), *shares_of(float(factor[reranking.OF_COSINE]) * cosine, "index")]
        for number, part, name in OPINIONS:
            share = float(factor[number] * scratch.offset[c, number])
            if share and (part == "trees" or index is not None):
                shares.append(Share(name, share, part))
        return ExplainedClass(y, score, probability, tuple(shares), path(y))

    explained, others = chosen(map(explained_class, ranked, p), k, label)
    if label > 0 and label not in ranked:
        explained.append(ExplainedClass(int(label), None, float(result.p[0]), (), path(int(label))))
    sharpness = float(factor[reranking.SHARPNESS])
    factored = sharpness * scratch.score[:size]
    log_total = float(factored.max() + math.log(np.exp(factored - factored.max()).sum()))
    sign = "-" if log_total >= 0 else "+"
    formula = f"{sum(p):.9g} * exp({sharpness:.9g} * score {sign} {abs(log_total):.9g})"
    return Reasons(explained, others, size, formula)


# class means beside the scorers


def _pooled(pool: Float64s, opinions: Sequence[Reasons], parts: Sequence[str], label: float, k: int) -> Reasons:
    """Explain what a pool makes of two learners' opinions, which explain all classes that they list.

    A class without a score is not listed. `parts` are the names of the learners, for shares that have no part.
    """
    listed = [[one for one in reasons.classes if one.score is not None] for reasons in opinions]
    most = sum(map(len, listed))
    result = Listed(np.zeros((1, most), np.int64), np.zeros((1, most)), np.zeros(1))
    none = np.zeros(1, bool)
    first, second = map(_as_listed, listed)
    opinion_pool.combine(
        pool, np.zeros(1, np.int64), none, np.ones(1, np.float32), first, second, result, none.copy()
    )  # fmt: skip
    order = [int(c) for c in result.top[0] if c]
    terms = [_pool_terms(one, part, float(power)) for one, part, power in zip(listed, parts, pool[0], strict=True)]

    def of_class(c: int, p: float) -> ExplainedClass:
        shares = [share for by_class, others in terms for share in by_class.get(c, others)]
        paths = tuple(turn for own in listed for one in own if one.label == c for turn in one.path)
        return ExplainedClass(c, sum(share.share for share in shares), p, tuple(shares), paths)

    explained, others = chosen(map(of_class, order, result.top_p[0].tolist()), k, label)
    if not explained:
        return opinions[0]
    log_total = (explained[0].score or 0.0) - math.log(explained[0].probability or 1.0)
    considered = max(reasons.considered for reasons in opinions)
    return Reasons(explained, others, considered, f"exp(score - {log_total:.9g})")


def _as_listed(classes: Sequence[ExplainedClass]) -> Listed:
    label = np.array([[one.label for one in classes]], np.int64)
    return Listed(label, np.array([[one.probability for one in classes]], np.float64), np.zeros(1))


def _pool_terms(
    classes: Sequence[ExplainedClass], part: str, power: float
) -> tuple[dict[int, list[Share]], list[Share]]:
    """Return the shares of each class in the power times the logarithm of its probability, and those of all others.

    Scores determine probabilities up to a constant, which all classes have and which is left out. So the factor of the
    scores is that of the probabilities of the first and the last class.
    """
    if not classes:
        return {}, []
    score = np.array([one.score for one in classes], np.float64)
    log_p = np.log(np.maximum([one.probability or 0.0 for one in classes], 1e-300))
    spread = score[0] - score[-1]
    factor = (log_p[0] - log_p[-1]) / spread if spread else 1.0
    constant = log_p[0] - factor * score[0]
    by_class = {}
    for one, own_log_p in zip(classes, log_p.tolist(), strict=True):
        shares = [scaled(share, power * factor, part) for share in one.shares]
        if own_log_p < math.log(LEAST_OPINION):
            shares.append(
                Share(
                    f"least probability that counts, {LEAST_OPINION:g}",
                    power * (math.log(LEAST_OPINION) - own_log_p),
                    part,
                )
            )
        by_class[int(one.label or 0)] = shares
    rest = max(1.0 - float(np.exp(log_p).sum()), LEAST_OPINION)
    least = math.log(max(min(math.exp(log_p.min()), rest), LEAST_OPINION))
    return by_class, [Share("not among the most probable classes", power * (least - constant), part)]


# paths


class TreePaths:
    """Follow paths from the root of a tree to the leaf of a class, turn by turn, for the only example of a batch.

    Tree `number` sees it as this batch; `name` is the format of a node's name.
    """

    def __init__(self, member: Member, batch: Batch, name: str, number: int) -> None:
        pause()
        self._number = number
        self._member, self._tree, self._weights, self._name = member, member.tree, member.weights, name
        self._scratch = member.scratch(batch)
        count = adagrad.load(batch, 0, member.settings.unit, self._scratch.h, self._scratch.x)
        self._h: UInt64s = self._scratch.h[:count]
        self._x: Float32s = self._scratch.x[:count]

    def to(self, label: int) -> tuple[Turn, ...] | None:
        """Return the turns from the root to the leaf of a label, None if it has no leaf."""
        leaf = int(label_tree.find(self._tree, np.int64(label)))
        if leaf < 0:
            return None
        nodes = [leaf]
        while self._tree.parent[nodes[0]] >= 0:
            nodes.insert(0, int(self._tree.parent[nodes[0]]))
        return tuple(self._binary(nodes) if self._member.levels == 1 else self._wide(nodes))

    def _binary(self, nodes: list[int]) -> Iterator[Turn]:
        for node, child in itertools.pairwise(nodes):
            place = int(self._tree.place[node])
            score = score_of(self._weights.words, self._h, self._x, place)
            right = float(adagrad.probability(self._weights, np.float32(score)))
            went_right = child > self._tree.left[node]
            side, p = ("right", right) if went_right else ("left", 1.0 - right)
            yield Turn(self._name.format(node), side, score, p, self._shares(place), self._number)

    def _wide(self, nodes: list[int]) -> Iterator[Turn]:
        """Yield the turns at the blocks of a path and at their regressors; see `wide_nodes` for the branches."""
        levels, scratch = self._member.levels, self._scratch
        assert isinstance(scratch, wide_nodes.WideNodeScratch)
        m = 1 << levels
        s, child, v = np.empty(m, np.float32), np.empty(m, np.int64), np.empty(m)
        for first in range(0, len(nodes) - 1, levels):
            root, inside = nodes[first], nodes[first : first + levels + 1]
            sides = (after > self._tree.left[node] for node, after in itertools.pairwise(inside))
            branch = sum(1 << level for level, right in enumerate(sides) if right)
            wide_nodes._open(self._tree, self._weights, scratch, len(self._h), np.int64(root), s, child, v)
            yield Turn(self._name.format(root), f"branch {branch}", None, float(v[branch]), (), self._number)
            for i in range(1, m):
                odd = (i & branch).bit_count() & 1
                place = m * (root + 1) + i
                name = f"{self._name.format(root)} regressor {i}"
                yield Turn(name, "odd" if odd else "even", float(s[i]), None, self._shares(place), self._number)

    def _shares(self, place: int) -> tuple[Share, ...]:
        pause()
        return later(lambda: of_regressor(self._weights.words, self._h, self._x, place))
