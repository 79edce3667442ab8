"""Execute `xclass merge`, which merges models that learned apart into one model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..options.declare import OptionGroup, option, options_of
from ..system import output_file
from .declared import read

USAGE = "xclass merge [--base FILE] -f FILE MODEL..."
INTRO = (
    "Merge models that learned apart, with the same options, into one model. Each weight is the average of the models' "
    "weights, weighted by the squared gradients that each model has added to AdaGrad's sum; counts are added. With "
    "--base, the models have continued from that model by -i, and what it holds is counted once."
)


class MergeOptions(OptionGroup):
    """Declare the options of the subcommand."""

    models: tuple[str, ...] = option("the models", flags=("MODEL...",), reads=True, needed="no models to merge")
    final_regressor: str = option(
        "save the merged model",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
        needed="there is no file for the merged model; give -f FILE",
    )
    base: str = option("the model from which all of them have continued", reads=True)
    quiet: bool = option("print nothing unless there is an error")


declared = partial(options_of, MergeOptions)


def run(words: Sequence[str]) -> int:
    """Merge models as the words after `xclass merge` say, and return the exit status."""
    options = MergeOptions(**read(words, USAGE, declared()))
    models, path = options.models, options.final_regressor

    from .. import merging
    from ..model import model_file
    from ..run.report.console import Console

    model_file.check_writable(path)
    output = Console(options.quiet)
    learner, notes = merging.merged(models, options.base)
    with learner:
        learner.save(path)
        classes = learner.classes
        count = classes if isinstance(classes, int) else len(classes or ())
        facts = f"{learner.examples:,} examples" + (f", {count:,} classes" if count else "")
        for note in notes:
            output.warn(note)
        output.info(f"{path}: merged from {len(models)} model{'s' * (len(models) > 1)}, {facts}")
    return 0
