"""The regressors at the nodes of a tree whose examples turn left or right by their scores.

Two kinds behind the same kernels, chosen by `--layout`:

    odd   AdaGrad in `adagrad`' table of 8-byte slots: three levels of a tree share a cache line of every
          feature. Values are divided by the largest the feature has had while learning, then the example by its length.
          A step ends at the label: it never overshoots (but with logistic loss, which has no end, and `classic`).
    vw    VW's learner and VW's slots, all options of `learner` included.

A router has a number. VW's are 0, 1, ...; the others are places, `8 * block + q`: the first node of a block at q = 1,
the children of q at 2 q and 2 q + 1, and those of q = 4..7 begin blocks of their own (as in label_tree).

Learners  one per node: -1 is left, 1 right; a score of 0 goes right.
Cost      s features touch s cache lines for three levels; asking and learning are O(s) each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Int, Int64s, UInt64s
from ...binary import adagrad, finite, gd, loss
from ...data.batch import Batch
from ...errors import UsageError
from ...kernels import intrinsics
from ...kernels.constants import GOLDEN, ONE, SPREAD, ZERO
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ...options.declare import options_of
from .contract import BatchTask
from .spec import LearnerSpec

TAKEN = ("bits", "learning_rate", "loss_function", "quantile_tau", "layout")  # of the learner's options
GROUP_SIZE = 8  # examples that walk down together, so that they wait for memory together
MOST_STEP = np.float32(2.0**102)  # in G and in a step before AdaGrad, for examples of length 1
PLACES = 10  # bits of the table for every router
SCALES = 18  # bits of the table of largest values


class Routers(NamedTuple):
    """All regressors of a tree; of `table` and `weights` one is used."""

    exact: bool  # VW's learner
    table: gd.Table
    rule: gd.Rule
    weights: adagrad.Weights
    largest: Float32s  # float32[2**SCALES], largest |value| of the features that share a place


class Row(NamedTuple):
    """One thread's scratch: a group of up to GROUP_SIZE examples, and the path of the current one."""

    h: UInt64s  # uint64[GROUP_SIZE, s], hash of each feature, or its place in the table
    x: Float32s  # float32[GROUP_SIZE, s]
    slot: UInt64s  # uint64[GROUP_SIZE, s], where in the weights the feature's slot 0 is, in the block looked at last
    block: Int64s  # int64[GROUP_SIZE], that block
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[GROUP_SIZE], features
    at: Int64s  # int64[GROUP_SIZE], node where the example is
    other: Int64s  # int64[GROUP_SIZE], node on another way it may take
    rate: Float32s  # float32[s]
    node: Int64s  # int64[levels]
    score: Float32s  # float32[levels]


# -- kernels


@bare
def load(routers: Routers, batch: Batch, i: Int, row: Row, g: Int, learns: bool) -> None:
    """Take example i into the group as number g; where it is to be learned from, its values count for the largest."""
    begin = batch.start[i]
    count = batch.start[i + 1] - begin
    row.count[g] = count
    if routers.exact:
        for f in range(count):
            row.h[g, f] = np.uint64(batch.index[begin + f]) * routers.table.width
            row.x[g, f] = batch.value[begin + f]
        return
    row.block[g] = -1
    over = np.uint64(64 - SCALES)
    total = 0.0
    for f in range(count):
        h = np.uint64(batch.index[begin + f]) * GOLDEN
        value = batch.value[begin + f]
        size = abs(value)
        at = np.int64(h >> over)
        largest = routers.largest[at]
        if size > largest and (learns or largest == ZERO):
            largest = size
            if learns:
                routers.largest[at] = size
        x = value / largest if largest > ZERO else ZERO
        row.h[g, f] = h
        row.x[g, f] = x
        total += np.float64(x) * np.float64(x)
    scale = adagrad.inverse_root(total)
    for f in range(count):
        row.x[g, f] *= scale


@bare
def enter(routers: Routers, row: Row, g: Int, block: Int) -> None:
    """Find the slots of a block and ask for their cache lines.

    A slot is at `slot[q]` of `adagrad.slot`: line + 2 * (q ^ twist), which is slot[0] ^ (2 * q).
    """
    weights = routers.weights
    spread = np.uint64(block) * SPREAD
    over = weights.shift + adagrad.THREE
    for f in range(row.count[g]):
        z = (row.h[g, f] ^ spread) * GOLDEN
        twist = (z >> weights.shift) & adagrad.SEVEN
        row.slot[g, f] = ((z >> over) << np.uint64(4)) + (twist << np.uint64(1))
    for f in range(row.count[g]):
        intrinsics.prefetch(weights.flat, np.int64(row.slot[g, f]))
    row.block[g] = block


@bare
def prefetch_block(routers: Routers, row: Row, g: Int, block: Int) -> None:
    """Ask for the cache lines of a block that is not entered."""
    weights = routers.weights
    spread = np.uint64(block) * SPREAD
    over = weights.shift + adagrad.THREE
    for f in range(row.count[g]):
        z = (row.h[g, f] ^ spread) * GOLDEN
        intrinsics.prefetch(weights.flat, np.int64((z >> over) << np.uint64(4)))


@bare
def score(routers: Routers, row: Row, g: Int, number: Int) -> np.float32:
    """The score of a router, float32."""
    count = row.count[g]
    if routers.exact:
        return gd.score(routers.table, row.h[g], row.x[g], count, np.uint64(number), ZERO)
    if row.block[g] != number >> 3:
        enter(routers, row, g, number >> 3)
    flat = routers.weights.flat
    q = np.uint64(2 * (number & 7))
    a, b, c, d = ZERO, ZERO, ZERO, ZERO  # four sums, since one would wait for itself
    whole = count & ~np.int64(3)
    for f in range(0, whole, 4):
        a += flat[row.slot[g, f] ^ q] * row.x[g, f]
        b += flat[row.slot[g, f + 1] ^ q] * row.x[g, f + 1]
        c += flat[row.slot[g, f + 2] ^ q] * row.x[g, f + 2]
        d += flat[row.slot[g, f + 3] ^ q] * row.x[g, f + 3]
    for f in range(whole, count):
        a += flat[row.slot[g, f] ^ q] * row.x[g, f]
    return (a + b) + (c + d)


@bare
def routing_score(routers: Routers, s: np.float32) -> np.float32:
    """The score as it decides the turn."""
    return gd.clip(s, routers.table.range) if routers.exact else s


@bare
def learn(
    routers: Routers, row: Row, g: Int, number: Int, s: np.float32, y: np.float32, weight: np.float32, clock: np.float64
) -> np.float32:
    """Train a router whose score was s towards y; return its score after that.

    AdaGrad: G += weight * slope**2 * x**2 and then w -= rate * weight * slope * x / sqrt(G), unless that took the
    prediction beyond y; then the step is the one that takes it to y.
    """
    count = row.count[g]
    if routers.exact:
        table = routers.table
        if routers.rule.widen:
            gd.widen(table.range, y)
        p = gd.clip(s, table.range)
        if weight > ZERO:
            gd.learn(table, routers.rule, row.h[g], row.x[g], count, np.uint64(number), p, y, weight, clock)
        return score(routers, row, g, number)
    kind = routers.rule.loss
    slope = loss.slope(kind, routers.rule.tau, s, y, -ONE, ONE)
    if slope == ZERO or not math.isfinite(slope):
        return s
    square = weight * slope * slope
    step = -routers.rule.rate * weight * slope
    if not (square <= MOST_STEP and abs(step) <= MOST_STEP):  # the slope of `classic` has no bound
        finite.note(routers.table.watch)
        return s
    if row.block[g] != number >> 3:
        enter(routers, row, g, number >> 3)
    flat = routers.weights.flat
    slot, x, rate = row.slot[g], row.x[g], row.rate
    q = np.uint64(2 * (number & 7))
    adagrad.find_rates(flat, slot, 0, q, x, count, square, rate)
    reach = adagrad.reach(x, count, rate)
    after: np.float32 = s + step * reach
    if kind != loss.LOGISTIC and kind != loss.CLASSIC and abs(step) * reach > abs(y - s):
        step = (y - s) / reach
        after = y
    adagrad.move(flat, slot, 0, q, count, -step, rate)
    return after


# -- Python


def check(spec: LearnerSpec) -> None:
    """Refuse options of the learner that these routers do not look at."""
    gd.check(spec)
    if spec.binary.layout == "vw":
        return
    for name in options_of(gd.Options):
        if name in spec.given and name not in TAKEN:
            raise UsageError(
                f"--{name} has no effect: the routers of --{spec.name} learn by plain AdaGrad; "
                "leave it out, or give --layout vw for VW's learner"
            )


def resolve_defaults(options: gd.Options, number: int, loss_function: str, rate: float) -> dict[str, object]:
    """Values for the learner's options left open, for so many routers; the loss and rate are those of AdaGrad."""
    exact = options.layout == "vw"
    slot = gd.SLOT_BYTES if exact else adagrad.SLOT_BYTES
    found = gd.resolve_defaults(options, number, True, slot, PLACES)
    if options.loss_function is None:
        found["loss_function"] = loss_function
    if options.learning_rate is None and not exact:
        found["learning_rate"] = rate
    return found


def new_routers(options: gd.Options, number: int, vw_exact: bool, more: int = 0) -> Routers:
    """Return at most `number` routers that have learned nothing; the tree takes `more` bytes beside their weights."""
    exact = options.layout == "vw"
    gd.check_memory(options.bits, gd.SLOT_BYTES if exact else adagrad.SLOT_BYTES, more)
    rule = gd.make_rule(options, reduction=True, exact=vw_exact)
    subs = max(1, number)
    table = gd.new_table(rule, options.bits if exact else 1, subs if exact else 1, gd.vw_width(subs))
    weights = adagrad.new_weights(4 if exact else max(4, options.bits), rule.loss, options.learning_rate)
    return Routers(exact, table, rule, weights, np.zeros(1 << SCALES, np.float32))


def new_row(batch: Batch, levels: int) -> Row:
    """Scratch for the examples of a batch in a tree of so many levels."""
    s = int(np.diff(batch.start).max(initial=0))
    shape = GROUP_SIZE, s
    return Row(
        np.empty(shape, np.uint64), np.empty(shape, np.float32), np.empty(shape, np.uint64),
        np.empty(GROUP_SIZE, np.int64), np.empty(GROUP_SIZE, np.int64), np.empty(GROUP_SIZE, np.int64),
        np.empty(GROUP_SIZE, np.int64),
        np.empty(s, np.float32), np.empty(levels, np.int64), np.empty(levels, np.float32),
    )  # fmt: skip


def largest_step(routers: Routers) -> float:
    """See `finite`; VW's learner needs no bound, it looks at its steps itself."""
    return math.inf if routers.exact else finite.largest_step(float(routers.weights.rate))


def watched(routers: Routers, task: BatchTask) -> Routers:
    """The routers as one thread uses them for a batch."""
    return routers._replace(table=finite.watched(routers.table, task))


def memory(routers: Routers) -> int:
    """Bytes of weights."""
    return routers.table.flat.nbytes if routers.exact else routers.weights.flat.nbytes


def arrays(routers: Routers, weights_only: bool) -> dict[str, Stored]:
    """What a model keeps of the regressors."""
    if routers.exact:
        return gd.table_arrays("weights", routers.table, weights_only)
    found = adagrad.weights_arrays("weights", routers.weights)
    found.update(stored_arrays.sparse("largest", {"x": routers.largest}))
    return found


def restore(routers: Routers, found: Mapping[str, Stored], resume: str) -> None:
    """Fill new routers with what `arrays` gave. Weights are never indices, so any number will do."""
    if routers.exact:
        gd.restore_table("weights", routers.table, found, resume, routers.rule)
    else:
        adagrad.restore_weights("weights", routers.weights, found)
        stored_arrays.dense("largest", found, {"x": routers.largest})
