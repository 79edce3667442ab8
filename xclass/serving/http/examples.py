"""Predict, learn and explain examples that came as JSON, those of several requests in one batch.

    answers(learner, [Question(["| kettle leaf"], k=5), ...], learns=False)  ->  [{"predictions": [...]}, ...]

A question that is refused gets its error in place of an answer, and the others are answered. What is learned is what
`Learner.learn_many` learns from the same examples. It learns none if an example has too many features after crossing
namespaces; here, the others are learned, and a warning names that one.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api import arrays, inputs, results
from ...api.labels import one_by_one
from ...api.learner import Learner
from ...api.learner_core import LearnerCore
from ...data import batch_ops
from ...data.batch import Batch
from ...errors import UsageError, XclassError
from ...explain.records import Explanation
from ...reductions.core.contract import BatchTask
from ...reductions.core.probabilities import Options as ListingOptions
from ...reductions.core.spec import Wanted
from ...system.printable import printable

MOST_WARNINGS = 10  # of a request that are answered
PLACE = re.compile("^batch:([0-9]+)")  # of an example in a message
CLASSES_OF_WORK = 16  # classes that are listed in about the time of a prediction


class Question(NamedTuple):
    """Hold the examples of a request.

    Attributes
    ----------
    examples : what `Learner.learn_many` takes as X: lines of VW text, dictionaries, or Documents
    labels : their labels, None if lines have them or nothing is learned
    weights : their weights, None for 1
    k : number of classes to list or to explain, None for the prediction alone
    shares : most shares of a class that an explanation lists
    before : number of examples of the same request that are in earlier questions
    """

    examples: Sequence[Any]
    labels: list[Any] | None = None
    weights: list[float] | None = None
    k: int | None = None
    shares: int = 20
    before: int = 0

    @property
    def work(self) -> int:
        """Return how much work an example is, compared with a prediction without a list of classes."""
        return 1 + (self.k or 0) // CLASSES_OF_WORK

    def parts(self, most: int) -> list[Question]:
        """Divide a question that only predicts into questions with at most `most` work, or one example."""
        size = max(1, most // self.work)
        if len(self.examples) <= size:
            return [self]
        made = type(self.examples)
        return [
            self._replace(examples=made(self.examples[begin : begin + size]), before=begin)  # type: ignore[call-arg]
            for begin in range(0, len(self.examples), size)
        ]


Answer = dict[str, Any]


def joined(found: Sequence[Answer]) -> Answer:
    """Return the answer to a question from those to its parts."""
    if len(found) == 1:
        return found[0]
    warnings = [warning for answer in found for warning in answer.get("warnings", ())]
    return {"predictions": [one for answer in found for one in answer["predictions"]], **_warnings(warnings)}


def answers(learner: Learner, questions: Sequence[Question]) -> list[Answer | XclassError]:
    """Return the predictions for each question, or its error."""
    found, batch, owners = _converted(learner, questions, False)
    if batch is not None:
        listed = [question.k for question in questions if question.k is not None]
        wanted = _wanted(max(listed)) if listed else None
        _answer(learner.core, batch, questions, found, owners, False, wanted)
    return found


class Learning:
    """Learn from the examples of a question in parts, so that the model can be saved between two of them."""

    def __init__(self, question: Question) -> None:
        self._questions = [question]
        self._found: list[Answer | XclassError] = []
        self._batch: Batch | None = None
        self._done = 0

    def step(self, learner: Learner, most: int) -> Answer | None:
        """Learn from at most `most` examples; return the answer to the question after the last one, None before."""
        if not self._found:
            (question,) = self._questions
            learner.adapt(functools.partial(inputs.kind_of_labels, question.examples, question.labels))
            self._found, self._batch, _ = _converted(learner, self._questions, True)
        if self._batch is not None:
            part = batch_ops.cut(self._batch, self._done, min(self._done + most, self._batch.n))
            _answer(learner.core, part, self._questions, self._found, [0] * part.n, True, None)
            self._done += part.n
            if self._done < self._batch.n:
                return None
        (answer,) = self._found
        if isinstance(answer, XclassError):
            raise answer
        return answer


class Explainer:
    """Explain the predictions of the examples of a question one by one, so that other questions go in between.

    All explanations are of one model: they begin anew if another one has taken its place.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._core: LearnerCore | None = None

    def step(self, learner: Learner) -> Answer | None:
        """Explain the next example; return the answer to the question after the last one, None before."""
        try:
            if self._core is not learner.core:
                self._core = learner.core
                self._found: list[Answer] = []
                self._notes: list[str] = []
                self._explanations = self._begin(learner)
            one = next(self._explanations, None)
        finally:
            notes = learner.core.take_notes()
        self._notes += notes
        if one is None:
            return {"explanations": self._found, **_warnings(self._notes)}
        self._found.append(one.limited(self._question.shares, self._question.shares).as_dict())
        return None

    def _begin(self, learner: Learner) -> Iterator[Explanation]:
        examples = self._question.examples
        batches = list(learner.inputs.batches(examples))
        single = (batch_ops.cut(batch, i, i + 1) for batch in batches for i in range(batch.n))
        return results.explanations(learner.core, single, learner.inputs.opened(examples), self._question.k or 2)


def _converted(
    learner: Learner, questions: Sequence[Question], learns: bool
) -> tuple[list[Answer | XclassError], Batch | None, list[int]]:
    """Return for each question an empty answer or its error, the examples, and the number of the question of each.

    None stands for no examples.
    """
    learner.core.names.growing = learns and learner.growing
    found: list[Answer | XclassError] = []
    batches: list[Batch] = []
    owners: list[int] = []
    for i, question in enumerate(questions):
        try:
            if question.k is not None and not learner.core.config.reduction.probabilities:
                raise UsageError(f"{learner.core.config.reduction.name} does not estimate probabilities; leave k out")
            given = learner.converted(functools.partial(_batches, question, learns), learns)
        except XclassError as error:
            error.args = (_moved(str(error), question.before),)
            found.append(error)
            continue
        for batch in given:
            batches.append(batch)
            owners += [i] * batch.n
        notes = [_moved(note, question.before) for note in learner.core.take_notes()]
        found.append({"predictions": [], **({"learned": 0} if learns else {}), **_warnings(notes)})
    if len(batches) > 1:
        return found, batch_ops.pick([(batch, np.arange(batch.n)) for batch in batches]), owners
    return found, batches[0] if batches else None, owners


def _batches(question: Question, learns: bool, own: inputs.Inputs) -> list[Batch]:
    labels = None if question.labels is None else one_by_one(question.labels)
    return list(own.batches(question.examples, labels, question.weights, learns))


def _answer(
    core: LearnerCore,
    whole: Batch,
    questions: Sequence[Question],
    found: list[Answer | XclassError],
    owners: Sequence[int],
    learns: bool,
    wanted: Wanted | None,
) -> None:
    """Predict examples, with `learns` learn from them, and add the predictions to the answers of their questions."""
    core.want(wanted)
    done, places = 0, whole.line
    whole = whole._replace(line=np.arange(1, whole.n + 1))  # of the examples of all questions

    def answer(batch: Batch) -> None:
        nonlocal done
        for task in core.learn([batch]) if learns else core.predict([batch], wanted):
            _add(core, task, questions, found, owners[done : done + task.batch.n])
            done += task.batch.n

    try:
        answer(whole)
    except XclassError:  # crossing namespaces makes too many features of an example
        while done < whole.n:
            try:
                answer(batch_ops.cut(whole, done, done + 1))
            except XclassError as error:
                own = found[owners[done]]
                if learns and not isinstance(own, XclassError):  # the others may have been learned
                    own["predictions"].append({"prediction": None})
                    own["warnings"] = [*own.get("warnings", ()), printable(str(error))][:MOST_WARNINGS]
                else:
                    found[owners[done]] = error
                done += 1
    for note in core.take_notes():
        place = PLACE.match(note)
        row = None if place is None else int(place[1]) - 1
        for i in set(owners) if row is None else (owners[row],):
            own = found[i]
            if not isinstance(own, XclassError):
                told = note if row is None else _moved(f"batch:{places[row]}{PLACE.sub('', note)}", questions[i].before)
                own["warnings"] = [*own.get("warnings", ()), printable(told)][:MOST_WARNINGS]


def _add(
    core: LearnerCore,
    task: BatchTask,
    questions: Sequence[Question],
    found: list[Answer | XclassError],
    owners: Sequence[int],
) -> None:
    """Add the predictions of a task to the answers of the questions that own its examples."""
    predicted = results.answers(core, task)
    k = max((questions[i].k or 0 for i in set(owners)), default=0)
    lists = results.best_lists(core, task, k) if k and not task.learn else None
    labels: list[list[Any]] = []
    p: list[list[float]] = []
    none = None
    if lists is not None:
        of_classes, of_p = arrays.top_k_arrays(lists, k)
        labels, p = results.class_labels(core, of_classes).tolist(), of_p.tolist()
        none = -1 if core.classes is None else None  # beyond the last class
    learned = task.learned().tolist() if task.learn else ()
    for i, owner in enumerate(owners):
        answer = found[owner]
        if isinstance(answer, XclassError):
            continue
        one: dict[str, Any] = {"prediction": _finite(predicted[i])}
        if lists is not None and (most := questions[owner].k) is not None:
            pairs = zip(labels[i][:most], p[i], strict=False)
            one["top"] = [{"class": y, "probability": value} for y, value in pairs if y != none]
        answer["predictions"].append(one)
        if task.learn:
            answer["learned"] += learned[i]


def _finite(prediction: Any) -> Any:
    """Return a prediction, None in place of a number that is not finite, which JSON does not have."""
    return None if isinstance(prediction, float) and not math.isfinite(prediction) else prediction


def _moved(message: str, before: int) -> str:
    """Return a message that begins with the number of an example with that in the whole request."""
    return PLACE.sub(lambda found: f"batch:{int(found[1]) + before}", message) if before else message


def _warnings(notes: Sequence[str]) -> dict[str, list[str]]:
    """Return the part of an answer with the messages about its examples."""
    return {"warnings": [printable(note) for note in notes[:MOST_WARNINGS]]} if notes else {}


@functools.lru_cache(64)
def _wanted(k: int) -> Wanted:
    """Return what a learner shall list; it prepares nothing anew if it is given the same object again."""
    return Wanted(listing_options=ListingOptions(top_k=k))
