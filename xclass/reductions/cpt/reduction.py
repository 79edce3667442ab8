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
          AdaGrad on examples of unit length, columns of numbers divided by their mean size (`feature_scaling`), no
          step beyond the label: `adagrad`. Nodes of more than two branches:
          `wide_nodes`.
Defaults  by error % on the last tenth of train, spelling / wordnet / panlex at -b 24, one pass:
          squared loss, rate .5, alpha .6     16.9 / 73.1 / 80.0    (log loss 1.04 of spelling, 4.96 of panlex)
          steps that may go beyond the label  18.8 / 74.1 / 80.6
          rate .7                             17.3 / 73.8
          logistic loss, rate 1               22.0 / 76.0 / 80.9    (log loss 1.04, 4.79)
          alpha .3, .45, .8                   17.5, 17.6, 17.4 / 73.5, 73.0, 72.8 / 80.2, 80.1, 80.2
          balanced, random                    25.5, 25.8 / 73.8, 74.3 / 80.3, 80.3
          Three passes of --multiclass at rate .25, .35, .5: clinc150 5.2, 4.9, 4.9, reuters 14.4, 14.3, 14.9,
          spelling 8.4, 8.1, 8.3, wordnet 67.2, 67.5, 67.7.
          Searches of trees that vote propose --candidates labels each; in learning, only these are known of a tree.
Trees     --cpt_tree kmeans makes the tree of the first --tree_sample examples that can be learned from
          (two_means), FILE takes one as it is (tree_file). Then the regressors learn, all of the sample's
          examples included: the tree has seen their labels, no regressor has, so progressive losses of these examples
          are a little better than those to come. Labels the tree lacks are inserted as they come, by the rule below.
          What makes the difference on such trees, by error % on the last tenth of train at -b 24 (26 for ptb, wiki):

                                      clinc150  reuters  spelling  wordnet  panlex   ptb    wiki
          one pass, squared, rate .5     7.6      16.2     12.7     71.7     78.2    77.7   82.7
          rate .35                       8.1      16.0     13.4     72.6     77.6    77.7   82.4
          rate .25                       8.4      16.2     14.6     74.7     77.4
          logistic, rate 1               8.7      17.1     15.4     74.8     78.8
          five passes, rate .35          5.9      15.3     10.0     70.3     78.3
          rate .25                       5.9      15.3     10.4     70.2     77.6
          rate .125                      7.1      16.0     12.2     72.1     77.0

          Before steps ended at the label: labels of it at random 28.2 on spelling and 75.3 on wordnet, where the tree
          had 13.7 and 73.1 at rate .35; a quarter of the slots 13.7 and 77.2, four times as many 13.5 and 71.9;
          examples not of length 1 13.8 and 77.3; the mean of the second half's weights 13.7 and 74.1. The tree and
          the rate matter, collisions where there are few examples a class, averaging does not. A smaller rate is best
          for several passes: .25, and .35 where the tree grows.

A new label walks down from the root and goes right where (with p as the regressor of the node gives it)

    (1 - alpha) * 2 * (p - 1/2)  +  alpha * log2(L / R)  >  0

to the leaf it splits; every regressor on the way learns the turn taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...binary import adagrad, feature_scaling, finite, gd, loss
from ...data.batch import HIGHEST_LABEL, Batch
from ...errors import DataError
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import probabilities, tree_view
from ..core.base import Learner, Outlined, Previews, Reduction
from ..core.calibration import Report
from ..core.contract import BatchTask
from ..core.result import Result
from ..core.spec import LearnerSpec, Wanted
from ..core.tree_view import TreeNode
from . import (
    binary_nodes,
    huffman,
    label_tree,
    reranking,
    sampled_tree,
    tree_file,  # fmt: skip
)
from .binary_nodes import DEEPEST, NODES, Found, Settings
from .options import GROWN, MADE, TAKEN, Options, check, refused, resolve_defaults
from .tree_member import Member


def label_range(spec: LearnerSpec) -> tuple[int, int, str]:
    """Lowest and highest label, and the option that says so."""
    return 1, HIGHEST_LABEL, "--multiclass" if "multiclass" in spec.given else f"--cpt {spec.options.cpt}"


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    """Refuse a model of another number of trees, before room is made for them."""
    stored_arrays.check_rows("random", arrays, spec.options.trees)


Spread = list[list[tuple[Int64s, Float64s]]]  # by tree and example: all labels in order and their probabilities


class ProbabilityTree(Learner, Previews, Outlined):
    """The learner behind `--cpt`."""

    def __init__(self, spec: LearnerSpec) -> None:
        o = self.options = spec.options
        bits = spec.binary.bits
        gd.check_memory(bits, adagrad.SLOT_BYTES)
        kind = loss.CODES[spec.binary.loss_function]
        settings = Settings(
            alpha={"balanced": 1.0, "random": 0.0}.get(o.cpt_tree, o.cpt_alpha),
            noise=np.float32(0),
            unit=o.normalize_features != "none",
            greedy=o.cpt_search == "greedy",
            budget=o.max_expand,
            search=o.cpt_report == "argmax",
            cut=o.candidate_cut if o.rerank else 0.0,
        )
        part = max(bits - (o.trees - 1).bit_length(), 4)
        self.memory = o.trees * adagrad.SLOT_BYTES << part
        self.members = []
        for t in range(o.trees):
            one = settings._replace(noise=np.float32(o.tree_noise if t > 0 else 0.0))
            seed = (spec.seed + t) % 2**64
            self.members.append(Member(min(o.cpt, 1 << 20), part, kind, spec.binary, one, o.cpt_arity, seed))
        self.scales = feature_scaling.for_option(o.normalize_features)
        self.scorers = None
        self.scales_examples = settings.unit
        self.largest_step = finite.largest_step(max(spec.binary.learning_rate, o.rerank_rate if o.rerank else 0.0))
        if o.rerank:
            self.memory += adagrad.SLOT_BYTES << bits
            self.scorers = reranking.new_scorers(bits, kind, o.rerank_rate)
        self.names = spec.names
        if o.save_tree is not None:
            tree_file.check_place(o.save_tree)
        self.sample: sampled_tree.Sample | huffman.Counts | None = None
        self.sampled: feature_scaling.Scales | None = None  # of the sample
        self.placed = ""  # for the summary
        self.highest_placed = 0  # label
        if not spec.loaded and not spec.testing and o.cpt_tree in MADE:
            kmeans = o.cpt_tree == "kmeans"
            self.sample = sampled_tree.Sample(o.tree_sample) if kmeans else huffman.Counts(o.tree_sample)
            self.sampled = feature_scaling.for_option(o.normalize_features) if kmeans else None
        elif not spec.loaded and o.cpt_tree not in GROWN:
            self._plant(self._read(o.cpt_tree))
        self.search = settings.search
        self.want(spec.wanted)
        # weights: of all labels; of those not proposed; of those proposed and not chosen
        self.label_weight = self.missed = self.mistaken = 0.0
        self.examples = 0
        self.stages = [self._learn_batch] if self.scorers is None else [self._learn_batch, self._rerank]
        if self.scales is not None:
            self.stages.insert(0, self._scale)

    @property
    def most_rows(self) -> int | None:
        """Few where every label of the tree is listed."""
        classes = int(self.members[0].tree.size[NODES]) // 2 + 1024
        return max(1, probabilities.MOST_PAIRS // classes) if self.asked.probabilities else None

    # a tree to begin with

    @property
    def preview_size(self) -> int | None:
        return None if self.sample is None else self.sample.examples

    def preview(self, task: BatchTask) -> bool:
        batch, counted = task.batch, task.learned()
        if self.sampled is not None:
            batch = self.sampled.scaled(batch, counted)
        assert self.sample is not None  # or none would be wanted
        return self.sample.add(batch, counted)

    def end_preview(self) -> None:
        assert self.sample is not None
        room = min(self.options.cpt, 1 << 20)
        trees = self.sample.trees([int(one.random[0]) for one in self.members], self.share, room)
        if trees:
            self._plant(trees)
            classes = (int(trees[0].size[NODES]) + 1) // 2
            self.highest_placed = int(trees[0].label.max())
            self.placed = f", {classes} of them placed after a look at {self.sample.seen} examples"
        self.sample = self.sampled = None

    def _read(self, path: str) -> list[label_tree.Tree]:
        if not os.path.exists(path):
            raise DataError(f"{path}: there is no such file; --cpt_tree takes {', '.join(GROWN + MADE)}, or a FILE")
        trees = tree_file.read(path, self.names)
        if len(trees) != len(self.members):
            raise DataError(f"{path}: has {len(trees)} trees; give --trees {len(trees)}, or a file with one for each")
        return trees

    def _plant(self, trees: list[label_tree.Tree]) -> None:
        for one, tree in zip(self.members, trees, strict=True):
            one.tree = tree

    def _scale(self, task: BatchTask) -> None:
        """The first stage, where features may be columns."""
        assert self.scales is not None  # or this would be no stage
        task.batch = self.scales.scaled(task.batch, task.learned())

    def _learn_batch(self, task: BatchTask) -> None:
        batch = task.batch
        n = batch.n
        labelled = ~np.isnan(batch.label)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64)
        learns = task.learned()
        # a row of the progress table shows the very argmax; else being right or wrong is enough
        number = self.examples + 1 + np.arange(n)
        whole = np.ones(n, bool) if self.whole else number & (number - 1) == 0
        self.examples += n
        best = self.asked.top_k or 1
        trees = len(self.members)
        if self.scorers is not None:
            k = self.options.candidates  # whatever is written, as it is learned from
        else:
            k = best if trees == 1 else max(best, self.options.candidates)
        found = Found(
            np.zeros((trees, n), bool), np.zeros((trees, n)), np.zeros((trees, n), np.int64), np.zeros((trees, n)),
            np.zeros((trees, n, k), np.int64), np.zeros((trees, n, k)), np.zeros((trees, n), np.int64),
            np.zeros((trees, n)),
        )  # fmt: skip
        each = [Found(*(np.ascontiguousarray(array[t]) for array in found)) for t in range(trees)]
        shares = [(0, n)] if task.learn else self.rows_of_threads(n)
        jobs = [(t, a, b) for a, b in shares for t in range(trees)]
        if self.asked.probabilities:
            nothing = np.empty(0, np.int64), np.empty(0)
            spread: Spread = [[nothing] * n for _ in range(trees)]

            def one(t: int, a: int, b: int) -> None:
                self.members[t].learn_batch_with_probabilities(batch, label, learns, whole, a, b, each[t], spread[t])

            self.share(one, jobs)
            task.listing = _mean_listing(spread)
        else:
            self.share(lambda t, a, b: self.members[t].learn_batch(batch, label, learns, whole, a, b, each[t]), jobs)
        if self.scorers is not None:
            task.plan = (labelled, label, learns, found)
            return
        if trees == 1:
            top, top_p = each[0].top, each[0].top_p
        else:
            top, top_p = self._vote(batch, found, best, judged=not task.learn)
        self._finish(task, labelled, found.known[0], found.p.mean(axis=0), found, top, top_p)

    def _rerank(self, task: BatchTask) -> None:
        """The second stage: choose among what the trees proposed."""
        labelled, label, learns, found = task.plan
        task.plan = None
        trees, n, k = found.top.shape
        best = trees * k if self.asked.probabilities else self.asked.top_k or 1
        candidate = np.empty((n, trees * k), np.int64)
        binary_nodes.union_of_candidates(found.top, candidate)
        proposed = reranking.Proposed(found.top, found.top_p, found.p, candidate)
        ranked = reranking.Ranked(np.zeros((n, best), np.int64), np.zeros((n, best)), np.zeros(n), np.zeros(n, bool))
        shares = [(0, n)] if task.learn else self.rows_of_threads(n)
        unit = self.options.normalize_features != "none"

        def job(begin: int, end: int) -> None:
            scratch = reranking.scratch(task.batch, trees * k)
            reranking.rank(self.scorers, unit, task.batch, label, learns, begin, end, proposed, scratch, ranked)

        self.share(job, shares)
        if self.asked.probabilities:
            assert task.listing is not None  # of the stage before
            task.listing = reranking.rescaled_listing(task.listing, ranked)
        self._finish(task, labelled, found.known[0], ranked.p, found, ranked.top, ranked.top_p)
        weight = np.where(labelled, task.batch.weight.astype(np.float64), 0.0)
        wrong = task.prediction != task.batch.label
        self.label_weight += float(weight.sum())
        self.missed += float(weight[~ranked.inside].sum())
        self.mistaken += float(weight[ranked.inside & wrong].sum())

    def _vote(self, batch: Batch, found: Found, best: int, judged: bool) -> tuple[Int64s, Float64s]:
        """The best labels of several trees, and their mean probabilities."""
        trees, n, k = found.top.shape
        candidate = np.empty((n, trees * k), np.int64)
        binary_nodes.union_of_candidates(found.top, candidate)
        p = np.empty((trees, n if judged else 0, trees * k))
        if judged:
            jobs = [(t, a, b) for a, b in self.rows_of_threads(n) for t in range(trees)]
            self.share(lambda t, a, b: self.members[t].candidate_probabilities(batch, a, b, candidate, p[t]), jobs)
        top, top_p = np.zeros((n, best), np.int64), np.zeros((n, best))
        binary_nodes.vote(found.top, found.top_p, candidate, p, judged, top, top_p)
        return top, top_p

    def _finish(
        self, task: BatchTask, labelled: Bools, known: Bools, p: Float64s, found: Found, top: Int64s, top_p: Float64s
    ) -> None:
        weight = task.batch.weight.astype(np.float64)
        task.prediction = top[:, 0].astype(np.float64)
        self.report.losses(labelled, weight, known, p)
        self.report.regressors(labelled, weight, known, found.asked.mean(axis=0), found.loss.mean(axis=0))
        if self.search:
            right = task.prediction == task.batch.label
            task.loss = np.where(labelled & ~right, weight, 0.0)
            for t in range(len(self.members)):
                self.report.searches(found.opened[t], found.gap[t])
            self.report.answers(top_p[:, 0], labelled, weight, right)
        else:
            task.loss = np.where(labelled, weight * (1.0 - p) ** 2, 0.0)
        if self.asked.top_k is not None:
            self.report.tops(labelled, weight, task.batch.label, top)
        if self.listing:
            rest = np.maximum(0.0, 1.0 - top_p.sum(axis=1))
            task.listing = probabilities.listing(top, top_p, np.count_nonzero(top, axis=1), rest)
            task.scores, task.score_labels, task.score_start = task.listing[:3]

    @property
    def classes_met(self) -> int:
        return int(np.count_nonzero(self.members[0].tree.key))

    def want(self, wanted: Wanted) -> None:
        self.asked = wanted.answers
        self.listing = self.asked.top_k is not None or wanted.scores
        self.whole = (
            self.listing
            or self.asked.listed
            or self.asked.calibration is not None
            or self.options.cpt_search == "greedy"
            or wanted.exact_answer
            or self.options.trees > 1
            or self.options.rerank
        )
        self.report = Report(self.asked, self.options.cpt_arity - 1)

    def results(self) -> list[Result]:
        """Return the reliability table and the tree, where they are asked for."""
        found = self.report.results()
        if self.options.save_tree is not None:
            trees = [one.tree for one in self.members]
            found.append(tree_file.result(self.options.save_tree, trees, self.names))
        return found

    def summary(self) -> list[str]:
        """Lines after those every run has."""
        classes = (int(self.members[0].tree.size[NODES]) + 1) // 2
        depth = max(int(one.tree.size[DEEPEST]) for one in self.members)
        shares = []
        if self.label_weight > 0:
            shares.append(f"label not proposed (routing error) = {self.missed / self.label_weight:.6f}")
            shares.append(f"label proposed, not chosen (scoring error) = {self.mistaken / self.label_weight:.6f}")
        nodes = sum(int(one.tree.size[NODES]) for one in self.members)
        return [
            *self.report.lines(), *shares, *(self.scales.told if self.scales is not None else []),
            f"classes in the tree = {classes}{self.placed}, depth = {depth}",
            tree_view.statistics(nodes, np.concatenate([label_tree.depths(one.tree) for one in self.members])),
        ]  # fmt: skip

    def outline(self, levels: int) -> Iterator[TreeNode]:
        """The nodes of the first levels, tree after tree."""
        for t, one in enumerate(self.members):
            if one.tree.size[NODES]:
                name = "{}" if len(self.members) == 1 else f"{t}.{{}}"
                yield from tree_view.preorder(0, levels, partial(label_tree.node_view, one.tree), name)

    # model

    def banner(self) -> list[str]:
        o = self.options
        rule = "" if o.cpt_tree in ("balanced", "random") else f"cpt_alpha = {o.cpt_alpha:g} "
        if o.cpt_tree != "general":
            rule = f"cpt_tree = {o.cpt_tree} {rule}"
        if o.cpt_arity > 2:
            rule = f"cpt_arity = {o.cpt_arity} {rule}"
        scorers = f" rerank, candidates = {o.candidates}" if o.rerank else ""
        return [f"cpt: {rule}trees = {o.trees}{scorers}", f"memory: {self.memory / 2**20:.0f} MB of weights"]

    def arrays(self) -> dict[str, Stored]:
        found: dict[str, Stored] = {"random": np.concatenate([one.random for one in self.members])}
        for t, one in enumerate(self.members):
            found.update(label_tree.arrays(f"tree.{t}", one.tree))
            found.update(adagrad.weights_arrays(f"weights.{t}", one.weights))
        if self.scales is not None:
            found.update(self.scales.arrays())
        if self.scorers is not None:
            found.update(reranking.arrays(self.scorers))
        return found

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Take over a model.

        `label_tree.restored`, `adagrad.restore_weights`, `feature_scaling` and `reranking.restore` say what their
        checks protect. `random` is the state of a generator, for which any number will do.
        """
        self.sample = self.sampled = None
        with stored_arrays.whole(arrays, facts) as (arrays, _):
            random = stored_arrays.take("random", arrays, np.uint64, (len(self.members),))
            for t, one in enumerate(self.members):
                one.tree = label_tree.restored(f"tree.{t}", arrays)
                one.check_memory(f"tree.{t}.left")
                adagrad.restore_weights(f"weights.{t}", one.weights, arrays)
                one.random[0] = random[t]
            if self.scales is not None:
                self.scales.restore(arrays)
            if self.scorers is not None:
                reranking.restore(self.scorers, arrays)


def _mean_listing(spread: Spread) -> probabilities.Listing:
    """All labels in order and the mean of their probabilities; `spread[t][i]` as tree t gives it of example i.

    Trees have the same labels but where they came from a file and lack some; there such labels have probability 0.
    """
    labels, masses, sizes = [], [], [0]
    for each in zip(*spread, strict=True):
        label = each[0][0]
        if not all(np.array_equal(label, other) for other, _ in each):
            label = np.unique(np.concatenate([other for other, _ in each]))
            each = tuple((label, _among(label, *one)) for one in each)
        p = np.mean([p for _, p in each], axis=0)
        labels += [label, [0]]
        masses += [p, [0.0 if len(label) else 1.0]]
        sizes.append(len(label) + 1)
    return probabilities.Listing(
        np.concatenate(masses).astype(np.float32), np.concatenate(labels).astype(np.int64), np.cumsum(sizes)
    )


def _among(label: np.ndarray, own: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Probabilities of `label` where only some of them, `own`, have one; both rise."""
    found = np.zeros(len(label))
    found[np.searchsorted(label, own)] = p
    return found


REDUCTION = Reduction(
    name="cpt",
    title="Conditional probability tree",
    summary="a tree of probabilities: exact top k, new classes",
    options=Options,
    labels="multiclass",
    enabled="adagrad, cpt",
    build=ProbabilityTree,
    check=check,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=TAKEN,
    refused=refused,
)
