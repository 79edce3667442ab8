"""What a reduction is: the record it offers and the learner it builds.

Learners have one base class with every default, and a small class for each thing that only some can do. A reduction
never sees text, files or the progress table. A run knows reductions by this page only: it asks
`isinstance(learner, Previews)` and so on, and never for a name.
"""

from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...array_types import Bools, Int64s, UInt32s, UInt64s
from ...binary import finite, gd
from ...data.batch import Batch
from ...model.stored_arrays import Stored
from ...options.declare import OptionGroup
from ...system import processors
from .contract import BatchTask, WeightLookup
from .result import Result
from .spec import LearnerSpec, Wanted
from .tree_view import TreeNode

LEAST_ROWS = 64  # examples of a batch that are worth a thread
PATH_GROUP = 0x88  # namespace of the features that a tree makes of the path of an example, see `CrossesPath`
_starting = threading.Lock()  # stages on several threads share out work for the first time


def pieces(n: int, parts: int) -> list[tuple[int, int]]:
    """Split 0..n-1 into so many neighbouring pieces of nearly the same size; return where each begins and ends."""
    return list(itertools.pairwise(n * t // parts for t in range(parts + 1)))


class Learner(ABC):
    """Base class of what learns. `arrays` and `facts` hold all of its state: restoring them continues the same run.

    Attributes
    ----------
    stages : called in this order for every BatchTask; each may run on a thread of its own, on one BatchTask at a time
    largest_step : an example is not learned from if its weight (or, unless `scales_examples`, max(1, weight) times the
        square of its largest value) exceeds this, because a sum could become infinite; infinite where the learner
        checks its steps itself, see `finite`
    scales_examples : whether examples have length 1 when they are learned from
    names : of the classes, where labels are names; it grows as they come
    highest_placed : the highest label that has a leaf although no example of it was learned, 0 for none
    workers : threads that `share` may use, None for as many as there are processors
    outside : examples with a label that is no class, which were not learned from; see `classes_of`
    lists_scores : whether it predicts the scores of all classes in place of the class
    enabled : what the line `Enabled learners:` says in place of the record's `enabled`, where options change it
    """

    stages: list[Callable[[BatchTask], None]]
    largest_step: float = np.inf
    scales_examples: bool = True
    names: Sequence[str] = ()
    highest_placed: int = 0
    workers: int | None = None
    outside: int = 0
    lists_scores: bool = False
    enabled: str = ""
    _threads: ThreadPoolExecutor | None = None  # made when there is work for several
    _process: int = 0  # that has made them

    @property
    def most_rows(self) -> int | None:
        """How many examples a BatchTask may have, None for any number; asked before every batch."""
        return None

    @property
    def classes_met(self) -> int:
        """How many classes it knows, of a learner that was not told how many there are."""
        return 0

    def want(self, wanted: Wanted) -> None:  # noqa: B027 (a learner without probabilities has nothing else to give)
        """Change what is asked for beside predictions; sums for the summary begin anew."""

    def survey(self, task: BatchTask, exact: bool) -> None:
        """Refuse the examples no step of which can be taken, unless VW's behaviour is wanted; see `finite`."""
        learns = ~np.isnan(task.batch.label) & task.learns()
        finite.survey(task.batch, learns, exact, self.largest_step, self.scales_examples, task.missed, task.span)

    def banner(self) -> list[str]:
        """Return lines for the start of the run (memory, shape), VW's where VW prints one."""
        return []

    def summary(self) -> list[str]:
        """Return lines for the end of the run, after those that every run has."""
        return []

    def results(self) -> list[Result]:
        """Return the files that were asked for; the run writes them before the summary."""
        return []

    @abstractmethod
    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned, as named little-endian arrays, the same for the same stream."""

    def facts(self) -> dict[str, Any]:
        """Return the JSON-able rest of what was learned (counters, random state, label range)."""
        return {}

    @abstractmethod
    def restore(self, arrays: Mapping[str, Stored], facts: Mapping[str, Any]) -> None:
        """Take over what `arrays` and `facts` gave in an earlier run.

        They come from a file that anybody may have made. Whatever a kernel uses as an index, as the end of a loop or as
        a link to follow is checked here, and what nobody asked for is refused: ModelError, see `stored_arrays.whole`.
        """

    def end_pass(self) -> None:  # noqa: B027 (most learners do nothing then)
        """Come to the end of a pass, when no stage is at work."""

    def close(self) -> None:
        """End the threads that the learner started."""
        if self._threads is not None and self._process == os.getpid():
            self._threads.shutdown()

    # for the reductions themselves

    def share(self, job: Callable[..., object], items: Iterable[tuple[Any, ...]]) -> None:
        """Do `job(*item)` for every item on several threads, in this one where there is one item at most."""
        items = list(items)
        if len(items) <= 1:
            for item in items:
                job(*item)
            return
        with _starting:
            if self._threads is None or self._process != os.getpid():  # a child made by fork has none of the threads
                self._threads = ThreadPoolExecutor(self.workers or processors.count(), "share")
                self._process = os.getpid()
        list(self._threads.map(lambda item: job(*item), items))

    def rows_of_threads(self, n: int, least: int = LEAST_ROWS) -> list[tuple[int, int]]:
        """Split the n examples of a batch for `share`: `least` of them at least for a thread."""
        return pieces(n, max(1, min(self.workers or processors.count(), n // least)))

    def classes_of(self, task: BatchTask, given: Bools, name: str, classes: int) -> Int64s:
        """Return the 0-based class of the examples that are `given` (bool[n]) to be learned from, -1 for all others.

        Labels outside 1..classes are counted in `outside`, and the user is told of the first.

        Parameters
        ----------
        name : of the reduction, for that message
        """
        batch = task.batch
        inside = given & (batch.label >= 1) & (batch.label <= classes)
        outside = given & ~inside
        if not self.outside and outside.any():
            first = int(np.argmax(outside))
            task.notes.append(
                f"label {batch.label[first]:.0f} in line {batch.line[first]} is outside 1..{classes}"
                f" (--{name} {classes}): such examples count as errors and are not learned"
            )
        self.outside += int(outside.sum())
        return np.where(inside, batch.label - 1, -1.0).astype(np.int64)


class Previews(ABC):
    """A learner that wants to see examples before it learns from any; they are learned from afterwards."""

    @property
    @abstractmethod
    def preview_size(self) -> int | None:
        """How many examples it still wants to see, 0 for all of the data, None for none."""

    @abstractmethod
    def preview(self, task: BatchTask) -> bool:
        """Look at examples, before any stage is called; return whether more are wanted."""

    @abstractmethod
    def end_preview(self) -> None:
        """Take note that there are no more, perhaps fewer than wanted; `preview_size` is None from then on."""


class Console(Protocol):
    """Whom a learner tells how far it is."""

    def info(self, text: str) -> None: ...

    def start_steps(self, count: int, unit: str) -> None: ...

    def step(self) -> None: ...


class LearnsAtEnd(ABC):
    """A learner that learns in `end_pass` only, when it has seen all of the data."""

    @property
    @abstractmethod
    def unlearned(self) -> bool:
        """Whether it was given examples it has yet to learn from; a model is not saved then."""

    @abstractmethod
    def report_to(self, console: Console, part: Callable[[], float | None]) -> None:
        """Take, before the first batch, the console for messages of `end_pass`, and a function that returns how much of
        the pass was read (0 to 1, None where that is not known)."""

    @abstractmethod
    def stop(self) -> None:
        """Let `end_pass` return soon, with what it has; the user may ask for that at any time."""


class Outlined(ABC):
    """A learner that is a tree, for `--print_tree` and `--dot_tree`."""

    @abstractmethod
    def outline(self, levels: int) -> Iterator[TreeNode]:
        """Yield the nodes of the first levels, see `tree_view.preorder`; no stage is at work."""


class CrossesPath(ABC):
    """A learner that makes features of an example's path, which interactions may name."""

    @abstractmethod
    def cross_path(self, interactions: list[bytes]) -> None:
        """Cross the features of the path with the other namespace of each interaction."""


class Inspectable(ABC):
    """A learner whose weights can be shown, for `--audit`, `--readable_model` and `--invert_hash`.

    Attributes
    ----------
    tables : all weight tables (`weight_table.Table`), whose slots are numbered through in this order; none where the
        options chose weights of another kind
    rule : by which they are updated
    """

    rule: gd.Rule
    tables: Sequence[gd.Table] = ()

    @property
    @abstractmethod
    def rows_are_exclusive(self) -> bool:
        """Whether a slot tells whose it is: sub-problem `slot % width` of the features whose place is in row
        `slot // width`; otherwise names are found by looking at what is asked of every example."""

    @abstractmethod
    def places(self, table: int, index: UInt32s) -> UInt64s:
        """Return where features lie in a table, uint64 before the mask: sub-problem j of a place is in slot
        `place + j`."""

    @abstractmethod
    def weight_lookups(self, batch: Batch) -> list[WeightLookup]:
        """Return what is asked, in this order, to predict the only example of `batch`, and then to learn from it."""

    def extra_features(self) -> list[WeightLookup]:
        """Return, with `rows_are_exclusive`, sub-problems with the features that the reduction may have added."""
        return []

    @abstractmethod
    def readable_lines(self) -> list[str]:
        """Return lines of the readable model about what was learned beside the weights."""


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
    resolve_defaults : `resolve_defaults(spec)` returns {field: value} for options whose defaults depend on others.
    label_range : `label_range(spec)` returns lowest and highest label and the option that says so, or None.
    check_arrays : `check_arrays(spec, arrays)` raises ModelError where the arrays of a model have other sizes than
        `build` would make room for; called before it, so that a small file cannot ask for much memory.
    probabilities : whether it gives classes probabilities, so that the options of `answers` hold for it.
    learner_options : fields of `gd.Options` that it takes; None for all.
    refused : `refused(spec)` returns options of a run that cannot go with it, and the message that says why.
    """

    name: str
    title: str
    summary: str
    options: type[OptionGroup]
    labels: str
    enabled: str
    build: Callable[[LearnerSpec], Learner]
    check: Callable[[LearnerSpec], None]
    resolve_defaults: Callable[[LearnerSpec], dict[str, object]]
    label_range: Callable[[LearnerSpec], tuple[int, int, str] | None]
    check_arrays: Callable[[LearnerSpec, Mapping[str, Stored]], None] = lambda spec, arrays: None
    probabilities: bool = False
    learner_options: tuple[str, ...] | None = None
    refused: Callable[[LearnerSpec], Mapping[str, str]] = lambda spec: {}
