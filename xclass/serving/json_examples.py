"""Predict, learn and explain examples that came as JSON, those of several requests in one batch.

    predict(learner, [GivenExamples(["| kettle leaf"], k=5), ...])  ->  [{"predictions": [...]}, ...]

A request that is refused gets its error in place of an answer, and the others are answered. What is learned is what
`Learner.learn_many` learns from the same examples. It learns none if an example has too many features after crossing
namespaces; here, the others are learned, and a warning names that one.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api import example_notes, inputs, results
from ..api.inputs import Documents
from ..api.labels import one_by_one
from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..array_types import Float32s
from ..data import batch_ops
from ..data.batch import Batch
from ..data.schema import CATEGORY, DENSE, MATRICES, NUMBER, TEXT
from ..errors import UsageError, XclassError
from ..options.spelling import Spelling
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import ListingOptions
from ..reductions.core.spec import LearnerUse
from ..run import warm_up
from ..system.printable import printable
from ..system.steps import Steps, pause
from ..text import malformed
from .lines import LineHandler, for_clients, refused_alone

MOST_WARNINGS = 10  # of a request that are answered
PLACE = re.compile(r"^(batch:|y\[|sample_weight\[)([0-9]+)(?:\]|:([0-9]+))?")  # of an example in a message
PARTS = {"y[": "label", "sample_weight[": "weight"}  # of an example in JSON
LABELS = re.compile(r"^y\b")  # at the beginning of a message
BATCH_WORK = 512  # most work of a batch, unless it has a single example; about 10 ms
BYTES_OF_WORK, VALUES_OF_WORK = 64, 8  # of an example that take about the time of one with few features
SHOWN_COLUMNS = 5  # of a table, in a message
ARGUMENTS = Spelling(lambda _: {"--top_k": "k", "--exact": "no k, start the server with --exact"})  # for the client
CLASSES_OF_WORK = 16  # classes that are listed in about the time of a prediction


class GivenExamples(NamedTuple):
    """Hold the examples of a request.

    Attributes
    ----------
    items : what `Learner.learn_many` takes as X: lines of VW text, dictionaries, Documents, or an array of rows
    labels : their labels, None if lines have them or nothing is learned
    weights : their weights, None for 1
    k : number of classes to list or to explain, None for the prediction alone
    shares : most shares of a class that an explanation lists
    before : number of examples of the same request that are in earlier requests
    form : name of the examples in the request
    """

    items: Sequence[Any] | Float32s
    labels: list[Any] | None = None
    weights: list[float] | None = None
    k: int | None = None
    shares: int = 20
    before: int = 0
    form: str = "lines"

    @property
    def work(self) -> int:
        """Return how much work an example without features is, compared with a prediction without a list of classes."""
        return 1 + (self.k or 0) // CLASSES_OF_WORK

    @property
    def size(self) -> int:
        """Return the sum of the sizes of the examples, see `size_of`."""
        return sum(map(size_of, self.items))

    def parts(self) -> list[GivenExamples]:
        """Divide a request into requests with at most BATCH_WORK work, or one example."""
        ends, work = [0], 0
        for i, one in enumerate(self.items):
            own = size_of(one) * self.work
            if work + own > BATCH_WORK and i > ends[-1]:
                ends.append(i)
                work = 0
            work += own
        if len(ends) == 1:
            return [self]
        made = Documents if isinstance(self.items, Documents) else lambda part: part
        return [
            self._replace(
                items=made(self.items[low:high]),
                labels=self.labels and self.labels[low:high],
                weights=self.weights and self.weights[low:high],
                before=low,
            )
            for low, high in itertools.pairwise([*ends, len(self.items)])
        ]


def size_of(example: Any) -> int:
    """Return how much work an example is, compared with one of few features, by its bytes and values."""
    if not isinstance(example, dict):  # text, or a row of numbers
        return 1 + len(example) // BYTES_OF_WORK
    values = example.values()
    return 1 + sum(size_of(one) if isinstance(one, (str, dict)) else 1 for one in values) // VALUES_OF_WORK


JsonObject = dict[str, Any]


def joined(found: Sequence[JsonObject]) -> JsonObject:
    """Return the answer to a request from those to its parts."""
    if len(found) == 1:
        return found[0]
    warnings = [warning for answer in found for warning in answer.get("warnings", ())]
    return {"predictions": [one for answer in found for one in answer["predictions"]], **_warnings(warnings)}


def first_batch(requests: Sequence[GivenExamples]) -> Sequence[GivenExamples]:
    """Return the first requests, as many as one batch should answer."""
    size = work = 0  # the most work of an example counts, as all of a batch list as many classes
    for count, request in enumerate(requests):
        size, work = size + request.size, max(work, request.work)
        if count and size * work > BATCH_WORK:
            return requests[:count]
    return requests


class _Reply:
    """Gather what becomes of the examples of a request: an answer, with warnings, or the error by which it is refused.

    `unknown` of the `looked_at` first examples have no feature that was learned.
    """

    def __init__(self, request: GivenExamples) -> None:
        self.request, self.answer, self.notes = request, JsonObject(predictions=[]), list[str]()
        self.error: XclassError | None = None
        self.unknown = self.looked_at = 0

    def result(self) -> JsonObject | XclassError:
        return self.error or {**self.answer, **_warnings(self.notes)}


def predict(learner: Learner, requests: Sequence[GivenExamples]) -> list[JsonObject | XclassError]:
    """Return the predictions for each request, or its error."""
    replies = [_Reply(request) for request in requests]
    batch, owners = _converted(learner, replies, False)
    if batch is not None:
        _execute(learner.core, batch, owners, False)
    for reply in replies:
        if 2 * reply.unknown > reply.looked_at and not reply.request.before:
            first = reply.request.items[0]
            text = first if isinstance(first, str) else ""  # the message says where its words were learned
            reply.notes.append(example_notes.message(learner.core, reply.unknown, reply.looked_at, text))
    return [reply.result() for reply in replies]


def learn(learner: Learner, request: GivenExamples, most: Callable[[], int]) -> Generator[None, None, JsonObject]:
    """Learn from the examples of a request in steps, so that others go in between, and the model can be saved.

    A step converts a part, or learns from at most `most()` examples. All examples are converted before the first is
    learned, so a request with one that is refused teaches nothing; names of classes in the examples before that one
    keep their numbers.
    """
    learner.adapt(functools.partial(inputs.kind_of_labels, request.items, request.labels))
    reply = _Reply(request)
    reply.answer["learned"] = 0
    for i, batch in enumerate((yield from _parts_converted(learner, reply))):
        done = 0
        while done < batch.n:
            if i or done:
                yield
            one = batch_ops.cut(batch, done, min(done + most(), batch.n))
            _execute(learner.core, one, [reply] * one.n, True)
            done += one.n
    return {**reply.answer, **_warnings(reply.notes)}


def _parts_converted(learner: Learner, reply: _Reply) -> Generator[None, None, list[Batch]]:
    """Convert the examples of a request to learn from them, part by part; raise its error."""
    own = None
    while learner.inputs is not own:  # from now on classes have names, so earlier parts have other numbers
        own, batches = learner.inputs, list[Batch]()
        reply.notes.clear()
        for part in reply.request.parts():
            if part.before:
                yield
            converted = _Reply(part)
            batch, _ = _converted(learner, [converted], True)
            if converted.error is not None:
                raise converted.error
            if learner.inputs is not own:
                break
            reply.notes += converted.notes
            if batch is not None:
                batches.append(batch._replace(line=batch.line + part.before))
    return batches


def explain(learner: Learner, request: GivenExamples) -> Generator[None, None, JsonObject]:
    """Explain the predictions of the examples of a request in steps, so that others go in between."""
    steps, notes = Steps(functools.partial(_explanations, learner, request)), list[str]()
    try:
        while True:
            try:
                ended = steps.resume()
            finally:
                notes += [_moved(note, request) for note in learner.core.take_notes()]
            if ended:
                return {"explanations": steps.result(), **_warnings(notes)}
            yield
    finally:
        steps.abandon()


def _explanations(learner: Learner, request: GivenExamples) -> list[JsonObject]:
    found = list[JsonObject]()
    try:
        batches = list(learner.inputs.batches(request.items))
    except XclassError as error:
        raise _in_json(error, learner.core, request) from None
    single = (batch_ops.cut(batch, i, i + 1) for batch in batches for i in range(batch.n))
    given = learner.inputs.opened(request.items)
    for one in results.explanations(learner.core, single, given, request.k or 2, most=request.shares):
        found.append(one.as_dict())
        pause()
    return found


def _converted(learner: Learner, replies: Sequence[_Reply], learns: bool) -> tuple[Batch | None, list[_Reply]]:
    """Return the examples of all requests, None for none, and the reply of each; note errors of requests."""
    learner.core.names.growing = learns and learner.growing
    batches: list[Batch] = []
    owners: list[_Reply] = []
    for reply in replies:
        request = reply.request
        try:
            if request.k is not None and not learner.core.config.reduction.probabilities:
                raise UsageError(f"{learner.core.config.reduction.name} does not estimate probabilities; leave k out")
            given = learner.converted(functools.partial(_batches, request, learns, learner.inputs), learns)
        except XclassError as error:
            reply.error = _in_json(error, learner.core, request)
            continue
        batches += given
        owners += [reply] * sum(batch.n for batch in given)
        reply.notes += [_moved(note, request) for note in learner.core.take_notes()]
    if len(batches) > 1:
        return batch_ops.pick([(batch, np.arange(batch.n)) for batch in batches]), owners
    return batches[0] if batches else None, owners


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


def _in_json(error: XclassError, core: LearnerCore, request: GivenExamples) -> XclassError:
    """Return an error about the examples of a request with a message for the client, which sends JSON."""
    told = f"{error.fault}; {_form(core)}" if isinstance(error, inputs.OtherForm) else str(error)
    error.args = (_moved(told, request),)
    return error


def _batches(request: GivenExamples, learns: bool, before: inputs.Inputs, own: inputs.Inputs) -> list[Batch]:
    if own is not before:  # examples are converted anew from the first part, so that new names have its order
        return []
    labels = None if request.labels is None else one_by_one(request.labels)
    return list(own.batches(request.items, labels, request.weights, learns))


def _execute(core: LearnerCore, batch: Batch, owners: Sequence[_Reply], learns: bool) -> None:
    """Predict examples, with `learns` learn from them, and add the predictions to the replies that own them."""
    k = max((reply.request.k or 0 for reply in owners), default=0)
    wanted = _wanted(k) if k and not learns else None
    with ARGUMENTS:
        core.want(wanted)

    def executed(part: Batch) -> Iterator[BatchTask]:
        return core.learn([part]) if learns else core.predict([part], wanted, looks_at_all=True)

    done, places = 0, batch.line
    for task in refused_alone(batch._replace(line=np.arange(1, batch.n + 1)), executed):
        if not isinstance(task, XclassError):
            _add(core, task, owners[done : done + task.batch.n], k if wanted else 0)
            done += task.batch.n
            continue
        reply, message = owners[done], for_clients(str(task))
        if learns:  # the others may have been learned
            reply.answer["predictions"].append({"prediction": None})
            reply.notes.append(message)
        else:
            task.args = (message,)
            reply.error = task
        done += 1
    for note in core.take_notes():
        place = PLACE.match(note)
        if place is None:
            concerned, told = [*dict.fromkeys(owners)], note
        else:
            row = int(place[2]) - 1
            concerned, told = [owners[row]], f"batch:{places[row]}{note[place.end(2) :]}"
        for reply in concerned:
            reply.notes.append(_moved(told, reply.request))


def _add(core: LearnerCore, task: BatchTask, owners: Sequence[_Reply], k: int) -> None:
    """Add the predictions of a task, and the lists of k classes, to the replies that own its examples."""
    predicted = results.answers(core, task, best_first=not core.spec.vw_exact)
    lists = results.best_lists(core, task, k) if k else None
    tops: Sequence[list[JsonObject]] = [[]] * len(owners)
    if lists is not None:
        of_classes, of_p = results.top_k_arrays(lists, k)
        none = -1 if core.classes is None else None  # beyond the last class
        tops = [
            [{"class": y, "probability": value} for y, value in zip(labels, p, strict=True) if y != none]
            for labels, p in zip(results.class_labels(core, of_classes).tolist(), of_p.tolist(), strict=True)
        ]
    for reply, prediction, top in zip(owners, predicted, tops, strict=True):
        one: JsonObject = {"prediction": prediction}
        if lists is not None and (most := reply.request.k) is not None:
            one["top"] = top[:most]
        reply.answer["predictions"].append(one)
    if task.learn:
        owners[0].answer["learned"] += int(task.learned().sum())
    elif core.unknown_features.found is not None:
        for reply, unknown in zip(owners, core.unknown_features.found.tolist(), strict=False):
            reply.unknown += unknown
            reply.looked_at += 1


def _moved(message: str, request: GivenExamples) -> str:
    """Return a message about the examples of a request for the client; the place is that in the JSON that it sent."""

    def place(found: re.Match[str]) -> str:
        part = PARTS.get(found[1], "")
        i = int(found[2]) + request.before - (not part)
        if part and request.form != "examples":
            return f"{part}s[{i}]"
        column = f", column {found[3]}" if found[3] else ""
        return f"{request.form}[{i}]{part and '.'}{part}{column}"

    named = LABELS.sub("labels", malformed.without_skip(PLACE.sub(place, message)))
    return for_clients(named.replace(inputs.DOCUMENTS, "send texts"))


def _warnings(notes: Sequence[str]) -> dict[str, list[str]]:
    """Return the part of an answer with the messages about its examples."""
    return {"warnings": [printable(note) for note in notes[:MOST_WARNINGS]]} if notes else {}


@functools.lru_cache(64)
def _wanted(k: int) -> LearnerUse:
    """Return what a learner shall list; it prepares nothing anew if it is given the same object again."""
    return LearnerUse(listing_options=ListingOptions(top_k=k))


# -- before the first request

BITS, CLASSES, COLUMNS, ROUNDS = 12, 16, 4, 3  # of the small learner
FEATURES: dict[str, Any] = {"a": 1, "b": "red", "n": {"c": 0.5}}


def load_request_kernels(handler: LineHandler) -> None:
    """Load the kernels of all kinds of requests before the first one comes, or compile those that are not stored.

    A small new learner with the options of the one that is served answers a request of each kind. Whatever code a
    request passes, its kernels are loaded then, and the learner that is served stays as it is.
    """
    core = handler.learner.core
    for load in warm_up.parts(core.reduction, handler.learns, True).values():
        load()
    if core.config.reduction.learns_at_end or core.reduction.awaited:
        return  # a new one would need to see more examples
    with contextlib.suppress(Exception):  # the first requests load what is missing
        for rows in (False, True) if core.schema.width else (False,):
            with _small(core) as learner:
                _ask(learner, handler.learns, rows)


def _small(core: LearnerCore) -> Learner:
    """Return a new learner with the options of another one."""
    config, named = core.config, core.classes is not None
    changed: dict[str, Any] = {"bits": min(config.learner.bits, BITS), "named_labels": None, "learn_names": named}
    classes = config.values().get(config.reduction.name)
    if type(classes) is int:
        changed[config.reduction.name] = min(classes, CLASSES)
    return Learner.of(LearnerCore(config.with_values(changed, LearnerUse())))


def _ask(learner: Learner, learns: bool, rows: bool) -> None:
    """Let a new learner learn, and answer each kind of request."""
    core = learner.core
    kind, named = core.config.reduction.labels, core.classes is not None
    words = ("tea", "beer") if named else ("1", "2")
    labels: list[Any] = [word if named else int(word) for word in words]
    labels = [[label] for label in labels] if kind == "multilabel" else labels
    given: list[Any] = [FEATURES] * 2
    if rows:
        width = core.config.parser.dense_namespace()[1] or COLUMNS
        given = np.eye(2, width, dtype=np.float32)  # type: ignore[assignment]
    unlabelled = ["|n:2 a:1 b=red c:1e3 d:word e"] * 2  # with what few lines have
    lines = [f"{word} 't {line}" for word, line in zip(words, unlabelled, strict=True)]
    for _ in range(ROUNDS):
        _learn(learner, GivenExamples(given, labels, [1.0, 1.0]))
    if learns and not rows:
        _learn(learner, GivenExamples(lines))
        _learn(learner, GivenExamples(Documents(["a red cup"] * 2), labels))
    k = 2 if core.config.reduction.probabilities else None
    asked: list[Any] = [given] if rows else [given, unlabelled, Documents(["a red cup"] * 2), ["| not_learned"]]
    for one in asked:
        for count in {None, k}:
            predict(learner, [GivenExamples(one, k=count), GivenExamples(one[:1], k=count)])
        with contextlib.suppress(XclassError):  # it does not explain
            for _ in explain(learner, GivenExamples(one, k=k)):
                pass
    if not rows:
        LineHandler(learner, learns).handle("".join(f"{line}\n" for line in lines).encode(), learns)


def _learn(learner: Learner, given: GivenExamples) -> None:
    for _ in learn(learner, given, lambda: len(given.items)):
        pass
