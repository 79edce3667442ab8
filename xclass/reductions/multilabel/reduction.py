"""Learn lists of labels: an index and near examples propose labels, and one scorer for each label decides.

Source    This project's own; `frequent`, `neighbours`, `feature_index`, `ranking` describe the parts, their sources.
Idea      Candidates are the labels to which the features of an example point, those of the nearest earlier examples,
          and the most frequent labels, or all labels while there are few. The scorers of the candidates learn from
          each example, and a logistic regression turns what all parts say into a probability.
Cost      O(s C) for C candidates and s features, whatever the number of labels is.
Differs   from `multiclass`, which has the same index and tagged words: labels are independent of each other, so that
          probabilities do not add up to 1, and scorers learn by AROW instead of AdaGrad. There are no trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Int64s
from ...binary import adagrad, document_frequency, finite, gd, tagged_words
from ...kernels.direct import DirectCall
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import between, option, refused, warned
from ..core import label_arrays, label_lists
from ..core.base import ReductionRecord
from ..core.contract import BatchTask
from ..core.further_passes import FurtherPasses
from ..core.probabilities import ClassLists
from ..core.spec import LearnerSpec
from ..cpt.options import INDEX_BITS
from ..multiclass import feature_index
from . import frequent, neighbours, ranking

ENABLED = "multilabel"
SUPPORTED_OPTIONS = ("bits", "layout", "predict_only_model")  # options of the binary learner that apply
SLOTS, PROPOSALS = 16, 24  # of the index: labels of a feature, and labels that it proposes
SURE = 2.0  # standard errors by which further passes must be better, see `FurtherPasses`
MOST_EXPECTED = 1 << 20
MOST_ROWS = 256  # examples of a batch, each with up to a thousand candidates
MOST_LISTED = 64  # labels of an example that are listed at least, where so many are candidates


class MultilabelOptions(label_lists.LabelListOptions):
    """Declare the options of the default learner of lists of labels."""

    multilabel: int = option(
        "learn lists of labels, such as `1,5,7 | words`: an index, near examples and frequent labels propose, and one "
        "scorer for each label decides. K is the approximate number of labels, which are numbers from 0 or names. This "
        "is the default if the first lines have lists of labels",
        metavar="[K]",
        value_if_bare=0,
        minimum=0,
        maximum=label_lists.MOST_LABELS,
        stored=True,
    )
    arow_r: float | None = option(
        "regularisation of the scorers: larger values make smaller steps",
        default_text="learned",
        minimum=ranking.LEAST_GIVEN_R,
        maximum=ranking.MOST_GIVEN_R,
        metavar="R",
        stored=True,
        search=between(0.3, 3.0, "log", first=(0.5,), weight=0.5),
    )
    max_doublings: int = tagged_words.doublings_option("twice as many weights were evicted or refused as it holds")

    RULES = (
        refused(
            gd.other_options(SUPPORTED_OPTIONS),
            "has no effect with --multilabel, whose scorers learn by AROW; leave it out, or choose --multilabel_oaa",
        ),
        tagged_words.LAYOUT_RULE,
        warned("noconstant", "--multilabel learns no constant; leave it out"),
        refused("vw_exact", "cannot be combined with --multilabel, which VW does not have: leave one of them out"),
    )


class MultilabelPlan(NamedTuple):
    """Hold what the stages need to know about n examples."""

    weighted: document_frequency.Weighted  # its batch has only labels that are learned
    label: Int64s  # labels from 1, see `label_arrays.span`
    learns: Bools  # bool[n]
    left_out: Bools  # bool[n], whether the first pass leaves the example out
    again: bool  # whether the examples were learned in an earlier pass
    proposed: ranking.ProposedLabels | None = None


class Multilabel(label_lists.MultilabelLearner):
    """Learn and predict lists of labels (`--multilabel`)."""

    frequencies: document_frequency.DocumentFrequencies
    ranks_all = True  # that are candidates

    def __init__(self, spec: LearnerSpec) -> None:
        o: MultilabelOptions = spec.options
        self.options, self.bits = o, spec.binary.bits
        self.set_up(spec, None)
        self.predict_only = spec.binary.predict_only_model
        gd.check_memory(self.bits, adagrad.SLOT_BYTES)
        self.frequencies = document_frequency.DocumentFrequencies(True, spec.constant)
        expected = min(o.multilabel, MOST_EXPECTED)  # memory for so many labels need not grow
        self.labels = frequent.with_labels(frequent.new_labels(), expected)
        self.neighbours = neighbours.new_neighbours()
        self.index = feature_index.FeatureIndex(INDEX_BITS, SLOTS, PROPOSALS)
        scorers = ranking.new_scorers(self.bits, o.max_doublings or 0, r=o.arow_r or 1.0)
        self.scorers = ranking.with_labels(scorers, expected)
        self.largest_step = finite.largest_step(1.0)
        self.scales_examples = True
        self.passes = FurtherPasses(spec, ranking.copied, ranking.with_double_capacity, ranking.log_loss, SURE)
        self.stages = [self.prepare, self.propose, self._rank]
        self.rank_kernel = DirectCall(ranking, "rank")

    @property
    def most_rows(self) -> int | None:
        return MOST_ROWS

    def prepare(self, task: BatchTask) -> None:
        """Find the values of the features, as the first stage."""
        label = self.positives(task) + 1
        batch = task.batch
        known = label > 0
        if not known.all():  # others are no labels of the learner
            start = np.concatenate([[0], np.cumsum(known)])[batch.label_start]
            batch, label = batch._replace(label_start=start, labels=batch.labels[known]), label[known]
        weighted = self.frequencies.weighted_counts(batch, task.learned() & (not self.repeats))
        left_out, learns = self.passes.begin(task)
        task.plan = MultilabelPlan(weighted, label, learns, left_out, self.repeats)

    def propose(self, task: BatchTask) -> None:
        """Propose labels and learn what proposes them, as the second stage."""
        plan: MultilabelPlan = task.plan
        batch, label, n = plan.weighted.batch, plan.label, task.batch.n
        highest = int(label.max(initial=0))
        if task.learn:
            self.labels = frequent.with_labels(self.labels, highest)
            self.index.reserve(len(label))
        new = len(label) if task.learn else 0
        most = frequent.most_proposed(self.labels, new) + neighbours.VOTED + PROPOSALS
        candidate, every = np.zeros((n, most), np.int64), np.zeros(n, bool)
        score, vote = np.zeros((n, most, feature_index.SCORES)), np.zeros((n, most))
        opinions = feature_index.Opinions(candidate, score, np.zeros(len(label)))

        def propose(begin: int, end: int, again: bool) -> None:
            frequent.propose(self.labels, batch, label, plan.learns, again, begin, end, candidate, every)
            scratch = neighbours.new_scratch(batch.most_features, len(self.labels.weight))
            neighbours.propose(
                self.neighbours, plan.weighted, label, plan.learns, again, begin, end, candidate, vote, scratch
            )
            self.index.propose(batch, plan.weighted.share, label, plan.learns, again, begin, end, opinions)

        self.passes.propose(self, task, plan.left_out, propose)
        task.plan = plan._replace(proposed=ranking.ProposedLabels(candidate, score, vote, every))

    def _rank(self, task: BatchTask) -> None:
        """Rank the candidates, learn from the batch and finish the task, as the last stage."""
        plan: MultilabelPlan = task.plan
        task.plan = None
        assert plan.proposed is not None  # by the previous stage
        task.candidates = plan.proposed.candidate
        batch, proposed = plan.weighted.batch, plan.proposed
        n, candidates = proposed.candidate.shape
        most, highest = min(candidates, max(MOST_LISTED, self.most_ranked)), int(plan.label.max(initial=0))
        adapts_r = self.options.arow_r is None and not plan.again

        def rank(
            scorers: ranking.RankingScorers, learns: Bools, begin: int, end: int, ranked: ranking.RankedLabels
        ) -> int:
            scratch = ranking.new_scratch(scorers, batch.most_features, candidates, label_arrays.most(batch))
            done: int = self.rank_kernel(
                scorers, plan.weighted, plan.label, learns, not plan.again, adapts_r, begin, end, proposed, scratch,
                ranked,
            )  # fmt: skip
            return done

        self.scorers, ranked = self.passes.rank(
            self, task, plan.left_out, plan.learns, self.scorers, lambda: ranking.new_ranking(n, most), rank,
            lambda scorers: ranking.with_labels(scorers, highest if task.learn else 0),
        )  # fmt: skip
        listed = np.arange(most) < ranked.count[:, None]
        start, label = np.concatenate([[0], np.cumsum(ranked.count)]), ranked.label[listed] - 1 + self.lowest
        self.finish(task, ClassLists(ranked.p[listed].astype(np.float32), label, start, has_rest=False))

    def begin_pass(self, number: int, threads: int | None = None, held_out: bool | None = None) -> None:
        super().begin_pass(number, threads, held_out)
        self.passes.begin_pass(number)

    def end_pass(self) -> None:
        self.scorers = self.passes.end_pass(self.scorers)

    # model

    def serialize(self, archive: Archive) -> None:
        self.serialize_counts(archive)
        labels = len(self.counts) - 1
        self.frequencies.serialize(archive)
        self.labels = frequent.serialize(archive, self.labels, labels)
        neighbours.serialize(archive, self.neighbours, labels)
        self.index.serialize(archive)
        self.scorers = ranking.serialize(archive, self.scorers, labels)
        stored_arrays.check_range("index_classes.label", archive.arrays["index_classes.label"], 1, labels)


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    size = adagrad.SLOT_BYTES << tagged_words.START_BITS
    sizes = tagged_words.default_sizes(spec.binary.bits, spec.options.max_doublings, size)
    return {**gd.resolve_defaults(spec.binary, 1, True), **sizes, "loss_function": "hinge", "learning_rate": 1.0}


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    """Refuse a model with another index, before memory is allocated for it."""
    feature_index.check_sizes(arrays, SLOTS, INDEX_BITS)


REDUCTION = ReductionRecord(
    name="multilabel",
    title="Lists of labels",
    summary="lists of labels; the default for them",
    labels="multilabel",
    options=MultilabelOptions,
    enabled=ENABLED,
    build=Multilabel,
    check=label_lists.check,
    resolve_defaults=resolve_defaults,
    label_range=label_lists.growing_range,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
)
