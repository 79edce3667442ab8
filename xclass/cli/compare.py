"""Execute `xclass compare`, which compares the errors of runs over the same examples."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, option, options_of, threads_option
from ..system import terminal
from .declared import of_data, read, take_data

USAGE = "xclass compare [OPTIONS] FIRST OTHER..."
INTRO = (
    "Compare the errors of runs with those of the first. The files are summaries, written by --summary, or "
    "predictions, written by -p, whose data are given with -d. If the runs had the same examples, McNemar's test gives "
    "the probability p of such a difference between equally good runs, and the interval is a paired bootstrap. The "
    "exit status is 3 if a run is worse than the first."
)
DESCRIPTION = "the comparison"
WORSE = 3  # exit status if a run is worse than the first


class CompareOptions(OptionGroup):
    """Declare the options of the subcommand."""

    json: str | None = option("write the comparison to this file, as JSON", writes=DESCRIPTION)
    runs: tuple[str, ...] = option("the files", flags=("FIRST OTHER...",), reads=True)
    threads: int | None = threads_option()
    alpha: float = option(
        "a run is worse than the first if its error is higher and p is below this",
        default=0.05,
        minimum=0.0,
        maximum=1.0,
        metavar="P",
    )
    tolerance: float = option(
        "a run is worse only if its error is higher by more than this, such as 0.005",
        default=0.0,
        minimum=0.0,
        maximum=1.0,
    )


def declared() -> Mapping[str, Option]:
    """Return the options and arguments, by field name."""
    return {**options_of(CompareOptions), **of_data("the data that the predictions are about, with labels")}


def run(words: Sequence[str]) -> int:
    """Compare runs as the words after `xclass compare` say, and return the exit status."""
    given = read(words, USAGE, declared())
    source = take_data(given)
    options = CompareOptions(**given)
    paths = options.runs
    if len(paths) < 2:
        raise UsageError(f"give two files or more to compare; usage: {USAGE}")

    from .. import comparison
    from ..kernels import jit
    from ..run.results import summary
    from ..system import output_file, thread_limit

    confidence = 1 - options.alpha
    if comparison.check_same_kind(paths, source.data):
        compared = [comparison.read_summary(path) for path in paths]
        by_class = []
    else:
        jit.activate()
        with thread_limit.limited(options.threads):
            labels = comparison.read_labels(source)
        compared = [comparison.read_predictions(path, labels) for path in paths]
        by_class = comparison.class_lines(compared, labels)
    comparisons = comparison.compare(compared, confidence)
    if options.json is not None:
        record = comparison.record(compared, comparisons, options.alpha, options.tolerance)
        text = json.dumps(summary.finite(record), indent=1, allow_nan=False)
        output_file.replace(options.json, DESCRIPTION, [text.encode(), b"\n"])
    with contextlib.suppress(BrokenPipeError):  # the exit status tells the rest
        for line in [*comparison.lines(compared, comparisons, confidence), *by_class]:
            terminal.line(line)
    return WORSE if any(comparison.is_worse(one, options.alpha, options.tolerance) for one in comparisons) else 0
