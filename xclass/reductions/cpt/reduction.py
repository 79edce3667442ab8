"""Learn a conditional probability tree, in which the estimates along the path to a label multiply to its probability.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009: algorithm 1 (training), algorithm 3 (the tree grown online).
Idea      The regressor of a node, leaves included, predicts whether the label is on the right (+1) or left (-1). A new
          label descends from the root and goes right if

              (1 - alpha) * 2 * (p - 1/2)  +  alpha * log2(L / R)  >  0

          until it reaches the leaf that it splits. Every regressor on its path learns the direction taken.
          --cpt_tree kmeans and huffman build the tree from the first --tree_sample examples, and --cpt_tree FILE reads
          one (`tree_file`). Then the regressors learn from all examples, including those of the sample. The progressive
          losses of the sample are slightly too low, because the tree was built from its labels. Labels that such a tree
          lacks are inserted by the rule above.
          At most about a share kappa = 1 / (1 + 2**(1 - 1/alpha)) of a node's leaves is on one side, so the depth is
          O(log K) for alpha > 0. At alpha = 0 the regressors alone decide, as in the paper's limit; then nothing but
          the number of classes bounds the depth, and time and buffers of an example grow with it.
Cost      O(s depth) for learning and for the probability of a given label; finding the most probable labels scores
          at most 7/3 times --beam nodes for each level of the tree, at O(s) each (`beam_search`).
Names     s features of an example | alpha is --cpt_alpha | L, R number of leaves on the left and right of a node |
          p probability of right according to the regressor | f(y|x) product of the probabilities along the path of y
Differs   from the paper (docs/papers.md says why, and what it costs):
          * an untrained regressor predicts 1/2
          * the leaf that an old label moves to begins untrained
          * regressors learn by AdaGrad from examples of length 1, with numeric columns divided by their mean size
          * with squared loss no step goes beyond the label
          * with squared loss the estimates lie between .01 and .99
          * weights have 8 significant bits, and those that learned least are evicted from a full table
          * there is one pass at alpha = .6
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from ...array_types import Bools, Float64s, Int64s, UInt32s
from ...binary import document_frequency, feature_scaling, finite, gd, loss, tagged_words
from ...data.batch import Batch
from ...errors import DataError, UsageError
from ...kernels.direct import DirectCall
from ...model.archive import Archive
from ..core import label_arrays, probabilities
from ..core.base import Reduction
from ..core.calibration import LabelStatistics, ResultFile
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec, LearnerUse
from . import binary_nodes, label_tree, sampled_tree, tree_file
from .binary_nodes import NODES, TreePredictions, TreeSettings
from .options import (
    GROWN,
    SAMPLED,
    CptOptions,
    check_arity,
    check_doublings,
    index_bytes,
    table_bits,
    weight_bytes,
)
from .tree_member import Member

_find = DirectCall(tagged_words, "mark_known")
MOST_RESERVED = 1 << 20  # labels for which trees reserve space at first
FEWEST_LEAVES = 2  # without which the root has no regressor


# for each tree and example, all labels in order and their probabilities; no items for trees that are not searched
Distributions = list[list[tuple[Int64s, Float64s]]]


@dataclass
class TreePlan:
    """Hold what the trees need to know about n examples, and what they write."""

    weighted: document_frequency.Weighted
    label: Int64s  # see `label_arrays.span`
    learns: Bools  # bool[n]
    output: TreePredictions  # of all trees
    distributions: Distributions | None  # None unless all probabilities are wanted


class ProbabilityTree(Reduction):
    """Learn one or several conditional probability trees, which vote (`--cpt`).

    Attributes
    ----------
    sample : examples collected for building the tree, None if none are needed
    sample_scales : scales of numeric columns in the sample, or None
    placed_text : text for the summary about the labels of the tree that was built from the sample
    predict_only : whether models hold only what predictions need
    weights_only : whether the learner only predicts and its tables are not inspected
    """

    report: LabelStatistics

    def __init__(self, spec: LearnerSpec) -> None:
        o: CptOptions = spec.options
        self.options = o
        self.predict_only = spec.binary.predict_only_model
        self.weights_only = spec.weights_only
        self.loaded, self.testing = spec.loaded, spec.testing
        self.decay = spec.binary.decay_learning_rate
        bits = self.bits = spec.binary.bits
        tree_bits = table_bits(o, bits)[0]
        if not self.weights_only:  # else they may be packed, and are checked when they are restored
            gd.check_memory(bits, -(-weight_bytes(o, bits) >> bits), index_bytes(o))
        kind = loss.CODES[spec.binary.loss_function]
        settings = TreeSettings(
            alpha={"balanced": 1.0, "random": binary_nodes.RANDOM}.get(o.cpt_tree, o.cpt_alpha),
            noise=np.float32(0),
            unit=o.normalize_features != "none",
            beam=o.beam,
            exact=o.exact,
            search=o.cpt_report == "argmax",
            cut=o.candidate_cut if o.rerank else 0.0,
        )
        check_arity(o)
        doublings = o.max_doublings or 0
        if "max_doublings" in spec.given and not spec.loaded:
            check_doublings(o, bits)
        self.capacity = min(o.cpt, MOST_RESERVED)
        self.members = []
        for t in range(o.trees):
            member_settings = settings._replace(noise=np.float32(o.tree_noise if t > 0 else 0.0))
            seed = (spec.seed + t) % 2**64
            member = Member(
                self.capacity, tree_bits, kind, spec.binary, member_settings, o.cpt_arity, seed, doublings,
                self.weights_only, o.momentum or 0.0,
            )  # fmt: skip
            self.members.append(member)
        self.scales = feature_scaling.from_option(o.normalize_features)
        if o.normalize_features == "idf" or self.has_index:
            weighting = o.normalize_features == "idf"
            self.frequencies = document_frequency.DocumentFrequencies(weighting, spec.constant, self.weights_only)
        self.scales_examples = settings.unit
        self.largest_step = finite.largest_step(max(spec.binary.learning_rate, o.rerank_rate if o.rerank else 0.0))
        self.names = spec.names
        self.sample: sampled_tree.TreeSample | sampled_tree.LabelCounts | None = None
        self.sample_scales: feature_scaling.Scales | None = None
        self.placed_text = ""
        self.highest_placed = 0  # highest label of a tree built from the sample
        if not spec.loaded and not spec.testing and o.cpt_tree in SAMPLED:
            kmeans = o.cpt_tree == "kmeans"
            self.sample = sampled_tree.TreeSample(o.tree_sample) if kmeans else sampled_tree.LabelCounts(o.tree_sample)
            self.sample_scales = feature_scaling.from_option(o.normalize_features) if kmeans else None
        elif not spec.loaded and o.cpt_tree not in (*GROWN, *SAMPLED):
            self._set_trees(self._read(o.cpt_tree))
        self.search = settings.search
        self.want(spec)
        self.stages = [self._process_batch]
        if self.scales is not None or self.frequencies is not None:
            self.stages.insert(0, self.prepare)

    @property
    def has_index(self) -> bool:
        """Return whether an index of features proposes classes, too."""
        return bool(self.options.rerank and self.options.index_slots)

    def find(self, feature: UInt32s) -> Bools | None:
        member, found = self.members[0], np.zeros(len(feature), bool)
        if member.tree.leaves[0] < FEWEST_LEAVES:
            return None
        _find(member.weights.words, feature, *member.blocks_of_root, found)
        return found

    @property
    def most_rows(self) -> int | None:
        """Return the most examples of a batch, fewer if all labels are listed, or None for no limit."""
        if not self.listing_options.probabilities:
            return None
        classes = int(self.members[0].tree.size[NODES]) // 2 + 1024
        return max(1, probabilities.MOST_PAIRS // classes)

    # the initial tree

    @property
    def awaited(self) -> float:
        return 0 if self.sample is None else self.sample.examples

    def preview(self, task: BatchTask) -> bool:
        """Add the examples of a task to the sample; return whether more are needed."""
        batch, counted = task.batch, task.learned()
        if self.sample_scales is not None:
            batch = self.sample_scales.scaled(batch, counted)
        assert self.sample is not None  # else there is no preview
        return self.sample.add(batch, counted)

    def end_preview(self) -> None:
        assert self.sample is not None
        trees = self.sample.trees([int(member.random[0]) for member in self.members], self.share, self.capacity)
        if trees:
            self._set_trees(trees)
            classes = (int(trees[0].size[NODES]) + 1) // 2
            self.highest_placed = int(trees[0].label.max())
            self.placed_text = f", {classes} of them placed by a sample of {self.sample.seen} examples"
        self.sample = self.sample_scales = None

    def _read(self, path: str) -> list[label_tree.ClassTree]:
        """Return the trees of a file, after checking that there is one for each member."""
        path = f"./{path}" if path.startswith("-") else path  # messages of a program would take it for an option
        if not os.path.exists(path):
            raise DataError(
                f"{path}: there is no such file; give --cpt_tree {', '.join(GROWN + SAMPLED)}, or the name of a file"
            )
        trees = tree_file.read(path, self.names)
        if len(trees) != len(self.members):
            raise DataError(
                f"{path}: the file has {len(trees)} trees, but --trees is {len(self.members)}; give "
                f"--trees {len(trees)}, or another file"
            )
        return trees

    def _set_trees(self, trees: list[label_tree.ClassTree]) -> None:
        for member, tree in zip(self.members, trees, strict=True):
            member.tree = tree

    def prepare(self, task: BatchTask) -> None:
        """Scale numeric columns and weight features, as the first stage."""
        if self.scales is not None:
            task.batch = self.scales.scaled(task.batch, task.learned())
        if self.frequencies is not None:
            task.plan = self.frequencies.weighted(task.batch, task.learned() & (not self.repeats))

    def batch_of_tree(self, t: int, batch: Batch, weighted: Batch) -> Batch:
        """Return what tree t sees."""
        return (weighted, batch)[t % binary_nodes.FORMS]

    def _process_batch(self, task: BatchTask) -> None:
        """Predict with the trees, learn from the batch and finish the task."""
        plan = self.begin(task)
        self.process_rows(task, plan, 0, task.batch.n, len(self.members))
        self.list_labels(task, plan.distributions)
        self._finish_trees(task, plan)

    def process_rows(self, task: BatchTask, plan: TreePlan, begin: int, end: int, count: int) -> None:
        """Let the first `count` trees predict the examples begin..end-1 and learn from them."""
        batches = [self.batch_of_tree(t, task.batch, plan.weighted.batch) for t in range(count)]
        by_tree = [plan.output.of_tree(t) for t in range(count)]

        def learn(t: int, a: int, b: int) -> None:
            member, given = self.members[t], (batches[t], plan.label, plan.learns, a, b, by_tree[t])
            if plan.distributions is None:
                member.process_rows(*given)
            else:
                member.process_rows_with_probabilities(*given, plan.distributions[t])

        shares = [(begin, end)] if task.learn else self.thread_ranges(end)
        self.share(learn, [(t, a, b) for a, b in shares for t in range(count)], task.batch.n)

    def list_labels(self, task: BatchTask, distributions: Distributions | None) -> None:
        if distributions is not None:
            task.class_lists = self._mean_class_lists(distributions)

    @staticmethod
    def _mean_class_lists(distributions: Distributions) -> probabilities.ClassLists:
        """Return the listing of all labels with the mean of their probabilities over the trees.

        A label that a tree lacks has probability 0 there. Trees without labels, as those not searched, do not count.
        """
        labels, masses, sizes = [np.empty(0, np.int64)], [np.empty(0)], [0]
        for pairs in zip(*distributions, strict=True):
            pairs = tuple(pair for pair in pairs if len(pair[0])) or pairs[:1]
            label = pairs[0][0]
            if not all(np.array_equal(label, tree_labels) for tree_labels, _ in pairs):
                label = np.unique(np.concatenate([tree_labels for tree_labels, _ in pairs]))
                pairs = tuple((label, _aligned(label, *pair)) for pair in pairs)
            p = np.mean([p for _, p in pairs], axis=0)
            labels += [label, np.zeros(1, np.int64)]
            masses += [p, np.array([0.0 if len(label) else 1.0])]
            sizes.append(len(label) + 1)
        return probabilities.ClassLists(
            np.concatenate(masses).astype(np.float32), np.concatenate(labels).astype(np.int64), np.cumsum(sizes)
        )

    def begin(self, task: BatchTask) -> TreePlan:
        batch, n = task.batch, task.batch.n
        output = binary_nodes.new_predictions(len(self.members), n, k=self.proposals)
        no_labels = np.empty(0, np.int64), np.empty(0)
        listed = [[no_labels] * n for _ in self.members] if self.listing_options.probabilities else None
        weighted = task.plan or document_frequency.not_weighted(batch)
        return TreePlan(weighted, label_arrays.whole(batch), task.learned(), output, listed)

    @property
    def proposals(self) -> int:
        """Return how many labels every tree lists for an example."""
        list_size = self.listing_options.top_k or 1
        return list_size if len(self.members) == 1 else max(list_size, self.options.candidates)

    def _finish_trees(self, task: BatchTask, plan: TreePlan) -> None:
        """Let the trees vote and finish the task."""
        output = plan.output
        if len(self.members) == 1:
            top, top_p, p = output.top[0], output.top_p[0], output.p[0]
        else:
            batches = []
            if not task.learn:
                batches = [self.batch_of_tree(t, task.batch, plan.weighted.batch) for t in range(len(self.members))]
            top, top_p = self.vote(batches, output, self.listing_options.top_k or 1, score_candidates=not task.learn)
            p = output.p.mean(axis=0)
        self._finish(task, output, p, top, top_p)

    def vote(
        self, batches: list[Batch], predictions: TreePredictions, best: int, score_candidates: bool
    ) -> tuple[Int64s, Float64s]:
        """Return the `best` most probable labels of several trees, each of its batch, and their mean probabilities."""
        trees, n, k = predictions.top.shape
        candidate = np.empty((n, trees * k), np.int64)
        binary_nodes.union_of_candidates(predictions.top, candidate)
        p = np.empty((trees, n if score_candidates else 0, trees * k))
        if score_candidates:
            jobs = [(t, a, b) for a, b in self.thread_ranges(n) for t in range(trees)]
            self.share(
                lambda t, a, b: self.members[t].candidate_probabilities(batches[t], a, b, candidate, p[t]), jobs, n
            )
        top, top_p = np.zeros((n, best), np.int64), np.zeros((n, best))
        binary_nodes.vote(predictions.top, predictions.top_p, candidate, p, score_candidates, top, top_p)
        return top, top_p

    def _finish(self, task: BatchTask, predictions: TreePredictions, p: Float64s, top: Int64s, top_p: Float64s) -> None:
        """Set the prediction, loss and listing of a task and update the report."""
        batch, known = task.batch, predictions.known[0]
        labelled, weight = ~np.isnan(batch.label), batch.weight.astype(np.float64)
        self.set_best(task, top, top_p, known, p)
        self.report.add_regressors(labelled, weight, known, predictions.regressors, predictions.loss)
        if self.search:
            self.report.add_searches(predictions.opened, predictions.gap)
        else:
            task.loss, task.answer_probability = np.where(labelled, weight * (1.0 - p) ** 2, 0.0), None

    @property
    def number_searched(self) -> int:
        """Return how many trees are searched if nothing is being learned."""
        return len(self.members)

    @property
    def classes_seen(self) -> int:
        return int(np.count_nonzero(self.members[0].tree.key))

    @property
    def highest_seen(self) -> int:
        return int(self.members[0].tree.key.max(initial=0))

    def can_learn(self, label: Int64s) -> Bools:
        """Return whether every tree that is searched has a leaf of each label; the others lack rare ones."""
        known = np.ones(len(label), bool)
        leaf = np.empty(len(label), np.int64)
        for member in self.members[: self.number_searched]:
            label_tree.find_all(member.tree, label, leaf)
            known &= leaf >= 0
        return known

    def end_pass(self) -> None:
        for member in self.members:
            member.weights = member.weights._replace(rate=np.float32(member.weights.rate * self.decay))

    def new_report(self) -> LabelStatistics:
        return LabelStatistics(self.listing_options, self.options.cpt_arity - 1)

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        if self.options.beam == 0 and self.proposals > 1 and not self.options.exact:
            of_candidates = self.proposals == self.options.candidates and (self.options.rerank or len(self.members) > 1)
            raise UsageError(
                f"--beam 0 follows each tree to a single class, but {self.proposals} classes are wanted "
                f"({'--candidates' if of_candidates else '--top_k'}); give --exact (-i takes it, too), or learn with "
                "--beam 1 or more"
            )
        if not self.options.rerank:  # scorers learn from as many candidates whatever is listed
            for member in self.members:
                member.settings = member.settings._replace(
                    beam=max(self.options.beam, self.proposals if self.proposals > 1 else 0)
                )

    def results(self) -> list[ResultFile]:
        results = self.report.results()
        if self.options.save_tree is not None:
            trees = [member.tree for member in self.members]
            results.append(tree_file.result(self.options.save_tree, trees, self.names))
        return results

    def node_name(self, t: int) -> str:
        """Return the format of the names of the nodes of tree t, given their numbers."""
        return "{}" if len(self.members) == 1 else f"{t}.{{}}"

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; the functions called here say what their checks protect."""
        if not archive.saves:
            self.sample = self.sample_scales = None
        random = np.concatenate([member.random for member in self.members])
        archive.fill("random", random)
        for t, member in enumerate(self.members):
            member.tree = label_tree.serialize(archive, f"tree.{t}", member.tree)
            if not archive.saves:
                member.check_memory(f"tree.{t}.left")
            words = tagged_words.serialize(archive, f"weights.{t}", member.weights.words)
            member.weights = member.weights._replace(words=words)
            member.random[0] = random[t]
        for part in (self.scales, self.frequencies):
            if part is not None:
                part.serialize(archive)


def _aligned(label: np.ndarray, own: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the probabilities of `label`, 0 for those not in `own`; both arrays are ascending."""
    extended = np.zeros(len(label))
    extended[np.searchsorted(label, own)] = p
    return extended
