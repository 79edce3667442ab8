"""What an example makes a reduction visit does not grow, counted and not timed.

The kernels run as plain Python on a small stream that a seed makes. What they do with their weight tables is counted:
different slots, and different cache lines of 64 bytes, on average of the examples after the first 200.
"""

import os
import random
from dataclasses import dataclass

import pytest
from memory_accesses import LINE, watch

import xclass

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
    "recall_tree": (160, 112),  # each class is in one of four tables
    "ect": (60, 29),
    "cpt": (363, 22.7),  # words of whole lines, as in the next four
    "cpt, 4 branches": (429, 26.8),
    "cpt, 2 trees, reranked": (1829, 114.3),
    "multiclass": (2892, 180.8),
    "multilabel": (877, 54.8),
    "log_multi": (50.4, 15.9),
    "random_tree": (53.2, 16.8),
}
WARM, COUNTED, CLASSES, WORDS = 200, 40, 64, 6
REDUCTIONS: dict[str, dict] = {  # name in the table -> reduction and options of a learner
    "oaa": {"reduction": "oaa"},
    "oaa, logistic loss": {"reduction": "oaa", "loss_function": "logistic"},
    "recall_tree": {"reduction": "recall_tree"},
    "ect": {"reduction": "ect"},
    "cpt": {"reduction": "cpt"},
    "cpt, 4 branches": {"reduction": "cpt", "cpt_arity": 4},
    "cpt, 2 trees, reranked": {"reduction": "cpt", "trees": 2, "rerank": True},
    "multiclass": {"reduction": "multiclass"},
    "multilabel": {"reduction": "multilabel"},
    "log_multi": {"reduction": "log_multi"},
    "random_tree": {"reduction": "random_tree"},
}


@dataclass(frozen=True)
class Counts:
    """Of one example, on average."""

    slots: float
    lines: float


def stream(n: int) -> list[str]:
    """Return lines whose words depend on the class, the first classes being the most frequent."""
    rng = random.Random("work")
    lines = []
    for _ in range(n):
        y = int(CLASSES * rng.random() ** 2)
        words = [f"w{(y * 5 + j) % 97}" if rng.random() < 0.8 else f"x{rng.randrange(200)}" for j in range(WORDS)]
        lines.append(f"{y + 1} |f {' '.join(words)}")
    return lines


def count(name: str) -> Counts:
    """Learn the stream, an example at a time; return what the last examples cost."""
    slots, lines = 0, 0
    with xclass.Learner(classes=CLASSES, bits=16, **REDUCTIONS[name]) as model:
        tables = watch(model)
        for i, line in enumerate(stream(WARM + COUNTED)):
            for table in tables:
                table.clear()
            model.learn_many([line])
            if i >= WARM:
                slots += sum(table.different(table.slot) for table in tables)
                lines += sum(table.different(LINE // table.itemsize) for table in tables)
    return Counts(slots / COUNTED, lines / COUNTED)


@pytest.mark.parametrize("name", MOST)
def test_memory_accesses_per_example_do_not_grow(name):
    counts = count(name)
    slots, lines = MOST[name]
    assert 0.5 * slots < counts.slots <= slots
    assert 0.5 * lines < counts.lines <= lines


def test_every_reduction_has_an_upper_bound():
    assert set(REDUCTIONS) == set(MOST)
