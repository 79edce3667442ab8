"""Each rule gives its advice exactly where its facts hold."""

import numpy as np
import pytest

from xclass.report import failing
from xclass.report.failing import Bin, Confusion, FailingClass

CLASS = FailingClass(
    label=1, errors=10.0, examples=20.0, answers=20.0, right_answers=10.0, training_examples=100.0,
    taken_for=[Confusion(2, 1.0, 0.0), Confusion(3, 1.0, 0.0)], reasons=[], sample=np.arange(3),
)  # fmt: skip
APPLYING = {"close": 2.0, "not_compared": 1.0, "no_feature_known": 0.0, "short": 3.0, "sure": 0.0}
BINS = [
    Bin(1, 1, 50, 50.0, 45.0, 10.0), Bin(2, 2, 30, 30.0, 10.0, 30.0), Bin(3, 4, 50, 50.0, 30.0, 30.0),
    Bin(5, 8, 5, 5.0, 0.0, 5.0), Bin(65, 128, 9, 90.0, 30.0, 80.0), Bin(129, 256, 9, 30.0, 12.0, 30.0),
    Bin(257, 512, 9, 30.0, 10.0, 30.0),
]  # fmt: skip
SETTING = failing.ReportSetting(BINS, features=10.0, is_online=True, name=lambda label: f"c{label}")


def found(wrong_answers=10, setting=SETTING, **facts) -> list[failing.Finding]:
    """The findings about a class with these facts; None for a reason of which nothing is known."""
    of_class = {name: facts.pop(name) for name in CLASS._fields if name in facts}
    applying = {key: errors for key, errors in {**APPLYING, **facts}.items() if errors is not None}
    return failing.findings(CLASS._replace(**of_class), applying, wrong_answers, setting)


def reasons(**facts) -> list[str]:
    """The texts of the findings."""
    return [finding.text for finding in found(**facts)]


def confused(often, reverse=0.0, answer=2) -> list[Confusion]:
    return [Confusion(answer, often, reverse)]


SHORT_REASON = "n 3 of 10 errors the line has fewer than 70.0\xa0% of the 10.0 features that lines have on average."
SHORT = f"No single reason; most often: i{SHORT_REASON}"


def test_the_most_frequent_reason_is_told_if_none_applies_to_half_of_the_errors():
    assert reasons() == [SHORT]
    assert reasons(not_compared=4.0) == [
        "No single reason; most often: in 4 of 10 errors the class was not compared, because it was not proposed for "
        "the line."
    ]
    tied = "No single reason; one of the most frequent: i"
    assert reasons(taken_for=confused(3.0)) == [
        f"{tied}n 3 of 10 errors the answer is “c2”.",
        tied + SHORT_REASON,
    ]


def test_errors_of_which_nothing_is_known_are_spread():
    unknown = {"close": None, "not_compared": None, "no_feature_known": None, "short": 0.0, "sure": None}
    assert reasons(**unknown) == ["Its 10 errors are spread over 10 other classes."]
    assert reasons(**unknown, errors=1.0, wrong_answers=1) == ["Its 1 error is spread over 1 other class."]


def test_reasons_are_in_the_order_of_the_errors_they_apply_to():
    listed = found(taken_for=confused(6.0, 1.0), close=9.0, answers=0.0, short=5.0)
    assert [finding.errors for finding in listed] == [9.0, 6.0, 5.0, 0.0]
    assert listed[-1].text == "It was learned from 100 examples, but is never predicted."


def test_a_class_that_was_never_seen_has_no_other_reason():
    (one,) = found(training_examples=0.0, close=10.0)
    assert one.text == "The training data have no example of it." and "continue with -i" in one.advice
    (one,) = found(training_examples=0.0, setting=SETTING._replace(is_online=False))
    assert "train again" in one.advice


def test_more_examples_are_advised_where_classes_with_more_are_better():
    one, _ = sorted(found(training_examples=1.0), key=lambda finding: finding.text[:3] != "It ")
    assert one.text == "It had 1 training example."
    assert one.advice == (
        "Collect more: classes with 1 training example have an error of 90.0\xa0% (50 test examples), those with 2 "
        "to 4 of 50.0\xa0% (80 test examples)."
    )
    assert one.errors == pytest.approx(10 * (1 - (40 / 80) / (45 / 50)))
    assert reasons(training_examples=100.0) == [SHORT]  # classes with up to 512 are no better
    assert reasons(training_examples=200.0) == [SHORT]  # better by less than two standard deviations
    assert reasons(training_examples=4.0) == [SHORT]  # classes with 5 to 8 have too few test examples
    assert reasons(training_examples=12.0) == [SHORT]  # no class with 9 to 16 was tested
    assert reasons(training_examples=None) == [SHORT]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"taken_for": confused(6.0, 4.0)}, "In 6 of 10 errors the answer is “c2”, and 4 the other way round."),
        ({"taken_for": confused(5.0)}, "In 5 of 10 errors the answer is “c2”."),
        ({"no_feature_known": 5.0}, "In 5 of 10 errors no feature of the line occurred in the training data."),
        ({"not_compared": 10.0}, "In all 10 errors the class was not compared"),
        ({"close": 5.0}, "In 5 of 10 errors the class is among the first 5."),
        ({"not_close": 7.0}, "In 7 of 10 errors the class was compared, but is not among the first 5."),
        ({"not_close": 7.0, "not_compared": None}, "In 7 of 10 errors the class is not among the first 5."),
        ({"short": 8.0}, "In 8 of 10 errors the line has fewer than 70.0 % of the 10.0 features"),
        ({"sure": 9.0}, "In 9 of 10 errors the wrong answer has a probability of 0.7 or more."),
        ({"sure": 1.0, "errors": 1.0, "short": 0.0}, "In its only error the wrong answer has a probability of 0.7 or"),
    ],
)
def test_rules(facts, words):
    defaults = {"close": 0.0, "not_compared": 0.0} if facts.get("errors") else {}
    (one,) = reasons(**defaults, **facts)
    assert one.startswith(words)


@pytest.mark.parametrize(
    "facts",
    [
        {"taken_for": confused(9.0, answer=0)},  # no answer at all
        {
            "taken_for": confused(1.0, 4.0),
            "short": 0.5,
            "errors": 4.0,
            "close": 1.5,
        },  # a single error is no confusion
    ],
)
def test_what_is_no_confusion(facts):
    assert not any("the answer is" in reason for reason in reasons(**facts))


def test_a_class_that_is_answered_too_often_is_told_with_its_precision():
    (_, one) = found(answers=134.0, right_answers=29.0, examples=43.0, close=9.0)
    assert one.text == (
        "It is answered 134 times for 43 test examples, and 29 of these answers are right: precision 21.6\xa0%."
    )
    assert "compare the classes before and after" in one.advice and one.errors == 0.0
    assert len(reasons(answers=29.0, right_answers=10.0, close=9.0)) == 1  # for 20 test examples
    assert (
        len(reasons(answers=40.0, right_answers=20.0, examples=25.0, close=9.0)) == 1
    )  # half of the answers are right


def test_advice_for_a_class_names_no_option_of_learning():
    texts = [
        finding.advice
        for facts in (
            {"not_compared": 10.0}, {"close": 10.0}, {"not_close": 10.0}, {"short": 9.0}, {"sure": 9.0},
            {"close": None, "not_compared": None, "no_feature_known": None, "short": 0.0, "sure": None},
        )
        for finding in found(**facts)
    ]  # fmt: skip
    assert len(texts) >= 6 and not any(flag in text for flag in ("--passes", "--ngram", "-l)") for text in texts)
