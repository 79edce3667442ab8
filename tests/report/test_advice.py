"""Each rule gives its advice exactly where its facts hold."""

from __future__ import annotations

import numpy as np
import pytest

from xclass.report import advice
from xclass.report.failing import Failing
from xclass.report.frequencies import Bin

FACTS = Failing(
    label=1, examples=20.0, errors=10.0, answers=20.0, right=10.0, trained=100.0,
    confused=[(2, 1.0, 0.0), (3, 1.0, 0.0)], wrong_answers=10, in_list=2.0, not_proposed=1.0, far=None,
    nothing_seen=0.0, short=3.0, sure=0.0, sample=np.arange(3),
)  # fmt: skip
BINS = [
    Bin(1, 1, 50, 50.0, 45.0, 10.0), Bin(2, 2, 30, 30.0, 10.0, 30.0), Bin(3, 4, 50, 50.0, 30.0, 30.0),
    Bin(5, 8, 5, 5.0, 0.0, 5.0), Bin(65, 128, 9, 90.0, 30.0, 80.0), Bin(129, 256, 9, 30.0, 12.0, 30.0),
    Bin(257, 512, 9, 30.0, 10.0, 30.0),
]  # fmt: skip
SETTING = advice.Setting(BINS, features=10.0, is_online=True, name=lambda label: f"c{label}")


def reasons(**facts) -> list[str]:
    """The reasons for a class with these facts."""
    return [finding.reason for finding in advice.findings(FACTS._replace(**facts), SETTING)]


SHORT_REASON = "n 3 of 10 errors the line has fewer than 70.0\xa0% of the 10.0 features that lines have on average."
SHORT = f"No single reason; most often: i{SHORT_REASON}"


def test_the_most_frequent_reason_is_told_if_none_applies_to_half_of_the_errors():
    assert reasons() == [SHORT]
    assert reasons(not_proposed=4.0) == [
        "No single reason; most often: in 4 of 10 errors the class was not compared, because it was not proposed for "
        "the line."
    ]
    tied = "No single reason; one of the most frequent: i"
    assert reasons(confused=[(2, 3.0, 0.0)]) == [f"{tied}n 3 of 10 errors the answer is “c2”.", tied + SHORT_REASON]


def test_errors_of_which_nothing_is_known_are_spread():
    unknown = {"in_list": None, "not_proposed": None, "nothing_seen": None, "short": 0.0, "sure": None}
    assert reasons(**unknown) == ["Its 10 errors are spread over 10 other classes."]
    assert reasons(**unknown, errors=1.0, wrong_answers=1) == ["Its 1 error is spread over 1 other class."]


def test_reasons_are_in_the_order_of_the_errors_they_apply_to():
    found = advice.findings(FACTS._replace(confused=[(2, 6.0, 1.0)], in_list=9.0, answers=0.0, short=5.0), SETTING)
    assert [finding.errors for finding in found] == [9.0, 6.0, 5.0, 0.0]
    assert found[-1].reason == "It was learned from 100 examples, but is never predicted."


def test_a_class_that_was_never_seen_has_no_other_reason():
    (found,) = advice.findings(FACTS._replace(trained=0.0, in_list=10.0), SETTING)
    assert found.reason == "The training data have no example of it." and "continue with -i" in found.advice
    (found,) = advice.findings(FACTS._replace(trained=0.0), SETTING._replace(is_online=False))
    assert "train again" in found.advice


def test_more_examples_are_advised_where_classes_with_more_are_better():
    found, _ = sorted(
        advice.findings(FACTS._replace(trained=1.0), SETTING), key=lambda finding: finding.reason[:3] != "It "
    )
    assert found.reason == "It had 1 training example."
    assert found.advice == (
        "Collect more: classes with 1 training example have an error of 90.0\xa0% (50 test examples), those with 2 "
        "to 4 of 50.0\xa0% (80 test examples)."
    )
    assert found.errors == pytest.approx(10 * (1 - (40 / 80) / (45 / 50)))
    assert reasons(trained=100.0) == [SHORT]  # classes with up to 512 are no better
    assert reasons(trained=200.0) == [SHORT]  # better by less than two standard deviations
    assert reasons(trained=4.0) == [SHORT]  # classes with 5 to 8 have too few test examples
    assert reasons(trained=12.0) == [SHORT]  # no class with 9 to 16 was tested
    assert reasons(trained=None) == [SHORT]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"confused": [(2, 6.0, 4.0)]}, "In 6 of 10 errors the answer is “c2”, and 4 the other way round."),
        ({"confused": [(2, 5.0, 0.0)]}, "In 5 of 10 errors the answer is “c2”."),
        ({"nothing_seen": 5.0}, "In 5 of 10 errors no feature of the line occurred in the training data."),
        ({"not_proposed": 10.0}, "In all 10 errors the class was not compared"),
        ({"in_list": 5.0}, "In 5 of 10 errors the class is among the first 5."),
        ({"far": 7.0}, "In 7 of 10 errors the class was compared, but is not among the first 5."),
        ({"far": 7.0, "not_proposed": None}, "In 7 of 10 errors the class is not among the first 5."),
        ({"short": 8.0}, "In 8 of 10 errors the line has fewer than 70.0 % of the 10.0 features"),
        ({"sure": 9.0}, "In 9 of 10 errors the wrong answer has a probability of 0.7 or more."),
        ({"sure": 1.0, "errors": 1.0, "short": 0.0}, "In its only error the wrong answer has a probability of 0.7 or"),
    ],
)
def test_rules(facts, words):
    defaults = {"in_list": 0.0, "not_proposed": 0.0} if facts.get("errors") else {}
    (found,) = reasons(**defaults, **facts)
    assert found.startswith(words)


@pytest.mark.parametrize(
    "facts",
    [
        {"confused": [(0, 9.0, 0.0)]},  # no answer at all
        {"confused": [(2, 1.0, 4.0)], "short": 0.5, "errors": 4.0, "in_list": 1.5},  # a single error is no confusion
    ],
)
def test_what_is_no_confusion(facts):
    assert not any("the answer is" in reason for reason in reasons(**facts))


def test_a_class_that_is_answered_too_often_is_told_with_its_precision():
    (_, found) = advice.findings(FACTS._replace(answers=134.0, right=29.0, examples=43.0, in_list=9.0), SETTING)
    assert found.reason == (
        "It is answered 134 times for 43 test examples, and 29 of these answers are right: precision 21.6\xa0%."
    )
    assert "compare the classes before and after" in found.advice and found.errors == 0.0
    assert len(reasons(answers=29.0, right=10.0, in_list=9.0)) == 1  # for 20 test examples
    assert len(reasons(answers=40.0, right=20.0, examples=25.0, in_list=9.0)) == 1  # half of the answers are right


def test_advice_for_a_class_names_no_option_of_learning():
    texts = [
        finding.advice
        for facts in (
            {"not_proposed": 10.0}, {"in_list": 10.0}, {"far": 10.0}, {"short": 9.0}, {"sure": 9.0},
            {"in_list": None, "not_proposed": None, "nothing_seen": None, "short": 0.0, "sure": None},
        )
        for finding in advice.findings(FACTS._replace(**facts), SETTING)
    ]  # fmt: skip
    assert len(texts) >= 6 and not any(flag in text for flag in ("--passes", "--ngram", "-l)") for text in texts)
