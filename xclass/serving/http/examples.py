"""Predict, learn and explain examples that came as JSON, those of several requests in one batch.

    answers(learner, [Question(["| kettle leaf"], k=5), ...], learns=False)  ->  [{"predictions": [...]}, ...]

A question that is refused gets its error in place of an answer, and the others are answered. What is learned is what
`Learner.learn_many` learns from the same examples. It learns none if an example has too many features after crossing
namespaces; here, the others are learned, and a warning names that one.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...api import arrays, inputs, results, unknown_features
from ...api.inputs import Documents
from ...api.labels import one_by_one
from ...api.learner import Learner
from ...api.learner_core import LearnerCore
from ...array_types import Float32s
from ...data import batch_ops
from ...data.batch import Batch
from ...data.schema import CATEGORY, DENSE, MATRICES, NUMBER, TEXT
from ...errors import UsageError, XclassError
from ...options.spelling import Spelling
from ...reductions.core.contract import BatchTask
from ...reductions.core.probabilities import Options as ListingOptions
from ...reductions.core.spec import Wanted
from ...system.printable import printable
from ...system.steps import Steps, pause
from ...text import malformed

MOST_WARNINGS = 10  # of a request that are answered
PLACE = re.compile(r"^(batch:|y\[|sample_weight\[)([0-9]+)")  # of an example in a message
LABELS = re.compile(r"^y\b")  # at the beginning of a message
BATCH_WORK = 512  # most work of a batch, unless it has a single example; about 10 ms
BYTES_OF_WORK, VALUES_OF_WORK = 64, 8  # of an example that take about the time of one with few features
SHOWN_COLUMNS = 5  # of a table, in a message
ARGUMENTS = Spelling(lambda: {"--top_k": "k", "--exact": "no k, start the server with --exact"})  # for the client
CLASSES_OF_WORK = 16  # classes that are listed in about the time of a prediction


class Question(NamedTuple):
    """Hold the examples of a request.

    Attributes
    ----------
    examples : what `Learner.learn_many` takes as X: lines of VW text, dictionaries, Documents, or an array of rows
    labels : their labels, None if lines have them or nothing is learned
    weights : their weights, None for 1
    k : number of classes to list or to explain, None for the prediction alone
    shares : most shares of a class that an explanation lists
    before : number of examples of the same request that are in earlier questions
    """

    examples: Sequence[Any] | Float32s
    labels: list[Any] | None = None
    weights: list[float] | None = None
    k: int | None = None
    shares: int = 20
    before: int = 0

    @property
    def work(self) -> int:
        """Return how much work an example without features is, compared with a prediction without a list of classes."""
        return 1 + (self.k or 0) // CLASSES_OF_WORK

    @property
    def size(self) -> int:
        """Return the sum of the sizes of the examples, see `size_of`."""
        return sum(map(size_of, self.examples))

    def parts(self) -> list[Question]:
        """Divide a question into questions with at most BATCH_WORK work, or one example."""
        ends, work = [0], 0
        for i, one in enumerate(self.examples):
            own = size_of(one) * self.work
            if work + own > BATCH_WORK and i > ends[-1]:
                ends.append(i)
                work = 0
            work += own
        if len(ends) == 1:
            return [self]
        made = Documents if isinstance(self.examples, Documents) else lambda part: part
        return [
            self._replace(
                examples=made(self.examples[low:high]),
                labels=self.labels and self.labels[low:high],
                weights=self.weights and self.weights[low:high],
                before=low,
            )
            for low, high in itertools.pairwise([*ends, len(self.examples)])
        ]


def size_of(example: Any) -> int:
    """Return how much work an example is, compared with one of few features, by its bytes and values."""
    if not isinstance(example, dict):  # text, or a row of numbers
        return 1 + len(example) // BYTES_OF_WORK
    values = example.values()
    return 1 + sum(size_of(one) if isinstance(one, (str, dict)) else 1 for one in values) // VALUES_OF_WORK


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
        unknown = _answer(learner.core, batch, questions, found, owners, False, wanted)
        for question, answer, (none_known, looked_at) in zip(questions, found, unknown, strict=True):
            if 2 * none_known > looked_at and not question.before and not isinstance(answer, XclassError):
                first = question.examples[0]
                text = first if isinstance(first, str) else ""  # the message says where its words were learned
                told = unknown_features.message(learner.core, none_known, looked_at, text)
                answer["warnings"] = [*answer.get("warnings", ()), printable(told)][:MOST_WARNINGS]
    return found


class Learning:
    """Learn from the examples of a question in steps, so that others go in between, and the model can be saved.

    All examples are converted before the first is learned, so a question with one that is refused teaches nothing;
    names of classes in the examples before that one keep their numbers.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._parts: list[Question] | None = None  # that are not converted yet
        self._batches: list[Batch] = []  # that are not learned yet
        self._done = 0  # examples of the first of them that are learned
        self._answer: Answer = {"predictions": [], "learned": 0}
        self._notes: list[str] = []

    def step(self, learner: Learner, most: int) -> Answer | None:
        """Convert examples, or learn from at most `most`; return the answer after the last ones, None before."""
        if self._parts is None:
            given = self._question
            learner.adapt(functools.partial(inputs.kind_of_labels, given.examples, given.labels))
            self._begin()
        if self._parts:
            part = self._parts.pop(0)
            try:
                (found,), batch, _ = _converted(learner, [part], True)
            except _ClassesRenumbered:
                self._begin()
                return None
            if isinstance(found, XclassError):
                raise found
            self._notes += found.get("warnings", ())
            if batch is not None:
                self._batches.append(batch._replace(line=batch.line + part.before))
            if self._parts:
                return None
        if self._batches:
            batch = self._batches[0]
            one = batch_ops.cut(batch, self._done, min(self._done + most, batch.n))
            _answer(learner.core, one, [self._question], [self._answer], [0] * one.n, True, None)
            self._done += one.n
            if self._done == batch.n:
                del self._batches[0]
                self._done = 0
        if self._batches:
            return None
        return {**self._answer, **_warnings([*self._notes, *self._answer.pop("warnings", ())])}

    def _begin(self) -> None:
        self._parts, self._batches, self._notes = self._question.parts(), [], []


class Explainer:
    """Explain the predictions of the examples of a question in steps, so that other questions go in between.

    `abandon` ends what has begun, as the worker does that takes the steps, because that uses the learner.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._learner: Learner | None = None
        self._steps = Steps(self._explained)
        self._notes: list[str] = []
        self.abandon = self._steps.abandon

    def step(self, learner: Learner) -> Answer | None:
        """Execute the next step; return the answer to the question after the last step, None before."""
        self._learner = learner
        try:
            ended = self._steps.resume()
        finally:
            self._notes += [_moved(note, 0) for note in learner.core.take_notes()]
        return {"explanations": self._steps.result(), **_warnings(self._notes)} if ended else None

    def _explained(self) -> list[Answer]:
        learner = self._learner
        assert learner is not None
        examples, shares, found = self._question.examples, self._question.shares, list[Answer]()
        try:
            batches = list(learner.inputs.batches(examples))
        except XclassError as error:
            raise _in_json(error, learner.core) from None
        single = (batch_ops.cut(batch, i, i + 1) for batch in batches for i in range(batch.n))
        given = learner.inputs.opened(examples)
        for one in results.explanations(learner.core, single, given, self._question.k or 2, most=shares):
            found.append(one.as_dict())
            pause()
        return found


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
            given = learner.converted(functools.partial(_batches, question, learns, learner.inputs), learns)
        except XclassError as error:
            found.append(_in_json(error, learner.core, question.before))
            continue
        for batch in given:
            batches.append(batch)
            owners += [i] * batch.n
        notes = [_moved(note, question.before) for note in learner.core.take_notes()]
        found.append({"predictions": [], **({"learned": 0} if learns else {}), **_warnings(notes)})
    if len(batches) > 1:
        return found, batch_ops.pick([(batch, np.arange(batch.n)) for batch in batches]), owners
    return found, batches[0] if batches else None, owners


def _form(core: LearnerCore) -> str:
    """Return the advice for examples of another form than those learned: the JSON to send."""
    shown = {NUMBER: 0.5, TEXT: "some words", CATEGORY: "red", DENSE: [0.5, 1.0]}
    columns = {name: shown[kind] for name, kind in itertools.islice(core.schema.columns.items(), SHOWN_COLUMNS)}
    if columns:
        return f"send {json.dumps({'examples': [{'features': columns}]}, ensure_ascii=False)}"
    if core.schema.form != MATRICES:
        return 'send {"texts": ["some words"]}'
    width = core.schema.width
    row = [0.5] * min(width or 2, SHOWN_COLUMNS)
    return f"send {json.dumps({'rows': [row]})}" + f", with {width} numbers in each row" * bool(width)


def _in_json(error: XclassError, core: LearnerCore, before: int = 0) -> XclassError:
    """Return an error with a message for the client, which sends JSON; `before` is as in `Question`."""
    told = f"{error.fault}; {_form(core)}" if isinstance(error, inputs.OtherForm) else str(error)
    error.args = (_moved(told, before),)
    return error


class _ClassesRenumbered(Exception):
    """Report that classes have names from now on, so that examples that were converted before have other numbers."""


def _batches(question: Question, learns: bool, before: inputs.Inputs, own: inputs.Inputs) -> list[Batch]:
    if own is not before:
        raise _ClassesRenumbered
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
) -> list[tuple[int, int]]:
    """Predict examples, with `learns` learn from them, and add the predictions to the answers of their questions.

    Return, for each question, how many of its examples have features, none of which was learned, and how many were
    looked at.
    """
    with ARGUMENTS:
        core.want(wanted)
    unknown = [(0, 0)] * len(questions)
    done, places = 0, whole.line
    whole = whole._replace(line=np.arange(1, whole.n + 1))  # of the examples of all questions

    def answer(batch: Batch) -> None:
        nonlocal done
        for task in core.learn([batch]) if learns else core.predict([batch], wanted, looks_at_all=True):
            own = owners[done : done + task.batch.n]
            _add(core, task, questions, found, own)
            for i, one in zip(own, () if task.unknown is None else task.unknown.tolist(), strict=False):
                unknown[i] = unknown[i][0] + one, unknown[i][1] + 1
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
        row = None if place is None else int(place[2]) - 1
        for i in set(owners) if row is None else (owners[row],):
            own = found[i]
            if not isinstance(own, XclassError):
                told = note if row is None else _moved(f"batch:{places[row]}{PLACE.sub('', note)}", questions[i].before)
                own["warnings"] = [*own.get("warnings", ()), printable(told)][:MOST_WARNINGS]
    return unknown


def _add(
    core: LearnerCore,
    task: BatchTask,
    questions: Sequence[Question],
    found: list[Answer | XclassError],
    owners: Sequence[int],
) -> None:
    """Add the predictions of a task to the answers of the questions that own its examples."""
    predicted = results.answers(core, task, best_first=not core.spec.vw_exact)
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
    """Return a message for the client, which sends JSON; an example has the number that it has in the whole request."""
    moved = PLACE.sub(lambda found: f"{found[1]}{int(found[2]) + before}", message) if before else message
    named = LABELS.sub("labels", moved).replace(malformed.CURE, ". Correct the line")
    return named.replace(inputs.DOCUMENTS, "send texts")


def _warnings(notes: Sequence[str]) -> dict[str, list[str]]:
    """Return the part of an answer with the messages about its examples."""
    return {"warnings": [printable(note) for note in notes[:MOST_WARNINGS]]} if notes else {}


@functools.lru_cache(64)
def _wanted(k: int) -> Wanted:
    """Return what a learner shall list; it prepares nothing anew if it is given the same object again."""
    return Wanted(listing_options=ListingOptions(top_k=k))
