"""Choose how a run is spread over the workers of a cluster, and let them learn parts of the data and be averaged."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api.configuration import Config, chosen_name
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..data import class_names
from ..errors import UsageError
from ..merging import NAMES
from ..options.declare import options_of
from ..reductions import presets, registry
from ..run.passes import SavePoint
from ..run.report.console import Console
from ..run.run import Run
from ..run.signals import interrupt_told
from . import round_length, run_state, shards
from .averaging import Averaging, Round
from .engines import ClusterEngine
from .options import ClusterOptions
from .part_learner import Learned, PartLearner, PartWork, RoundState
from .predicting import Predicting
from .session import Session
from .shards import DataPart


class AveragedLearner(LearnerCore):
    """The learner of the run, which gets what was learned from the parts when it is needed."""

    averaging: Averaging  # set after the construction
    _rounds = 0  # number of rounds whose result it has
    _counters: dict[str, Any] | None = None

    def join(self) -> None:
        """Get what was learned."""
        if self._rounds == self.averaging.rounds or (contents := self.averaging.model) is None:
            return
        self.note_round()
        tallies = self.reduction.tallies()
        self.replace_contents(contents._replace(arrays=dict(contents.arrays)))
        self.reduction.add_tallies(tallies)
        self._rounds = self.averaging.rounds

    def note_round(self) -> None:
        """Note the counts and the names of the model after a round."""
        contents = self.averaging.start.contents
        if contents is None:  # no worker has learned from an example
            return
        self.examples, self.clock, self._counters = contents.examples, contents.clock, contents.counters
        names = class_names.separated(contents.options.get(NAMES) or "")
        self.names.append(list(names[len(self.names.names) :]))
        self.names.highest_seen = max(self.names.highest_seen, len(names))

    def contents(self, live: bool = False) -> ModelContents:
        self.join()
        contents = super().contents(live)
        return contents if contents.counters is None else contents._replace(counters=self._counters)


class RayCrew:
    """Let the workers of a session learn and merge, see `averaging.Crew`."""

    def __init__(self, session: Session, workers: Sequence[Any]) -> None:
        self._session, self._workers = session, workers

    def worker_of(self, part: DataPart) -> int:
        return (part.number - 1) % len(self._workers)

    def learn(
        self, state: RoundState, works: Sequence[PartWork], changes: Sequence[Any]
    ) -> tuple[list[Learned], list[list[Any]]]:
        ref, n = self._session.put(state), len(works)

        def send(worker: Any, k: int) -> list[Any]:
            sent: list[Any] = worker.learn.options(num_returns=n + 2 if n > 1 else 2).remote(
                ref, works[k], k, n, *changes
            )
            return sent

        return self._answers([self.worker_of(work.part) for work in works], send)

    def merge(self, base: Sequence[Any], facts: Any, models: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        ref, n = self._session.put(facts), len(base)
        chosen = [k % len(self._workers) for k in range(n)]
        reports, found = self._answers(
            chosen, lambda worker, k: worker.merge.options(num_returns=2).remote(base[k], ref, *models[k])
        )
        changes = [one for (one,) in found]
        for k in range(n):  # another worker, perhaps of another node
            self._workers[(k + max(n // 2, 1)) % len(self._workers)].keep.remote(base[k], changes[k])
        return changes, reports

    def contents(self, state: RoundState, passes_ended: int, changes: Sequence[Any]) -> ModelContents:
        ref = self._session.put(state)
        contents: ModelContents
        ((_, contents),) = self._session.answers(
            self._workers, [0], lambda worker, k: worker.contents.remote(ref, passes_ended, *changes), 1
        )
        return contents

    def _answers(self, chosen: Sequence[int], send: Callable[[Any, int], list[Any]]) -> tuple[list[Any], list[Any]]:
        """Return the first results of calls, and the references to their other results."""
        others: list[list[Any]] = [[] for _ in chosen]

        def first(worker: Any, k: int) -> Any:
            sent, *others[k] = send(worker, k)
            return sent

        return [one for _, one in self._session.answers(self._workers, chosen, first, len(chosen))], others


class Averaged(ClusterEngine):
    """Merge the models of the workers, which alone read the data, after each round of `averaging`."""

    _averaging: Averaging
    _crew: RayCrew
    _model: AveragedLearner
    _counts: Any = None  # of the run that is continued
    _saved = 0  # examples at the last checkpoint

    def learner(self, contents: ModelContents | None) -> LearnerCore:
        config, state = self.run.config, None
        tallies: Mapping[str, Any] = {}
        if config.cluster.resume_run:
            self._counts, state, tallies = run_state.load(config)
        parts = shards.deal(self._files, len(state["positions"]) if state else config.cluster.workers)
        learner = AveragedLearner(config, contents)
        self._model = learner
        self._start_workers(PartLearner, min(config.cluster.workers, len(parts)))
        self._crew = RayCrew(self._session, self._workers)
        self._averaging = learner.averaging = Averaging(config, parts, self._crew, contents)
        if state is not None:
            self._averaging.restore(state)
            learner.note_round()
            learner.reduction.add_tallies(tallies)
            self._saved = learner.examples
        return learner

    def source(self) -> Any:
        if self._counts is not None:
            run_state.restore_progress(self.run.progress, self._counts)
        return super().source()

    def notes(self) -> list[str]:
        config, count = self.run.config, len(self._workers)
        workers = f"{count} workers are" if count > 1 else "1 worker is"
        return [
            f"{workers} averaged after {round_length.described(config.cluster.sync_every)}",
            *run_state.notes(config, self.run.progress.examples),
        ]

    def run_pass(self) -> None:
        run, path = self.run, self.run.options.final_regressor
        for round_ in self._averaging.rounds_of_pass():
            self._model.note_round()
            self._show(round_)
            if run.signals.stopped:
                return
            every, examples = run.config.passes.checkpoint, self._model.examples
            if path is not None and every is not None and examples - self._saved >= every:
                run.save_at(SavePoint(path, False, f"checkpoint after {examples} examples: {path}"))
                self._saved = examples

    def _show(self, round_: Round) -> None:
        """Count what was learned in a round, and show what is due."""
        self.run.warn(round_.notes)
        for work, one in zip(round_.works, round_.learned, strict=True):
            self._add(work.part, self._crew.worker_of(work.part), one.result)

    def end_pass(self) -> bool:
        self._averaging.end_pass()
        return self._averaging.passes_ended < int(self.run.config.passes.passes)

    def save_state(self) -> None:
        tallies = self._model.reduction.tallies()
        run_state.save(self.run.config, self.run.progress, self._averaging.state(), tallies)

    def end(self) -> list[str]:
        self._model.join()
        rounds, longest = self._averaging.rounds, self._averaging.longest
        return [f"rounds = {rounds}, the longest of {longest} examples of each worker", *super().end()]


def first_lines(
    given: Mapping[str, Any], closing: contextlib.ExitStack, resolve: Callable[[Mapping[str, Any]], Config]
) -> tuple[str, list[bytes]]:
    """Return the first file of the data and its first lines, which a node of the cluster reads.

    The options are checked before.

    Parameters
    ----------
    given : the options that the user typed, field -> value
    closing : gets the connection to the cluster, which the run uses, too
    resolve : resolves the options of a run, see `options.resolve`
    """
    chosen = {record.name for record in registry.REDUCTIONS} | presets.PRESETS.keys()
    proposed = ({**given, "multiclass": 0}, {**given, presets.LISTS: 0}, given)  # the lines decide
    possible = [given] if chosen & given.keys() else proposed
    errors = []
    for values in possible:
        try:
            engine_of(resolve(values))
        except UsageError as error:
            errors.append(error)
    if len(errors) == len(possible):
        raise errors[0]
    options = {name: given[name] for name in options_of(ClusterOptions) if name in given}
    session = closing.enter_context(
        Session(ClusterOptions(**options), tell := Console(bool(given.get("quiet"))).info, tell=tell)
    )
    path = shards.find(session, given["data"], "").paths[0]
    return path, list(session.call(shards.first_lines, os.getcwd(), path).split(b"\n"))


def engine_of(config: Config) -> type[ClusterEngine]:
    """Return the engine of a run; raise UsageError if its reduction does not fit it."""
    if config.run.testonly:
        return Predicting
    name, reason = chosen_name(config), config.reduction.not_merged
    if reason:
        raise UsageError(
            f"--workers: models of --{name} cannot be averaged: {reason}; learn in one process, or choose --multiclass"
        )
    if config.reduction.labels == "multilabel" and config.parser.learn_names:
        raise UsageError(
            "--workers: workers learn no names of lists of labels; list the names by --named_labels without "
            "--learn_names, or learn in one process"
        )
    return Averaged


def execute(config: Config, contents: ModelContents | None, notes: Sequence[str]) -> int:
    """Execute a run with --workers and return its exit status."""
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    engine = engine_of(config)
    console = Console(config.run.quiet)
    with contextlib.ExitStack() as closing:
        with interrupt_told(console.line, config.values()):
            session = closing.enter_context(Session(config.cluster, console.info, tell=console.info))
            files = shards.find(session, config.reader.data, config.reader.format)
        run = Run(config.with_values({"data": files.paths}), notes, engine(session, files))
        status = run.execute(contents)
    if status == 0 and run.learning and config.run.final_regressor is not None:
        run_state.remove(config)
    return status
