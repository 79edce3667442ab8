"""The weight table: how its slots lie, how it begins, what a model keeps of it.

Layout    sub-problem j of feature h lies in slot `(h * width + j) mod 2**b`. `width` is a power of two under
          `--layout vw`, which leaves only 2**b / width distinct places for features; the default takes four times an
          odd number, for which every feature keeps a place of its own and four neighbouring sub-problems share a
          cache line.
Slot      four float32, 16 bytes:   | w | G | N | rate |
          w weight, G sum of importance * slope**2 * x**2, N largest |x| seen, rate scratch of one update.
          With --l1 and --l2 every weight counts as `trunc(w, gravity) * contraction`, see `gd.learn`.
          A table of planes keeps all w, then all G, then all N, then rates: for reductions that visit
          neighbouring sub-problems in order (`stride` 1, `field` slots, instead of 4 and 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Float64s
from ..kernels.constants import ZERO
from ..kernels.jit import jit
from ..model import stored_arrays
from ..model.stored_arrays import Stored
from . import finite, loss
from .table_size import FIELDS
from .update_rule import Rule

LOGISTIC_RANGE = np.float32(50)  # predictions under logistic loss are clipped to +-50


class Table(NamedTuple):
    """Weights of some sub-problems and the learner's state beside them."""

    flat: Float32s  # float32[slots * stride]
    stride: np.uint64  # float32 from a slot to the next
    field: np.uint64  # float32 from w to G, G to N, N to rate of a slot
    mask: np.uint64  # slots - 1
    width: np.uint64
    sums: Float64s  # float64[subs, 2]: S (importance * sum of x**2 / N**2) and T (importance)
    range: Float32s  # float32[2]: smallest and largest label, predictions are clipped to it
    shrunk: Float64s  # float64[2]: gravity and contraction; float64[0] without --l1 and --l2
    watch: finite.Watch  # the batch at hand, see `finite.watched`


def first_range(rule: Rule) -> Float32s:
    """The label range before any label was seen: float32[2]. With one end asked for, the other is 0, as in VW."""
    pinned = not (np.isnan(rule.lowest) and np.isnan(rule.highest))
    if rule.loss == loss.LOGISTIC and not pinned:
        return np.array([-LOGISTIC_RANGE, LOGISTIC_RANGE], np.float32)
    found = np.zeros(2, np.float32) if rule.widen or pinned else np.array([-1, 1], np.float32)
    return _pin(rule, found)


def _pin(rule: Rule, limits: Float32s) -> Float32s:
    """Set the ends of a label range that were asked for."""
    for j, end in enumerate((rule.lowest, rule.highest)):
        if not np.isnan(end):
            limits[j] = end
    return limits


def odd_width(subs: int) -> int:
    """The smallest four times an odd number that holds `subs` neighbouring sub-problems."""
    return 4 * (-(-subs // 4) | 1)


def vw_width(subs: int) -> int:
    """The power of two VW rounds the number of sub-problems up to."""
    return 1 << max(0, subs - 1).bit_length()


def new_table(rule: Rule, bits: int, subs: int, width: int, planes: bool = False) -> Table:
    """A table of 2**bits slots for `subs` sub-problems. Pages are taken from the machine as they are touched."""
    slots = 1 << bits
    flat = np.zeros(slots * FIELDS, np.float32)
    if rule.initial_weight != 0:
        _column(flat, slots, planes, 0)[:] = rule.initial_weight
    sums = np.zeros((subs, 2))
    if rule.initial_t > 0 and (rule.adaptive or rule.normalized):
        if rule.adaptive:
            _column(flat, slots, planes, 1)[:] = rule.initial_t
        sums[0] = rule.initial_t  # VW: of the first sub-problem only
    return Table(
        flat=flat,
        stride=np.uint64(1 if planes else FIELDS),
        field=np.uint64(slots if planes else 1),
        mask=np.uint64((1 << bits) - 1),
        width=np.uint64(width),
        sums=sums,
        range=first_range(rule),
        shrunk=np.array([0.0, 1.0] if rule.regular else []),
        watch=finite.idle_watch(),
    )


def _column(flat: Float32s, slots: int, planes: bool, k: int) -> Float32s:
    return flat[k * slots : (k + 1) * slots] if planes else flat[k::FIELDS]


COLUMNS = ("w", "g", "n")  # what is kept of a slot


def table_arrays(name: str, table: Table, weights_only: bool = False) -> dict[str, Stored]:
    """The learned content of a table as named arrays; slots never touched are left out where that is smaller.

    Parameters
    ----------
    weights_only : leave out what learning needs to go on; --l1 and --l2 are then applied to the weights.
    """
    planes = columns(table)
    if weights_only:
        planes = {"w": effective_weights(table)}
    found = stored_arrays.sparse(name, planes)
    found[name + ".range"] = table.range
    if not weights_only:
        found[name + ".sums"] = table.sums
        if len(table.shrunk):
            found[name + ".shrunk"] = table.shrunk
    return found


def columns(table: Table) -> dict[str, Float32s]:
    """The w, G and N of all slots: float32[slots] each, views of the table."""
    slots = int(table.mask) + 1
    return {c: _column(table.flat, slots, table.stride == 1, k) for k, c in enumerate(COLUMNS)}


def restore_table(
    name: str, table: Table, arrays: Mapping[str, Stored], resume: str = "all", rule: Rule | None = None
) -> None:
    """Fill a new table with what `table_arrays` gave; `resume` as in Options.

    The rows of a sparse table rise and are inside it; everything else is numbers that are added and compared, of which
    any will do, infinite ones too.
    """
    planes = columns(table)
    if name + ".g" not in arrays:  # --predict_only_model
        planes = {"w": planes["w"]}
    if rule is not None and rule.initial_weight != 0:
        planes["w"][:] = 0
    stored_arrays.dense(name, arrays, planes)
    if "g" in planes:
        stored_arrays.fill(name + ".sums", arrays, table.sums)
        _restore_shrunk(name + ".shrunk", table, arrays)
    if resume == "first":
        table.sums[1:] = 0
    stored_arrays.fill(name + ".range", arrays, table.range)
    if rule is not None:
        _pin(rule, table.range)


def _restore_shrunk(name: str, table: Table, arrays: Mapping[str, Stored]) -> None:
    """Take over the state of --l1 and --l2, which learning may go on with, begin with, or go on without."""
    if name not in arrays:
        return
    state = np.array([0.0, 1.0])
    stored_arrays.fill(name, arrays, state)
    if len(table.shrunk):
        table.shrunk[:] = state
    else:
        apply_regularisation(table._replace(shrunk=state))


def predicting(arrays: Mapping[str, Stored]) -> dict[str, Stored]:
    """Leave out what tables need for learning only, as if the model had been saved with --predict_only_model."""
    tables = [name[: -len(".range")] for name in arrays if name.endswith(".range")]
    lost = {f"{one}.{c}" for one in tables if f"{one}.shrunk" not in arrays for c in ("g", "n", "sums")}
    return {name: array for name, array in arrays.items() if name not in lost}


def apply_regularisation(table: Table) -> None:
    """Apply the state of --l1 and --l2 to the weights themselves."""
    if _is_shrunk(table):
        apply_shrunk(table)


def effective_weights(table: Table) -> Float32s:
    """The weights as they count, without a change to the table: float32[slots]."""
    w = columns(table)["w"]
    if not _is_shrunk(table):
        return w
    gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
    return np.sign(w) * np.maximum(np.abs(w) - gravity, ZERO) * contraction


def _is_shrunk(table: Table) -> bool:
    return len(table.shrunk) > 0 and (table.shrunk[0] != 0 or table.shrunk[1] != 1)


# -- kernels


@jit
def truncated(w: np.float32, gravity: np.float32) -> np.float32:
    """w, nearer to 0 by gravity, or 0."""
    if gravity < abs(w):
        return w - gravity if w > ZERO else w + gravity
    return ZERO


@jit
def apply_shrunk(table: Table) -> None:
    """Turn the weights into what they count for; they then count for themselves."""
    gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
    for i in range(np.int64(table.mask) + 1):
        at = i * np.int64(table.stride)
        table.flat[at] = truncated(table.flat[at], gravity) * contraction
    table.shrunk[0] = 0.0
    table.shrunk[1] = 1.0
