"""Spread the model of a run over the workers of a cluster, with the same results as in one process.

This process has the whole of the learner, which combines what the workers find out, and counts, shows and saves as any
run does. Only the workers read the data.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...abilities.find import ability
from ...abilities.spread.parts import State
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...api.model_contents import Contents
from ...api.progress import Progress
from ...reductions.core.contract import BatchTask
from ...reductions.core.spec import Part
from ...run import learner_use
from ...run.passes import SavePoint
from .. import run_state
from ..engines import ClusterEngine, RemoteSource
from ..part_worker import cost_line, with_place
from .crew import Crew
from .task_stream import Cursor
from .worker import Place, StepResult


class WholeLearner(LearnerCore):
    """The whole of a spread learner: its parts are put together when its contents are needed."""

    crew: Crew  # the workers, set after the construction
    place = Place()  # where the workers were when the parts were last put together
    states: Sequence[State] = ()  # what these had learned there
    _joined = -1  # the next step when the parts were last put together
    _holds = False  # whether the parts hold examples that are not learned yet, or do not fit together

    def join(self) -> None:
        """Put the parts together as they are after the steps that were called."""
        if self._joined == self.crew.next_step:
            return
        if not self.crew.equal:
            self._holds = True
            return
        self.place, states = self.crew.states()
        self.states = [pickle.loads(state) for state in states if state]
        self._holds = not self.states
        if self.states:
            ability(self.config.reduction, "spread").join(self.reduction, self.states)
        self._joined = self.crew.next_step

    @property
    def unlearned(self) -> bool:
        """Return whether the parts hold examples that are not learned yet."""
        self.join()
        return self._holds

    def contents(self) -> Contents:
        self.join()
        return super().contents()


class Spread(ClusterEngine):
    """Spread a model over workers, each of which learns a part; the parameters are those of `ClusterEngine`."""

    _model: WholeLearner
    _facts: Mapping[str, Any] = {}  # of the run that is continued

    def learner(self, contents: Contents | None) -> LearnerCore:
        config, use = self.run.config, learner_use.of_run(self.run.config)
        self._count, self._reason = _parts_of(config)
        spread = ability(config.reduction, "spread")
        self._states: list[Any] = []  # references to the states with which the parts begin
        own: State | None = None  # of the whole
        if config.cluster.resume_run:
            self._facts, (*states, own) = run_state.load(config)
            self._states = [self._session.put(pickle.dumps(state)) for state in states]
        elif contents is not None:
            with LearnerCore(config, use, contents) as loaded:
                loaded.check_learns(f"-i {config.run.initial_regressor}: this model")
                self._states = [self._session.put(pickle.dumps(spread.part_state(loaded.reduction)))]
                own = spread.whole_state(loaded.reduction)
        whole = WholeLearner(config, use._replace(part=Part(None, self._count)))
        self._model = whole
        if own is not None:
            spread.restore_whole(whole.reduction, own)
        if contents is not None:
            whole.examples, whole.clock = contents.examples, contents.clock
            whole.schema.replace(contents.schema)
        self._clock = whole.clock
        if facts := self._facts:
            self._clock, whole.clock, whole.examples = facts["clock"], facts["clock_now"], facts["examples"]
            whole.names.highest_seen = facts["highest_seen"]
            whole.reduction.add_tallies(facts["tallies"])
        self._crew = whole.crew = Crew(
            self._session, self._count, self.run.console.info, os.getcwd(), config, use, self._count, whole.schema
        )
        whole.reduction.stages = [self._combine]
        return whole

    def source(self) -> Any:
        place, facts, self._facts = Place(), self._facts, {}
        if facts:
            (passes, items), stops = facts["place"]
            place = Place(Cursor(passes, items), stops)
            run_state.restore_progress(self._counted(), facts["progress"])
            self._model.reduction.repeats = passes > 0
        else:
            self._clock = self._model.clock  # which may have changed since the model was loaded
        known = self._crew.begin(self._clock, place, self._states)
        self._model.schema.replace(known.schema)
        return RemoteSource(known.name, known.size, known.banner)

    def notes(self) -> list[str]:
        config, count = self.run.config, self._count
        fewer = f"{count} of {config.cluster.workers} workers are used: {self._reason or 'the model has no more parts'}"
        return [
            *([fewer] if count < config.cluster.workers else []),
            f"exact mode: the model is spread over {count} worker{'s' * (count > 1)}",
            *run_state.notes(config, self.run.progress.examples),
        ]

    # steps

    def _combine(self, task: BatchTask) -> None:
        results, task.plan = task.plan, None
        ability(self.run.config.reduction, "spread").combine(self._model.reduction, task, results)

    def tasks(self) -> Iterator[BatchTask | SavePoint]:
        while True:
            for results in self._crew.steps():
                yield from self._items(results)
                first = results[0][0]
                if first.error is not None:
                    raise type(first.error)(*with_place(first.error.args, first.where))
                if first.ended:
                    return
            if self.run.signals.stopped:
                return
            self._crew.release()

    def _items(self, results: list[list[StepResult]]) -> Iterator[BatchTask | SavePoint]:
        news = results[0][0].news
        reader, model = self.run.reader, self._model
        assert news is not None and isinstance(reader, RemoteSource)
        model.notes += [*news.notes, *(note for row in results for part in row for note in part.notes)]
        model.preparation.add_idle(news.idle)
        reader.told += news.about
        reader.reports[0] = news.report or reader.reports.get(0, ())
        reader.name, reader.read[0, 0] = news.name, news.position
        known = len(model.names.names)
        model.names.append(news.names[max(0, known - news.first_name) :])
        model.reduction.highest_placed = news.highest_placed
        number = 0
        for item in news.items:
            if isinstance(item, BatchTask):
                item.plan = [[part.results[number] for part in row] for row in results]
                number += 1
            yield item

    def stop(self) -> None:
        self._crew.stop()

    def save_state(self) -> None:
        model = self._model
        if model.unlearned:
            return
        model.join()
        states = [*model.states, ability(self.run.config.reduction, "spread").whole_state(model.reduction)]
        run_state.save(
            self.run.config, self._counted(), states, model.reduction.tallies(), place=model.place, clock=self._clock,
            clock_now=model.clock, examples=model.examples, highest_seen=model.names.highest_seen,
        )  # fmt: skip

    def _counted(self) -> list[Progress]:
        """Return the counts of this run, and those of the learner if they cover earlier runs, too."""
        own, of_model = self.run.progress, self._model.progress
        return [own] if of_model is own else [own, of_model]

    def end_pass(self) -> bool:
        lines, more = self._crew.end_pass(bool(self.run.signals.stopped))
        for line in lines:
            self.run.console.info(line)
        self._model.reduction.end_pass()
        self._model.reduction.repeats = True
        self._crew.release()
        return more

    def end(self) -> list[str]:
        self._model.join()
        return [cost_line(i, cost) for i, cost in enumerate(self._crew.costs, 1)]


def _parts_of(config: Config) -> tuple[int, str]:
    """Return how many workers can learn parts of a model, and why not more."""
    workers = config.cluster.workers
    use = learner_use.of_run(config)._replace(part=Part(None, workers))
    with LearnerCore(config, use) as whole:
        units, reason = ability(config.reduction, "spread").units(whole.reduction)
        return min(workers, units), reason
