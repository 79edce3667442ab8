"""Define a setting, the options that it changes, the space of all settings, and the examples that they read.

The data are parsed once into a cache. All settings read the same examples: hashes of features are cut to the size of a
learner's table when it learns, so the cache holds whole ones. Several threads may read at the same time.
"""

from __future__ import annotations

import itertools
import random
import shlex
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api import configuration
from ..api.configuration import Config
from ..api.example_notes import LabelCheck
from ..cache import source as cache
from ..cache.cache_file import CacheReader
from ..data import batch_ops, class_names
from ..data.batch import CONSTANT_GROUP, Batch
from ..data.schema import Schema
from ..errors import DataError, UsageError
from ..formats import detect
from ..options.declare import Facts, Option, SearchRange, as_words, options_of, search_for
from ..reductions.core.spec import LearnerUse
from ..run import passes
from ..text import reader as text
from ..text.parser import Parser
from .options import LIST_METRICS, METRICS

WHOLE = 32  # bits of a feature's hash
MOST_ROWS = 512  # examples of a batch, so that a search can end between two of them


class SearchStream:
    """Hold the examples of a search.

    `config` says how labels and features are read, and `peeked` has what was already read from the data.

    Attributes
    ----------
    n : number of examples
    names : names of the classes, if labels are names
    notes : warnings about the text and the cache
    highest : highest class
    classes : number of classes that occur as labels
    """

    def __init__(
        self, config: Config, files: text.ReaderOptions, kept: cache.CacheOptions, peeked: text.Peeked | None = None
    ) -> None:
        self._constant = not config.parser.noconstant
        self.notes: list[str] = []
        labels = configuration.label_range(config)
        names = class_names.Names(tuple(config.parser.label_names()), config.parser.learn_names)
        kind = config.reduction.labels
        of_lines = Parser(config.parser, WHOLE, kind, *labels, names)
        parsed = text.Reader(files, of_lines, peeked=peeked, choose=detect.chooser(files))
        parsed.preview()
        key = cache.make_key(config.parser, WHOLE, kind, labels.lowest, labels.highest, None)
        key.update(detect.key(files, Schema()))
        self._source = cache.Source(parsed, kept, key, self._constant, passes=2, needed=True)
        self._reader = self._read()
        self.names = tuple(names.names)
        self.notes += [*self._source.notes, *parsed.report()]
        self._survey()

    def close(self) -> None:
        self._source.close()

    def _read(self) -> CacheReader:
        """Write the cache, unless there is one that fits, and return it."""
        if self._source.complete_cache is None:
            for _ in self._source:
                pass
        found = self._source.complete_cache
        if found is None:
            raise DataError(
                "; ".join(self._source.notes) or f"{self._source.name}: no cache can be written of the data"
            )
        return found

    def _survey(self) -> None:
        """Read all examples once to count them, and to find out what they look like."""
        counts, labelled, features, plain = [], 0, 0, True
        check = LabelCheck(list(self.names), ordered=True)
        groups: set[int] = set()
        seen: set[float] = set()
        for batch, _ in self._reader:
            counts.append(batch.n)
            self.notes += check.check(batch)
            with_label = ~np.isnan(batch.label)
            labelled += int(np.count_nonzero(with_label))
            features += len(batch.index) - batch.n * self._constant
            plain = plain and bool((batch.value == 1).all())
            groups.update(np.unique(batch.group_name).tolist())
            seen.update(np.unique(batch.labels if batch.has_lists else batch.label[with_label]).tolist())
        self._first = [0, *itertools.accumulate(counts)]
        self.n = self._first[-1]
        if labelled < 2:
            raise DataError(
                f"{self._source.name}: {labelled} examples have a label; a search needs thousands, some of them to "
                "learn from and some to compare settings on"
            )
        self.mean_features, self.plain = features / self.n, plain
        self.groups = "".join(chr(group) for group in sorted(groups - {CONSTANT_GROUP}) if 32 < group < 127)
        self.highest, self.classes = int(max(seen, default=0)), len(seen)

    def facts(self, reduction: str, metric: str = "error") -> Facts:
        classes = max(self.highest, len(self.names))
        return Facts(reduction, classes, self.n, self.mean_features, self.plain, self.groups, metric)

    def batches(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Batch]]:
        """Yield the examples of some ranges as batches, each with the number of its first example.

        A range is (begin, end), counted from 0.
        """
        for low, high in ranges:
            if low >= high:
                continue
            block = bisect_right(self._first, low) - 1
            last = bisect_right(self._first, high - 1)
            for batch, _ in self._reader.blocks(block, last):
                first = self._first[block]
                for begin in range(max(low - first, 0), min(high - first, batch.n), MOST_ROWS):
                    end = min(begin + MOST_ROWS, high - first, batch.n)
                    yield first + begin, batch if end - begin == batch.n else batch_ops.cut(batch, begin, end)
                block += 1


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
    ranges : searches that replace all declared ones, field -> SearchRange

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
