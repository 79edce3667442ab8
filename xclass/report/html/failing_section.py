"""Write the section of the page about the classes that fail most: their reasons, what to try, and wrong lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..contents import Contents, Errors, FailingClass
from ..examples import Listed, Reason, Shown
from ..failing import Failing
from . import legend, markup
from .markup import Html, element, escaped

Name = Callable[[int], str]
HEADER = (
    "class", "errors", "test examples", "error", "training examples", "most often taken for", "most frequent reason",
)  # fmt: skip


def failing(contents: Contents, errors: Errors) -> Html:
    name, least = contents.name, contents.request.least
    if not errors.by_errors:
        return element("p", "No test example was predicted wrongly.")
    cards = list({id(one): one for one in [*errors.by_errors, *errors.by_rate]}.values())
    place = {one.facts.label: at for at, one in enumerate(cards, 1)}
    share = sum(one.facts.errors for one in errors.by_errors) / (errors.error * errors.weight)
    intro = element(
        "p",
        f"The first table has the {_counted(len(errors.by_errors))} with the most errors, together "
        f"{markup.percent(share)} of all errors. The second table has classes of "
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
    by_rate = (
        _table(
            f"Classes with the highest error, of those with at least {least:,} test examples", errors.by_rate, place,
            name,
        )
        if errors.by_rate
        else element("p", markup.with_options(few))
    )  # fmt: skip
    return markup.joined(
        intro,
        _table("Classes with the most errors", errors.by_errors, place, name),
        _more(errors.more[0], f"{markup.number(errors.by_errors[-1].facts.errors)} errors"),
        by_rate,
        _more(errors.more[1], "the same error as the last one"),
        legend.of_shares(reason for one in cards for shown in one.lines for reason in shown.reasons),
        *(_class(one, at, name) for at, one in enumerate(cards, 1)),
    )


def _more(classes: int, what: str) -> Html | str:
    """Return how many classes are not in a table although they fail as much as its last one."""
    return element("p", f"… and {classes:,} more with {what}.", class_="note") if classes else ""


def _counted(classes: int) -> str:
    return "class" if classes == 1 else f"{classes} classes"


def _table(caption: str, classes: Sequence[FailingClass], place: dict[int, int], name: Name) -> Html:
    """Return a table of classes; `place` has the number of the card of each."""
    rows = [
        [
            element("a", name(one.facts.label), href=f"#class-{place[one.facts.label]}"),
            markup.number(one.facts.errors),
            markup.number(one.facts.examples),
            markup.bar(one.facts.errors / one.facts.examples),
            markup.number(one.facts.trained),
            _taken_for(one.facts, name),
            one.findings[0].reason,
        ]
        for one in classes
    ]
    return markup.table(caption, HEADER, rows, numbers=(1, 2, 4), wide=(6,))


def _taken_for(facts: Failing, name: Name) -> str:
    return ", ".join(f"{name(answer)} ({markup.number(count)})" for answer, count, _ in facts.confused)


def _class(one: FailingClass, at: int, name: Name) -> Html:
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
    return markup.details(
        markup.joined(
            element("h3", f"Class {name(facts.label)}"), element("span", "; ".join(parts) + ".", class_="note")
        ),
        element("ul", *findings, class_="findings"),
        markup.details(f"Wrong lines of class {name(facts.label)}, the surest answers first", *lines),
        class_="class",
        id=f"class-{at}",
    )


def _surest(shown: Shown, facts: Failing, name: Name) -> Html:
    """Return the list item about what has decided in the first wrong line."""
    answer = shown.reasons[0]
    right = shown.reasons[1].score if len(shown.reasons) > 1 else None
    other = "" if right is None else f" rather than {name(facts.label)}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in answer.instead)
    if right is not None and answer.score is not None:
        shares += f"; the scores differ by {answer.score - right:.2f} over all features" if shares else ""
    sure = (
        ""
        if math.isnan(shown.answer_probability)
        else f" with probability {markup.probability(shown.answer_probability)}"
    )
    text = f"In {shown.place} the answer is {name(shown.answer)}{sure}"
    return element("li", f"{text}. For it{other} speak: {shares}." if shares else f"{text}.")


def _line(shown: Shown, name: Name) -> Html:
    classes = listed(shown.listed, name)
    return markup.joined(
        element(
            "p", f"{shown.place}, answer {name(shown.answer)}" + (f"; most probable: {classes}" if classes else "")
        ),
        element("code", shown.text, class_="line"),
        *(element("p", _reason(reason, name)) for reason in shown.reasons),
    )


def listed(classes: Sequence[Listed], name: Name) -> str:
    return ", ".join(f"{name(one.label)} ({markup.probability(one.probability)})" for one in classes)


def _reason(reason: Reason, name: Name) -> Html:
    if reason.score is None and not reason.shares:
        return escaped(f"Class {name(reason.label)} was not compared.")
    score = "" if reason.score is None else f" has the score {reason.score:.3g}"
    shares = ", ".join(f"{feature} {share:+.2f}" for feature, share in reason.shares)
    return escaped(f"Class {name(reason.label)}{score}: {shares}" if shares else f"Class {name(reason.label)}{score}.")
