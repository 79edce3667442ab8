"""Collect everything that the report shows, before any of it is drawn, and write it as a JSON object for programs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..abilities.find import described
from ..api import configuration, files, results
from ..api.learner import Learner
from ..array_types import Float64s
from ..data import batch_ops
from ..data.batch import Batch
from ..errors import DataError, ModelError, UsageError
from ..reductions.core.calibration import calibration_error
from ..reductions.core.label_report import LabelReport
from ..run.results import by_class, summary
from ..system import streams, thread_limit
from ..system.printable import short_repr
from ..text import reader
from . import failing, outcomes
from .failing import Bin, Cause, FailingClass, Pair
from .outcomes import NOT_KNOWN, ClassFrequencies, ModelOutcomes

SCHEMA = "xclass report 1"
TENTHS = 10  # bins of the calibration
LINES_OF_CLASS = 3  # wrong lines that are shown for a class
PAIRS = 15
CURE = "give a file whose lines are a label, a tab and a text"
KEYS = {"label": "class", "often": "count"}  # of JSON objects, where they are not the names of fields
LABEL = re.compile(r"\s*[0-9]{1,18}\s*")  # in the file of --class_names
MOST_TEXT = 300  # characters of a line that are shown
SHARES = 6  # features that are listed for a class


class ReportRequest(NamedTuple):
    """Hold what the user has asked for."""

    model: str  # path of the model file
    source: reader.ReaderOptions  # test data, and how they are read
    training: tuple[str, ...]  # training data, which are read in the same way
    top: int  # number of classes in each list
    least: int  # test examples of a class in the list of the highest errors
    texts: str | None = None  # file with the texts of classes


class Reason(NamedTuple):
    """Hold what a score is the sum of, for one class of an example."""

    name: str  # of the class
    score: float | None  # None if the class was not compared
    shares: list[tuple[str, float]]  # the largest ones: features, and what each adds to the score
    instead: list[tuple[str, float]]  # of the answer: what speaks for it most, rather than for the label


class Shown(NamedTuple):
    """Hold an example that the report shows."""

    place: str  # file and line
    text: str  # the line, perhaps cut
    label: int
    answer: int
    answer_probability: float  # NaN if not known
    listed: list[tuple[int, float]]  # the most probable classes and their probabilities
    reasons: list[Reason]  # of the answer and of the label, if the example was to be explained


class Errors(NamedTuple):
    """Hold what the test data have shown, as the JSON file has it."""

    examples: int
    weight: float
    classes: int  # number of classes among the labels
    error: float
    list_error: float | None  # share of the examples whose label is not among the first listed classes
    log_loss: float | None  # of the labels with a probability
    calibration_error: float | None
    causes: list[Cause]
    advice: list[str]  # what may help over all classes
    classes_by_errors: list[FailingClass]  # with the most errors
    classes_by_rate: list[FailingClass]  # with the highest error, among those with enough examples
    pairs: list[Pair]
    counted_in: str  # where the examples of a class were counted
    bins: list[Bin]


class ReportContents(NamedTuple):
    """Hold the contents of a report."""

    request: ReportRequest
    name: Callable[[int], str]  # text of a class
    has_lists: bool  # whether it learns lists of labels
    reduction: str
    learned: int  # examples learned
    classes: int
    counted: bool  # whether these classes were learned, and are not only as many as can be
    model_bytes: int
    training_error: float | None  # error of the predictions made before learning; None if not known
    options: dict[str, Any]
    versions: dict[str, str]
    notes: list[str]  # messages about the test data
    errors: Errors | None = None  # None without test data, and for a model that learns lists of labels
    more: tuple[int, int] = (0, 0)  # classes beyond the lists of those that fail most that fail as much as the last one
    lines: Mapping[int, Shown] = {}  # wrong examples by their number
    without_probability: int = 0  # labels without a probability, which the log loss leaves out
    measures: LabelReport | None = None  # of test data with lists of labels
    calibration: Float64s = np.zeros((3, TENTHS))  # as in `core.calibration.calibration_error`


def collect(learner: Learner, request: ReportRequest) -> ReportContents:
    """Return the contents of a report."""
    core = learner.core
    lists = core.config.reduction.labels == "multilabel"
    if core.config.reduction.labels == "simple":
        raise ModelError(
            f"{request.model}: the model predicts numbers, and a report is about classes; give a model of another "
            "reduction"
        )
    texts = {} if request.texts is None else _class_texts(request.texts)
    if texts and core.names.class_list is not None:
        raise UsageError("--class_names has no effect: the classes of the model have names; leave it out")
    if lists and request.training:
        raise UsageError("--train has no effect: a model of lists of labels has counted its labels; leave it out")

    def name(label: int) -> str:
        text = outcomes.name_of(core, label)
        return f"{text} {texts[label]}" if label in texts else text

    training = outcomes.of_training(core, replace(request.source, data=request.training))
    known = training.classes
    classes = learner.classes
    number = classes if isinstance(classes, int) else len(classes or ())
    if known is not None:
        number = sum(weight > 0 for weight in known.examples.values())
    contents = ReportContents(
        request=request,
        name=name,
        has_lists=lists,
        reduction=configuration.chosen_name(core.config),
        learned=learner.examples,
        classes=number,
        counted=known is not None or not core.spec.classes,
        model_bytes=os.path.getsize(request.model),
        training_error=learner.average_loss,
        options={name: value for name, value in sorted(core.config.stored().items()) if name != "named_labels"},
        versions={
            **summary.versions(), "machine": f"{summary.machine()}, {thread_limit.processors()} processors",
        },
        notes=[],
    )  # fmt: skip
    if not request.source.data:
        return contents
    core.take_notes()  # about the training data
    tested = outcomes.measure(core, request.source, training.is_seen)
    measured = core.reduction.report
    contents = contents._replace(notes=core.take_notes())
    if measured is not None:
        bins = measured.sums.bins if isinstance(measured, LabelReport) else measured.bins
        contents = contents._replace(calibration=bins.reshape(3, TENTHS, -1).sum(axis=2))
    if isinstance(measured, LabelReport):
        return contents._replace(measures=measured)
    assert tested is not None  # the labels are no lists
    figures = {} if measured is None else measured.figures()
    return _with_errors(contents, learner, tested, known or outcomes.of_test(tested), figures)


def _class_texts(path: str) -> dict[int, str]:
    """Return the text of each class in a file whose lines are a label, a tab and a text."""
    try:
        lines = streams.read_file(path, CURE).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is no UTF-8; give a text file with the encoding UTF-8") from None
    texts: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or not LABEL.fullmatch(label) or not text.strip():
            raise DataError(
                f"{path}:{number}: the line is {short_repr(line)}; it has to be the label of a class, a tab and a text"
            )
        if int(label) in texts:
            raise DataError(f"{path}:{number}: label {int(label)} has the text {short_repr(texts[int(label)])} already")
        texts[int(label)] = text.strip()
    if not texts:
        raise DataError(f"{path}: the file is empty; its lines have to be the label of a class, a tab and a text")
    return texts


def _with_errors(
    contents: ReportContents,
    learner: Learner,
    tested: ModelOutcomes,
    known: ClassFrequencies,
    figures: dict[str, float],
) -> ReportContents:
    """Return contents with the errors; `figures` are those of the learner's report."""
    request, config, reduction = contents.request, learner.core.config, learner.core.reduction
    weight = float(tested.weight.sum())
    bins = failing.bins(tested, known)
    setting = failing.ReportSetting(
        bins=bins if known.is_training else [],
        features=float(np.average(tested.features, weights=tested.weight)),
        is_online=not config.reduction.learns_at_end,
        name=contents.name,
    )
    worst = failing.worst(tested, known, request.top, request.least, setting)
    causes = failing.causes(tested, known)
    tables = described(config.reduction, "word_tables", reduction, {})
    numbers = [one.sample[:LINES_OF_CLASS].tolist() for one in (*worst.by_errors, *worst.by_rate)]
    chosen, explained = {number for own in numbers for number in own}, {own[0] for own in numbers if own}
    in_list = (tested.place != NOT_KNOWN).all()
    return contents._replace(
        errors=Errors(
            examples=len(tested.weight),
            weight=weight,
            classes=len(np.unique(tested.label)),
            error=float(tested.weight[tested.wrong].sum()) / weight,
            list_error=figures.get("top_k_error") if in_list else None,
            log_loss=figures.get("log_loss"),
            calibration_error=calibration_error(contents.calibration),
            causes=causes,
            advice=failing.overall(tables, contents.options) if causes else [],
            classes_by_errors=worst.by_errors,
            classes_by_rate=worst.by_rate,
            pairs=failing.confused_pairs(tested, PAIRS),
            counted_in=known.source,
            bins=bins,
        ),
        more=worst.more,
        lines=_lines(learner, contents, tested, chosen, explained),
        without_probability=int(figures.get("labels_without_probability", 0)),
    )


# -- examples


def _lines(
    learner: Learner,
    contents: ReportContents,
    tested: ModelOutcomes,
    chosen: Collection[int],
    explained: Collection[int],
) -> dict[int, Shown]:
    """Read the data once more, and return the chosen examples by their number; the prediction of some is explained."""
    source, numbers = contents.request.source, np.array(sorted(chosen), np.int64)
    shown, seen, wanted = dict[int, Shown](), 0, outcomes.wanted(learner.core)
    for path, batch in files.batches(learner.core, source):
        here = numbers[(numbers >= seen) & (numbers < seen + batch.n)]
        for number in here.tolist():
            row = np.array([number - seen])
            place = f"{path if len(source.data) > 1 else os.path.basename(path)}:{int(batch.line[row[0]])}"
            own = batch_ops.pick([(batch, row)], lines=True)
            text = own.text.tobytes().decode("utf-8", "surrogateescape").rstrip("\r\n")
            (task,) = learner.core.predict([own], wanted)
            lists, at = task.class_lists, int(np.searchsorted(tested.row, number))
            pairs = [] if lists is None else zip(lists.labels.tolist(), lists.scores.tolist(), strict=True)
            shown[number] = Shown(
                place=place,
                text=text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " …",
                label=int(tested.label[at]),
                answer=int(tested.answer[at]),
                answer_probability=float(tested.answer_probability[at]),
                listed=[(label, float(p)) for label, p in pairs if label > 0],
                reasons=_reasons(learner, own, contents.name) if number in explained else [],
            )
        seen += batch.n
        if len(shown) == len(numbers):
            break
    if len(shown) < len(numbers):
        raise DataError(f"{' '.join(source.data)}: the data have changed while the report was made; make it again")
    return shown


def _reasons(learner: Learner, batch: Batch, name: Callable[[int], str]) -> list[Reason]:
    """Return what the scores of the answer and of the label of the only example of a batch are sums of."""
    (explanation,) = results.explanations(learner.core, [batch], batch, 1, name=name)
    of_class = [{share.name: share.share for share in one.shares} for one in explanation.classes]
    rather = dict(of_class[0]) if of_class else {}
    for feature, share in of_class[1].items() if len(of_class) > 1 else ():
        rather[feature] = rather.get(feature, 0.0) - share
    instead = sorted(((feature, share) for feature, share in rather.items() if share > 0), key=lambda pair: -pair[1])
    return [
        Reason(str(one.label), one.score, list(shares.items())[:SHARES], [] if number else instead[:SHARES])
        for number, (one, shares) in enumerate(zip(explanation.classes, of_class, strict=True))
    ]


# -- JSON


def written(contents: ReportContents) -> bytes:
    """Return the report as the bytes of a JSON object; numbers that are not known are `null`."""
    test = None if contents.errors is None else _json(contents.errors, contents.name)
    if contents.measures is not None:
        header, *rows = by_class.label_rows(contents.measures, contents.name)
        test = {
            "measures": contents.measures.figures(),
            "labels_by_errors": [
                {
                    header[0]: row[0],
                    **{name: float(text) if text else None for name, text in zip(header[1:], row[1:], strict=True)},
                }
                for row in rows[: contents.request.top]
            ],
        }
    result = {
        "schema": SCHEMA,
        "model": contents.request.model,
        "data": list(contents.request.source.data),
        "reduction": contents.reduction,
        "learned": contents.learned,
        "classes": contents.classes,
        "model_bytes": contents.model_bytes,
        "training_error": contents.training_error,
        "test": test,
    }
    return (json.dumps(summary.finite(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )


def _json(value: Any, name: Callable[[int], str]) -> Any:
    """Return a record as JSON values: classes by their names, and without the examples."""
    if isinstance(value, list):
        return [_json(item, name) for item in value]
    if not hasattr(value, "_asdict"):
        return value
    known = value._asdict()
    known.pop("sample", None)
    return {
        KEYS.get(key, key): name(item) if key in ("label", "answer") else _json(item, name)
        for key, item in known.items()
    }
