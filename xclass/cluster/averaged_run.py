"""Execute a run whose data are spread over the workers of a cluster, which learn parts and are averaged.

This process merges the models of the parts after each round, and counts, shows and saves as any run does. Only the
workers read the data. `averaging` describes the rounds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ..api.configuration import Config, chosen_name
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..data import class_names
from ..errors import ModelError, UsageError
from ..merging.options import NAMES
from ..reductions.core.contract import BatchTask
from ..run import finish as ending
from . import options as cluster_options
from . import round_state, shards
from .averaging import Averaging, Round
from .costs import added
from .exact import run_state
from .part_learner import Learned, PartLearner, Work
from .parts_source import PartsRun, PartsSource
from .session import LostResultError


class AveragedLearner(Learner):
    """The learner of the run, which gets what was learned from the parts when it is needed.

    Attributes
    ----------
    averaging : set after the construction
    """

    averaging: Averaging
    _rounds = 0  # number of rounds whose result it has
    _counters: dict[str, Any] | None = None

    def join(self) -> None:
        """Get what was learned, unless the model is damaged."""
        contents = self.averaging.model
        if self._rounds == self.averaging.rounds or contents is None or self.averaging.damaged:
            return
        self.note_round()
        tallies = self.reduction.tallies()
        self.replace_contents(contents._replace(arrays=dict(contents.arrays)))
        self.reduction.add_tallies(tallies)
        self._rounds = self.averaging.rounds

    def note_round(self) -> None:
        """Note the counts and the names of the model after a round."""
        contents = self.averaging.model
        assert contents is not None
        self.examples, self.clock, self._counters = contents.examples, contents.clock, contents.counters
        names = class_names.separated(contents.options.get(NAMES) or "")
        self.names.append(list(names[len(self.names.names) :]))
        self.names.highest_seen = max(self.names.highest_seen, len(names))

    def contents(self) -> Contents:
        """Return the contents of a model file; raise ModelError if the model is damaged."""
        if self.averaging.damaged:
            raise ModelError(
                "the models of the workers were not merged completely; if there is a checkpoint, --resume_run goes on "
                "from it"
            )
        self.join()
        contents = super().contents()
        return contents if contents.counters is None else contents._replace(counters=self._counters)


class AveragedRun(PartsRun):
    """Execute a run with averages; the parameters are those of `PartsRun`."""

    model: AveragedLearner

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._state: round_state.RoundState | None = None  # of the run that is continued
        self._shown: set[str] = set()  # warnings
        self._saved = 0  # examples at the last checkpoint

    # start

    def _prepare(self, contents: Contents | None, closing: contextlib.ExitStack) -> None:
        """Prepare the run; the learner that merges is closed at its end."""
        super()._prepare(contents, closing)
        closing.callback(self.model.averaging.close)

    def _learner(self, contents: Contents | None) -> Learner:
        """Return the learner of the run, and start the workers."""
        options: cluster_options.Options = self.config.cluster
        count = options.workers
        if options.resume_run:
            self._state = round_state.load(run_state.path_of(self.config.run.final_regressor), self.config)
            count = self._state.parts
        parts = shards.deal(self._paths, self._sizes, count, self._splittable)
        learner = AveragedLearner.from_config(self.config, self._use(), contents)
        assert isinstance(learner, AveragedLearner)
        learner.averaging = Averaging(self.config, parts, self._learn, contents)
        if self._state is not None:
            round_state.restore(learner.averaging, self._state)
            learner.note_round()
        self._start_workers(PartLearner, min(options.workers, len(parts)))
        return learner

    def _source(self) -> Any:
        """Return what stands for the data."""
        if self._state is not None:
            run_state.restore_progress(self.progress, self._state.progress)
            self._saved = self.model.examples
        return PartsSource(self._paths, self._sizes, self.config.passes.passes)

    def _banner(self) -> None:
        """Show the banner, with a line about the cluster."""
        count = len(self._workers)
        every = self.config.cluster.sync_every
        self.notes = [
            *self.notes,
            f"averaging mode: {count} worker{'s' * (count > 1)}, averaged after every {every} examples of each",
            *run_state.notes(self.config, self.progress.examples),
        ]
        super()._banner()
        self._shown.clear()

    # rounds

    def _learn(self, model: Contents | None, works: Sequence[Work]) -> Iterator[Learned]:
        """Let the workers learn, and yield the results in order; what was lost with a node is learned again."""
        ref = None if model is None else self._session.put(model)
        chosen = [self._worker_of(work) for work in works]
        refs = [self._workers[i].learn.remote(ref, work) for i, work in zip(chosen, works, strict=True)]
        for position, i in enumerate(chosen):
            while True:
                try:
                    ((_, one),) = self._session.results([refs[position]], [self._workers[i]], [i + 1])
                    break
                except LostResultError:
                    refs[position] = self._workers[i].learn.remote(ref, works[position])
            sent = 0 if one.arrays is None else one.arrays.nbytes
            self._costs[i] = added(self._costs[i], one.cost._replace(sent=sent))
            yield one

    def _worker_of(self, work: Work) -> int:
        """Return the worker, from 0, that learns a part."""
        return (work.part.number - 1) % len(self._workers)

    def _run_pass(self) -> None:
        """Learn the parts in rounds until the pass or the run ends."""
        for round_ in self.model.averaging.rounds_of_pass():
            self.model.note_round()
            self._show(round_)
            if self.signals.stopped:
                return
            every = self.config.passes.checkpoint
            if every is not None and self.model.examples - self._saved >= every:
                self._save_checkpoint()

    def _show(self, round_: Round) -> None:
        """Count what was learned in a round, and show what is due."""
        assert isinstance(self.reader, PartsSource)
        warnings = list(round_.notes)
        for work, one in zip(round_.works, round_.learned, strict=True):
            warnings += one.notes
            self.skipped_steps.examples += one.skipped_steps
            self.model.reduction.add_tallies(one.tallies)
            if one.labels is not None:
                self.labels.add(one.labels)
            self.reader.read[work.part.number] = one.bytes_read
            if one.cursor.ended:
                self.reader.reports[work.part.number] = one.report
            for row in self.progress.add(one.counts):
                self.console.table_line(row)
        self._count_added(round_.added)
        for note in dict.fromkeys(warnings):
            if note not in self._shown:
                self._shown.add(note)
                self.console.warn(note)
        self.console.move_bar(self.reader.position, self.progress.examples)

    def _count_added(self, tasks: Sequence[BatchTask]) -> None:
        """Count the examples by which classes were added."""
        for task in tasks:
            for row in self.progress.count(task):
                self.console.table_line(row)

    def _end_pass(self) -> bool:
        """End a pass; return whether it was the last one."""
        assert isinstance(self.reader, PartsSource)
        better = self.progress.end_pass()
        self.recorder.end_pass()
        self.model.averaging.end_pass()
        self.reader.end_pass()
        return self.saver.end_pass(better, last=self.model.averaging.passes_ended >= self.config.passes.passes)

    def _save_checkpoint(self) -> None:
        """Save the state of the run and the model; a failure is not fatal, because the model is saved at the end."""
        path, examples = self.config.run.final_regressor, self.model.examples
        try:
            round_state.save(run_state.path_of(path), self.config, self.model.averaging, self.progress)
            self.saver.save(path)
        except ModelError as error:
            self.console.warn(f"checkpoint after {examples} examples: the model was not saved: {error}")
        else:
            self.console.info(f"checkpoint after {examples} examples: {path}")
        self._saved = examples

    def _parts(self) -> ending.RunParts:
        """Return the parts that `finish` needs, after the learner has got what was learned."""
        self.model.join()
        return super()._parts()


def check(config: Config) -> None:
    """Raise UsageError if a run cannot be averaged."""
    record = config.reduction
    if record.not_merged:
        raise UsageError(f"--sync_every: models of --{chosen_name(config)} cannot be averaged: {record.not_merged}")


def execute(config: Config, contents: Contents | None, notes: Sequence[str] = ()) -> int:
    """Execute a run with averages and return its exit status; see `PartsRun.executed`."""
    check(config)
    status = AveragedRun.executed(config, contents, notes)
    if status == 0 and config.run.final_regressor is not None:
        run_state.remove(run_state.path_of(config.run.final_regressor))
    return status
