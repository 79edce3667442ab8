"""Describe the default learner of lists of labels."""

from __future__ import annotations

from ...array_types import Float64s, UInt32s
from ...binary import adagrad, arow, feature_scaling, gd, in_words, tagged_words
from ...reductions.multilabel import frequent, neighbours, ranking
from ...reductions.multilabel.reduction import PROPOSALS, Multilabel


def banner(learner: Multilabel) -> list[str]:
    size = adagrad.SLOT_BYTES << learner.bits
    most = (
        "" if learner.testing else f", growing to at most {in_words.size(size << (learner.options.max_doublings or 0))}"
    )
    return [
        f"Candidates: all labels up to {frequent.MOST_ALL}, then the {frequent.FREQUENT} most frequent ones, "
        f"{PROPOSALS} from the index and {neighbours.VOTED} from near examples",
        f"Weights: {in_words.size(size)}{most}",
    ]


def learning_lines(learner: Multilabel, binary: gd.Options) -> list[str]:
    r = learner.options.arow_r
    return [f"Scorers: AROW, regularisation {'learned' if r is None else f'{r:g}'}"]


def summary(learner: Multilabel) -> list[str]:
    exponent = learner.scorers.state[0, ranking.EXPONENT]
    return [
        *learner.report.lines(),
        f"exponent of inverse document frequency = {exponent:.2f}",
        f"regularisation of AROW = {arow.r_of(learner.scorers.regularisation):.3g}",
        tagged_words.occupancy([learner.scorers.words]),
    ]


def figures(learner: Multilabel) -> dict[str, float]:
    return learner.report.figures()


def feature_counts(learner: Multilabel, index: UInt32s) -> Float64s:
    """Return the weight of the learned examples with each feature."""
    return learner.frequencies.count[feature_scaling.slots_of(index)]
