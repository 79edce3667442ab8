"""Execute a run whose model is spread over the workers of a cluster, with the same results as in one process.

This process has the whole of the learner, which combines what the workers find out, and counts, shows and saves as any
run does. Only the workers read the data.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...abilities.find import ability
from ...abilities.spread.parts import State, takes_part
from ...api.configuration import Config
from ...api.learner import Learner
from ...api.model_contents import Contents
from ...api.progress import Progress
from ...data.batch import Batch
from ...errors import ModelError
from ...reductions.core.contract import BatchTask
from ...reductions.core.spec import Part
from ...run import finish as ending
from ...run import learner_use
from ...run.passes import SavePoint
from ...run.run import Run
from .. import options as cluster_options
from .. import shards
from ..costs import cost_line
from ..part_learner import with_place
from ..session import Session
from . import run_state
from .crew import Crew
from .remote_source import RemoteSource
from .run_state import RunState
from .worker import Place, StepResult


class WholeLearner(Learner):
    """The whole of a spread learner: its parts are put together when its contents are needed.

    Attributes
    ----------
    crew : the workers, set after the construction
    place, states : where the workers were when the parts were last put together, and what these had learned
    """

    crew: Crew
    place = Place()
    states: Sequence[State] = ()
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
        """Return the contents of a model file."""
        self.join()
        return super().contents()


class SpreadRun(Run):
    """Execute a run with a spread model; `count` workers learn a part each.

    Attributes
    ----------
    session : of the cluster, set before `execute`
    """

    model: WholeLearner
    session: Session

    def __init__(self, config: Config, notes: Sequence[str], count: int) -> None:
        super().__init__(config, notes, b"")
        self._number_of_workers = count
        self._states: list[Any] = []  # references to the states with which the parts begin
        self._state: RunState | None = None  # of the run that is continued

    def _learner(self, contents: Contents | None) -> Learner:
        """Return the whole of the learner, and start the workers."""
        use = self._use()
        if self.config.cluster.resume_run:
            self._state = run_state.load(run_state.path_of(self.config.run.final_regressor), self.config)
            self._states = [self.session.put(pickle.dumps(state)) for state in self._state.states]
        elif contents is not None:
            with Learner.from_config(self.config, use, contents) as loaded:
                loaded.check_learns(f"-i {self.config.run.initial_regressor}: this model")
                state = ability(self.config.reduction, "spread").part_state(loaded.reduction)
                self._states = [self.session.put(pickle.dumps(state))]
        whole = WholeLearner.from_config(self.config, use._replace(part=Part(None, self._number_of_workers)))
        assert isinstance(whole, WholeLearner)
        if contents is not None:
            whole.examples, whole.clock = contents.examples, contents.clock
            whole.schema.replace(contents.schema)
        self._clock = whole.clock
        if self._state is not None:
            self._clock = self._state.clock
            whole.examples, whole.clock = self._state.examples, self._state.clock_now
            whole.names.highest_seen = self._state.highest_seen
        parts = [Part(i, self._number_of_workers) for i in range(self._number_of_workers)]
        self._crew = whole.crew = Crew(
            self.session, lambda number, i: takes_part(number, parts[i]), len(parts), self.console.info,
            os.getcwd(), self.config, use, len(parts), whole.schema,
        )  # fmt: skip
        whole.reduction.stages = [self._combine]
        return whole

    def _source(self) -> Any:
        """Let the workers open the data, and return what the first one tells about them."""
        place = Place()
        if self._state is not None:
            place = self._state.place
            for progress, counts in zip(self._counted(), self._state.progress, strict=True):
                run_state.restore_progress(progress, counts)
            self._state = None
        else:
            self._clock = self.model.clock  # which may have changed since the model was loaded
        facts = self._crew.begin(self._clock, place, self._states)
        self.model.schema.replace(facts.schema)
        return RemoteSource(facts)

    def _compile(self) -> None:
        """Leave the compilation to the workers."""

    def _banner(self) -> None:
        """Show the banner, with a line about the cluster."""
        workers = "worker" if self._number_of_workers == 1 else "workers"
        self.notes = [*self.notes, f"exact mode: the model is spread over {self._number_of_workers} {workers}"]
        self.notes += run_state.notes(self.config, self.progress.examples)
        super()._banner()

    # steps

    def _combine(self, task: BatchTask) -> None:
        """Set the results of a task from those of the parts."""
        results, task.plan = task.plan, None
        ability(self.config.reduction, "spread").combine(self.model.reduction, task, results)

    def _tasks(self, stream: Iterable[tuple[Batch, np.ndarray] | SavePoint]) -> Iterator[BatchTask | SavePoint]:
        """Yield the tasks of one pass, with the results of the parts, and the save points between them."""
        while True:
            for results in self._crew.steps():
                yield from self._items(results)
                first = results[0][0]
                if first.error is not None:
                    raise type(first.error)(*with_place(first.error.args, first.where))
                if first.ended:
                    return
            if self.signals.stopped:
                return
            self._crew.release()

    def _items(self, results: list[list[StepResult]]) -> Iterator[BatchTask | SavePoint]:
        """Yield the items of a step."""
        news = results[0][0].news
        assert news is not None and isinstance(self.reader, RemoteSource)
        self.reader.learn(news)
        known = len(self.model.names.names)
        self.model.names.append(news.names[max(0, known - news.first_name) :])
        self.model.reduction.highest_placed = news.highest_placed
        number = 0
        for item in news.items:
            if isinstance(item, BatchTask):
                item.plan = [[part.results[number] for part in row] for row in results]
                number += 1
            yield item

    def _stop(self) -> None:
        """Call no further steps, after a signal; those that were called are counted."""
        self._crew.stop()

    def _save_at(self, point: SavePoint) -> str:
        """Save the state of the run and the model at a save point; return the reason if they were not saved."""
        if (
            point.path is not None
            and point.path == self.config.run.final_regressor
            and not point.refusal
            and not self.model.unlearned
        ):
            self.model.join()
            try:
                run_state.save(run_state.path_of(point.path), self.config, self._run_state())
            except ModelError as error:
                return str(error)
        return super()._save_at(point)

    def _run_state(self) -> RunState:
        """Return the state of the run where the parts were last put together."""
        model = self.model
        return RunState(
            model.place, self._clock, model.clock, model.examples, model.names.highest_seen,
            [run_state.of_progress(progress) for progress in self._counted()], model.states,
        )  # fmt: skip

    def _counted(self) -> list[Progress]:
        """Return the counts of this run, and those of the learner if they cover earlier runs, too."""
        return [self.progress] if self.model.progress is self.progress else [self.progress, self.model.progress]

    def _end_pass(self) -> bool:
        """End a pass in all workers; return whether it was the last one."""
        better = self.progress.end_pass()
        self.recorder.end_pass()
        lines, more = self._crew.end_pass(bool(self.signals.stopped))
        for line in lines:
            self.console.info(line)
        self.model.reduction.end_pass()
        if self.saver.end_pass(better, last=not more):
            return True
        self._crew.release()
        return False

    def _parts(self) -> ending.RunParts:
        """Return the parts that `finish` needs, after the model is put together for the summary."""
        self.model.join()
        return super()._parts()._replace(costs=[cost_line(i, cost) for i, cost in enumerate(self._crew.costs, 1)])


def parts_of(config: Config, workers: int) -> tuple[int, str]:
    """Return how many workers can learn parts of a model, and why not more."""
    use = learner_use.of_run(config)._replace(part=Part(None, workers))
    with Learner.from_config(config, use) as whole:
        units, reason = ability(config.reduction, "spread").units(whole.reduction)
        return min(workers, units), reason


def execute(config: Config, contents: Contents | None, notes: Sequence[str] = ()) -> int:
    """Execute a run in exact mode and return its exit status.

    Parameters
    ----------
    config : options of the run, those of the cluster included
    contents : contents of the model of -i, or None
    notes : lines to show at the start of the run

    Raises
    ------
    UsageError, DataError, ModelError, ClusterError
        the error that ended the run.
    """
    options: cluster_options.Options = config.cluster
    count, reason = parts_of(config, options.workers)
    if count < options.workers:
        notes = [*notes, f"{count} of {options.workers} workers are used: {reason or 'the model has no more parts'}"]
    run = SpreadRun(config, notes, count)
    with Session(options, run.console.info) as session:
        run.session = session
        run.config = config.with_values({"data": session.call(shards.files_in, os.getcwd(), config.reader.data)})
        status = run.execute(contents)
    if status == 0 and config.run.final_regressor is not None:
        run_state.remove(run_state.path_of(config.run.final_regressor))
    return status
