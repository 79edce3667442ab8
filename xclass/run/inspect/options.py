"""Declare the options that show what a run has learned, without the modules that do so, which few runs need."""

from __future__ import annotations

from ...options.declare import OptionGroup, no_effect, option
from ...system import output_file


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
