"""Say why a class fails and what would help, from the facts about its errors.

Each reason is a number of errors that is counted in the test data, so the reasons of a class can be ordered by the
errors that they apply to; an error may have several. Each sentence contains the numbers that it follows from. The
advice is about the class and its lines. Options are advised by `remedies`, over all classes: they lower the error of
some classes and raise that of others, so the errors of one class do not tell which option would help it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .failing import SHORT, SURE, Failing
from .frequencies import Bin
from .outcomes import LISTED
from .wording import clipped, counted, number, percent

FEW_TIMES = 4  # so many times the training examples are compared with
GAIN = 0.05  # smallest difference in error that is worth more examples
DEVIATIONS = 2  # smallest difference in standard deviations
MOST, OFTEN = 0.5, 2  # share and number of errors from which a reason is listed, or a wrong answer is a reason
LEAST_TESTED = 20  # examples of a range of frequencies from which its error is reliable
PREFERRED = 1.5  # answers for each test example of a class, from which it is answered too often


class Finding(NamedTuple):
    """Hold a reason and what to do about it."""

    key: str  # name of the rule, for programs
    reason: str
    advice: str
    errors: float  # weight of the errors of the class to which the reason applies


class Setting(NamedTuple):
    """Hold what the rules need to know about the model and the test data as a whole."""

    bins: Sequence[Bin]  # errors by the number of training examples; empty if that is not known
    features: float  # mean number of features of the test examples
    is_online: bool  # whether the model can continue to learn
    name: Callable[[int], str]  # text of a class


def findings(facts: Failing, setting: Setting) -> list[Finding]:
    """Return the reasons for the errors of a class, the one that applies to most errors first.

    These are the reasons that apply to at least half of the errors, or else the most frequent ones, which say so; and
    what the numbers of its training examples and of its answers tell.
    """
    if facts.trained == 0:
        further = " and continue with -i" if setting.is_online else " and train again"
        return [
            Finding(
                "no_training_example",
                "The training data have no example of it.",
                f"Add examples of the class{further}.",
                facts.errors,
            )
        ]
    rules = (_nothing_seen, _not_proposed, _confused, _close, _far, _short, _sure)
    applying = [finding for rule in rules if (finding := rule(facts, setting)) is not None]
    result = [finding for finding in applying if finding.errors >= MOST * facts.errors]
    if not result:
        result = _most_frequent(applying) or [_spread(facts)]
    of_class = [
        finding for rule in (_few, _never_answered, _preferred) if (finding := rule(facts, setting)) is not None
    ]
    return sorted([*result, *of_class], key=lambda finding: -finding.errors)


def _most_frequent(applying: Sequence[Finding]) -> list[Finding]:
    """Return the findings that apply to most errors, although to fewer than half of them."""
    most = max((finding.errors for finding in applying), default=0.0)
    first = [finding for finding in applying if finding.errors == most]
    words = "most often" if len(first) == 1 else "one of the most frequent"
    return [
        finding._replace(reason=f"No single reason; {words}: {finding.reason[0].lower()}{finding.reason[1:]}")
        for finding in first
    ]


def _few(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class had few training examples, if classes with more have fewer errors.

    All classes of the next ranges are compared with, up to FEW_TIMES the examples. The finding applies to the share of
    the errors by which their error is smaller.
    """
    if facts.trained is None:
        return None
    own = next((one for one in setting.bins if one.low <= round(facts.trained) <= one.high), None)
    if own is None:
        return None
    above = [one for one in setting.bins if own.high < one.low and one.high <= FEW_TIMES * own.high]
    tested = sum(one.examples for one in above)
    if min(own.examples, tested) < LEAST_TESTED:
        return None
    error = sum(one.errors for one in above) / tested
    deviation = math.sqrt(own.error * (1 - own.error) / own.examples + error * (1 - error) / tested)
    if own.error - error < max(GAIN, DEVIATIONS * deviation):
        return None
    more = f"{above[0].low:,} to {above[-1].high:,}"
    return Finding(
        "few_examples",
        f"It had {counted(facts.trained, 'training example')}.",
        f"Collect more: classes with {own.text} training {'example' if own.high == 1 else 'examples'} have an error of "
        f"{percent(own.error)} ({counted(own.examples, 'test example')}), those with {more} of {percent(error)} "
        f"({counted(tested, 'test example')}).",
        facts.errors * (1 - error / own.error),
    )


def _never_answered(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class is never predicted although it was learned, which explains no error alone."""
    if facts.answers or not facts.trained:
        return None
    return Finding(
        "never_predicted",
        f"It was learned from {counted(facts.trained, 'example')}, but is never predicted.",
        "Compare its lines with those of the classes it is taken for: the labels may follow different rules.",
        0.0,
    )


def _preferred(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class is answered too often, which explains errors of other classes."""
    if facts.answers < PREFERRED * facts.examples or 2 * facts.right >= facts.answers:
        return None
    return Finding(
        "answered_too_often",
        f"It is answered {number(facts.answers)} times for {counted(facts.examples, 'test example')}, and "
        f"{number(facts.right)} of these answers are right: precision {percent(facts.right / facts.answers)}.",
        "An option that lowers the error over all may take answers from it, and so raise its own error: compare the "
        "classes before and after.",
        0.0,
    )


def _nothing_seen(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that no feature of some lines occurred in training."""
    if not facts.nothing_seen:
        return None
    return Finding(
        "no_feature_known",
        f"{_in(facts.nothing_seen, facts.errors)} no feature of the line occurred in the training data.",
        "Add training examples with such words, or give the lines features that they share with others, such as parts "
        "of words.",
        facts.nothing_seen,
    )


def _not_proposed(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class was not compared in some errors."""
    if not facts.not_proposed:
        return None
    return Finding(
        "not_compared",
        f"{_in(facts.not_proposed, facts.errors)} the class was not compared, because it was not proposed for the "
        "line.",
        "Add training examples with such words.",
        facts.not_proposed,
    )


def _confused(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that one wrong answer occurs several times."""
    if not facts.confused:
        return None
    answer, count, reverse = facts.confused[0]
    if answer == 0 or count < OFTEN:
        return None
    both = f", and {number(reverse)} the other way round" if reverse else ""
    advice = (
        "The two have nearly the same features: check whether both are needed, or add a feature that differs."
        if reverse
        else "Compare the lines of both classes: correct labels that are wrong, or add a feature that differs."
    )
    which = f"{_in(count, facts.errors)} the answer is {_quoted(setting.name(answer))}"
    return Finding("confused", f"{which}{both}.", advice, count)


def _close(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the label is among the first classes in some errors."""
    if not facts.in_list:
        return None
    return Finding(
        "close",
        f"{_in(facts.in_list, facts.errors)} the class is among the first {LISTED}.",
        f"Offer the first {LISTED} (--top_k {LISTED}) where a person chooses, or add a feature that differs from the "
        "wrong answers.",
        facts.in_list,
    )


def _far(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the label was compared, but is not among the first classes in some errors."""
    if not facts.far:
        return None
    compared = "" if facts.not_proposed is None else "was compared, but "
    return Finding(
        "not_close",
        f"{_in(facts.far, facts.errors)} the class {compared}is not among the first {LISTED}.",
        "Read its wrong lines below: their words may not tell the class. Give the lines more features.",
        facts.far,
    )


def _short(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that some wrong examples have few features."""
    if not facts.short:
        return None
    return Finding(
        "short",
        f"{_in(facts.short, facts.errors)} the line has fewer than {percent(SHORT)} of the {setting.features:.1f} "
        "features that lines have on average.",
        "Give these lines more features, such as parts of words or the source of the text.",
        facts.short,
    )


def _sure(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that some wrong answers are sure, so that labels may be wrong."""
    if not facts.sure:
        return None
    return Finding(
        "sure",
        f"{_in(facts.sure, facts.errors)} the wrong answer has a probability of {SURE} or more.",
        "Check the labels of the lines below first.",
        facts.sure,
    )


def _spread(facts: Failing) -> Finding:
    """Return the finding about a class of whose errors nothing else is known."""
    verb = "is" if facts.errors == 1 else "are"
    others = f"{facts.wrong_answers} other {'class' if facts.wrong_answers == 1 else 'classes'}"
    return Finding(
        "spread",
        f"Its {counted(facts.errors, 'error')} {verb} spread over {others}.",
        "Read its wrong lines below: their words may not tell the class. Give the lines more features.",
        0.0,
    )


def _in(part: float, whole: float) -> str:
    """Return a part of the errors as the beginning of a sentence: `In 3 of 4 errors`, `In all 4 errors`."""
    if part == whole:
        return "In its only error" if whole == 1 else f"In all {number(whole)} errors"
    return f"In {number(part)} of {number(whole)} errors"


def _quoted(name: str) -> str:
    """Return the name of a class in quotation marks."""
    return f"“{clipped(name)}”"
