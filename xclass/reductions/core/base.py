"""Define the interface of a reduction: its base class, and the record that describes it.

The base class `Reduction` has a default for every method that has one. A reduction never sees text, files or the
progress table. What can be done with a learner besides learning, predicting, saving and restoring is in `abilities`.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...array_types import Bools, Float64s, Int64s, UInt32s
from ...binary import finite, gd, weight_table
from ...binary.document_frequency import DocumentFrequencies
from ...data.interactions import Crosser
from ...errors import UsageError
from ...kernels.direct import DirectCall
from ...model.archive import Archive, LiveTable
from ...model.stored_arrays import Arrays, reject_unused
from ...options.declare import OptionGroup
from ...system import thread_limit
from . import label_arrays
from .calibration import LabelStatistics, ResultFile
from .contract import BatchTask, empty_task
from .label_report import LabelReport
from .probabilities import ListingOptions
from .seen_labels import Seen
from .spec import LabelRange, LearnerSpec, LearnerUse

FEW_ROWS = 2  # examples that are processed faster in the thread of the caller than on a thread pool
# what a reduction does with rows of numbers: it takes the dense block as it is, or learns from hashed features, and
# then it may learn badly if all examples have the same ones
TAKEN, HASHED, UNSUITED = "taken", "hashed", "unsuited"
LEAST_ROWS = 64  # minimum number of examples for a thread of its own
_survey = DirectCall(finite, "survey")
_find = DirectCall(weight_table, "find")


def split_range(n: int, parts: int) -> list[tuple[int, int]]:
    """Split range(n) into `parts` consecutive ranges of nearly equal size; return (begin, end) of each."""
    return list(itertools.pairwise(n * t // parts for t in range(parts + 1)))


class MessageConsole(Protocol):
    """Receive the progress messages of a learner."""

    def info(self, text: str) -> None: ...

    def start_steps(self, count: int, unit: str) -> None: ...

    def step(self) -> None: ...


class PreviewSample(Protocol):
    """Collect examples before any is learned."""

    examples: float  # how many to collect, infinitely many for all of the data


class Reduction(ABC):
    """Define the interface of learners and its defaults.

    `serialize` has the whole state of a learner: a learner restored from it continues the same run.
    """

    # functions called in this order for every BatchTask; each may run on a thread of its own, and handles one BatchTask
    # at a time
    stages: list[Callable[[BatchTask], None]]
    # an example is not learned from if its weight (or, unless `scales_examples`, max(1, weight) * max(1, value**2) for
    # its largest value) exceeds this, because a sum could become infinite; infinite if the learner checks its steps
    # itself, see `finite`
    largest_step: float = np.inf
    scales_examples: bool = True  # whether examples are scaled to length 1 before they are learned from
    names: Sequence[str] = ()  # names of the classes, if labels are names; the list grows when new classes occur
    highest_placed: int = 0  # the highest label that has a leaf although no example of it was learned, 0 for none
    numbered: Seen | None = None  # the labels that were seen, if the learner numbers them as they occur
    preview_sample: PreviewSample | None = None  # what the preview fills, None if there is none
    workers: int | None = None  # number of threads that `share` may use, None for one per processor
    # number of examples whose label is outside the range of classes, which were not learned; see `classes_of`
    outside: int = 0
    lists_scores: bool = False  # whether the prediction is the scores of all classes instead of a class
    # text of the line `Enabled learners:` if options change it; otherwise `ReductionRecord.enabled` is used
    enabled: str = ""
    # sums of the probabilities' or predictions' losses for the summary, None if there are none
    report: LabelStatistics | LabelReport | None = None
    # what the summary calls labels without a probability; None if the learner estimates no probabilities of classes
    unknown_labels: str | None = None
    wanted: LearnerUse  # results in addition to predictions, and the options about them; set by `want`
    listing_options: ListingOptions
    predict_only: bool = False  # whether models hold only what predictions need
    tallied: Sequence[str] = ()  # names of the attributes that are other sums over examples for the summary
    repeats: bool = False  # whether the examples were learned before, in an earlier pass over the data
    # whether examples are held out, so that these alone are measured for the report of lists of labels
    holds_out: bool = False
    # weight tables of `gd`, whose slots are numbered consecutively in this order; empty if it has others
    tables: Sequence[gd.WeightTable] = ()
    rows: np.uint64 = np.uint64(0)  # number of rows of the tables to which features are cut, 0 if they are not
    # in how many examples each feature occurs, None if that is not counted
    frequencies: DocumentFrequencies | None = None
    # update rule and options of these tables
    rule: gd.UpdateRule
    learner_options: gd.BinaryOptions
    _pool: tuple[ThreadPoolExecutor, int] | None = None  # made when `share` first needs it, by the process of this id

    @property
    def most_rows(self) -> int | None:
        """Return the maximum number of examples in the next BatchTask, None for any number."""
        return None

    @property
    def classes_seen(self) -> int:
        """Return how many classes were seen so far, if their number was not given as an option; else 0."""
        return int(self.numbered.size[0]) if self.numbered else 0

    @property
    def highest_seen(self) -> int:
        """Return the highest class of the examples learned, if the number of classes was not given as an option."""
        return int(self.numbered.label[: self.classes_seen].max(initial=0)) if self.numbered else 0

    @property
    def awaited(self) -> float:
        """Return how many examples to preview before any is learned: infinitely many for all data, 0 for no preview."""
        return 0 if self.preview_sample is None else self.preview_sample.examples

    def preview(self, task: BatchTask) -> bool:
        """Read the examples of a batch, before any stage is called; return whether more are needed."""
        raise NotImplementedError

    def end_preview(self) -> None:
        """End the preview, even if fewer examples arrived than requested; `awaited` becomes 0."""
        raise NotImplementedError

    @property
    def unlearned(self) -> bool:
        """Return whether examples are collected for `end_pass` and not yet learned; a model is not saved then."""
        return False

    def report_to(self, console: MessageConsole, part: Callable[[], float | None]) -> None:  # noqa: B027 (few have messages)
        """Set the console for messages of `end_pass`; called before the first batch.

        `part` returns which part of the pass was read, from 0 to 1, or None if that is unknown.
        """

    def stop(self) -> None:  # noqa: B027 (most learners end a pass at once)
        """Make `end_pass` return soon with the model reached so far; may be called at any time."""

    def cross_path(self, crosser: Crosser) -> None:
        """Cross the features that encode an example's path in a tree as the interactions say that name PATH_GROUP."""
        raise UsageError(
            "namespace \\x88 is the path of --recall_tree, which was not chosen; leave the interaction out, or choose "
            "--recall_tree"
        )

    def want(self, wanted: LearnerUse) -> None:
        """Change which results are produced in addition to predictions, and reset the sums for the summary."""
        self.wanted, self.listing_options = wanted, wanted.listing_options
        self.report = self.new_report()

    def new_report(self) -> LabelStatistics | LabelReport | None:
        """Return sums for the summary without examples."""
        return None if self.unknown_labels is None else LabelStatistics(self.listing_options, 1, self.unknown_labels)

    def find(self, feature: UInt32s) -> Bools | None:
        """Return bool[z], whether each feature (uint32[z]) was learned; None if this cannot be told.

        A feature that was not may share its weights with one that was.
        """
        if self.frequencies is not None:
            return self.frequencies.find(feature)
        if not self.tables:
            return None
        found = np.zeros(len(feature), bool)
        for table in self.tables:
            _find(table, feature, self.rows, found)
        return found

    def survey(self, task: BatchTask, vw_exact: bool) -> None:
        """Mark examples that cannot be learned from without overflow, see `finite.survey`; --vw_exact refuses none."""
        learns = ~np.isnan(task.batch.label)
        if task.held_out is not None:
            learns &= ~task.held_out
        _, skipped, value_range = task.guard
        _survey(task.batch, learns, vw_exact, self.largest_step, self.scales_examples, skipped, value_range)

    def tallies(self) -> dict[str, Any]:
        """Return the sums over examples that the summary shows, for `add_tallies` of another learner."""
        own = {name: getattr(self, name) for name in self.tallied}
        return own if self.report is None else {**own, "report": self.report.tallies()}

    def add_tallies(self, tallies: Mapping[str, Any]) -> None:
        """Add the sums of a learner of the same kind that has seen other examples."""
        for name in self.tallied:
            setattr(self, name, getattr(self, name) + tallies[name])
        if self.report is not None:
            self.report.add_tallies(tallies["report"])

    def clear_tallies(self, wanted: LearnerUse) -> None:
        """Begin the sums for the summary anew."""
        self.want(wanted)
        for name in self.tallied:
            setattr(self, name, 0.0)

    def results(self) -> list[ResultFile]:
        """Return the files that the options ask for, such as the reliability table; the run writes them at its end."""
        return [] if self.report is None else self.report.results()

    @abstractmethod
    def serialize(self, archive: Archive) -> None:
        """Save or restore the whole state: learned arrays by name, little-endian, and numbers that JSON can hold.

        Equal streams of examples give equal bytes. A model file can be damaged or crafted, so every number that a
        kernel uses as an index, a loop bound or a link must be checked here when it is restored.
        """

    def saved(self, live: bool = False) -> Archive:
        """Return the arrays and facts of the state; if it is live, its large tables are handed over as they are."""
        archive = Archive(predict_only=self.predict_only)
        archive.live = {} if live else None
        self.serialize(archive)
        return archive

    def restore(self, arrays: Arrays, facts: Mapping[str, Any], live: Mapping[str, LiveTable] | None = None) -> None:
        """Restore the state from what `saved` returned in an earlier run; refuse arrays and facts that it lacks."""
        with reject_unused(arrays, facts) as (arrays, facts):
            archive = Archive(arrays, facts, self.predict_only)
            archive.live = None if live is None else dict(live)
            self.serialize(archive)

    def begin_pass(self, number: int, threads: int | None = None, held_out: bool | None = None) -> None:
        """Begin a pass over the data, by its number from 0; called while no stage runs.

        `threads` is the number of threads that `share` may use, and `held_out` says whether examples are held out; None
        leaves them as they are.
        """
        self.repeats = number > 0
        self.workers = self.workers if threads is None else threads
        self.holds_out = self.holds_out if held_out is None else held_out

    def end_pass(self) -> None:
        """Finish a pass; called while no stage runs. The learning rate of `tables` decays."""
        if self.tables:
            self.rule = gd.after_pass(self.rule, self.learner_options)

    def can_learn(self, label: Int64s) -> Bools:
        """Return bool[n]: whether each label in the range of labels can be learned without adding a class."""
        return np.ones(len(label), bool)

    def warm_ups(self, learn: bool) -> dict[str, Callable[[], None]]:
        """Return functions that each compile some of the kernels of the stages, in different processes if need be."""

        def pass_stages() -> None:
            task = empty_task(learn)
            for stage in self.stages:
                stage(task)

        return {"stages": pass_stages}

    def close(self) -> None:
        """Shut down the threads that the learner started; it cannot be used afterwards.

        The stages are bound methods, which refer to the learner. Without them its memory is freed with the last
        reference to it, and need not wait for the garbage collector.
        """
        if self._pool is not None and self._pool[1] == os.getpid():
            self._pool[0].shutdown()
        self.stages = []

    # helpers for subclasses

    def share(
        self,
        job: Callable[..., object],
        items: Iterable[tuple[Any, ...]],
        rows: int | None = None,
        in_order: bool = False,
    ) -> None:
        """Call `job(*item)` for every item on a pool of threads and wait for all.

        A single item, all items of a few examples, those of a learner with one worker, and those that have to be
        processed `in_order` are processed in this thread. `job` should release Python's lock, as kernels do; `rows` is
        the number of examples of each item, None for many.
        """
        items = list(items)
        if in_order or len(items) <= 1 or self.workers == 1 or (rows is not None and rows <= FEW_ROWS):
            for item in items:
                job(*item)
            return
        pool = self._pool  # if stages on two threads make one each, that of the first ends with its work
        if pool is None or pool[1] != os.getpid():  # threads do not survive fork
            pool = self._pool = ThreadPoolExecutor(self.workers or thread_limit.processors(), "share"), os.getpid()
        thread_limit.share(pool[0], job, items)

    def thread_ranges(self, n: int, least: int = LEAST_ROWS) -> list[tuple[int, int]]:
        """Split n examples into ranges (begin, end) for `share`, at most one per worker, each of `least` or more."""
        if n < 2 * least:  # counting the processors takes longer than some kernels do for a single example
            return [(0, n)]
        return split_range(n, min(self.workers or thread_limit.processors(), n // least))

    def classes_of(self, task: BatchTask, learns: Bools, name: str, classes: int) -> Int64s:
        """Return the 0-based class of each example (int64[n]), -1 for examples that are not learned from.

        Examples with a label outside 1..classes are counted in `outside`; the first of them adds a warning to the task.
        `learns` are the examples that have a label and are to be learned from, and `name` is that of the reduction.
        """
        batch = task.batch
        result, outside, first = label_arrays.classes(batch.label, learns, classes)
        if not self.outside and outside:
            task.notes.append(
                f"label {batch.label[first]:.0f} in line {batch.line[first]} is outside 1..{classes}"
                f" (--{name} {classes}); such examples count as errors and are not learned"
            )
        self.outside += outside
        return result

    def set_best(self, task: BatchTask, top: Int64s, top_p: Float64s, known: Bools, p: Float64s) -> None:
        """Set the results of a task from its best classes and their probabilities; see `set_probabilities`."""
        task.prediction = top[:, 0].astype(np.float64)
        task.loss = label_arrays.wrong_weights(task.prediction, task.batch.label, task.batch.weight)
        self.set_probabilities(task, top_p[:, 0], known, p, top)
        if self.wanted.lists_best:
            task.list_classes(top, top_p)

    def set_probabilities(
        self, task: BatchTask, forecast: Float64s, known: Bools, p: Float64s, top: Int64s, right: Bools | None = None
    ) -> None:
        """Set the probabilities of a task that has its predictions, and add them to the report.

        Parameters
        ----------
        forecast : float64[n], probability of the prediction
        known, p : bool[n], whether the label has a probability, and float64[n], this probability
        top : int64[n, k], best classes, for --top_k
        right : bool[n], whether the class with the probability `forecast` is the label; by default, the prediction is
        """
        batch, report = task.batch, self.report
        assert isinstance(report, LabelStatistics) and task.prediction is not None
        labelled, weight = ~np.isnan(batch.label), batch.weight.astype(np.float64)
        task.answer_probability, task.label_probability = forecast, np.where(known, p, np.nan)
        report.add_losses(labelled, weight, known, p)
        right = task.prediction == batch.label if right is None else right
        report.add_forecasts(forecast, labelled, weight, right)
        if self.listing_options.top_k is not None:
            report.add_top_k(labelled, weight, batch.label, top)


# named functions, because the record is sent to other processes
def _accept(*_: object) -> None:
    """Accept all options, or any arrays of a model file."""


def _defaults(spec: LearnerSpec) -> dict[str, object]:
    """Return the defaults of the binary learner for one regressor per class, or for one if there are no classes."""
    return gd.resolve_defaults(spec.binary, spec.classes or 1, reduction=spec.classes is not None)


def _from_one(spec: LearnerSpec) -> LabelRange:
    """Return the range of labels of a reduction whose option is the number of classes."""
    classes = spec.classes or 0
    return LabelRange(1, classes, f"--{spec.name} {classes}")


@dataclass(frozen=True)
class ReductionRecord:
    """Describe a reduction to the command line and the library; an entry of `REDUCTIONS`."""

    name: str  # name of the option that selects it, `--name K`; "scalar", the binary learner alone, has no such option
    title: str  # heading of its options in the help
    summary: str  # one line for the help: what it is and when to use it
    options: type[OptionGroup]  # a dataclass
    enabled: str  # VW's name for it in the line `Enabled learners:`
    build: Callable[[LearnerSpec], Reduction]  # `build(spec)` returns a new one
    # "multiclass" (each example has one class), "multilabel" (a list of classes) or "simple" (a real number)
    labels: str = "multiclass"
    # `resolve_defaults(spec)` returns {field: value} for options whose defaults depend on others
    resolve_defaults: Callable[[LearnerSpec], dict[str, object]] = _defaults
    # `label_range(spec)` returns the range of labels; the default is 1..K of the option `--name K`
    label_range: Callable[[LearnerSpec], LabelRange] = _from_one
    # `check(spec)` raises UsageError if options do not fit together, beyond the `RULES` of its options
    check: Callable[[LearnerSpec], None] = _accept
    # `check_arrays(spec, arrays)` raises ModelError if the arrays of a model have other sizes than `build` would
    # allocate; called before `build`, so that a small file cannot demand much memory
    check_arrays: Callable[[LearnerSpec, Arrays], None] = _accept
    # whether it gives probabilities of classes, so that the options of `core.probabilities` apply
    probabilities: bool = False
    # whether each class has a regressor that estimates its probability, for `--probabilities raw`
    class_estimates: bool = False
    # whether it scores classes by regressors, all of them or candidates, see `LearnerUse.scores`
    class_scores: bool = False
    learner_options: tuple[str, ...] | None = None  # fields of `gd.BinaryOptions` that apply to it; None for all
    # whether it only collects examples in its stages and learns from all of them in `end_pass`
    learns_at_end: bool = False
    dense: str = HASHED  # what becomes of the dense block of a batch, see TAKEN
    rows_with: str = ""  # the option with which the block is taken all the same
    widest_array: int = 1 << 32  # most columns of an array that it takes as they are; those of a wider one are hashed
    not_merged: str = ""  # why models of it cannot be merged, for the message; empty if `abilities.merge` has a module
