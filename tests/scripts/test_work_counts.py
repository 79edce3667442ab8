"""What an example makes a reduction visit does not grow: figures of memory/work_counts.py, counted and not timed."""

from __future__ import annotations

import os

import pytest

from scripts.memory import work_counts

pytestmark = [
    pytest.mark.plain,
    pytest.mark.filterwarnings("ignore:overflow", "ignore:label 64 found"),
    pytest.mark.skipif(
        os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"),
        reason="counts what plain Python reads and writes; scripts/test.sh runs it so",
    ),
]
MOST = {  # name -> slots and cache lines of an example at most, some 2 % above what was counted
    "oaa": (1205, 75.3),  # few classes learn from an example, each with its neighbours in the same cache lines
    "oaa, logistic loss": (1372, 86),
    "recall_tree": (164, 107),
    "ect": (60, 29),
    "cpt": (363, 22.7),  # words of whole lines, as in the next four
    "cpt, 4 branches": (429, 26.8),
    "cpt, 2 trees, reranked": (1829, 114.3),
    "multiclass": (2892, 180.8),
    "multilabel": (877, 54.8),
    "log_multi": (50.4, 15.9),
    "random_tree": (53.2, 16.8),
}


@pytest.mark.parametrize("name", MOST)
def test_memory_accesses_per_example_do_not_grow(name):
    counts = work_counts.count(name)
    slots, lines = MOST[name]
    assert 0.5 * slots < counts.slots <= slots
    assert 0.5 * lines < counts.lines <= lines


def test_every_reduction_has_an_upper_bound():
    assert set(work_counts.REDUCTIONS) == set(MOST)
