"""Average what workers learn from their parts of the data, round by round.

Source    Agarwal, Chapelle, Dudik, Langford, "A Reliable Effective Terascale Linear Learning System", JMLR 15 (2014)
          1111-1133; `binary.merging` has the rule.
Idea      In a round, every part is learned from the same model, and the models that result are merged with this one as
          their base. The large tables are divided among the workers by ranges: each merges what all have changed in its
          range, and all get back what has changed in it. This process merges the rest of the models, and passes on
          references to the ranges, so that it never has the tables, except to save them. Then the classes that were new
          are added: all workers learn the first example of each, in the order of the parts and of the lines in them.
          The other examples of these classes are learned first in the next round. The result is a function of the
          files, the options and the number of parts: it does not depend on which worker learns a part, or on how often
          one dies.
          In the first round only the first part is learned, as in one process, because averages help little
          before the model knows most classes and its tree has grown.
Cost      A round moves what has changed from each worker to all others by way of the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import merging
from ..abilities.merge import parts as indexes
from ..abilities.merge import ranges
from ..api import model_contents
from ..api.configuration import Config
from ..api.model_contents import ModelContents
from ..array_types import UInt8s
from ..binary import tagged_words
from ..data.batch import Batch
from . import round_length
from .part_learner import Fresh, Learned, PartWork, RoundState, live_contents, with_arrays
from .part_stream import Cursor
from .run_state import State
from .session import LostResultError
from .shards import DataPart

ATTEMPTS = 5  # at a round whose results were lost with nodes


class Crew(Protocol):
    """Describe the workers; what they return but `Learned` and reports are references."""

    def learn(
        self, state: RoundState, works: Sequence[PartWork], changes: Sequence[Any]
    ) -> tuple[list[Learned], list[list[Any]]]:
        """Return for each work what was learned, and the ranges that `PartLearner.learn` returns."""

    def merge(
        self, base: Sequence[Any], facts: ranges.Merging, models: Sequence[Sequence[Any]]
    ) -> tuple[list[Any], list[ranges.Report]]:
        """Return for each range what has changed, and the report; `models` are the changes of each range."""

    def contents(self, state: RoundState, passes_ended: int, changes: Sequence[Any]) -> ModelContents: ...


class Round(NamedTuple):
    """Hold what happened in a round."""

    works: list[PartWork]
    learned: list[Learned]
    notes: list[str]


class Averaging:
    """Learn parts in rounds, beginning with the contents of a model; None for a new one.

    Attributes
    ----------
    start : what the next round begins with
    cursors : for each part, what is still to be learned in this pass
    passes_ended : number of passes that have ended
    rounds : number of rounds that have ended
    longest : most examples that a part was to learn in a round
    """

    def __init__(self, config: Config, parts: Sequence[DataPart], crew: Crew, contents: ModelContents | None) -> None:
        self._config, self._parts, self._crew = config, parts, crew
        self.start = RoundState(0, None if contents is None else with_arrays(contents), (), ())
        self._changes: Sequence[Any] = ()  # of each range, in the last round
        self.cursors = [Cursor() for _ in parts]
        self.passes_ended = self.longest = 0
        self._length = config.cluster.sync_every or round_length.FIRST  # examples of each part in the next round
        self._empty = contents is None or contents.examples == 0  # whether the first part begins alone
        self._full: tuple[int, ModelContents] | None = None  # contents of the model after a round

    @property
    def rounds(self) -> int:
        return self.start.number

    @property
    def model(self) -> ModelContents | None:
        """Return the contents of the model after the last round, None before the first one."""
        contents = self.start.contents
        if contents is None or contents.live is None:
            return contents
        if self._full is None or self._full[0] != self.rounds:
            self._full = self.rounds, self._crew.contents(self.start, self.passes_ended, self._changes)
        return self._full[1]

    def rounds_of_pass(self) -> Iterator[Round]:
        """Learn the rest of a pass; yield each round when it has ended."""
        while works := self._works():
            yield self._round(works)

    def end_pass(self) -> None:
        self.passes_ended += 1
        self.cursors = [Cursor() for _ in self._parts]

    def state(self) -> State:
        """Return what a later run needs to continue after a round, see `run_state`."""
        assert self.model is not None  # a round has ended
        waiting = {f"waiting.{i}": np.array(cursor.waiting, np.int64) for i, cursor in enumerate(self.cursors)}
        fresh = {
            f"fresh.{i}.{field}": array
            for i, (_, one) in enumerate(self.start.fresh)
            for field, array in one.batch._asdict().items()
            if isinstance(array, np.ndarray)
        }
        return {
            **waiting, **fresh, "model": as_bytes(self.model), "passes_ended": self.passes_ended, "rounds": self.rounds,
            "length": self._length,
            "positions": [cursor.position for cursor in self.cursors],
            "ended": [cursor.ended for cursor in self.cursors],
            "fresh": [[part.number, one.position, one.name] for part, one in self.start.fresh],
        }  # fmt: skip

    def restore(self, state: State) -> None:
        fresh = []
        for i, (number, position, name) in enumerate(state["fresh"]):
            begin = f"fresh.{i}."
            arrays = {key[len(begin) :]: array for key, array in state.items() if key.startswith(begin)}
            fresh.append((self._parts[number - 1], Fresh(position, name, Batch(**arrays))))
        self.start = RoundState(state["rounds"], from_bytes(state["model"]), (), fresh)
        self.passes_ended, self._length = state["passes_ended"], state["length"]
        self.cursors = [
            Cursor(position, tuple(state[f"waiting.{i}"].tolist()), ended)
            for i, (position, ended) in enumerate(zip(state["positions"], state["ended"], strict=True))
        ]

    def _works(self) -> list[PartWork]:
        """Return what is to be learned in the next round, nothing at the end of the pass."""
        left = [(part, cursor) for part, cursor in zip(self._parts, self.cursors, strict=True) if not cursor.done]
        if self._empty and self.rounds == 0:
            left = left[:1]
        return [PartWork(part, cursor, self._length, self.passes_ended, len(left) == 1) for part, cursor in left]

    def _round(self, works: list[PartWork]) -> Round:
        for attempt in range(ATTEMPTS):
            try:
                learned, found = self._crew.learn(self.start, works, self._changes)
                notes, start, changes = self._next(works, learned, found)
                break
            except LostResultError:
                if attempt == ATTEMPTS - 1:
                    raise
        self.start, self._changes = start, changes
        for work, one in zip(works, learned, strict=True):
            self.cursors[work.part.number - 1] = one.cursor
        self.longest = max(self.longest, max(work.examples for work in works))
        if self._config.cluster.sync_every is None:
            self._length = round_length.next_length(self._config, self._length, learned)
        return Round(works, learned, notes)

    def _next(
        self, works: list[PartWork], learned: list[Learned], found: list[list[Any]]
    ) -> tuple[list[str], RoundState, Sequence[Any]]:
        """Return notes, what the next round begins with, and the changes of each range."""
        fresh = _first_of_each([(work.part, one.fresh) for work, one in zip(works, learned, strict=True)])
        number = self.rounds + 1
        if len(works) == 1:
            contents = learned[0].contents
            if contents is None:
                return [], self.start._replace(number=number), self._changes
            return [], RoundState(number, contents, found[0], fresh), ()
        base = learned[0].before or self.start.contents
        assert base is not None  # else one part is learned
        base = with_arrays(base)
        some = [i for i, one in enumerate(learned) if one.contents is not None] or [0]
        rests = [with_arrays(learned[i].contents or base) for i in some]
        contents, facts, notes = _merged(base, rests)
        own = [one[0] for one in found]
        models = [[found[i][k] for i in some] for k in range(1, len(found) + 1)]
        changes, reports = self._crew.merge(own, facts, models)
        _add(contents, reports)
        return notes, RoundState(number, contents, own, fresh), changes


def _merged(base: ModelContents, rests: Sequence[ModelContents]) -> tuple[ModelContents, ranges.Merging, list[str]]:
    """Merge models without their large tables; return the result, and what merging their ranges has to know."""
    doublings = _double([base, *rests])
    learner, notes = merging.merged_parts(rests, base)
    with learner:
        contents = live_contents(learner)._replace(live={})
        reduction: Any = learner.reduction
        labels = contents.arrays.get("index_classes.label", np.empty(0))
        order = np.argsort(labels)
        own = [rest.arrays.get("index_classes.label", np.empty(0)) for rest in rests]
        rule, index = getattr(reduction, "rule", None), getattr(reduction, "index", None)
        facts = ranges.Merging(
            [merging.weight_since(rest.clock, base.clock) for rest in rests],
            rule is not None and rule.adaptive,
            doublings,
            [order[np.searchsorted(labels, one, sorter=order)] for one in own],
            len(labels),
            np.empty(0) if index is None else indexes.row_weights(reduction.frequencies, len(index.index.wear)),
        )
    return contents, facts, notes


def _double(models: Sequence[ModelContents]) -> dict[str, int]:
    """Double tables of words without their words as often as the largest, and once more where it would be full.

    The first model is the base. Return how often each is doubled.
    """
    doublings = {}
    every: list[dict[str, Any]] = [dict(model.arrays) for model in models]
    for name in every[0]:
        table, _, kind = name.rpartition(".")
        if kind != "limits":
            continue
        lanes, most, eager = every[0][name].tolist()
        own = [int(arrays[f"{table}.doublings"][0]) for arrays in every]
        counts = [arrays[f"{table}.counts"] for arrays in every]
        times = max(own)
        used, lost = (
            counts[0][i] + sum(max(int(one[i] - counts[0][i]), 0) for one in counts[1:])
            for i in (tagged_words.USED, tagged_words.LOST)
        )
        while times < most and tagged_words.is_crowded(lanes << times, times < eager, used, lost):
            times, lost = times + 1, 0
        for arrays, before, count in zip(every, own, counts, strict=True):
            arrays[f"{table}.doublings"][0] = times
            count[tagged_words.LOST] *= before == times
        doublings[table] = times
    return doublings


def _add(contents: ModelContents, reports: Sequence[ranges.Report]) -> None:
    """Add what was reported of the ranges to the rest of a model."""
    arrays: dict[str, Any] = dict(contents.arrays)
    for report in reports:
        for table, added in report.items():
            if isinstance(added, tuple):
                dropped, used = added
                counts = arrays[f"{table}.counts"]
                counts[tagged_words.USED] += used
                counts[[tagged_words.EVICTED, tagged_words.LOST]] += dropped
            elif added is not None:
                arrays["index_classes.norm2"][: len(added)] += added


def _first_of_each(fresh: Sequence[tuple[DataPart, Sequence[Fresh]]]) -> list[tuple[DataPart, Fresh]]:
    """Return the first example of each class, or all lists, in the order of parts and positions."""
    found: dict[Any, tuple[DataPart, Fresh]] = {}
    for part, several in fresh:
        for one in several:
            key: Any = one.name if one.name is not None else float(one.batch.label[0])
            found.setdefault((part.number, one.position) if one.batch.has_lists else key, (part, one))
    return list(found.values())


def as_bytes(contents: ModelContents) -> UInt8s:
    """Return the bytes of the file of a model as an array, which workers on the same node share."""
    return np.frombuffer(model_contents.to_bytes(contents), np.uint8)


def from_bytes(model: UInt8s) -> ModelContents:
    return model_contents.from_bytes(model.data)  # type: ignore[arg-type]
