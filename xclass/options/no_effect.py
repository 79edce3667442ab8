"""List the options that have no effect if others have certain values; `resolve` refuses them or warns of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class NoEffect(NamedTuple):
    """Define when an option that the user typed has no effect because of the values of other options."""

    option: str  # field of the option that the user typed
    deciding: str | tuple[str, ...]  # field or fields of the options that decide
    is_idle: Callable[..., bool]  # called with their values; returns whether `option` has no effect
    reason: str  # reason for the message
    accepted: bool = False  # whether VW's users give it without need: a warning, and none with --vw_exact


CROSSES = ("quadratic", "cubic", "interactions")
NO_EFFECT = (
    NoEffect("resume", "initial_regressor", lambda model: model is None, "it needs -i FILE, which loads a model"),
    NoEffect(
        "preserve_performance_counters",
        "initial_regressor",
        lambda model: model is None,
        "it needs -i FILE, which loads a model",
    ),
    NoEffect(
        "preserve_performance_counters", "testonly", bool, "with -t no examples are added to the counts of a model"
    ),
    NoEffect(
        "decay_learning_rate",
        ("passes", "initial_pass_length"),
        lambda passes, length: passes == 1 and length is None,
        "it changes the learning rate between passes, and there is only one pass; give --passes",
    ),
    NoEffect("decay_learning_rate", "testonly", bool, "with -t nothing is learned"),
    NoEffect("raw_predictions", "scores", bool, "with --scores -p writes the scores already"),
    NoEffect("raw_predictions", "probabilities", bool, "with --probabilities only -p is written"),
    NoEffect("save_per_pass", "final_regressor", lambda model: model is None, "it needs -f FILE, the model to save"),
    NoEffect("checkpoint", "final_regressor", lambda model: model is None, "it needs -f FILE, the model to save"),
    NoEffect("holdout_period", "holdout_off", bool, "with --holdout_off no example is held out"),
    NoEffect("holdout_after", "holdout_off", bool, "with --holdout_off no example is held out"),
    NoEffect("early_terminate", "holdout_off", bool, "without held-out examples no pass is better than another"),
    NoEffect(
        "early_terminate",
        ("passes", "initial_pass_length", "holdout_after"),
        lambda passes, length, after: passes == 1 and (length is None or not after),
        "no pass is compared with an earlier one; give --passes",
        accepted=True,
    ),
    NoEffect(
        "holdout_period",
        ("passes", "holdout_after"),
        lambda passes, after: passes == 1 and not after,
        "in a single pass no line is held out; give --passes, or --holdout_after N",
        accepted=True,
    ),
    NoEffect("holdout_period", "holdout_after", bool, "--holdout_after says which lines are held out", accepted=True),
    NoEffect("ignore", "keep", bool, "--keep leaves out all other namespaces", accepted=True),
    NoEffect("checkpoint", "testonly", bool, "with -t nothing is learned"),
    NoEffect("progress", "quiet", bool, "--quiet leaves the progress table out"),
    NoEffect("quantile_tau", "loss_function", lambda loss: loss != "quantile", "it needs --loss_function quantile"),
    NoEffect("skips", "ngram", lambda sizes: not sizes, "it needs --ngram"),
    NoEffect(
        "predict_only_model",
        ("final_regressor", "readable_model", "invert_hash"),
        lambda *files: not any(files),
        "no model is saved; give -f FILE",
    ),
    NoEffect("permutations", CROSSES, lambda *crosses: not any(crosses), "no namespaces are crossed; give -q"),
    NoEffect(
        "leave_duplicate_interactions", CROSSES, lambda *crosses: not any(crosses), "no namespaces are crossed; give -q"
    ),
    NoEffect("constant", "noconstant", bool, "--noconstant leaves the constant out"),
    NoEffect(
        "tree_levels",
        ("print_tree", "dot_tree"),
        lambda *files: not any(files),
        "no tree is written; give --print_tree or --dot_tree",
    ),
    *(
        NoEffect(name, "explain", lambda classes: classes is None, "no prediction is explained; give --explain N")
        for name in ("explain_file", "explain_format", "explain_features")
    ),
    NoEffect("no_stdin", "data", bool, "a data file is given"),
    NoEffect("scores", "probabilities", bool, "--probabilities writes probabilities in place of the scores"),
    NoEffect("scores", "top_k", lambda k: k is not None, "--top_k writes probabilities in place of the scores"),
    NoEffect("top_k", "probabilities", bool, "--probabilities writes all classes"),
    NoEffect("perplexity", "quiet", bool, "--quiet leaves the summary out"),
    NoEffect("threads", "workers", lambda count: count is not None, "the run has as many processes as --workers says"),
    NoEffect("timing", "quiet", bool, "--quiet leaves the summary out"),
)
