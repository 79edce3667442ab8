"""Resolve the value of every option, and refuse contradictions and options without effect.

The value of an option comes from the first of these that has one: the command line, the model loaded with `-i`, a
preset that the user chose, the default of the option. The chosen reduction computes some defaults from other options
(`resolve_defaults`). An option that has no effect or contradicts the model is a usage error here, so that other modules
need not know where a value came from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ..errors import ModelError, UsageError
from . import relations
from .declare import Option, OptionGroup, from_stored, long_flag, options_of

Values = Mapping[str, object]  # field -> value
OptionGroups = Mapping[str, type[OptionGroup]]  # group -> its `Options` dataclass
Owners = Mapping[str, Mapping[str, Option]]  # field -> group -> option
Presets = Mapping[str, Values | Callable[[Any], Values]]  # preset -> values, or a function of the preset's own value


class ReductionRecord(Protocol):
    """Describe the attributes of a reduction that this module uses, see `reductions.core.base.Reduction`."""

    @property
    def name(self) -> str: ...

    @property
    def probabilities(self) -> bool: ...


Record = TypeVar("Record", bound=ReductionRecord)


SCALAR = "scalar"  # the reduction if none is chosen: the binary learner alone


class Config(Generic[Record]):
    """Hold the value of every option, by group: `config.learner.bits`.

    Attributes
    ----------
    given : names of the options that the user typed
    reduction : the chosen `Reduction`, by default the one named "scalar"
    adjusted : messages about options that have another value than the model of `-i` was trained with, or no effect
    <group> : one attribute per group, an instance of its `Options`; the group of a reduction that was not chosen has
        its defaults
    """

    def __init__(
        self,
        groups: Mapping[str, OptionGroup],
        given: frozenset[str],
        reduction: Record,
        unchosen: frozenset[str],
        facts: Values,
        adjusted: Sequence[str] = (),
    ) -> None:
        self.given = given
        self.reduction = reduction
        self.adjusted = tuple(adjusted)
        self._facts = facts  # for the rules of `relations`
        self._groups = dict(groups)
        self._unchosen = unchosen  # names of the reductions that were not chosen

    def __getattr__(self, group: str) -> Any:
        try:
            return self.__dict__["_groups"][group]
        except KeyError:
            raise AttributeError(f"no group is called {group!r}") from None

    def values(self) -> dict[str, object]:
        """Return the value of every option by field name, without those of reductions that were not chosen."""
        return {name: getattr(self._groups[group], name) for name, group, _ in self._all_options()}

    def stored(self) -> dict[str, object]:
        """Return the options for a model file: the JSON value of every option marked `stored`, by field name."""
        stored = {}
        for name, group, option in self._all_options():
            if option.stored:
                value = getattr(self._groups[group], name)
                stored[name] = list(value) if isinstance(value, tuple) else value
        return stored

    def with_values(self, changed: Values) -> Config[Record]:
        """Return a copy in which the options in `changed`, field -> value, have these values."""
        groups = dict(self._groups)
        for name, group, _ in self._all_options():
            if name in changed:
                groups[group] = dataclasses.replace(groups[group], **{name: changed[name]})
        return Config(groups, self.given, self.reduction, self._unchosen, self._facts, self.adjusted)

    def related(self) -> tuple[str, ...]:
        """Return the warnings about the options; raise UsageError if a rule refuses one, see `relations`."""
        used = (values for group, values in self._groups.items() if group not in self._unchosen)
        rules = (rule for values in used for rule in getattr(values, "RULES", ()))
        options = {name: option for name, _, option in self._all_options()}
        return relations.check(rules, {**self.values(), **self._facts}, options)

    def _all_options(self) -> list[tuple[str, str, Option]]:
        """Return (field, group, option) of every option, without those of reductions that were not chosen."""
        return [
            (name, group, option)
            for group, values in self._groups.items()
            if group not in self._unchosen
            for name, option in options_of(type(values)).items()
        ]


def resolve(
    given: Values,
    stored: Values | None,
    groups: OptionGroups,
    reductions: Sequence[Record],
    *,
    model: str = "the model",
    presets: Presets,
    resolve_defaults: Callable[[Config[Record]], Config[Record]],
) -> Config[Record]:
    """Resolve the value of every option.

    Parameters
    ----------
    given : the options that the user typed, field -> value
    stored : the options in the model that `-i` loads (`Config.stored`), or None without `-i`
    groups : group -> its `Options` dataclass; the group of a reduction has the name of the reduction
    reductions : all `Reduction` records, including the one named "scalar"
    model : name of the model file in messages
    presets : preset -> its values, or a function that returns them, see `Presets`
    resolve_defaults : function that checks the options of the chosen reduction and computes the defaults that depend
        on other options
    """
    owners: dict[str, dict[str, Option]] = {}  # field -> group -> option
    for group, declared in groups.items():
        for name, option in options_of(declared).items():
            owners.setdefault(name, {})[group] = option
    records = {record.name: record for record in reductions}
    if stored is None:
        return _resolve(given, {}, False, groups, records, owners, model, presets, resolve_defaults)
    stored = _checked(stored, owners, records, model)
    try:  # first without the typed options, so that contradictions within the model are reported as errors of the model
        model_option = {"initial_regressor": model} if "initial_regressor" in owners else {}
        _resolve(model_option, stored, True, groups, records, owners, model, presets, resolve_defaults)
    except UsageError as error:
        raise ModelError(f"{model}: its options contradict each other: {error}. {REMEDY}") from None
    return _resolve(given, stored, True, groups, records, owners, model, presets, resolve_defaults)


REMEDY = "Train the model again, or take another copy of the file"


def _checked(stored: Values, owners: Owners, records: Mapping[str, ReductionRecord], model: str) -> Values:
    """Check the options of a model file, which may come from an untrusted source, and return them: field -> value.

    Only options that are declared `stored` are accepted. Any other option would let the file choose which files a run
    reads and writes.
    """
    for name in stored:
        if name not in owners:
            printable_name = ascii(name)[1:-1][:LONGEST_VALUE]
            raise ModelError(f"{model} was written with an option --{printable_name}, which this xclass does not know")
    of_model = [name for name in records if name in owners and stored.get(name) is not None]
    if len(of_model) > 1:
        raise ModelError(
            f"{model}: it holds both --{of_model[0]} and --{of_model[1]}, and a model has one reduction. {REMEDY}"
        )
    chosen = (of_model or [SCALAR])[0]
    options: dict[str, object] = {}
    for name, value in stored.items():
        groups = {group: option for group, option in owners[name].items() if group not in records or group == chosen}
        option = next(iter(groups.values()), None)
        if option is None or not option.stored:
            flag = long_flag(next(iter(owners[name].values())))
            problem = "belongs to another reduction" if option is None else "belongs to a run and not to a model"
            raise ModelError(f"{model}: it holds a value of {flag}, which {problem}. {REMEDY}")
        try:
            options[name] = from_stored(option, value)
        except ValueError as error:
            raise ModelError(f"{model}: its {long_flag(option)} is damaged: {error}. {REMEDY}") from None
    missing = [name for name in REQUIRED if name in owners and options.get(name) is None]
    if missing:
        raise ModelError(f"{model}: it has no {long_flag(next(iter(owners[missing[0]].values())))}. {REMEDY}")
    return options


REQUIRED = ("bits",)  # must be in a model, because its default depends on the machine; others have fixed defaults


def _resolve(
    given: Values,
    stored: Values,
    loaded: bool,
    groups: OptionGroups,
    records: Mapping[str, Record],
    owners: Owners,
    model: str,
    presets: Presets,
    resolve_defaults: Callable[[Config[Record]], Config[Record]],
) -> Config[Record]:
    """Resolve the value of every option as `resolve` does, with options of a model that are already checked."""
    preset: dict[str, object] = {}
    reduction_of_preset: dict[str, str] = {}  # preset that was typed -> the reduction that it chooses
    for name, preset_value in presets.items():
        if name in given:
            values_of_preset = preset_value(given[name]) if callable(preset_value) else preset_value
            preset.update(values_of_preset)
            for reduction in records.keys() & values_of_preset.keys():
                reduction_of_preset[name] = reduction
    chosen = _choose(given, stored, loaded, records, owners, model, reduction_of_preset)
    _refuse_other_reductions(given, loaded, records, owners, chosen, model)
    _refuse_without_probabilities(given, groups, records, chosen)
    adjusted = _refuse_contradiction(given, stored, owners, chosen, model)
    if loaded and reduction_of_preset:
        _refuse_other_preset(next(iter(reduction_of_preset)), preset, given, stored, owners, chosen, model)

    built = {}
    for group, declared in groups.items():
        values: dict[str, object] = {}
        for name in options_of(declared):
            if group in records and group != chosen:
                continue
            for source in (given, stored, preset):
                if name in source:
                    values[name] = source[name]
                    break
        built[group] = declared(**values)

    unchosen = frozenset(group for group in groups if group in records and group != chosen)
    typed = frozenset(given)
    facts = {"given": typed, "loaded": loaded, "reduction": next(iter(reduction_of_preset), chosen)}
    config = Config(built, typed, records[chosen], unchosen, facts, adjusted)
    config.adjusted += config.related()
    return resolve_defaults(config)


LONGEST_VALUE = 200  # characters of a value in a message


def as_typed(declared: Option, value: object) -> str:
    """Return an option and its value as they are written on a command line."""
    flag = long_flag(declared)
    if declared.kind is bool:
        return flag
    if declared.value_if_bare is not None and value == declared.value_if_bare:
        return flag
    values = value if isinstance(value, tuple) else (value,)
    texts = [format(v, "g") if isinstance(v, float) and float(format(v, "g")) == v else str(v) for v in values]
    texts = [v if len(v) <= LONGEST_VALUE else v[:LONGEST_VALUE] + "..." for v in texts]
    return " ".join(f"{flag} {v}" for v in texts)


def _choose(
    given: Values,
    stored: Values,
    loaded: bool,
    records: Mapping[str, ReductionRecord],
    owners: Owners,
    model: str,
    reduction_of_preset: Mapping[str, str],
) -> str:
    """Return the name of the chosen reduction, after checking that there is only one and that it is the model's."""
    requested = [name for name in records if name in owners and given.get(name) is not None]
    if len([*requested, *reduction_of_preset]) > 1:
        first, second = (_typed(owners, given, name) for name in [*requested, *reduction_of_preset][:2])
        raise UsageError(f"{first} and {second} exclude each other: choose one reduction")
    requested = requested or list(reduction_of_preset.values())
    of_model = [name for name in records if name in owners and stored.get(name) is not None]
    if loaded and requested and requested != of_model:
        option_typed = _typed(owners, given, requested[0] if requested[0] in given else next(iter(reduction_of_preset)))
        was = " ".join(as_typed(owners[name][name], stored[name]) for name in of_model) or "no reduction"
        raise UsageError(_contradiction(option_typed, model, f"with {was}"))
    return (requested or of_model or [SCALAR])[0]


def _refuse_other_reductions(
    given: Values, loaded: bool, records: Mapping[str, ReductionRecord], owners: Owners, chosen: str, model: str
) -> None:
    """Raise UsageError if an option of a reduction that was not chosen is given."""
    for name in given:
        groups = owners[name]
        if chosen in groups or any(group not in records for group in groups):
            continue
        flag = long_flag(next(iter(groups.values())))
        if set(groups) == {SCALAR}:
            raise UsageError(f"{flag} belongs to the learner without a reduction, and --{chosen} was chosen")
        belongs = " and ".join(f"--{group}" for group in groups if group != SCALAR)
        if loaded:
            trained = "without a reduction" if chosen == SCALAR else f"with --{chosen}"
            raise UsageError(f"{flag} belongs to {belongs}, and {model} was trained {trained}")
        verb = "which was not chosen" if len(groups) == 1 else "and none of them was chosen"
        raise UsageError(f"{flag} belongs to {belongs}, {verb}")


def _refuse_without_probabilities(
    given: Values, groups: OptionGroups, records: Mapping[str, ReductionRecord], chosen: str
) -> None:
    """Raise UsageError if an option needs probabilities and the chosen reduction does not estimate them."""
    if records[chosen].probabilities:
        return
    for name, option in options_of(groups["listing_options"]).items():
        if name in given:
            alternatives = [f"--{record.name}" for record in records.values() if record.probabilities]
            chosen_learner = "the learner without a reduction" if chosen == SCALAR else f"--{chosen}"
            raise UsageError(
                f"{long_flag(option)} needs probabilities of classes, which {chosen_learner} does not estimate; "
                f"choose one of {', '.join(alternatives)}"
            )


def _refuse_contradiction(given: Values, stored: Values, owners: Owners, chosen: str, model: str) -> list[str]:
    """Raise UsageError if a typed option differs from the value that the model was trained with.

    Adjustable options may differ unless `testonly` is given; return a message about each of them.
    """
    adjusted = []
    for name, value in given.items():
        option = owners[name].get(chosen) or next(iter(owners[name].values()))
        if not option.stored or name not in stored or stored[name] == value:
            continue
        if option.kind is bool or stored[name] in (None, ()):
            was = f"without {long_flag(option)}"
        else:
            was = f"with {as_typed(option, stored[name])}"
        if not option.adjustable or given.get("testonly"):
            raise UsageError(_contradiction(as_typed(option, value), model, was))
        adjusted.append(f"continuing with {as_typed(option, value)}; {model} was trained {was}")
    return adjusted


def _refuse_other_preset(
    name: str, preset: Values, given: Values, stored: Values, owners: Owners, chosen: str, model: str
) -> None:
    """Raise UsageError if a preset stands for other values than the model was trained with."""
    for field, value in preset.items():
        option = owners[field].get(chosen) or next(iter(owners[field].values()))
        if field in given or field == chosen or not option.stored or field not in stored or stored[field] == value:
            continue
        was = f"without {long_flag(option)}" if option.kind is bool else f"with {as_typed(option, stored[field])}"
        raise UsageError(_contradiction(_typed(owners, given, name), model, was))


def _typed(owners: Owners, given: Values, name: str) -> str:
    """Return an option that the user typed and its value, as written on a command line."""
    return as_typed(next(iter(owners[name].values())), given[name])


def _contradiction(option_typed: str, model: str, was: str) -> str:
    """Return the message for an option that contradicts the model."""
    return f"{option_typed} disagrees with {model}, which was trained {was}; leave the option out, or train a new model"
