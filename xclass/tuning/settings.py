"""Define a setting, the options that it changes, and the space of all settings."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..api import configuration
from ..api.configuration import Config
from ..errors import UsageError
from ..options.declare import Option, SearchRange, as_words, options_of, search_for
from ..reductions.core.spec import LearnerUse
from ..run import passes
from .options import LIST_METRICS, METRICS
from .stream import SearchStream

SHARED = ("features", "interactions", "learner")  # groups whose options apply to all reductions
PROPOSED = ("multiclass",)  # presets that may be proposed as a reduction


def declared() -> dict[str, Option]:
    """Return the options that a setting can have, by field name: those of all learners, and the number of passes."""
    return {**configuration.declared_options(), "passes": options_of(passes.PassOptions)["passes"]}


class Setting(NamedTuple):
    """Hold a reduction and the options that have other values than their defaults."""

    reduction: str  # or preset
    classes: int  # value of its option
    changes: tuple[tuple[str, Any], ...] = ()  # (field, value) of the changed options, in the order of the fields

    def changed(self, field: str, value: Any) -> Setting:
        """Return the setting in which an option has another value; None leaves the option out."""
        others = {name: old for name, old in self.changes if name != field}
        if value is not None and value != ():
            others[field] = value
        return self._replace(changes=tuple(sorted(others.items())))

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.changes)


class SearchSpace:
    """Hold the settings of a search.

    Parameters
    ----------
    stream : the data
    fixed : options that all settings have, field -> value
    chosen : name and value of the only reduction; None to choose the reduction, too
    metric : what is minimised
    ranges : searches that replace all declared ones, field -> Search

    Attributes
    ----------
    reductions : the setting without changes of each reduction, the `default` first
    """

    def __init__(
        self,
        stream: SearchStream,
        fixed: Mapping[str, Any],
        chosen: tuple[str, int] | None,
        metric: str,
        ranges: Mapping[str, SearchRange],
    ) -> None:
        self.stream, self.metric = stream, metric
        self._fixed, self._ranges, self._options = dict(fixed), dict(ranges), declared()
        self._passes = int(self._fixed.pop("passes", 1))
        self._searches: dict[str, dict[str, SearchRange]] = {}
        proposed = {Setting(*chosen): 1.0} if chosen is not None else dict(self._proposed())
        self._weights = {setting: weight for setting, weight in proposed.items() if self.is_valid(setting)}
        self.reductions = list(self._weights)
        self.default = [*self.reductions, *proposed][0]
        self.config(self.default)  # which tells what is wrong with the first if none is valid
        if len(self.reductions) == 1 and not self.searches(self.default.reduction):
            raise UsageError(
                f"nothing is left to search with --{self.default.reduction} and the options given; leave out some of "
                "them, or give --range"
            )

    def _proposed(self) -> Iterator[tuple[Setting, float]]:
        """Yield the setting without changes, and the weight, of each reduction that is worth trying."""
        facts = self.stream.facts("", self.metric)
        for name in configuration.option_groups():
            found = search_for(self._options[name].search, facts) if name in self._options else None
            if found is not None and not self._ranges:
                yield Setting(name, found.values[0]), found.weight
            elif name in PROPOSED:
                yield Setting(name, 0), 1.0

    def passes(self, setting: Setting) -> int:
        return int(setting.values.get("passes", self._passes))

    def config(self, setting: Setting) -> Config:
        """Return the options of a setting; raise UsageError if it cannot have them, or the metric not measure it."""
        options = {**self._fixed, **setting.values}
        options.pop("passes", None)
        use = LearnerUse(passes=self.passes(setting))
        config = configuration.configured(setting.reduction, setting.classes, options, use)
        record, metric = config.reduction, self.metric
        lists = record.labels == "multilabel"
        if metric != "error" and lists != (metric in LIST_METRICS):
            kind, others = ("lists of labels", LIST_METRICS) if lists else ("one label an example", METRICS)
            raise UsageError(
                f"--metric {metric} cannot be measured: --{setting.reduction} learns {kind}; give one of "
                f"{', '.join(dict.fromkeys(['error', *others]))}"
            )
        if metric != "error" and not record.probabilities:
            raise UsageError(f"--{setting.reduction} does not estimate probabilities; give --metric error")
        if self.passes(setting) > 1 and record.learns_at_end:
            raise UsageError(f"--passes has no effect with --{setting.reduction}; leave it out")
        return config

    def is_valid(self, setting: Setting) -> bool:
        try:
            self.config(setting)
        except UsageError:
            return False
        return True

    def searches(self, reduction: str) -> dict[str, SearchRange]:
        """Return the searches of the options of a reduction, by field name, the most promising first."""
        if reduction not in self._searches:
            found = self._ranges or dict(self._declared(reduction))
            self._searches[reduction] = dict(sorted(found.items(), key=lambda item: -item[1].weight))
        return self._searches[reduction]

    def _declared(self, reduction: str) -> Iterator[tuple[str, SearchRange]]:
        """Yield the field and the search of every option that a setting can have by itself, and that is not fixed."""
        setting = next(one for one in self.reductions if one.reduction == reduction)
        facts = self.stream.facts(reduction, self.metric)
        record, groups = self.config(setting).reduction, configuration.option_groups()
        options = {} if self._passes > 1 or record.learns_at_end else {"passes": self._options["passes"]}
        for group in (*SHARED, record.name):
            options.update(options_of(groups[group]))
        for field, option in options.items():
            if field in self._fixed or field in groups:
                continue
            found = search_for(option.search, facts)
            values = () if found is None else found.values or (True,)
            if found is not None and any(self.is_valid(setting.changed(field, value)) for value in values):
                yield field, found

    def first(self) -> list[Setting]:
        """Return the settings to try first: the defaults of each reduction, then one change at a time."""
        ranked = [(0, -self._weights[setting], setting) for setting in self.reductions[1:]]
        for field, found in self.searches(self.default.reduction).items():
            for place, value in enumerate(found.first):
                ranked.append((place, -found.weight, self.default.changed(field, value)))
        new = dict.fromkeys(setting for *_, setting in sorted(ranked, key=lambda row: row[:2]))
        return [self.default, *(one for one in new if self.is_valid(one) and not self._equals_default(one))]

    def _equals_default(self, setting: Setting) -> bool:
        """Return whether a setting has the same options as the default, perhaps written in another way."""
        if setting.reduction != self.default.reduction or self.passes(setting) != self.passes(self.default):
            return False
        return self.config(setting).values() == self.config(self.default).values()

    def near(self, setting: Setting, rng: random.Random) -> Setting | None:
        """Return a setting in which an option of `setting` has another value, None if that is not valid."""
        searches = self.searches(setting.reduction)
        if not searches:
            return None
        field = rng.choices(list(searches), [found.weight for found in searches.values()])[0]
        value = searches[field].near(self._value(setting, field), rng)
        by_default = value == self._value(setting._replace(changes=()), field)
        changed = setting.changed(field, None if by_default else value)
        return changed if self.is_valid(changed) else None

    def _value(self, setting: Setting, field: str) -> Any:
        values = {"passes": self._passes, **self.config(setting).values(), **setting.values}
        return values.get(field)

    def words(self, setting: Setting) -> list[str]:
        """Return the words of the command line that stand for the reduction and the changed options."""
        given = {setting.reduction: setting.classes, **setting.values}
        return [word for field, value in given.items() for word in as_words(self._options[field], value)]

    def name(self, setting: Setting) -> str:
        """Return the words of a setting as one text, by which the file of the results names it."""
        return shlex.join(self.words(setting))

    def text(self, setting: Setting) -> str:
        """Return the options of a setting as they are typed; `(defaults)` if there are none."""
        words = self.words(setting)
        if setting.reduction == self.default.reduction:
            words = words[len(self.words(setting._replace(changes=()))) :]
        return shlex.join(words) or "(defaults)"
