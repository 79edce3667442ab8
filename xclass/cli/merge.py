"""Execute `xclass merge`, which merges models that learned apart into one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..options import words as option_words
from ..options.declare import option, options_of
from ..system import output_file, terminal
from . import option_text

USAGE = "xclass merge [--base FILE] -f FILE MODEL..."
INTRO = (
    "Merge models that learned apart, with the same options, into one model. Each weight is the average of the models' "
    "weights, weighted by the squared gradients that each model has added to AdaGrad's sum; counts are added. With "
    "--base, the models have continued from that model by -i, and what it holds is counted once."
)


@dataclass(frozen=True)
class Options:
    """Declare the options of the subcommand."""

    final_regressor: str = option("save the merged model", flags=("-f", "--final_regressor"), metavar="FILE")
    base: str = option("the model from which all of them have continued", metavar="FILE", read=True)
    quiet: bool = option("print nothing unless there is an error", kind=bool)


def run(words: Sequence[str]) -> int:
    """Merge models as the words after `xclass merge` say, and return the exit status.

    Raises
    ------
    UsageError
        if the words are not understood.
    ModelError
        if a model cannot be read, merged or written.
    """
    declared = options_of(Options)
    if {"-h", "--help"} & set(words):
        terminal.page(option_text.of_subcommand(USAGE, INTRO, declared))
        return 0
    given, models = option_words.read(declared, words)
    path = _checked_target(given, models)

    from ..merging import models as merging
    from ..model import model_file
    from ..run.report.console import Console

    model_file.check_writable(path)
    learner, notes = merging.merged(models, given.get("base"))
    with learner:
        learner.save(path)
        classes = learner.classes
        count = classes if isinstance(classes, int) else len(classes or ())
        facts = f"{learner.examples:,} examples" + (f", {count:,} classes" if count else "")
        output = Console(bool(given.get("quiet")))
        for note in notes:
            output.warn(note)
        output.info(f"{path}: merged from {len(models)} model{'s' * (len(models) > 1)}, {facts}")
    return 0


def _checked_target(given: dict[str, Any], models: Sequence[str]) -> str:
    """Return the file to write; raise UsageError if it or the models are missing, or if it is one of them."""
    if not models:
        raise UsageError(f"no models to merge; usage: {USAGE}")
    if "final_regressor" not in given:
        raise UsageError(f"there is no file for the merged model; give -f FILE; usage: {USAGE}")
    path: str = given["final_regressor"]
    if not path:
        raise UsageError("-f: the name of the file is empty; give the file for the merged model")
    output_file.check_not_read("-f", path, [*models, *([given["base"]] if "base" in given else [])])
    return path
