"""Write the page: its head, the key figures, the sections about errors, and those about the model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...api import configuration
from ...options.declare import options_of
from .. import occupancy
from ..contents import Contents
from ..outcomes import LISTED
from ..wording import clipped
from . import error_sections, figures, legend, markup
from .markup import Html, element

CURVE_ROWS = 12  # rows of the table below the learning curve
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def write(contents: Contents) -> Iterator[bytes]:
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


def _lead(contents: Contents) -> str:
    text = (
        f"A model of --{contents.reduction} that has learned {markup.number(contents.learned)} examples of "
        f"{'' if contents.counted else 'at most '}{contents.kind.counted(contents.classes)}"
    )
    if contents.errors is None and contents.measures is None:
        return f"{text}. With labelled data (-d), the report shows the errors, too."
    return f"{text}, tested on {' and '.join(contents.request.data)}."


def _tiles(contents: Contents) -> Html:
    tiles: list[tuple[str, str, str]] = []
    errors = contents.errors
    if errors is not None:
        tiles.append((
            "Test error", markup.percent(errors.error),
            f"{markup.number(errors.examples)} examples, {contents.kind.counted(errors.classes)}",
        ))  # fmt: skip
        if errors.list_error is not None:
            tiles.append((f"Outside the first {LISTED}", markup.percent(errors.list_error), "of the test examples"))
        if errors.calibration is not None:
            tiles.append(("Calibration error", f"{errors.calibration.error:.3f}", "0 is ideal"))
        if errors.log_loss is not None:
            left_out = f"without {errors.without_probability:,} new labels" if errors.without_probability else "in nats"
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


def _sections(contents: Contents) -> Iterator[tuple[str, str, Html]]:
    if contents.errors is not None:
        yield from error_sections.sections(contents, contents.errors)
    if contents.measures is not None:
        yield from error_sections.of_lists(contents, contents.measures)
    if contents.curve is not None:
        yield "curve", "Learning curve", _curve(contents)
    if contents.tables:
        yield "tables", "Weight tables", _tables(contents)
    yield "options", "Options and versions", _options(contents)


def _curve(contents: Contents) -> Html:
    curve = contents.curve
    assert curve is not None  # else there is no section
    text = (
        f"From {contents.request.curve}: each example was predicted before it was learned. “All so far” is the mean "
        "over all examples up to there, “since the row before” over those since the point before."
    )
    if any(value == value for value in curve.held_out):
        text += " “Held out” is the loss on the lines of the training data that are held out."
    due = curve.examples[-1] / 2.0 ** np.arange(CURVE_ROWS - 1, -1, -1)
    chosen = sorted({int(np.searchsorted(curve.examples, number)) for number in due if number >= 1})
    rows = [
        [markup.number(curve.examples[i]), markup.percent(curve.average[i]), markup.percent(curve.recent[i])]
        for i in chosen
    ]  # fmt: skip
    table = markup.table("Learning curve", ["examples", "all so far", "since the row before"], rows, numbers=(0, 1, 2))
    return markup.joined(element("p", markup.with_options(text)), markup.beside(figures.learning_curve(curve), table))


def _tables(contents: Contents) -> Html:
    tables = contents.tables
    lossy = any(one.lost is not None for one in tables)
    header = ["table", "in use", "size", "share", *(["found no place"] if lossy else [])]
    rows = [
        [
            one.name, markup.number(one.used), markup.number(one.size), markup.percent(one.share),
            *([markup.number(one.lost)] if lossy else []),
        ]
        for one in tables
    ]  # fmt: skip
    if lossy:
        larger = occupancy.larger_bits(contents.options["bits"], tables)
        text = (
            "A weight that finds its line of the table full takes the place of a small one, or is not stored. If many "
            f"weights found no place, train with larger tables (-b {larger})."
        )
    else:
        text = (
            "Features are hashed into the table: the share in use is the probability that a new feature shares its "
            "weight with another one. If it is above about a half, train with a larger table (-b)."
        )
    return markup.joined(
        element("p", markup.with_options(text)),
        legend.of_tables([one.name for one in tables]),
        markup.table("Weight tables", header, rows, numbers=range(1, len(header))),
    )


def _options(contents: Contents) -> Html:
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
        ["test data", ", ".join(contents.request.data) or "–"],
        ["training data", ", ".join(contents.request.training) or "–"],
        ["learning curve", contents.request.curve or "–"],
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
