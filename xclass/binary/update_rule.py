"""Declare the options of the binary learner and turn them into an update rule.

By default --adaptive, --normalized and --invariant are all on. As in VW, giving any of these three or --sgd switches
off those of the three that are not given, and can change the defaults of --learning_rate and --initial_t.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ..errors import UsageError
from ..options.declare import OptionGroup, between, conflict, no_effect, one_of, option, options_of, refused, warned
from ..system import memory
from . import loss

MAX_TABLE_BITS = 31  # largest -b
FIELDS = 4  # number of float32 in a slot
SLOT_BYTES = 4 * FIELDS
MIN_BITS, MAX_BITS = 18, 26  # range of log2 of the table's size if -b is not given
CLASS_SLOTS_LOG2 = 10  # log2 of the slots per class if -b is not given
FEW_CLASS_SLOTS = 64  # slots per class below which collisions make most of the error
MAX_OPTION = 1e30  # limit of all numeric options; float32 ends at 3.4e38
SAFE_RATE = 1024  # largest learning rate for which the bounds of `finite.is_safe` hold
LOGISTIC_BY_DEFAULT = {"recall_tree", "ect"}  # reductions, of those that take --label_range


class BinaryOptions(OptionGroup):
    bits: int = option(
        "size of the weight table: 2**B weights",
        flags=("-b", "--bit_precision"),
        metavar="B",
        minimum=1,
        maximum=MAX_TABLE_BITS,
        default_text="from K and the available memory",
        stored=True,
    )
    learning_rate: float = option(
        "learning rate",
        flags=("-l", "--learning_rate"),
        maximum=MAX_OPTION,
        metavar="RATE",
        minimum=0,
        default_text="0.5, or 10 if an update rule is given, see --sgd; 0.25 for squared loss with --multilabel_oaa; 1 "
        "with --log_multi, unless --layout vw is given; 2 with --hsm and --cpt --sgd; otherwise with --cpt 1 for "
        "logistic loss, 0.5 for squared loss, in several passes 0.35, or 0.25 if the tree does not grow; 5 with "
        "--sparse_experts",
        stored=True,
        adjustable=True,
        search=between(0.05, 5.0, "log", first=(0.25, 1.0), weight=1.5),
    )
    loss_function: str = option(
        "loss of the binary learner; `classic` is squared loss without the importance-aware step",
        choices=("squared", "logistic", "hinge", "quantile", "classic"),
        default_text="logistic for --recall_tree, hinge for --log_multi, otherwise squared",
        stored=True,
        # those that give probabilities, if the reduction has a choice
        search=lambda facts: (
            one_of("squared", "logistic", first=("logistic",)) if facts.reduction in ("oaa", "cpt") else None
        ),
    )
    quantile_tau: float = option(
        "quantile for --loss_function quantile", default=0.5, minimum=0, maximum=1, metavar="TAU", stored=True
    )
    power_t: float = option(
        "exponent p of the decay of the learning rate: G**-p, or t**-p with --sgd",
        minimum=-MAX_OPTION,
        maximum=MAX_OPTION,
        default=0.5,
        metavar="P",
        stored=True,
        adjustable=True,
    )
    initial_t: float = option(
        "initial value of the clock t and of the sums G",
        maximum=MAX_OPTION,
        metavar="T",
        minimum=0,
        default_text="0; 1 without --adaptive and --normalized",
        stored=True,
    )
    sgd: bool = option("plain stochastic gradient descent, without the three update rules below", stored=True)
    adaptive: bool = option(
        "use a learning rate per weight, from its past gradients (AdaGrad). Giving one of the three rules switches "
        "off those not given",
        stored=True,
    )
    normalized: bool = option("use learning rates that do not depend on the scale of a feature", stored=True)
    invariant: bool = option(
        "use importance-aware steps, which do not overshoot however large the importance weight is", stored=True
    )
    l1: float | None = option(
        "strength of L1 regularisation: each update of a class or a node moves all its weights towards 0 by this times "
        "the step; with --softmax_tree its coefficient in the objective [alpha]",
        maximum=MAX_OPTION,
        default_text="0; with --softmax_tree 0.05 to 0.15, by its solver and the data",
        minimum=0,
        metavar="LAMBDA",
        stored=True,
        adjustable=True,
        # for the leaves of the softmax tree, which must be sparse
        search=lambda facts: (
            between(0.01, 1.0, "log", first=(0.03, 0.1)) if facts.reduction == "softmax_tree" else None
        ),
    )
    l2: float = option(
        "strength of L2 regularisation: each update of a class or a node shrinks all its weights by this fraction "
        "times the step, and with --vw_exact those of all classes; with --softmax_tree --depth 0 its coefficient in "
        "the objective, of half the sum of the squared weights",
        maximum=MAX_OPTION,
        default=0.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
        adjustable=True,
    )
    initial_weight: float = option(
        "initial value of all weights", minimum=-MAX_OPTION, maximum=MAX_OPTION, default=0.0, metavar="W", stored=True
    )
    constant: float | None = option(
        "initial value of the weight of the constant feature",
        flags=("-C", "--constant"),
        minimum=-MAX_OPTION,
        maximum=MAX_OPTION,
        metavar="W",
        default_text="--initial_weight",
        stored=True,
    )
    decay_learning_rate: float = option(
        "multiply the learning rate by this factor at the end of every pass",
        maximum=MAX_OPTION,
        default=1.0,
        default_text="1; 0.6 for several passes of --multilabel_oaa with squared loss",
        minimum=0,
        metavar="FACTOR",
        stored=True,
        adjustable=True,
    )
    min_prediction: float | None = option(
        "smallest prediction of the binary learner; its range then no longer follows the labels",
        minimum=-MAX_OPTION,
        maximum=MAX_OPTION,
        metavar="P",
        default_text="see --label_range",
    )
    max_prediction: float | None = option(
        "largest prediction of the binary learner; its range then no longer follows the labels",
        minimum=-MAX_OPTION,
        maximum=MAX_OPTION,
        metavar="P",
        default_text="see --label_range",
    )
    predict_only_model: bool = option(
        "save only what predictions need, which makes the model smaller; it cannot learn any more"
    )
    link: str = option(
        "function applied to a prediction before it is written; `glf1`, 2 / (1 + exp(-s)) - 1, is for the routers of "
        "--recall_tree, where it matters to --randomized_routing only",
        choices=("identity", "logistic", "glf1"),
        default="identity",
        stored=True,
    )
    layout: str = option(
        "placement of weights: `odd` gives every feature its own row, `vw` rounds the number of subproblems up to a "
        "power of two as VW does; `tagged`, the only one of --cpt, --multiclass, --multilabel and --plt, keeps "
        "weights in words of four bytes that no two regressors share",
        aliases=("--weight_layout",),
        choices=("odd", "vw", "tagged"),
        default="odd",
        stored=True,
    )
    resume: str = option(
        "which normalisation sums of a loaded model to use: those of `all` subproblems, or only those of the `first`,"
        " as VW does",
        aliases=("--restore_sums",),
        choices=("all", "first"),
        default="all",
    )
    label_range: str = option(
        "range to which predictions are clipped before an update: `seen` grows from [0,0] with the labels seen (VW), "
        "`known` is [-1,1] from the start for a reduction's labels",
        choices=("known", "seen"),
        default_text="known; seen for real-valued labels",
        stored=True,
    )

    RULES = (
        no_effect("resume", "it needs -i FILE, which loads a model", initial_regressor=None),
        no_effect(
            "decay_learning_rate",
            "it changes the learning rate between passes, and there is only one pass; give --passes",
            passes=1,
            initial_pass_length=None,
        ),
        no_effect("decay_learning_rate", "with -t nothing is learned", testonly=True),
        no_effect("quantile_tau", "it needs --loss_function quantile", loss_function=lambda loss: loss != "quantile"),
        no_effect(
            "predict_only_model",
            "no model is saved; give -f FILE",
            final_regressor=None,
            readable_model=None,
            invert_hash=None,
        ),
        *(
            warned(
                "label_range",
                "with --loss_function logistic, predictions are limited to +-50 whatever the labels are",
                loss_function=loss_function,
                reduction=names,
                min_prediction=None,
                max_prediction=None,
            )
            for loss_function, names in (("logistic", True), (None, LOGISTIC_BY_DEFAULT))
        ),
        no_effect("constant", "--noconstant leaves the constant out", noconstant=True),
        refused(
            "l1 l2",
            "is the penalty of each regressor, but regressors of --ect share weights; give --layout vw, too",
            reduction="ect",
            layout="odd",
        ),
        refused(
            "l1 l2",
            "is the penalty of each regressor, but regressors of --recall_tree share weights; leave it out, or give "
            "--vw_exact for VW's penalty on all weights",
            reduction="recall_tree",
            vw_exact=None,
        ),
        conflict(
            "--layout tagged belongs to --cpt, --multiclass, --multilabel and --plt; give odd or vw",
            layout="tagged",
            reduction=lambda name: name not in ("cpt", "multiclass", "hsm", "multilabel", "plt"),
        ),
        conflict(
            "--link glf1 is for --recall_tree; give identity or logistic",
            link="glf1",
            reduction=lambda name: name != "recall_tree",
        ),
        refused(
            "constant",
            "has no effect with --{reduction}, whose subproblems each have a constant of their own; leave it out, or "
            "use --initial_weight",
            reduction=lambda name: name != "scalar",
        ),
    )

    def rules(self) -> tuple[bool, bool, bool]:
        """Return whether the update rules adaptive, normalized and invariant are on."""
        given = self.adaptive, self.normalized, self.invariant
        return given if self.sgd or any(given) else (True, True, True)


def resolve_defaults(
    options: BinaryOptions,
    classes: int,
    reduction: bool,
    slot_bytes: int = SLOT_BYTES,
    class_slots_log2: int = CLASS_SLOTS_LOG2,
    most_bits: int = MAX_BITS,
) -> dict[str, object]:
    """Return values for options that were not given: loss, label range, rate, clock and table size.

    The table gets 2**class_slots_log2 slots per class, between 2**MIN_BITS and 2**most_bits in all, but at most a
    quarter of the free memory. `reduction` says whether a reduction uses the learner, with labels -1 and 1.
    """
    defaults: dict[str, object] = {}
    if options.loss_function is None:
        defaults["loss_function"] = "logistic" if reduction else "squared"
    if options.label_range is None:
        defaults["label_range"] = "known" if reduction else "seen"
    adaptive, normalized, _ = options.rules()
    if options.learning_rate is None:
        defaults["learning_rate"] = 0.5 if adaptive and normalized else 10.0
    if options.initial_t is None:
        defaults["initial_t"] = 0.0 if adaptive or normalized else 1.0
    if options.bits is None:
        bits = min(most_bits, max(MIN_BITS, max(0, classes - 1).bit_length() + class_slots_log2))
        free = memory.available()
        while free is not None and bits > 10 and (slot_bytes << bits) > free // 4:
            bits -= 1
        defaults["bits"] = bits
    return defaults


class UpdateRule(NamedTuple):
    """Hold the update rule as scalars, for the kernels that learn."""

    loss: int  # code in `loss.CODES`
    tau: np.float32  # --quantile_tau
    rate: np.float32  # learning rate
    power_t: np.float32  # exponent of the decay of steps
    initial_t: float  # initial value of the clock and of G
    adaptive: bool  # rates fall with G, as in AdaGrad
    normalized: bool  # rates do not depend on the scale of a feature
    invariant: bool  # steps are importance-aware, see `loss.step`
    uses_sqrt: bool  # power_t is 1/2: square roots instead of powers
    widen: bool  # the label range follows the labels seen
    regularized: bool  # l1 or l2 is above 0
    l1: float
    l2: float
    initial_weight: np.float32
    lowest: np.float32  # --min_prediction, NaN if it was not given
    highest: np.float32  # --max_prediction, NaN if it was not given
    checked: bool  # steps that lead to numbers that are not finite are skipped; False with --vw_exact
    bounds_hold: bool  # the bounds of `finite.is_safe` hold for this rule
    no_overshoot: bool  # steps end where many small ones would


def make_rule(options: BinaryOptions, reduction: bool, exact: bool = False) -> UpdateRule:
    """Return the update rule for resolved options.

    `reduction` is True if a reduction passes labels -1 and 1, False for real-valued labels. With `exact`, steps that
    lead to numbers that are not finite are taken, as VW does.
    """
    adaptive, normalized, invariant = options.rules()
    rate = options.learning_rate
    initial_t = options.initial_t
    if not adaptive and not normalized:
        with np.errstate(over="ignore", divide="ignore"):
            rate = float(np.float32(rate * np.power(np.float64(initial_t), options.power_t)))
        if not math.isfinite(rate):
            raise UsageError(
                f"--initial_t {initial_t:g} and --power_t {options.power_t:g} make the learning rate {rate:g}; give a "
                "smaller --power_t, or another --initial_t"
            )
    kind = loss.CODES[options.loss_function]
    uses_sqrt = options.power_t == 0.5
    l1 = options.l1 or 0.0
    regularized = l1 > 0 or options.l2 > 0
    known = options.label_range == "known" and reduction
    lowest, highest = (
        np.float32(np.nan if end is None else end) for end in (options.min_prediction, options.max_prediction)
    )
    pinned = not (np.isnan(lowest) and np.isnan(highest))
    if options.min_prediction is not None and options.max_prediction is not None and lowest > highest:
        raise UsageError(
            f"--min_prediction {lowest:g} is above --max_prediction {highest:g}, so no prediction is allowed; "
            "exchange them"
        )
    return UpdateRule(
        loss=kind,
        tau=np.float32(options.quantile_tau),
        rate=np.float32(rate),
        power_t=np.float32(options.power_t),
        initial_t=float(initial_t),
        adaptive=adaptive,
        normalized=normalized,
        invariant=invariant,
        uses_sqrt=uses_sqrt,
        widen=not (known or pinned),
        regularized=regularized,
        l1=float(np.float32(l1)),
        l2=float(np.float32(options.l2)),
        initial_weight=np.float32(options.initial_weight),
        lowest=lowest,
        highest=highest,
        checked=not exact,
        bounds_hold=rate <= SAFE_RATE and not regularized and (uses_sqrt or not (adaptive or normalized)),
        no_overshoot=invariant and kind in (loss.LOGISTIC, loss.SQUARED),
    )


def other_options(supported: Collection[str]) -> list[str]:
    """Return the names of the options of the binary learner that are not listed as supported."""
    return [name for name in options_of(BinaryOptions) if name not in supported]


def after_pass(rule: UpdateRule, options: BinaryOptions) -> UpdateRule:
    with np.errstate(over="ignore"):
        rate = rule.rate * np.float32(options.decay_learning_rate)
    return rule._replace(rate=rate, bounds_hold=rule.bounds_hold and bool(rate <= SAFE_RATE))


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, extra_bytes: int = 0, cure: str = "fewer classes") -> None:
    """Check that a table of 2**bits slots fits into free memory, beside `extra_bytes` that the reduction needs.

    `cure` is what to give where `extra_bytes` alone are too many.
    """
    free = memory.available()
    if free is None or (slot_bytes << bits) + extra_bytes <= free:
        return
    fits = max((b for b in range(1, 32) if (slot_bytes << b) + extra_bytes <= free), default=0)
    advice = f"the largest that fits is -b {fits}" if fits else f"no table fits; give {cure}"
    raise UsageError(
        f"-b {bits} needs {(slot_bytes << bits) / 2**20:,.0f} MB for the weights"
        + (f" and {extra_bytes / 2**20:,.0f} MB for the classes" if extra_bytes > 2**20 else "")
        + f", but only {free / 2**20:,.0f} MB of memory are free; {advice}"
    )


def crowding_warning(bits: int, classes: int, width: int, layout: str, scorer: str = "class") -> list[str]:
    """Return a warning for the banner if a table has too few slots for each of its `classes`, otherwise no line.

    `scorer` says what these are, if not classes.
    """
    class_slots = (1 << bits) // (width if layout == "vw" else classes)
    if class_slots >= FEW_CLASS_SLOTS:
        return []
    enough = bits
    while (1 << enough) // (width if layout == "vw" else classes) < FEW_CLASS_SLOTS and enough < MAX_TABLE_BITS:
        enough += 1
    return [
        f"warning: -b {bits} leaves {class_slots} slots for the features of each {scorer}, so many features share "
        f"a slot; give at least -b {enough}"
    ]
