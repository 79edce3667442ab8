"""Write the sections of the page about the errors on the test data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import frequencies, occupancy
from ..contents import Contents, Errors, FailingClass
from ..examples import REPEATS, Listed, Reason, Shown
from ..failing import Failing
from ..outcomes import LISTED
from . import figures, markup
from .markup import Html, element, escaped

Name = Callable[[int], str]
MOST_LOST = 0.5  # weights that found no place, as a share of those in use, above which a larger table is advised
SHORT_PLACE = 24  # characters that need no second line
WEIGHT_NOTE = "Numbers of examples are sums of their weights."


def failing(contents: Contents, errors: Errors) -> Html:
    """Return the section about the classes with the most errors."""
    name, worst = contents.name, errors.failing
    if not worst:
        return element("p", "No test example was predicted wrongly.")
    share = sum(one.facts.errors for one in worst) / (errors.error * errors.weight)
    intro = element(
        "p",
        f"These {len(worst)} classes have the most errors, together {markup.percent(share)} of all errors. Below the "
        "table, each has its reasons, what to try, and wrong lines. Advice is worth a try, not a promise: train again "
        "and compare the two models by ",
        element("code", "xclass compare"),
        ".",
    )
    header = ["class", "errors", "test examples", "error", "training examples", "most often taken for", "first reason"]
    rows = [
        [
            element("a", name(one.facts.label), href=f"#class-{at}"),
            markup.number(one.facts.errors),
            markup.number(one.facts.examples),
            markup.bar(one.facts.errors / one.facts.examples),
            markup.number(one.facts.trained),
            _taken_for(one.facts, name),
            one.findings[0].reason,
        ]
        for at, one in enumerate(worst, 1)
    ]
    table = markup.table("Classes with the most errors", header, rows, numbers=(1, 2, 4), wide=(6,))
    return markup.joined(intro, table, *(_class(one, at, name) for at, one in enumerate(worst, 1)))


def _taken_for(facts: Failing, name: Name) -> str:
    """Return the wrong answers of a class with their numbers."""
    return ", ".join(f"{name(answer)} ({markup.number(count)})" for answer, count, _ in facts.confused)


def _class(one: FailingClass, at: int, name: Name) -> Html:
    """Return the card of a class: reasons, advice and wrong lines."""
    facts = one.facts
    precision = facts.right / facts.answers if facts.answers else None
    parts = [
        f"{markup.number(facts.errors)} of {markup.number(facts.examples)} test examples are wrong",
        f"precision {markup.percent(precision)}" if precision is not None else "never predicted",
    ]
    if facts.trained is not None:
        parts.append(f"{markup.number(facts.trained)} training examples")
    findings = [
        element("li", finding.reason, " ", element("b", "Try: "), markup.with_options(finding.advice))
        for finding in one.findings
    ]  # fmt: skip
    if one.lines and one.lines[0].reasons:
        findings.append(_surest(one.lines[0], facts, name))
    lines = [_line(shown, name) for shown in one.lines]
    return element(
        "section",
        element("h3", f"Class {name(facts.label)}"),
        element("p", "; ".join(parts) + ".", class_="note"),
        element("ul", *findings, class_="findings"),
        markup.details(f"Wrong lines of class {name(facts.label)}, the surest answers first", *lines),
        class_="class",
        id=f"class-{at}",
    )


def _surest(shown: Shown, facts: Failing, name: Name) -> Html:
    """Return the list item about what has decided in the first wrong line."""
    answer = shown.reasons[0]
    other = "" if len(shown.reasons) < 2 or shown.reasons[1].score is None else f" rather than {name(facts.label)}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in answer.instead)
    sure = (
        ""
        if math.isnan(shown.answer_probability)
        else f" with probability {markup.probability(shown.answer_probability)}"
    )
    text = f"In {shown.place} the answer is {name(shown.answer)}{sure}"
    return element("li", f"{text}. For it{other} speak: {shares}." if shares else f"{text}.")


def _line(shown: Shown, name: Name) -> Html:
    """Return a wrong line with its most probable classes, and the reasons if they are known."""
    listed = _listed(shown.listed, name)
    return markup.joined(
        element("p", f"{shown.place}, answer {name(shown.answer)}" + (f"; most probable: {listed}" if listed else "")),
        element("code", shown.text, class_="line"),
        *(element("p", reason) for reason in map(_reason, shown.reasons)),
    )


def _listed(listed: Sequence[Listed], name: Name) -> str:
    """Return classes with their probabilities."""
    return ", ".join(f"{name(one.label)} ({markup.probability(one.probability)})" for one in listed)


def _reason(reason: Reason) -> Html:
    """Return what the score of a class is the sum of."""
    if reason.score is None and not reason.shares:
        return escaped(f"Class {reason.name} was not compared.")
    score = "" if reason.score is None else f" has the score {reason.score:.3g}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in reason.shares)
    return escaped(f"Class {reason.name}{score}: {shares}" if shares else f"Class {reason.name}{score}.")


def causes(contents: Contents, errors: Errors) -> Html:
    """Return the section that divides the errors by their causes."""
    total = errors.error * errors.weight
    if not errors.causes:
        return element("p", "There are no errors.")
    rows = [
        [cause.name, markup.number(cause.errors), markup.bar(cause.errors / total), cause.meaning]
        for cause in errors.causes
    ]
    table = markup.table(
        "Errors by what went wrong first", ["cause", "errors", "share", "meaning"], rows, (1,), (3,)
    )  # fmt: skip
    return markup.joined(
        table,
        element("p", "What would help, by its share of the errors:"),
        element("ol", *(element("li", markup.with_options(text)) for text in _remedies(contents, errors))),
    )


def _remedies(contents: Contents, errors: Errors) -> list[str]:
    """Return what would help overall, the remedy for the largest cause first."""
    total = errors.error * errors.weight
    texts = {
        "class never seen": "Add training examples of the classes that were never seen.",
        "not compared": "Add training examples, first of rare classes. Train with pairs of words as features "
        "(--ngram 2), from which more classes are proposed, or with another --index_candidates.",
        "close": f"Choose better among the first classes: try further passes (--passes 3 --holdout_off) and "
        f"other learning rates (-l). Where a person chooses, show the first {LISTED}.",
        "compared, not close": "Give the lines more features that tell the classes apart: pairs of words (--ngram 2), "
        "parts of words, or other columns of the source.",
        "not close": "Give the lines more features that tell the classes apart, such as pairs of words (--ngram 2).",
        "other class more probable": "Give the lines more features that tell the classes apart, or try another "
        "reduction (--multiclass has the fewest errors on most data).",
    }
    remedies = [
        (cause.errors, f"{markup.percent(cause.errors / total)} of the errors: {texts[cause.name]}")
        for cause in errors.causes
    ]
    remedies.sort(key=lambda entry: -entry[0])
    result = [text for _, text in remedies]
    full = [table for table in contents.tables if (table.lost or 0) > MOST_LOST * table.used]
    if full:
        lost = "; ".join(
            f"{table.name}: {markup.number(table.lost or 0)} weights found no place, "
            f"{markup.number(table.used)} are stored"
            for table in full
        )
        larger = occupancy.larger_bits(contents.options["bits"], full)
        result.append(f"The tables were too small ({lost}). Train with larger ones (-b {larger}).")
    return result


def frequency(errors: Errors) -> Html:
    """Return the section about the error by class frequency."""
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
    """Return the section about the most confused pairs."""
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


def calibration(errors: Errors) -> Html:
    """Return the section about the calibration of the probabilities."""
    measured = errors.calibration
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
            f"expected calibration error is {measured.error:.4f}; on the whole the answers are {tendency}.",
        ),
        markup.beside(figures.calibration(measured), markup.table("Calibration", header, rows, numbers=(1, 2, 3))),
    )


def slowest(contents: Contents, errors: Errors) -> Html:
    """Return the section about the slowest examples."""
    what = f"its features times the {errors.steps}" if errors.steps else "its number of features"
    rows = [
        [
            _place(shown), markup.number(shown.features), markup.number(shown.steps),
            f"{shown.microseconds:,.0f}", element("code", shown.text),
        ]
        for shown in errors.slowest
    ]  # fmt: skip
    header = ["line", "features", "nodes and classes", "microseconds alone", "text"]
    return markup.joined(
        element(
            "p",
            f"The time of an example grows with {what}, a count that does not depend on the machine. These examples "
            f"have the largest counts. The time is that of the fastest of {REPEATS} predictions of the example alone, "
            "on the machine that made the report, overhead of the call included.",
        ),
        markup.table("Slowest examples", header, rows, numbers=(1, 2, 3), wide=(4,)),
    )


def uncertain(contents: Contents, errors: Errors) -> Html:
    """Return the section about the most uncertain examples."""
    if not errors.uncertain:
        return element("p", "This reduction gives no probabilities.")
    rows = [
        [
            _place(shown), markup.probability(shown.answer_probability),
            _listed(shown.listed[:3], contents.name),
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
    """Return the file and line of an example, on one line unless it is long."""
    return element("span", shown.place, class_="place" if len(shown.place) <= SHORT_PLACE else None)


def sections(contents: Contents, errors: Errors) -> Sequence[tuple[str, str, Html]]:
    """Return the id, the heading and the contents of each section."""
    weights = "" if errors.weight == errors.examples else element("p", WEIGHT_NOTE, class_="note")
    return (
        ("failing", "Which classes fail, why, and what would help", markup.joined(weights, failing(contents, errors))),
        ("causes", "Where the errors come from", causes(contents, errors)),
        ("frequency", "Error by class frequency", frequency(errors)),
        ("pairs", "Most confused pairs", pairs(contents, errors)),
        ("calibration", "Calibration", calibration(errors)),
        ("uncertain", "Most uncertain examples", uncertain(contents, errors)),
        ("slowest", "Slowest examples", slowest(contents, errors)),
    )
