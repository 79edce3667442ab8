"""Find the classes that fail, say why and what would help, from the numbers of errors that each reason applies to.

Each reason is a number of errors that is counted in the test data, so the reasons of a class can be ordered by the
errors that they apply to; an error may have several. Each sentence contains the numbers that it follows from. The
advice is about the class and its lines. Options are advised by `overall`, over all classes: they lower the error of
some classes and raise that of others, so the errors of one class do not tell which option would help it.

Numbers of examples and errors are sums of weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Bools, Float64s, Int32s, Int64s
from ..binary import tagged_words
from ..binary.tagged_words import Words
from ..data import class_names
from ..run.results.by_class import WEIGHT, PairSums
from .markup import clipped, counted, number, percent
from .outcomes import LISTED, NOT_KNOWN, ClassFrequencies, ModelOutcomes

MOST_CONFUSED = 3  # wrong answers that are listed for a class
SURE = 0.7  # probability of a wrong answer from which the label is doubted
SHORT = 0.7  # share of the mean number of features below which examples are short
FEW_TIMES = 4  # so many times the training examples are compared with
GAIN = 0.05  # smallest difference in error that is worth more examples
DEVIATIONS = 2  # smallest difference in standard deviations
MOST, OFTEN = 0.5, 2  # share and number of errors from which a reason is listed, or a wrong answer is a reason
LEAST_TESTED = 20  # examples of a range of frequencies from which its error is reliable
PREFERRED = 1.5  # answers for each test example of a class, from which it is answered too often
READ = "Read its wrong lines below: their words may not tell the class. Give the lines more features."
MOST_LOST = 0.5  # weights that found no place, as a share of those in use, above which a larger table is advised
FEATURES = "Give the lines more features that tell the classes apart"
CAUSES = {  # name -> what it means, what would help
    "class never seen": (
        "The training data have no example of the class, so it cannot be predicted.",
        "Add training examples of the classes that were never seen.",
    ),
    "nothing known": (
        "No feature of the line occurred in the training data.",
        "Add training examples with the words of these lines, or features that lines share, such as parts of words.",
    ),
    "not compared": (
        "The class was not among those that the trees and the index propose, so its scorer was not asked.",
        "Add training examples, first of rare classes. The settings below may help as well; a setting with which more "
        "classes are compared does not always lower the error.",
    ),
    "close": (
        "The class is among the first five, but another one is more probable.",
        f"Give the lines features that tell similar classes apart. Where a person chooses, show the first {LISTED} "
        f"(--top_k {LISTED}).",
    ),
    "compared, not close": (
        "The scorer of the class was asked, and found other classes more probable.",
        f"{FEATURES}, such as parts of words, or other columns of the source.",
    ),
    "not close": (
        "The class is not among the first five.",
        f"{FEATURES}, such as parts of words, or other columns of the source.",
    ),
    "other class more probable": (
        "Another class was preferred.",
        f"{FEATURES}, or try another reduction (--multiclass has the fewest errors on most data).",
    ),
}
RULES = {  # key of a reason that applies to single errors -> reason, advice
    "no_feature_known": (
        "no feature of the line occurred in the training data",
        "Add training examples with such words, or give the lines features that they share with others, such as parts "
        "of words.",
    ),
    "not_compared": (
        "the class was not compared, because it was not proposed for the line",
        "Add training examples with such words.",
    ),
    "confused": ("the answer is “{answer}”", ""),  # the advice depends on the other direction
    "close": (
        f"the class is among the first {LISTED}",
        f"Offer the first {LISTED} (--top_k {LISTED}) where a person chooses, or add a feature that differs from the "
        "wrong answers.",
    ),
    "not_close": ("the class {compared}is not among the first " + str(LISTED), READ),
    "short": (
        "the line has fewer than " + percent(SHORT) + " of the {features:.1f} features that lines have on average",
        "Give these lines more features, such as parts of words or the source of the text.",
    ),
    "sure": (
        f"the wrong answer has a probability of {SURE} or more",
        "Check the labels of the lines below first.",
    ),
}
SETTINGS = (
    "Settings to try, each alone: pairs of words (--ngram 2), further passes (--passes 3 --holdout_off){tables}"
    "{index}. They change the choice among all classes. One that lowers the error over all may raise that "
    "of a frequent class, so compare the classes before and after."
)


class Finding(NamedTuple):
    """Hold a reason for errors of a class and what to do about it, as the JSON file has it."""

    key: str  # name of the rule, for programs
    errors: float  # of the class, to which the reason applies
    of: float  # errors of the class
    text: str
    advice: str


class Confusion(NamedTuple):
    """Hold a wrong answer that a class gets, how often, and how often it is the other way round."""

    answer: int
    often: float
    reverse: float


class FailingClass(NamedTuple):
    """Hold a class with errors, and the reasons for them."""

    label: int
    errors: float
    examples: float  # test examples with this label
    answers: float  # test examples whose answer is this class
    right_answers: float
    training_examples: float | None  # None if not known
    taken_for: list[Confusion]  # the most frequent wrong answers
    reasons: list[Finding]
    sample: Int64s  # int64[...], wrong examples by their number, the surest answers first


class Pair(NamedTuple):
    """Hold a label and a wrong answer that occurs with it."""

    label: int
    answer: int
    often: float  # examples with this label and this answer
    examples: float  # examples with this label
    reverse: float  # examples where it is the other way round


class Cause(NamedTuple):
    """Hold a share of all errors that has one cause, and what would help."""

    cause: str
    errors: float
    of: float  # all errors
    text: str
    advice: str


class Bin(NamedTuple):
    """Hold the classes whose number of examples is in a range."""

    low: int
    high: int
    classes: int
    examples: float  # their test examples
    errors: float
    in_list: float  # test examples whose label was among the first listed classes; NaN if not known

    @property
    def text(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"

    @property
    def error(self) -> float:
        return self.errors / self.examples


class ReportSetting(NamedTuple):
    """Hold what the rules need to know about the model and the test data as a whole."""

    bins: Sequence[Bin]  # errors by the number of training examples; empty if that is not known
    features: float  # mean number of features of the test examples
    is_online: bool  # whether the model can continue to learn
    name: Callable[[int], str]  # text of a class


class FailingClasses(NamedTuple):
    """Hold the classes that fail most."""

    by_errors: list[FailingClass]  # with the most errors
    by_rate: list[FailingClass]  # with the highest error, among those with enough examples
    more: tuple[int, int]  # classes beyond these lists that fail as much as the last one


def worst(
    tested: ModelOutcomes, known: ClassFrequencies, most: int, least: float, setting: ReportSetting
) -> FailingClasses:
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
    rules = _applying(tested, setting)
    found = {
        j: _failing(tested, known, int(labels[j]), place == j, rules, setting) for j in {*by_errors.tolist(), *by_rate}
    }
    more = _more(errors[fails], errors[by_errors]), _more(rate[tried], rate[by_rate])
    return FailingClasses([found[j] for j in by_errors], [found[j] for j in by_rate], more)


def _more(values: Float64s, listed: Float64s) -> int:
    """Return how many values equal the last listed one (the smallest) without being listed."""
    return int(np.sum(values == listed[-1]) - np.sum(listed == listed[-1])) if len(listed) else 0


def _applying(tested: ModelOutcomes, setting: ReportSetting) -> dict[str, Bools]:
    """Return for the reasons that are known whether each example has them, bool[m]."""
    rules: dict[str, tuple[Int32s | Int64s, Bools]] = {
        "no_feature_known": (tested.seen, tested.seen == 0),
        "not_compared": (tested.proposed, tested.proposed == 0),
        "close": (tested.place, tested.place > 0),
        "not_close": (tested.place, (tested.place == 0) & (tested.proposed != 0)),
        "short": (tested.features, tested.features < SHORT * setting.features),
        "sure": (tested.row, tested.answer_probability >= SURE),  # not if it is NaN
    }
    return {key: applies for key, (values, applies) in rules.items() if (values != NOT_KNOWN).any()}


def _failing(
    tested: ModelOutcomes,
    known: ClassFrequencies,
    label: int,
    own: Bools,
    rules: Mapping[str, Bools],
    setting: ReportSetting,
) -> FailingClass:
    """Return a class whose examples are `own` (bool[m]), and why it fails; `rules` are as of `_applying`."""
    wrong = np.flatnonzero(own & tested.wrong)
    weight = tested.weight[wrong]
    answered = tested.answer == label
    answers, of_answer = np.unique(tested.answer[wrong], return_inverse=True)
    counts = np.bincount(of_answer, weight, len(answers))
    order = np.lexsort((tested.row[wrong], -np.nan_to_num(tested.answer_probability[wrong])))
    one = FailingClass(
        label=label,
        errors=float(weight.sum()),
        examples=_weight(tested, own),
        answers=_weight(tested, answered),
        right_answers=_weight(tested, own & answered),
        training_examples=float(known.of(np.array([label]))[0]) if known.is_training else None,
        taken_for=[
            Confusion(answer, float(counts[j]), _weight(tested, (tested.label == answer) & answered))
            for j in np.lexsort((answers, -counts))[:MOST_CONFUSED].tolist()
            for answer in [int(answers[j])]
        ],
        reasons=[],
        sample=tested.row[wrong[order]],
    )
    applying = {key: float(weight[applies[wrong]].sum()) for key, applies in rules.items()}
    return one._replace(reasons=findings(one, applying, len(answers), setting))


def _weight(tested: ModelOutcomes, chosen: Bools) -> float:
    return float(tested.weight[chosen].sum())


def confused_pairs(tested: ModelOutcomes, most: int) -> list[Pair]:
    sums = PairSums()
    sums.add(tested)
    label, answer = sums.added_up()
    count = np.where((label != answer) & (answer > 0), sums.sums[:, WEIGHT], 0.0)
    result = []
    for j in np.argsort(-count, kind="stable")[: min(most, np.count_nonzero(count))].tolist():
        y, other = int(label[j]), int(answer[j])
        reverse = float(count[(label == other) & (answer == y)].sum())
        result.append(Pair(y, other, float(count[j]), _weight(tested, tested.label == y), reverse))
    return result


def causes(tested: ModelOutcomes, known: ClassFrequencies) -> list[Cause]:
    """Divide the errors by what went wrong first, the largest part first; the parts add up to all errors."""
    never = tested.label == class_names.UNKNOWN
    if known.is_training:
        never |= known.of(tested.label) == 0
    chosen = (
        never, tested.seen == 0, tested.proposed == 0, tested.place > 1, tested.proposed == 1, tested.place == 0,
        tested.wrong,
    )  # fmt: skip
    rest, total, parts = tested.wrong.copy(), _weight(tested, tested.wrong), []
    for own, (name, texts) in zip(chosen, CAUSES.items(), strict=True):
        if (rest & own).any():
            parts.append(Cause(name, _weight(tested, rest & own), total, *texts))
        rest[own] = False
    return sorted(parts, key=lambda part: -part.errors)


def bins(tested: ModelOutcomes, known: ClassFrequencies) -> list[Bin]:
    """Return the errors by the number of examples of the label: 0, 1, 2, 3 to 4, 5 to 8, 9 to 16 and so on."""
    count = np.rint(known.of(tested.label)).astype(np.int64)
    level = np.where(count > 0, np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64) + 1, 0)
    result = []
    for j in np.unique(level).tolist():
        chosen = level == j
        low, high = (0, 0) if j == 0 else (1, 1) if j == 1 else ((1 << (j - 2)) + 1, 1 << (j - 1))
        unknown = (tested.place[chosen] == NOT_KNOWN).any()
        in_list = math.nan if unknown else _weight(tested, chosen & (tested.place > 0))
        examples, errors = _weight(tested, chosen), _weight(tested, chosen & tested.wrong)
        if examples > 0:
            result.append(Bin(low, high, len(np.unique(tested.label[chosen])), examples, errors, in_list))
    return result


# -- why, and what would help


def findings(
    one: FailingClass, applying: Mapping[str, float], wrong_answers: int, setting: ReportSetting
) -> list[Finding]:
    """Return the reasons for the errors of a class, the one that applies to most errors first.

    These are the reasons that apply to at least half of the errors, or else the most frequent ones, which say so; and
    what the numbers of its training examples and of its answers tell. `applying` has the number of errors to which each
    reason that is known applies, and `wrong_answers` is the number of different ones.
    """
    if one.training_examples == 0:
        further = " and continue with -i" if setting.is_online else " and train again"
        reason, advice = "The training data have no example of it.", f"Add examples of the class{further}."
        return [Finding("no_training_example", one.errors, one.errors, reason, advice)]
    found = _of_errors(one, applying, setting)
    result = [finding for finding in found if finding.errors >= MOST * one.errors]
    if not result and found:
        most = max(finding.errors for finding in found)
        first = [finding for finding in found if finding.errors == most]
        words = "most often" if len(first) == 1 else "one of the most frequent"
        result = [
            finding._replace(text=f"No single reason; {words}: {finding.text[0].lower()}{finding.text[1:]}")
            for finding in first
        ]
    if not result:
        verb = "is" if one.errors == 1 else "are"
        others = f"{wrong_answers} other {'class' if wrong_answers == 1 else 'classes'}"
        text = f"Its {counted(one.errors, 'error')} {verb} spread over {others}."
        result = [Finding("spread", 0.0, one.errors, text, READ)]
    return sorted([*result, *_few(one, setting), *_of_answers(one)], key=lambda finding: -finding.errors)


def _of_errors(one: FailingClass, applying: Mapping[str, float], setting: ReportSetting) -> list[Finding]:
    """Return the findings that apply to some errors of the class, and are known."""
    answer, often, reverse = one.taken_for[0] if one.taken_for else Confusion(0, 0.0, 0.0)
    errors = {**applying, "confused": often if answer and often >= OFTEN else 0.0}
    words = {
        "answer": clipped(setting.name(answer)) if answer else "",
        "compared": "was compared, but " if "not_compared" in applying else "",
        "features": setting.features,
    }
    found = []
    for key, (reason, advice) in RULES.items():
        if errors.get(key):
            text = reason.format_map(words)
            if key == "confused":
                text += f", and {number(reverse)} the other way round" if reverse else ""
                advice = (
                    "The two have nearly the same features: check whether both are needed, or add a feature that "
                    "differs."
                    if reverse
                    else "Compare the lines of both classes: correct labels that are wrong, or add a feature that "
                    "differs."
                )
            text = f"{_in(errors[key], one.errors)} {text}."
            found.append(Finding(key, errors[key], one.errors, text, advice))
    return found


def _in(part: float, whole: float) -> str:
    """Return a part of the errors as the beginning of a sentence: `In 3 of 4 errors`, `In all 4 errors`."""
    if part == whole:
        return "In its only error" if whole == 1 else f"In all {number(whole)} errors"
    return f"In {number(part)} of {number(whole)} errors"


def _few(one: FailingClass, setting: ReportSetting) -> list[Finding]:
    """Return the finding that the class had few training examples, if classes with more have fewer errors.

    All classes of the next ranges are compared with, up to FEW_TIMES the examples. The finding applies to the share of
    the errors by which their error is smaller.
    """
    trained = one.training_examples
    own = next((part for part in setting.bins if part.low <= round(trained or 0) <= part.high), None)
    if trained is None or own is None:
        return []
    above = [part for part in setting.bins if own.high < part.low and part.high <= FEW_TIMES * own.high]
    tested = sum(part.examples for part in above)
    if min(own.examples, tested) < LEAST_TESTED:
        return []
    error = sum(part.errors for part in above) / tested
    deviation = math.sqrt(own.error * (1 - own.error) / own.examples + error * (1 - error) / tested)
    if own.error - error < max(GAIN, DEVIATIONS * deviation):
        return []
    more = f"{above[0].low:,} to {above[-1].high:,}"
    advice = (
        f"Collect more: classes with {own.text} training {'example' if own.high == 1 else 'examples'} have an error of "
        f"{percent(own.error)} ({counted(own.examples, 'test example')}), those with {more} of {percent(error)} "
        f"({counted(tested, 'test example')})."
    )
    text = f"It had {counted(trained, 'training example')}."
    return [Finding("few_examples", one.errors * (1 - error / own.error), one.errors, text, advice)]


def _of_answers(one: FailingClass) -> list[Finding]:
    """Return the findings that the class is never predicted, or too often; they explain no error of its own."""
    if not one.answers and one.training_examples:
        text = f"It was learned from {counted(one.training_examples, 'example')}, but is never predicted."
        advice = "Compare its lines with those of the classes it is taken for: the labels may follow different rules."
        return [Finding("never_predicted", 0.0, one.errors, text, advice)]
    if one.answers < PREFERRED * one.examples or 2 * one.right_answers >= one.answers:
        return []
    text = (
        f"It is answered {number(one.answers)} times for {counted(one.examples, 'test example')}, and "
        f"{number(one.right_answers)} of these answers are right: precision "
        f"{percent(one.right_answers / one.answers)}."
    )
    advice = (
        "An option that lowers the error over all may take answers from it, and so raise its own error: compare the "
        "classes before and after."
    )
    return [Finding("answered_too_often", 0.0, one.errors, text, advice)]


def overall(tables: Mapping[str, Words], options: Mapping[str, Any]) -> list[str]:
    """Return what may help over all classes.

    `tables` are those of tagged words by their names, and `options` those that the model stores.
    """
    slots = options.get("index_slots")
    index = f", a longer index (--index_slots {2 * slots})" if slots else ""
    full = {name: words for name, words in tables.items() if _lost(words) > MOST_LOST * _used(words)}
    grown = max(map(tagged_words.doublings, (full or tables).values()), default=0)
    larger = f"-b {options['bits'] + grown + 1}"
    larger_tables = "" if full else f", larger tables ({larger})"  # advice of their own follows if they are full
    result = [SETTINGS.format(tables=larger_tables, index=index)]
    if full:
        lost = "; ".join(
            f"{name}: {number(_lost(words))} weights found no place, {number(_used(words))} are stored"
            for name, words in full.items()
        )
        result.append(f"The tables were too small ({lost}). Train with larger ones ({larger} or more).")
    return result


def _used(words: Words) -> int:
    return int(words.state[tagged_words.USED])


def _lost(words: Words) -> int:
    """Return how many words found no place; 0 if such a loss only says that the table has to be doubled."""
    waits = tagged_words.waits_for_loss(words)
    return 0 if waits else int(words.state[tagged_words.EVICTED] + words.state[tagged_words.REFUSED])
