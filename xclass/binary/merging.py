"""Average the weights of models that learned apart, each weight by the squared gradients that a model added to it.

Source    Agarwal, Chapelle, Dudik, Langford, "A Reliable Effective Terascale Linear Learning System", JMLR 15 (2014)
          1111-1133, section 2.2, from one pass of AdaGrad on each node.
Cost      O(slots) for each model.
Names     w weight | G AdaGrad's sum of squared gradients | N largest |x| of a feature | dw, dG what a model has added
          to w and G since the base; without a base, the base is a learner that has learned nothing.
Rule      w = sum of dG w / sum of dG, G = G of the base + sum of dG, N the largest. Where no model has changed a
          weight, the base's remains. The rule on differences of VW's merge_models, w of the base + sum of dG dw / sum
          of dG, gives the same w. Weights without G, as those of --sgd, are averaged over the models that have changed
          them, weighted by the examples that each has learned.
Differs   from VW: there, G = G of the base + sum of dG**2 / sum of dG, and N is an average. docs/cluster.md has the
          errors of both. In VW the average of weights without G includes models that have never seen the feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Bools, Float32s, Float64s
from ..kernels.constants import LARGEST
from . import weight_table
from .weight_table import WeightTable

PIECE = 1 << 16  # slots to average at a time


class Slots(NamedTuple):
    """Hold the numbers of some slots of a table, as views of it: float32[slots] each."""

    w: Float32s
    g: Float32s | None  # None if the learner does not use it
    n: Float32s | None = None


def average_slots(
    target: Slots,
    models: Sequence[Slots],
    base: Slots,
    examples: Sequence[float],
    starts: Sequence[Slots] | None = None,
) -> int | None:
    """Fill the slots of a table with the average of the models, see the module.

    `examples` is the weight of the examples that each model has learned since the base, finite and >= 0, used without
    G. `starts` are the slots of the base in the order of each model's; by default `base` for all. Return the index of
    the last model in which a G is smaller than in the base, which learning never causes; None if there is none.
    """
    slots = len(target.w)
    smaller: int | None = None
    for begin in range(0, slots, PIECE):
        piece = slice(begin, begin + PIECE)
        base_w = base.w[piece]
        base_g = np.zeros_like(base_w) if base.g is None else base.g[piece]
        sums = _Sums(base_w)
        for k, (model, start, weight) in enumerate(zip(models, starts or [base] * len(models), examples, strict=True)):
            w = model.w[piece]
            changed = w != start.w[piece]
            if model.g is None or start.g is None:
                sums.add(w, np.where(changed, weight, 0.0), changed)
            else:
                with np.errstate(invalid="ignore"):  # a model file may have infinite numbers
                    added = model.g[piece].astype(np.float64) - start.g[piece]
                if added.min() < 0:
                    smaller = k
                added = np.fmin(np.fmax(added, 0.0), LARGEST)  # NaN becomes 0
                sums.add(w, added, changed | (added > 0))
        if sums.touched.any() or base_w.any() or base_g.any():
            target.w[piece] = sums.averages()
            if target.g is not None:
                target.g[piece] = np.minimum(base_g + sums.mass, LARGEST)
        if target.n is not None and base.n is not None:
            largest = base.n[piece].copy()
            for model in models:
                assert model.n is not None  # because the base has it
                np.maximum(largest, model.n[piece], out=largest)
            if largest.any():
                target.n[piece] = largest
    return smaller


class _Sums:
    """Add up the weights of models, to average them.

    `total` and `mass` are float64[slots], sums of mass times weight, and of mass, over the models whose mass is above
    0; `touched` is bool[slots], whether a model has changed the slot.
    """

    def __init__(self, base: Float32s) -> None:
        self._base = base
        self.total, self.mass = np.zeros(len(base)), np.zeros(len(base))
        self.touched = np.zeros(len(base), bool)
        self._plain, self._count = np.zeros(len(base)), np.zeros(len(base))  # sums over models without mass

    def add(self, w: Float32s, mass: Float64s, changed: Bools) -> None:
        """Add the weights of a model with their masses, which are finite and >= 0."""
        weighted = mass > 0
        self.total += np.multiply(mass, w, where=weighted, out=np.zeros(len(w)))
        self.mass += mass
        self.touched |= changed
        alone = changed & ~weighted
        if alone.any():  # G is so large that what was added to it is lost in rounding
            self._plain += np.where(alone, w, 0.0)
            self._count += alone

    def averages(self) -> AnyArray:
        """Return the averages, float64[slots]: plain ones without mass, the weights of the base without a change."""
        w = self._base.astype(np.float64)
        np.divide(self._plain, self._count, where=self._count > 0, out=w)
        np.divide(self.total, self.mass, where=self.mass > 0, out=w)
        return w


def average_parameters(target: Float64s, models: Sequence[Float64s], base: Float64s) -> None:
    """Average parameters that learn by AdaGrad without a table, float64[2, m], beside their sums of squared slopes."""
    least = np.finfo(np.float64).tiny  # where a parameter has changed and what was added is lost in rounding
    added = [np.maximum(model[1] - base[1], np.where(model[0] != base[0], least, 0.0)) for model in models]
    target[0] = weighted_mean([model[0] for model in models], added, base[0])
    target[1] = np.minimum(added_counts([model[1] for model in models], base[1]), np.finfo(np.float64).max)


def weighted_mean(values: Sequence[Float64s], masses: Sequence[Float64s], default: Float64s) -> Float64s:
    """Return the mean of finite values by their finite masses, float64[m]; `default` where there is no mass.

    Rounding never leaves the range of the values that have mass, and a single one is returned as it is. Masses are
    divided by the largest and then by their sum, so that neither they nor the products overflow.
    """
    most = np.max(masses, axis=0)
    known = most > 0
    shares = [np.divide(d, most, where=known, out=np.zeros_like(default)) for d in masses]
    mass = np.sum(shares, axis=0)
    mean = np.zeros_like(default)
    low, high = np.full_like(default, np.inf), np.full_like(default, -np.inf)
    for value, d, share in zip(values, masses, shares, strict=True):
        mean += np.divide(share, mass, where=known, out=np.zeros_like(default)) * value
        low, high = np.where(d > 0, np.minimum(low, value), low), np.where(d > 0, np.maximum(high, value), high)
    return np.where(known, np.clip(mean, low, high), default)


def added_counts(models: Sequence[AnyArray], base: AnyArray) -> AnyArray:
    """Return counts of the base and what each model has added to them, in the type of the counts.

    A count that is smaller than that of the base has begun anew and is added as a whole.
    """
    total = last = base
    changes = np.zeros(np.shape(base), np.int64)
    for model in models:
        total = total + np.where(model >= base, model - base, model)
        last = np.where(model != base, model, last)
        changes += model != base
    return np.where(changes > 1, total, last).astype(base.dtype)  # a single change is exact


def merge_tables(
    target: WeightTable, models: Sequence[WeightTable], base: WeightTable, adaptive: bool, examples: Sequence[float],
    live: bool, columns: Sequence[AnyArray | None] | None = None,
) -> tuple[WeightTable, int | None]:  # fmt: skip
    """Return a weight table with the average of the models' tables, and what `average_slots` returns.

    Sums of the normalised rule are added since the base, and ranges of labels are united. If --l1 and --l2 have changed
    the tables in different ways, their effect is applied to the weights first.

    Parameters
    ----------
    target : a new table; the result has its sums and ranges, which are written, and the slots of the base
    models, base : tables of the same size; --l1 and --l2 may be applied to them. The slots of the base are replaced
    adaptive : whether the update rule uses G
    examples : see `average_slots`
    live : whether slots are merged elsewhere
    columns : for each model, int64[subproblems], the subproblem of the model for each of the result; None for the same
        numbers. Without G of a slot this concerns tables with planes, whose rows hold all subproblems
    """
    if len(base.shrunk):
        if columns is not None or not all(np.array_equal(table.shrunk, models[0].shrunk) for table in models):
            for table in (base, *models):
                weight_table.apply_regularisation(table)
        target.shrunk[:] = models[0].shrunk
    chosen = list(columns) if columns is not None else [None] * len(models)
    smaller = None
    if not live:
        own_slots = [_slots(table, adaptive, column) for table, column in zip(models, chosen, strict=True)]
        old = _slots(base, adaptive, None)
        starts = [old if column is None else _slots(base, adaptive, column) for column in chosen]
        smaller = average_slots(old, own_slots, old, examples, starts)
    sums = [_moved_sums(table, base, column) for table, column in zip(models, chosen, strict=True)]
    target.sums[:] = added_counts(sums, base.sums)
    target.range[0] = min(table.range[0] for table in models)
    target.range[1] = max(table.range[1] for table in models)
    return target._replace(flat=base.flat), smaller


def _moved_sums(table: WeightTable, base: WeightTable, columns: AnyArray | None) -> Float64s:
    """Return the sums of a model in the order of the result: those of the base and what the model has added to its own.

    Subproblem j of the result has begun in the model as `columns[j]` of the base, whose sums may be others than those
    of j.
    """
    if columns is None:
        return table.sums
    own, start = table.sums[columns], base.sums[columns]
    return np.where(start == base.sums, own, base.sums + np.maximum(own - start, 0.0))


def _slots(table: WeightTable, adaptive: bool, columns: AnyArray | None) -> Slots:
    """Return the slots of a table, or a copy with its subproblems in another order."""
    planes = weight_table.columns(table)
    if columns is not None:
        planes = {name: _reordered(plane, int(table.width), columns) for name, plane in planes.items()}
    return Slots(planes["w"], planes["g"] if adaptive else None, planes["n"])


def _reordered(plane: Float32s, width: int, columns: AnyArray) -> Float32s:
    """Return a copy of a plane, float32[slots], in which subproblem j of a row is `columns[j]` of the row before."""
    rows = len(plane) // width
    result = plane.copy()
    table = result[: rows * width].reshape(rows, width)
    table[:, : len(columns)] = table[:, columns]
    return result
