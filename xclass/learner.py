"""The binary learner every reduction stands on, and the weight table it keeps.

Source    Duchi, Hazan, Singer 2011 (adaptive); Ross, Mineiro, Langford 2013 (normalised); Karampatziakis and
          Langford 2011 (importance invariant): together VW's default update, in VW's order and precision.
Learners  A reduction numbers its sub-problems ("sub") 0, 1, ...; sub-problem j of feature h lies in slot
          `(h * width + j) mod 2**b`. `width` is a power of two under `--layout vw`, which leaves only
          2**b / width distinct places for features; the default takes four times an odd number, for which
          every feature keeps a place of its own and four neighbouring sub-problems share a cache line.
Slot      four float32, 16 bytes:   | w | G | N | rate |
          w weight, G sum of importance * slope**2 * x**2, N largest |x| seen, rate scratch of one update.
          With --l1 and --l2 every weight counts as `trunc(w, gravity) * contraction`, see `learn`.
          A table of planes keeps all w, then all G, then all N, then rates: for reductions that visit
          neighbouring sub-problems in order (`stride` 1, `field` slots, instead of 4 and 1).
Differs   from VW: nothing under `--layout vw` but the exact 1/sqrt(G) where some of its builds estimate it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import loss, model_file
from .errors import UsageError
from .jit import jit
from .options import option

FIELDS = 4  # float32 per slot of a training table
TINY_X2 = np.float32(1.17549435e-38)  # smaller squares count as this
TINY_X = np.float32(1.084202e-19)
HUGE_X = np.float32(1.8446743e19)  # larger ones have no square in float32
ONE = np.float32(1)
ZERO = np.float32(0)
LOGISTIC_RANGE = np.float32(50)  # predictions under logistic loss are clipped to +-50


@dataclass(frozen=True)
class Options:
    """The binary learner and its table."""

    bits: int = option(
        "bits of the weight table: 2**b slots",
        flags=("-b", "--bit_precision"),
        kind=int,
        metavar="B",
        minimum=1,
        maximum=31,
        default_text="from K and the memory of the machine",
        stored=True,
    )
    learning_rate: float = option(
        "learning rate",
        flags=("-l", "--learning_rate"),
        kind=float,
        metavar="RATE",
        minimum=0,
        default_text="0.5; 10 where an update rule is named, see --sgd",
        stored=True,
    )
    loss_function: str = option(
        "loss of the binary learner; `classic` is squared loss without the step's correction for importance",
        choices=("squared", "logistic", "hinge", "quantile", "classic"),
        default_text="logistic; squared for real-valued labels",
        stored=True,
    )
    quantile_tau: float = option(
        "the quantile that --loss_function quantile aims at",
        kind=float,
        default=0.5,
        minimum=0,
        maximum=1,
        metavar="TAU",
        stored=True,
    )
    power_t: float = option(
        "exponent p of the step size decay: G**-p, or t**-p with --sgd",
        kind=float,
        default=0.5,
        metavar="P",
        stored=True,
    )
    initial_t: float = option(
        "value the clock t and the sums G start at",
        kind=float,
        metavar="T",
        minimum=0,
        default_text="0; 1 with neither --adaptive nor --normalized",
        stored=True,
    )
    sgd: bool = option("plain gradient steps: none of the three rules below", kind=bool, stored=True)
    adaptive: bool = option(
        "a rate for every weight, by its gradients (naming one rule switches off those not named)",
        kind=bool,
        stored=True,
    )
    normalized: bool = option("rates that do not depend on the scale of a feature", kind=bool, stored=True)
    invariant: bool = option("steps that do not overshoot, whatever the importance weight", kind=bool, stored=True)
    l1: float = option(
        "strength of L1 regularisation: what every update takes off all weights",
        kind=float,
        default=0.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
    )
    l2: float = option(
        "strength of L2 regularisation: the share by which every update shrinks all weights",
        kind=float,
        default=0.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
    )
    initial_weight: float = option("what all weights start at", kind=float, default=0.0, metavar="W", stored=True)
    constant: float = option(
        "what the weight of the constant starts at",
        flags=("-C", "--constant"),
        kind=float,
        metavar="W",
        default_text="--initial_weight",
        stored=True,
    )
    decay_learning_rate: float = option(
        "factor of the learning rate at the end of every pass",
        kind=float,
        default=1.0,
        minimum=0,
        metavar="FACTOR",
        stored=True,
    )
    min_prediction: float = option(
        "smallest prediction of the learner; its range then no longer follows the labels",
        kind=float,
        metavar="P",
        default_text="see --label_range",
    )
    max_prediction: float = option(
        "largest prediction of the learner; its range then no longer follows the labels",
        kind=float,
        metavar="P",
        default_text="see --label_range",
    )
    predict_only_model: bool = option(
        "save the weights alone, without what learning needs to go on as if it had not stopped", kind=bool
    )
    link: str = option(
        "function applied to a prediction before it is shown",
        choices=("identity", "logistic"),
        default="identity",
        stored=True,
    )
    layout: str = option(
        "where weights lie: `odd` gives every feature a place of its own, `vw` rounds the number of "
        "sub-problems up to a power of two as VW does",
        choices=("odd", "vw"),
        default="odd",
        stored=True,
    )
    resume: str = option(
        "normalisation sums taken over from a model: of `all` sub-problems, or of the `first` alone as VW does",
        choices=("all", "first"),
        default="all",
    )
    label_range: str = option(
        "range predictions are clipped to before an update: `seen` grows from [0,0] with the labels met (VW), "
        "`known` is [-1,1] from the start for the labels of a reduction",
        choices=("known", "seen"),
        default_text="known; seen for real-valued labels",
        stored=True,
    )


SLOT_BYTES = 4 * FIELDS
LEAST_BITS, MOST_BITS = 18, 26  # of a table whose size nobody gave
PLACES = 10  # and the bits it has for every class


def available_memory() -> int | None:
    """Bytes this process may still take, or None where the machine does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def settle(options, classes: int, reduction: bool, slot_bytes: int = SLOT_BYTES, places: int = PLACES) -> dict:
    """Values for the options left open: loss, label range, rate, clock and the size of the table.

    The table gets 2**places slots for every class, between 2**18 and 2**26, and at most a quarter of the
    memory that is free.
    """
    found = {}
    if options.loss_function is None:
        found["loss_function"] = "logistic" if reduction else "squared"
    if options.label_range is None:
        found["label_range"] = "known" if reduction else "seen"
    named = options.sgd or options.adaptive or options.normalized or options.invariant
    if options.learning_rate is None:
        found["learning_rate"] = 10.0 if named and not (options.adaptive and options.normalized) else 0.5
    if options.initial_t is None:
        found["initial_t"] = 1.0 if named and not (options.adaptive or options.normalized) else 0.0
    if options.bits is None:
        bits = min(MOST_BITS, max(LEAST_BITS, max(0, classes - 1).bit_length() + places))
        memory = available_memory()
        while memory is not None and bits > 10 and (slot_bytes << bits) > memory // 4:
            bits -= 1
        found["bits"] = bits
    return found


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, more: int = 0) -> None:
    """Refuse a table that cannot fit, naming the largest that does.

    Parameters
    ----------
    more : bytes the reduction needs beside the table.
    """
    memory = available_memory()
    if memory is None or (slot_bytes << bits) + more <= memory:
        return
    fits = max((b for b in range(1, 32) if (slot_bytes << b) + more <= memory), default=0)
    advice = f"the largest that fits is -b {fits}" if fits else "no table fits beside it; choose a smaller --max_depth"
    raise UsageError(
        f"-b {bits} asks for {(slot_bytes << bits) / 2**20:,.0f} MB of weights"
        + (f" and {more / 2**20:,.0f} MB of tree" if more > 2**20 else "")
        + f", {memory / 2**20:,.0f} MB are free: {advice}"
    )


FEW_PLACES = 64  # slots per class below which collisions make most of the error


def crowding(bits: int, classes: int, width: int, layout: str) -> list[str]:
    """A warning for the banner where a table is too small for its classes; no line where it is not."""
    places = (1 << bits) // (width if layout == "vw" else classes)
    if places >= FEW_PLACES:
        return []
    enough = bits
    while (1 << enough) // (width if layout == "vw" else classes) < FEW_PLACES and enough < 31:
        enough += 1
    return [
        f"warning: -b {bits} leaves {places} slots for the features of each class; expect collisions, "
        f"or give at least -b {enough}"
    ]


class Rule(NamedTuple):
    """The update rule as scalars, the second argument of every kernel that learns."""

    loss: int
    tau: np.float32
    rate: np.float32
    power_t: np.float32
    initial_t: float
    adaptive: bool
    normalized: bool
    invariant: bool
    root: bool  # power_t is 1/2: square roots instead of powers
    widen: bool  # the label range follows the labels seen
    regular: bool  # l1 or l2 is above 0
    l1: float
    l2: float
    initial_weight: np.float32
    lowest: np.float32  # prediction asked for, NaN where none was
    highest: np.float32


class Table(NamedTuple):
    """Weights of some sub-problems and the learner's state beside them."""

    flat: np.ndarray  # float32[slots * stride]
    stride: np.uint64  # float32 from a slot to the next
    field: np.uint64  # float32 from w to G, G to N, N to rate of a slot
    mask: np.uint64  # slots - 1
    width: np.uint64
    sums: np.ndarray  # float64[subs, 2]: S (importance * sum of x**2 / N**2) and T (importance)
    range: np.ndarray  # float32[2]: smallest and largest label, predictions are clipped to it
    shrunk: np.ndarray  # float64[2]: gravity and contraction; float64[0] without --l1 and --l2


def make_rule(options, reduction: bool) -> Rule:
    """Turn settled options into a rule.

    Parameters
    ----------
    options : this room's Options.
    reduction : True when a reduction hands the labels -1 and 1, False for real-valued labels.
    """
    named = options.sgd or options.adaptive or options.normalized or options.invariant
    adaptive = options.adaptive if named else True
    normalized = options.normalized if named else True
    invariant = options.invariant if named else True
    rate = options.learning_rate
    initial_t = options.initial_t
    if not adaptive and not normalized:
        rate *= math.pow(initial_t, options.power_t)
    kind = loss.CODES[options.loss_function]
    known = options.label_range == "known" and reduction
    lowest, highest = (
        np.float32(np.nan if end is None else end) for end in (options.min_prediction, options.max_prediction)
    )
    pinned = not (np.isnan(lowest) and np.isnan(highest))
    if options.min_prediction is not None and options.max_prediction is not None and lowest > highest:
        raise UsageError(
            f"--min_prediction {lowest:g} is above --max_prediction {highest:g}: no prediction is left; exchange them"
        )
    return Rule(
        loss=kind,
        tau=np.float32(options.quantile_tau),
        rate=np.float32(rate),
        power_t=np.float32(options.power_t),
        initial_t=float(initial_t),
        adaptive=adaptive,
        normalized=normalized,
        invariant=invariant,
        root=options.power_t == 0.5,
        widen=not (known or pinned),
        regular=options.l1 > 0 or options.l2 > 0,
        l1=float(np.float32(options.l1)),
        l2=float(np.float32(options.l2)),
        initial_weight=np.float32(options.initial_weight),
        lowest=lowest,
        highest=highest,
    )


def check(config) -> None:
    """Refuse options of this room that would have no effect beside the reduction chosen."""
    o = config.learner
    labels, reduction = config.parser.label_names(), config.reduction.name
    if labels and reduction == "scalar":
        raise UsageError("--named_labels has no effect on real-valued labels; choose a reduction such as --oaa")
    twice = [label for label in labels if labels.count(label) > 1] if len(set(labels)) < len(labels) else []
    if twice:
        raise UsageError(f"--named_labels names {twice[0]!r} twice; every name is one label")
    classes = getattr(getattr(config, reduction), reduction, None)
    if labels and len(labels) != classes:
        raise UsageError(f"--{reduction} {classes} and {len(labels)} --named_labels: give as many names as classes")
    if o.constant is not None and config.reduction.name != "scalar":
        raise UsageError(
            f"-C has no effect with --{config.reduction.name}, whose sub-problems each have a constant of their own; "
            "leave it out, or use --initial_weight"
        )
    if "predict_only_model" in config.given:
        text = config.readable
        if config.driver.final_regressor is None and text.readable_model is None and text.invert_hash is None:
            raise UsageError("--predict_only_model has no effect: no model is saved; give -f FILE")


def after_pass(rule: Rule, options: Options) -> Rule:
    """The rule for the next pass."""
    return rule._replace(rate=rule.rate * np.float32(options.decay_learning_rate))


def first_range(rule: Rule) -> np.ndarray:
    """The label range before any label was seen: float32[2]. With one end asked for, the other is 0, as in VW."""
    pinned = not (np.isnan(rule.lowest) and np.isnan(rule.highest))
    if rule.loss == loss.LOGISTIC and not pinned:
        return np.array([-LOGISTIC_RANGE, LOGISTIC_RANGE], np.float32)
    found = np.zeros(2, np.float32) if rule.widen or pinned else np.array([-1, 1], np.float32)
    return _pin(rule, found)


def _pin(rule: Rule, limits: np.ndarray) -> np.ndarray:
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
    )


def _column(flat, slots, planes, k):
    return flat[k * slots : (k + 1) * slots] if planes else flat[k::FIELDS]


COLUMNS = ("w", "g", "n")  # what is kept of a slot


def table_arrays(name: str, table: Table, weights_only: bool = False) -> dict[str, np.ndarray]:
    """The learned content of a table as named arrays; slots never touched are left out where that is smaller.

    Parameters
    ----------
    weights_only : leave out what learning needs to go on; --l1 and --l2 are then applied to the weights.
    """
    planes = columns(table)
    if weights_only:
        planes = {"w": settled_weights(table)}
    found = model_file.sparse(name, planes)
    found[name + ".range"] = table.range
    if not weights_only:
        found[name + ".sums"] = table.sums
        if len(table.shrunk):
            found[name + ".shrunk"] = table.shrunk
    return found


def columns(table: Table) -> dict[str, np.ndarray]:
    """The w, G and N of all slots: float32[slots] each, views of the table."""
    slots = int(table.mask) + 1
    return {c: _column(table.flat, slots, table.stride == 1, k) for k, c in enumerate(COLUMNS)}


def restore_table(
    name: str, table: Table, arrays: dict[str, np.ndarray], resume: str = "all", rule: Rule | None = None
) -> None:
    """Fill a new table with what `table_arrays` gave; `resume` as in Options."""
    planes = columns(table)
    if name + ".g" not in arrays:  # --predict_only_model
        planes = {"w": planes["w"]}
    if rule is not None and rule.initial_weight != 0:
        planes["w"][:] = 0
    model_file.dense(name, arrays, planes)
    if "g" in planes:
        model_file.fill(name + ".sums", arrays, table.sums)
        if len(table.shrunk):
            model_file.fill(name + ".shrunk", arrays, table.shrunk)
    if resume == "first":
        table.sums[1:] = 0
    model_file.fill(name + ".range", arrays, table.range)
    if rule is not None:
        _pin(rule, table.range)


def settle_weights(table: Table) -> None:
    """Apply the state of --l1 and --l2 to the weights themselves."""
    if _is_shrunk(table):
        apply_shrunk(table)


def settled_weights(table: Table) -> np.ndarray:
    """The weights as they count, without a change to the table: float32[slots]."""
    w = columns(table)["w"]
    if not _is_shrunk(table):
        return w
    gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
    return np.sign(w) * np.maximum(np.abs(w) - gravity, ZERO) * contraction


def _is_shrunk(table: Table) -> bool:
    return len(table.shrunk) > 0 and (table.shrunk[0] != 0 or table.shrunk[1] != 1)


# -- kernels. An example arrives as `place` (uint64, hash * width of each feature) and `x`, both of `count`.


@jit
def clip(p, limits):
    """p within the label range; NaN becomes 0."""
    if math.isnan(p):
        return ZERO
    return max(limits[0], min(limits[1], p))


@jit
def widen(limits, y):
    """Let the label range take in y."""
    limits[0] = min(limits[0], y)
    limits[1] = max(limits[1], y)


@jit
def score(table, place, x, count, sub, initial):
    """The prediction of one sub-problem, neither clipped nor linked; float32, summed in feature order."""
    if len(table.shrunk) > 0:
        return _shrunk_score(table, place, x, count, sub, initial)
    s = initial
    for f in range(count):
        s += table.flat[((place[f] + sub) & table.mask) * table.stride] * x[f]
    return s


@jit
def truncated(w, gravity):
    """w, nearer to 0 by gravity, or 0."""
    if gravity < abs(w):
        return w - gravity if w > ZERO else w + gravity
    return ZERO


@jit
def _shrunk_score(table, place, x, count, sub, initial):
    """`score` under --l1 and --l2."""
    gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
    s = initial
    for f in range(count):
        s += truncated(table.flat[((place[f] + sub) & table.mask) * table.stride], gravity) * x[f]
    return s * contraction


@jit
def apply_shrunk(table):
    """Turn the weights into what they count for; they then count for themselves."""
    gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
    for i in range(np.int64(table.mask) + 1):
        at = i * np.int64(table.stride)
        table.flat[at] = truncated(table.flat[at], gravity) * contraction
    table.shrunk[0] = 0.0
    table.shrunk[1] = 1.0


@jit
def _regularise(table, rule, p, y, u):
    """Take note of one step u: move gravity and contraction, and return the step in terms of the shrunk weights."""
    if abs(u) > np.float32(1e-8):
        d = np.float64(loss.slope(rule.loss, rule.tau, p, y, table.range[0], table.range[1]))
        if abs(d) > 1e-8:
            e = -np.float64(u) / d
            table.shrunk[1] *= 1.0 - rule.l2 * e
            u /= np.float32(table.shrunk[1])
            table.shrunk[0] += e * rule.l1
        else:
            u /= np.float32(table.shrunk[1])
    return u


@jit
def _rate_of(rule, g, n):
    """The rate of a weight with sums g and largest value n."""
    r = ONE
    if rule.root:
        if rule.adaptive:
            r = ONE / np.float32(math.sqrt(g))
        if rule.normalized:
            inverse = ONE / n
            r = r * inverse if rule.adaptive else r * (inverse * inverse)
        return r
    if rule.adaptive:
        r = np.float32(math.pow(g, -rule.power_t))
    if rule.normalized:
        r *= np.float32(math.pow(n * n, rule.power_t - ONE))
    return r


@jit
def _rescale_of(rule, old, new):
    """What a weight is multiplied by when the largest value of its feature grows from old to new."""
    if rule.root:
        r = old / new
        return r if rule.adaptive else r * r
    r = new / old
    return np.float32(math.pow(r * r, rule.power_t - ONE))


@jit
def mean_scale(rule, sum_norm, total):
    """The factor that makes up for features of many or few non-zeros, from S and T of a sub-problem."""
    if rule.root:
        mean = np.float32(total / sum_norm)
        return np.float32(math.sqrt(mean)) if rule.adaptive else mean
    return np.float32(math.pow(np.float32(sum_norm / total), rule.power_t - ONE))


@jit
def step_scale(rule, weight, clock):
    """Learning rate times importance, decayed by the clock where the rule is not adaptive."""
    s = rule.rate * weight
    if not rule.adaptive and rule.power_t != ZERO:
        s *= np.float32(math.pow(np.float32(clock + rule.initial_t), -rule.power_t))
    return s


@jit
def learn(table, rule, place, x, count, sub, p, y, weight, clock):
    """Update one sub-problem towards label y, p being its clipped prediction.

    Two passes over the features, in order: the first moves G and N, rescales and finds the rates, the second
    moves the weights. A slot met twice is treated twice.

    With --l1 and --l2 every step of size e = u / (dL/dp) in any sub-problem of the table contracts all its weights by
    1 - l2 e and draws them l1 e nearer to 0. That is kept as two numbers and applied when weights are read.
    """
    flat, field = table.flat, table.field
    n_, r_ = np.uint64(2) * field, np.uint64(3) * field
    low, high = table.range[0], table.range[1]
    if not loss.value(rule.loss, rule.tau, p, y, low, high) > ZERO:
        return
    g2 = weight * loss.squared_slope(rule.loss, rule.tau, p, y)
    q = ONE
    scale = ONE
    if g2 != ZERO:
        q = ZERO
        norm = ZERO
        for f in range(count):
            at = ((place[f] + sub) & table.mask) * table.stride
            xv = x[f]
            x2 = xv * xv
            if x2 < TINY_X2:
                xv = TINY_X if xv > ZERO else -TINY_X
                x2 = TINY_X2
            if rule.adaptive:
                flat[at + field] += g2 * x2
            if rule.normalized:
                size = abs(xv)
                if size > flat[at + n_]:
                    if flat[at + n_] > ZERO:
                        flat[at] *= _rescale_of(rule, flat[at + n_], size)
                    flat[at + n_] = size
                norm += ONE if abs(xv) > HUGE_X else x2 / (flat[at + n_] * flat[at + n_])
            flat[at + r_] = _rate_of(rule, flat[at + field], flat[at + n_])
            q += x2 * flat[at + r_]
        if rule.normalized:
            table.sums[sub, 0] += weight * norm
            table.sums[sub, 1] += weight
            scale = mean_scale(rule, table.sums[sub, 0], table.sums[sub, 1])
            q *= scale
    s = step_scale(rule, weight, clock)
    if rule.invariant:
        u = loss.step(rule.loss, rule.tau, p, y, s, q)
    else:
        u = loss.plain_step(rule.loss, rule.tau, p, y, s)
    if rule.regular:
        u = _regularise(table, rule, p, y, u)
    if u == ZERO or not math.isfinite(u):
        return
    u *= scale
    for f in range(count):
        at = ((place[f] + sub) & table.mask) * table.stride
        flat[at] += u * (x[f] * flat[at + r_])
    if rule.regular and (table.shrunk[1] < 1e-9 or table.shrunk[0] > 1e3):
        apply_shrunk(table)


@jit
def has_huge(x, count):
    """Whether a value is too large for the kernels that handle many sub-problems at a time."""
    for f in range(count):
        if abs(x[f]) > HUGE_X:
            return True
    return False


@jit
def score_lanes(table, place, x, count, subs, lanes, out):
    """`out[j]` = score of sub-problem `subs[j]`, for all lanes in one pass over the features."""
    flat, mask, stride = table.flat, table.mask, table.stride
    if len(table.shrunk) > 0:
        for j in range(lanes):
            out[j] = _shrunk_score(table, place, x, count, subs[j], ZERO)
        return
    for j in range(lanes):
        out[j] = ZERO
    for f in range(count):
        base = place[f]
        xv = x[f]
        for j in range(lanes):
            out[j] += flat[((base + subs[j]) & mask) * stride] * xv


class Lanes(NamedTuple):
    """Scratch for `learn_lanes`: one row of each per lane."""

    sub: np.ndarray  # uint64
    at: np.ndarray  # int64
    p: np.ndarray  # float32
    y: np.ndarray
    d: np.ndarray
    g2: np.ndarray
    g: np.ndarray
    n: np.ndarray
    q: np.ndarray
    norm: np.ndarray
    u: np.ndarray


def new_lanes(most: int) -> Lanes:
    """Scratch for up to `most` lanes."""
    return Lanes(np.empty(most, np.uint64), np.empty(most, np.int64), *(np.empty(most, np.float32) for _ in range(9)))


@jit
def learn_lanes(table, rule, place, x, count, lanes, scratch, weight, clock):
    """`learn` for lanes 0..lanes-1 of `scratch` (sub, p, y given) that share an example: the same numbers.

    The sub-problems are different ones, labels -1 or 1. One pass over the features serves all lanes, and the
    arithmetic between loading and storing runs over neighbouring lanes, so that it vectorises. Where two
    lanes meet in one slot by collision, each sees what the other stored for the feature before.
    """
    fast = rule.adaptive and rule.normalized and rule.invariant and rule.root and rule.loss == loss.LOGISTIC
    if not fast or rule.regular or has_huge(x, count):
        for j in range(lanes):
            learn(table, rule, place, x, count, scratch.sub[j], scratch.p[j], scratch.y[j], weight, clock)
        return
    flat, mask = table.flat, table.mask
    sub, at, p, y = scratch.sub, scratch.at, scratch.p, scratch.y
    d, g2, g, n, q, norm, u = scratch.d, scratch.g2, scratch.g, scratch.n, scratch.q, scratch.norm, scratch.u
    loss.logistic_slopes(p, y, d, g2, lanes)
    kept = 0
    for j in range(lanes):  # lanes without loss drop out
        if g2[j] > ZERO:
            sub[kept], p[kept], y[kept], d[kept] = sub[j], p[j], y[j], d[j]
            g2[kept] = weight * g2[j]
            q[kept] = ZERO
            norm[kept] = ZERO
            kept += 1
    for f in range(count):
        base = place[f]
        xv = x[f]
        x2 = xv * xv
        if x2 < TINY_X2:
            xv = TINY_X if xv > ZERO else -TINY_X
            x2 = TINY_X2
        size = abs(xv)
        grown = False
        for j in range(kept):
            i = np.int64(((base + sub[j]) & mask) << np.uint64(2))
            at[j] = i
            g[j] = flat[i + 1]
            n[j] = flat[i + 2]
        for j in range(kept):
            grown |= n[j] < size
        if grown:
            for j in range(kept):
                if n[j] < size:
                    if n[j] > ZERO:
                        flat[at[j]] *= n[j] / size
                    n[j] = size
                    flat[at[j] + 2] = size
        for j in range(kept):
            g[j] += g2[j] * x2
            u[j] = (ONE / np.float32(math.sqrt(g[j]))) * (ONE / n[j])
            q[j] += x2 * u[j]
            norm[j] += x2 / (n[j] * n[j])
        for j in range(kept):
            flat[at[j] + 1] = g[j]
            flat[at[j] + 3] = u[j]
    for j in range(kept):
        k = np.int64(sub[j])
        table.sums[k, 0] += weight * norm[j]
        table.sums[k, 1] += weight
        n[j] = np.float32(math.sqrt(np.float32(table.sums[k, 1] / table.sums[k, 0])))
        q[j] *= n[j]
    loss.logistic_steps(p, y, d, step_scale(rule, weight, clock), q, u, kept)
    for j in range(kept):
        u[j] = u[j] * n[j] if math.isfinite(u[j]) else ZERO
    for f in range(count):
        base = place[f]
        xv = x[f]
        for j in range(kept):
            i = np.int64(((base + sub[j]) & mask) << np.uint64(2))
            flat[i] += u[j] * (xv * flat[i + 3])
