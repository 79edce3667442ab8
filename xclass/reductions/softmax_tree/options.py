"""Declare, resolve and check the options of the softmax tree."""

from __future__ import annotations

import math

from ...binary import feature_scaling, gd
from ...data.batch import HIGHEST_LABEL
from ...options.declare import Facts, OptionGroup, SearchRange, between, conflict, no_effect, one_of, option, refused
from ..core.spec import LearnerSpec
from . import leaf_sgd

BITS = 28  # bits of feature hashes; many cost nothing, because features are renumbered
MOST_DEPTH = 20
LEAST_LIMIT = 10  # levels that --depth can set for any number of examples
SUPPORTED_OPTIONS = ("bits", "l1", "l2", "predict_only_model")  # options of the binary learner that are supported


def _tried(facts: Facts) -> SearchRange | None:
    """Return the number of classes if the time that the tree takes is acceptable."""
    return one_of(facts.classes, weight=2.0) if float(facts.examples) * facts.classes <= MOST_WORK else None


class SoftmaxTreeOptions(OptionGroup):
    softmax_tree: int = option(
        "number of classes; labels are 1..K", metavar="K", minimum=1, maximum=HIGHEST_LABEL, stored=True, search=_tried
    )
    depth: int = option(
        "number of levels of routers; 0 is a single softmax",
        minimum=0,
        maximum=MOST_DEPTH,
        default_text="from the numbers of classes and examples",
        metavar="D",
        stored=True,
        search=between(0, 5, "int", weight=0.5),
    )
    leaf_classes: int = option(
        "largest number of classes in a leaf [k]", minimum=1, default_text="all", metavar="K", stored=True
    )
    tao_iterations: int = option("largest number of times that every node is optimised", default=4, minimum=1)
    tao_tolerance: float = option(
        "end the training after an iteration that lowers the objective by at most this share of it; 0 carries out all "
        "iterations",
        default=1e-3,
        minimum=0,
        metavar="SHARE",
    )
    tree_init: str = option(
        "how the tree is initialised: `clusters` splits the classes recursively into halves of similar classes, "
        "`prototypes` clusters the class means by k-means and pairs the clusters (the paper's), `whole` does this with "
        "all examples in place of the means, `random` uses random routers",
        choices=("clusters", "prototypes", "whole", "random"),
        default="clusters",
        stored=True,
    )
    leaf_solver: str = option(
        "how the softmax of a leaf is fitted: `steps` by stochastic gradient steps, fast for any number of classes; "
        "`exact` by coordinate descent, which ends after a sweep that lowers the objective by at most 1 % in the first "
        "iteration, .1 % in later ones",
        choices=("steps", "exact"),
        default_text="exact if an example has a large share of all features, else steps",
    )
    leaf_passes: int = option(
        "number of passes over a leaf's examples, with --leaf_solver steps",
        minimum=1,
        default_text="8, down to 4 for large products of examples and classes; half as many after the first iteration",
        search=one_of(4, 8, 16, first=(16,)),
    )
    zero_loss: str = option(
        "loss of a router for an example: `01` is 1 if the leaf is wrong; `beta` is the leaf's cross-entropy, and "
        "--beta if the leaf lacks the class; `remove` leaves such examples out",
        choices=("01", "beta", "remove"),
        default="01",
        stored=True,
    )
    beta: float = option(
        "loss of an example whose leaf lacks its class, with --zero_loss beta",
        default=100.0,
        minimum=0,
        metavar="BETA",
        stored=True,
    )
    smooth: float = option(
        "probability given to every class that a leaf lacks, before normalisation [eps]; with a number, 0 included, "
        "all examples are learned",
        minimum=0,
        maximum=1,
        default_text="chosen on every 50th example, which is held out for it",
        metavar="EPS",
        stored=True,
    )
    normalize_features: str = feature_scaling.normalize_option("its mean size", "is not available with --softmax_tree")

    RULES = (
        *(
            no_effect(
                names,
                "--softmax_tree keeps the examples and learns from all of them at the end of the data; see "
                "--tao_iterations",
                **conditions,
            )
            for names, conditions in (
                ("initial_pass_length save_per_pass checkpoint holdout_after", {}),
                ("passes", {"passes": lambda passes: passes > 1, "testonly": None}),
            )
        ),
        conflict(
            "--normalize_features idf is not available with --softmax_tree; give auto, columns, unit or none",
            normalize_features="idf",
        ),
        no_effect(
            gd.other_options(SUPPORTED_OPTIONS),
            "--softmax_tree is not an online learner, and of the options of the binary learner only --l1 and --l2 "
            "apply to it; leave it out",
        ),
        refused(
            "l2",
            "is the penalty of a single softmax, as leaves must be sparse; add --depth 0, or give --l1 in place of "
            "{flag}",
            depth=lambda depth: depth != 0,
        ),
        refused("l2", "needs --leaf_solver steps: leave --leaf_solver exact out", leaf_solver="exact"),
        refused("vw_exact", "cannot be combined with --softmax_tree, which VW does not have: leave one of them out"),
        no_effect("beta", "--zero_loss {zero_loss} does not use it; give --zero_loss beta", zero_loss={"01", "remove"}),
        no_effect("leaf_passes", "--leaf_solver exact decides when to end; leave it out", leaf_solver="exact"),
        no_effect(
            "tao_iterations tao_tolerance tree_init zero_loss beta depth leaf_classes leaf_solver leaf_passes",
            "-t learns nothing; leave it out",
            testonly=True,
        ),
        no_effect(
            "tree_init depth", "learning begins with the tree of the model given by -i; leave it out", loaded=True
        ),
    )


EXACT_L1, STEPS_L1, MOST_L1 = 0.15, 0.05, 0.15
MANY_EXAMPLES = 150_000  # number of examples above which the default of --l1 grows
DENSE = 0.05  # mean share of the features that an example has, above which leaves are fitted by `exact`
MOST_PASSES, FEWEST_PASSES = 8, 4
MANY = 2e9  # examples times classes up to which leaves get MOST_PASSES passes
MOST_WORK = 4e9  # examples times classes up to which `xclass tune` proposes the tree
WORK = 1e10  # examples times classes above which routers divide them among several leaves


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    resolved = {"bits": spec.binary.bits or BITS}
    return {**gd.resolve_defaults(spec.binary, spec.options.softmax_tree, True), **resolved}


def default_depth(examples: int, classes: int) -> int:
    work = float(examples) * classes  # of one pass over a single softmax
    return max(0, min(10, math.ceil(math.log2(max(work, 1.0) / WORK))))


def useful_depth(depth: int, examples: int) -> int:
    """Return `depth`, reduced if the tree would have more leaves than examples."""
    return min(depth, max(LEAST_LIMIT, max(0, examples - 1).bit_length()))


def default_solver(examples: int, features: int, entries: int, l2: float) -> str:
    """Return the default of --leaf_solver; `entries` is the number of features of all examples together."""
    return "exact" if entries > DENSE * examples * features and not l2 else "steps"


def default_passes(examples: int, classes: int) -> int:
    passes = MOST_PASSES * math.sqrt(MANY / max(float(examples) * classes, 1.0))
    return min(MOST_PASSES, max(FEWEST_PASSES, round(passes)))


def default_l1(solver: str, examples: int, classes: int) -> float:
    """Return the default of --l1, for `steps` larger if classes have few examples each or if there are many examples.

    Slopes that are pure noise grow with the square root of the number of examples.
    """
    if solver == "exact":
        return EXACT_L1
    rare, many = leaf_sgd.FEW_ROWS * classes / max(examples, 1), examples / MANY_EXAMPLES
    return min(MOST_L1, STEPS_L1 * math.sqrt(max(1.0, rare, many)))
