"""Learn lists of labels by a tree with an estimate at each node of the probability that some label is below it.

Source    Jasinska-Kobus, Wydmuch, Thiruvenkatachari, Dembczynski, "Online Probabilistic Label Trees", AISTATS 2021, for
          the tree that grows; Jasinska, Dembczynski, Busa-Fekete, Pfannschmidt, Klerx, Hullermeier, "Extreme F-measure
          Maximization using Sparse Probability Estimates", ICML 2016, for probabilistic label trees.
Idea      The estimate at a node is the probability of a label below it, given that there is one below its parent. The
          product along the path to a leaf is the probability of its label. An example trains the nodes on the paths of
          its labels towards 1 and their siblings towards -1. Products fall along a path, so a search that always opens
          the most probable node finds the labels in the order of their probabilities.
          A label enters the tree with its first example. The leaf that it splits becomes a node above its old label,
          whose new leaf begins sure of 1, and the new label's leaf begins sure of -1: this is what all examples so far
          have said. Regressors do not learn while they are sure of what is right (`arow`), so all is as if the tree had
          been known from the start.
Cost      O(s) for each block of up to eight nodes. The path of a label has about log2(K) / 3 of them, and a search
          opens the most probable ones; O(K) memory in addition to the weights.
Names     s features of one example | K labels | alpha is --plt_alpha.
Differs   from the papers (docs/papers.md says why, and what it costs):
          * a node has up to eight children, which are three levels of a binary tree that grows as that of `cpt`
          * regressors learn by AROW, whose r is learned, and give probabilities by a logistic function of three times
            the score
          * there are no auxiliary regressors
          * an example without a label trains the root alone
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...array_types import Bools, Float32s, Int64s
from ...binary import adagrad, arow, document_frequency, finite, gd, tagged_words
from ...data.batch import Batch
from ...errors import DataError
from ...kernels.constants import LARGEST, ONE
from ...model.archive import Archive
from ..core import label_arrays, label_lists, probabilities
from ..core.base import ReductionRecord
from ..core.calibration import ResultFile
from ..core.contract import BatchTask
from ..core.label_lists import MultilabelLearner
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec
from ..cpt import binary_nodes, label_tree, sampled_tree, tree_file
from . import nodes, options, search
from .options import GROWN, SAMPLED, PltOptions

MANY = 0.01  # threshold below which an example may have very many labels above it
FIRST_ROOM = 16  # labels found for an example that are expected at first
MOST_RESERVED = 1 << 20  # labels for which the tree reserves space at first


class LabelTree(MultilabelLearner):
    """Learn and predict with a tree of regressors (`--plt`).

    Labels of the tree are counted from 1.

    Attributes
    ----------
    tree, nodes : the tree and its regressors; replaced by larger ones when they are full
    frequencies : in how many examples each feature occurs, by which features are weighted
    preview_sample : examples collected for building the tree, None if none are needed
    """

    frequencies: document_frequency.DocumentFrequencies
    preview_sample: sampled_tree.TreeSample | None = None

    def __init__(self, spec: LearnerSpec) -> None:
        o: PltOptions = spec.options
        self.options = o
        self.set_up(spec, None)
        self.bits, self.loaded = spec.binary.bits, spec.loaded
        self.predict_only = spec.binary.predict_only_model
        if not spec.weights_only:  # else the table may be packed, and is checked when it is restored
            gd.check_memory(self.bits, options.SLOT_BYTES, 0)
        lines = max(self.bits - adagrad.LOG2_LINE_SLOTS, 1)
        words = tagged_words.new_words(lines, o.max_doublings or 0, spec.weights_only)
        self._set_tree(label_tree.empty_tree(min(o.plt, MOST_RESERVED)), words)
        self.frequencies = document_frequency.DocumentFrequencies(False, spec.constant, spec.weights_only)
        self.alpha = {"balanced": 1.0, "random": binary_nodes.RANDOM}.get(o.plt_tree, o.plt_alpha)
        self.random = np.array([spec.seed], np.uint64)
        self.largest_step = finite.largest_step(1.0)
        self.names = spec.names
        if not spec.loaded and not spec.testing and o.plt_tree == SAMPLED:
            self.preview_sample = sampled_tree.TreeSample(o.tree_sample)
        elif not spec.loaded and o.plt_tree not in GROWN:
            self._set_tree(self._read(o.plt_tree), words)
        self.stages = [self.prepare, self._process_batch]

    def _set_tree(self, tree: label_tree.ClassTree, words: tagged_words.Words) -> None:
        self.tree, self.nodes = tree, nodes.new_nodes(tree, words)

    # the initial tree

    def preview(self, task: BatchTask) -> bool:
        """Add the examples of a task to the sample; return whether more are needed."""
        assert self.preview_sample is not None  # else there is no preview
        label = task.batch.labels + 1 - self.lowest
        label[label > label_lists.MOST_LABELS] = 0
        return self.preview_sample.add(task.batch._replace(labels=label), task.learned())

    def end_preview(self) -> None:
        assert self.preview_sample is not None
        for tree in self.preview_sample.trees([int(self.random[0])], self.share, min(self.options.plt, MOST_RESERVED)):
            self._set_tree(tree, self.nodes.words)
        self.preview_sample = None

    def _read(self, path: str) -> label_tree.ClassTree:
        if not os.path.exists(path):
            choices = ", ".join((*GROWN, SAMPLED))
            raise DataError(f"{path}: there is no such file; give --plt_tree {choices}, or the name of a file")
        trees = tree_file.read(path, self.names, self.lowest)
        if len(trees) != 1:
            raise DataError(f"{path}: the file has {len(trees)} trees, but --plt has one; give another file")
        highest = int(trees[0].label.max())
        if highest > label_lists.MOST_LABELS:
            raise DataError(
                f"{path}: the tree has the label {highest - 1 + self.lowest}, but labels are below "
                f"{label_lists.MOST_LABELS + self.lowest}"
            )
        return trees[0]

    # learning and prediction

    @property
    def most_rows(self) -> int | None:
        many = self.most_ranked if self.least >= MANY else len(self.tree.left)
        return max(1, probabilities.MOST_PAIRS // many)

    def can_learn(self, label: Int64s) -> Bools:
        """Return whether the tree has a leaf of each label, or cannot have one."""
        own = label + 1 - self.lowest
        leaf = np.empty(len(label), np.int64)
        label_tree.find_all(self.tree, own, leaf)
        known: Bools = (leaf >= 0) | (own < 1) | (own > label_lists.MOST_LABELS)
        return known

    def prepare(self, task: BatchTask) -> None:
        """Compute the weights of features, as the first stage."""
        task.plan = self.frequencies.weighted_counts(task.batch, task.learned() & (not self.repeats))

    def _process_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch; batches that are only predicted are split over threads."""
        label = self.positives(task) + 1
        batch, learned, weighted = task.batch, task.learned(), task.plan
        wanted = search.LabelSearch(self.most_ranked, np.float32(self.least), self.known(task))
        count = np.empty(batch.n, np.int64)
        parts: dict[int, search.FoundLabels] = {}
        growth = nodes.Growth(self.alpha, self.random, not self.repeats)

        def job(begin: int, end: int) -> None:
            found, at = search.new_found(count, (end - begin) * FIRST_ROOM), begin
            while True:
                scratch = nodes.new_scratch(self.tree, batch.most_features, self.most_ranked)
                at = nodes.process_batch(
                    self.tree, self.nodes, growth, wanted, batch, weighted, label, learned, at, end, scratch, found
                )
                if at == end:
                    break
                if task.learn:
                    self._enlarge(label_arrays.most(batch))
                found = search.grown(found, len(scratch.label))
            parts[begin] = found

        self.share(job, [(0, batch.n)] if task.learn else self.thread_ranges(batch.n), batch.n)
        self.finish(task, self._lists([parts[begin] for begin in sorted(parts)]))

    def _enlarge(self, labels: int) -> None:
        """Double what has no room for another example of so many labels."""
        if tagged_words.is_full(self.nodes.words):
            self.nodes = self.nodes._replace(words=tagged_words.doubled(self.nodes.words))
        if not label_tree.has_capacity(self.tree, labels):
            self.tree = label_tree.with_double_capacity(self.tree)
            self.nodes = nodes.with_capacity(self.nodes, self.tree)

    def _lists(self, parts: Sequence[search.FoundLabels]) -> ClassLists:
        """Return the labels found for the parts of a batch."""
        label = np.concatenate([part.label[: part.size[0]] for part in parts]) - 1 + self.lowest
        p = np.concatenate([part.p[: part.size[0]] for part in parts])
        return ClassLists(p, label, np.concatenate([[0], np.cumsum(parts[0].count)]), has_rest=False)

    def best_labels(self, batch: Batch, least: int) -> tuple[Float32s, Int64s, Float32s]:
        """Return the best labels of the only example of a batch, from 0, and their probabilities.

        Before them are the weighted values of all features, float32[z].
        """
        weighted = self.frequencies.weighted_counts(batch, np.zeros(1, bool))
        scratch = nodes.new_scratch(self.tree, batch.most_features, least)
        count = nodes.load(weighted, 0, scratch)
        wanted = search.LabelSearch(least, np.float32(self.threshold), np.array([self.named]))
        found = nodes.find_best(self.tree, self.nodes, scratch, count, wanted, 0)
        x = np.zeros_like(batch.value)
        x[weighted.batch.value != 0] = scratch.x[:count]
        return x, scratch.label[:found] - 1, scratch.p[:found]

    # results and model

    def results(self) -> list[ResultFile]:
        results = super().results()
        if self.options.save_tree is not None:
            names = self.names if self.lowest else ()
            results.append(tree_file.result(self.options.save_tree, [self.tree], names, self.lowest))
        return results

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; the functions called here say what their checks protect."""
        tree, words = label_tree.serialize(archive, "tree", self.tree), self.nodes.words
        words = tagged_words.serialize(archive, "weights", words)
        if not archive.saves:
            self.preview_sample = None
            self._set_tree(tree, words)
        m = max(int(self.tree.size[nodes.NODES]), 1)
        archive.fill("bias", self.nodes.bias[:m], -LARGEST, LARGEST)
        if archive.has("seen"):
            archive.fill("seen", self.nodes.seen[:m], 0, LARGEST)
        elif not archive.saves:
            self.nodes.seen[0] = ONE  # so that the root is scored, which may have learned
        arow.serialize_regularisation(archive, self.nodes.regularisation, nodes.LEAST_R, nodes.MOST_R)
        archive.fill("random", self.random)
        self.frequencies.serialize(archive)
        self.serialize_counts(archive)


REDUCTION = ReductionRecord(
    name="plt",
    title="Probabilistic label tree",
    summary="lists of labels: a tree of regressors, for thousands",
    options=PltOptions,
    labels="multilabel",
    enabled="plt",
    build=LabelTree,
    resolve_defaults=options.resolve_defaults,
    label_range=label_lists.growing_range,
    check=label_lists.check,
    probabilities=True,
)
