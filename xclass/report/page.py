"""Write the contents of a report as an HTML page with figures.

The page has its head, the key figures, the sections about the errors on the test data, and those about the model.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ..api import configuration
from ..array_types import Float64s
from ..options.declare import options_of
from ..reductions.core.calibration import calibration_error
from ..reductions.core.label_report import LabelReport
from ..run.results import by_class
from . import failing, figures, markup, outcomes
from .contents import TENTHS, Errors, Reason, ReportContents, Shown
from .failing import FailingClass
from .markup import Html, clipped, element, escaped
from .outcomes import LISTED

Section = tuple[str, str, Html]  # id, heading and contents
HEADER = (
    "class", "errors", "test examples", "error", "training examples", "most often taken for", "most frequent reason",
)  # fmt: skip
WEIGHT_NOTE = "Numbers of examples are sums of their weights."
MEANINGS = {  # name of a share that is not one of a feature -> what it is
    "(trees)": "how probable the class is for the trees",
    "(index)": "whether the index of features has proposed the class, and how much all features together speak for it",
    "(path)": "what the way through the tree adds",
    "(scorer)": "a number that is added for each class",
    "Constant": "the feature that every example has",
    "intercept": "a number that is added for each class",
}
SEPARATOR = "^"  # between a namespace and a feature
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write(contents: ReportContents) -> Iterator[bytes]:
    """Yield the page piece by piece."""
    full_name = contents.name
    contents = contents._replace(name=lambda label: clipped(full_name(label)))
    sections = list(_sections(contents))
    title = f"Report on {os.path.basename(contents.request.model)}"
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in sections]
    head = [
        Html('<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<link rel="icon" href="data:,">'),
        element("title", title),
        Html(f"<style>\n{_file('page.css')}</style>\n</head>\n<body>"),
        element("a", "Skip to the report", href="#main", class_="skip"),
    ]
    yield _encoded(*head)
    yield _encoded(
        element(
            "header",
            element("h1", title),
            element("p", _lead(contents), class_="lead"),
            element("nav", element("ul", *links), aria_label="Sections"),
        ),
        Html('<main id="main" tabindex="-1">'),
        _tiles(contents),
    )
    for name, heading, body in sections:
        yield _encoded(element("section", element("h2", heading), body, id=name))
    made = f"Made by xclass {contents.versions['xclass']}. Nothing in this file is loaded from elsewhere."
    yield _encoded(
        Html("</main>"), element("footer", made), Html(f"<script>\n{_file('page.js')}</script>\n</body>\n</html>")
    )  # fmt: skip


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _encoded(*pieces: Html) -> bytes:
    return (markup.joined(*pieces) + "\n").encode("utf-8")


def _lead(contents: ReportContents) -> str:
    text = (
        f"A model of --{contents.reduction} that has learned {markup.number(contents.learned)} examples of "
        f"{'' if contents.counted else 'at most '}{_classes(contents.classes, contents)}"
    )
    if contents.errors is None and contents.measures is None:
        return f"{text}. With labelled data (-d), the report shows the errors, too."
    return f"{text}, tested on {' and '.join(contents.request.source.data)}."


def _classes(count: int, contents: ReportContents) -> str:
    words = ("label", "labels") if contents.has_lists else ("class", "classes")
    return f"{count:,} {words[count != 1]}"


def _tiles(contents: ReportContents) -> Html:
    tiles: list[tuple[str, str, str]] = []
    errors = contents.errors
    if errors is not None:
        tiles.append((
            "Test error", markup.percent(errors.error),
            f"{markup.number(errors.examples)} examples, {_classes(errors.classes, contents)}",
        ))  # fmt: skip
        if errors.list_error is not None:
            tiles.append((f"Outside the first {LISTED}", markup.percent(errors.list_error), "of the test examples"))
        if errors.calibration_error is not None:
            tiles.append(("Calibration error", f"{errors.calibration_error:.3f}", "0 is ideal"))
        if errors.log_loss is not None:
            left_out = (
                f"without {contents.without_probability:,} new labels" if contents.without_probability else "in nats"
            )
            tiles.append(("Log loss", f"{errors.log_loss:.3f}", left_out))
    if contents.measures is not None:
        known = contents.measures.figures()
        for name, words in (("precision_at_1", "Precision at 1"), ("psp_at_5", "PSP at 5"), ("micro_f1", "Micro F1")):
            tiles.append((words, markup.percent(known[name]), "of the test data"))
    if contents.training_error is not None:
        tiles.append(
            ("Error while learning", markup.percent(contents.training_error), "each example before it was learned")
        )
    tiles.append(("Model file", f"{contents.model_bytes / 1e6:,.1f} MB", f"{contents.learned:,} examples learned"))
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, " ", element("small", note)))
            for name, value, note in tiles
        ),
        class_="tiles",
        aria_label="Key figures",
    )


def _sections(contents: ReportContents) -> Iterator[Section]:
    if contents.errors is not None:
        yield from _error_sections(contents, contents.errors)
    if contents.measures is not None:
        yield from _list_sections(contents, contents.measures)
    yield "options", "Options and versions", _options(contents)


def _options(contents: ReportContents) -> Html:
    declared = {
        name: one for group in configuration.option_groups().values() for name, one in options_of(group).items()
    }
    changed: list[list[str]] = []
    others: list[list[str]] = []
    for name, value in contents.options.items():
        default = declared[name].default if name in declared else None
        row = [declared[name].flags[0] if name in declared else f"--{name}", _value(value), _value(default)]
        (others if value == default or value in (None, False, []) else changed).append(row)
    header = ["option", "value", "default of most reductions"]
    files = [
        ["model", contents.request.model],
        ["test data", ", ".join(contents.request.source.data) or "–"],
        ["training data", ", ".join(contents.request.training) or "–"],
        *contents.versions.items(),
        ["matplotlib", figures.version()],
    ]
    return markup.joined(
        markup.table("Options that differ from the defaults of most reductions", header, changed, wide=(1,)),
        markup.details("All other options", markup.table("Other options", header, others)),
        markup.table("Files and versions", ["what", "value"], files, wide=(1,)),
    )


def _value(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- errors


def _error_sections(contents: ReportContents, errors: Errors) -> Iterator[Section]:
    """Yield the sections about the errors of a model that learns one class an example."""
    weights = "" if errors.weight == errors.examples else element("p", WEIGHT_NOTE, class_="note")
    yield (
        "causes",
        "Where the errors come from, and what would help",
        markup.joined(weights, _causes(errors)),
    )
    yield "failing", "Which classes fail, and why", _failing(contents, errors)
    yield "frequency", "Error by class frequency", _frequency(errors)
    yield "pairs", "Most confused pairs", _pairs(contents, errors)
    yield "calibration", "Calibration", _calibration(contents.calibration)


def _causes(errors: Errors) -> Html:
    if not errors.causes:
        return element("p", "There are no errors.")
    order = [*failing.CAUSES]
    rows = [
        [one.cause, markup.number(one.errors), markup.bar(one.errors / one.of), one.text]
        for one in sorted(errors.causes, key=lambda one: order.index(one.cause))
    ]
    advice = [
        *(f"{markup.percent(one.errors / one.of)} of the errors, {one.cause}: {one.advice}" for one in errors.causes),
        *errors.advice,
    ]
    return markup.joined(
        markup.table("Errors by what went wrong first", ["cause", "errors", "share", "meaning"], rows, (1,), (3,)),
        element("p", "What would help, by its share of the errors:"),
        element("ol", *(element("li", markup.with_options(text)) for text in advice)),
    )


def _frequency(errors: Errors) -> Html:
    sources = {
        outcomes.TRAINING: "training examples of the class, counted in the training data",
        outcomes.MODEL: "training examples of the class, as the model has counted them",
        outcomes.TEST: "test examples of the class. The model does not say how often it has seen a class; give the "
        "training data by --train",
    }
    axis = f"{'test' if errors.counted_in == outcomes.TEST else 'training'} examples of the class"
    rows = [
        [
            one.text, markup.number(one.classes), markup.number(one.examples), markup.number(one.errors),
            markup.percent(one.error), markup.percent(one.in_list / one.examples),
        ]
        for one in errors.bins
    ]  # fmt: skip
    header = ["examples", "classes tested", "test examples", "errors", "error", f"among the first {LISTED}"]
    return markup.joined(
        element("p", markup.with_options(f"Classes are grouped by the number of {sources[errors.counted_in]}.")),
        markup.beside(
            figures.error_by_frequency(errors.bins, axis),
            markup.table("Error by class frequency", header, rows, numbers=range(1, 6)),
        ),
    )


def _pairs(contents: ReportContents, errors: Errors) -> Html:
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


def _calibration(bins: Float64s) -> Html:
    error = calibration_error(bins)
    if error is None:
        return element("p", "This reduction gives no probabilities.")
    chosen = np.flatnonzero(bins[0])
    weight = bins[0, chosen]
    forecast, observed = bins[1:, chosen] / weight
    over = float((weight * (forecast - observed)).sum() / weight.sum())
    tendency = "too sure" if over > 0.02 else "not sure enough" if over < -0.02 else "about right"
    rows = [
        [f"{j / TENTHS:.1f} to {(j + 1) / TENTHS:.1f}", markup.number(w), f"{mean:.3f}", f"{right:.3f}"]
        for j, w, mean, right in zip(chosen.tolist(), weight.tolist(), forecast, observed, strict=True)
    ]
    header = ["probability", "examples", "mean probability", "share right"]
    return markup.joined(
        element(
            "p",
            f"If calibration were ideal, answers with a probability of 0.7 would be right in 70 % of the cases. The "
            f"expected calibration error is {error:.4f}; on the whole the answers are {tendency}. In the "
            "figure, “ideal” is the line on which both shares are equal, and bars show the numbers of examples.",
        ),
        markup.beside(
            figures.calibration((chosen + 0.5) / TENTHS, weight, forecast, observed),
            markup.table("Calibration", header, rows, numbers=(1, 2, 3)),
        ),
    )


def _list_sections(contents: ReportContents, report: LabelReport) -> Iterator[Section]:
    """Yield the sections about lists of labels."""
    known = report.figures()
    names = ("precision", "recall", "ndcg", "psp", "psndcg", "coverage")
    rows = [[name, *(markup.percent(known[f"{name}_at_{k}"]) for k in report.place)] for name in names]
    text = (
        "The best labels of each example, compared with its own: what share of them is right (precision), what share "
        "of its labels is among them (recall), both by place (nDCG), with rare labels counting more (psp, psndcg), and "
        "what share of all labels is found for some example (coverage). The labels above the threshold have a micro F1 "
        f"of {markup.percent(known['micro_f1'])} and a macro F1 of {markup.percent(known['macro_f1'])}; "
        f"{known['hamming_loss']:.3f} labels of an example are missing or too many."
    )
    left_out = (
        "Causes, class frequencies, confused pairs and single examples are shown only for models that learn one label "
        "an example."
    )
    yield (
        "measures",
        "Measures of the test data",
        markup.joined(
            element("p", text),
            markup.table("Measures", ["measure", *(f"at {k}" for k in report.place)], rows, range(1, len(rows[0]))),
            element("p", left_out, class_="note"),
        ),
    )
    header, *labels = itertools.islice(by_class.label_rows(report, contents.name), contents.request.top + 1)
    text = (
        "An error is an example that has the label without getting it, or gets it without having it; the last columns "
        "say how often its rank is so good."
    )
    heading = "Labels with the most errors"
    yield (
        "labels",
        heading,
        markup.joined(element("p", text), markup.table(heading, header, labels, range(1, len(header)))),
    )
    yield "calibration", "Calibration of the five best labels", _calibration(contents.calibration)


# -- classes that fail


def _failing(contents: ReportContents, errors: Errors) -> Html:
    least, by_errors = contents.request.least, errors.classes_by_errors
    if not by_errors:
        return element("p", "No test example was predicted wrongly.")
    cards = {one.label: one for one in [*by_errors, *errors.classes_by_rate]}
    place = {label: at for at, label in enumerate(cards, 1)}
    share = sum(one.errors for one in by_errors) / (errors.error * errors.weight)
    intro = element(
        "p",
        f"The first table has the {'class' if len(by_errors) == 1 else f'{len(by_errors)} classes'} with the most "
        f"errors, together {markup.percent(share)} of all errors. The second table has classes of "
        "which the largest share is wrong. The most frequent reason is the one that applies to most errors of the "
        "class; where it applies to fewer than half of them, it says so. Below the tables, each class has a box that "
        "opens, with its reasons, what to try, and wrong lines. Advice is worth a try, not a promise: "
        "train again and compare both models, class by class, by ",
        element("code", "xclass compare FIRST SECOND -d FILE"),
        " with files of ",
        element("code", "-p"),
        ".",
    )
    few = f"No class with an error has {least:,} test examples or more; --min_examples sets this number."
    caption = f"Classes with the highest error, of those with at least {least:,} test examples"
    by_rate = (
        _table(caption, errors.classes_by_rate, place, contents)
        if errors.classes_by_rate
        else element("p", markup.with_options(few))
    )
    reasons = [reason for one in cards.values() for shown in _shown(one, contents) for reason in shown.reasons]
    return markup.joined(
        intro,
        _table("Classes with the most errors", by_errors, place, contents),
        _more(contents.more[0], f"{markup.number(by_errors[-1].errors)} errors"),
        by_rate,
        _more(contents.more[1], "the same error as the last one"),
        _legend(reasons),
        *(_class(one, place[one.label], contents) for one in cards.values()),
    )


def _legend(reasons: Iterable[Reason]) -> Html:
    """Return a list that explains the words which occur in the shares of these reasons, empty if there are none."""
    names = dict.fromkeys(name for reason in reasons for name, _ in [*reason.shares, *reason.instead])
    if not names:
        return Html("")
    entries = {
        "+ and −": "what speaks for the class and against it; the score of a class is the sum of its shares, of which "
        "the largest are listed"
    }
    with_space = next((name for name in names if SEPARATOR in name.strip(SEPARATOR)), None)
    if with_space is not None:
        space, _, feature = with_space.partition(SEPARATOR)
        entries[with_space] = f"the feature {feature} of the namespace {space}"
    entries |= {name: meaning for name, meaning in MEANINGS.items() if name in names}
    listed = element(
        "dl",
        *(element("div", element("dt", word), element("dd", f"{meaning}.")) for word, meaning in entries.items()),
        class_="legend",
    )
    return markup.details("What the words in the lists mean", listed)


def _more(classes: int, what: str) -> Html | str:
    """Return how many classes are not in a table although they fail as much as its last one."""
    return element("p", f"… and {classes:,} more with {what}.", class_="note") if classes else ""


def _table(caption: str, classes: Sequence[FailingClass], place: dict[int, int], contents: ReportContents) -> Html:
    """Return a table of classes; `place` has the number of the card of each."""
    name = contents.name
    rows = [
        [
            element("a", name(one.label), href=f"#class-{place[one.label]}"),
            markup.number(one.errors),
            markup.number(one.examples),
            markup.bar(one.errors / one.examples),
            markup.number(one.training_examples),
            ", ".join(f"{name(wrong.answer)} ({markup.number(wrong.often)})" for wrong in one.taken_for),
            one.reasons[0].text,
        ]
        for one in classes
    ]
    return markup.table(caption, HEADER, rows, numbers=(1, 2, 4), wide=(6,))


def _class(one: FailingClass, at: int, contents: ReportContents) -> Html:
    name = contents.name(one.label)
    precision = f"precision {markup.percent(one.right_answers / one.answers)}" if one.answers else "never predicted"
    parts = [f"{markup.number(one.errors)} of {markup.number(one.examples)} test examples are wrong", precision]
    if one.training_examples is not None:
        parts.append(f"{markup.number(one.training_examples)} training examples")
    lines = _shown(one, contents)
    findings = [
        element("li", finding.text, " ", element("b", "Try: "), markup.with_options(finding.advice))
        for finding in one.reasons
    ]
    if lines and lines[0].reasons:
        findings.append(_surest(lines[0], contents))
    return markup.details(
        markup.joined(element("h3", f"Class {name}"), element("span", "; ".join(parts) + ".", class_="note")),
        element("ul", *findings, class_="findings"),
        markup.details(
            f"Wrong lines of class {name}, the surest answers first", *(_line(shown, contents) for shown in lines)
        ),
        class_="class",
        id=f"class-{at}",
    )


def _shown(one: FailingClass, contents: ReportContents) -> list[Shown]:
    return [contents.lines[number] for number in one.sample.tolist() if number in contents.lines]


def _surest(shown: Shown, contents: ReportContents) -> Html:
    """Return the list item about what has decided in the first wrong line."""
    answer = shown.reasons[0]
    right = shown.reasons[1].score if len(shown.reasons) > 1 else None
    other = "" if right is None else f" rather than {contents.name(shown.label)}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in answer.instead)
    if right is not None and answer.score is not None:
        shares += f"; the scores differ by {answer.score - right:.2f} over all features" if shares else ""
    p = shown.answer_probability
    sure = "" if math.isnan(p) else f" with probability {markup.probability(p)}"
    text = f"In {shown.place} the answer is {contents.name(shown.answer)}{sure}"
    return element("li", f"{text}. For it{other} speak: {shares}." if shares else f"{text}.")


def _line(shown: Shown, contents: ReportContents) -> Html:
    listed = ", ".join(f"{contents.name(label)} ({markup.probability(p)})" for label, p in shown.listed)
    probable = f"; most probable: {listed}" if listed else ""
    return markup.joined(
        element("p", f"{shown.place}, answer {contents.name(shown.answer)}{probable}"),
        element("code", shown.text, class_="line"),
        *(element("p", _reason(reason)) for reason in shown.reasons),
    )


def _reason(reason: Reason) -> Html:
    name = clipped(reason.name)
    if reason.score is None and not reason.shares:
        return escaped(f"Class {name} was not compared.")
    score = "" if reason.score is None else f" has the score {reason.score:.3g}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in reason.shares)
    return escaped(f"Class {name}{score}: {shares}" if shares else f"Class {name}{score}.")
