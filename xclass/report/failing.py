"""Find the classes with the most errors or the highest error, and collect for each the facts that tell why it fails."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Bools, Float64s, Int32s, Int64s
from ..data import class_names
from .frequencies import Frequencies
from .outcomes import NOT_KNOWN, Outcomes

MOST_CONFUSED = 3  # wrong answers that are listed for a class
SURE = 0.7  # probability of a wrong answer from which the label is doubted
SHORT = 0.7  # share of the mean number of features below which examples are short
CAUSES = {  # name -> meaning
    "class never seen": "The training data have no example of the class, so it cannot be predicted.",
    "nothing known": "No feature of the line occurred in the training data.",
    "not compared": "The class was not among those that the trees and the index propose, so its scorer was not asked.",
    "close": "The class is among the first five, but another one is more probable.",
    "compared, not close": "The scorer of the class was asked, and found other classes more probable.",
    "not close": "The class is not among the first five.",
    "other class more probable": "Another class was preferred.",
}


class Failing(NamedTuple):
    """Hold the facts about a class; numbers of examples are sums of their weights."""

    label: int  # class
    examples: float  # test examples with this label
    errors: float  # those that were predicted wrongly
    answers: float  # test examples whose answer is this class
    right: float  # those of them that have this label
    trained: float | None  # training examples, None if not known
    confused: list[tuple[int, float, float]]  # wrong answers: class, how often, and how often in the other direction
    wrong_answers: int  # number of different wrong answers
    in_list: float | None  # errors whose label is among the first listed classes, None if not known
    not_proposed: float | None  # errors whose label was not compared, None if not known
    far: float | None  # errors whose label is not among the first listed classes although it was compared
    nothing_seen: float | None  # errors with features of which none occurred in training, None if not known
    short: float  # errors whose examples have less than SHORT of the mean number of features
    sure: float | None  # errors whose answer has at least the probability SURE, None if not known
    sample: Int64s  # int64[...], wrong examples by their number, the surest answers first


class Pair(NamedTuple):
    """Hold a label and a wrong answer that occurs with it."""

    label: int
    answer: int
    often: float  # weight of the examples with this label and this answer
    examples: float  # weight of the examples with this label
    reverse: float  # weight of the examples where it is the other way round


class Ranked(NamedTuple):
    """Hold classes, those that fail most first, and the facts about each."""

    by_errors: list[int]  # the classes with the most errors
    by_rate: list[int]  # the classes with the highest error among those with enough examples
    facts: dict[int, Failing]  # of these classes, in this order
    more: tuple[int, int]  # classes beyond each list with as many errors, or as high an error, as its last one


def worst(tested: Outcomes, known: Frequencies, most: int, least: float) -> Ranked:
    """Return the classes with the most errors, and those with the highest error.

    The order is that of --per_class: where errors are equal, the class with more examples comes first. In the second
    list, where the share is equal, the class with more errors comes first. The lower number decides last.
    `least` is the number of test examples that a class needs for that list, and `most` the length of each list.
    """
    labels, place = np.unique(tested.label, return_inverse=True)
    examples = np.bincount(place, tested.weight, len(labels))
    errors = np.bincount(place, tested.weight * tested.wrong, len(labels)).astype(np.float64)
    fails = np.flatnonzero(errors > 0)
    by_errors = fails[np.lexsort((labels[fails], -examples[fails], -errors[fails]))][:most]
    rate = errors / np.maximum(examples, 1e-300)
    tried = fails[examples[fails] >= least]
    by_rate = tried[np.lexsort((labels[tried], -errors[tried], -rate[tried]))][:most]
    usual = float(np.average(tested.features, weights=tested.weight))
    chosen = dict.fromkeys([*by_errors.tolist(), *by_rate.tolist()])
    facts = {int(labels[j]): _failing(tested, known, int(labels[j]), place == j, usual) for j in chosen}
    more = (_more(errors[fails], errors[by_errors]), _more(rate[tried], rate[by_rate]))
    return Ranked(labels[by_errors].tolist(), labels[by_rate].tolist(), facts, more)


def _more(values: Float64s, listed: Float64s) -> int:
    """Return how many values equal the last listed one (the smallest) without being listed."""
    return int(np.sum(values == listed[-1]) - np.sum(listed == listed[-1])) if len(listed) else 0


def _failing(tested: Outcomes, known: Frequencies, label: int, own: Bools, usual: float) -> Failing:
    """Return the facts about a class; `own` (bool[m]) are its examples, `usual` is the mean number of features."""
    wrong = np.flatnonzero(own & tested.wrong)
    weight = tested.weight
    answered = tested.answer == label
    answers, of_answer = np.unique(tested.answer[wrong], return_inverse=True)
    counts = np.bincount(of_answer, weight[wrong], len(answers))
    first = np.lexsort((answers, -counts))[:MOST_CONFUSED]
    confused = [
        (int(answers[j]), float(counts[j]), _weight(tested, (tested.label == answers[j]) & answered))
        for j in first.tolist()
    ]
    sure = tested.answer_probability[wrong]
    place, proposed, seen = tested.place[wrong], tested.proposed[wrong], tested.seen[wrong]
    order = np.lexsort((tested.row[wrong], -np.nan_to_num(sure)))
    return Failing(
        label=label,
        examples=float(weight[own].sum()),
        errors=float(weight[wrong].sum()),
        answers=float(weight[answered].sum()),
        right=_weight(tested, own & answered),
        trained=float(known.of(np.array([label]))[0]) if known.is_training else None,
        confused=confused,
        wrong_answers=len(answers),
        in_list=_sum_if_known(place, place > 0, weight[wrong]),
        not_proposed=_sum_if_known(proposed, proposed == 0, weight[wrong]),
        far=_sum_if_known(place, (place == 0) & (proposed != 0), weight[wrong]),
        nothing_seen=_sum_if_known(seen, seen == 0, weight[wrong]),
        short=float(weight[wrong][tested.features[wrong] < SHORT * usual].sum()),
        sure=None if np.isnan(sure).any() else float(weight[wrong][sure >= SURE].sum()),
        sample=tested.row[wrong[order]],
    )


def _weight(tested: Outcomes, chosen: Bools) -> float:
    return float(tested.weight[chosen].sum())


def _sum_if_known(values: Int32s, chosen: Bools, weight: Float64s) -> float | None:
    return None if (values == NOT_KNOWN).any() else float(weight[chosen].sum())


def confused_pairs(tested: Outcomes, most: int) -> list[Pair]:
    wrong = np.flatnonzero(tested.wrong & (tested.answer > 0))
    key = (tested.label[wrong].astype(np.uint64) << np.uint64(32)) | tested.answer[wrong].astype(np.uint64)
    keys, place = np.unique(key, return_inverse=True)
    counts = np.bincount(place, tested.weight[wrong], len(keys))
    pairs = []
    for j in np.lexsort((keys, -counts))[:most].tolist():
        label, answer = int(keys[j] >> np.uint64(32)), int(keys[j] & np.uint64(2**32 - 1))
        reverse = _weight(tested, (tested.label == answer) & (tested.answer == label))
        pairs.append(Pair(label, answer, float(counts[j]), _weight(tested, tested.label == label), reverse))
    return pairs


class Cause(NamedTuple):
    """Hold a share of all errors that has one cause."""

    name: str
    errors: float
    meaning: str


def causes(tested: Outcomes, known: Frequencies) -> list[Cause]:
    """Divide the errors by what went wrong first; the parts add up to all errors."""
    never = tested.label == class_names.UNKNOWN
    if known.is_training:
        never |= known.of(tested.label) == 0
    chosen = (
        never, tested.seen == 0, tested.proposed == 0, tested.place > 1, tested.proposed == 1, tested.place == 0,
        tested.wrong,
    )  # fmt: skip
    rest, parts = tested.wrong.copy(), []
    for own, (name, meaning) in zip(chosen, CAUSES.items(), strict=True):
        if (rest & own).any():
            parts.append(Cause(name, _weight(tested, rest & own), meaning))
        rest[own] = False
    return parts
