"""Choose which weights of a model are kept, by how much a prediction would change without them.

Source    LeCun, Denker, Solla, "Optimal Brain Damage", NIPS 1989: leaving out a weight w costs w**2 times the second
          derivative of the loss, for which AdaGrad's sum of squared gradients G stands.
Names     saliency of a weight: |w| * sqrt(G), or |w| if the model has no G.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Float32s, UInt32s
from ..kernels import tagged_format
from ..kernels.jit import jit
from ..model import compact_columns
from ..model.stored_arrays import Stored


class Table(NamedTuple):
    """Hold the rows of a weight table that have a weight other than 0."""

    name: str
    column: AnyArray  # float32[n] or uint32[n], weights or tagged words
    slot: UInt32s  # uint32[n], their slots, rising
    saliency: Float32s  # float32[n]

    @property
    def slots(self) -> int:
        """Return the number of slots up to the last one in use."""
        return int(self.slot[-1]) + 1 if len(self.slot) else 0

    @property
    def tagged(self) -> bool:
        return bool(self.column.dtype == np.uint32)


def tables_of(for_prediction: Mapping[str, Stored], whole: Mapping[str, Stored]) -> list[Table]:
    """Return the weight tables of a model, sorted by their names.

    `for_prediction` are the arrays that predictions need; `whole` are those of the model as it was saved, which may
    have G.
    """
    found = []
    for key in sorted(for_prediction):
        name, _, end = key.rpartition(".")
        if end not in ("w", "word"):
            continue
        column, index = _rows(for_prediction, name, np.asarray(for_prediction[key]))
        w = compact_columns.weights(column)
        saliency = np.abs(w)
        g = _squares(name, whole, index)
        if g is not None and g.any():
            saliency = saliency * np.sqrt(g)
        has_weight = w != 0
        saliency = np.nan_to_num(saliency[has_weight], nan=np.inf)
        found.append(Table(name, column[has_weight], index[has_weight], saliency))
    return found


def kept(table: Table, share: float) -> Table:
    """Return a table with this share of its rows: those with the largest saliency, the first ones if some are equal."""
    n = rows_kept(len(table.slot), share)
    if n == len(table.slot):
        return table
    order = np.sort(np.argsort(-table.saliency, kind="stable")[:n])
    return table._replace(column=table.column[order], slot=table.slot[order], saliency=table.saliency[order])


def rows_kept(rows: int, share: float) -> int:
    return min(rows, int(np.ceil(rows * share)))


def _rows(arrays: Mapping[str, Stored], name: str, column: AnyArray) -> tuple[AnyArray, UInt32s]:
    stored = arrays.get(f"{name}.index")
    index = np.arange(len(column), dtype=np.uint32) if stored is None else np.asarray(stored)
    return column, index


def _squares(name: str, arrays: Mapping[str, Stored], wanted: UInt32s) -> Float32s | None:
    """Return G of some slots as float32[n], 0 where a model does not store it; None if it has none at all."""
    if f"{name}.g" in arrays:
        column = np.asarray(arrays[f"{name}.g"])
    elif f"{name}.word" in arrays:
        word = np.asarray(arrays[f"{name}.word"])
        column = np.empty(len(word), np.float32)
        word_squares(word, column)
    else:
        return None
    column, index = _rows(arrays, name, column)
    if not len(index):
        return np.zeros(len(wanted), np.float32)
    at = np.minimum(np.searchsorted(index, wanted), len(index) - 1)
    return np.where(index[at] == wanted, column[at], np.float32(0))


# -- kernels


@jit
def word_squares(word: UInt32s, g: Float32s) -> None:
    """Write G of tagged words: `word` is uint32[n], `g` is float32[n], written."""
    for i in range(len(word)):
        g[i] = tagged_format.decode_g(word[i])
