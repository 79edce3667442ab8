"""Score and train the routers of --log_multi and --random_tree, whose sign sends an example left or right.

Two kinds of regressors share the kernels; `--layout` chooses one:

    odd   AdaGrad on slots of 8 bytes, a weight and its G: a feature's slots for three levels of the tree share a cache
          line, found by a multiplicative hash of feature and block. Three more bits of the hash permute the slots of
          the line, so that the routers of two blocks whose hashes collide are not paired slot by slot. Each value is
          divided by the largest absolute value of its feature so far, then the example is scaled to length 1. A step
          that would move the score beyond the label is shortened to end at the label, except with logistic loss, whose
          least value is not at the label, and `classic`, squared loss without this limit.
    vw    `gd`, with all its options and with VW's placement of weights.

Source    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011, for AdaGrad; VW 9.11 for the layout `vw`.
Cost      s features touch s cache lines for three levels; scoring and learning are O(s) each.
Names     A router has a number. With `vw` the numbers are 0, 1, ...; otherwise they are places `8 * block + q`: the
          root of a block has q = 1, the children of q are 2 q and 2 q + 1, and the children of q = 4..7 are roots of
          blocks of their own. Labels of routers are -1 for left and 1 for right; a score of 0 goes right.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float32s, Int, Int64s, UInt32s, UInt64s
from ...binary import adagrad, finite, gd, in_words, loss
from ...data.batch import Batch
from ...kernels import intrinsics
from ...kernels.constants import GOLDEN, ONE, SPREAD, ZERO
from ...kernels.jit import bare, on_demand
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import no_effect
from .base import Reduction
from .contract import BatchTask
from .spec import LearnerSpec

SUPPORTED_OPTIONS = (  # options of the binary learner that apply to layout `odd`
    "bits", "learning_rate", "loss_function", "quantile_tau", "layout", "predict_only_model",
)  # fmt: skip
GROUP_SIZE = 8  # examples that descend together, so that their cache misses overlap
MOST_STEP = np.float32(2.0**102)  # largest addend to G, and largest step before AdaGrad, for examples of length 1
LOG2_SLOTS_PER_ROUTER = 10  # log2 of the number of slots per router, for the default size of the weight table
SLOT_BYTES = 8
THREE, SEVEN = np.uint64(3), np.uint64(7)
LOG2_SCALES = 18  # log2 of the size of the table of largest values


class Routers(NamedTuple):
    """Hold the routers of a tree; one of `table` and `flat` is used."""

    vw_layout: bool  # layout `vw`: use `table`, else `flat`
    table: gd.WeightTable
    rule: gd.UpdateRule
    flat: Float32s  # float32[2 << b], weight and G of each slot; cache lines begin at multiples of 16
    shift: np.uint64  # 64 - b
    largest: Float32s  # float32[2**SCALES], largest |value| of the features that share a cell


class GroupScratch(NamedTuple):
    """Hold one thread's scratch: a group of up to GROUP_SIZE examples, and the path of the current one."""

    h: UInt64s  # uint64[GROUP_SIZE, s], hash of each feature, or its place with layout `vw`
    x: Float32s  # float32[GROUP_SIZE, s], scaled values
    slot: UInt64s  # uint64[GROUP_SIZE, s], position of the feature's slot 0 in the current block
    block: Int64s  # int64[GROUP_SIZE], current block, -1 for none
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[GROUP_SIZE], number of features
    at: Int64s  # int64[GROUP_SIZE], current node
    other: Int64s  # int64[GROUP_SIZE], second node or router, for use by the tree
    rate: Float32s  # float32[s], learning rate of each feature
    node: Int64s  # int64[levels], nodes on the path
    score: Float32s  # float32[levels], their scores


# -- kernels


@bare
def load(routers: Routers, batch: Batch, i: Int, scratch: GroupScratch, g: Int, learns: bool) -> None:
    """Copy example i of a batch into the group as number g, with its values scaled.

    `scratch` is written; if `learns`, so is `routers.largest`, the largest absolute value of each feature.
    """
    begin = batch.start[i]
    count = batch.start[i + 1] - begin
    scratch.count[g] = count
    if routers.vw_layout:
        for f in range(count):
            scratch.h[g, f] = np.uint64(batch.index[begin + f]) * routers.table.width
            scratch.x[g, f] = batch.value[begin + f]
        return
    scratch.block[g] = -1
    shift = np.uint64(64 - LOG2_SCALES)
    total = 0.0
    for f in range(count):
        h = np.uint64(batch.index[begin + f]) * GOLDEN
        value = batch.value[begin + f]
        magnitude = abs(value)
        cell = np.int64(h >> shift)
        largest = routers.largest[cell]
        if magnitude > largest and (learns or largest == ZERO):
            largest = magnitude
            if learns:
                routers.largest[cell] = magnitude
        x = value / largest if largest > ZERO else ZERO
        scratch.h[g, f] = h
        scratch.x[g, f] = x
        total += np.float64(x) * np.float64(x)
    scale = adagrad.inverse_root(total)
    for f in range(count):
        scratch.x[g, f] *= scale


@bare
def locate_block(routers: Routers, scratch: GroupScratch, g: Int, block: Int) -> None:
    """Compute the slots of example g in a block and prefetch their cache lines.

    `scratch.slot` and `scratch.block` are written. Slot q is at line + 2 * (q ^ twist), which equals slot[0] ^ (2 * q).
    """
    spread = np.uint64(block) * SPREAD
    line_shift = routers.shift + THREE
    for f in range(scratch.count[g]):
        z = (scratch.h[g, f] ^ spread) * GOLDEN
        twist = (z >> routers.shift) & SEVEN
        scratch.slot[g, f] = ((z >> line_shift) << np.uint64(4)) + (twist << np.uint64(1))
    for f in range(scratch.count[g]):
        intrinsics.prefetch(routers.flat, np.int64(scratch.slot[g, f]))
    scratch.block[g] = block


@bare
def prefetch_block(routers: Routers, scratch: GroupScratch, g: Int, block: Int) -> None:
    """Prefetch the cache lines of a block for example g, without entering the block."""
    spread = np.uint64(block) * SPREAD
    line_shift = routers.shift + THREE
    for f in range(scratch.count[g]):
        z = (scratch.h[g, f] ^ spread) * GOLDEN
        intrinsics.prefetch(routers.flat, np.int64((z >> line_shift) << np.uint64(4)))


@bare
def score(routers: Routers, scratch: GroupScratch, g: Int, router: Int) -> np.float32:
    """Return the score of a router for example g; `scratch.slot` and `scratch.block` are written."""
    count = scratch.count[g]
    if routers.vw_layout:
        return _vw_score(routers.table, scratch.h[g], scratch.x[g], count, np.uint64(router))
    if scratch.block[g] != router >> 3:
        locate_block(routers, scratch, g, router >> 3)
    flat = routers.flat
    q = np.uint64(2 * (router & 7))
    a, b, c, d = ZERO, ZERO, ZERO, ZERO  # four partial sums hide the latency of additions
    unrolled = count & ~np.int64(3)
    for f in range(0, unrolled, 4):
        a += flat[scratch.slot[g, f] ^ q] * scratch.x[g, f]
        b += flat[scratch.slot[g, f + 1] ^ q] * scratch.x[g, f + 1]
        c += flat[scratch.slot[g, f + 2] ^ q] * scratch.x[g, f + 2]
        d += flat[scratch.slot[g, f + 3] ^ q] * scratch.x[g, f + 3]
    for f in range(unrolled, count):
        a += flat[scratch.slot[g, f] ^ q] * scratch.x[g, f]
    return (a + b) + (c + d)


@on_demand
def _vw_score(table: gd.WeightTable, place: UInt64s, x: Float32s, count: int, router: np.uint64) -> np.float32:
    return gd.score(table, place, x, count, router, ZERO)


@bare
def routing_score(routers: Routers, s: np.float32) -> np.float32:
    """Return the score whose sign routes an example: clipped with layout `vw`, else unchanged."""
    return gd.clip(s, routers.table.range) if routers.vw_layout else s


@bare
def learn(
    routers: Routers, scratch: GroupScratch, g: Int, router: Int, s: np.float32, y: np.float32, weight: np.float32,
    clock: np.float64,
) -> np.float32:  # fmt: skip
    """Update a router for example g towards the label y, -1 or 1, and return its new score; s is its score before.

    AdaGrad: G += weight * slope**2 * x**2, then w -= rate * weight * slope * x / sqrt(G). If that would move the score
    beyond y, the step is shortened to end at y, except with logistic and `classic` loss. `clock` is for VW's learner.
    """
    count = scratch.count[g]
    if routers.vw_layout:
        h, x = scratch.h[g], scratch.x[g]
        return _vw_learn(routers.table, routers.rule, h, x, count, np.uint64(router), s, y, weight, clock)
    loss_kind = routers.rule.loss
    slope = loss.slope(loss_kind, routers.rule.tau, s, y, -ONE, ONE)
    if slope == ZERO or not math.isfinite(slope):
        return s
    square = weight * slope * slope
    step = -routers.rule.rate * weight * slope
    if not (square <= MOST_STEP and abs(step) <= MOST_STEP):  # only the slope of `classic` is unbounded
        finite.mark_step_skipped(routers.table.guard)
        return s
    if scratch.block[g] != router >> 3:
        locate_block(routers, scratch, g, router >> 3)
    flat, slot, x, rate = routers.flat, scratch.slot[g], scratch.x[g], scratch.rate
    q = np.uint64(2 * (router & 7))
    for f in range(count):
        flat[(slot[f] ^ q) + np.uint64(1)] += square * (x[f] * x[f])
    for f in range(count):
        rate[f] = flat[(slot[f] ^ q) + np.uint64(1)]
    for f in range(count):
        rate[f] = x[f] / np.float32(math.sqrt(rate[f])) if rate[f] > ZERO else ZERO
    reach = ZERO
    for f in range(count):
        reach += x[f] * rate[f]
    updated: np.float32 = s + step * reach
    if loss_kind != loss.LOGISTIC and loss_kind != loss.CLASSIC and abs(step) * reach > abs(y - s):
        step = (y - s) / reach
        updated = y
    for f in range(count):
        flat[slot[f] ^ q] += step * rate[f]
    return updated


@on_demand
def _vw_learn(
    table: gd.WeightTable, rule: gd.UpdateRule, place: UInt64s, x: Float32s, count: int, router: np.uint64,
    s: np.float32, y: np.float32, weight: np.float32, clock: np.float64,
) -> np.float32:  # fmt: skip
    """Update a router by VW's learner as `learn` does, and return its new score."""
    if rule.widen:
        gd.widen(table.range, y)
    if weight > ZERO:
        gd.learn(table, rule, place, x, count, router, gd.clip(s, table.range), y, weight, clock)
    return gd.score(table, place, x, count, router, ZERO)


# -- Python


RULES = (
    no_effect(
        gd.other_options(SUPPORTED_OPTIONS),
        "the routers of --{reduction} learn by plain AdaGrad; leave it out, or give --layout vw for VW's learner",
        layout=lambda layout: layout != "vw",
    ),
)


def resolve_defaults(options: gd.BinaryOptions, number: int, loss_function: str, rate: float) -> dict[str, object]:
    """Return {field: value} for options of the binary learner that were not given.

    `number` is that of the routers; `loss_function` and `rate` are the default loss and the default rate of AdaGrad.
    """
    vw_layout = options.layout == "vw"
    slot_bytes = gd.SLOT_BYTES if vw_layout else SLOT_BYTES
    resolved = gd.resolve_defaults(options, number, True, slot_bytes, LOG2_SLOTS_PER_ROUTER)
    if options.loss_function is None:
        resolved["loss_function"] = loss_function
    if options.learning_rate is None and not vw_layout:
        resolved["learning_rate"] = rate
    return resolved


def new_routers(options: gd.BinaryOptions, number: int, vw_exact: bool, tree_bytes: int = 0) -> Routers:
    """Return at most `number` untrained routers.

    `tree_bytes` is what the tree takes in addition to the weights, for the check of memory.
    """
    vw_layout = options.layout == "vw"
    gd.check_memory(options.bits, gd.SLOT_BYTES if vw_layout else SLOT_BYTES, tree_bytes)
    rule = gd.make_rule(options, reduction=True, exact=vw_exact)
    subs = max(1, number)
    table = gd.new_table(rule, options.bits if vw_layout else 1, subs if vw_layout else 1, gd.vw_width(subs))
    bits = 4 if vw_layout else max(4, options.bits)
    memory = np.zeros((2 << bits) + 16, np.float32)
    skip = -memory.ctypes.data // 4 % 16
    flat, largest = memory[skip : skip + (2 << bits)], np.zeros(1 << LOG2_SCALES, np.float32)
    return Routers(vw_layout, table, rule, flat, np.uint64(64 - bits), largest)


class RoutedLearner(Reduction):
    """A learner whose regressors are the routers of a tree; `tree_bytes` and `number` as in `new_routers`."""

    def __init__(self, spec: LearnerSpec, number: int, tree_bytes: int = 0) -> None:
        self.learner_options = spec.binary
        self.weights_only = spec.binary.predict_only_model
        self.routers = new_routers(spec.binary, number, spec.vw_exact, tree_bytes)
        if self.routers.vw_layout:
            self.tables = [self.routers.table]
        else:  # with layout `vw`, steps are checked one by one
            self.largest_step = finite.largest_step(float(self.routers.rule.rate))

    def find(self, feature: UInt32s) -> Bools | None:
        if self.routers.vw_layout:
            return super().find(feature)
        z = ((feature.astype(np.uint64) * GOLDEN) ^ SPREAD) * GOLDEN  # of block 1
        lines = self.routers.flat.reshape(-1, 16)[z >> (self.routers.shift + THREE)]
        found: Bools = (lines != 0).any(axis=1)
        return found

    @property
    def rule(self) -> gd.UpdateRule:  # type: ignore[override]  # it is not set from outside
        return self.routers.rule

    def end_pass(self) -> None:
        if self.routers.vw_layout:
            self.routers = self.routers._replace(rule=gd.after_pass(self.routers.rule, self.learner_options))


def check_arrays(spec: LearnerSpec, arrays: Arrays, number: int) -> None:
    """Raise ModelError unless a model with layout `vw` has sums for each router, before the table is allocated."""
    if spec.binary.layout == "vw":
        stored_arrays.check_rows("weights.sums", arrays, max(1, number))


def new_scratch(s: int, levels: int) -> GroupScratch:
    """Return scratch for examples of at most `s` features in a tree of at most `levels` levels."""
    shape = GROUP_SIZE, s
    return GroupScratch(
        np.empty(shape, np.uint64), np.empty(shape, np.float32), np.empty(shape, np.uint64),
        np.empty(GROUP_SIZE, np.int64), np.empty(GROUP_SIZE, np.int64), np.empty(GROUP_SIZE, np.int64),
        np.empty(GROUP_SIZE, np.int64),
        np.empty(s, np.float32), np.empty(levels, np.int64), np.empty(levels, np.float32),
    )  # fmt: skip


def guarded(routers: Routers, task: BatchTask) -> Routers:
    """Return the routers as one thread uses them for a batch, see `finite.guarded`."""
    table = finite.guarded(routers.table, task.guard)
    return Routers(routers.vw_layout, table, *routers[2:])  # faster than `_replace`


def memory(routers: Routers) -> int:
    """Return the number of bytes of the weights."""
    return routers.table.flat.nbytes if routers.vw_layout else routers.flat.nbytes


def weights_line(routers: Routers, options: gd.BinaryOptions) -> str:
    """Return the line about the weights for the start of a run."""
    if routers.vw_layout:
        return in_words.table(options.bits, gd.SLOT_BYTES)
    return in_words.table(max(4, options.bits), SLOT_BYTES)


def learning_lines(routers: Routers, options: gd.BinaryOptions) -> list[str]:
    """Return the lines about learning rate and loss, see `Reduction.learning_lines`."""
    if routers.vw_layout:
        return in_words.learning(options)
    return [f"Learning rate: {options.learning_rate:g} (AdaGrad)", in_words.loss(options)]


def serialize(archive: Archive, routers: Routers, options: gd.BinaryOptions) -> None:
    """Save routers, or fill new ones from a model; weights are never indices, so any value is safe.

    Learning never produces a negative G, which is refused because it has no square root.
    """
    if routers.vw_layout:
        gd.serialize_table(archive, "weights", routers.table, routers.rule, options)
        return
    planes: dict[str, AnyArray] = {"w": routers.flat[0::2]}
    if not options.predict_only_model or archive.shape("weights.g") is not None:
        planes["g"] = routers.flat[1::2]
    archive.table("weights", planes, {"g": (0, math.inf)})
    archive.table("largest", {"x": routers.largest})
