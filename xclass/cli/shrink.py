"""Execute `xclass shrink`, which makes a model for prediction smaller."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, option, options_of, threads_option
from ..system import output_file
from . import subcommand_words

USAGE = "xclass shrink [OPTIONS] -f FILE MODEL"
INTRO = (
    "Make a model smaller that is only used for prediction. What only learning needs is dropped, weights are stored in "
    "16, 8 or 4 bits, and the weights that matter least are left out. Without --size, --bits and --keep, the new file "
    "has a quarter of the bytes, or more if less than a quarter of the weights would be kept. With -d, the error "
    "and the log loss are shown before and after. The new model cannot learn."
)
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True)
class Options(OptionGroup):
    """Declare the options of the subcommand."""

    final_regressor: str = option("save the shrunk model", flags=("-f", "--final_regressor"), writes=output_file.MODEL)
    size: str = option(
        "most bytes of the new file, such as 50M (50,000,000 bytes); as many weights are kept as fit", metavar="SIZE"
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
    models: tuple[str, ...] = option("the model", flags=("MODEL",), reads=True)
    quiet: bool = option("print nothing unless there is an error")


def declared() -> Mapping[str, Option]:
    """Return the options and arguments, by field name."""
    data = subcommand_words.of_data("data with labels, on which the error is measured before and after")
    return {**options_of(Options), **data}


def run(words: Sequence[str]) -> int:
    """Shrink a model as the words after `xclass shrink` say, and return the exit status."""
    given = subcommand_words.read(words, USAGE, INTRO, declared())
    if given is None:
        return 0
    models, target = given["models"], given.get("final_regressor")
    if len(models) != 1:
        raise UsageError(f"give one model to shrink, not {len(models)}; usage: {USAGE}")
    if not target:
        raise UsageError(f"there is no file for the shrunk model; give -f FILE; usage: {USAGE}")
    size = None if given.get("size") is None else read_size(given["size"])
    if given.get("keep") == 0:
        raise UsageError("--keep 0 leaves no weights; give a number above 0 and at most 1, such as 0.5")
    source = subcommand_words.take_data(given)

    from ..api import model_contents
    from ..comparison import significance
    from ..model import model_file
    from ..run.report.console import Console
    from ..shrinking import models as shrinking
    from ..system import thread_limit

    (path,) = models
    output = Console(bool(given.get("quiet")))
    model_file.check_writable(target)
    with thread_limit.limited(given.get("threads")):
        before = shrinking.loss(path, source) if source.data else None
    small = shrinking.shrunk(path, size, int(given["bits"]) if "bits" in given else None, given.get("keep"))
    model_contents.save(target, lambda: small.contents)
    sizes = os.path.getsize(path), os.path.getsize(target) if os.path.isfile(target) else 0
    weights = f"{small.kept:,} of {small.weights:,} weights, in {small.setting.bits} bits"
    output.info(
        f"{target}: {sizes[1] / 1e6:,.2f} MB instead of {sizes[0] / 1e6:,.2f} MB; "
        f"{weights if small.weights else 'it lacks what only learning needs'}"
    )
    if before is not None:
        with thread_limit.limited(given.get("threads")):
            after = shrinking.loss(target, source)
        name = " ".join(source.data)
        output.info(f"{before.name} on {name}: {before.value:.6f} before, {after.value:.6f} after")
        if before.wrong is not None and after.wrong is not None:
            p = significance.paired(before.wrong, after.wrong, 0.95).p
            output.info(f"p = {p:.2g} by McNemar's test: the probability of such a difference by chance")
        if before.log_loss is not None and after.log_loss is not None:
            output.info(f"log loss on {name}: {before.log_loss:.6f} before, {after.log_loss:.6f} after")
    return 0


def read_size(text: str) -> int:
    """Return the number of bytes that a size such as `50M`, `1.5G`, `800K` or `200000` says."""
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)([KMG]?)B?", text.strip().upper())
    if match is None or not 0 < float(match[1]) < 1e15:
        raise UsageError(f"--size {text}: it is not a size; give a number of bytes, with K, M or G, such as 50M")
    return int(float(match[1]) * UNITS[match[2]])
