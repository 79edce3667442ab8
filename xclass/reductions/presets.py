"""Options that stand for others: `--multiclass`, `--hsm` and `--vw_exact`.

A preset is made of ordinary options, each of which can be given another value by hand.

Figures   error % on the last tenth of train with 4 trees and with 8, which take 1.2 to 1.7 times the CPU time there:
          clinc150 5.4, 5.7, reuters 14.9, 15.6, spelling 11.0, 10.6. No shape of the data tells before they are learned
          which is better, so there are 4. What does depend on the data: bits of the table (on K), rates (`cpt.options`,
          on passes), scales of features (`feature_scaling`, on what they look like).
          scripts/bench/ablation.py changes one part at a time, docs/results.md has its table.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data.batch import HIGHEST_LABEL
from ..options.declare import option
from ..options.resolve import Presets


@dataclass(frozen=True)
class Options:
    """Classes without a thought."""

    multiclass: int = option(
        "learn classes without naming a reduction: trees propose candidates and one scorer per class decides. It "
        "stands for --cpt K --trees 4 --rerank; each of these can be given another value. K is the approximate number"
        " of classes. This is the default if the first labels are whole numbers from 1 with at least three different "
        "values",
        kind=int,
        metavar="[K]",
        absent=0,
        minimum=0,
        maximum=HIGHEST_LABEL,
    )


def multiclass(k: int) -> dict[str, object]:
    """Return what --multiclass K stands for: field -> value."""
    return {"cpt": k, "trees": 4, "rerank": True}


def hierarchical_softmax(k: int) -> dict[str, object]:
    """Return what --hsm K stands for: field -> value."""
    return {"cpt": k, "cpt_tree": "huffman", "loss_function": "logistic", "sgd": True}


PROPOSED = "cpt"  # the reduction that is taken, as multiclass, where none is named

PRESETS: Presets = {
    "multiclass": multiclass,
    "hsm": hierarchical_softmax,
    # Predictions that agree with VW 9.11 to the digit: nothing but ordinary options, each usable alone.
    "vw_exact": {
        "bits": 18,
        "layout": "vw",
        "label_range": "seen",
        "loss_function": "squared",
        "router_weight": "example",
        "ect_play": "vw",
        "lom_rules": "vw",
        "on_bad_line": "vw",
        "raw_order": "vw",
        "resume": "first",
        "keep_last": True,
    },
}
"""Name of the option that chooses the preset -> field -> value, or a function of the option's value that gives these.
A reduction's option among them chooses the reduction. Values for a reduction that was not chosen,
and for options the command line or the model decides, are not used."""
