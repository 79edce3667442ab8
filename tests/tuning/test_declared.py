"""Searches declared beside options, and ranges given by --range."""

import random
import re

import pytest

from xclass.api import configuration
from xclass.errors import UsageError
from xclass.options.declare import Facts, between, flag, from_stored, one_of, options_of, search_for
from xclass.run.passes import PassOptions as PassOptions
from xclass.tuning.options import ranges
from xclass.tuning.settings import declared

FACTS = Facts("multiclass", 1000, 50_000, 12.0, True, "ab")
DECLARED = declared()


def searches():
    """Yield (reduction, field, option, search) of everything that is declared."""
    groups = configuration.option_groups()
    for group, options in {**groups, "passes": PassOptions}.items():
        for reduction in ("multiclass", "cpt", "oaa", "softmax_tree", "recall_tree", "log_multi"):
            for field, option in options_of(options).items():
                found = search_for(option.search, FACTS._replace(reduction=reduction))
                if found is not None:
                    yield f"{group}-{reduction}-{field}", option, found


@pytest.mark.parametrize(
    ("name", "option", "found"), list(searches()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_option_can_have_every_value_that_its_search_tries(name, option, found):
    rng = random.Random(3)
    values = [*found.first, *(found.draw(rng) for _ in range(50))]
    values += [found.near(value, rng) for value in values]
    for value in values:
        if value is not None:
            from_stored(option, list(value) if isinstance(value, tuple) else value)
    assert len(set(values)) > 1 or len(found.values) == 1


@pytest.mark.parametrize("reduction", ["plt", "multilabel_oaa", "multilabel"])
def test_a_threshold_is_searched_where_the_measure_depends_on_it(reduction):
    declared = options_of(configuration.option_groups()[reduction])["threshold"]
    assert search_for(declared.search, FACTS._replace(reduction=reduction)) is None
    found = search_for(declared.search, FACTS._replace(reduction=reduction, metric="micro_f1"))
    assert found is not None and {found.draw(random.Random(seed)) for seed in range(50)} >= {"auto", 0.2}
    assert from_stored(declared, "auto") == "auto"


def test_draws_cover_a_range_evenly_by_its_kind():
    rng = random.Random(1)
    logarithmic = sorted(between(0.01, 100.0, "log").draw(rng) for _ in range(2001))
    linear = sorted(between(0.01, 100.0, "linear").draw(rng) for _ in range(2001))
    whole = {between(3, 6, "int").draw(rng) for _ in range(200)}
    assert 0.6 < logarithmic[1000] < 1.6 and 45 < linear[1000] < 55
    assert logarithmic[0] >= 0.01 and linear[-1] <= 100 and whole == {3, 4, 5, 6}


def test_near_values_differ_and_stay_in_range():
    rng = random.Random(2)
    assert one_of("a", "b").near("a", rng) == "b"
    assert (flag().near(None, rng), flag().near(True, rng)) == (True, None)
    drawn = [between(0.1, 10.0, "log").near(1.0, rng) for _ in range(400)]
    assert all(0.1 <= value <= 10 for value in drawn) and sum(0.4 < value < 2.5 for value in drawn) > 250
    assert {between(1, 3, "int").near(3, rng) for _ in range(50)} <= {1, 2, 3}


def test_values_have_few_digits():
    value = between(0.05, 5.0, "log").draw(random.Random(4))
    assert float(f"{value:.4g}") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l log 1 2", "there is no option l"),
        ("-l", "give 'OPTION KIND VALUES'"),
        ("-l log 1", "log takes 2 values"),
        ("-l log 0 2", "the values must rise, from above 0"),
        ("-l linear 3 2", "the values must rise"),
        ("--trees one", "one takes at least one value"),
        ("--trees one 99", "--trees: 99 is out of range; give a whole number from 1 to 64"),
        ("--rerank one 1", "give flag, because the option takes no value"),
        ("--trees flag", "give another kind than flag"),
        ("--nosuch one 1", "there is no option --nosuch"),
    ],
)
def test_wrong_ranges_are_refused(text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        ranges([text], DECLARED)


def test_ranges_are_read():
    found = ranges(["-l log 0.05 5", "--trees one 1 2 4", "--ngram one 2 3", "--rerank flag"], DECLARED)
    assert found["learning_rate"] == between(0.05, 5.0, "log") and found["trees"] == one_of(1, 2, 4)
    assert found["ngram"] == one_of(("2",), ("3",)) and found["rerank"] == flag()
