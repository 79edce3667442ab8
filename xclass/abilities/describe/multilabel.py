"""Describe the default learner of lists of labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...array_types import AnyArray, Float64s, Int64s, UInt32s
from ...binary import adagrad, arow, feature_scaling, gd, in_words, tagged_words
from ...data import class_names
from ...reductions.core import label_arrays
from ...reductions.core.contract import BatchTask
from ...reductions.multilabel import frequent, neighbours, ranking
from ...reductions.multilabel.reduction import PROPOSALS, Multilabel
from ...system.printable import printable
from .weight_views import WordTable


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


def word_tables(learner: Multilabel) -> list[WordTable]:
    return [WordTable("scorers", learner.scorers.words, True)]


def word_keys(learner: Multilabel, task: BatchTask) -> list[Int64s]:
    """Return the blocks of labels whose scorers saw the examples, int64[n, k], or -1: candidates and own labels."""
    assert task.candidates is not None  # made by the last stage
    batch = task.batch
    size = np.diff(batch.label_start)
    own = np.zeros((batch.n, int(size.max(initial=0))), np.int64)
    label = label_arrays.whole(batch) - learner.lowest + 1
    own[np.arange(own.shape[1]) < size[:, None]] = np.where(label < len(learner.scorers.bias), label, 0)
    labels = np.concatenate([own, task.candidates], axis=1)
    return [np.where(labels > 0, labels >> 3, -1)]


def word_places(learner: Multilabel, table: int, key: Int64s, number: Int64s) -> AnyArray:
    """Return the labels that words belong to as text in brackets, object[n] of bytes, empty for none."""
    label, inverse = np.unique(8 * key + number, return_inverse=True)
    texts = [
        f"[label {_name(learner, y)}]".encode("utf-8", "surrogateescape") if 0 < y < len(learner.counts) else b""
        for y in label.tolist()
    ]
    places: AnyArray = np.array(texts, object)[inverse.reshape(-1)]
    return places


def word_lines(learner: Multilabel) -> Iterator[str]:
    """Yield lines of the readable model about the parameters of the combination, and about each label."""
    scorers = learner.scorers
    for number, value in enumerate(scorers.state[0].tolist()):
        yield f"{'E' if number == ranking.EXPONENT else f'V{number}'} = {value:g}"
    yield f"r = {arow.r_of(scorers.regularisation):g}"
    for y in range(1, len(learner.counts)):
        yield f"label = {_name(learner, y)} bias = {scorers.bias[y]:g} examples = {scorers.examples[y]:g}"


def _name(learner: Multilabel, y: int) -> str:
    return printable(class_names.text_of(y - 1 + learner.lowest, learner.names))
