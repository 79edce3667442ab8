"""What a reduction is: the record it offers, the learner it builds, the work it is handed.

The driver knows reductions by this page only. A reduction never sees text, files or the progress table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...binary import finite
from ...data.batch import Batch
from .probabilities import Listing
from .spec import LearnerSpec
from .tree_view import TreeNode


@dataclass
class Work:
    """One batch on its way through a learner's stages, and what they found.

    `prediction` is made before the example is learned from (progressive validation): a class as written in
    the file (0 where nothing can be answered), or the real-valued prediction after the link function.
    """

    batch: Batch
    learn: bool  # False: predict only (-t)
    clock: np.ndarray  # float64[n], weight of the labelled examples up to and including this one
    prediction: np.ndarray | None = None  # float64[n]
    loss: np.ndarray | None = None  # float64[n], times weight; 0 for unlabelled; None where it is not reported
    log_loss: np.ndarray | None = None  # float64[n], times weight, where probabilities are asked for
    shown: np.ndarray | None = None  # float64[n], probability shown beside the prediction in the table, or None
    listing: Listing | None = None  # what -p writes in place of the prediction
    scores: np.ndarray | None = None  # float32[...], what -r writes, in the order of `score_labels`
    score_labels: np.ndarray | None = None  # int64[...], class of each score, as written in the file
    score_start: np.ndarray | None = None  # int64[n + 1], scores of example i: score_start[i]:score_start[i + 1]
    raw: np.ndarray | None = None  # float32[n], unclipped prediction of the learner alone (-r)
    notes: list[str] = field(default_factory=list)  # lines for the user, in order
    features: np.ndarray | None = None  # int64[n], features of each example as shown, those not learned from too
    plan: Any = None  # what an earlier stage hands to a later one
    unasked: np.ndarray | None = None  # bool[n], no regressor was asked; VW counts no crosses then. None: not looked at
    held: np.ndarray | None = None  # bool[n], held out: predicted only; None where none is
    nameless: Batch | None = None  # the batch with all its features, where their names are lost
    missed: np.ndarray = None  # uint8[n] and float32[n, 3], see `finite.Watch`; set by `survey`
    span: np.ndarray = None

    def __post_init__(self):
        if self.missed is None:
            self.missed = np.zeros(self.batch.n, np.uint8)
            self.span = finite.ordinary_span(self.batch.n)

    def survey(self, learner: Learner, exact: bool) -> None:
        """Refuse the examples no step of which can be taken, unless VW's behaviour is wanted; see `finite`."""
        largest, scaled = getattr(learner, "largest_step", np.inf), getattr(learner, "scales_examples", True)
        learns = ~np.isnan(self.batch.label) & self.learns()
        finite.survey(self.batch, learns, exact, largest, scaled, self.missed, self.span)

    def learns(self) -> np.ndarray:
        """Whether each example may be learned from, if it has a label: bool[n]."""
        if not self.learn:
            return np.zeros(self.batch.n, bool)
        found = self.missed != finite.REFUSED
        return found if self.held is None else found & ~self.held

    def learned(self) -> np.ndarray:
        """Whether each example is learned from, having a label and a weight above 0: bool[n]."""
        return ~np.isnan(self.batch.label) & (self.batch.weight > 0) & self.learns()


class Look(NamedTuple):
    """One sub-problem that was asked about an example."""

    table: int  # position in `Learner.tables`
    sub: int  # within its table
    number: int  # of the sub-problem among all of the learner's
    extra: tuple[tuple[int, float], ...] = ()  # places and values of features the reduction adds


class Learner(Protocol):
    """State that learns. All of it is in `arrays` and `facts`: restoring them continues the very same run."""

    stages: list[Callable[[Work], None]]
    """Called in this order for every Work; each may run on a thread of its own, on one Work at a time."""

    largest_step: float
    """Most an example's weight may be, or max(1, weight) * max(1, value**2) where not `scales_examples`; no such
    attribute: anything, as steps are looked at. See `finite`."""

    scales_examples: bool
    """Whether examples have length 1 when they are learned from, or no such attribute."""

    most_rows: int | None
    """Examples a Work may have; None, or no such attribute, for any number. Asked before every batch."""

    def banner(self) -> list[str]:
        """Lines for the start of the run (memory, shape), VW's where VW prints one."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that was learned, as named little-endian arrays, the same for the same stream."""

    def facts(self) -> dict[str, Any]:
        """The JSON-able rest of what was learned (counters, random state, label range)."""

    def restore(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
        """Take over what `arrays` and `facts` gave in an earlier run.

        They come from a file that anybody may have made. Whatever a kernel uses as an index, as the end of a loop or as
        a link to follow is checked here, and what nobody asked for is refused: ModelError, see `stored_arrays.whole`.
        """

    def close(self) -> None:
        """End the threads the learner started."""

    def end_pass(self) -> None:
        """Called between two passes, when no stage is at work."""

    # What a learner may have that learns in `end_pass` only, when it has seen all of the data.

    unlearned: bool
    """Whether it was given examples it has yet to learn from; a model is not saved then."""

    def attend(self, talk: Any, part: Callable[[], float | None]) -> None:
        """Called before the first batch: whom to tell what `end_pass` does, see `console.Talk`, and what returns how
        much of a pass was read, 0 to 1, or None where that is not known."""

    def stop(self) -> None:
        """Called when the user ends the run, at any time: `end_pass` is to return soon, with what it has."""

    # What a learner may ask for that wants to see examples before it learns from any. They are learned from afterwards.

    preview_size: int | None
    """How many examples it still wants to see; 0 for all of the data; None, or no such attribute, for none."""

    def preview(self, work: Work) -> bool:
        """Look at examples, before any stage is called; return whether more are wanted."""

    def end_preview(self) -> None:
        """Called after the last of them, which may be fewer; `preview_size` is None from then on."""

    # What `--print_tree` and `--dot_tree` ask for, when no stage is at work; only trees have it.

    def outline(self, levels: int) -> Iterator[TreeNode]:
        """The nodes of the first levels, see `tree_view.preorder`."""

    # What `--audit`, `--readable_model` and `--invert_hash` ask for, when no stage is at work.

    own_rows: bool
    """Whether a slot tells whose it is: sub-problem `slot % width` of the features whose place is in row
    `slot // width`. Otherwise names are found by looking at what is asked of every example."""

    tables: list[Any]
    """All weight tables (learner.Table); their slots are numbered through in this order."""

    def places(self, table: int, index: np.ndarray) -> np.ndarray:
        """Where features lie in a table, as uint64 before the mask: sub-problem j of a place in slot `place + j`."""

    def look(self, batch: Batch) -> list[Look]:
        """What is asked, in this order, to predict the only example of `batch`, and beyond that to learn from it."""

    def added(self) -> list[Look]:
        """With `own_rows`: sub-problems with the places of all features the reduction may have added for them."""

    def describe(self) -> list[str]:
        """Lines of the readable model about what was learned beside the weights."""


@dataclass(frozen=True)
class Reduction:
    """One entry of `REDUCTIONS`.

    Attributes
    ----------
    name : the option that chooses it, `--name K`; the learner alone has the name "scalar" and no option.
    title : heading of its options in the help.
    summary : one line for the help: what it is and when to use it.
    options : its `Options` dataclass.
    labels : "simple" (real-valued) or "multiclass".
    enabled : VW's name in the line `Enabled learners:`.
    build : `build(spec)` returns a new Learner.
    check : `check(spec)` raises UsageError where options do not fit together.
    settle : `settle(spec)` returns {field: value} for options whose defaults depend on others.
    allowed : `allowed(spec)` returns lowest and highest label and the option that says so, or None.
    check_arrays : `check_arrays(spec, arrays)` raises ModelError where the arrays of a model have other sizes than
        `build` would make room for; called before it, so that a small file cannot ask for much memory.
    probabilities : whether it gives classes probabilities, so that the options of `answers` hold for it.
    """

    name: str
    title: str
    summary: str
    options: type
    labels: str
    enabled: str
    build: Callable[[LearnerSpec], Learner]
    check: Callable[[LearnerSpec], None]
    settle: Callable[[LearnerSpec], dict[str, Any]]
    allowed: Callable[[LearnerSpec], tuple[int, int, str] | None]
    check_arrays: Callable[[LearnerSpec, dict[str, np.ndarray]], None] = lambda spec, arrays: None
    probabilities: bool = False
