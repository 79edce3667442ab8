"""Count how much of each weight table is in use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..abilities.find import ability
from ..api.learner_core import LearnerCore
from ..binary import tagged_words
from ..run.report import table_occupancy

LEAST = 1024  # items of an array that is listed


class Table(NamedTuple):
    """Hold the occupancy of one table."""

    name: str
    used: int
    size: int
    # weights that were evicted or refused because lines were full; None if that cannot happen, or is part of growing
    lost: int | None
    doublings: int = 0  # how often the table has been doubled

    @property
    def share(self) -> float:
        return self.used / self.size


def _lost(words: tagged_words.Words) -> int:
    return int(words.state[tagged_words.EVICTED] + words.state[tagged_words.REFUSED])


def larger_bits(bits: int, tables: Sequence[Table]) -> int:
    """Return the value of -b with which tables are larger than these, which began with `bits` and may have grown."""
    return bits + max(table.doublings for table in tables) + 1


def measure(learner: LearnerCore) -> list[Table]:
    """Return the occupancy of the tables of a learner, or of its large arrays if it has no tables."""
    describe, reduction = ability(learner.config.reduction, "describe"), learner.reduction
    if hasattr(describe, "word_tables") and describe.word_tables(reduction):
        return [
            Table(
                table.name,
                int(table.words.state[tagged_words.USED]),
                tagged_words.size(table.words),
                None if tagged_words.waits_for_loss(table.words) else _lost(table.words),
                tagged_words.doublings(table.words),
            )
            for table in describe.word_tables(reduction)
        ]
    if reduction.tables:
        tables = []
        for number, table in enumerate(reduction.tables):
            used, size, _ = table_occupancy.count_used([table], reduction.rule)
            tables.append(Table("weights" if len(reduction.tables) == 1 else f"weights {number}", used, size, None))
        return tables
    arrays = {name: np.asarray(stored) for name, stored in reduction.arrays().items() if len(stored) >= LEAST}
    return [Table(name, int(np.count_nonzero(array)), array.size, None) for name, array in sorted(arrays.items())]
