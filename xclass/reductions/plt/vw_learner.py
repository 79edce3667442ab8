"""Learn lists of labels by VW's probabilistic label tree, to VW's digits: `--plt K --vw_exact`.

Source    VW 9.11.9, plt.cc: the labels are the leaves of a complete tree, in the order of their numbers.
Cost      O(s) for each node that an example trains: of each label the path, at most log_B K nodes, and their children.
Names     s features of one example | K labels | B children of a node, --kary_tree.

A model that was trained so can be continued without `--vw_exact`. Its tree, loss and steps remain, but sums are not
rounded as in VW and the labels of an example are taken in ascending order, so that weights differ slightly; with
`--sgd` the clocks of the nodes begin at the default of `--initial_t`, not at VW's 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...array_types import Float32s, Int64s
from ...binary import finite, gd
from ...data.batch import Batch
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import label_arrays, probabilities
from ..core.contract import BatchTask
from ..core.label_lists import MultilabelLearner
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec, Wanted
from . import search, vw_nodes, vw_order

ENABLED = "gd, scorer-identity, plt"
MANY = 0.01  # threshold below which an example may have very many labels above it
FIRST_ROOM = 16  # labels found for an example that are expected at first
NO_LABEL = 2**31  # label that trains nothing, as none of a file is as large


def tree_of(spec: LearnerSpec) -> vw_nodes.Tree:
    return vw_nodes.new_tree(spec.options.plt, spec.options.kary_tree)


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    return gd.resolve_defaults(spec.binary, tree_of(spec).nodes, reduction=True)


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    nodes = tree_of(spec).nodes
    stored_arrays.check_rows("weights.sums", arrays, nodes)
    stored_arrays.check_rows("updated", arrays, nodes)


class VwLabelTree(MultilabelLearner):
    """Learn and predict with a tree of regressors as VW does.

    Attributes
    ----------
    tree : shape of the tree; its nodes are the subproblems of `table`
    updated : float64[nodes], sum of the weights of each node's updates, its clock
    order : what VW keeps from one example to the next
    """

    def __init__(self, spec: LearnerSpec) -> None:
        self.tree = tree_of(spec)
        self.set_up(spec, self.tree.labels)
        self.learner_options = spec.binary
        bits, number = spec.binary.bits, self.tree.nodes
        gd.check_memory(bits, extra_bytes=8 * number)
        self.rule = gd.make_rule(spec.binary, reduction=True, exact=spec.vw_exact)
        width = gd.vw_width(number) if spec.binary.layout == "vw" else gd.odd_width(number)
        self.table = gd.new_table(self.rule, bits, number, width, weights_only=spec.wanted.weights_only)
        self.tables = [self.table]
        if spec.vw_exact and "initial_t" not in spec.given:  # where it is 1 without being given, VW's nodes begin at 0
            self.rule = self.rule._replace(initial_t=0.0)
        self.crowding = gd.crowding_warning(bits, number, width, spec.binary.layout)
        self.updated = np.zeros(self.tree.nodes)
        self.order = vw_order.new_order(self.tree, self.updated)
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
        """Predict and learn a batch: the only stage; the order of the examples matters even if nothing is learned."""
        if self._follows_vw:
            label = label_arrays.whole(task.batch)
        else:
            label = self.positives(task)
            label[label < 0] = NO_LABEL
        batch, learned = task.batch, task.learned()
        wanted = search.Search(min(self.most_ranked, self.tree.labels), np.float32(self.least), self.known(task))
        count, loss = np.empty((2, batch.n), np.int64), np.zeros(batch.n)
        scratch, table = vw_nodes.new_scratch(self.tree, batch.most_features), finite.guarded(self.table, task)
        found, above = (search.new_found(counts, batch.n * FIRST_ROOM) for counts in count)
        at = 0
        while True:
            at = vw_order.learn_batch(
                self.tree, table, self.rule, wanted, batch, label, learned, at, batch.n, scratch, self.order,
                vw_order.Results(found, above, loss),
            )  # fmt: skip
            if at == batch.n:
                break
            found, above = (search.grown(one, self.tree.labels) for one in (found, above))
        ranked, chosen = self._lists(found), self._lists(above)
        if self._follows_vw:
            k = self.listing_options.top_k
            chosen = chosen if k is None else self.best(ranked, k)
            self.finish(task, ranked, chosen, loss, chosen)
            return
        row = np.repeat(np.arange(batch.n), np.diff(chosen.start))
        rising = np.lexsort((chosen.labels, row))
        self.finish(task, ranked, chosen._replace(scores=chosen.scores[rising], labels=chosen.labels[rising]))

    def _lists(self, found: search.Found) -> ClassLists:
        size = int(found.size[0])
        label, p = found.label[:size] + self.lowest, found.p[:size]
        return ClassLists(p, label, np.concatenate([[0], np.cumsum(found.count)]), has_rest=False)

    def best_labels(self, batch: Batch, least: int | None = None) -> tuple[Int64s, Float32s]:
        """Return the best labels of the only example of a batch, counted from 0, and their probabilities."""
        scratch = vw_nodes.new_scratch(self.tree, batch.most_features)
        features = vw_nodes.load(self.table, batch, 0, scratch)
        least = min(least or self.most_ranked, self.tree.labels)
        wanted = search.Search(least, np.float32(self.threshold), np.array([self.named]))
        count = vw_nodes.find_best(self.tree, self.table, scratch, features, wanted, 0)
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
