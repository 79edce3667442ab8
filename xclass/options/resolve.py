"""Resolve the value of every option, and refuse contradictions and options without effect.

The value of an option comes from the first of these that has one: the command line, the model loaded with `-i`, a
preset that the user chose, the default of the option. The chosen reduction computes some defaults from other options
(`resolve_defaults`). An option that has no effect or contradicts the model is a usage error here, so that other modules
need not know where a value came from.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ..errors import OTHER_MODEL, ModelError, UsageError
from .declare import Option, OptionGroup, as_words, check_rules, from_stored, long_flag, options_of

Values = Mapping[str, object]  # field -> value
OptionGroups = Mapping[str, type[OptionGroup]]  # group -> its dataclass of options
Presets = Mapping[str, Values | Callable[[Any], Values]]  # preset -> values, or a function of the preset's own value


class NamedReduction(Protocol):
    """Describe the attributes of a reduction that this module uses, see `reductions.core.base.ReductionRecord`."""

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> str: ...

    @property
    def probabilities(self) -> bool: ...


Record = TypeVar("Record", bound=NamedReduction)


SCALAR = "scalar"  # the reduction if none is chosen: the binary learner alone


class Config(Generic[Record]):
    """Hold the value of every option, by group: `config.learner.bits`.

    Attributes
    ----------
    given : names of the options that the user typed
    reduction : the record of the chosen one, by default the one named "scalar"
    adjusted : messages about options that have another value than the model of `-i` was trained with
    notes : warnings of options without effect
    use : how the learner is used that is built with the options, a `LearnerUse`
    <group> : one attribute per group, an instance of its options; the group of a reduction that was not chosen has
        its defaults
    """

    def __init__(
        self,
        groups: Mapping[str, OptionGroup],
        given: frozenset[str],
        reduction: Record,
        unchosen: frozenset[str],
        facts: Values,
        adjusted: Sequence[str],
    ) -> None:
        self.given = given
        self.reduction = reduction
        self.use: Any = None
        self.adjusted, self.notes = tuple(adjusted), tuple[str, ...]()
        self._facts = facts  # for the rules of `declare`
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

    def declared(self) -> dict[str, Option]:
        """Return the declaration of every option by field name, without those of reductions that were not chosen."""
        return {name: option for name, _, option in self._all_options()}

    def stored(self) -> dict[str, object]:
        """Return the options for a model file: the JSON value of every option marked `stored`, by field name."""
        stored = {}
        for name, group, option in self._all_options():
            if option.stored:
                value = getattr(self._groups[group], name)
                if value not in (None, ()) or not option.unset_is_left_out:
                    stored[name] = list(value) if isinstance(value, tuple) else value
        return stored

    def with_values(self, changed: Values, use: Any = None) -> Config[Record]:
        """Return a copy in which the options in `changed`, field -> value, have these values, for another `use`."""
        other = copy.copy(self)
        other.use, other._groups = use or self.use, dict(self._groups)
        for name, group, _ in self._all_options():
            if name in changed:
                other._groups[group] = dataclasses.replace(other._groups[group], **{name: changed[name]})
        return other

    def related(self) -> tuple[str, ...]:
        """Return the warnings about the options; raise UsageError if a rule refuses one, see `declare`."""
        used = (values for group, values in self._groups.items() if group not in self._unchosen)
        rules = (rule for values in used for rule in getattr(values, "RULES", ()))
        options = {name: option for name, _, option in self._all_options()}
        return check_rules(rules, {**self.values(), **self._facts}, options)

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
    groups : group -> its class of options; the group of a reduction has the name of the reduction
    reductions : all records, including the one named "scalar"
    model : name of the model file in messages
    resolve_defaults : function that checks the options of the chosen reduction and computes the defaults that depend
        on other options
    """
    sources = _Sources(given, groups, reductions, model, presets, resolve_defaults)
    if stored is not None:
        sources.loaded, sources.stored = True, sources.checked(stored)
        try:  # first without the typed options, so that errors of the model are reported as such
            sources.given = {"initial_regressor": model} if "initial_regressor" in sources.owners else {}
            sources.config()
        except UsageError as error:
            raise ModelError(f"{model}: its options contradict each other: {error}; {OTHER_MODEL}") from None
        sources.given = given
    return sources.config()


@dataclasses.dataclass(repr=False, eq=False)
class _Sources(Generic[Record]):
    """Choose the value of each option among the typed options, those of a model and those of presets; see `resolve`."""

    given: Values
    groups: OptionGroups
    reductions: Sequence[Record]
    model: str
    presets: Presets
    resolve_defaults: Callable[[Config[Record]], Config[Record]]

    def __post_init__(self) -> None:
        self.stored: Values = {}  # the options of the model, checked
        self.loaded = False
        self._records = {record.name: record for record in self.reductions}
        self.owners: dict[str, dict[str, Option]] = {}  # field -> group -> option
        for group, declared in self.groups.items():
            for name, option in options_of(declared).items():
                self.owners.setdefault(name, {})[group] = option

    def checked(self, stored: Values) -> Values:
        """Check the options of a model file, which may come from an untrusted source, and return them: field -> value.

        Only options that are declared `stored` are accepted. Any other option would let the file choose which files a
        run reads and writes.
        """
        owners, model = self.owners, self.model
        for name in stored:
            if name not in owners:
                shown = ascii(name)[1:-1][:LONGEST_VALUE]
                raise ModelError(
                    f"{model} was written with an option --{shown}, which this xclass does not know; update xclass, or "
                    f"{OTHER_MODEL}"
                )
        of_model = self._chosen_in(stored)
        if len(of_model) > 1:
            raise ModelError(
                f"{model}: it holds both --{of_model[0]} and --{of_model[1]}, and a model has one reduction; "
                f"{OTHER_MODEL}"
            )
        chosen = (of_model or [SCALAR])[0]
        options: dict[str, object] = {}
        for name, value in stored.items():
            of_others = self._records.keys() - {chosen}
            option = next((option for group, option in owners[name].items() if group not in of_others), None)
            if option is None or not option.stored:
                problem = "belongs to another reduction" if option is None else "belongs to a run and not to a model"
                raise ModelError(f"{model}: it holds a value of {self._flag(name)}, which {problem}; {OTHER_MODEL}")
            try:
                options[name] = from_stored(option, value)
            except ValueError as error:
                raise ModelError(f"{model}: its {long_flag(option)} is damaged: {error}; {OTHER_MODEL}") from None
        for name, declared in owners.items():
            for option in declared.values():
                if option.in_older_models is not None:
                    options.setdefault(name, option.in_older_models)
        for name in REQUIRED:
            if name in owners and options.get(name) is None:
                raise ModelError(f"{model}: it has no {self._flag(name)}; {OTHER_MODEL}")
        return options

    def config(self) -> Config[Record]:
        """Return the value of every option, after refusing contradictions and options without effect."""
        given, groups, records = self.given, self.groups, self._records
        for name in given:
            if name not in self.owners:
                raise UsageError(f"there is no option --{name}")
        preset: dict[str, object] = {}
        preset_of_reduction: list[tuple[str, str]] = []  # presets that were typed, and the reductions that they choose
        for name, values in self.presets.items():
            if name in given:
                own = values(given[name]) if callable(values) else values
                preset.update(own)
                preset_of_reduction += [(name, reduction) for reduction in records.keys() & own.keys()]
        chosen = self._choose(preset_of_reduction)
        self._refuse_other_reductions(chosen)
        self._refuse_without_probabilities(chosen)
        adjusted = []  # messages about typed options with another value than the model was trained with
        for name, option, was in self._differing(given, chosen):
            if option.measures:
                continue
            typed = as_typed(option, given[name])
            if not option.adjustable or given.get("testonly"):
                raise self._contradiction(typed, was)
            adjusted.append(f"continuing with {typed}; {self.model} was trained {was}")
        for name, _, was in self._differing(preset, chosen) if self.loaded and preset_of_reduction else ():
            if name not in given and name != chosen:
                raise self._contradiction(self._typed(preset_of_reduction[0][0]), was)

        unchosen = frozenset(group for group in groups if group in records and group != chosen)
        values_of = {**preset, **self.stored, **given}
        built = {}
        for group, declared in groups.items():
            known = {} if group in unchosen else values_of
            built[group] = declared(**{name: known[name] for name in options_of(declared) if name in known})
        reduction = preset_of_reduction[0][0] if preset_of_reduction else chosen
        kind = records[chosen].labels
        facts = {"given": frozenset(given), "loaded": self.loaded, "reduction": reduction, "kind_of_labels": kind}
        config = Config(built, frozenset(given), records[chosen], unchosen, facts, adjusted)
        config.notes = config.related()
        return self.resolve_defaults(config)

    def _chosen_in(self, values: Values) -> list[str]:
        """Return the names of the reductions that options choose."""
        return [name for name in self._records if name in self.owners and values.get(name) is not None]

    def _choose(self, preset_of_reduction: list[tuple[str, str]]) -> str:
        """Return the name of the chosen reduction, after checking that there is only one and that it is the model's."""
        requested = [(name, name) for name in self._chosen_in(self.given)] + preset_of_reduction
        if len(requested) > 1:
            first, second = (self._typed(name) for name, _ in requested[:2])
            raise UsageError(f"{first} and {second} exclude each other: choose one reduction")
        of_model = self._chosen_in(self.stored)
        names = [reduction for _, reduction in requested]
        if self.loaded and requested and names != of_model:
            was = " ".join(as_typed(self.owners[name][name], self.stored[name]) for name in of_model) or "no reduction"
            raise self._contradiction(self._typed(requested[0][0]), f"with {was}")
        return (names or of_model or [SCALAR])[0]

    def _refuse_other_reductions(self, chosen: str) -> None:
        """Raise UsageError if an option of a reduction that was not chosen is given."""
        for name in self.given:
            groups, flag = self.owners[name], self._flag(name)
            if chosen in groups or any(group not in self._records for group in groups):
                continue
            if set(groups) == {SCALAR}:
                raise UsageError(
                    f"{flag} belongs to the learner without a reduction, and --{chosen} was chosen; leave one of them "
                    "out"
                )
            names = [f"--{group}" for group in groups if group != SCALAR]
            belongs = " and ".join(names)
            one = names[0] if len(names) == 1 else f"one of {', '.join(names)}"
            if self.loaded:
                trained = "without a reduction" if chosen == SCALAR else f"with --{chosen}"
                cure = f"leave it out, or train a new model with {one}"
                raise UsageError(f"{flag} belongs to {belongs}, and {self.model} was trained {trained}; {cure}")
            verb = "which was not chosen" if len(groups) == 1 else "and none of them was chosen"
            raise UsageError(f"{flag} belongs to {belongs}, {verb}; leave it out, or choose {one}")

    def _refuse_without_probabilities(self, chosen: str) -> None:
        """Raise UsageError if an option needs probabilities and the chosen reduction does not estimate them."""
        for name, option in options_of(self.groups["listing_options"]).items():
            if name in self.given and not self._records[chosen].probabilities:
                chosen_learner = "the learner without a reduction" if chosen == SCALAR else f"--{chosen}"
                cure = "train a new model with" if self.loaded else "choose"
                raise UsageError(
                    f"{long_flag(option)} needs probabilities of classes, which {chosen_learner} does not estimate; "
                    f"{cure} one of {', '.join(self._choices_with_probabilities())}"
                )

    def _choices_with_probabilities(self) -> list[str]:
        """Return the options that choose a reduction which estimates probabilities of classes, presets first."""
        estimating = {r.name for r in self._records.values() if r.probabilities and r.labels != "multilabel"}
        presets = [name for name, values in self.presets.items() if callable(values) and estimating & {*values(0)}]
        return [f"--{name}" for name in (*presets, *(name for name in self._records if name in estimating))]

    def _differing(self, values: Values, chosen: str) -> Iterator[tuple[str, Option, str]]:
        """Yield the options that the model stores with another value than in `values`, and how it was trained."""
        for name, value in values.items():
            option = self._option(name, chosen)
            if option.stored and self.stored.get(name, value) != value:
                yield name, option, self._was(option, self.stored[name])

    def _option(self, name: str, chosen: str) -> Option:
        """Return the option of a field, that of the chosen reduction if several have it."""
        return self.owners[name].get(chosen) or next(iter(self.owners[name].values()))

    def _flag(self, name: str) -> str:
        return long_flag(self._option(name, ""))

    def _typed(self, name: str) -> str:
        """Return an option that the user typed and its value, as written on a command line."""
        return as_typed(self._option(name, ""), self.given[name])

    def _was(self, option: Option, value: object) -> str:
        """Return with which value of an option the model was trained."""
        absent = option.kind is bool or value in (None, ())
        return f"without {long_flag(option)}" if absent else f"with {as_typed(option, value)}"

    def _contradiction(self, option_typed: str, was: str) -> UsageError:
        """Return the error for an option that contradicts the model."""
        return UsageError(
            f"{option_typed} disagrees with {self.model}, which was trained {was}; leave the option out, or train a "
            "new model"
        )


REQUIRED = ("bits",)  # must be in a model, because its default depends on the machine; others have fixed defaults
LONGEST_VALUE = 200  # characters of a value in a message


def as_typed(declared: Option, value: object) -> str:
    """Return an option and its value as they are written on a command line."""
    words = as_words(declared, value, long_flag(declared))
    return " ".join(word if len(word) <= LONGEST_VALUE else word[:LONGEST_VALUE] + "..." for word in words)
