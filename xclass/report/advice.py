"""Say why a class fails and what would help, from the facts about its errors.

The rules compare numbers of examples only, and each sentence contains the numbers that it follows from. A sentence is
advice to try and to measure: a report cannot know the effect before the model is trained again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .failing import Failing
from .frequencies import Bin
from .outcomes import LISTED

FEW_TIMES = 4  # so many times the training examples are compared with
GAIN = 0.05  # smallest difference in error that is worth more examples
MOST, OFTEN = 0.5, 0.25  # shares of the errors of a class
SURE = 0.7  # mean probability of wrong answers from which the labels are doubted
SHORT = 0.7  # share of the mean number of features below which examples are short
LEAST_TESTED = 20  # examples of a range of frequencies from which its error is reliable


class Finding(NamedTuple):
    """Hold a reason and what to do about it."""

    reason: str
    advice: str


class Setting(NamedTuple):
    """Hold what the rules need to know about the model and the test data as a whole."""

    bins: Sequence[Bin]  # errors by the number of training examples; empty if that is not known
    features: float  # mean number of features of the test examples
    proposes: bool  # whether the learner compares only the classes that trees and an index propose
    is_online: bool  # whether the model can continue to learn
    name: Callable[[int], str]  # text of a class


def findings(facts: Failing, setting: Setting) -> list[Finding]:
    """Return the reasons that apply to a class, the most certain one first, at least one.

    Parameters
    ----------
    facts : the class
    setting : the model and the test data
    """
    if facts.trained == 0:
        further = " and continue with -i" if setting.is_online else " and train again"
        return [Finding("The training data have no example of it.", f"Add examples of the class{further}.")]
    rules = (_few, _never_answered, _confused, _not_proposed, _close, _short, _sure)
    found = [rule(facts, setting) for rule in rules]
    result = [finding for finding in found if finding is not None]
    if not result:
        result = [
            Finding(
                f"Its {_number(facts.errors)} errors are spread over {facts.wrong_answers} other classes.",
                "Read its wrong lines below: their words may not tell the class. Give the lines more features, or "
                "train with pairs of words (--ngram 2).",
            )
        ]
    return result


def _few(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class had few training examples, if classes with more have fewer errors."""
    if facts.trained is None:
        return None
    own = _bin_of(setting.bins, facts.trained)
    more = _bin_of(setting.bins, facts.trained * FEW_TIMES)
    if own is None or more is None or more.error > own.error - GAIN:
        return None
    return Finding(
        f"It had {_number(facts.trained)} training {_plural('example', facts.trained)}.",
        f"Collect more: classes with {own.text} examples have an error of {own.error:.0%}, those with {more.text} of "
        f"{more.error:.0%}.",
    )


def _never_answered(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class is never predicted although it was learned."""
    if facts.answers or not facts.trained:
        return None
    return Finding(
        f"It was learned from {_number(facts.trained)} {_plural('example', facts.trained)}, but is never predicted.",
        "Compare its lines with those of the classes it is taken for: the labels may follow different rules.",
    )


def _confused(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that one wrong answer prevails."""
    if not facts.confused:
        return None
    answer, count, reverse = facts.confused[0]
    if answer == 0 or count < MOST * facts.errors or count < 2:
        return None
    both = f", and {_number(reverse)} the other way round" if reverse else ""
    advice = (
        "The two have nearly the same features: check whether both are needed, or add a feature that differs."
        if reverse
        else "Compare the lines of both classes: correct labels that are wrong, or add a feature that differs."
    )
    return Finding(
        f"{_number(count)} of {_number(facts.errors)} errors are {_quoted(setting.name(answer))}{both}.", advice
    )


def _not_proposed(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the class was often not compared."""
    if not setting.proposes or facts.not_proposed is None or facts.not_proposed < MOST * facts.errors:
        return None
    return Finding(
        f"In {_of(facts.not_proposed, facts.errors)} errors the class was not compared: neither the trees nor the "
        "index proposed it, because the words of these lines were rare in it.",
        "Add training examples with such words, or train with pairs of words (--ngram 2).",
    )


def _close(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the label is often among the first classes."""
    if facts.in_list is None or facts.in_list < MOST * facts.errors:
        return None
    return Finding(
        f"In {_of(facts.in_list, facts.errors)} errors the class is among the first {LISTED}.",
        f"Offer the first {LISTED} (--top_k {LISTED}) where a person chooses. Train with further passes "
        "(--passes 3 --holdout_off) or another learning rate (-l).",
    )


def _short(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that the wrong examples have few features."""
    if facts.features >= SHORT * setting.features:
        return None
    return Finding(
        f"The wrong lines have {facts.features:.1f} features on average, and all lines {setting.features:.1f}.",
        "Give these lines more features, such as parts of words or the source of the text.",
    )


def _sure(facts: Failing, setting: Setting) -> Finding | None:
    """Return the finding that wrong answers are sure, so that labels may be wrong."""
    if facts.sureness is None or facts.sureness < SURE:
        return None
    return Finding(
        f"The wrong answers are sure: their mean probability is {facts.sureness:.2f}.",
        "Check the labels of the lines below first.",
    )


def _bin_of(bins: Sequence[Bin], count: float) -> Bin | None:
    """Return the range that contains a number of examples, None if it has too few test examples."""
    for one in bins:
        if one.low <= round(count) <= one.high:
            return one if one.examples >= LEAST_TESTED else None
    return None


def _of(part: float, whole: float) -> str:
    """Return a part of a number of errors as text: `3 of 4`, `all 4`."""
    return f"all {_number(whole)}" if part == whole else f"{_number(part)} of {_number(whole)}"


def _number(value: float) -> str:
    """Return a number of examples as text."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _plural(word: str, count: float) -> str:
    """Return a word in the plural, unless the count is 1."""
    return word if count == 1 else word + "s"


def _quoted(name: str) -> str:
    """Return the name of a class in quotation marks."""
    return f"“{name}”"
