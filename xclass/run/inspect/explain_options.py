"""Declare the options of explanations, without the modules that write them, which few runs need."""

from __future__ import annotations

from dataclasses import dataclass

from ...options.declare import option
from ...options.relations import no_effect
from ...system import output_file


@dataclass(frozen=True)
class Options:
    """Declare the options of explanations."""

    explain: int = option(
        "explain every prediction: show the shares of the features in the scores of the first N classes and of the"
        " label, and the way through trees",
        kind=int,
        minimum=1,
        maximum=1000,
        metavar="N",
    )
    explain_file: str = option(
        "write the explanations to this file, or to `stdout`",
        default_text="stdout",
        metavar="FILE",
        writes="explanations",
        files=lambda path, given: (
            output_file.places(output_file.STDOUT if path is None else path) if "explain" in given else []
        ),
    )
    explain_format: str = option(
        "write explanations as text or as JSON, one line for each example",
        choices=("text", "json"),
        default_text="json for a file named .json, .jsonl or .ndjson, text otherwise",
    )
    explain_features: int = option(
        "number of shares to show for a class; the others are shown as a sum",
        kind=int,
        default=10,
        minimum=1,
        maximum=1_000_000,
        metavar="M",
    )

    RULES = (
        no_effect(
            "explain_file explain_format explain_features", "no prediction is explained; give --explain N", explain=None
        ),
    )
