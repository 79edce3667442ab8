"""What an example makes a reduction visit does not grow: figures of bench/work_counts.py, counted and not timed."""

from __future__ import annotations

import os

import pytest

from scripts.bench import work_counts

pytestmark = [
    pytest.mark.plain,
    pytest.mark.filterwarnings("ignore:overflow"),
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"),
        reason="counts what plain Python reads and writes; scripts/test.sh runs it so",
    ),
]
MOST = {  # words -> slots and cache lines of an example at most, some 2 % above what was counted
    ("--oaa", "64"): (1372, 86),
    ("--recall_tree", "64"): (164, 107),
    ("--ect", "64"): (60, 29),
    ("--cpt", "64"): (55, 21.5),
    ("--cpt", "64", "--cpt_arity", "4"): (110, 27),
    ("--cpt", "64", "--trees", "2", "--rerank"): (380, 164),
    ("--multiclass", "64"): (507, 203.5),
    ("--log_multi", "64"): (50.4, 15.9),
    ("--random_tree", "64"): (53.2, 16.8),
}


@pytest.mark.parametrize("words", MOST, ids=" ".join)
def test_an_example_visits_no_more_than_it_did(words):
    found = work_counts.count(words)
    slots, lines = MOST[words]
    assert 0.5 * slots < found.slots <= slots
    assert 0.5 * lines < found.lines <= lines


def test_all_that_is_counted_is_held_down():
    assert set(work_counts.REDUCTIONS) == set(MOST)
