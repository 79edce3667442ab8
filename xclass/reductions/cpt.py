"""Conditional probability tree: a regressor at every node, the product of its turns is a label's probability.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009: algorithm 1 (training), algorithm 3 (the tree grown online).
Learners  one per node, leaves included: does the label lie right (+1) or left (-1)?
Cost      learning and the probability of a given label O(s depth); the most probable labels by a search that opens
          some 2 to 5 times depth nodes, an s each.
Names     alpha cpt_alpha | L, R leaves left and right of a node | p probability that its regressor gives to right |
          f(y|x) the product along y's path.
Differs   from the paper: labels are -1 and 1, so an untrained squared-loss regressor says 1/2 and not "left". The leaf
          that is split leaves its regressor to the node it becomes, and the old label's new leaf starts afresh: a
          copy is not possible in hashed slots. That regressor has learned "left" on the old label's examples
          (error % without and with: wordnet 76.8 / 74.6, spelling 18.8 / 18.4, panlex 80.5 / 80.7).
          AdaGrad on examples of unit length, `node_weights`.

A new label walks down from the root and goes right where (with p as the regressor of the node gives it)

    (1 - alpha) * 2 * (p - 1/2)  +  alpha * log2(L / R)  >  0

to the leaf it splits; every regressor on the way learns the turn taken.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import label_tree, learner, loss, model_file, node_weights, rng
from ..errors import DataError, UsageError
from ..jit import jit
from ..options import option
from .contract import Reduction, Work

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST
PLACES, UNKNOWN_BITS = 12, 24  # bits of the table for every label; where the number of labels is not known
MOST_OPENED = 1 << 16  # nodes opened by one search, in the histogram; more count as this
BINS = 20  # of the reliability table
ONE = np.float32(1)


@dataclass(frozen=True)
class Options:
    """Conditional probability tree."""

    cpt: int = option(
        "about how many classes there are, for the size of the table; 0 if nobody knows. Labels 1..2147483648 are "
        "taken as they come",
        kind=int,
        metavar="K",
        minimum=0,
        maximum=label_tree.HIGHEST_LABEL,
        stored=True,
    )
    cpt_tree: str = option(
        "where a new class goes: by balance and by where the regressors send it, by balance alone, or at random",
        choices=("general", "balanced", "random"),
        default="general",
        stored=True,
    )
    cpt_alpha: float = option(
        "weight of balance against what the regressors say, for a new class [alpha]",
        kind=float,
        default=0.6,
        minimum=1e-3,
        maximum=1,
        metavar="ALPHA",
        stored=True,
    )
    normalize_features: str = option(
        "scale every example to length 1 before the tree sees it", choices=("unit", "none"), default="unit", stored=True
    )
    cpt_search: str = option(
        "how the most probable class is found: `exact`, or `greedy`, which follows the likelier child",
        choices=("exact", "greedy"),
        default="exact",
    )
    max_expand: int = option(
        "nodes a search may open before it answers with the best it has",
        kind=int,
        default=100_000,
        minimum=1,
        metavar="N",
    )
    top_k: int = option(
        "write the N most probable classes, `class:probability` each, and `0:` the probability of all others",
        kind=int,
        minimum=1,
        maximum=10_000,
        metavar="N",
    )
    cpt_report: str = option(
        "what progressive validation computes: `argmax` the most probable class and all losses; `losses` only those of "
        "the label's probability, which need no search",
        choices=("argmax", "losses"),
        default="argmax",
    )
    calibration: str = option(
        "file for a reliability table: probability of the answers against how often they are right", metavar="FILE"
    )
    perplexity: bool = option("report the perplexity of the labels", kind=bool)


class Settings(NamedTuple):
    """The options a kernel needs."""

    alpha: float  # of the insertion rule; at random where it is 0
    unit: bool
    greedy: bool
    budget: int
    search: bool


class Scratch(NamedTuple):
    """Rows of one thread: features, the label's path, the search's stack."""

    h: np.ndarray  # uint64[s]
    x: np.ndarray  # float32[s]
    at: np.ndarray  # int64[levels * s], slots of the nodes on the path
    path: np.ndarray  # int64[levels], from the root to the label's leaf
    score: np.ndarray  # float32[levels]
    right: np.ndarray  # float64[levels], p
    node: np.ndarray  # int64[levels]
    mass: np.ndarray  # float64[levels]


class Found(NamedTuple):
    """What a batch of n examples found."""

    known: np.ndarray  # bool[n], the label has a leaf
    p: np.ndarray  # float64[n], f(y|x), 0 where it has none
    top: np.ndarray  # int64[n, k], most probable labels; 0 where there are fewer
    top_p: np.ndarray  # float64[n, k]
    opened: np.ndarray  # int64[n], nodes the search opened
    gap: np.ndarray  # float64[n], most a label left out can have where the search ended early, else 0


# -- kernels


@jit
def _follow(tree, weights, scratch, leaf, count, learns):
    """Score the nodes from the root to a leaf; return f(y|x)."""
    path = scratch.path
    depth = np.int64(tree.depth[leaf])
    a = leaf
    for d in range(depth, -1, -1):
        path[d] = a
        a = np.int64(tree.parent[a])
    for d in range(depth + 1 if learns else depth):
        node_weights.locate(weights, scratch.h, count, tree.place[path[d]], scratch.at, d * count)
    p = 1.0
    for d in range(depth):
        s = node_weights.score(weights, scratch.at, d * count, count, scratch.x)
        right = node_weights.probability(weights, s)
        scratch.score[d] = s
        scratch.right[d] = right
        p *= right if path[d + 1] > tree.left[path[d]] else 1.0 - right
    if learns:
        scratch.score[depth] = node_weights.score(weights, scratch.at, depth * count, count, scratch.x)
    return p


@jit
def _learn_path(tree, weights, scratch, leaf, count, weight):
    """Train the nodes `_follow` scored with the turns to the leaf, and the leaf with left."""
    depth = np.int64(tree.depth[leaf])
    for d in range(depth + 1):
        y = ONE if d < depth and scratch.path[d + 1] > tree.left[scratch.path[d]] else -ONE
        node_weights.learn(weights, scratch.at, d * count, count, scratch.x, scratch.score[d], y, weight)


@jit
def _train(tree, weights, scratch, a, count, y, weight):
    """Score one node and train it."""
    node_weights.locate(weights, scratch.h, count, tree.place[a], scratch.at, 0)
    s = node_weights.score(weights, scratch.at, 0, count, scratch.x)
    node_weights.learn(weights, scratch.at, 0, count, scratch.x, s, y, weight)


@jit
def goes_right(alpha, p, left, right):
    """The paper's rule for a new label at a node with so many leaves left and right."""
    return (1.0 - alpha) * 2.0 * (p - 0.5) + alpha * math.log2(left / right) > 0.0


@jit
def _insert(tree, weights, settings, random, scratch, label, count, weight):
    """Bring a new label into the tree and train the nodes on its way."""
    if tree.size[NODES] == 0:
        label_tree.plant(tree, label)
        _train(tree, weights, scratch, 0, count, -ONE, weight)
        return
    a = np.int64(0)
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        if settings.alpha == 0.0:
            right = rng.draw(random) >= np.float32(0.5)
        else:
            s = node_weights.score_place(weights, scratch.h, scratch.x, count, tree.place[a])
            p = node_weights.probability(weights, s)
            right = goes_right(settings.alpha, p, np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1]))
        _train(tree, weights, scratch, a, count, ONE if right else -ONE, weight)
        tree.leaves[a] += 1
        a = left + 1 if right else left
    tree.leaves[a] += 1
    leaf = label_tree.split(tree, a, label)
    _train(tree, weights, scratch, a, count, ONE, weight)
    _train(tree, weights, scratch, leaf, count, -ONE, weight)


@jit
def _search(tree, weights, settings, scratch, count, known, floor, label, complete, i, found):
    """The most probable labels of example i, depth first and the likelier child first.

    A node that has no more mass than the last of the labels found is not opened: no leaf below it can have more.
    Not `complete`, only one label is looked for, and it is whether `label`, of probability `floor`, is the one:
    the search ends at the first other. The scores of the first `known` nodes on the label's path are there already.
    """
    node, mass, path = scratch.node, scratch.mass, scratch.path
    k = found.top.shape[1]
    top, top_p = found.top[i], found.top_p[i]
    size = 0
    opened = 0
    waiting = 1
    node[0] = 0
    mass[0] = 1.0
    gap = 0.0
    while waiting > 0:
        waiting -= 1
        a = node[waiting]
        p = mass[waiting]
        reached = True
        while tree.left[a] > 0:
            if p < floor or (size == k and p <= top_p[k - 1]):
                reached = False
                break
            if opened >= settings.budget and size > 0:
                gap = max(gap, p)
                reached = False
                break
            opened += 1
            d = np.int64(tree.depth[a])
            if d < known and path[d] == a:
                right = scratch.right[d]
            else:
                right = node_weights.probability(
                    weights, node_weights.score_place(weights, scratch.h, scratch.x, count, tree.place[a])
                )
            p_left = p * (1.0 - right)
            p_right = p * right
            left = np.int64(tree.left[a])
            turn = right > 0.5
            other = p_left if turn else p_right
            if not settings.greedy and not (other < floor or (size == k and other <= top_p[k - 1])):
                node[waiting] = left if turn else left + 1
                mass[waiting] = other
                waiting += 1
            a = left + 1 if turn else left
            p = p_right if turn else p_left
        if not reached or p < floor or (size == k and p <= top_p[k - 1]):
            continue
        at = min(size, k - 1)
        size = min(size + 1, k)
        while at > 0 and top_p[at - 1] < p:
            top[at] = top[at - 1]
            top_p[at] = top_p[at - 1]
            at -= 1
        top[at] = tree.label[a]
        top_p[at] = p
        if not complete and tree.label[a] != label:
            break
    found.opened[i] = opened
    found.gap[i] = gap if size < k or gap > top_p[k - 1] else 0.0


@jit
def _fits(tree, scratch):
    """Whether there is room for one more label, and on the path for a deeper leaf."""
    return label_tree.has_room(tree) and tree.size[DEEPEST] + 3 <= scratch.path.shape[0]


@jit
def sweep(tree, weights, settings, random, batch, label, learns, whole, begin, end, scratch, found):
    """Examples begin..end-1 of a batch: f(y|x) and the most probable labels, then learn; return the first not done.

    `label[i]` is 0 where there is none; `whole[i]` asks for a complete search.
    """
    for i in range(begin, end):
        y = label[i]
        leaf = label_tree.find(tree, y) if y > 0 else np.int64(-1)
        if learns[i] and leaf < 0 and not _fits(tree, scratch):
            return i
        count = node_weights.load(batch, i, settings.unit, scratch.h, scratch.x)
        floor = 0.0
        if leaf >= 0:
            found.known[i] = True
            floor = _follow(tree, weights, scratch, leaf, count, learns[i])
            found.p[i] = floor
        if settings.search and tree.size[NODES] > 0:
            complete = whole[i] or leaf < 0
            known = np.int64(tree.depth[leaf]) if leaf >= 0 else np.int64(0)
            _search(
                tree, weights, settings, scratch, count, known, 0.0 if complete or settings.greedy else floor, y,
                complete, i, found
            )  # fmt: skip
        if learns[i]:
            if leaf >= 0:
                _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
            else:
                _insert(tree, weights, settings, random, scratch, y, count, batch.weight[i])
    return end


# -- Python


FIXED = ("sgd", "normalized", "invariant", "power_t", "initial_t", "quantile_tau", "layout", "label_range", "link")


def settle(config) -> dict:
    """Options whose defaults depend on others."""
    o = config.cpt
    found = {"loss_function": config.learner.loss_function or "squared"}
    if config.learner.learning_rate is None:
        found["learning_rate"] = 0.5 if found["loss_function"] == "squared" else 1.0
    settled = learner.settle(config.learner, o.cpt, True, node_weights.SLOT_BYTES, PLACES)
    if not o.cpt and config.learner.bits is None:
        settled["bits"] = UNKNOWN_BITS
    return {**settled, **found}


def check(config) -> None:
    """Refuse options that cannot be meant together."""
    o, given = config.cpt, config.given
    for name in FIXED:
        if name in given:
            raise UsageError(f"--{name} has no effect: the nodes of --cpt learn by plain AdaGrad; leave it out")
    if "vw_exact" in given:
        raise UsageError("VW has no --cpt for --vw_exact to follow: leave one of them out")
    if config.learner.loss_function not in (None, "squared", "logistic"):
        raise UsageError(
            f"--loss_function {config.learner.loss_function} gives no probabilities; --cpt takes squared or logistic"
        )
    if "cpt_alpha" in given and o.cpt_tree != "general":
        raise UsageError(f"--cpt_alpha has no effect: --cpt_tree {o.cpt_tree} does not ask the regressors")
    if o.cpt_search == "greedy":
        for name in ("top_k", "max_expand"):
            if name in given:
                raise UsageError(f"--{name} has no effect: --cpt_search greedy looks at one path only")
    if o.cpt_report == "losses":
        d = config.driver
        for flag, asked in (
            ("-p", d.predictions), ("-r", d.raw_predictions), ("--top_k", o.top_k), ("--calibration", o.calibration),
            ("--cpt_search", "cpt_search" in given), ("--max_expand", "max_expand" in given),
        ):  # fmt: skip
            if asked:
                raise UsageError(f"{flag} needs the search that --cpt_report losses leaves out: drop one of them")


def allowed(config) -> tuple[int, int, str]:
    """Lowest and highest label, and the option that says so."""
    return 1, label_tree.HIGHEST_LABEL, f"--cpt {config.cpt.cpt}"


class Report:
    """Sums over the labelled examples of one run, for its summary."""

    def __init__(self, options):
        self.options = options
        self.weight = self.squared = 0.0  # of all labelled
        self.known_weight = self.log = 0.0  # of those whose label had a leaf
        self.new = 0
        self.opened = np.zeros(MOST_OPENED + 1, np.int64)
        self.stopped = 0
        self.gap = 0.0
        self.bins = np.zeros((3, BINS))  # weight, weight * forecast, weight of the right ones

    def losses(self, labelled, weight, found) -> None:
        """Count the losses of the labels' probabilities."""
        w = np.where(labelled, weight, 0.0)
        known = labelled & found.known
        self.weight += float(w.sum())
        self.squared += float((w * (1.0 - found.p) ** 2).sum())
        self.known_weight += float(w[known].sum())
        self.log += float((w[known] * -np.log(np.maximum(found.p[known], 1e-300))).sum())
        self.new += int(np.count_nonzero(labelled & ~found.known & (weight > 0)))

    def searches(self, found, labelled, weight, right) -> None:
        """Count the nodes opened, and how often the answers were right."""
        self.opened += np.bincount(np.minimum(found.opened, MOST_OPENED), minlength=MOST_OPENED + 1)
        self.stopped += int(np.count_nonzero(found.gap))
        self.gap = max(self.gap, float(found.gap.max(initial=0.0)))
        if self.options.calibration is not None:
            forecast = found.top_p[labelled, 0]
            w = weight[labelled]
            place = np.minimum((forecast * BINS).astype(np.int64), BINS - 1)
            for row, worth in enumerate((w, w * forecast, w * right[labelled])):
                self.bins[row] += np.bincount(place, worth, BINS)

    def lines(self) -> list[str]:
        """What the summary says."""
        found = []
        if self.weight > 0:
            found.append(f"average squared loss = {self.squared / self.weight:.6f}")
        if self.known_weight > 0:
            log = self.log / self.known_weight
            found.append(f"average log loss = {log:.6f}")
            if self.options.perplexity:
                found.append(f"perplexity = {math.exp(min(log, 700.0)):.6g}")
        if self.new:
            found.append(f"labels seen for the first time = {self.new}, without log loss")
        if (n := int(self.opened.sum())) > 0:
            total = np.cumsum(self.opened)
            median, high = (int(np.searchsorted(total, share * n)) for share in (0.5, 0.99))
            mean = float((self.opened * np.arange(MOST_OPENED + 1)).sum()) / n
            found.append(f"nodes opened by a search: mean {mean:.1f}, median {median}, 99 % {high}")
        if self.stopped:
            found.append(
                f"searches ended by --max_expand = {self.stopped}; a class left out may have up to {self.gap:.6f}"
            )
        if self.options.calibration is not None and (weight := self.bins[0].sum()) > 0:
            found.append(f"expected calibration error = {np.abs(self.bins[1] - self.bins[2]).sum() / weight:.6f}")
        return found

    def write_calibration(self) -> None:
        """Write the reliability table, a line per bin that is not empty."""
        path = self.options.calibration
        lines = ["from\tto\tmean_forecast\tobserved\tweight"]
        for j in range(BINS):
            weight, forecast, right = self.bins[:, j]
            if weight > 0:
                lines.append(
                    f"{j / BINS:g}\t{(j + 1) / BINS:g}\t{forecast / weight:.6f}\t{right / weight:.6f}\t{weight:g}"
                )
        try:
            with open(path, "w", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
        except OSError as error:
            raise DataError(f"{path}: the reliability table cannot be written there: {error.strerror}") from None


class ProbabilityTree:
    """The learner behind `--cpt`."""

    def __init__(self, config, testing: bool):
        o = self.options = config.cpt
        bits = config.learner.bits
        self.memory = node_weights.SLOT_BYTES << bits
        learner.check_memory(bits, node_weights.SLOT_BYTES)
        kind = loss.CODES[config.learner.loss_function]
        self.weights = node_weights.new_weights(bits, kind, config.learner.learning_rate)
        self.tree = label_tree.roomy(min(o.cpt, 1 << 20))
        self.random = np.array([config.driver.random_seed], np.uint64)
        driver = config.driver
        self.listing = o.top_k is not None or driver.raw_predictions is not None
        self.whole = (
            self.listing
            or driver.predictions is not None
            or o.calibration is not None
            or o.cpt_search == "greedy"
            or "progress" in config.given
        )
        self.settings = Settings(
            alpha={"general": o.cpt_alpha, "balanced": 1.0, "random": 0.0}[o.cpt_tree],
            unit=o.normalize_features == "unit",
            greedy=o.cpt_search == "greedy",
            budget=o.max_expand,
            search=o.cpt_report == "argmax",
        )
        self.report = Report(o)
        self.examples = 0
        self.threads = ThreadPoolExecutor(os.cpu_count() or 1, "predict")
        self.stages = [self._sweep]

    def close(self):
        self.threads.shutdown()

    def _scratch(self, batch) -> Scratch:
        longest = int(np.diff(batch.start).max(initial=0))
        levels = int(self.tree.size[DEEPEST]) + 8
        return Scratch(
            np.empty(longest, np.uint64), np.empty(longest, np.float32), np.empty(longest * levels, np.int64),
            np.empty(levels, np.int64), np.empty(levels, np.float32), np.empty(levels), np.empty(levels, np.int64),
            np.empty(levels),
        )  # fmt: skip

    def _sweep(self, work: Work) -> None:
        batch = work.batch
        n = batch.n
        labelled = ~np.isnan(batch.label)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64)
        learns = labelled & (batch.weight > 0) if work.learn else np.zeros(n, bool)
        # a row of the progress table shows the very argmax; else being right or wrong is enough
        number = self.examples + 1 + np.arange(n)
        whole = np.ones(n, bool) if self.whole else number & (number - 1) == 0
        self.examples += n
        k = self.options.top_k or 1
        found = Found(
            np.zeros(n, bool), np.zeros(n), np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n, np.int64),
            np.zeros(n),
        )  # fmt: skip
        if work.learn:
            done = 0
            while True:
                done = self._rows(batch, label, learns, whole, done, n, found)
                if done == n:
                    break
                if not label_tree.has_room(self.tree):
                    self.tree = label_tree.grown(self.tree)
        else:
            shares = max(1, min(os.cpu_count() or 1, n // 64))
            edges = [n * t // shares for t in range(shares + 1)]
            list(
                self.threads.map(
                    lambda t: self._rows(batch, label, learns, whole, edges[t], edges[t + 1], found), range(shares)
                )
            )
        self._finish(work, labelled, found)

    def _rows(self, batch, label, learns, whole, begin, end, found) -> int:
        return sweep(
            self.tree, self.weights, self.settings, self.random, batch, label, learns, whole, begin, end,
            self._scratch(batch), found,
        )  # fmt: skip

    def _finish(self, work: Work, labelled, found) -> None:
        weight = work.batch.weight.astype(np.float64)
        work.prediction = found.top[:, 0].astype(np.float64)
        self.report.losses(labelled, weight, found)
        if self.settings.search:
            right = work.prediction == work.batch.label
            work.loss = np.where(labelled & ~right, weight, 0.0)
            self.report.searches(found, labelled, weight, right)
        else:
            work.loss = np.where(labelled, weight * (1.0 - found.p) ** 2, 0.0)
        if self.listing:
            size = np.count_nonzero(found.top, axis=1)
            rest = np.maximum(0.0, 1.0 - found.top_p.sum(axis=1))
            labels = np.concatenate([found.top, np.zeros((len(size), 1), np.int64)], axis=1)
            masses = np.concatenate([found.top_p, rest[:, None]], axis=1)
            shown = np.ones(labels.shape, bool)
            shown[:, :-1] = found.top > 0
            work.scores = masses[shown].astype(np.float32)
            work.score_labels = labels[shown]
            work.score_start = np.concatenate([[0], np.cumsum(size + 1)])

    def summary(self) -> list[str]:
        """Lines after those every run has."""
        if self.options.calibration is not None:
            self.report.write_calibration()
        classes = (int(self.tree.size[NODES]) + 1) // 2
        return [*self.report.lines(), f"classes in the tree = {classes}, depth = {int(self.tree.size[DEEPEST])}"]

    # model

    def banner(self) -> list[str]:
        o = self.options
        rule = f"cpt_alpha = {o.cpt_alpha:g}" if o.cpt_tree == "general" else f"cpt_tree = {o.cpt_tree}"
        return [f"cpt: {rule}", f"memory: {self.memory / 2**20:.0f} MB of weights"]

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            **label_tree.arrays("tree", self.tree),
            **node_weights.weights_arrays("weights", self.weights),
            "random": self.random,
        }

    def facts(self) -> dict:
        return {}

    def restore(self, arrays: dict[str, np.ndarray], facts: dict) -> None:
        self.tree = label_tree.restored("tree", arrays)
        node_weights.restore_weights("weights", self.weights, arrays)
        model_file.fill("random", arrays, self.random)


REDUCTION = Reduction(
    name="cpt",
    title="Conditional probability tree",
    summary="a tree of probabilities that grows with the classes it meets: probabilities and the exact top k, in "
    "logarithmic time",
    options=Options,
    labels="multiclass",
    enabled="adagrad, cpt",
    build=ProbabilityTree,
    check=check,
    settle=settle,
    allowed=allowed,
)
