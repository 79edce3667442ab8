"""List the option groups of a run, and add the options that a command line or the first labels imply."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..options import files
from ..options.declare import Option, OptionGroup, options_of
from ..system import output_file
from ..text import label_detection

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import Reduction


def option_groups() -> tuple[dict[str, type[OptionGroup]], Sequence[Reduction]]:
    """Return the `Options` dataclasses by the names of their groups, and the `Reduction` records."""
    from ..api import configuration
    from ..cache import source as cache
    from ..cluster import options as cluster
    from ..reductions import presets, registry
    from ..run import passes, shuffle, timing
    from ..run.inspect import options as inspect
    from ..run.options import Options as RunOptions
    from ..run.results import options as results
    from ..text import reader

    groups: dict[str, type[OptionGroup]] = {
        "multiclass": presets.Options,
        "run": RunOptions,
        "reader": reader.Options,
        "cache": cache.Options,
        "passes": passes.Options,
        "shuffle": shuffle.Options,
        "inspect": inspect.Options,
        "timing": timing.Options,
        "cluster": cluster.Options,
        "results": results.Options,
    }
    groups.update({group: options for group, options in configuration.option_groups().items() if group not in groups})
    return groups, registry.REDUCTIONS


def prepare_files(given: dict[str, Any], declared: Mapping[str, Option]) -> None:
    """Check the files of the options in `given`, field -> value, and read the names of --named_labels.

    The file name `-`, which stands for standard input or output in most commands, is replaced.
    """
    from ..text import label_words

    for name, value in given.items():
        if declared[name].writes and value == "-":
            given[name] = output_file.STDOUT
    if given.get("data") == ("-",):
        del given["data"]  # standard input is read if there are no files
    files.check(declared, given)
    names = given.get("named_labels")
    if names is not None and names.startswith("@"):
        given["named_labels"] = label_words.read_names(names[1:])


def add_implied_options(
    given: dict[str, Any],
    groups: Mapping[str, type[OptionGroup]],
    reductions: Sequence[Reduction],
    peeked: bytearray,
    first_lines: Callable[[], tuple[str, Sequence[bytes]]] | None = None,
) -> list[str]:
    """Add to `given` the reduction and --learn_names if the other options or the first labels of the data imply them.

    `peeked` gets the bytes taken from standard input to detect the type of the labels. `first_lines` returns the first
    file and its first lines, read on another machine; None for reading them in this process. Return messages for the
    user about what was detected.
    """
    from ..cache import source as cache
    from ..formats import detect
    from ..reductions import presets
    from ..text import reader

    owners: dict[str, set[str]] = {}
    for group, declared in groups.items():
        for name in options_of(declared):
            owners.setdefault(name, set()).add(group)
    names = {record.name for record in reductions}
    if given.get("no_stdin") or (not given.get("data") and "cache_file" in given and cache.no_input()):
        return []
    proposed = next(record for record in reductions if record.name == presets.PROPOSED)
    common = set(proposed.learner_options or ()) - {"loss_function", "sgd"}
    from_file = bool(given.get("data"))
    lists = any(record.labels == "multilabel" and record.name in given for record in reductions)

    def examine_lines(labels: label_detection.LabelDetector) -> None:
        """Pass the labels of the first lines to `labels`."""
        options = reader.Options(**{name: given[name] for name in options_of(reader.Options) if name in given})
        lines: Sequence[bytes] | None = None
        if first_lines is not None and from_file:
            path, lines = first_lines()
            options = dataclasses.replace(options, data=(path,))  # of a pattern
        data = detect.FormatLabels(labels, options, "indexing" in given, lists)
        for line in lines or ():
            data.add(line)
        if lines is None:
            reader.peek_labels(given.get("data"), data, peeked)
        data.end()

    implied, note = label_detection.implied_options(
        given,
        owners,
        names,
        presets.PROPOSED,
        presets.LISTS,
        common,
        examine_lines,
        from_file,
    )
    given.update(implied)
    return [note] if note else []
