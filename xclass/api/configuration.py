"""Resolve the options of a learner and build the spec that its reduction is constructed from.

    keywords of `Learner`, or options of a model file  ->  Config  ->  LearnerSpec

The command line uses the same functions: it adds the options of a run, and a function that returns how the run uses its
learner.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..binary import gd
from ..data import class_names, feature_names, interactions, namespaces, texts
from ..data.feature_names import Hashing
from ..errors import UsageError
from ..model import model_header
from ..options import resolve as options_resolve
from ..options import words
from ..options.declare import Option, OptionGroup, allowed_values, from_stored, option, options_of
from ..options.resolve import SCALAR, resolve
from ..options.spelling import Spelling, suggestion
from ..reductions import presets, registry
from ..reductions.core import base, probabilities
from ..reductions.core.base import ReductionRecord
from ..reductions.core.spec import LabelRange, LearnerSpec, LearnerUse
from ..text import label_words, parser, reader

Config: TypeAlias = options_resolve.Config[ReductionRecord]

OF_FILES = (*reader.ReaderOptions().meaning(),)  # options of the data that are arguments of `Learner.learn_file`
OF_A_RUN: tuple[tuple[str, str], ...] = (
    # flags of options that only a run of the command has, what a program does instead
    ("-d --data -c --cache --cache_file -k --kill_cache --no_stdin", "call learn_file(path) or learn_many(X, y)"),
    (" ".join(f"--{name}" for name in OF_FILES), "call learn_file(path, format=...)"),
    ("-i --initial_regressor --preserve_performance_counters", "call xclass.load(path)"),
    ("-t --testonly", "call predict() or predict_many()"),
    ("-f --final_regressor --save_per_pass --checkpoint", "call save(path)"),
    ("-p --predictions", "learn(), learn_many(), predict() and predict_many() return the predictions"),
    ("-r --raw_predictions --raw_order", "call scores()"),
    ("-P --progress --quiet --timing", "see average_loss; nothing is printed"),
    ("--summary --curve --per_class --errors --most_errors", "call evaluate(path), or compare predictions and labels"),
    ("--passes", "call learn_file(path, passes=N), or learn_many() and end_pass() for each pass"),
    (
        "--holdout_off --holdout_period --holdout_after --early_terminate --keep_last --save_last_pass",
        "compare models by evaluate(path); no examples are held out",
    ),
    (
        "--initial_pass_length --examples --shuffle",
        "pass the examples to learn_many() that are to be learned, in order",
    ),
    ("--explain --explain_file --explain_format --explain_features", "call explain(example, k)"),
    (
        "--readable_model --invert_hash -a --audit --print_tree --dot_tree --tree_levels",
        "call save(path), and give the model to the command",
    ),
    (
        "--workers --ray --sync_every --ray_timeout --resume_run",
        "call xclass.ray.fit(paths, learner, workers=N)",
    ),
    ("--threads", "limit the processors of the process by os.sched_setaffinity"),
    ("--top_k", "call predict(example, k) or predict_many(X, k)"),
    ("--probabilities --calibration --perplexity", "call probabilities(X)"),
    ("--save_tree", "give the option to the command"),
)
CALLS = {  # flags of the command in messages that a program gets, and what has their place there
    "-d": "learn_file()", "-i": "load()", "-t": "predict_many()", "-f": "save()", "--base": "base", "--top_k": "k",
    "--passes": "passes",
}  # fmt: skip

SEED = option("seed of all random choices", default=0, minimum=0, maximum=2**64 - 1, metavar="SEED", stored=True)
EXACT = option("use VW's defaults and behaviour; predictions agree with VW's to the digit")
BITS_IF_GROWING = 24  # bits of a feature's index if tables begin with at least 2**LEAST_BITS_IF_GROWING slots and grow
LEAST_BITS_IF_GROWING = 20
MOST_TEXT = model_header.HEADER_LIMIT // 2  # bytes of the texts of options in a model file
MANY_COLUMNS = 64  # of rows of numbers, from which some reductions learn badly


class LearnerOptions(OptionGroup):
    """Declare the options of a learner that belong to no other module."""

    random_seed: int = SEED
    vw_exact: bool = EXACT


NEW_LEARNER, LOADED_LEARNER = LearnerUse(), LearnerUse(loaded=True)


def option_groups(names: Collection[str] | None = None) -> dict[str, type]:
    """Return the `LearnerOptions` dataclasses of a learner by the names of their groups, in the order of the help.

    They are those of the reductions with these names, by default of all.
    """
    groups: dict[str, type] = {
        "multiclass": presets.PresetOptions,
        "run": LearnerOptions,
        "parser": parser.ParserOptions,
        "features": namespaces.NamespaceOptions,
        "interactions": interactions.InteractionOptions,
        "learner": gd.BinaryOptions,
        "listing_options": probabilities.ListingOptions,
    }
    reductions = registry.records(registry.all_names() if names is None else names)
    groups.update({record.name: record.options for record in reductions})
    return groups


def spec_of(config: Config) -> LearnerSpec:
    """Return the spec that the chosen reduction is built from."""
    visible = (
        config.reduction.options,
        gd.BinaryOptions,
        probabilities.ListingOptions,
        LearnerOptions,
        presets.PresetOptions,
    )
    return LearnerSpec(
        **{**vars(config.use), "listing_options": config.listing_options},
        name=config.reduction.name,
        options=getattr(config, config.reduction.name),
        binary=config.learner,
        given=config.given & {name for group in visible for name in options_of(group)},
        seed=config.run.random_seed,
        names=tuple(config.parser.label_names()),
        learn_names=config.parser.learn_names,
        constant=not config.parser.noconstant,
        any_label=config.parser.on_bad_line == "vw",
        vw_exact=config.run.vw_exact,
    )


def _title(config: Config) -> str:
    name = chosen_name(config)
    return "regression" if name == SCALAR else f"--{name}"


def dense_of(config: Config) -> str:
    """Return what becomes of the dense block of a batch, see `base.TAKEN`."""
    record = config.reduction
    takes = record.rows_with and getattr(getattr(config, record.name), record.rows_with)
    return base.TAKEN if takes else record.dense


def note_about_rows(config: Config, columns: int, named: bool = False) -> str:
    """Return a warning about rows of numbers that a reduction hashes although it makes many errors then, or nothing.

    `named` says whether they are dictionaries, which all reductions hash.
    """
    dense = dense_of(config)
    if columns < MANY_COLUMNS or dense == base.HASHED or (dense == base.TAKEN and not named):
        return ""
    if dense == base.TAKEN:
        return (
            f"the examples are dictionaries of the same {columns} numbers, which are hashed; give an array, from whose "
            f"rows {_title(config)} learns with fewer errors"
        )
    return (
        f"the examples are rows of {columns} numbers, from which {_title(config)} is known to learn badly, because all "
        "examples have the same features; try --means or --multiclass"
    )


def feature_bits(config: Config) -> int:
    """Return the number of bits to which hashes of features are cut: -b, but more if the tables grow beyond it."""
    bits: int = config.learner.bits
    grows = getattr(getattr(config, config.reduction.name), "max_doublings", None)
    return max(bits, BITS_IF_GROWING) if grows and bits >= LEAST_BITS_IF_GROWING else bits


def parser_of(config: Config, labels: LabelRange, names: class_names.Names, learning: bool = False) -> parser.Parser:
    """Return a parser of examples for a learner that accepts these labels; `learning` is as in `Parser`."""
    made = parser.Parser(config.parser, feature_bits(config), config.reduction.labels, *labels, names)
    made.learning = learning
    return made


def hashing(config: Config, identity: bool = False, vw_text: bool = False) -> Hashing:
    """Return how names of features are hashed; the other arguments are those of `Inputs`."""
    given = config.parser
    return feature_names.new_hashing(given.hash_seed, given.hash == "all", feature_bits(config), identity, vw_text)


def with_defaults(config: Config) -> Config:
    """Check the options of the chosen reduction and compute the defaults that depend on other options and the use."""
    spec = spec_of(config)
    config.reduction.check(spec)
    if config.parser.dense and dense_of(config) != base.TAKEN:
        raise UsageError(
            f"--dense: {_title(config)} learns from hashed features, and takes no rows of numbers as they are; use "
            "--multiclass or --means, or leave --dense out, so that they are hashed"
        )
    names, classes = len(spec.names), spec.classes
    if classes and not grows(config.reduction) and (names > classes or (0 < names < classes and not spec.learn_names)):
        advice = "at least as many classes" if spec.learn_names else "as many names as classes"
        raise UsageError(f"--{spec.name} {classes} is given, but --named_labels lists {names} names; give {advice}")
    of_texts = texts.resolved(config.parser, other_grams=bool(config.features.ngram))
    config = config.with_values({**of_texts, **config.reduction.resolve_defaults(spec)})
    _check_lengths(config)
    return config


def _check_lengths(config: Config) -> None:
    """Raise UsageError if the texts of the options are so long that the header of a model file cannot hold them."""
    stored = {**config.stored(), "named_labels": None}  # which are an array of the file
    if len(json.dumps(json.dumps(stored))) > MOST_TEXT:
        lengths = {name: len(json.dumps(json.dumps(value))) for name, value in stored.items()}
        longest = max(lengths, key=lengths.__getitem__)
        raise UsageError(
            f"--{longest}: its values take {lengths[longest]:,} bytes in a model, and all options at most "
            f"{MOST_TEXT:,}; give fewer or shorter values"
        )


def label_range(config: Config) -> LabelRange:
    """Return the range of labels that the chosen reduction accepts."""
    return LabelRange(*(config.reduction.label_range(spec_of(config)) or ()))


def configured(
    reduction: str, classes: int | str | None, options: Mapping[str, Any], use: LearnerUse = NEW_LEARNER
) -> Config:
    """Resolve the options of a new learner, by field, with the checks of the command line.

    `reduction` may name a preset; `classes` is the value of its option, None if it is not given.
    """
    known = reductions()
    if reduction not in known:
        hint = suggestion(reduction, known) if isinstance(reduction, str) else ""
        raise UsageError(f"{reduction!r} is not a reduction{hint}; the reductions are {', '.join(known)}")
    given = registry.read_for_chosen([reduction], lambda names: _checked(names, reduction, classes, options))
    return resolved(given, None, lambda _: use)


def _checked(
    names: Collection[str], reduction: str, classes: int | str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a new learner, by field, after a check of each; they are those of reductions `names`."""
    declared, known = declared_options(names), reductions()
    aliases = {alias.lstrip("-"): name for name, option in declared.items() for alias in option.aliases}
    given: dict[str, Any] = {}
    for keyword, value in options.items():
        name = aliases.get(keyword, keyword)
        _refuse_option_of_run(name, f"--{name}")
        if name in known:
            raise UsageError(f"a reduction is not chosen by an option; give reduction={name!r}")
        if name not in declared:
            raise UsageError(f"there is no option {name!r}{_option_hint(name, declared, known)}")
        if name in given:
            raise UsageError(f"{keyword} is another name of {name}; give it once")
        given[name] = checked_value(f"--{keyword}", declared[name], value)
    if (given.get("named_labels") or "").startswith("@"):
        given["named_labels"] = label_words.read_names(given["named_labels"][1:])
    if reduction != SCALAR:
        own = declared[reduction]
        if classes is None and own.minimum != 0:
            needed = "the number of classes, such as classes=10" if own.kind is int else f"{own.metavar}: {own.help}"
            raise UsageError(f"classes: {reduction!r} needs {needed}")
        given[reduction] = checked_value("classes", own, (classes or 0) if own.kind is int else str(classes))
    elif classes is not None:
        raise UsageError("classes: 'scalar' learns numbers; choose another reduction for classes")
    return given


def of_words(command: str | Sequence[str], reduction: str) -> tuple[str, int | str | None, dict[str, Any]]:
    """Return the arguments of `configured` from a command line, as one text or as words.

    `reduction` is the reduction or preset if the words name none.
    """
    try:
        listed = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise UsageError(f"{command!r} cannot be split into words ({error}); close every quotation") from None
    declared = options_of_learner()
    try:
        given, others = words.read(declared, listed)
    except words.UnknownOption as error:
        _refuse_option_of_run(error.flag, error.flag)
        raise
    if others:
        raise OptionOfRun(others[0], "-d", "files go to learn_file(path)")
    return chosen(given, reduction)


def chosen(given: Mapping[str, Any], reduction: str) -> tuple[str, int | str | None, dict[str, Any]]:
    """Return the arguments of `configured` for options of a command line, by field.

    `reduction` is the reduction or preset if the options name none.
    """
    options = dict(given)
    named = [name for name in reductions() if name in options]
    if len(named) > 1:
        raise UsageError(f"--{named[0]} and --{named[1]} exclude each other: choose one reduction")
    if not named:
        return reduction, None, options
    return named[0], options.pop(named[0]) or None, options


class OptionOfRun(UsageError):
    """Report an option that belongs to a run of the command; `advice` says what a program calls instead.

    `name` is the option as it was given, and `flag` its flag.
    """

    def __init__(self, name: str, flag: str, advice: str) -> None:
        super().__init__(f"{name} belongs to a run of the command; {advice}")
        self.name, self.flag, self.advice = name, flag, advice

    def of_attribute(self, attribute: str, own: Mapping[str, str] = MappingProxyType({})) -> UsageError:
        """Return the error for an object that has its learner as an attribute, and what it calls for some flags."""
        advice = own.get(self.flag) or f"the attribute {attribute} is a Learner: {self.advice}"
        return UsageError(f"{self.name!r} belongs to a run of the command; {advice}")


def _refuse_option_of_run(name: str, flag: str) -> None:
    """Raise OptionOfRun, with `name` in its message, if the option with this flag belongs to a run of the command."""
    for flags, advice in OF_A_RUN:
        if flag in flags.split():
            raise OptionOfRun(name, flag, advice)


def options_of_learner() -> dict[str, Option]:
    """Return the options of a learner that do not belong to a run of the command, by field name."""
    of_run = {flag for flags, _ in OF_A_RUN for flag in flags.split()}
    return {name: option for name, option in declared_options().items() if option.flags[0] not in of_run}


def declared_options(names: Collection[str] | None = None) -> dict[str, Option]:
    """Return all options that a learner of the reductions with these names, by default of all, can have, by field."""
    return {name: declared for group in option_groups(names).values() for name, declared in options_of(group).items()}


def of_model(
    path: str,
    stored: Mapping[str, Any],
    given: Mapping[str, Any] = MappingProxyType({}),
    use: LearnerUse = LOADED_LEARNER,
) -> Config:
    """Resolve the options `stored` in a model file, by field, and `given` ones that it does not store."""
    return resolved(given, stored, lambda _: use, path)


def resolved(
    given: Mapping[str, Any],
    stored: Mapping[str, Any] | None,
    use: Callable[[Config], LearnerUse],
    model: str = "",
    groups: Callable[[Collection[str]], Mapping[str, type[OptionGroup]]] = option_groups,
) -> Config:
    """Resolve the options of a learner or of a run, which are `given` or `stored` in a model of this name, by field.

    `groups` returns the option groups with those of the reductions of these names, and `use` how the learner is used.
    """

    def of_reductions(names: Collection[str]) -> Config:
        return resolve(
            given,
            stored,
            groups(names),
            registry.records(names),
            model=model,
            presets=presets.PRESETS,
            resolve_defaults=lambda config: with_defaults(config.with_values({}, use(config))),
        )

    return registry.read_for_chosen([*given, *(stored or {})], of_reductions)


def chosen_name(config: Config) -> str:
    """Return the name of the reduction, or of the preset by which the user has chosen it.

    A model file has no name of a preset, so a learner that was loaded has that of the preset whose options it has.
    """
    made = {name: preset for name, preset in presets.PRESETS.items() if callable(preset)}
    chosen = [name for name in made if name in config.given]
    if not chosen:
        stored = config.stored()
        classes = stored.get(config.reduction.name)
        if isinstance(classes, int):
            chosen = [name for name, preset in made.items() if preset(classes).items() <= stored.items()]
    return chosen[0] if chosen else config.reduction.name


def checked_value(name: str, option: Option, value: Any) -> Any:
    """Return a value that a program gives after the checks of the command line; `name` is for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if option.repeated:
        values = [value] if isinstance(value, (str, int)) else list(value)
        value = [str(word) if isinstance(word, int) else word for word in values]
    try:
        return from_stored(option, value)
    except ValueError:
        meant = suggestion(value, option.choices or ()) if isinstance(value, str) else ""
        raise UsageError(f"{name}: {value!r} is not {allowed_values(option)}{meant}") from None


def _option_hint(word: str, declared: Mapping[str, Option], known: Sequence[str]) -> str:
    """Return a suggestion with the option that has this command-line flag, or else the most similar name."""
    for name, declaration in declared.items():
        if word in (flag.lstrip("-") for flag in declaration.flags):
            return f"; did you mean {name!r}?"
    return suggestion(word, set(declared) - set(known))


def keywords(complete: bool) -> dict[str, str]:
    """Return the keywords and arguments of `Learner` by the flags of the command, see `Spelling`.

    Unless they are to be `complete`, the options are those of the reductions that are imported.
    """
    names: dict[str, str] = {}
    for name, declared in declared_options(None if complete else registry.imported()).items():
        names.update((flag, name) for flag in (f"--{name}", *declared.flags))
        names.update((flag, flag.lstrip("-")) for flag in declared.aliases)
    for name in reductions():
        names.update({f"--{name}": name, f"--{name} N": "classes", f"--{name} K": f'Learner("{name}", classes=K)'})
    names.update((flag, f"the command's {flag}") for flags, _ in OF_A_RUN for flag in flags.split())
    return {**names, **{f"--{name}": name for name in OF_FILES}, **CALLS}


KEYWORDS = Spelling(keywords)


def record_of(reduction: object) -> ReductionRecord | None:
    """Return the record of the reduction that a name of a reduction or preset chooses, None for any other object."""
    names = registry.chosen([reduction]) if isinstance(reduction, str) else set()
    chosen = registry.records(names - {SCALAR} if reduction != SCALAR else names)
    return chosen[0] if chosen else None


def grows(record: ReductionRecord) -> bool:
    """Return whether a reduction takes any number of classes, so that it need not be known."""
    option = options_of(record.options)[record.name]
    return option.minimum == 0 or option.kind is not int


def reductions() -> list[str]:
    """Return the names that `Learner` accepts as `reduction`."""
    return registry.all_names() + [name for name, preset in presets.PRESETS.items() if callable(preset)]
