"""Spread the data of a run over the workers of a cluster, which learn parts and are averaged.

This process merges the models of the parts after each round, and counts, shows and saves as any run does. Only the
workers read the data. `averaging` describes the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..api.learner_core import LearnerCore
from ..api.model_contents import Contents
from ..data import class_names
from ..errors import ModelError
from ..merging.options import NAMES
from ..run import learner_use
from ..run.passes import SavePoint
from . import run_state, shards
from .averaging import Averaging, Round
from .engines import PartsEngine
from .part_learner import Learned, PartLearner, Work


class AveragedLearner(LearnerCore):
    """The learner of the run, which gets what was learned from the parts when it is needed."""

    averaging: Averaging  # set after the construction
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
        if contents is None:  # no worker has learned from an example
            return
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


class Averaged(PartsEngine):
    _averaging: Averaging
    _model: AveragedLearner
    _counts: Any = None  # of the run that is continued
    _saved = 0  # examples at the last checkpoint

    def learner(self, contents: Contents | None) -> LearnerCore:
        config, state = self.run.config, None
        tallies: Mapping[str, Any] = {}
        if config.cluster.resume_run:
            self._counts, state, tallies = run_state.load(config)
        parts = shards.deal(self._files, len(state["positions"]) if state else config.cluster.workers)
        learner = AveragedLearner(config, learner_use.of_run(config), contents)
        self._model = learner
        self._averaging = learner.averaging = Averaging(config, parts, self._learn, contents)
        if state is not None:
            self._averaging.restore(state)
            learner.note_round()
            learner.reduction.add_tallies(tallies)
            self._saved = learner.examples
        self._start_workers(PartLearner, min(config.cluster.workers, len(parts)))
        return learner

    def source(self) -> Any:
        if self._counts is not None:
            run_state.restore_progress(self.run.progress, self._counts)
        return super().source()

    def notes(self) -> list[str]:
        config, count = self.run.config, len(self._workers)
        workers = f"{count} workers are" if count > 1 else "1 worker is"
        return [
            f"{workers} averaged after every {config.cluster.sync_every} examples of each",
            *run_state.notes(config, self.run.progress.examples),
        ]

    def _learn(self, model: Contents | None, works: Sequence[Work]) -> Iterator[Learned]:
        ref = None if model is None else self._session.put(model)
        answers = self._session.answers(
            self._workers, [self._worker_of(work) for work in works],
            lambda worker, k: worker.learn.remote(ref, works[k]), len(works),
        )  # fmt: skip
        return (one for _, one in answers)

    def _worker_of(self, work: Work) -> int:
        return (work.part.number - 1) % len(self._workers)

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
            self._add(work.part, self._worker_of(work), one.result)
        if round_.tallies is not None:
            self.run.model.reduction.add_tallies(round_.tallies)
        for task in round_.added:  # with examples by which classes were added
            for row in self.run.progress.count(task):
                self.run.console.table_line(row)

    def end_pass(self) -> bool:
        self._averaging.end_pass()
        return self._averaging.passes_ended < int(self.run.config.passes.passes)

    def save_state(self) -> None:
        tallies = self._model.reduction.tallies()
        run_state.save(self.run.config, self.run.progress, self._averaging.state(), tallies)

    def end(self) -> list[str]:
        self._model.join()
        self._averaging.close()
        return super().end()
