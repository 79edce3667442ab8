"""List the options of a run and of a subcommand, and add those that a command line or the first labels imply."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..options import files
from ..options import words as option_words
from ..options.declare import Option, OptionGroup, options_of, taken
from ..system import output_file
from ..text.label_detection import LabelDetector, shown
from ..text.malformed import LEARN_LISTS

if TYPE_CHECKING:  # importing these takes time
    from ..api.configuration import Config
    from ..api.model_contents import ModelContents
    from ..reductions.core.base import ReductionRecord
    from ..text import reader

NUMBERS_ANYWAY = (
    "labels look like classes, and --{option} without a reduction means learning numbers; to learn classes, leave it "
    "out"
)
FIRST_LIST = "labels are lists, the first of them {!r}"
DECIMALS = "the decimals of a number follow a point"
BINARY_CLASSES = "--binary predicts -1 or 1, and the labels look like classes; to learn classes, leave it out"
BINARY_NUMBERS = "; to learn from the labels as numbers, give --loss_function squared as well"
LOSSES_OF_TWO = ("logistic", "hinge")  # losses of labels -1 and 1; any other one of --loss_function asks for numbers


def option_groups(
    names: Collection[str] | None = None,
) -> tuple[dict[str, type[OptionGroup]], Sequence[ReductionRecord]]:
    """Return `groups_of` the reductions with these names, by default of all, and their `ReductionRecord` records."""
    from ..reductions import registry

    names = registry.all_names() if names is None else names
    return groups_of(names), registry.records(names)


def groups_of(names: Collection[str]) -> dict[str, type[OptionGroup]]:
    """Return the classes of options by the names of their groups, with those of the reductions with these names."""
    from ..api import configuration
    from ..cache import source as cache
    from ..cluster import options as cluster
    from ..reductions import presets
    from ..run import options as run
    from ..run import passes
    from ..text import reader

    groups: dict[str, type[OptionGroup]] = {
        "multiclass": presets.PresetOptions,
        "run": run.RunOptions,
        "reader": reader.ReaderOptions,
        "cache": cache.CacheOptions,
        "passes": passes.PassOptions,
        "shuffle": run.ShuffleOptions,
        "inspect": run.InspectOptions,
        "timing": run.TimingOptions,
        "cluster": cluster.ClusterOptions,
        "results": run.ResultOptions,
    }
    of_learners = configuration.option_groups(names)
    groups.update({group: options for group, options in of_learners.items() if group not in groups})
    return groups


def resolved(given: Mapping[str, Any], contents: ModelContents | None) -> Config:
    """Resolve the options of a run from those in `given`, field -> value, and the contents of the model of -i."""
    from ..api import configuration
    from ..run.options import use_of

    stored = None if contents is None else contents.options
    return configuration.resolved(given, stored, use_of, given.get("initial_regressor", ""), groups_of)


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
    reductions: Sequence[ReductionRecord],
    peeked: reader.Peeked,
    first_lines: Callable[[], tuple[str, Sequence[bytes]]] | None = None,
) -> list[str]:
    """Add to `given` the reduction and --learn_names if the other options or the first labels of the data imply them.

    `peeked` gets what is taken from data that can be read only once to detect the type of the labels. `first_lines`
    returns the first file and its first lines, read on another machine; None for reading them in this process. Return
    messages for the user about what was detected.
    """
    from ..cache import source as cache
    from ..formats import detect
    from ..reductions import presets, registry
    from ..text import reader

    if given.get("no_stdin") or (not given.get("data") and "cache_file" in given and cache.no_input()):
        return []
    if any(name in given for name in ("initial_regressor", "testonly", "vw_exact")):
        return []
    owners = {name: {group for group in groups if name in options_of(groups[group])} for name in given}
    names = set(registry.all_names())
    loss_of_two = given.get("loss_function") in (None, *LOSSES_OF_TWO)
    names_given = "named_labels" in given or "learn_names" in given
    classes_known = bool((names | {"multiclass", "hsm"}) & given.keys())
    # whether no option belongs to other reductions alone
    may_be_lists = not classes_known and all(presets.LISTS in own or not names & own for own in owners.values())

    def detected(only_names: bool = False) -> LabelDetector:
        """Return what the labels of the first lines are."""
        first: reader.Peeked | Sequence[bytes] = peeked
        options = reader.ReaderOptions(
            **{name: given[name] for name in options_of(reader.ReaderOptions) if name in given}
        )
        if first_lines is not None and options.data:
            path, first = first_lines()
            options = dataclasses.replace(options, data=(path,))  # of a pattern
        lists = any(record.labels == "multilabel" and record.name in given for record in reductions)
        either = may_be_lists or not only_names
        labels = detect.detected(options, first, "indexing" in given, lists, only_names, either)
        if labels.list and not may_be_lists:
            raise UsageError(f"{FIRST_LIST.format(shown(labels.list))}; {LEARN_LISTS}; {DECIMALS}")
        return labels

    def learn_lists(labels: LabelDetector) -> list[str]:
        """Add the reduction that learns lists of labels, and return the note about them."""
        named = labels.names_in_list and not names_given
        given.update({presets.LISTS: 0, **({"learn_names": True} if named else {})})
        words = f"--{presets.LISTS}{' --learn_names' if named else ''}"
        note = f"{FIRST_LIST.format(shown(labels.list))}: learning lists of labels, as with {words}"
        return [note if labels.names_in_list else f"{note}; {DECIMALS}"]

    implied: dict[str, object] = {}
    if not classes_known:
        if any(names & own and presets.PROPOSED not in own for own in owners.values()):
            # an option of another reduction, or of the binary learner alone
            if may_be_lists and (labels := detected()).list:
                return learn_lists(labels)
            if "binary" in given and loss_of_two and (labels := detected()).classes:
                raise UsageError(f"{BINARY_CLASSES}{'' if labels.name else BINARY_NUMBERS}")
            return []
        classes_known = names_given or any({presets.PROPOSED, "listing_options"} & own for own in owners.values())
        if classes_known:
            implied["multiclass"] = 0
        elif not loss_of_two:
            return []
        else:
            proposed = next((record for record in reductions if record.name == presets.PROPOSED), None)
            common = {"loss_function", *((proposed.learner_options or ()) if proposed else ())} - {"sgd"}
            if numeric := [name for name in given if "learner" in owners[name] and name not in common]:
                labels = detected()
                if labels.list:
                    return learn_lists(labels)
                return [NUMBERS_ANYWAY.format(option=numeric[0])] if labels.classes else []
    if classes_known and names_given and not may_be_lists:
        given.update(implied)
        return []
    labels = detected(only_names=classes_known)
    if may_be_lists and labels.list:
        return learn_lists(labels)
    if labels.classes and not classes_known:
        implied["multiclass"] = 0
    if labels.name and not (classes_known and names_given):
        implied["learn_names"] = True
    given.update(implied)
    note = "" if classes_known and names_given else labels.note()
    return [note] if note else []


def read(words: Sequence[str], usage: str, declared: Mapping[str, Option]) -> dict[str, Any]:
    """Return the options and arguments in the words of a subcommand, field -> value, after checking their files."""
    given, others = option_words.read(declared, words, help=f"{' '.join(usage.split()[:2])} --help")
    if others:
        takes_model = any("-i" in option.flags for option in declared.values())
        model = f", or a model as -i {others[0]}" if takes_model else ""
        raise UsageError(f"{others[0]!r} belongs to no option; give data as -d {others[0]}{model}; usage: {usage}")
    for name, option in declared.items():
        if option.needed and not given.get(name):
            raise UsageError(f"{option.needed}; usage: {usage}")
    files.check(declared, given)
    return given


def of_data(help: str) -> dict[str, Option]:
    """Return the options of the data, by field name; `help` says what -d is."""
    from ..text import reader

    options = options_of(reader.ReaderOptions)
    return {**options, "data": dataclasses.replace(options["data"], help=help, default_text=None)}


def take_data(given: dict[str, Any], others: str = "") -> reader.ReaderOptions:
    """Take the options of the data out of `given`, field -> value, and return them.

    `others` is an option of further data that are read in the same way.
    """
    from ..text import reader

    if "data" not in given and others not in given:
        for name in ("threads", *options_of(reader.ReaderOptions)):
            if name in given:
                raise UsageError(f"--{name} has no effect: no data are read; leave it out, or give data with -d FILE")
    return taken(given, reader.ReaderOptions)
