"""Execute `xclass merge`, which merges models that learned apart into one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, option, options_of
from ..system import output_file
from . import subcommand_words

USAGE = "xclass merge [--base FILE] -f FILE MODEL..."
INTRO = (
    "Merge models that learned apart, with the same options, into one model. Each weight is the average of the models' "
    "weights, weighted by the squared gradients that each model has added to AdaGrad's sum; counts are added. With "
    "--base, the models have continued from that model by -i, and what it holds is counted once."
)


@dataclass(frozen=True)
class Options(OptionGroup):
    """Declare the options of the subcommand."""

    final_regressor: str = option("save the merged model", flags=("-f", "--final_regressor"), writes=output_file.MODEL)
    base: str = option("the model from which all of them have continued", reads=True)
    models: tuple[str, ...] = option("the models", flags=("MODEL...",), reads=True)
    quiet: bool = option("print nothing unless there is an error")


def declared() -> Mapping[str, Option]:
    """Return the options and arguments, by field name."""
    return options_of(Options)


def run(words: Sequence[str]) -> int:
    """Merge models as the words after `xclass merge` say, and return the exit status."""
    given = subcommand_words.read(words, USAGE, INTRO, declared())
    if given is None:
        return 0
    models, path = given["models"], given.get("final_regressor")
    if not models:
        raise UsageError(f"no models to merge; usage: {USAGE}")
    if not path:
        raise UsageError(f"there is no file for the merged model; give -f FILE; usage: {USAGE}")

    from ..merging import models as merging
    from ..model import model_file
    from ..run.report.console import Console

    model_file.check_writable(path)
    output = Console(bool(given.get("quiet")))
    learner, notes = merging.merged(models, given.get("base"))
    with learner:
        learner.save(path)
        classes = learner.classes
        count = classes if isinstance(classes, int) else len(classes or ())
        facts = f"{learner.examples:,} examples" + (f", {count:,} classes" if count else "")
        for note in notes:
            output.warn(note)
        output.info(f"{path}: merged from {len(models)} model{'s' * (len(models) > 1)}, {facts}")
    return 0
