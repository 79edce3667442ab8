"""Each rule gives its advice exactly where its facts hold."""

from __future__ import annotations

import numpy as np
import pytest

from xclass.report import advice
from xclass.report.failing import Failing
from xclass.report.frequencies import Bin

FACTS = Failing(
    label=1, examples=20.0, errors=10.0, answers=20.0, right=10.0, trained=100.0,
    confused=[(2, 3.0, 0.0), (3, 2.0, 0.0)], wrong_answers=6, in_list=2.0, not_proposed=1.0, features=10.0,
    sureness=0.4, sample=np.arange(3),
)  # fmt: skip
BINS = [
    Bin(1, 1, 50, 50.0, 45.0, 10.0), Bin(3, 4, 50, 50.0, 30.0, 30.0), Bin(5, 8, 5, 5.0, 0.0, 5.0),
    Bin(65, 128, 9, 90.0, 30.0, 80.0), Bin(257, 512, 9, 90.0, 29.0, 80.0),
]  # fmt: skip
SETTING = advice.Setting(BINS, features=10.0, proposes=True, is_online=True, name=lambda label: f"c{label}")


def reasons(**facts) -> list[str]:
    """The reasons for a class with these facts."""
    return [finding.reason for finding in advice.findings(FACTS._replace(**facts), SETTING)]


def test_a_class_without_a_pattern_has_spread_errors():
    assert reasons() == ["Its 10 errors are spread over 6 other classes."]


def test_a_class_that_was_never_seen_has_no_other_reason():
    (found,) = advice.findings(FACTS._replace(trained=0.0, in_list=10.0), SETTING)
    assert found.reason == "The training data have no example of it." and "continue with -i" in found.advice
    (found,) = advice.findings(FACTS._replace(trained=0.0), SETTING._replace(is_online=False))
    assert "train again" in found.advice


def test_more_examples_are_advised_where_classes_with_more_are_better():
    (found,) = advice.findings(FACTS._replace(trained=1.0), SETTING)
    assert found.reason == "It had 1 training example."
    assert found.advice == "Collect more: classes with 1 examples have an error of 90%, those with 3 to 4 of 60%."
    assert "training" not in reasons(trained=100.0)[0]  # classes with 400 are no better
    assert "training" not in reasons(trained=2.0)[0]  # no class with 2 was tested
    assert "training" not in reasons(trained=None)[0]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"answers": 0.0}, "It was learned from 100 examples, but is never predicted."),
        ({"confused": [(2, 6.0, 4.0)]}, "6 of 10 errors are “c2”, and 4 the other way round."),
        ({"confused": [(2, 5.0, 0.0)]}, "5 of 10 errors are “c2”."),
        ({"not_proposed": 10.0}, "In all 10 errors the class was not compared"),
        ({"in_list": 5.0}, "In 5 of 10 errors the class is among the first 5."),
        ({"features": 6.9}, "The wrong lines have 6.9 features on average, and all lines 10.0."),
        ({"sureness": 0.9}, "The wrong answers are sure: their mean probability is 0.90."),
    ],
)
def test_rules(facts, words):
    (found,) = reasons(**facts)
    assert found.startswith(words)


@pytest.mark.parametrize(
    "facts",
    [
        {"confused": [(0, 9.0, 0.0)]},  # no answer at all
        {"confused": [(2, 4.9, 4.0)]},
        {"not_proposed": 4.0},
        {"not_proposed": None, "in_list": None, "sureness": None},
        {"in_list": 4.9},
        {"features": 7.0},
        {"sureness": 0.69},
    ],
)
def test_rules_do_not_apply_below_their_limits(facts):
    assert reasons(**facts) == ["Its 10 errors are spread over 6 other classes."]
