"""Declare small option groups and reductions for the tests of `cli` and `options`, independent of the real ones."""

from xclass.errors import UsageError
from xclass.options.declare import OptionGroup, no_effect, option
from xclass.reductions.core.base import ReductionRecord


class Run(OptionGroup):
    data: tuple[str, ...] = option("data file", flags=("-d", "--data"), metavar="FILE")
    initial_regressor: str = option("model to load", flags=("-i", "--initial_regressor"), metavar="FILE")
    testonly: bool = option("predict only", flags=("-t", "--testonly"))
    progress: str = option("rows of the table", flags=("-P", "--progress"), default="2.0")
    quiet: bool = option("no table")
    exact: bool = option("a preset")

    RULES = (no_effect("progress", "--quiet leaves the progress table out", quiet=True),)


class ListingOptions(OptionGroup):
    top_k: int = option("the best")


class Interactions(OptionGroup):
    quadratic: tuple[str, ...] = option("pairs", flags=("-q", "--quadratic"), stored=True, metavar="AB")


class Learner(OptionGroup):
    bits: int = option("bits of the table", flags=("-b", "--bit_precision"), minimum=1, maximum=31, stored=True)
    learning_rate: float = option(
        "rate", flags=("-l", "--learning_rate"), default_text="0.5", stored=True, adjustable=True
    )
    power_t: float = option("exponent", default=0.5, minimum=0, stored=True)
    loss_function: str = option("loss", choices=("squared", "logistic", "quantile"), stored=True)
    quantile_tau: float = option("quantile", default=0.5, minimum=0, maximum=1, stored=True)
    sgd: bool = option("plain steps", stored=True)

    RULES = (
        no_effect("quantile_tau", "it needs --loss_function quantile", loss_function=lambda loss: loss != "quantile"),
    )


class Scalar(OptionGroup):
    binary: bool = option("answer the sign")


class Oaa(OptionGroup):
    oaa: int = option("one against all, K classes", minimum=1, metavar="K", stored=True)
    indexing: int = option("first label", minimum=0, maximum=1, stored=True)


class RecallTree(OptionGroup):
    recall_tree: int = option("recall tree, K classes", minimum=1, metavar="K", stored=True)
    max_depth: int = option("levels", minimum=1, maximum=30, default_text="ceil(log2 K)", stored=True)
    max_candidates: int = option("candidates", minimum=1, stored=True)
    router_weight: str = option("weight", choices=("entropy", "example"), default="entropy", stored=True)


class Filter(OptionGroup):
    filter_tree: int = option("a third reduction", stored=True)
    max_depth: int = option("levels", minimum=1, maximum=30, stored=True)


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
) -> ReductionRecord:
    return ReductionRecord(
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
