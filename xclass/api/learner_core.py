"""Combine a reduction with the names of its classes and with counts of the examples that it has learned from.

Programs and runs of the command share this code. `tasks` splits a batch into tasks, each task passes the stages of the
reduction one after the other, and `record` notes what became of it. `learn` and `predict` do this for a program; a run,
and `learn` with several batches, execute each stage on a thread of its own.

Messages and counts, who adds to them and who takes them out:

    task.notes      the stages of a reduction          `_note_examples`, once per task, into `notes`
    notes           options, `tasks`, `Inputs`         `take_notes`, once per call, request or batch of a run
    source.notes    the reader of the present source   `take_notes`, with `notes`
    counted         `_note_examples`, once per task    `end_notes`, once per pass; `count_anew`, once per part of data
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from ..binary import gd
from ..data import batch_ops, class_names, feature_names, interactions, tables
from ..data.batch import PATH_GROUP, Batch
from ..data.schema import NUMBER, OTHER, Schema
from ..errors import DataError, UsageError
from ..reductions.core import base
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.spec import LearnerUse
from ..system import exclusive
from ..system.pipeline import Pipeline
from ..text.text_format import TextFormat, advice
from . import configuration, labels
from .configuration import Config
from .example_notes import ExampleNotes, LabelCheck, UnknownFeatures, shifted
from .model_contents import ModelContents
from .preparation import Preparation
from .progress import VW, Progress
from .progress_table import RowSchedule

OfProgress = TypeVar("OfProgress", bound=Progress)
FEW = 256  # examples that a stream begins with, see `learns_singly`


class ExampleSource(Protocol):
    """Describe what examples are read from."""

    @property
    def name(self) -> str: ...  # of the file

    @property
    def notes(self) -> list[str]: ...  # warnings

    @property
    def format(self) -> TextFormat | None: ...

    def report(self) -> list[str]: ...


class LearnerCore:
    """Learn and predict batches by a reduction whose options are resolved; `jit.activate` has to be called before.

    Parameters
    ----------
    config : the value of every option, and how the learner is used
    contents : contents of the model that learning continues from; None for a new learner

    Attributes
    ----------
    preparation : converts batches into tasks: n-grams, interactions, checks of values
    schema : columns of the tables learned from
    takes_block : whether the reduction learns from the dense block of a batch, so that rows of numbers are not hashed
    examples : number of examples learned from, earlier runs included
    clock : sum of the weights of the labelled examples, earlier runs included
    progress : counts examples and losses; a caller may replace it
    only_predicts : whether the model was saved with --predict_only_model, so that it cannot learn; with --vw_exact it
        learns on, as in VW
    learns_singly : whether it has learned few examples, the last one alone, so that most features are still to come
    namespace_of_words : returns the namespace in which the words of a text, None for the last one, are found, None if
        there is none
    notes : warnings, about options, the text of the examples, and what became of them, see `take_notes`. A source of
        examples adds its own, see `read_from`
    counted : counts of the examples that passed the stages, for `end_notes` and for summaries
    on_learned : `learn` calls it with each task that was learned and counted; None for nothing
    """

    _reduction: base.Reduction | None = None
    _numbers: list[Any]  # see `classes`
    on_learned: Callable[[BatchTask], None] | None = None

    def __init__(self, config: Config, contents: ModelContents | None = None) -> None:
        self.only_predicts = contents is not None and contents.counters is None and not config.run.vw_exact
        if self.only_predicts:
            use = replace(config.use, weights_only=not config.use.inspected)
            config = config.with_values({"predict_only_model": True}, use)
        self.config = config
        self.spec = spec = configuration.spec_of(config)
        self._check(spec)
        self.label_range = configuration.label_range(config)
        self.takes_block = configuration.dense_of(config) == base.TAKEN
        self.names = class_names.Names(spec.names, spec.learn_names and not spec.testing)
        self.schema = Schema()
        self.schema.width = config.parser.dense_namespace()[1]
        self._numbers = []
        self.examples, self.clock = 0, 0.0
        self.learns_singly = False
        self.namespace_of_words: Callable[[str | None], str | None] = lambda text: None
        self.notes: list[str] = [*config.notes]
        self._source: ExampleSource | None = None
        learns_names = config.reduction.labels != "simple" and not spec.vw_exact
        self._label_check = LabelCheck(self.names.names, not config.reduction.learns_at_end) if learns_names else None
        self._compared = contents is None  # whether the first examples of a file or run were compared with the model
        self._rows_noted = False  # whether a note says that the reduction learns badly from rows
        self._pending: list[BatchTask] = []  # given to `learn` before the reduction had seen enough examples
        if contents is not None:  # check the sizes of the arrays before memory of these sizes is allocated
            config.reduction.check_arrays(spec, contents.arrays)
        self.preparation = Preparation(config, spec.vw_exact)
        self.notes += self.preparation.notes
        self.counted = self._new_counts()
        self._build(contents)
        self.progress = self.new_progress(Progress)
        if contents is not None:
            self.examples, self.clock = contents.examples, contents.clock
            of_vw = (contents.counters or {}).get(VW) if spec.vw_exact else None
            if of_vw is not None:  # VW continues from the clock alone
                self.clock = float(of_vw["t"]) - config.learner.initial_t
            elif contents.counters is not None:
                self.progress.resume(contents.counters, self.examples)

    def new_progress(
        self, kind: type[OfProgress], schedule: RowSchedule | None = None, holdout: bool = False,
        names: Sequence[str] | None = None,
    ) -> OfProgress:  # fmt: skip
        """Return what counts the examples of this learner, see `Progress`."""
        exact, labels = self.spec.vw_exact, self.config.reduction.labels
        lists_scores = exact and bool(self.reduction.lists_scores or self.config.listing_options.probabilities)
        return kind(labels, schedule, holdout, names, exact, lists_scores)

    @property
    def reduction(self) -> base.Reduction:
        """Return the learner of the reduction; raise UsageError if this learner is closed."""
        if self._reduction is None:
            raise UsageError("this learner is closed; load its model, or create another learner")
        return self._reduction

    def _build(self, contents: ModelContents | None) -> None:
        """Build the reduction and restore it from the contents of a model, if there are any."""
        self._reduction = self.config.reduction.build(self.spec)
        self._wanted: LearnerUse | None = self.spec
        self.unknown_features = UnknownFeatures()
        self.reduction.names = self.names.names
        try:
            if contents is not None:
                self.schema.replace(contents.schema)
                self.schema.form = self.schema.form or OTHER
                arrays = contents.arrays
                stored = gd.arrays_for_prediction(arrays) if self.spec.weights_only else arrays
                self.reduction.restore(stored, contents.learner, contents.live)
            self._cross_path()
        except BaseException:
            self.reduction.close()
            raise

    def _cross_path(self) -> None:
        """Pass the interactions that include path features to the reduction, which creates these features."""
        path_crosses = b"".join(self.preparation.crosser.with_group(PATH_GROUP))
        if not path_crosses:
            return
        self.reduction.cross_path(self.preparation.crosser)
        only = np.flatnonzero(self.preparation.features.interaction_only).tolist()
        ignored = [group for group in only if group in path_crosses or interactions.WILDCARD in path_crosses]
        if ignored:
            raise UsageError(
                f"--ignore_linear drops namespace {chr(ignored[0])!r}, so it cannot be crossed with the path, "
                "namespace \\x88; leave out --ignore_linear or this interaction"
            )

    def _check(self, wanted: LearnerUse) -> None:
        record = self.config.reduction
        wanted.listing_options.check(record.name, record.class_estimates, self.spec.vw_exact)

    def want(self, wanted: LearnerUse | None = None) -> None:
        """Tell the reduction what is wanted besides predictions, unless it knows; by default what its spec says."""
        wanted = wanted or self.spec
        if self._wanted is not wanted:
            self._check(wanted)
            self._wanted = None  # if this is interrupted
            self.reduction.want(wanted)
            self._wanted = wanted

    @property
    def classes(self) -> Sequence[Any] | None:
        """Return the classes as a program gets them, by number from 1; None if they are these numbers."""
        names = self.names.class_list
        if names is None or not self.schema.classes:
            return names
        new = names[len(self._numbers) :]
        self._numbers += (int(name) if class_names.WHOLE.fullmatch(name) else name for name in new)
        return self._numbers

    def with_names(self, highest: int | None = None, given: str = NUMBER) -> LearnerCore | None:
        """Return a learner that has learned the same and takes any number or name as a class; this one is closed.

        Its classes are names, those of the classes up to the `highest` being their numbers, and a program gets them
        back as it has `given` them, see `Schema.classes`. None if that is not possible: the number of classes is given,
        some examples are not learned yet, or there would be too many names. The new learner goes on with the notes, the
        number of skipped updates, and `on_learned`; counts of labels and checks of their order begin anew, and
        it reads from no source.
        """
        if highest is None and configuration.grows(self.config.reduction):
            highest = self.reduction.highest_seen
        held = bool(self._pending) or self.reduction.unlearned or (self.examples and self.reduction.awaited)
        if highest is None or highest > labels.HIGHEST_NUMBER or held or self.only_predicts or self.spec.vw_exact:
            return None
        lowest = self.label_range.lowest or 0
        names = list(map(str, range(lowest, highest + 1))) if self.examples else []
        changed = {"learn_names": True, "named_labels": ",".join(names) or None}
        config = configuration.with_defaults(self.config.with_values(changed))
        contents = self.contents() if self.examples else None
        if contents is not None:
            contents.options.update(changed)
            contents.schema.classes = given
        new = LearnerCore(config, contents)
        new.schema.replace(self.schema)
        new.schema.classes = given
        new.notes[:], new.on_learned, new._compared = self.notes, self.on_learned, self._compared
        new.counted = new._new_counts(self.counted)
        self.close()
        return new

    @property
    def unlearned(self) -> bool:
        """Return whether it learns from examples later, once it has seen enough of them or at the end of a pass."""
        return self.reduction.awaited > 0 or self.reduction.unlearned

    @property
    def is_new(self) -> bool:
        """Return whether it has neither learned nor seen an example, nor was loaded."""
        return not (self.examples or self.spec.loaded or self._pending)

    def tasks(self, batch: Batch, learn: bool, clock: float, held_out: np.ndarray | None = None) -> Iterator[BatchTask]:
        """Yield the tasks of a batch, which the caller passes through the stages.

        Parameters
        ----------
        batch : n examples
        learn : whether the labelled examples are learned from; raise UsageError if the model can only predict
        clock : sum of the weights of the labelled examples before this batch
        held_out : bool[n], examples that are only predicted; None for none
        """
        if learn:
            self.check_learns()
        if batch.columns or self.schema.width:
            batch = self._with_block(batch, learn, "" if self._source is None else self._source.name)
        if learn and self._label_check is not None and not self.reduction.repeats:
            format = None if self._source is None else self._source.format
            self._label_check.doubted |= format is not None and format.doubted
            self.notes += self._label_check.check(batch, self._source is not None)
        compared, self._compared = self._compared, self._compared or batch.n > 0
        if not compared and self._source is not None:
            self._note_shift(self._source)
        file = "" if self._source is None else self._source.name
        tasks = self.preparation.tasks(self.reduction, batch, held_out, learn, clock, file)
        if learn and not compared:
            tasks = self._compare(tasks)
        lists_names = self.config.reduction.labels == "multilabel" and self.names.class_list is not None
        return map(self._with_names, tasks) if lists_names and not self.spec.vw_exact else tasks

    def tasks_of(
        self, items: Iterable[Any], learn: bool, timed: Callable[[Iterator[BatchTask]], Iterable[BatchTask]] = iter
    ) -> Iterator[Any]:
        """Yield the tasks of pairs of a batch and its held-out examples, see `tasks`, and other items as they are.

        `timed` returns the tasks of a batch that it is given.
        """
        clock = self.clock
        for item in items:
            if not isinstance(item, tuple):
                yield item
                continue
            batch, held_out = item
            for task in timed(self.tasks(batch, learn, clock, held_out)):
                clock = float(task.clock[-1]) if task.batch.n else clock
                yield task

    def _compare(self, tasks: Iterator[BatchTask]) -> Iterator[BatchTask]:
        """Yield tasks, after adding a note if no feature of most of the first examples was learned before."""
        first = next(tasks, None)
        if first is not None:
            self.notes += self.unknown_features.when_continuing(self, first)
            yield first
            yield from tasks

    def _note_shift(self, source: ExampleSource) -> None:
        """Add a note if the columns of a file seem to be counted from another number than those learned from."""
        columns = None if source.format is None else source.format.first_columns
        if columns is None or not len(columns):
            return
        rule = configuration.hashing(self.config)
        self.notes += filter(None, [shifted(self, columns, rule, "the file", feature_names.ALIKE)])

    def _with_block(self, batch: Batch, learn: bool, file: str) -> Batch:
        """Return a batch whose dense block has the columns learned from, 0 if it has none; check those it has."""
        schema = self.schema
        if not batch.columns:
            return batch._replace(dense=np.zeros((batch.n, schema.width), np.float32))
        hashes = self.config.reduction.dense != base.TAKEN  # a model that has learned no rows
        if not self.takes_block or (hashes and not learn and not schema.width):
            return self._hashed(batch)
        schema.check_width(batch.columns, file)
        if not schema:
            self.config.parser.check_dense()
        if learn:
            schema.width = batch.columns
        return batch

    def _hashed(self, batch: Batch) -> Batch:
        """Return a batch with features in place of its dense block."""
        constant = not self.config.parser.noconstant
        if len(batch.index) > batch.n * constant:
            raise UsageError(
                "the batch has features and a dense block, and this reduction learns from features alone; leave "
                "out the block, or write its columns as features"
            )
        note = configuration.note_about_rows(self.config, batch.columns)
        if note and not self._rows_noted:
            self._rows_noted = True
            self.notes.append(note)
        return tables.hashed(batch, configuration.hashing(self.config), constant)

    def _with_names(self, task: BatchTask) -> BatchTask:
        task.named = self.names.named_before(batch_ops.highest_labels(task.batch))
        return task

    def check_learns(self, name: str = "this model") -> None:
        """Raise UsageError if the model, which has this name in the message, can only predict."""
        if self.only_predicts:
            raise UsageError(
                f"{name} was shrunk, or saved with --predict_only_model, so it lacks what learning needs besides "
                "weights; predict with it (-t), or continue from the whole model"
            )

    def execute(self, task: BatchTask, stages: Sequence[Callable[[BatchTask], None]] | None = None) -> BatchTask:
        """Pass a task through the stages, those of the reduction by default, record it and return it."""
        for stage in self.reduction.stages if stages is None else stages:
            stage(task)
        self.record(task)
        return task

    def record(self, task: BatchTask) -> None:
        """Note the classes, examples and clock of a task that has passed the stages, and its warnings.

        `progress` does not change. Call it in the order of the data.
        """
        self._note_examples(task)
        if self.names.growing:
            self.names.highest_seen = max(self.names.highest_seen, self.reduction.highest_placed)
            task.read = task.read._replace(seen=self.names.note_labels(batch_ops.highest_labels(task.batch)))
        if task.learn and task.batch.n:
            self.examples += int(np.count_nonzero(task.learned()))
            self.learns_singly = task.batch.n == 1 and self.examples < FEW
            self.clock = float(task.clock[-1])
        self.notes += self.unknown_features.messages(self, ended=False)

    # notes

    def read_from(self, source: ExampleSource | None) -> None:
        """Take the warnings of a source from now on, whose examples `tasks` is given; None ends that."""
        self.notes[:] = self.take_notes()
        self._source, self._compared = source, source is None

    def take_notes(self) -> list[str]:
        """Return the warnings that were not returned before; another thread may add some meanwhile."""
        idle = self.preparation.idle_arguments() if self._source is None else []
        lists = [self.notes] if self._source is None else [self._source.notes, self.notes]
        return [*(notes.pop(0) for notes in lists for _ in range(len(notes))), *idle]

    def end_notes(self, learned: bool, complete: bool = True) -> list[str]:
        """Return the warnings that are known at the end of the data, or where a run ended if they are not `complete`.

        Arguments that name namespaces are only called idle if the data were long enough or `learned` from.
        """
        idle = self.preparation.idle_arguments(learned) if complete else []
        idle += self.unknown_features.messages(self)
        report = [] if self._source is None else self._source.report()
        own = self._label_check.at_end() if learned and complete and self._label_check is not None else ""
        counted = self.counted
        self.counted = self._new_counts(counted)
        return [*([] if self.spec.vw_exact else counted.warnings()), *filter(None, [own]), *idle, *report]

    def _new_counts(self, before: ExampleNotes | None = None) -> ExampleNotes:
        return ExampleNotes(self.config.reduction.labels, self.names.class_list is not None, before)

    def count_anew(self) -> None:
        """Count the examples that come from 0, because another process adds up the counts of parts of the data."""
        self.counted = self._new_counts()
        for one in self.preparation.idle:
            one.examples = 0

    def _note_examples(self, task: BatchTask) -> None:
        """Add the warnings of a task that has passed the stages."""
        self.unknown_features.look(self, task)
        self.notes += [*task.notes, *self.counted.count_skipped(task)]
        if task.read.file and not self.reduction.repeats:
            self.counted.count_labels(task)

    def nothing_learned(self, source: ExampleSource) -> DataError:
        """Return the error of data from which no example was learned."""
        cure = self.counted.first_skipped or advice(source.format, source.report())
        return DataError(f"{source.name}: no example was learned from; {cure}")

    # for a program

    def learn(self, batches: Iterable[Batch]) -> Iterator[BatchTask]:
        """Learn from batches in their order; yield the tasks that were learned."""
        batches = exclusive.until_interrupted(batches)
        while self.reduction.awaited:
            batch = next(batches, None)
            if batch is None:
                return
            copies = {name: array.copy() for name, array in batch._asdict().items()}  # which the caller cannot change
            yield from self._hold(Batch(**copies))
        first = list(itertools.islice(batches, 2))
        if len(first) < 2 or self.reduction.workers == 1:
            for batch in itertools.chain(first, batches):
                for task in self.tasks(batch, True, self.clock):
                    yield self._counted(self.execute(task))
        else:
            yield from self._learn_in_stages(itertools.chain(first, batches))

    def _learn_in_stages(self, batches: Iterator[Batch]) -> Iterator[BatchTask]:
        """Learn from batches with each stage on a thread of its own, as a run does; yield the tasks in order."""
        tasks = self.tasks_of(((batch, None) for batch in batches), True)
        pipeline: Pipeline[BatchTask] = Pipeline(tasks, self.reduction.stages)
        try:
            for task in pipeline:
                self.record(task)
                yield self._counted(task)
        finally:  # after an error of the caller, wait for the stages and count what they have learned
            pipeline.stop()
            for task in pipeline:
                self.record(task)
                self._counted(task)

    def _hold(self, batch: Batch) -> Iterator[BatchTask]:
        """Keep a batch until the reduction has seen enough examples; then yield the tasks of all batches held."""
        clock = next((float(task.clock[-1]) for task in reversed(self._pending) if task.batch.n), self.clock)
        for task in self.tasks(batch, True, clock):
            if not self.reduction.awaited:
                yield self._counted(self.execute(task))
                continue
            self._pending.append(task)
            if not self.reduction.preview(task):
                yield from self._learn_held()

    def _learn_held(self) -> list[BatchTask]:
        """Learn from the examples that were held, and return their tasks."""
        if self.reduction.awaited:
            self.reduction.end_preview()
        pending, self._pending = self._pending, []
        return [self._counted(self.execute(task)) for task in pending]

    def end_pass(self) -> list[BatchTask]:
        """End a pass, and return the tasks of the examples that were held until now."""
        tasks = self._learn_held()
        self.reduction.end_pass()
        self.progress.end_pass()
        self.notes += self.end_notes(learned=True)
        return tasks

    def _counted(self, task: BatchTask) -> BatchTask:
        """Add a task that is learned and recorded to the progress, tell `on_learned`, and return it."""
        self.progress.count(task)
        if self.on_learned is not None:
            self.on_learned(task)
        return task

    def predict(
        self, batches: Iterable[Batch], wanted: LearnerUse | None = None, *, looks_at_all: bool = False
    ) -> Iterator[BatchTask]:
        """Yield the tasks of batches after predicting them, with the results that are wanted, see `want`.

        A warning says if no feature of most of the first examples was learned. With `looks_at_all`, there is none, but
        every task says of which examples this is true.
        """
        self.want(wanted)
        self.unknown_features.begin(looks_at_all)
        for batch in batches:
            for task in self.tasks(batch, False, self.clock):
                for stage in self.reduction.stages:
                    stage(task)
                self._note_examples(task)
                yield task
        self.notes += self.unknown_features.messages(self)

    def stop(self) -> None:
        """Let the reduction end soon what takes long, because the caller is interrupted."""
        if self._reduction is not None:
            self._reduction.stop()

    # models

    def check_learned(self) -> None:
        """Raise UsageError if it holds examples that it has not learned."""
        if self.unlearned:
            raise UsageError(
                "some examples are not learned yet; call end_pass() at the end of the data, and then save()"
            )

    def option_values(self) -> dict[str, Any]:
        """Return the value of every option by its field; the threshold of lists may be that of a model."""
        values = self.config.values()
        if isinstance(self._reduction, MultilabelLearner) and values["threshold"] is None:
            values["threshold"] = self._reduction.threshold
        return values

    def stored_options(self) -> dict[str, Any]:
        """Return the options to store in a model file, including the names of the classes seen so far."""
        names = ",".join(self.names.names[: self.names.highest_seen])
        return {**self.config.stored(), "named_labels": names or None}

    def contents(self, live: bool = False) -> ModelContents:
        """Return the contents of a model file: options, counters and what the reduction has learned.

        If they are live, large tables are those of the learner, which must not learn on then.
        """
        resumable = not self.config.learner.predict_only_model
        counters = self.progress.counters() if resumable else None
        if counters is not None and self.spec.vw_exact:
            counters[VW] = self.progress.stored_by_vw(self.config.learner.initial_t + self.clock)
        saved = self.reduction.saved(live)
        return ModelContents(
            options=self.stored_options(),
            learner=saved.facts,
            examples=self.examples,
            clock=self.clock if resumable else 0.0,
            counters=counters,
            arrays=saved.arrays,
            schema=self.schema.copy(),
            live=saved.live,
        )

    def replace_contents(self, contents: ModelContents) -> None:
        """Replace what was learned by the contents of a model with the same options, without holding both in memory."""
        self.close()
        self._build(contents)

    def close(self) -> None:
        """Stop the threads of the learner and free its memory; it cannot be used afterwards."""
        self._pending.clear()
        if self._reduction is not None:
            self._reduction.close()
            self._reduction = None

    def __enter__(self) -> LearnerCore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Close the learner, because a reduction that is not closed is freed only by the garbage collector."""
        if self._reduction is not None:
            LearnerCore.close(self)
