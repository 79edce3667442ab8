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
READ = "Read its wrong lines below: their words may not tell the class. Give the lines more features."


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
        reason, advice = "The training data have no example of it.", f"Add examples of the class{further}."
        return [Finding("no_training_example", reason, advice, facts.errors)]
    applying = _applying(facts, setting)
    result = [finding for finding in applying if finding.errors >= MOST * facts.errors]
    if not result:
        result = _most_frequent(applying) or [_spread(facts)]
    return sorted([*result, *_few(facts, setting), *_of_answers(facts)], key=lambda finding: -finding.errors)


def _most_frequent(applying: Sequence[Finding]) -> list[Finding]:
    """Return the findings that apply to most errors, although to fewer than half of them."""
    most = max((finding.errors for finding in applying), default=0.0)
    first = [finding for finding in applying if finding.errors == most]
    words = "most often" if len(first) == 1 else "one of the most frequent"
    return [
        finding._replace(reason=f"No single reason; {words}: {finding.reason[0].lower()}{finding.reason[1:]}")
        for finding in first
    ]


def _few(facts: Failing, setting: Setting) -> list[Finding]:
    """Return the finding that the class had few training examples, if classes with more have fewer errors.

    All classes of the next ranges are compared with, up to FEW_TIMES the examples. The finding applies to the share of
    the errors by which their error is smaller.
    """
    own = next((one for one in setting.bins if one.low <= round(facts.trained or 0) <= one.high), None)
    if facts.trained is None or own is None:
        return []
    above = [one for one in setting.bins if own.high < one.low and one.high <= FEW_TIMES * own.high]
    tested = sum(one.examples for one in above)
    if min(own.examples, tested) < LEAST_TESTED:
        return []
    error = sum(one.errors for one in above) / tested
    deviation = math.sqrt(own.error * (1 - own.error) / own.examples + error * (1 - error) / tested)
    if own.error - error < max(GAIN, DEVIATIONS * deviation):
        return []
    more = f"{above[0].low:,} to {above[-1].high:,}"
    advice = (
        f"Collect more: classes with {own.text} training {'example' if own.high == 1 else 'examples'} have an error of "
        f"{percent(own.error)} ({counted(own.examples, 'test example')}), those with {more} of {percent(error)} "
        f"({counted(tested, 'test example')})."
    )
    reason = f"It had {counted(facts.trained, 'training example')}."
    return [Finding("few_examples", reason, advice, facts.errors * (1 - error / own.error))]


def _of_answers(facts: Failing) -> list[Finding]:
    """Return the findings that the class is never predicted, or too often; they explain no error of its own."""
    if not facts.answers and facts.trained:
        reason = f"It was learned from {counted(facts.trained, 'example')}, but is never predicted."
        advice = "Compare its lines with those of the classes it is taken for: the labels may follow different rules."
        return [Finding("never_predicted", reason, advice, 0.0)]
    if facts.answers < PREFERRED * facts.examples or 2 * facts.right >= facts.answers:
        return []
    reason = (
        f"It is answered {number(facts.answers)} times for {counted(facts.examples, 'test example')}, and "
        f"{number(facts.right)} of these answers are right: precision {percent(facts.right / facts.answers)}."
    )
    advice = (
        "An option that lowers the error over all may take answers from it, and so raise its own error: compare the "
        "classes before and after."
    )
    return [Finding("answered_too_often", reason, advice, 0.0)]


def _applying(facts: Failing, setting: Setting) -> list[Finding]:
    """Return the findings that apply to some errors of the class, and are known."""
    answer, often, reverse = facts.confused[0] if facts.confused else (0, 0.0, 0.0)
    both = f", and {number(reverse)} the other way round" if reverse else ""
    compared = "" if facts.not_proposed is None else "was compared, but "
    rules = (
        (
            "no_feature_known",
            facts.nothing_seen,
            "no feature of the line occurred in the training data",
            "Add training examples with such words, or give the lines features that they share with others, such as "
            "parts of words.",
        ),
        (
            "not_compared",
            facts.not_proposed,
            "the class was not compared, because it was not proposed for the line",
            "Add training examples with such words.",
        ),
        (
            "confused",
            often if answer and often >= OFTEN else None,
            f"the answer is “{clipped(setting.name(answer))}”{both}" if answer else "",
            "The two have nearly the same features: check whether both are needed, or add a feature that differs."
            if reverse
            else "Compare the lines of both classes: correct labels that are wrong, or add a feature that differs.",
        ),
        (
            "close",
            facts.in_list,
            f"the class is among the first {LISTED}",
            f"Offer the first {LISTED} (--top_k {LISTED}) where a person chooses, or add a feature that differs from "
            "the wrong answers.",
        ),
        ("not_close", facts.far, f"the class {compared}is not among the first {LISTED}", READ),
        (
            "short",
            facts.short,
            f"the line has fewer than {percent(SHORT)} of the {setting.features:.1f} features that lines have on "
            "average",
            "Give these lines more features, such as parts of words or the source of the text.",
        ),
        (
            "sure",
            facts.sure,
            f"the wrong answer has a probability of {SURE} or more",
            "Check the labels of the lines below first.",
        ),
    )
    return [
        Finding(key, f"{_in(errors, facts.errors)} {reason}.", advice, errors)
        for key, errors, reason, advice in rules
        if errors
    ]


def _spread(facts: Failing) -> Finding:
    """Return the finding about a class of whose errors nothing else is known."""
    verb = "is" if facts.errors == 1 else "are"
    others = f"{facts.wrong_answers} other {'class' if facts.wrong_answers == 1 else 'classes'}"
    return Finding("spread", f"Its {counted(facts.errors, 'error')} {verb} spread over {others}.", READ, 0.0)


def _in(part: float, whole: float) -> str:
    """Return a part of the errors as the beginning of a sentence: `In 3 of 4 errors`, `In all 4 errors`."""
    if part == whole:
        return "In its only error" if whole == 1 else f"In all {number(whole)} errors"
    return f"In {number(part)} of {number(whole)} errors"
