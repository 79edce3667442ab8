"""Execute `xclass shrink`, which makes a model for prediction smaller."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..errors import UsageError
from ..options.declare import BYTES, Option, OptionGroup, option, options_of, threads_option
from ..system import output_file
from .declared import of_data, read, take_data

USAGE = "xclass shrink [OPTIONS] -f FILE MODEL"
INTRO = (
    "Make a model smaller that is only used for prediction. What only learning needs is dropped, weights are stored in "
    "16, 8 or 4 bits, and the weights that matter least are left out. Without --size, --bits and --keep, the new file "
    "has a quarter of the bytes, or more if less than a quarter of the weights would be kept. With -d, the error "
    "and the log loss are shown before and after. The new model cannot learn."
)


class ShrinkOptions(OptionGroup):
    """Declare the options of the subcommand."""

    models: tuple[str, ...] = option("the model", flags=("MODEL",), reads=True, needed="give one model to shrink")
    final_regressor: str = option(
        "save the shrunk model",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
        needed="there is no file for the shrunk model; give -f FILE",
    )
    size: int = option(
        "most bytes of the new file; as many weights are kept as fit", metavar="SIZE", minimum=1, unit=BYTES
    )
    bits: str = option(
        "bits of a weight; 4 bits cost less than leaving out weights",
        choices=("4", "8", "16"),
        default_text="the most with which all weights fit into --size, else 4; 8 with --keep alone",
    )
    keep: float = option(
        "share of the weights that are kept: those without which predictions would change most",
        minimum=0.0,
        maximum=1.0,
        default_text="as many as fit into --size",
    )
    threads: int | None = threads_option("the new model and the errors do not depend on N")
    quiet: bool = option("print nothing unless there is an error")


def declared() -> Mapping[str, Option]:
    """Return the options and arguments, by field name."""
    data = of_data("data with labels, on which the error is measured before and after")
    return {**options_of(ShrinkOptions), **data}


def run(words: Sequence[str]) -> int:
    """Shrink a model as the words after `xclass shrink` say, and return the exit status."""
    given = read(words, USAGE, declared())
    source = take_data(given)
    options = ShrinkOptions(**given)
    if len(options.models) != 1:
        raise UsageError(f"give one model to shrink, not {len(options.models)}; usage: {USAGE}")
    if options.keep == 0:
        raise UsageError("--keep 0 leaves no weights; give a number above 0 and at most 1, such as 0.5")
    (path,), target = options.models, options.final_regressor

    from .. import shrinking
    from ..api import model_contents
    from ..comparison import paired
    from ..model import model_file
    from ..run.report.console import Console
    from ..system import thread_limit

    output = Console(options.quiet)
    model_file.check_writable(target)
    with thread_limit.limited(options.threads):
        before = shrinking.loss(path, source) if source.data else None
    small = shrinking.shrunk(path, options.size, int(options.bits or 0) or None, options.keep)
    model_contents.save(target, lambda: small.contents)
    sizes = os.path.getsize(path), os.path.getsize(target) if os.path.isfile(target) else 0
    weights = f"{small.kept:,} of {small.weights:,} weights, in {small.setting.bits} bits"
    output.info(
        f"{target}: {sizes[1] / 1e6:,.2f} MB instead of {sizes[0] / 1e6:,.2f} MB; "
        f"{weights if small.weights else 'it lacks what only learning needs'}"
    )
    if before is not None:
        with thread_limit.limited(options.threads):
            after = shrinking.loss(target, source)
        name = " ".join(source.data)
        output.info(f"{before.name} on {name}: {before.value:.6f} before, {after.value:.6f} after")
        if before.wrong is not None and after.wrong is not None:
            p = paired(before.wrong, after.wrong, 0.95).p
            output.info(f"p = {p:.2g} by McNemar's test: the probability of such a difference by chance")
        if before.log_loss is not None and after.log_loss is not None:
            output.info(f"log loss on {name}: {before.log_loss:.6f} before, {after.log_loss:.6f} after")
    return 0
