"""Execute `xclass report`, which describes a model and its errors as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, option, options_of, threads_option
from .declared import of_data, read, take_data

USAGE = "xclass report -i MODEL [-d FILE] [OPTIONS] -o FILE.html"
INTRO = (
    "Write a report on a model as one HTML page that loads nothing from elsewhere. With labelled data (-d) it shows "
    "which classes fail most, why, and what would help; the error by class frequency; the most confused classes; and "
    "the calibration. Of lists of labels it shows the measures, the labels with the most errors, and the calibration. "
    "It also shows the options. It needs matplotlib (extra plot)."
)


class ReportOptions(OptionGroup):
    """Declare the options of the subcommand."""

    initial_regressor: str = option(
        "the model", flags=("-i", "--initial_regressor"), reads=True, needed="there is no model; give -i MODEL"
    )
    output: str | None = option(
        "write the page to this file, whose name ends in .html or .htm", flags=("-o", "--output"), writes="the report"
    )
    json: str | None = option(
        "write the key figures, the causes and classes with reasons and advice, the pairs and the error by frequency "
        "to this file as JSON, beside the page or instead of it",
        writes="the report",
    )
    train: tuple[str, ...] = option(
        "the training data, in which the examples of each class are counted",
        default_text="the counts in the model, if it has some",
        reads=True,
    )
    class_names: str | None = option(
        "texts to show for classes whose labels are numbers, in lines of a label, a tab and a text", reads=True
    )
    top: int = option(
        "number of classes with the most errors, of those with the highest error, and of examples of each kind",
        default=10,
        minimum=1,
        maximum=1000,
    )
    min_examples: int = option(
        "the classes with the highest error have at least N test examples, so that a class with a single example is "
        "not among them",
        default=5,
        minimum=1,
    )
    threads: int | None = threads_option("the page does not depend on N")
    quiet: bool = option("print nothing unless there is an error")


def declared() -> Mapping[str, Option]:
    """Return the options, by field name."""
    return {**options_of(ReportOptions), **of_data("labelled data that the model has not learned from")}


def run(words: Sequence[str]) -> int:
    """Write a report as the words after `xclass report` say, and return the exit status."""
    given = read(words, USAGE, declared())
    source = take_data(given, "train")
    options = ReportOptions(**given)
    model, path = options.initial_regressor, options.output
    if not path and not options.json:
        raise UsageError(
            f"there is no file for the report; give -o FILE.html for the page, or --json FILE; usage: {USAGE}"
        )
    if path and not path.lower().endswith((".html", ".htm")):
        raise UsageError(
            f"-o {path}: the report is an HTML page; give a name that ends in .html or .htm, or --json {path} for JSON"
        )

    from ..report import contents, figures, page
    from ..run.report.console import Console
    from ..system import output_file, thread_limit

    request = contents.ReportRequest(
        model, source, options.train, options.top, options.min_examples, options.class_names
    )
    if path:
        figures.check_installed()

    from ..api import learner as api

    output = Console(options.quiet)
    with thread_limit.limited(options.threads), api.load(model) as learner:
        collected = contents.collect(learner, request)
    if options.json:
        output_file.replace(options.json, "the report", [contents.written(collected)])
    if path:
        output_file.replace(path, "the report", list(page.write(collected)))
    for note in collected.notes:
        output.warn(note)
    if path:
        output.info(f"{path}: {os.path.getsize(path) / 1e6:.1f} MB, open it in a browser")
    return 0
