"""Collect everything that the report shows, before any of it is drawn."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..api import configuration
from ..api.learner import Learner
from ..errors import DataError, ModelError, UsageError
from ..reductions.core.label_report import LabelReport
from ..run.results import summary
from ..system import processors, streams
from ..system.printable import short_repr
from ..text import reader
from . import advice, calibration, curve, examples, failing, frequencies, occupancy, outcomes, remedies
from .advice import Finding
from .calibration import Calibration
from .curve import Curve
from .examples import Shown
from .failing import Cause, Failing, Pair
from .frequencies import Bin, Frequencies
from .occupancy import Table
from .outcomes import NOT_KNOWN, Outcomes
from .remedies import Remedy

LINES_OF_CLASS = 3  # wrong lines that are shown for a class
PAIRS = 15
CURE = "give a file whose lines are a label, a tab and a text"
LABEL = re.compile(r"\s*[0-9]{1,18}\s*")  # in the file of --class_names


class Request(NamedTuple):
    """Hold what the user has asked for."""

    model: str  # path of the model file
    source: reader.Options  # test data, and how they are read
    training: tuple[str, ...]  # training data, which are read in the same way
    curve: str | None  # learning curve of the training run
    top: int  # number of classes in each list, and of examples of each kind
    least: int  # test examples of a class in the list of the highest errors
    texts: str | None = None  # file with the texts of classes

    @property
    def data(self) -> tuple[str, ...]:
        return self.source.data


class FailingClass(NamedTuple):
    """Hold a class with many errors, the findings about it, and some of its wrong lines."""

    facts: Failing
    findings: list[Finding]
    lines: list[Shown]


class Errors(NamedTuple):
    """Hold what the test data have shown."""

    examples: int
    weight: float
    error: float
    classes: int  # number of classes among the labels
    list_error: float | None  # share of the examples whose label is not among the first listed classes
    log_loss: float | None  # of the labels with a probability
    without_probability: int  # labels without a probability, which the log loss leaves out
    by_errors: list[FailingClass]  # with the most errors
    by_rate: list[FailingClass]  # with the highest error, among those with enough examples
    more: tuple[int, int]  # classes beyond these lists that fail as much as the last one
    causes: list[Cause]
    bins: list[Bin]
    source: str  # of the frequencies
    pairs: list[Pair]
    calibration: Calibration | None
    uncertain: list[Shown]


class Kind(NamedTuple):
    """Hold what the texts call one class and several."""

    one: str
    several: str

    def counted(self, count: int) -> str:
        return f"{count:,} {self.one if count == 1 else self.several}"


class Contents(NamedTuple):
    """Hold the contents of a report."""

    request: Request
    name: Callable[[int], str]  # text of a class
    kind: Kind  # what the texts call a class
    reduction: str
    learned: int  # examples learned
    classes: int
    counted: bool  # whether these classes were learned, and are not only as many as can be
    model_bytes: int
    training_error: float | None  # error of the predictions made before learning; None if not known
    errors: Errors | None  # None without test data, and for a model that learns lists of labels
    measures: LabelReport | None  # of test data with lists of labels
    curve: Curve | None
    tables: list[Table]
    remedies: list[Remedy]  # what would help over all; none without errors
    options: dict[str, Any]
    versions: dict[str, str]
    notes: list[str]  # messages about the test data


def collect(learner: Learner, request: Request) -> Contents:
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
    read_curve = None if request.curve is None else curve.read(request.curve)
    tested, measures, notes = None, None, list[str]()
    if lists and request.training:
        raise UsageError("--train has no effect: a model of lists of labels has counted its labels; leave it out")
    training = frequencies.of_training(core, replace(request.source, data=request.training))
    known = training.classes
    if request.data:
        core.take_notes()  # about the training data
        if lists:
            measures = outcomes.measure_lists(core, request.source)
        else:
            tested = outcomes.measure(core, request.source, training.is_seen)
        notes = core.take_notes()
        if known is None and tested is not None:
            known = frequencies.of_test(tested)

    def name(label: int) -> str:
        text = outcomes.name_of(core, label)
        return f"{text} {texts[label]}" if label in texts else text

    found_errors = None
    if tested is not None and known is not None:
        found_errors = _errors(learner, request, tested, known, name)
    classes = learner.classes
    number = classes if isinstance(classes, int) else len(classes or ())
    counted = known is not None and known.is_training
    if known is not None and counted:
        number = int(np.count_nonzero(known.examples))
    tables = occupancy.measure(core)
    options = {name: value for name, value in sorted(core.config.stored().items()) if name != "named_labels"}
    return Contents(
        request=request,
        name=name,
        kind=Kind("label", "labels") if lists else Kind("class", "classes"),
        reduction=configuration.chosen_name(core.config),
        learned=learner.examples,
        classes=number,
        counted=counted or not core.spec.classes,
        model_bytes=os.path.getsize(request.model),
        training_error=learner.average_loss,
        errors=found_errors,
        measures=measures,
        curve=read_curve,
        tables=tables,
        remedies=remedies.overall(found_errors.causes, tables, options) if found_errors is not None else [],
        options=options,
        versions={
            **summary.versions(), "machine": f"{summary.machine()}, {processors.count()} processors",
        },
        notes=notes,
    )  # fmt: skip


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


def _errors(
    learner: Learner, request: Request, tested: Outcomes, known: Frequencies, name: Callable[[int], str]
) -> Errors:
    bins = frequencies.bins(tested, known)
    setting = advice.Setting(
        bins=bins if known.is_training else [],
        features=float(tested.features.mean()),
        is_online=not learner.core.config.reduction.learns_at_end,
        name=name,
    )
    worst = failing.worst(tested, known, request.top, request.least)
    uncertain = examples.most_uncertain(tested, request.top)
    of_class = {facts.label: facts.sample[:LINES_OF_CLASS].tolist() for facts in worst.facts.values()}
    explained = {numbers[0] for numbers in of_class.values() if numbers}
    chosen = {*uncertain, *(number for numbers in of_class.values() for number in numbers)}
    shown = examples.read(learner, request.source, tested, chosen, explained)
    weight = tested.weight
    p = tested.label_probability
    has_p = ~np.isnan(p) & (weight > 0)
    log_loss = float(np.average(-np.log(np.maximum(p[has_p], 1e-300)), weights=weight[has_p])) if has_p.any() else None
    total = float(weight.sum())
    in_list = None if (tested.place == NOT_KNOWN).any() else float(weight[tested.place > 0].sum())
    cards = {
        label: FailingClass(facts, advice.findings(facts, setting), [shown[i] for i in of_class[label]])
        for label, facts in worst.facts.items()
    }
    return Errors(
        examples=len(weight),
        weight=total,
        error=float(weight[tested.wrong].sum()) / total,
        classes=len(np.unique(tested.label)),
        list_error=None if in_list is None else 1.0 - in_list / total,
        log_loss=log_loss,
        without_probability=int((np.isnan(p) & (weight > 0)).sum()) if log_loss is not None else 0,
        by_errors=[cards[label] for label in worst.by_errors],
        by_rate=[cards[label] for label in worst.by_rate],
        more=worst.more,
        causes=failing.causes(tested, known),
        bins=bins,
        source=known.source,
        pairs=failing.confused_pairs(tested, PAIRS),
        calibration=calibration.measure(tested),
        uncertain=[shown[i] for i in uncertain],
    )
