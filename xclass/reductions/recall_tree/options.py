"""Declare the options of the recall tree, compute their defaults and check their combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...binary import gd
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ...options.declare import OptionGroup, option, options_of
from ...options.relations import conflict, no_effect, refused, warned
from ...options.search import Facts, Search, between, flag
from ..core import probabilities
from ..core.spec import LearnerSpec
from . import routing
from .scoring import SHARDS

MOST_CANDIDATES = 1 << 20
MOST_BITS = 24  # log2 of the largest table if -b is not given; larger ones do not help on the whole (docs/defaults.md)


def _candidates(facts: Facts) -> Search:
    """Return the numbers of candidates to try, those of VW's demo."""
    return between(min(20, facts.classes), min(100, facts.classes), "int", first=(min(100, facts.classes),))


def _depths(facts: Facts) -> Search:
    """Return the depths to try: from 5 levels less than a balanced tree has, to 2 levels more."""
    levels = math.ceil(math.log2(max(2, facts.classes)))
    return between(max(1, levels - 5), levels + 2, "int", first=(max(1, levels - 2),))


@dataclass(frozen=True)
class Options(OptionGroup):
    recall_tree: int = option("number of classes; labels are 1..K", metavar="K", minimum=1, stored=True)
    max_candidates: int = option(
        "number of classes scored at a node [F]",
        metavar="F",
        minimum=1,
        maximum=MOST_CANDIDATES,
        default_text="4 ceil(log2 K), at most K",
        stored=True,
        search=_candidates,
    )
    max_depth: int = option(
        "number of levels of routers",
        metavar="D",
        minimum=0,
        maximum=26,
        default_text="ceil(log2 K)",
        stored=True,
        search=_depths,
    )
    bern_hyper: float = option(
        "weight of the penalty in the recall bound, r - sqrt(LAMBDA r (1 - r) / n) - 15 / sqrt(18) LAMBDA / n if the "
        "candidates are the labels of a share r of n examples (paper: LAMBDA / n); with 0, the bound is r, but "
        "--vw_exact never stops above a leaf",
        default=1.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
        search=between(0.01, 10.0, "log", first=(0.1,)),
    )
    recall_stop: str = option(
        "`bound` ends the descent at a node whose recall bound is not lower than that of the child (VW); `gain` goes "
        "on if the candidates of the child included the labels of at least 2 % more of the recent examples; `paper` "
        "stops only where the bound is higher, counts a learned example before, and uses the bound of the paper; "
        "`never` stops at leaves only",
        choices=tuple(routing.STOPS),
        default="gain",
        stored=True,
    )
    node_only: bool = option("use the node reached as the only path feature", stored=True, search=flag())
    no_path_features: bool = option("score without path features", stored=True, search=flag())
    randomized_routing: bool = option(
        "while learning, choose a branch at random with the probability that the router's score gives",
        stored=True,
        search=flag(),
    )
    router_weight: str = option(
        "importance of an example for a router: `entropy` is the change of label entropy in bits times the weight at "
        "the node, `mean_entropy` that change alone, `example` the example's own weight (VW); `paper` is Algorithm 3, "
        "which leaves the example itself out of the change",
        choices=("entropy", "mean_entropy", "example", "paper"),
        default="entropy",
        stored=True,
    )

    RULES = (
        warned(
            "link",
            "glf1 has an effect only with --randomized_routing; add that, or leave --link out",
            link="glf1",
            randomized_routing=None,
        ),
        no_effect("bern_hyper", "--recall_stop compares no bounds", recall_stop="never"),
        refused(
            options_of(probabilities.Options),
            "with --recall_tree needs scores that are log odds: give --loss_function logistic",
            loss_function=lambda loss: loss not in (None, "logistic"),
        ),
        conflict(
            "--node_only and --no_path_features exclude each other: leave one of them out",
            node_only=True,
            no_path_features=True,
        ),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    o: Options = spec.options
    classes = o.recall_tree
    levels = max(0, classes - 1).bit_length()
    defaults: dict[str, int] = {}
    if o.max_candidates is None:
        defaults["max_candidates"] = max(1, min(classes, 4 * levels))
    if o.max_depth is None:
        defaults["max_depth"] = levels
    depth = defaults.get("max_depth", o.max_depth)
    subs = (1 << depth) - 1 + classes
    return {**defaults, **gd.resolve_defaults(spec.binary, subs, reduction=True, most_bits=MOST_BITS)}


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    """Raise ModelError unless the arrays of a model have the sizes that the options imply; called before `build`."""
    o: Options = spec.options
    sequential = spec.binary.layout == "vw"
    router_subs = routing.subs(o.max_depth, blocked=not sequential)
    if sequential:
        stored_arrays.check_rows("weights.sums", arrays, router_subs + o.recall_tree)
    else:
        stored_arrays.check_rows("routers.sums", arrays, router_subs)
        for j in range(SHARDS):
            stored_arrays.check_rows(f"scorers.{j}.sums", arrays, -(-o.recall_tree // SHARDS))
    stored_arrays.take("nodes.top_label", arrays, np.int32, (None, o.max_candidates))
