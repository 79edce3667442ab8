"""Merge a range of a large table by itself, by the rules of `merging`, `merged_words` and `parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...array_types import Float64s, Int64s, UInt32s
from ...binary import merged_words, merging, update_rule, weight_table
from ...binary.merging import Slots
from ...model.archive import PAIRS, WORDS
from . import parts


class Merging(NamedTuple):
    """Hold what merging a range needs to know of the models and of the result."""

    examples: Sequence[float]  # weight of the examples that each model has learned since the base
    adaptive: bool  # whether slots have G
    doublings: Mapping[str, int]  # of the tables of words in the result
    classes: Sequence[Int64s]  # for each model, the numbers in the result of the classes of its index
    size: int  # number of the classes of the result
    row_weights: Float64s  # of the rows of the index, see `parts.merge_rows`


Report: TypeAlias = dict[str, Any]  # by table, what `merge` returns


def merge(
    kind: str, result: Sequence[UInt32s], models: Sequence[Sequence[UInt32s]], facts: Merging, rows: Int64s
) -> Any:
    """Merge rows of the planes of a table; `result` are those of the base, which are replaced.

    `rows` are their numbers in the table.

    Return for words what `merge_lines` does, and for an index what `merge_rows` adds to `cross`.
    """
    if not len(result[0]):
        return None
    if kind == WORDS:
        changes = [merged_words.changes_of(words, result[0]) for (words,) in models]
        return merged_words.merge_changes(result[0], changes, rows)
    if kind == PAIRS:
        pair, wear = result[0], result[1].view(np.float32)
        changes = [parts.changed_pairs(own[0], pair, n) for own, n in zip(models, facts.classes, strict=True)]
        cross, weight = np.zeros(facts.size), facts.row_weights[rows]
        parts.merge_pairs(pair, wear, changes, [own[1].view(np.float32) for own in models], weight, cross)
        return cross
    slots = _slots(result, facts)
    base = _slots([plane.copy() for plane in result], facts)
    merging.average_slots(slots, [_slots(one, facts) for one in models], base, facts.examples)
    return None


def _slots(planes: Sequence[UInt32s], facts: Merging) -> Slots:
    """Return the slots of planes, or of one plane with all numbers of the slots."""
    own = [plane.view(np.float32) for plane in planes]
    if len(own) == 1:
        own = [own[0][k :: update_rule.FIELDS] for k in range(len(weight_table.COLUMNS))]
    return Slots(own[0], own[1] if facts.adaptive else None, own[2])
