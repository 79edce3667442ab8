"""Average what workers learn from their parts of the data, round by round, in the driver.

Source    Agarwal, Chapelle, Dudik, Langford, "A Reliable Effective Terascale Linear Learning System", JMLR 15 (2014)
          1111-1133; `binary.merging` has the rule.
Idea      In a round, every part is learned from the same model, and the models that result are merged with this one as
          their base. Then the classes that were new are added: the driver learns the first example of each, in the
          order of the parts and of the lines in them. The other examples of these classes are learned first in the next
          round. The result is a function of the files, the options and the number of parts: it does not depend on which
          worker learns a part, or on how often one dies.
          In the first round only the first part is learned, as in one process, because averages help little
          before the model knows most classes and its tree has grown.
Cost      A round moves the model to every node, and the touched slots of every part to the driver. It merges them into
          the learner that it has kept since the round before, in O(touched slots), and stores that as the next model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import merging
from ..api import model_contents
from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..array_types import UInt8s
from ..data.batch import Batch
from ..errors import XclassError
from ..reductions.core import label_arrays
from ..reductions.core.contract import BatchTask
from . import delta, round_length
from .delta import Delta
from .part_learner import Fresh, Learned, PartWork, add_names
from .part_stream import Cursor
from .run_state import State
from .shards import DataPart

Execute = Callable[[ModelContents | None, Sequence[PartWork]], Iterator[Learned]]  # results in the order of the work


class Round(NamedTuple):
    """Hold what happened in a round."""

    works: list[PartWork]
    learned: list[Learned]
    added: list[BatchTask]  # tasks of the examples by which classes were added
    tallies: dict[str, Any] | None  # of these examples, see `Learner.tallies`; None if there are none
    notes: list[str]


class Averaging:
    """Learn parts in rounds, beginning with the contents of a model; None for a new one.

    Attributes
    ----------
    model : contents of the model after the last round, None before the first one. The next round may change the arrays
        in these contents, so copy what is needed longer
    damaged : whether a round has ended early while the arrays of `model` were changed, so that it is of no use
    cursors : for each part, what is still to be learned in this pass
    passes_ended : number of passes that have ended
    rounds : number of rounds that have ended
    longest : most examples that a part was to learn in a round
    """

    def __init__(
        self, config: Config, parts: Sequence[DataPart], execute: Execute, contents: ModelContents | None
    ) -> None:
        self._config, self._parts, self._execute = config, parts, execute
        self.model = None if contents is None else _with_arrays(contents)
        self._learner: LearnerCore | None = None  # of `model`, if a round has merged it
        self.cursors = [Cursor() for _ in parts]
        self.passes_ended = self.rounds = self.longest = 0
        self.damaged = False
        self._length = config.cluster.sync_every or round_length.FIRST  # examples of each part in the next round
        self._empty = contents is None or contents.examples == 0  # whether the first part begins alone

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
        return {
            **waiting, "model": as_bytes(self.model), "passes_ended": self.passes_ended, "rounds": self.rounds,
            "length": self._length,
            "positions": [cursor.position for cursor in self.cursors],
            "ended": [cursor.ended for cursor in self.cursors],
        }  # fmt: skip

    def restore(self, state: State) -> None:
        self.model, self.passes_ended, self.rounds = from_bytes(state["model"]), state["passes_ended"], state["rounds"]
        self._length = state["length"]
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
        learned = list(self._execute(self.model, works))
        fresh = _first_of_each([(work.part, one.fresh) for work, one in zip(works, learned, strict=True)])
        read = [(one.contents, one.arrays) for one in learned if one.contents is not None and one.arrays is not None]
        added: list[BatchTask] = []
        tallies: dict[str, Any] | None = None
        notes: list[str] = []
        if len(read) == 1 and not fresh:
            ((contents, arrays),) = read
            self.model = contents._replace(arrays=delta.decode(arrays, {} if self.model is None else self.model.arrays))
            self.close()
        elif read or fresh:
            assert self.model is not None  # else one part is learned, which adds its classes itself
            notes = self._merge(read, self.model)
        for work, one in zip(works, learned, strict=True):
            self.cursors[work.part.number - 1] = one.cursor
        self.rounds += 1
        self.longest = max(self.longest, max(work.examples for work in works))
        if self._config.cluster.sync_every is None:
            self._length = round_length.next_length(self._config, self._length, learned)
        if self._learner is not None and (read or fresh):
            try:
                self._learner.reduction.clear_tallies(self._learner.spec)
                added = self._add_classes(self._learner, fresh)
                tallies = self._learner.reduction.tallies() if added else None
            except XclassError:  # what was merged is kept
                self._keep(self._learner)
                raise
            self._keep(self._learner)
        return Round(works, learned, added, tallies, notes)

    def close(self) -> None:
        """Close the learner that merges, if there is one; the next round restores it from the model."""
        if self._learner is not None:
            self._learner.close()
        self._learner = None

    def _keep(self, learner: LearnerCore) -> None:
        self.model = _with_arrays(learner.contents())
        self.damaged = False

    def _merge(self, read: Sequence[tuple[ModelContents, Delta]], base: ModelContents) -> list[str]:
        """Replace the learner by one merged from what was learned from some parts; return notes for the user."""
        notes: list[str] = []
        if read:
            start = self._learner or merging.restored(base)
            self._learner = None  # it is closed by merging
            parts = []
            for contents, arrays in read:
                rest, changes = delta.listed(arrays, base.arrays)
                parts.append(merging.ContinuedModel(contents._replace(arrays=delta.decode(rest, base.arrays)), changes))
            self.damaged = True
            self._learner, notes = merging.merged_parts(parts, base, start)
        else:
            self.close()
            self._learner = merging.restored(base)
            self.damaged = True
        for _ in range(self.passes_ended):
            self._learner.reduction.end_pass()
        return notes

    def _add_classes(self, learner: LearnerCore, fresh: Sequence[tuple[DataPart, Fresh]]) -> list[BatchTask]:
        """Learn the first example of each new class, and return the tasks; these examples no longer wait."""
        tasks: list[BatchTask] = []
        for part, one in fresh:
            if one.batch.has_lists and learner.reduction.can_learn(label_arrays.whole(one.batch)).all():
                continue  # examples of other parts had its labels
            batch = Batch(*map(np.array, one.batch))  # for read-only ones kernels would be compiled anew
            if one.name is not None:
                if one.name not in learner.names.names:
                    add_names(learner, self._config, part, [one.name])
                batch = batch._replace(label=np.array([learner.names.names.index(one.name) + 1.0]))
            tasks += learner.learn([batch])
            cursor = self.cursors[part.number - 1]
            waiting = tuple(position for position in cursor.waiting if position != one.position)
            self.cursors[part.number - 1] = cursor._replace(waiting=waiting)
        return tasks


def _first_of_each(fresh: Sequence[tuple[DataPart, Sequence[Fresh]]]) -> list[tuple[DataPart, Fresh]]:
    """Return the first example of each class, or all lists, in the order of parts and positions."""
    found: dict[Any, tuple[DataPart, Fresh]] = {}
    for part, several in fresh:
        for one in several:
            key: Any = one.name if one.name is not None else float(one.batch.label[0])
            found.setdefault((part.number, one.position) if one.batch.has_lists else key, (part, one))
    return list(found.values())


def _with_arrays(contents: ModelContents) -> ModelContents:
    """Return contents with contiguous arrays, which can be sent and compared."""
    return contents._replace(
        arrays={name: np.ascontiguousarray(np.asarray(array)) for name, array in contents.arrays.items()}
    )


def as_bytes(contents: ModelContents) -> UInt8s:
    """Return the bytes of the file of a model as an array, which workers on the same node share."""
    return np.frombuffer(model_contents.to_bytes(contents), np.uint8)


def from_bytes(model: UInt8s) -> ModelContents:
    return model_contents.from_bytes(model.data)  # type: ignore[arg-type]
