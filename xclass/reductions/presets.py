"""Define the presets, options that stand for several others: `--multiclass`, `--hsm`, `--hsm_paper` and `--vw_exact`.

A preset stands for values of ordinary options; a value given explicitly for one of these takes precedence.
docs/defaults.md contains the measurements on which the values are based.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..data.batch import HIGHEST_LABEL
from ..options.declare import OptionGroup, one_of, option
from ..options.resolve import Presets


class PresetOptions(OptionGroup):
    """Declare the option of the default multiclass preset."""

    multiclass: int = option(
        "learn classes without naming a reduction: trees propose candidates and one scorer per class decides. It "
        "stands for --cpt K --trees 4 --rerank; each of these can be given another value. K is the approximate number"
        " of classes. This is the default if the first labels are whole numbers from 1 with at least three different "
        "values",
        metavar="[K]",
        value_if_bare=0,
        minimum=0,
        maximum=HIGHEST_LABEL,
        search=one_of(0, weight=4.0),
    )


def multiclass(k: int) -> dict[str, object]:
    """Return the options that --multiclass K stands for, as {field: value}."""
    return {"cpt": k, "trees": 4, "rerank": True}


def hierarchical_softmax(k: int) -> dict[str, object]:
    """Return the options that --hsm K stands for, as {field: value}."""
    return {"cpt": k, "cpt_tree": "huffman", "loss_function": "logistic", "sgd": True}


# The reduction that --multiclass stands for, which a run chooses if no reduction is named.
PROPOSED = "cpt"
LISTS = "multilabel"  # the reduction that a run chooses if labels are lists

PRESETS: Presets = {
    "multiclass": multiclass,
    "hsm": hierarchical_softmax,
    "hsm_paper": {  # PTB's settings in appendix C of the Softmax Tree paper
        "momentum": 0.9,
        "learning_rate": 0.005,
        "decay_learning_rate": 0.995,
        "tree_sample": 0,
        "normalize_features": "none",
    },
    # Makes predictions agree with VW 9.11 to the digit.
    "vw_exact": {
        "bits": 18,
        "layout": "vw",
        "label_range": "seen",
        "loss_function": "squared",
        "router_weight": "example",
        "recall_stop": "bound",
        "ect_play": "vw",
        "lom_rules": "vw",
        "on_bad_line": "vw",
        "number_rules": "vw",
        "format": "vw",
        "raw_order": "vw",
        "resume": "first",
        "keep_last": True,
    },
}
"""Map the option that chooses a preset to {field: value}, or to a function that makes this from the option's value.

If one of the fields is the option of a reduction, it chooses that reduction. Values for a reduction that was not
chosen, and for options that the command line or the model decides, are not used.
"""


def reductions(known: Iterable[str]) -> dict[str, str]:
    """Return the known reduction that each preset chooses, by the name of the preset."""
    standing = {name: preset(0) for name, preset in PRESETS.items() if callable(preset)}
    return {name: reduction for reduction in known for name, values in standing.items() if reduction in values}
