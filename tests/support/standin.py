"""Declare small option groups and reductions for the tests of `cli` and `options`, independent of the real ones."""

from __future__ import annotations

from dataclasses import dataclass

from xclass.errors import UsageError
from xclass.options.declare import option
from xclass.options.relations import no_effect
from xclass.reductions.core.base import Reduction


@dataclass(frozen=True)
class Run:
    data: tuple[str, ...] = option("data file", flags=("-d", "--data"), metavar="FILE", repeated=True)
    initial_regressor: str = option("model to load", flags=("-i", "--initial_regressor"), metavar="FILE")
    testonly: bool = option("predict only", flags=("-t", "--testonly"), kind=bool)
    progress: str = option("rows of the table", flags=("-P", "--progress"), default="2.0")
    quiet: bool = option("no table", kind=bool)
    exact: bool = option("a preset", kind=bool)

    RULES = (no_effect("progress", "--quiet leaves the progress table out", quiet=True),)


@dataclass(frozen=True)
class ListingOptions:
    top_k: int = option("the best", kind=int)


@dataclass(frozen=True)
class Interactions:
    quadratic: tuple[str, ...] = option("pairs", flags=("-q", "--quadratic"), repeated=True, stored=True, metavar="AB")


@dataclass(frozen=True)
class Learner:
    bits: int = option(
        "bits of the table", flags=("-b", "--bit_precision"), kind=int, minimum=1, maximum=31, stored=True
    )
    learning_rate: float = option(
        "rate", flags=("-l", "--learning_rate"), kind=float, default_text="0.5", stored=True, adjustable=True
    )
    power_t: float = option("exponent", kind=float, default=0.5, minimum=0, stored=True)
    loss_function: str = option("loss", choices=("squared", "logistic", "quantile"), stored=True)
    quantile_tau: float = option("quantile", kind=float, default=0.5, minimum=0, maximum=1, stored=True)
    sgd: bool = option("plain steps", kind=bool, stored=True)

    RULES = (
        no_effect("quantile_tau", "it needs --loss_function quantile", loss_function=lambda loss: loss != "quantile"),
    )


@dataclass(frozen=True)
class Scalar:
    binary: bool = option("answer the sign", kind=bool)


@dataclass(frozen=True)
class Oaa:
    oaa: int = option("one against all, K classes", kind=int, minimum=1, metavar="K", stored=True)
    indexing: int = option("first label", kind=int, minimum=0, maximum=1, stored=True)


@dataclass(frozen=True)
class RecallTree:
    recall_tree: int = option("recall tree, K classes", kind=int, minimum=1, metavar="K", stored=True)
    max_depth: int = option("levels", kind=int, minimum=1, maximum=30, default_text="ceil(log2 K)", stored=True)
    max_candidates: int = option("candidates", kind=int, minimum=1, stored=True)
    router_weight: str = option("weight", choices=("entropy", "example"), default="entropy", stored=True)


@dataclass(frozen=True)
class Filter:
    filter_tree: int = option("a third reduction", kind=int, stored=True)
    max_depth: int = option("levels", kind=int, minimum=1, maximum=30, stored=True)


def _check_depth(config) -> None:
    if config.recall_tree.max_depth == 29:
        raise UsageError("a depth of 29 is refused here")


def _settle_depth(config) -> dict:
    defaults = {} if config.learner.bits else {"bits": 9}
    if config.recall_tree.max_depth is None:
        defaults["max_depth"] = config.recall_tree.recall_tree.bit_length()
    return defaults


def _record(
    name: str, options: type, check=lambda config: None, resolve_defaults=lambda config: {}, probabilities: bool = False
) -> Reduction:
    return Reduction(
        name=name,
        title=f"Title of {name}",
        summary=f"Summary of {name}.",
        options=options,
        labels="simple" if name == "scalar" else "multiclass",
        enabled=name,
        build=None,
        check=check,
        resolve_defaults=resolve_defaults,
        label_range=lambda config: None,
        probabilities=probabilities,
    )


REDUCTIONS = (
    _record("scalar", Scalar),
    _record("oaa", Oaa, probabilities=True),
    _record("recall_tree", RecallTree, _check_depth, _settle_depth),
    _record("filter_tree", Filter),
)
OPTION_GROUPS = {
    "run": Run,
    "interactions": Interactions,
    "learner": Learner,
    "listing_options": ListingOptions,
    **{record.name: record.options for record in REDUCTIONS},
}
