"""Declare the options of a run."""

from __future__ import annotations

from ..api.configuration import EXACT, SEED, Config
from ..options.declare import OptionGroup, no_effect, option, threads_option, warned
from ..reductions.core.spec import LearnerUse
from ..system import output_file

WITHOUT_CHANCE = {"scalar", "ect", "log_multi", "means", "multilabel", "multilabel_oaa"}  # reductions


class RunOptions(OptionGroup):
    """Declare the options of a run."""

    initial_regressor: str = option(
        "model to load, to predict or to continue from", flags=("-i", "--initial_regressor"), reads=True
    )
    testonly: bool = option("predict only, do not learn", flags=("-t", "--testonly"))
    final_regressor: str = option(
        "save the model to this file",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
        files=output_file.places,
        may_replace="initial_regressor",
    )
    predictions: str = option(
        "write predictions to this file, or to `stdout`",
        flags=("-p", "--predictions"),
        writes="predictions",
        files=output_file.places,
    )
    raw_predictions: str = option(
        "write scores to this file: of every class, of the candidates, of the routers on the path to the leaf, or of "
        "the binary learner",
        flags=("-r", "--raw_predictions"),
        writes="scores",
        files=output_file.places,
    )
    progress: str = option(
        "print a row of the progress table every N examples (1000), or whenever the number of examples has grown N "
        "times (2.0)",
        flags=("-P", "--progress"),
        default="2.0",
        metavar="N",
    )
    quiet: bool = option("print no banner, table, summary or warnings")
    threads: int = threads_option()
    random_seed: int = SEED
    no_stdin: bool = option("read nothing if no data file is given")
    preserve_performance_counters: bool = option(
        "continue the counts of examples and losses of the model given with -i"
    )
    vw_exact: bool = EXACT

    RULES = (
        no_effect("preserve_performance_counters", "it needs -i FILE, which loads a model", initial_regressor=None),
        no_effect(
            "preserve_performance_counters", "with -t no examples are added to the counts of a model", testonly=True
        ),
        no_effect("raw_predictions", "with --scores -p writes the scores already", scores=True),
        no_effect("raw_predictions", "with --probabilities only -p is written", probabilities=True),
        no_effect("progress", "--quiet leaves the progress table out", quiet=True),
        no_effect("no_stdin", "a data file is given", data=True),
        warned(
            "random_seed",
            "this reduction draws nothing at random, and without --shuffle no order is drawn",
            reduction=WITHOUT_CHANCE,
            shuffle=None,
        ),
        no_effect("threads", "the run has as many processes as --workers says", workers=True),
    )


def use_of(config: Config) -> LearnerUse:
    """Return how a run with these options uses its learner."""
    run, shown = config.run, config.inspect
    inspected = bool(shown.readable_model or shown.invert_hash or shown.audit)
    return LearnerUse(
        scores=run.raw_predictions is not None,
        example_probabilities=config.results.needs_probabilities and config.reduction.probabilities,
        weights_only=bool(run.testonly and run.final_regressor is None and not inspected),
        inspected=inspected,
        passes=config.passes.passes,
        loaded=run.initial_regressor is not None,
        testing=run.testonly,
    )
