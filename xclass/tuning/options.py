"""Declare the options of `xclass tune` that are not options of the learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..options.declare import OptionGroup, option, threads_option
from ..system import output_file
from ..text import urls

METRICS = ("error", "log_loss", "squared", "top5")
LIST_METRICS = ("p1", "p3", "p5", "psp5", "micro_f1")  # of lists of labels


def beside_data(paths: Sequence[str]) -> str | None:
    """Return the file that keeps the results if none is given; None for data from standard input or a URL."""
    return f"{paths[0]}.tune" if paths and not urls.is_url(paths[0]) else None


@dataclass(frozen=True)
class Options(OptionGroup):
    """Declare the options of the search."""

    time: str = option(
        "time that the search and the training of the model may take, such as 90s, 5m or 2h", default="5m", metavar="T"
    )
    memory: str | None = option(
        "memory that the process may take, such as 1G", default_text="half of the free memory", metavar="SIZE"
    )
    threads: int | None = threads_option("with fewer threads, fewer settings are tried in the same time")
    metric: str = option(
        "what is minimised on examples that were not learned from: `error`; `log_loss`, the mean of -log p of the "
        "label; `squared`, the mean of (1 - p)**2; `top5`, the share of labels that are not among the five most "
        "probable classes. With lists of labels, 1 less the precision at 1 (`error`, `p1`), 3 or 5 (`p3`, `p5`), the "
        "propensity-scored precision at 5 (`psp5`), or F1 (`micro_f1`)",
        choices=(*METRICS, *LIST_METRICS),
        default="error",
    )
    settings: int = option("largest number of settings to try", minimum=1)
    range: tuple[str, ...] = option(
        "search these values of an option: 'OPTION log A B', 'OPTION linear A B' or 'OPTION int A B' between A and B; "
        "'OPTION one X Y ...' these; 'OPTION flag' given or not. If there is a range, nothing else is searched",
        metavar="RANGE",
    )
    state: str | None = option(
        "file that keeps the results of the settings, with which the same command continues a search",
        default_text="DATA.tune",
        writes="the results of the settings",
        files=lambda path, given: [path] if path is not None else filter(None, [beside_data(given.get("data", ()))]),
    )
    final_regressor: str = option(
        "save the model that learned from all examples with the best options",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
    )
    quiet: bool = option("print only the command line with the best options")
