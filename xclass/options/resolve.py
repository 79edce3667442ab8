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
from .declare import Option, OptionGroup, from_stored, long_flag, options_of
from .no_effect import NO_EFFECT

Values = Mapping[str, object]  # field -> value
OptionGroups = Mapping[str, type[OptionGroup]]  # group -> its `Options` dataclass
Owners = Mapping[str, Mapping[str, Option]]  # field -> group -> option
Presets = Mapping[str, Values | Callable[[Any], Values]]  # preset -> values, or a function of the preset's own value


class Named(Protocol):
    """Describe the attributes of a reduction that this module uses, see `reductions.core.base.Reduction`."""

    @property
    def name(self) -> str: ...

    @property
    def probabilities(self) -> bool: ...


Record = TypeVar("Record", bound=Named)
Declared = TypeVar("Declared", bound=OptionGroup)


SCALAR = "scalar"  # the reduction if none is chosen: the binary learner alone


class Config(Generic[Record]):
    """Hold the value of every option, by group: `config.part(gd.Options).bits`, or `config.learner.bits`.

    Attributes
    ----------
    given : names of the options that the user typed
    reduction : the chosen `Reduction`, by default the one named "scalar"
    adjusted : messages about options that have another value than the model of `-i` was trained with
    <group> : one attribute per group, an instance of its `Options`; the group of a reduction that was not chosen has
        its defaults
    """

    def __init__(
        self,
        groups: Mapping[str, OptionGroup],
        given: frozenset[str],
        reduction: Record,
        idle: frozenset[str],
        adjusted: Sequence[str] = (),
    ) -> None:
        self.given = given
        self.reduction = reduction
        self.adjusted = tuple(adjusted)
        self._groups = dict(groups)
        self._idle = idle  # names of the reductions that were not chosen

    def part(self, declared: type[Declared]) -> Declared:
        """Return the option values of the group with this `Options` class; raise LookupError if there is none."""
        for values in self._groups.values():
            if isinstance(values, declared):
                return values
        raise LookupError(f"no group declares {declared.__module__}.{declared.__qualname__}")

    def __getattr__(self, group: str) -> Any:
        try:
            return self.__dict__["_groups"][group]
        except KeyError:
            raise AttributeError(f"no group is called {group!r}") from None

    def values(self) -> dict[str, object]:
        """Return the value of every option by field name, without those of reductions that were not chosen."""
        return {name: getattr(self._groups[group], name) for name, group, _ in self._declared()}

    def stored(self) -> dict[str, object]:
        """Return the options for a model file: the JSON value of every option marked `stored`, by field name."""
        kept = {name: getattr(self._groups[group], name) for name, group, entry in self._declared() if entry.stored}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}

    def files(self) -> list[tuple[str, str, bool]]:
        """Return the files that options name: the shortest flag, the path, and whether the file is written."""
        files = []
        for name, group, entry in self._declared():
            value = getattr(self._groups[group], name)
            if entry.metavar == "FILE" and value is not None:
                paths = value if isinstance(value, tuple) else (value,)
                files += [(min(entry.flags, key=len), path, not entry.read) for path in paths]
        return files

    def with_values(self, found: Values) -> Config[Record]:
        """Return a copy in which the options in `found`, field -> value, have these values."""
        groups = dict(self._groups)
        for name, group, _ in self._declared():
            if name in found:
                groups[group] = dataclasses.replace(groups[group], **{name: found[name]})
        return Config(groups, self.given, self.reduction, self._idle, self.adjusted)

    def _declared(self) -> list[tuple[str, str, Option]]:
        """Return (field, group, option) of every option, without those of reductions that were not chosen."""
        return [
            (name, group, entry)
            for group, values in self._groups.items()
            if group not in self._idle
            for name, entry in options_of(type(values)).items()
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

    Raises
    ------
    UsageError
        if options exclude each other, contradict the model, or have no effect.
    ModelError
        if the model holds an option that is not declared `stored`, a value that an option cannot have, or options that
        contradict each other.
    """
    owners: dict[str, dict[str, Option]] = {}  # field -> group -> option
    for group, declared in groups.items():
        for name, entry in options_of(declared).items():
            owners.setdefault(name, {})[group] = entry
    records = {record.name: record for record in reductions}
    if stored is None:
        return _resolve(given, {}, False, groups, records, owners, model, presets, resolve_defaults)
    stored = _checked(stored, owners, records, model)
    try:  # first without the typed options, so that contradictions within the model are reported as errors of the model
        alone = {"initial_regressor": model} if "initial_regressor" in owners else {}
        _resolve(alone, stored, True, groups, records, owners, model, presets, resolve_defaults)
    except UsageError as error:
        raise ModelError(f"{model}: its options contradict each other: {error}. {CURE}") from None
    return _resolve(given, stored, True, groups, records, owners, model, presets, resolve_defaults)


CURE = "Train the model again, or take another copy of the file"


def _checked(stored: Values, owners: Owners, records: Mapping[str, Named], model: str) -> Values:
    """Check the options of a model file, which may come from an untrusted source, and return them: field -> value.

    Only options that are declared `stored` are accepted. Any other option would let the file choose which files a run
    reads and writes.
    """
    for name in stored:
        if name not in owners:
            shown = ascii(name)[1:-1][:MOST_SHOWN]
            raise ModelError(f"{model} was written with an option --{shown}, which this xclass does not know")
    kept = [name for name in records if name in owners and stored.get(name) is not None]
    if len(kept) > 1:
        raise ModelError(f"{model}: it holds both --{kept[0]} and --{kept[1]}, and a model has one reduction. {CURE}")
    chosen = (kept or [SCALAR])[0]
    options: dict[str, object] = {}
    for name, value in stored.items():
        groups = {group: entry for group, entry in owners[name].items() if group not in records or group == chosen}
        entry = next(iter(groups.values()), None)
        if entry is None or not entry.stored:
            flag = long_flag(next(iter(owners[name].values())))
            why = "belongs to another reduction" if entry is None else "belongs to a run and not to a model"
            raise ModelError(f"{model}: it holds a value of {flag}, which {why}. {CURE}")
        try:
            options[name] = from_stored(entry, value)
        except ValueError as error:
            raise ModelError(f"{model}: its {long_flag(entry)} is damaged: {error}. {CURE}") from None
    missing = [name for name in REQUIRED if name in owners and options.get(name) is None]
    if missing:
        raise ModelError(f"{model}: it has no {long_flag(next(iter(owners[missing[0]].values())))}. {CURE}")
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
    choosing: dict[str, str] = {}  # preset that was typed -> the reduction that it chooses
    for name, stands_for in presets.items():
        if name in given:
            meant = stands_for(given[name]) if callable(stands_for) else stands_for
            preset.update(meant)
            for reduction in records.keys() & meant.keys():
                choosing[name] = reduction
    chosen = _choose(given, stored, loaded, records, owners, model, choosing)
    _refuse_foreign(given, loaded, records, owners, chosen, model)
    _refuse_unanswerable(given, groups, records, chosen)
    adjusted = _refuse_contradiction(given, stored, owners, chosen, model)
    if loaded and choosing:
        _refuse_other_preset(next(iter(choosing)), preset, given, stored, owners, chosen, model)

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

    idle = frozenset(group for group in groups if group in records and group != chosen)
    config = Config(built, frozenset(given), records[chosen], idle, adjusted)
    _refuse_no_effect(config, owners)
    return resolve_defaults(config)


MOST_SHOWN = 200  # characters of a value in a message


def typed(declared: Option, value: object) -> str:
    """Return an option and its value as they are written on a command line."""
    flag = long_flag(declared)
    if declared.kind is bool:
        return flag
    if declared.absent is not None and value == declared.absent:
        return flag
    values = value if isinstance(value, tuple) else (value,)
    shown = [format(v, "g") if isinstance(v, float) and float(format(v, "g")) == v else str(v) for v in values]
    shown = [v if len(v) <= MOST_SHOWN else v[:MOST_SHOWN] + "..." for v in shown]
    return " ".join(f"{flag} {v}" for v in shown)


def _choose(
    given: Values,
    stored: Values,
    loaded: bool,
    records: Mapping[str, Named],
    owners: Owners,
    model: str,
    choosing: Mapping[str, str],
) -> str:
    """Return the name of the chosen reduction, after checking that there is only one and that it is the model's."""
    requested = [name for name in records if name in owners and given.get(name) is not None]
    if len([*requested, *choosing]) > 1:
        first, second = (_typed(owners, given, name) for name in [*requested, *choosing][:2])
        raise UsageError(f"{first} and {second} exclude each other: choose one reduction")
    requested = requested or list(choosing.values())
    kept = [name for name in records if name in owners and stored.get(name) is not None]
    if loaded and requested and requested != kept:
        option_typed = _typed(owners, given, requested[0] if requested[0] in given else next(iter(choosing)))
        was = " ".join(typed(owners[name][name], stored[name]) for name in kept) or "no reduction"
        raise UsageError(_disagrees(option_typed, model, f"with {was}"))
    return (requested or kept or [SCALAR])[0]


def _refuse_foreign(
    given: Values, loaded: bool, records: Mapping[str, Named], owners: Owners, chosen: str, model: str
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


def _refuse_unanswerable(given: Values, groups: OptionGroups, records: Mapping[str, Named], chosen: str) -> None:
    """Raise UsageError if an option needs probabilities and the chosen reduction does not estimate them."""
    if records[chosen].probabilities:
        return
    for name, entry in options_of(groups["listing_options"]).items():
        if name in given:
            giving = [f"--{record.name}" for record in records.values() if record.probabilities]
            lacks = "the learner without a reduction" if chosen == SCALAR else f"--{chosen}"
            raise UsageError(
                f"{long_flag(entry)} needs probabilities of classes, which {lacks} does not give; "
                f"choose one of {', '.join(giving)}"
            )


def _refuse_contradiction(given: Values, stored: Values, owners: Owners, chosen: str, model: str) -> list[str]:
    """Raise UsageError if a typed option differs from the value that the model was trained with.

    Adjustable options may differ unless `testonly` is given; return a message about each of them.
    """
    adjusted = []
    for name, value in given.items():
        entry = owners[name].get(chosen) or next(iter(owners[name].values()))
        if not entry.stored or name not in stored or stored[name] == value:
            continue
        if entry.kind is bool or stored[name] in (None, ()):
            was = f"without {long_flag(entry)}"
        else:
            was = f"with {typed(entry, stored[name])}"
        if not entry.adjustable or given.get("testonly"):
            raise UsageError(_disagrees(typed(entry, value), model, was))
        adjusted.append(f"going on with {typed(entry, value)}; {model} was trained {was}")
    return adjusted


def _refuse_other_preset(
    name: str, preset: Values, given: Values, stored: Values, owners: Owners, chosen: str, model: str
) -> None:
    """Raise UsageError if a preset stands for other values than the model was trained with."""
    for field, value in preset.items():
        entry = owners[field].get(chosen) or next(iter(owners[field].values()))
        if field in given or field == chosen or not entry.stored or field not in stored or stored[field] == value:
            continue
        was = f"without {long_flag(entry)}" if entry.kind is bool else f"with {typed(entry, stored[field])}"
        raise UsageError(_disagrees(_typed(owners, given, name), model, was))


def _typed(owners: Owners, given: Values, name: str) -> str:
    """Return an option that the user typed and its value, as written on a command line."""
    return typed(next(iter(owners[name].values())), given[name])


def _disagrees(asked: str, model: str, was: str) -> str:
    """Return the message for an option that contradicts the model."""
    return f"{asked} disagrees with {model}, which was trained {was}; leave the option out, or train a new model"


def _refuse_no_effect(config: Config[Record], owners: Owners) -> None:
    """Raise UsageError if a typed option has no effect, see `no_effect`."""
    values = config.values()
    for rule in NO_EFFECT:
        others = (rule.given,) if isinstance(rule.given, str) else rule.given
        known = all(other in values for other in others)
        if rule.option in config.given and known and rule.idle(*(values[other] for other in others)):
            flag = long_flag(next(iter(owners[rule.option].values())))
            raise UsageError(f"{flag} has no effect: {rule.why}")
