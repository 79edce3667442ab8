"""Write the sections of the page about the errors on the test data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ...reductions.core.label_report import LabelReport
from ...run.results import by_class
from .. import frequencies
from ..calibration import Calibration, of_sums
from ..contents import Contents, Errors
from ..examples import Shown
from ..outcomes import LISTED
from . import failing_section, figures, markup
from .markup import Html, element

SHORT_PLACE = 24  # characters that need no second line
WEIGHT_NOTE = "Numbers of examples are sums of their weights."


def causes(contents: Contents, errors: Errors) -> Html:
    total = errors.error * errors.weight
    if not errors.causes:
        return element("p", "There are no errors.")
    rows = [
        [cause.name, markup.number(cause.errors), markup.bar(cause.errors / total), cause.meaning]
        for cause in errors.causes
    ]
    texts = [
        remedy.text
        if remedy.cause is None
        else f"{markup.percent(remedy.cause.errors / total)} of the errors, {remedy.cause.name}: {remedy.text}"
        for remedy in contents.remedies
    ]
    table = markup.table(
        "Errors by what went wrong first", ["cause", "errors", "share", "meaning"], rows, (1,), (3,)
    )  # fmt: skip
    return markup.joined(
        table,
        element("p", "What would help, by its share of the errors:"),
        element("ol", *(element("li", markup.with_options(text)) for text in texts)),
    )


def frequency(errors: Errors) -> Html:
    sources = {
        frequencies.TRAINING: "training examples of the class, counted in the training data",
        frequencies.MODEL: "training examples of the class, as the model has counted them",
        frequencies.TEST: "test examples of the class. The model does not say how often it has seen a class; give the "
        "training data by --train",
    }
    axis = "test examples of the class" if errors.source == frequencies.TEST else "training examples of the class"
    rows = [
        [
            one.text, markup.number(one.classes), markup.number(one.examples), markup.number(one.errors),
            markup.percent(one.error),
            markup.percent(None if math.isnan(one.in_list) else one.in_list / one.examples),
        ]
        for one in errors.bins
    ]  # fmt: skip
    header = ["examples", "classes tested", "test examples", "errors", "error", f"among the first {LISTED}"]
    return markup.joined(
        element("p", markup.with_options(f"Classes are grouped by the number of {sources[errors.source]}.")),
        markup.beside(
            figures.error_by_frequency(errors.bins, axis),
            markup.table("Error by class frequency", header, rows, numbers=range(1, 6)),
        ),
    )


def pairs(contents: Contents, errors: Errors) -> Html:
    if not errors.pairs:
        return element("p", "No wrong answer was given.")
    rows = [
        [
            contents.name(one.label), contents.name(one.answer), markup.number(one.often),
            markup.bar(one.often / one.examples), markup.number(one.reverse),
        ]
        for one in errors.pairs
    ]  # fmt: skip
    header = ["class", "answer", "how often", "share of the class", "the other way round"]
    note = "Two classes that are confused both ways have nearly the same features."
    return markup.joined(element("p", note), markup.table("Most confused pairs", header, rows, numbers=(2, 4)))


def calibration(measured: Calibration | None) -> Html:
    if measured is None:
        return element("p", "This reduction gives no probabilities.")
    over = sum(one.weight * (one.forecast - one.observed) for one in measured.bins) / sum(
        one.weight for one in measured.bins
    )
    tendency = "too sure" if over > 0.02 else "not sure enough" if over < -0.02 else "about right"
    rows = [
        [f"{one.low:.1f} to {one.high:.1f}", markup.number(one.weight), f"{one.forecast:.3f}", f"{one.observed:.3f}"]
        for one in measured.bins
    ]
    header = ["probability", "examples", "mean probability", "share right"]
    return markup.joined(
        element(
            "p",
            f"If calibration were ideal, answers with a probability of 0.7 would be right in 70 % of the cases. The "
            f"expected calibration error is {measured.error:.4f}; on the whole the answers are {tendency}. In the "
            "figure, “ideal” is the line on which both shares are equal, and bars show the numbers of examples.",
        ),
        markup.beside(figures.calibration(measured), markup.table("Calibration", header, rows, numbers=(1, 2, 3))),
    )


def uncertain(contents: Contents, errors: Errors) -> Html:
    if not errors.uncertain:
        return element("p", "This reduction gives no probabilities.")
    rows = [
        [
            _place(shown), markup.probability(shown.answer_probability),
            failing_section.listed(shown.listed[:3], contents.name),
            contents.name(shown.label), element("code", shown.text),
        ]
        for shown in errors.uncertain
    ]  # fmt: skip
    header = ["line", "probability of the answer", "most probable classes", "label", "text"]
    return markup.joined(
        element("p", "The answers to these examples have the lowest probabilities. Such lines are worth a label most."),
        markup.table("Most uncertain examples", header, rows, numbers=(1,), wide=(4,)),
    )


def _place(shown: Shown) -> Html:
    return element("span", shown.place, class_="place" if len(shown.place) <= SHORT_PLACE else None)


def sections(contents: Contents, errors: Errors) -> Sequence[tuple[str, str, Html]]:
    """Return the id, the heading and the contents of each section."""
    weights = "" if errors.weight == errors.examples else element("p", WEIGHT_NOTE, class_="note")
    return (
        (
            "causes",
            "Where the errors come from, and what would help",
            markup.joined(weights, causes(contents, errors)),
        ),
        ("failing", "Which classes fail, and why", failing_section.failing(contents, errors)),
        ("frequency", "Error by class frequency", frequency(errors)),
        ("pairs", "Most confused pairs", pairs(contents, errors)),
        ("calibration", "Calibration", calibration(errors.calibration)),
        ("uncertain", "Most uncertain examples", uncertain(contents, errors)),
    )


def of_lists(contents: Contents, report: LabelReport) -> Sequence[tuple[str, str, Html]]:
    """Return the id, the heading and the contents of each section about lists of labels."""
    figures = report.figures()
    names = ("precision", "recall", "ndcg", "psp", "psndcg", "coverage")
    rows = [[name, *(markup.percent(figures[f"{name}_at_{k}"]) for k in report.place)] for name in names]
    text = (
        "The best labels of each example, compared with its own: what share of them is right (precision), what share "
        "of its labels is among them (recall), both by place (nDCG), with rare labels counting more (psp, psndcg), and "
        "what share of all labels is found for some example (coverage). The labels above the threshold have a micro F1 "
        f"of {markup.percent(figures['micro_f1'])} and a macro F1 of {markup.percent(figures['macro_f1'])}; "
        f"{figures['hamming_loss']:.3f} labels of an example are missing or too many."
    )
    left_out = (
        "Causes, class frequencies, confused pairs and single examples are shown only for models that learn one label "
        "an example."
    )
    header, *labels = itertools.islice(by_class.label_rows(report, contents.name), contents.request.top + 1)
    return (
        (
            "measures",
            "Measures of the test data",
            markup.joined(
                element("p", text),
                markup.table("Measures", ["measure", *(f"at {k}" for k in report.place)], rows, range(1, len(rows[0]))),
                element("p", left_out, class_="note"),
            ),
        ),
        (
            "labels",
            "Labels with the most errors",
            markup.joined(
                element("p", "An error is an example that has the label without getting it, or gets it without having "
                             "it; the last columns say how often its rank is so good."),
                markup.table("Labels with the most errors", header, labels, range(1, len(header))),
            ),
        ),
        ("calibration", "Calibration of the five best labels", calibration(of_sums(report.sums.bins))),
    )  # fmt: skip
