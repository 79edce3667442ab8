"""How much memory an example makes a reduction visit, counted: the part of speed that does not depend on a clock.

    NUMBA_DISABLE_JIT=1 python -m scripts.bench.work_counts

Runs the kernels as plain Python on a small stream that a seed makes, and counts what they do with their weight tables:
reads and writes of numbers, different slots, and different cache lines of 64 bytes, on average of the examples after
the first 200. A test holds these figures down.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass

import numpy as np

import xclass

LINE = 16  # float32 in a cache line
WARM, COUNTED, CLASSES, WORDS = 200, 40, 64, 6
REDUCTIONS: dict[str, dict] = {  # name in the table -> reduction and options of a learner
    "oaa": {"reduction": "oaa"},
    "recall_tree": {"reduction": "recall_tree"},
    "ect": {"reduction": "ect"},
    "cpt": {"reduction": "cpt"},
    "cpt, 4 branches": {"reduction": "cpt", "cpt_arity": 4},
    "cpt, 2 trees, reranked": {"reduction": "cpt", "trees": 2, "rerank": True},
    "multiclass": {"reduction": "multiclass"},
    "log_multi": {"reduction": "log_multi"},
    "random_tree": {"reduction": "random_tree"},
}


@dataclass(frozen=True)
class Counts:
    """Of one example, on average."""

    accesses: float
    slots: float
    lines: float


class Counted(np.ndarray):
    """A weight table that notes what is read and written."""

    def __getitem__(self, at):
        self._note(at)
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        self._note(at)
        super().__setitem__(at, value)

    def _note(self, at):
        log = getattr(self, "log", None)
        if log is not None:
            where = range(*at.indices(len(self))) if isinstance(at, slice) else (int(at),)
            log[0] += len(where)
            log[1].update(where)


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
    tables: list[Counted] = []
    accesses, slots, lines = 0, 0, 0
    with xclass.Learner(classes=CLASSES, bits=16, **REDUCTIONS[name]) as model:
        _watch(model, tables, set())
        for i, line in enumerate(stream(WARM + COUNTED)):
            for table in tables:
                table.log = [0, set()]
            model.learn_many([line])
            if i >= WARM:
                accesses += sum(table.log[0] for table in tables)
                slots += sum(len({at // table.slot for at in table.log[1]}) for table in tables)
                lines += sum(len({at // LINE for at in table.log[1]}) for table in tables)
    if not tables or not accesses:
        raise RuntimeError("no weight table was seen; run with NUMBA_DISABLE_JIT=1")
    return Counts(accesses / COUNTED, slots / COUNTED, lines / COUNTED)


def _watch(owner, tables: list[Counted], seen: set[int]) -> None:
    """Put counted tables in the place of all weight tables that an object reaches."""
    if id(owner) in seen or not hasattr(owner, "__dict__"):
        return
    seen.add(id(owner))
    for name, value in list(vars(owner).items()):
        vars(owner)[name] = _watched(value, tables, seen)


def _watched(value, tables: list[Counted], seen: set[int]):
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        if "flat" in value._fields and not getattr(value, "tagged", False):
            flat = value.flat.view(Counted)
            flat.slot = int(getattr(value, "stride", 2))
            tables.append(flat)
            return value._replace(flat=flat)
        if "tag_shift" in value._fields:  # tagged words; the plain functions read and write whole lines
            word = value.word.view(Counted)
            word.slot = 1
            tables.append(word)
            return value._replace(word=word)
        return type(value)(*(_watched(item, tables, seen) for item in value))
    if isinstance(value, list):
        return [_watched(item, tables, seen) for item in value]
    if type(value).__module__.startswith("xclass."):
        _watch(value, tables, seen)
    return value


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
