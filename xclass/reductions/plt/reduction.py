"""Learn lists of labels by a tree with an estimate at each node of the probability that some label is below it.

Source    Jasinska, Dembczynski, Busa-Fekete, Pfannschmidt, Klerx, Hullermeier, "Extreme F-measure Maximization using
          Sparse Probability Estimates", ICML 2016 (probabilistic label trees); VW's plt.cc for the tree.
Cost      O(s) for each node that an example trains: of each label the path, at most log_B K nodes, and their children.
          A search opens the most probable nodes; O(K) memory in addition to the weights.
Names     s features of one example | K labels | B children of a node, --kary_tree.
Differs   from the paper (docs/differences_from_papers.md says why, and what it costs):
          * the tree has the labels in the order of their numbers
          * an example without a label trains the root alone
          * a node is not trained towards what it already says with a probability above 0.982
          from VW's plt.cc, without `--vw_exact`: see docs/differences_from_vw.md.
Idea      The estimate at a node is the probability of a label below it, given that there is one below its parent. The
          product along the path to a leaf is the probability of its label. An example trains the nodes on the paths of
          its labels towards 1 and their other children towards -1. Products fall along a path, so a search that always
          opens the most probable node finds the labels in the order of their probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...array_types import Float32s, Int64s
from ...binary import finite, gd
from ...data.batch import Batch
from ...kernels.constants import ZERO
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ...options.declare import option
from ...options.relations import conflict, refused
from ..core import label_arrays, label_lists, probabilities
from ..core.base import Reduction
from ..core.contract import BatchTask
from ..core.label_lists import MultilabelLearner
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec, Wanted
from . import nodes, vw_order

ENABLED = "gd, scorer-identity, plt"
MANY = 0.01  # threshold below which an example may have very many labels above it
FIRST_ROOM = 16  # labels found for an example that are expected at first


@dataclass(frozen=True)
class Options(label_lists.Options):
    """Declare the options of probabilistic label trees."""

    plt: int = option(
        "number of labels; labels are 0..K-1, lists of them as in 1,5,7",
        metavar="K",
        minimum=1,
        maximum=2**28,
        stored=True,
    )
    kary_tree: int = option(
        "number of children of each node of the tree", metavar="B", default=2, minimum=2, maximum=2**16,
        stored=True,
    )  # fmt: skip

    RULES = (
        conflict(
            "--loss_function {loss_function} gives no probabilities; --plt needs logistic",
            loss_function=lambda loss: loss not in (None, "logistic"),
        ),
        refused("link", "has no effect with --plt, which always predicts probabilities; leave it out"),
    )


def tree_of(spec: LearnerSpec) -> nodes.Tree:
    first = 0 if spec.binary.layout == "vw" else nodes.FIRST
    return nodes.new_tree(spec.options.plt, spec.options.kary_tree, spec.vw_exact, first)


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    return gd.resolve_defaults(spec.binary, tree_of(spec).nodes, reduction=True)


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    tree = tree_of(spec)
    stored_arrays.check_rows("weights.sums", arrays, tree.nodes + tree.first)
    stored_arrays.check_rows("updated", arrays, tree.nodes)


class LabelTree(MultilabelLearner):
    """Learn and predict with a tree of regressors (`--plt`).

    Attributes
    ----------
    tree : shape of the tree; its nodes are the subproblems of `table` from `tree.first` on
    updated : float64[nodes], sum of the weights of each node's updates, its clock
    order : what --vw_exact keeps from one example to the next, else None
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.tree = tree_of(spec)
        self.set_up(spec, self.tree.labels)
        self.learner_options = spec.binary
        bits, number = spec.binary.bits, self.tree.nodes + self.tree.first
        gd.check_memory(bits, extra_bytes=8 * number)
        self.rule = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact)
        width = gd.vw_width(number) if spec.binary.layout == "vw" else gd.odd_width(number)
        self.table = gd.new_table(self.rule, bits, number, width, weights_only=spec.wanted.weights_only)
        self.tables = [self.table]
        if spec.vw_exact and "initial_t" not in spec.given:  # where it is 1 without being given, VW's nodes begin at 0
            self.rule = self.rule._replace(initial_t=0.0)
        self.crowding = gd.crowding_warning(bits, number, width, spec.binary.layout)
        self.updated = np.zeros(self.tree.nodes)
        self.order = vw_order.new_order(self.tree, self.updated) if spec.vw_exact else None
        self.stages = [self._learn_batch]

    def want(self, wanted: Wanted) -> None:
        super().want(wanted)
        options = self.listing_options
        self.enabled = ENABLED + " -top_k" * (options.top_k is not None) + " -prob" * options.probabilities

    def vw_measures(self) -> str:
        shown = "top_k" if self.listing_options.top_k else "threshold" if self.threshold > 0 else ""
        return shown if self.testing else ""

    @property
    def most_rows(self) -> int | None:
        many = self.most_ranked if self.least >= MANY else self.tree.labels
        return max(1, probabilities.MOST_PAIRS // many)

    def _learn_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage; batches that are only predicted are split over threads."""
        order = self.order
        label = self.positives(task) if order is None else label_arrays.whole(task.batch)
        batch, learned = task.batch, task.learned()
        wanted = nodes.Search(min(self.most_ranked, self.tree.labels), np.float32(self.least), self.known(task))
        most, count, loss = label_arrays.most(batch), np.empty((2, batch.n), np.int64), np.zeros(batch.n)
        parts: dict[int, list[nodes.Found]] = {}

        def job(begin: int, end: int) -> None:
            scratch = nodes.new_scratch(self.tree, batch.most_features, most)
            table = finite.guarded(self.table, task)
            fixed = self.tree, table, self.rule, wanted, batch, label, learned
            found, above = (nodes.new_found(counts, (end - begin) * FIRST_ROOM) for counts in count)
            at = begin
            while True:
                if order is None:
                    at = nodes.learn_batch(*fixed, at, end, scratch, self.updated, found)
                else:
                    results = vw_order.Results(found, above, loss)
                    at = vw_order.learn_batch(*fixed, at, end, scratch, order, results)
                if at == end:
                    break
                found, above = (nodes.grown(one, self.tree.labels) for one in (found, above))
            parts[begin] = [found, above]

        self.share(job, [(0, batch.n)] if task.learn or order else self.thread_ranges(batch.n), batch.n)
        found, above = zip(*(parts[begin] for begin in sorted(parts)), strict=True)
        ranked = self._lists(found)
        if order is not None:
            k = self.listing_options.top_k
            chosen = self._lists(above) if k is None else self.best(ranked, k)
            self.finish(task, ranked, chosen, loss, chosen)
            return
        above = label_lists.selected(ranked, ranked.scores > np.float32(wanted.threshold))
        row = np.repeat(np.arange(batch.n), np.diff(above.start))
        rising = np.lexsort((above.labels, row))
        self.finish(task, ranked, above._replace(scores=above.scores[rising], labels=above.labels[rising]))

    def _lists(self, parts: Sequence[nodes.Found]) -> ClassLists:
        """Return the labels found for the parts of a batch."""
        label = np.concatenate([part.label[: part.size[0]] for part in parts]) + self.lowest
        p = np.concatenate([part.p[: part.size[0]] for part in parts])
        p = np.nan_to_num(p) if self.order is None else p  # weights of a loaded model may give NaN
        return ClassLists(p, label, np.concatenate([[0], np.cumsum(parts[0].count)]), has_rest=False)

    def best_labels(self, batch: Batch, least: int | None = None) -> tuple[Int64s, Float32s]:
        """Return the best labels of the only example of a batch, counted from 0, and their probabilities."""
        scratch = nodes.new_scratch(self.tree, batch.most_features, 1)
        features = nodes.load(self.table, batch, 0, scratch)
        least = min(least or self.most_ranked, self.tree.labels)
        wanted = nodes.Search(least, np.float32(self.threshold), np.array([self.named]))
        root = gd.score(self.table, scratch.place, scratch.x, features, np.uint64(self.tree.first), ZERO)
        count = nodes.search(self.tree, self.table, scratch, features, wanted, 0, root, 0)
        return scratch.label[:count], scratch.p[:count]

    # model

    def arrays(self) -> dict[str, Stored]:
        stored = gd.table_arrays("weights", self.table, self.learner_options.predict_only_model)
        return {**stored, **self.count_arrays(), "updated": self.updated}

    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Restore a model; it contains nothing that a kernel uses as an index."""
        with stored_arrays.reject_unused(arrays, facts) as (arrays, facts):
            gd.restore_table("weights", self.table, arrays, self.learner_options.resume, self.rule)
            self.restore_counts(arrays, facts)
            stored_arrays.fill("updated", arrays, self.updated)
            stored_arrays.check_range("updated", self.updated, 0, float(np.finfo(np.float64).max))


REDUCTION = Reduction(
    name="plt",
    title="Probabilistic label tree",
    summary="lists of labels: a tree of regressors, for thousands",
    options=Options,
    labels="multilabel",
    enabled=ENABLED,
    build=LabelTree,
    resolve_defaults=resolve_defaults,
    label_range=label_lists.label_range,
    check=label_lists.check,
    check_arrays=check_arrays,
    probabilities=True,
    abilities=("describe", "explain", "inspect", "merge"),
)
