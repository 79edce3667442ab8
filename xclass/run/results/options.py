"""Declare the options that write the results of a run to files for programs."""

from __future__ import annotations

from ...errors import UsageError
from ...options.declare import OptionGroup, no_effect, option


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


def check(options: ResultOptions, labels: str) -> None:
    """Refuse files about classes if labels are numbers or lists; `labels` is that of the reduction's record."""
    for flag, path in (("--per_class", options.per_class), ("--errors", options.errors)):
        if path is not None and labels == "simple":
            raise UsageError(
                f"{flag} needs classes, but the labels of this run are numbers; choose a reduction such as --multiclass"
            )
    if options.errors is not None and labels == "multilabel":
        raise UsageError(
            "--errors is about lines with one label each, but this run has lists of labels; --per_class has the errors "
            "of each label, and -p the predictions"
        )
