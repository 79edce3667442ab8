"""List the reductions with sets of options (variants) that together execute most of their code."""

import pytest

from xclass.api import configuration
from xclass.api.learner import Learner
from xclass.checks import ROWS
from xclass.options.declare import long_flag, options_of
from xclass.reductions.core import base, probabilities
from xclass.reductions.core.spec import LearnerUse
from xclass.reductions.registry import REDUCTIONS

K = 9
BITS = ("-b", 12)
VARIANTS: dict[str, list[dict]] = {  # options by the names of their fields
    "scalar": [{"sgd": True}, {"loss_function": "logistic", "link": "logistic"}, {"loss_function": "quantile"}],
    "oaa": [
        {"layout": "vw", "loss_function": "squared", "label_range": "seen"},
        {"oaa_subsample": 3},
        {"loss_function": "hinge", "indexing": 1},
        {"sgd": True, "quadratic": ["wn"]},
        {"calibration": "c"},
    ],
    "multilabel": [{"arow_r": 0.3, "threshold": 0.2}, {"max_doublings": 3, "quadratic": ["wn"], "calibration": "c"}],
    "multilabel_oaa": [
        {"layout": "vw", "loss_function": "squared", "label_range": "seen"},
        {"threshold": 0.2, "quadratic": ["wn"]},
    ],
    "recall_tree": [
        {"max_candidates": 3},
        {"max_candidates": 3, "layout": "vw", "randomized_routing": True},
        {"max_candidates": 3, "loss_function": "squared", "label_range": "seen", "adaptive": True},
        {"max_candidates": 2, "randomized_routing": True, "bern_hyper": 0, "random_seed": 7},
        {"max_candidates": 3, "no_path_features": True, "router_weight": "example", "recall_stop": "bound"},
        {"max_candidates": 3, "node_only": True, "router_weight": "paper", "recall_stop": "paper", "max_depth": 2},
        {"max_candidates": 3, "calibration": "c"},
    ],
    "log_multi": [
        {"layout": "vw", "loss_function": "quantile", "label_range": "seen", "lom_rules": "vw"},
        {"max_predictors": 30, "loss_function": "squared", "quadratic": ["wn"]},
        {"max_predictors": 10, "swap_resistance": 1, "loss_function": "logistic"},
    ],
    "random_tree": [
        {"layout": "vw", "loss_function": "hinge", "sgd": True, "learning_rate": 0.2},
        {"random_seed": 3, "loss_function": "logistic", "quadratic": ["wn"]},
    ],
    "ect": [
        {"error": 2},
        {"error": 3, "ect_play": "vw", "layout": "vw", "label_range": "seen"},
        {"loss_function": "logistic", "error": 1, "sgd": True, "learning_rate": 0.2, "quadratic": ["wn"]},
        {"layout": "vw", "loss_function": "hinge"},
    ],
    "cpt": [
        {"loss_function": "logistic", "cpt_tree": "balanced"},
        {"cpt_tree": "random", "random_seed": 5, "calibration": "c"},
        {"normalize_features": "none", "learning_rate": 0.2, "quadratic": ["wn"]},
        {"trees": 3},
        {"normalize_features": "columns"},
        {"normalize_features": "unit", "trees": 2},
        {"cpt_tree": "kmeans", "tree_sample": 25},
        {"cpt_tree": "kmeans", "tree_sample": 20, "trees": 2},
        {"cpt_arity": 4},
        {"cpt_arity": 4, "loss_function": "logistic", "trees": 3, "cpt_alpha": 0.1},
        {"cpt_arity": 16, "cpt_tree": "random", "random_seed": 5},
        {"sgd": True},
        {"sgd": True, "cpt_arity": 4, "trees": 2, "momentum": 0.9},
        {"layout": "tagged", "max_doublings": 3, "trees": 2, "rerank": True},
    ],
    "softmax_tree": [
        {"depth": 2, "leaf_classes": 4, "zero_loss": "01"},
        {"depth": 1, "smooth": 0.001, "calibration": "c", "tree_init": "whole", "tao_tolerance": 0},
        {"depth": 2, "tree_init": "prototypes", "zero_loss": "beta", "beta": 10},
        {"depth": 2, "tree_init": "random", "zero_loss": "remove"},
        {"depth": 1, "normalize_features": "none", "quadratic": ["wn"]},
        {"depth": 0, "normalize_features": "columns", "l2": 0.1},
    ],
    "sparse_experts": [
        {"experts": 3, "group_lasso": 0.002, "prune_every": 30, "calibration": "c"},
        {"experts": 1, "quadratic": ["wn"]},
    ],
    "plt": [
        {"plt_tree": "kmeans", "tree_sample": 25},
        {"plt_tree": "balanced", "threshold": 0.2, "quadratic": ["wn"]},
        {"plt_tree": "random", "random_seed": 5, "max_doublings": 3},
    ],
    "means": [{"calibration": "c"}],
    "mach": [{"loss_function": "logistic", "calibration": "c"}, {"sgd": True, "random_seed": 7, "quadratic": ["wn"]}],
}
AT_THE_END = ("softmax_tree",)  # reductions that learn only at the end of the data
BY_NAME = {record.name: record for record in REDUCTIONS}
# kind of the lines for `streams.of_kind`
KINDS = {name: "rows" if record.dense == base.TAKEN else record.labels for name, record in BY_NAME.items()}
LISTING_OPTIONS = options_of(probabilities.ListingOptions)
FLAGS = {
    field: long_flag(option)
    for group in configuration.option_groups().values()
    for field, option in options_of(group).items()
}


def chosen(name: str, k: int = K) -> tuple:
    """Return the words of a command line that choose a reduction for k classes."""
    rows = ("--dense", *ROWS["dense"]) if KINDS[name] == "rows" else ()
    return () if name == "scalar" else (f"--{name}", k, *rows)


def words_of(options: dict) -> tuple:
    """Return options as words of a command line."""
    words: list = []
    for field, value in options.items():
        for item in value if isinstance(value, list) else [value]:
            words += [FLAGS[field]] if item is True else [FLAGS[field], item]
    return tuple(words)


def learner(name: str, k: int = K, **options) -> Learner:
    """Return a new learner, with a small weight table unless `bits` is given.

    Options of `probabilities` are not options of a learner; they are requested from it, as a run does.
    """
    listing_options = {field: options.pop(field) for field in set(options) & set(LISTING_OPTIONS)}
    rows = ROWS if KINDS.get(name) == "rows" else {}
    model = Learner(name, None if name == "scalar" else k, **{"bits": BITS[1], **rows, **options})
    if listing_options:
        model.core.reduction.want(LearnerUse(listing_options=probabilities.ListingOptions(**listing_options)))
    return model


def name_of(name: str, options: dict) -> str:
    """Return the name of the test of a variant."""
    return " ".join(map(str, (name, *words_of(options))))


def every_variant(slow: bool = False, names=BY_NAME, more: dict | None = None) -> pytest.MarkDecorator:
    """Return a mark that passes reductions, alone and in their variants and `more`, which can be slow tests."""
    return pytest.mark.parametrize(
        ("name", "options"),
        [
            pytest.param(name, options, id=name_of(name, options), marks=[pytest.mark.slow] if options and slow else [])
            for name in names
            for options in [{}, *VARIANTS.get(name, []), *(more or {}).get(name, [])]
        ],
    )


def names(words) -> str:
    """Return the name of the test of a command line."""
    return " ".join(map(str, words)) or "defaults"
