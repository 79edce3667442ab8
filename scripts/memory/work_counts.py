"""How much memory an example makes a reduction visit, counted: the part of speed that does not depend on a clock.

    NUMBA_DISABLE_JIT=1 python -m scripts.memory.work_counts

Runs the kernels as plain Python on a small stream that a seed makes, and counts what they do with their weight tables:
reads and writes of numbers, different slots, and different cache lines of 64 bytes, on average of the examples after
the first 200. A test holds these figures down.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass

import xclass
from scripts.lib.memory_accesses import LINE, watch

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

    accesses: float
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
    accesses, slots, lines = 0, 0, 0
    with xclass.Learner(classes=CLASSES, bits=16, **REDUCTIONS[name]) as model:
        tables = watch(model)
        for i, line in enumerate(stream(WARM + COUNTED)):
            for table in tables:
                table.clear()
            model.learn_many([line])
            if i >= WARM:
                accesses += sum(table.accesses for table in tables)
                slots += sum(table.different(table.slot) for table in tables)
                lines += sum(table.different(LINE // table.itemsize) for table in tables)
    if not tables or not accesses:
        raise RuntimeError("no weight table was seen; run with NUMBA_DISABLE_JIT=1")
    return Counts(accesses / COUNTED, slots / COUNTED, lines / COUNTED)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")  # plain Python warns of every hash that overflows
    print("| reduction | accesses | slots | cache lines |")
    print("| --- | --: | --: | --: |")
    for name in REDUCTIONS:
        counts = count(name)
        print(f"| {name} | {counts.accesses:.1f} | {counts.slots:.1f} | {counts.lines:.1f} |", flush=True)


if __name__ == "__main__":
    main()
