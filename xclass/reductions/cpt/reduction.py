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
from abc import abstractmethod
from typing import TypeVar

import numpy as np

from ...array_types import Bools, Float64s, Int64s, UInt32s
from ...binary import document_frequency, feature_scaling, finite, gd
from ...errors import DataError, UsageError
from ...model.archive import Archive
from ..core import label_arrays, probabilities
from ..core.base import Reduction
from ..core.calibration import LabelStatistics, ResultFile
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec, LearnerUse
from . import label_tree, sampled_tree, tree_file
from .binary_nodes import NODES, TreePredictions
from .ensemble import TreeEnsemble, TreePlan
from .options import GROWN, SAMPLED, CptOptions, check_arity, check_doublings, index_bytes, weight_bytes

Plan = TypeVar("Plan", bound=TreePlan)


class TreeLearner(Reduction):
    """Learn trees, which propose labels; subclasses choose among these, and add the stages that do.

    Attributes
    ----------
    trees : the trees, whose tables and nodes are all that is learned beside the sizes and counts of features
    preview_sample : examples collected for building the tree, None if none are needed
    sample_scales : scales of numeric columns in the sample, or None
    placed_text : text for the summary about the labels of the tree that was built from the sample
    predict_only : whether models hold only what predictions need
    weights_only : whether the learner only predicts and its tables are not inspected
    """

    report: LabelStatistics
    preview_sample: sampled_tree.TreeSample | sampled_tree.LabelCounts | None = None

    def __init__(self, spec: LearnerSpec, cut: float = 0.0, counts: bool = False) -> None:
        o: CptOptions = spec.options
        self.options = o
        self.predict_only = spec.binary.predict_only_model
        self.weights_only = spec.weights_only
        self.loaded, self.testing = spec.loaded, spec.testing
        self.decay = spec.binary.decay_learning_rate
        bits = self.bits = spec.binary.bits
        if not self.weights_only:  # else they may be packed, and are checked when they are restored
            gd.check_memory(bits, -(-weight_bytes(o, bits) >> bits), index_bytes(o))
        check_arity(o)
        if "max_doublings" in spec.given and not spec.loaded:
            check_doublings(o, bits)
        self.trees = TreeEnsemble(spec, cut)
        self.scales = feature_scaling.from_option(o.normalize_features)
        if o.normalize_features == "idf" or counts:
            weighting = o.normalize_features == "idf"
            self.frequencies = document_frequency.DocumentFrequencies(weighting, spec.constant, self.weights_only)
        self.scales_examples = o.normalize_features != "none"
        self.largest_step = finite.largest_step(spec.binary.learning_rate)
        self.names = spec.names
        self.sample_scales: feature_scaling.Scales | None = None
        self.placed_text = ""
        self.highest_placed = 0  # highest label of a tree built from the sample
        if not spec.loaded and not spec.testing and o.cpt_tree in SAMPLED:
            if o.cpt_tree == "kmeans":
                self.preview_sample = sampled_tree.TreeSample(o.tree_sample)
                self.sample_scales = feature_scaling.from_option(o.normalize_features)
            else:
                self.preview_sample = sampled_tree.LabelCounts(o.tree_sample)
        elif not spec.loaded and o.cpt_tree not in (*GROWN, *SAMPLED):
            self.trees.place(self._read(o.cpt_tree))
        self.want(spec)
        self.stages = [] if self.scales is None and self.frequencies is None else [self.prepare]

    def find(self, feature: UInt32s) -> Bools | None:
        return self.trees.find(feature)

    @property
    def most_rows(self) -> int | None:
        """Return the most examples of a batch, fewer if all labels are listed, or None for no limit."""
        classes = int(self.trees.members[0].tree.size[NODES]) // 2 + 1024
        return max(1, probabilities.MOST_PAIRS // classes) if self.listing_options.probabilities else None

    @property
    @abstractmethod
    def proposals(self) -> int:
        """Return how many labels every tree lists for an example."""

    # the initial tree

    def preview(self, task: BatchTask) -> bool:
        """Add the examples of a task to the sample; return whether more are needed."""
        batch, counted = task.batch, task.learned()
        if self.sample_scales is not None:
            batch = self.sample_scales.scaled(batch, counted)
        assert self.preview_sample is not None  # else there is no preview
        return self.preview_sample.add(batch, counted)

    def end_preview(self) -> None:
        assert self.preview_sample is not None
        seeds = [int(member.random[0]) for member in self.trees.members]
        trees = self.preview_sample.trees(seeds, self.share, self.trees.capacity)
        if trees:
            self.trees.place(trees)
            classes = (int(trees[0].size[NODES]) + 1) // 2
            self.highest_placed = int(trees[0].label.max())
            self.placed_text = f", {classes} of them placed by a sample of {self.preview_sample.seen} examples"
        self.preview_sample = self.sample_scales = None

    def _read(self, path: str) -> list[label_tree.ClassTree]:
        """Return the trees of a file, after checking that there is one for each member."""
        path = f"./{path}" if path.startswith("-") else path  # messages of a program would take it for an option
        if not os.path.exists(path):
            raise DataError(
                f"{path}: there is no such file; give --cpt_tree {', '.join(GROWN + SAMPLED)}, or the name of a file"
            )
        trees = tree_file.read(path, self.names)
        if len(trees) != len(self.trees):
            raise DataError(
                f"{path}: the file has {len(trees)} trees, but --trees is {len(self.trees)}; give "
                f"--trees {len(trees)}, or another file"
            )
        return trees

    def prepare(self, task: BatchTask) -> None:
        """Scale numeric columns and weight features, as the first stage."""
        if self.scales is not None:
            task.batch = self.scales.scaled(task.batch, task.learned())
        if self.frequencies is not None:
            task.plan = self.frequencies.weighted(task.batch, task.learned() & (not self.repeats))

    def new_plan(self, task: BatchTask, kind: type[Plan]) -> Plan:
        batch, none = task.batch, (np.empty(0, np.int64), np.empty(0))
        output = self.trees.new_predictions(batch.n, self.proposals)
        listed = [[none] * batch.n for _ in self.trees.members] if self.listing_options.probabilities else None
        weighted = task.plan or document_frequency.not_weighted(batch)
        return kind(batch, weighted, label_arrays.whole(batch), task.learned(), output, listed)

    def finish(self, task: BatchTask, predictions: TreePredictions, p: Float64s, top: Int64s, top_p: Float64s) -> None:
        """Set the prediction, loss and listing of a task and update the report."""
        batch, known = task.batch, predictions.known[0]
        labelled, weight = ~np.isnan(batch.label), batch.weight.astype(np.float64)
        self.set_best(task, top, top_p, known, p)
        self.report.add_regressors(labelled, weight, known, predictions.regressors, predictions.loss)
        if self.options.cpt_report == "argmax":
            self.report.add_searches(predictions.opened, predictions.gap)
        else:
            task.loss, task.answer_probability = np.where(labelled, weight * (1.0 - p) ** 2, 0.0), None

    @property
    def number_searched(self) -> int:
        """Return how many trees are searched if nothing is being learned."""
        return len(self.trees)

    @property
    def classes_seen(self) -> int:
        return int(np.count_nonzero(self.trees.members[0].tree.key))

    @property
    def highest_seen(self) -> int:
        return int(self.trees.members[0].tree.key.max(initial=0))

    def can_learn(self, label: Int64s) -> Bools:
        """Return whether every tree that is searched has a leaf of each label; the others lack rare ones."""
        return self.trees.have(label, self.number_searched)

    def end_pass(self) -> None:
        for member in self.trees.members:
            member.weights = member.weights._replace(rate=np.float32(member.weights.rate * self.decay))

    def new_report(self) -> LabelStatistics:
        return LabelStatistics(self.listing_options, self.options.cpt_arity - 1)

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        if self.options.beam == 0 and self.proposals > 1 and not self.options.exact:
            of_candidates = self.proposals == self.options.candidates and (self.options.rerank or len(self.trees) > 1)
            raise UsageError(
                f"--beam 0 follows each tree to a single class, but {self.proposals} classes are wanted "
                f"({'--candidates' if of_candidates else '--top_k'}); give --exact (-i takes it, too), or learn with "
                "--beam 1 or more"
            )

    def results(self) -> list[ResultFile]:
        results = self.report.results()
        if self.options.save_tree is not None:
            trees = [member.tree for member in self.trees.members]
            results.append(tree_file.result(self.options.save_tree, trees, self.names))
        return results

    def node_name(self, t: int) -> str:
        """Return the format of the names of the nodes of tree t, given their numbers."""
        return "{}" if len(self.trees) == 1 else f"{t}.{{}}"

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; the functions called here say what their checks protect."""
        if not archive.saves:
            self.preview_sample = self.sample_scales = None
        self.trees.serialize(archive)
        for part in (self.scales, self.frequencies):
            if part is not None:
                part.serialize(archive)


class ProbabilityTree(TreeLearner):
    """Learn one or several conditional probability trees, which vote (`--cpt`)."""

    def __init__(self, spec: LearnerSpec) -> None:
        super().__init__(spec)
        self.stages.append(self._process_batch)

    @property
    def proposals(self) -> int:
        list_size = self.listing_options.top_k or 1
        return list_size if len(self.trees) == 1 else max(list_size, self.options.candidates)

    def want(self, wanted: LearnerUse) -> None:
        super().want(wanted)
        for member in self.trees.members:
            member.settings = member.settings._replace(
                beam=max(self.options.beam, self.proposals if self.proposals > 1 else 0)
            )

    def begin(self, task: BatchTask) -> TreePlan:
        return self.new_plan(task, TreePlan)

    def _process_batch(self, task: BatchTask) -> None:
        """Predict with the trees, learn from the batch, let the trees vote and finish the task."""
        plan, n = self.begin(task), task.batch.n
        ranges = [(0, n)] if task.learn else self.thread_ranges(n)
        self.trees.propose(self.share, plan, ranges, len(self.trees))
        task.class_lists, output = plan.class_lists, plan.output
        top, top_p, p = output.top[0], output.top_p[0], output.p[0]
        if len(self.trees) > 1:
            best = self.listing_options.top_k or 1
            top, top_p = self.trees.vote(self.share, plan, output, best, [] if task.learn else ranges)
            p = output.p.mean(axis=0)
        self.finish(task, output, p, top, top_p)
