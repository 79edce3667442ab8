"""Spread one-against-all: each part has a block of neighbouring classes, and learns them as one process does.

    whole    row r: | class 0 ... K - 1      |        part    row r: | first ... end - 1 |

The tables of the parts have the rows of the whole one, and in each row the weights of their own classes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Int32s, Int64s, UInt8s, UInt64s
from ...binary import gd
from ...model import stored_arrays
from ..core.base import split_range
from ..core.contract import BatchTask
from ..core.parts import Message, Round, Spreadable, State
from ..core.spec import Part

Block = tuple[int, int]  # first class and end
# class of each example, whether it is learned, and label base before and after, see `OneAgainstAll.classes_by_label`
Labels = tuple[Int64s, Bools, Int64s, Int64s]
TABLE = "weights"


class Best(NamedTuple):
    """Hold what a part finds out about a batch of n examples."""

    best: Int64s  # int64[n], the best of its classes, counted from its first one
    score: Float32s  # float32[n], the score of this class
    scores: Float32s  # float32[n, classes], or float32[0, classes] if they are not wanted
    skipped: UInt8s  # uint8[n], see `finite.StepGuard`


def of_part(classes: int, part: Part | None) -> Block:
    """Return the classes of a part; the whole and a learner without parts have all."""
    if part is None or part.number is None:
        return 0, classes
    return split_range(classes, part.of)[part.number]


def size(rows: int, block: Block) -> tuple[int, int]:
    """Return the log2 of the slots of a part's table, and the slots of a row."""
    width = block[1] - block[0]
    return max(0, rows * width - 1).bit_length(), width


def new_table(rule: gd.Rule, bits: int, width: int, block: Block, weights_only: bool) -> gd.Table:
    """Return a table of 2**bits slots for some classes, with rows of `width` slots."""
    table = gd.new_table(rule, bits, block[1] - block[0], width, True, weights_only)
    if block[0]:
        table.sums[0] = 0  # only the first class of all begins with --initial_t
    return table


def joined(bests: Sequence[Best], classes: int) -> tuple[Int64s, Float32s, Float32s]:
    """Return the best class of each part, int64[parts, n], its score, float32[parts, n], and all scores."""
    first = [begin for begin, _ in split_range(classes, len(bests))]
    best = np.stack([part.best + begin for part, begin in zip(bests, first, strict=True)])
    return best, np.stack([part.score for part in bests]), np.concatenate([part.scores for part in bests], axis=1)


def _columns(table: gd.Table, rows: int, own: Block, block: Block) -> dict[str, Float32s]:
    """Return w, G and N of some of the own classes of a table, as views: float32[rows, classes] each."""
    width, begin, end = int(table.width), block[0] - own[0], block[1] - own[0]
    return {name: plane[: rows * width].reshape(rows, width)[:, begin:end] for name, plane in gd.columns(table).items()}


def state(table: gd.Table, rows: int, own: Block) -> State:
    """Return the arrays of the own classes of a table, without slots that are all 0."""
    columns = {name: np.ascontiguousarray(c).reshape(-1) for name, c in _columns(table, rows, own, own).items()}
    packed = {name: np.asarray(array) for name, array in stored_arrays.pack_table(TABLE, columns).items()}
    return {**packed, "first": own[0], "sums": table.sums, "range": table.range}


def fill(table: gd.Table, rows: int, own: Block, states: Sequence[State]) -> None:
    """Fill the own classes of a table from what `state` has returned for the blocks of all classes."""
    for state in states:
        first, width = state["first"], len(state["sums"])
        common = max(own[0], first), min(own[1], first + width)
        if common[0] >= common[1]:
            continue
        columns = {name: np.zeros(rows * width, np.float32) for name in gd.columns(table)}
        stored_arrays.unpack_table(TABLE, state, columns)
        for name, target in _columns(table, rows, own, common).items():
            target[:] = columns[name].reshape(rows, width)[:, common[0] - first : common[1] - first]
        table.sums[common[0] - own[0] : common[1] - own[0]] = state["sums"][common[0] - first : common[1] - first]
    table.range[:] = states[0]["range"]


class ClassesInParts(Spreadable):
    """The methods of a `OneAgainstAll` that concern its parts; the attributes are described there."""

    classes: int
    indivisible: bool
    own: Block
    table: gd.Table
    rule: gd.Rule
    rows: np.uint64
    norms: list[Float32s]
    order: Int32s
    random: UInt64s
    indexing: int
    next_negative: int

    @abstractmethod
    def classes_by_label(self, task: BatchTask) -> Labels: ...

    @abstractmethod
    def learn_classes(self, task: BatchTask, labels: Labels) -> tuple[Int64s, Float32s, Float32s]: ...

    @abstractmethod
    def report_best(
        self, task: BatchTask, labels: Labels, best: Int64s, score_of_best: Float32s, scores: Float32s
    ) -> None: ...

    @abstractmethod
    def no_norms(self) -> list[Float32s]: ...

    @property
    def units(self) -> int:
        return 1 if self.indivisible else self.classes

    @property
    def one_unit(self) -> str:
        if not self.indivisible:
            return ""
        return "with --l1, --l2 or --label_range seen, what one class learns changes the others"

    @property
    def rounds(self) -> list[Round]:
        return [self._learn_own]

    def _learn_own(self, task: BatchTask, received: Sequence[Any]) -> Message:
        """Learn the own classes; return the best of them."""
        best, best_score, scores = self.learn_classes(task, self.classes_by_label(task))
        return Message(None, Best(best[0], best_score[0], scores, task.skipped))

    def combine(self, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
        (bests,) = results
        for best in bests:
            np.maximum(task.skipped, best.skipped, out=task.skipped)
        self.report_best(task, self.classes_by_label(task), *joined(bests, self.classes))

    def part_state(self) -> State:
        facts = {"indexing": self.indexing, "next": int(self.next_negative), "rate": float(self.rule.rate)}
        return {**state(self.table, int(self.rows), self.own), "order": self.order, "random": self.random, **facts}

    def restore_part(self, states: Sequence[State]) -> None:
        fill(self.table, int(self.rows), self.own, states)
        self.norms = self.no_norms()
        shared = states[0]
        self.order[:], self.random[:] = shared["order"], shared["random"]
        self.indexing, self.next_negative = shared["indexing"], shared["next"]
        self.rule = self.rule._replace(rate=np.float32(shared["rate"]))

    def join(self, states: Sequence[State]) -> None:
        self.restore_part(states)
