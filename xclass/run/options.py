"""Declare the options of a run, apart from the modules that do what they ask for, which few runs need."""

from __future__ import annotations

from ..api.configuration import EXACT, SEED, Config
from ..errors import UsageError
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


class TimingOptions(OptionGroup):
    """Declare the option of timing."""

    timing: bool = option("report the time spent starting, reading, parsing, learning and writing")

    RULES = (no_effect("timing", "--quiet leaves the summary out", quiet=True),)


class ShuffleOptions(OptionGroup):
    """Declare the option of shuffling."""

    shuffle: int = option("hold N examples in memory and learn them in random order", minimum=2)


class InspectOptions(OptionGroup):
    """Declare the options of models as text, explanations and trees."""

    readable_model: str = option("write the model as text to this file", writes="the model as text")
    invert_hash: str = option(
        "write the model as text with the names of the features in this run's data; use it with -i and -t for a model"
        " saved earlier",
        writes="the model as text",
    )
    audit: bool = option(
        "write the features and weights behind every prediction to standard output", flags=("-a", "--audit")
    )
    explain: int = option(
        "explain every prediction: show the shares of the features in the scores of the first N classes and of the"
        " label, and the way through trees",
        minimum=1,
        maximum=1000,
    )
    explain_file: str = option(
        "write the explanations to this file, or to `stdout`",
        default_text="stdout",
        writes="explanations",
        files=lambda path, given: (
            output_file.places(output_file.STDOUT if path is None else path) if "explain" in given else []
        ),
    )
    explain_format: str = option(
        "write explanations as text, as text with the parts that each share is the sum of, or as JSON, one line for "
        "each example",
        choices=("text", "parts", "json"),
        default_text="json for a file named .json, .jsonl or .ndjson, text otherwise",
    )
    explain_features: int = option(
        "number of features to show for a class; the others are shown as a sum",
        default=10,
        minimum=1,
        maximum=1_000_000,
        metavar="M",
    )
    print_tree: str = option("write the tree as text to this file, or to `stdout`", writes="the tree")
    dot_tree: str = option("write the tree as a Graphviz graph to this file", writes="the tree")
    tree_levels: int = option("number of levels of the tree to write", default=6, minimum=1, maximum=64)

    RULES = (
        no_effect(
            "explain_file explain_format explain_features", "no prediction is explained; give --explain N", explain=None
        ),
        no_effect("tree_levels", "no tree is written; give --print_tree or --dot_tree", print_tree=None, dot_tree=None),
    )


class ResultOptions(OptionGroup):
    """Declare the files of results."""

    summary: str | None = option(
        "write the summary, the options, versions, times and memory to this file, as JSON", writes="the summary"
    )
    curve: str | None = option(
        "write the learning curve to this file, as CSV: every row of the progress table, and rows in between",
        writes="the learning curve",
    )
    per_class: str | None = option(
        "write the examples, errors, precision, recall, mean probability and most frequent wrong answer of each class "
        "to this file, as CSV; with lists of labels, the precision, recall and F1 of each label at the threshold, and "
        "its recall among the best 1, 3 and 5",
        writes="the errors by class",
    )
    errors: str | None = option(
        "write the wrongly predicted lines to this file with the answers and probabilities, the least probable label "
        "first",
        writes="the wrong lines",
    )
    most_errors: int = option("write at most N lines with --errors", default=1000, minimum=1)

    RULES = (no_effect("most_errors", "it needs --errors FILE, to which the lines are written", errors=None),)

    @property
    def needs_probabilities(self) -> bool:
        """Return whether a file shows the probabilities of labels and answers."""
        return self.curve is not None or self.per_class is not None or self.errors is not None

    def check(self, labels: str) -> None:
        """Refuse files about classes if labels are numbers or lists; `labels` is that of the reduction's record."""
        for flag, path in (("--per_class", self.per_class), ("--errors", self.errors)):
            if path is not None and labels == "simple":
                raise UsageError(
                    f"{flag} needs classes, but the labels of this run are numbers; choose a reduction such as "
                    "--multiclass"
                )
        if self.errors is not None and labels == "multilabel":
            raise UsageError(
                "--errors is about lines with one label each, but this run has lists of labels; --per_class has the "
                "errors of each label, and -p the predictions"
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
