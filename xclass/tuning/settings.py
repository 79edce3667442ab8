"""Define a setting, the options that it changes, and the space of all settings."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..api import configuration
from ..api.configuration import Config, LearnerUse
from ..errors import UsageError
from ..options import search
from ..options.declare import Option, as_words, options_of
from ..options.search import Facts, Search
from ..run import passes as run_passes
from .options import LIST_METRICS, METRICS
from .stream import Stream

SHARED = ("features", "interactions", "learner")  # groups whose options apply to all reductions
PASSES = options_of(run_passes.Options)["passes"]
PROPOSED = ("multiclass",)  # presets that may be proposed as a reduction


@dataclass(frozen=True)
class Setting:
    """Hold a reduction and the options that have other values than their defaults."""

    reduction: str  # or preset
    classes: int  # value of its option
    changes: tuple[tuple[str, Any], ...] = ()  # (field, value) of the changed options, in the order of the fields

    def changed(self, field: str, value: Any) -> Setting:
        """Return the setting in which an option has another value; None leaves the option out."""
        others = {name: old for name, old in self.changes if name != field}
        if value is not None and value != ():
            others[field] = value
        return Setting(self.reduction, self.classes, tuple(sorted(others.items())))

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.changes)


class Space:
    """Hold the settings of a search.

    `fixed` and `chosen` are those of a `search.Request`, and `metric` its option. Searches of options (field -> Search)
    in `ranges` replace all declared ones. `reductions` has the setting without changes of each reduction, the `default`
    first.
    """

    def __init__(
        self,
        stream: Stream,
        fixed: Mapping[str, Any],
        chosen: tuple[str, int] | None,
        metric: str,
        ranges: Mapping[str, Search],
    ) -> None:
        self._stream, self._fixed, self._ranges = stream, dict(fixed), dict(ranges)
        self._passes = int(self._fixed.pop("passes", 1))
        self._metric = metric
        self._searches: dict[str, dict[str, Search]] = {}
        self.weights: dict[str, float] = {}
        self.reductions = self._usable([Setting(*chosen)] if chosen is not None else list(self._proposed()))
        self.default = self.reductions[0]
        if not any(self.searches(setting.reduction) for setting in self.reductions) and len(self.reductions) == 1:
            raise UsageError(
                f"nothing is left to search with --{self.default.reduction} and the options given; leave out some of "
                "them, or give --range"
            )

    def _proposed(self) -> Iterator[Setting]:
        facts = self._stream.facts("")
        groups = configuration.option_groups()
        for name, group in groups.items():
            declared = options_of(group).get(name)
            found = None if declared is None else search.resolved(declared.search, facts)
            if found is not None and not self._ranges:
                self.weights[name] = found.weight
                yield Setting(name, found.values[0])
            elif name in PROPOSED:
                yield Setting(name, 0)

    def _usable(self, proposed: list[Setting]) -> list[Setting]:
        """Return the settings that can have the fixed options; raise UsageError if there are none."""
        usable, problems = [], []
        for setting in proposed:
            try:
                self._check_metric(setting)
                usable.append(setting)
            except UsageError as error:
                problems.append(error)
        if not usable:
            raise problems[0]
        return usable

    def _check_metric(self, setting: Setting) -> None:
        """Raise UsageError if the learner of a setting does not give what the metric needs."""
        record, metric = self.config(setting).reduction, self._metric
        lists = record.labels == "multilabel"
        if metric != "error" and lists != (metric in LIST_METRICS):
            kind, others = ("lists of labels", LIST_METRICS) if lists else ("one label an example", METRICS)
            raise UsageError(
                f"--metric {metric} cannot be measured: --{setting.reduction} learns {kind}; give one of "
                f"{', '.join(dict.fromkeys(['error', *others]))}"
            )
        if metric != "error" and not record.probabilities:
            raise UsageError(f"--{setting.reduction} does not estimate probabilities; give --metric error")

    def passes(self, setting: Setting) -> int:
        return int(setting.values.get("passes", self._passes))

    def use(self, setting: Setting) -> LearnerUse:
        return LearnerUse(passes=self.passes(setting))

    def config(self, setting: Setting) -> Config:
        options = {**self._fixed, **setting.values}
        options.pop("passes", None)
        config = configuration.configured(setting.reduction, setting.classes, options, self.use(setting))
        if self.passes(setting) > 1 and config.reduction.learns_at_end:
            raise UsageError(f"--passes has no effect with --{setting.reduction}; leave it out")
        return config

    def is_valid(self, setting: Setting) -> bool:
        try:
            self.config(setting)
        except UsageError:
            return False
        return True

    def searches(self, reduction: str) -> dict[str, Search]:
        """Return the searches of the options of a reduction, by field name, the most promising first."""
        if reduction not in self._searches:
            found = self._ranges or dict(self._declared(reduction))
            self._searches[reduction] = dict(sorted(found.items(), key=lambda item: -item[1].weight))
        return self._searches[reduction]

    def _declared(self, reduction: str) -> Iterator[tuple[str, Search]]:
        """Yield the field and the search of every option that a setting can have by itself, and that is not fixed."""
        setting = next(one for one in self.reductions if one.reduction == reduction)
        facts: Facts = self._stream.facts(reduction)._replace(metric=self._metric)
        record = self.config(setting).reduction
        groups = configuration.option_groups()
        options: dict[str, Option] = {"passes": PASSES}
        for group in (*SHARED, record.name):
            options.update(options_of(groups[group]))
        for field, option in options.items():
            if field in self._fixed or field in (reduction, record.name) or field in configuration.option_groups():
                continue
            if field == "passes" and (self._passes > 1 or not self.is_valid(setting.changed("passes", 2))):
                continue
            found = search.resolved(option.search, facts)
            values = () if found is None else found.values or (True,)
            if found is not None and any(self.is_valid(setting.changed(field, value)) for value in values):
                yield field, found

    def first(self) -> list[Setting]:
        """Return the settings to try first: the defaults of each reduction, then one change at a time."""
        ranked: list[tuple[int, float, int, Setting]] = []
        for place, reduction in enumerate(self.reductions[1:]):
            ranked.append((0, -self.weights.get(reduction.reduction, 1.0), place, reduction))
        for field, found in self.searches(self.default.reduction).items():
            for place, value in enumerate(found.first):
                ranked.append((place, -found.weight, len(ranked), self.default.changed(field, value)))
        ordered = [setting for *_, setting in sorted(ranked, key=lambda row: row[:3])]
        new = [setting for setting in dict.fromkeys(ordered) if self.is_valid(setting)]
        return [self.default, *(setting for setting in new if not self._equals_default(setting))]

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
        old = setting.values.get(field, self._value(setting, field))
        value = searches[field].near(old, rng)
        changed = setting.changed(field, None if value == self._value(self.base(setting), field) else value)
        return changed if self.is_valid(changed) else None

    def base(self, setting: Setting) -> Setting:
        return Setting(setting.reduction, setting.classes)

    def _value(self, setting: Setting, field: str) -> Any:
        return self.passes(setting) if field == "passes" else self.config(setting).values().get(field)

    def words(self, setting: Setting) -> list[str]:
        """Return the words of the command line that stand for the reduction and the changed options."""
        declared = {**configuration.declared_options(), "passes": PASSES}
        words = as_words(declared[setting.reduction], setting.classes)
        for field, value in setting.changes:
            words += as_words(declared[field], value)
        return words

    def name(self, setting: Setting) -> str:
        """Return the words of a setting as one text, by which the file of the results names it."""
        return shlex.join(self.words(setting))

    def text(self, setting: Setting) -> str:
        """Return the options of a setting as they are typed; `(defaults)` if there are none."""
        words = self.words(setting)
        if setting.reduction == self.default.reduction:
            words = words[len(self.words(self.base(setting))) :]
        return shlex.join(words) or "(defaults)"
