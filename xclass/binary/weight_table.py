"""Allocate weight tables, compute their layout, and store and restore them in models.

Source    VW's parameter array for `--layout vw`; the layout of `odd` is the project's own.
Names     w weight | G sum of importance * slope**2 * x**2 | N largest |x| seen | rate scratch of one update |
          b log2 of the number of slots | subproblem: one binary problem of a reduction.
Layout    A feature with hash h has its slot for subproblem j at `(h * width + j) mod 2**b`. Under `--layout vw`,
          `width` is a power of two, so that features begin at only 2**b / width different slots. By default it is four
          times an odd number, so that they begin at 2**b / 4 different slots, whatever the number of subproblems, and
          four neighbouring subproblems share a cache line.
Slot      Four float32, 16 bytes:   | w | G | N | rate |
          With --l1 and --l2 the effective weight is `truncated(w, gravity) * contraction`, see `gd.learn`, where each
          subproblem has a gravity and a contraction of its own. Every slot must then belong to one subproblem, its
          number mod `width`. With --vw_exact all subproblems share both.
          A table with planes contains first all w, then all G, all N and all rates, for reductions that process
          neighbouring subproblems in order. Its `stride` is 1 and its `field` the number of slots, instead of 4 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Bools, Float32s, Float64s, UInt32s
from ..kernels.constants import ZERO
from ..kernels.jit import bare, jit, on_demand
from ..model.archive import SLOTS, Archive, LiveTable
from ..model.stored_arrays import Arrays, Stored
from ..system import sparse_memory
from . import finite, loss
from .update_rule import FIELDS, BinaryOptions, UpdateRule

LOGISTIC_RANGE = np.float32(50)  # predictions with logistic loss are clipped to +-50


class WeightTable(NamedTuple):
    """Hold the weights of some subproblems and the rest of the learner's state."""

    flat: Float32s  # float32[4 * slots], w, G, N and rate of all slots
    stride: np.uint64  # distance in `flat` from one slot to the next
    field: np.uint64  # distance in `flat` from w to G, G to N and N to rate of a slot
    mask: np.uint64  # slots - 1
    width: np.uint64  # slots of a feature
    sums: Float64s  # float64[subs, 2]: S, sum of importance * x**2 / N**2, and T, sum of importance
    range: Float32s  # float32[2]: limits of predictions: the labels seen or known, +-50 with logistic loss
    # float64[subs, 2], or float64[1, 2] with --vw_exact: gravity and contraction; float64[0, 2] without --l1 and --l2
    shrunk: Float64s
    guard: finite.StepGuard  # facts about the current batch, see `finite.guarded`


def first_range(rule: UpdateRule) -> Float32s:
    """Return the label range before any label was seen, as float32[2].

    If only one end is given as an option, the other is 0, as in VW.
    """
    pinned = not (np.isnan(rule.lowest) and np.isnan(rule.highest))
    if rule.loss == loss.LOGISTIC and not pinned:
        return np.array([-LOGISTIC_RANGE, LOGISTIC_RANGE], np.float32)
    limits = np.zeros(2, np.float32) if rule.widen or pinned else np.array([-1, 1], np.float32)
    return _pin(rule, limits)


def _pin(rule: UpdateRule, limits: Float32s) -> Float32s:
    """Set the ends of a label range (float32[2], written) that are given as options, and return it."""
    for j, end in enumerate((rule.lowest, rule.highest)):
        if not np.isnan(end):
            limits[j] = end
    return limits


def odd_width(subs: int) -> int:
    """Return the smallest width, four times an odd number, for `subs` subproblems."""
    return 4 * (-(-subs // 4) | 1)


def vw_width(subs: int) -> int:
    """Return VW's width for `subs` subproblems: their number rounded up to a power of two."""
    return 1 << max(0, subs - 1).bit_length()


def new_table(
    rule: UpdateRule, bits: int, subs: int, width: int, planes: bool = False, weights_only: bool = False
) -> WeightTable:
    """Return a table of 2**bits slots; the operating system allocates its pages when they are first written.

    With `planes`, all w come first, then all G, all N and all rates. With `weights_only`, only weights are read: the
    table then has planes, and takes memory for those pages of 4 kB alone that have weights in use.
    """
    planes = planes or weights_only
    slots = 1 << bits
    flat = (
        sparse_memory.zeros(slots * FIELDS).view(np.float32) if weights_only else np.zeros(slots * FIELDS, np.float32)
    )
    if rule.initial_weight != 0:
        _column(flat, slots, planes, 0)[:] = rule.initial_weight
    sums = np.zeros((subs, 2))
    if rule.initial_t > 0 and (rule.adaptive or rule.normalized):
        if rule.adaptive:
            _column(flat, slots, planes, 1)[:] = rule.initial_t
        sums[0] = rule.initial_t  # VW initialises the first subproblem only
    return WeightTable(
        flat=flat,
        stride=np.uint64(1 if planes else FIELDS),
        field=np.uint64(slots if planes else 1),
        mask=np.uint64((1 << bits) - 1),
        width=np.uint64(width),
        sums=sums,
        range=first_range(rule),
        shrunk=np.tile([0.0, 1.0], ((subs if rule.checked else 1) if rule.regularized else 0, 1)),
        guard=finite.idle_guard(),
    )


def _column(flat: Float32s, slots: int, planes: bool, k: int) -> Float32s:
    """Return a view of w, G, N or rate (k = 0 to 3) of all slots, as float32[slots]."""
    return flat[k * slots : (k + 1) * slots] if planes else flat[k::FIELDS]


COLUMNS = ("w", "g", "n")  # columns stored in a model file


def serialize_table(
    archive: Archive, name: str, table: WeightTable, rule: UpdateRule, options: BinaryOptions
) -> WeightTable:
    """Save a table without untouched slots if that is smaller, or fill a new one from a model file; return it.

    With `predict_only_model`, what only learning needs is left out; --l1 and --l2 are then applied to the weights. The
    row numbers of a sparse array must ascend and lie within the table. All other numbers are only used in arithmetic
    and comparisons, so any value is accepted, even an infinite one. `rule` has the initial weight and label range that
    apply.
    """
    planes = columns(table)
    lacks = archive.live is None and archive.shape(f"{name}.g") is None
    weights_only = options.predict_only_model if archive.saves else lacks
    if weights_only:
        planes = {"w": effective_weights(table) if archive.saves else planes["w"]}
    if not archive.saves and rule.initial_weight != 0:
        planes["w"][:] = 0
    if archive.live is None:
        archive.table(name, planes)
    else:
        live = archive.hand_over(name, _live(table))
        if not archive.saves and live is not None:
            flat = live.whole if live.whole is not None else _joined(live, len(table.flat))
            table = table._replace(flat=flat)
    if not weights_only:
        archive.fill(f"{name}.sums", table.sums)
        _serialize_shrunk(archive, f"{name}.shrunk", table)
    archive.fill(f"{name}.range", table.range)
    if not archive.saves:
        _pin(rule, table.range)
        if options.resume == "first":
            table.sums[1:] = 0
    return table


def _live(table: WeightTable) -> LiveTable:
    """Return w, G and N as planes, or all numbers of the slots as one."""
    bits = table.flat.view(np.uint32)
    if table.stride == 1:
        return LiveTable(SLOTS, tuple(bits.reshape(FIELDS, -1)[: len(COLUMNS)]), table.flat)
    return LiveTable(SLOTS, (bits,), table.flat)


def _joined(live: LiveTable, size: int) -> Float32s:
    """Return planes that are no parts of one array as one."""
    flat = np.zeros(size, np.float32)
    for k, plane in enumerate(live.planes):
        flat[k * len(plane) : (k + 1) * len(plane)] = plane.view(np.float32)
    return flat


def columns(table: WeightTable) -> dict[str, Float32s]:
    """Return w, G and N of all slots by name, as views of the table: float32[slots] each."""
    slots = int(table.mask) + 1
    return {c: _column(table.flat, slots, table.stride == 1, k) for k, c in enumerate(COLUMNS)}


def _serialize_shrunk(archive: Archive, name: str, table: WeightTable) -> None:
    """Save or restore the state of --l1 and --l2, if there is one.

    A table without regularisation, or with one state where the model has one for each subproblem or the reverse, which
    --vw_exact decides, applies the state to its weights instead.
    """
    states = len(table.shrunk) if archive.saves else (archive.shape(name) or (0,))[0]
    if states == len(table.shrunk) > 0:
        archive.fill(name, table.shrunk)
    elif states:
        state = np.empty((1 if states == 1 else len(table.sums), 2))
        archive.fill(name, state)
        apply_regularisation(table._replace(shrunk=state))


def arrays_for_prediction(arrays: Arrays) -> dict[str, Stored]:
    """Return the arrays of a model without those that only learning needs, as --predict_only_model saves them."""
    tables = [name[: -len(".range")] for name in arrays if name.endswith(".range")]
    dropped = {f"{table}.{c}" for table in tables if f"{table}.shrunk" not in arrays for c in ("g", "n", "sums")}
    return {name: array for name, array in arrays.items() if name not in dropped}


def apply_regularisation(table: WeightTable) -> None:
    """Apply the state of --l1 and --l2 to the weights, and reset it."""
    if is_shrunk(table):
        columns(table)["w"][:] = effective_weights(table)
        table.shrunk[:] = 0, 1


def effective_weights(table: WeightTable) -> Float32s:
    """Return the weights with --l1 and --l2 applied, as float32[slots], without changing the table."""
    w = columns(table)["w"]
    if is_shrunk(table):
        w = w.copy()
        step = int(table.width) if len(table.shrunk) > 1 else 1
        for sub in range(len(table.shrunk)):
            w[sub::step] = weights_of(table, sub, w[sub::step])
    return w


def weights_of(table: WeightTable, sub: int, w: AnyArray) -> AnyArray:
    """Return weights (floats[n]) of a subproblem with --l1 and --l2 applied, in their type."""
    if not len(table.shrunk):
        return w
    gravity, contraction = table.shrunk[shrunk_of(table, np.uint64(sub))].astype(w.dtype)
    kept: AnyArray = np.where(gravity < np.abs(w), np.sign(w) * (np.abs(w) - gravity), ZERO) * contraction
    return kept


def is_shrunk(table: WeightTable) -> bool:
    """Return whether --l1 and --l2 have an effect that is not yet applied to the weights."""
    return bool((table.shrunk != [0, 1]).any())


# -- kernels


@bare
def truncated(w: np.float32, gravity: np.float32) -> np.float32:
    """Return w moved towards 0 by gravity, at most to 0."""
    if gravity < abs(w):
        return w - gravity if w > ZERO else w + gravity
    return ZERO


@jit
def find(table: WeightTable, feature: UInt32s, rows: np.uint64, found: Bools) -> None:
    """Set `found` (bool[z]) for each feature (uint32[z]) that has a weight in a subproblem.

    If features are cut to a number of rows of the table, this is `rows`, else 0.
    """
    for f in range(len(feature)):
        h = np.uint64(feature[f])
        place = (h % rows if rows > 0 else h) * table.width
        sub = np.uint64(0)
        while sub < len(table.sums) and not found[f]:
            found[f] = table.flat[((place + sub) & table.mask) * table.stride] != ZERO
            sub += np.uint64(1)


@bare
def shrunk_of(table: WeightTable, sub: np.uint64) -> np.int64:
    """Return the row of `WeightTable.shrunk` that has gravity and contraction of a subproblem."""
    return min(np.int64(sub), np.int64(len(table.shrunk) - 1))


@on_demand
def apply_shrunk(table: WeightTable, sub: np.uint64) -> None:
    """Replace the weights that share the gravity and contraction of a subproblem by their effective values."""
    own = shrunk_of(table, sub)
    gravity, contraction = np.float32(table.shrunk[own, 0]), np.float32(table.shrunk[own, 1])
    first, step = (np.int64(sub), np.int64(table.width)) if len(table.shrunk) > 1 else (0, 1)
    for i in range(first, np.int64(table.mask) + 1, step):
        at = i * np.int64(table.stride)
        table.flat[at] = truncated(table.flat[at], gravity) * contraction
    table.shrunk[own, 0] = 0.0
    table.shrunk[own, 1] = 1.0
