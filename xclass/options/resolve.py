"""From what the user typed to what the program needs: one value per option, and refusals.

An option's value is the first of: the command line, the model loaded with `-i`, a preset the user chose,
the option's default, which for some options the chosen reduction computes from others (`resolve_defaults`). What would
have no effect, or would contradict the model, is a usage error here, so that no other group has to ask where
a value came from.
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
Presets = Mapping[str, Values | Callable[[Any], Values]]  # Any: the kind of the preset's own option


class Named(Protocol):
    """What is asked of the record of a reduction here, see `reductions.core.base.Reduction`."""

    @property
    def name(self) -> str: ...

    @property
    def probabilities(self) -> bool: ...


Record = TypeVar("Record", bound=Named)
Declared = TypeVar("Declared", bound=OptionGroup)


SCALAR = "scalar"  # the reduction that holds when none is chosen: the learner alone


class Config(Generic[Record]):
    """The value of every option, by group: `config.part(gd.Options).bits`, or `config.learner.bits`.

    Attributes
    ----------
    given : names of the options the user typed.
    reduction : the chosen `Reduction`; the one named "scalar" when no reduction option was given.
    adjusted : lines for the user about options that have another value than the model of `-i` was trained with.
    <group> : one attribute per group, an instance of its `Options`. A reduction that was not chosen holds its
        defaults.
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
        self._idle = idle  # the reductions that were not chosen

    def part(self, declared: type[Declared]) -> Declared:
        """Return the values of the options that a group declares as this class."""
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
        """Return field -> value over all groups, leaving out the reductions that were not chosen."""
        return {name: getattr(self._groups[group], name) for name, group, _ in self._declared()}

    def stored(self) -> dict[str, object]:
        """Return what belongs in the model file: field -> JSON-able value of every option marked `stored`."""
        kept = {name: getattr(self._groups[group], name) for name, group, one in self._declared() if one.stored}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}

    def files(self) -> list[tuple[str, str, bool]]:
        """Return the files that options name: shortest flag, path, and whether the file is written."""
        found = []
        for name, group, one in self._declared():
            value = getattr(self._groups[group], name)
            if one.metavar == "FILE" and value is not None:
                paths = value if isinstance(value, tuple) else (value,)
                found += [(min(one.flags, key=len), path, not one.read) for path in paths]
        return found

    def with_values(self, found: Values) -> Config[Record]:
        """Return a copy with the values of `found`, field -> value: defaults that depend on other options."""
        groups = dict(self._groups)
        for name, group, _ in self._declared():
            if name in found:
                groups[group] = dataclasses.replace(groups[group], **{name: found[name]})
        return Config(groups, self.given, self.reduction, self._idle, self.adjusted)

    def _declared(self) -> list[tuple[str, str, Option]]:
        return [
            (name, group, one)
            for group, values in self._groups.items()
            if group not in self._idle
            for name, one in options_of(type(values)).items()
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
    """Decide the value of every option.

    Parameters
    ----------
    given : field -> value, only what the user typed.
    stored : options kept in the model that `-i` loads (`Config.stored`), or None without `-i`.
    groups : group -> its `Options` dataclass; a reduction's group has the reduction's name.
    reductions : the `Reduction` records, the one named "scalar" among them.
    model : how messages call the model file.
    presets : preset option -> field -> value.
    resolve_defaults : checks the options of the chosen reduction and decides those whose defaults depend on others.

    Raises
    ------
    UsageError
        where options exclude each other, contradict the model, or would have no effect.
    ModelError
        where the model holds an option that models do not keep, a value that no command line can give an option, or
        options that contradict each other.
    """
    owners: dict[str, dict[str, Option]] = {}  # field -> group -> option
    for group, declared in groups.items():
        for name, one in options_of(declared).items():
            owners.setdefault(name, {})[group] = one
    records = {record.name: record for record in reductions}
    if stored is None:
        return _resolve(given, {}, False, groups, records, owners, model, presets, resolve_defaults)
    stored = _checked(stored, owners, records, model)
    try:  # without what was typed, so that a contradiction is the model's own
        alone = {"initial_regressor": model} if "initial_regressor" in owners else {}
        _resolve(alone, stored, True, groups, records, owners, model, presets, resolve_defaults)
    except UsageError as error:
        raise ModelError(f"{model}: its options contradict each other: {error}. {CURE}") from None
    return _resolve(given, stored, True, groups, records, owners, model, presets, resolve_defaults)


CURE = "Train the model again, or take another copy of the file"


def _checked(stored: Values, owners: Owners, records: Mapping[str, Named], model: str) -> Values:
    """Return the options of a model, field -> value, which come from a stranger: each as its declaration demands.

    Only options that are declared `stored` are ever taken from a model. Any other would let a file choose what a run
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
    found: dict[str, object] = {}
    for name, value in stored.items():
        groups = {group: one for group, one in owners[name].items() if group not in records or group == chosen}
        one = next(iter(groups.values()), None)
        if one is None or not one.stored:
            flag = long_flag(next(iter(owners[name].values())))
            why = "belongs to another reduction" if one is None else "belongs to a run and not to a model"
            raise ModelError(f"{model}: it holds a value of {flag}, which {why}. {CURE}")
        try:
            found[name] = from_stored(one, value)
        except ValueError as error:
            raise ModelError(f"{model}: its {long_flag(one)} is damaged: {error}. {CURE}") from None
    missing = [name for name in REQUIRED if name in owners and found.get(name) is None]
    if missing:
        raise ModelError(f"{model}: it has no {long_flag(next(iter(owners[missing[0]].values())))}. {CURE}")
    return found


REQUIRED = ("bits",)  # computed from the machine where it is missing; other options of old models have fixed defaults


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
    """Decide every value: `resolve` with options of a model that were checked."""
    preset: dict[str, object] = {}
    choosing: dict[str, str] = {}  # preset that was typed -> the reduction it chooses
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


def typed(one: Option, value: object) -> str:
    """Return an option and its value as they stand on a command line."""
    flag = long_flag(one)
    if one.kind is bool:
        return flag
    if one.absent is not None and value == one.absent:
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
    """Return the name of the chosen reduction."""
    asked = [name for name in records if name in owners and given.get(name) is not None]
    if len([*asked, *choosing]) > 1:
        first, second = (_typed(owners, given, name) for name in [*asked, *choosing][:2])
        raise UsageError(f"{first} and {second} exclude each other: choose one reduction")
    asked = asked or list(choosing.values())
    kept = [name for name in records if name in owners and stored.get(name) is not None]
    if loaded and asked and asked != kept:
        asked_for = _typed(owners, given, asked[0] if asked[0] in given else next(iter(choosing)))
        was = " ".join(typed(owners[name][name], stored[name]) for name in kept) or "no reduction"
        raise UsageError(_disagrees(asked_for, model, f"with {was}"))
    return (asked or kept or [SCALAR])[0]


def _refuse_foreign(
    given: Values, loaded: bool, records: Mapping[str, Named], owners: Owners, chosen: str, model: str
) -> None:
    """Refuse options of reductions that were not chosen."""
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
    """Refuse to ask for probabilities where there are none."""
    if records[chosen].probabilities:
        return
    for name, one in options_of(groups["answers"]).items():
        if name in given:
            giving = [f"--{record.name}" for record in records.values() if record.probabilities]
            lacks = "the learner without a reduction" if chosen == SCALAR else f"--{chosen}"
            raise UsageError(
                f"{long_flag(one)} needs probabilities of classes, which {lacks} does not give; "
                f"choose one of {', '.join(giving)}"
            )


def _refuse_contradiction(given: Values, stored: Values, owners: Owners, chosen: str, model: str) -> list[str]:
    """Refuse a typed option whose value differs from the one the model was trained with.

    Options that say how learning goes on may differ where something is learned; returns a line about each.
    """
    adjusted = []
    for name, value in given.items():
        one = owners[name].get(chosen) or next(iter(owners[name].values()))
        if not one.stored or name not in stored or stored[name] == value:
            continue
        if one.kind is bool or stored[name] in (None, ()):
            was = f"without {long_flag(one)}"
        else:
            was = f"with {typed(one, stored[name])}"
        if not one.adjustable or given.get("testonly"):
            raise UsageError(_disagrees(typed(one, value), model, was))
        adjusted.append(f"going on with {typed(one, value)}; {model} was trained {was}")
    return adjusted


def _refuse_other_preset(
    name: str, preset: Values, given: Values, stored: Values, owners: Owners, chosen: str, model: str
) -> None:
    """Refuse a preset that stands for something else than the model was trained with."""
    for field, value in preset.items():
        one = owners[field].get(chosen) or next(iter(owners[field].values()))
        if field in given or field == chosen or not one.stored or field not in stored or stored[field] == value:
            continue
        was = f"without {long_flag(one)}" if one.kind is bool else f"with {typed(one, stored[field])}"
        raise UsageError(_disagrees(_typed(owners, given, name), model, was))


def _typed(owners: Owners, given: Values, name: str) -> str:
    """Return an option that was given as it stands on the command line."""
    return typed(next(iter(owners[name].values())), given[name])


def _disagrees(asked: str, model: str, was: str) -> str:
    return f"{asked} disagrees with {model}, which was trained {was}; leave the option out, or train a new model"


def _refuse_no_effect(config: Config[Record], owners: Owners) -> None:
    values = config.values()
    for rule in NO_EFFECT:
        others = (rule.given,) if isinstance(rule.given, str) else rule.given
        known = all(other in values for other in others)
        if rule.option in config.given and known and rule.idle(*(values[other] for other in others)):
            flag = long_flag(next(iter(owners[rule.option].values())))
            raise UsageError(f"{flag} has no effect: {rule.why}")
