"""Learn from a text in parts, in one process, as a cluster does in several."""

from __future__ import annotations

from variants import LISTING_OPTIONS

from xclass.abilities.find import ability
from xclass.abilities.spread.parts import State, without_features
from xclass.api import configuration, model_contents
from xclass.api.configuration import LearnerUse
from xclass.api.inputs import Inputs
from xclass.api.learner_core import LearnerCore
from xclass.reductions.core import probabilities
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.spec import Part, Wanted

NEW = LearnerUse()


class Spread:
    """A whole and its parts, which learn from the same texts."""

    def __init__(self, name: str, classes: int, options: dict, count: int, use: LearnerUse = NEW) -> None:
        listing = {field: value for field, value in options.items() if field in LISTING_OPTIONS}
        options = {field: value for field, value in options.items() if field not in listing}
        self._config = configuration.configured(name, classes, options, use)
        self._use, self.count = use, count
        self._spread = ability(self._config.reduction, "spread")
        self._wanted = Wanted(listing_options=probabilities.Options(**listing)) if listing else None
        self.whole = self._part(None)
        self.parts = [self._part(i) for i in range(count)]

    def _part(self, number: int | None) -> LearnerCore:
        model = LearnerCore(self._config, self._use._replace(part=Part(number, self.count)))
        if self._wanted is not None:
            model.reduction.want(self._wanted)
        return model

    def learn(self, text: str, holdout_period: int = 0) -> list[float]:
        """Learn from a text, but not from every line that `holdout_period` divides; return the predictions."""
        predictions: list[float] = []
        streams = [list(tasks_of(part, text, holdout_period)) for part in self.parts]
        for tasks in zip(*streams, strict=True):
            predictions += self._learn_tasks(tasks)
        return predictions

    def _learn_tasks(self, tasks: tuple[BatchTask, ...]) -> list[float]:
        light = without_features(tasks[0])
        whole = self.whole.reduction
        rounds = [self._spread.rounds(part.reduction) for part in self.parts]
        received: list = [None] * self.count
        results = []
        for number in range(len(rounds[0])):
            active = range(self.count) if number == 0 else [0]
            messages = [rounds[i][number](tasks[i], received) for i in active]
            received = [message.onward for message in messages]
            results.append([message.result for message in messages])
        self._spread.combine(whole, light, results)
        self.whole.names.add(self.parts[0].names.names[len(self.whole.names.names) :])
        whole.highest_placed = self.parts[0].reduction.highest_placed
        self.whole.note(light)
        self.whole.progress.count(light)
        return light.prediction.tolist()

    def end_pass(self) -> None:
        """End a pass in all parts."""
        generators = [self._spread.pass_rounds(part.reduction) for part in self.parts]
        received = [next(generator, None) for generator in generators]
        while any(message is not None for message in received):
            sent = [_sent(generator, received) for generator in generators]
            received = sent
        self.whole.reduction.end_pass()

    def states(self) -> list[State]:
        return [self._spread.part_state(part.reduction) for part in self.parts]

    def redivide(self, count: int) -> None:
        """Go on with another number of parts."""
        states, clock, names = self.states(), self.parts[0].clock, self.parts[0].names.names
        self.count = count
        self.parts = [self._part(i) for i in range(count)]
        for part in self.parts:
            part.clock = clock
            part.names.add(names)
            self._spread.restore_part(part.reduction, states)

    def model(self) -> bytes:
        """Return the bytes of the model."""
        self._spread.join(self.whole.reduction, self.states())
        return model_contents.to_bytes(self.whole.contents())


def _sent(generator, received):
    try:
        return generator.send(received)
    except StopIteration:
        return None


def tasks_of(model: LearnerCore, text: str, holdout_period: int = 0) -> list[BatchTask]:
    """Return the tasks of a text, after the learner has seen the examples that it needs to see first."""
    tasks, clock = [], model.clock
    for batch in Inputs(model).batches(text, learn=True):
        held_out = batch.line % holdout_period == 0 if holdout_period else None
        for task in model.tasks(batch, True, clock, held_out):
            clock = float(task.clock[-1])
            tasks.append(task)
    if model.preview_size is not None:
        for task in tasks:
            if not model.reduction.preview(task):
                break
        model.reduction.end_preview()
    model.clock = clock
    return tasks
