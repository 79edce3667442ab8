"""Write numbers as text, and pieces of HTML; every text is escaped here, because names and lines come from files."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

from ..system.printable import printable

MOST_OF_NAME = 60  # characters of a name of a class on the page; the JSON file has all
OPTION = re.compile(r"(?<![\w-])(--?[a-z]\w*(?: \d+)?)")
MOST_COLUMNS = 5  # of a table that stays a table on a phone
UNBROKEN = 24  # letters of a word in a table up to which it is not broken over lines
TAG = re.compile(r"<[^>]*>")


def clipped(name: str) -> str:
    """Return the name of a class, shortened to MOST_OF_NAME characters."""
    return name if len(name) <= MOST_OF_NAME else name[: MOST_OF_NAME - 1].rstrip() + "…"


def percent(share: float | None) -> str:
    """Return a share as text: `12.3 %` with a space that does not break, or a dash if it is not known."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def number(value: float | None) -> str:
    """Return a number of examples as text, or a dash if it is not known."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def counted(value: float, word: str) -> str:
    """Return a number with a word, which is in the plural unless the number is 1."""
    return f"{number(value)} {word}" if value == 1 else f"{number(value)} {word}s"


class Html(str):
    """Mark text that is HTML already, so that it is not escaped."""


def escaped(text: object) -> Html:
    """Return any text as HTML; characters that are not printable are shown as escapes."""
    return text if isinstance(text, Html) else Html(html.escape(printable(str(text))))


def with_options(text: str) -> Html:
    """Return a sentence as HTML, in which options of the command are code that is not broken over lines."""
    pieces = OPTION.split(text)  # every second piece is an option
    return Html(
        "".join(element("code", piece, class_="place") if i % 2 else escaped(piece) for i, piece in enumerate(pieces))
    )


def element(tag: str, *contents: object, **attributes: object) -> Html:
    """Return an element; contents that are not `Html` are escaped, and attributes that are None are left out.

    An underscore at the end of an attribute's name is dropped, and others become dashes: `class_`, `aria_label`.
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            words.append(f'{name.rstrip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"')
    return Html(f"<{' '.join(words)}>{''.join(map(escaped, contents))}</{tag}>")


def joined(*parts: object) -> Html:
    return Html("\n".join(escaped(part) for part in parts if part != ""))


def table(
    caption: str, header: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = (),
    wide: Sequence[int] = (),
) -> Html:  # fmt: skip
    """Return a table whose first column has the names of the rows.

    Parameters
    ----------
    caption : title, which a screen reader says first
    numbers : columns that are aligned to the right
    wide : columns of running text

    A table of few columns, all of numbers, stays a table on a phone; in others each row becomes a list there.
    """

    def kind(j: int) -> str | None:
        return "number" if j in numbers else "wide" if j in wide else None

    rows = list(rows)

    def style(j: int) -> str | None:
        words = [word for row in rows for word in TAG.sub(" ", str(row[j])).split()]
        return f"min-width: {min(UNBROKEN, max(map(len, words)))}ch" if words and kind(j) is None else None

    head = [
        element("th", cell, role="columnheader", scope="col", class_=kind(j), style=style(j))
        for j, cell in enumerate(header)
    ]
    body = []
    for row in rows:
        # roles are repeated because a phone shows each row as a list, with the name of the column before the cell
        cells = [element("th", row[0], role="rowheader", scope="row", class_=kind(0))]
        for j, cell in enumerate(row[1:], 1):
            cells.append(element("td", element("div", cell), role="cell", class_=kind(j), data_name=header[j]))
        body.append(element("tr", *cells, role="row"))
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head, role="row"), role="rowgroup"),
        element("tbody", *body, role="rowgroup"),
        role="table",
        class_="figures" if len(numbers) == len(header) - 1 < MOST_COLUMNS else None,
    )


def details(
    summary: object, *contents: object, open: bool = False, class_: str | None = None, id: str | None = None
) -> Html:
    """Return contents that the reader can open."""
    inner = Html(f"<summary>{escaped(summary)}</summary>\n{joined(*contents)}")
    return element("details", inner, class_=class_, id=id, open="" if open else None)


def beside(figure: str, table: Html) -> Html:
    """Return a figure with its table, which stands beside it and is open where there is space."""
    text = details("The same as a table", table, open=True, class_="same")
    return element("div", element("figure", Html(figure)), text, class_="pair")


def bar(share: float) -> Html:
    """Return a bar whose length shows a share, before its text."""
    width = max(0.0, min(1.0, share)) * 100
    filled = Html(f'<span class="bar" aria-hidden="true"><span style="width:{width:.1f}%"></span></span>')
    return Html(f'<span class="share">{filled}{percent(share)}</span>')


def probability(p: float | None) -> str:
    """Return a probability as text, or a dash if it is not known."""
    return "–" if p is None or math.isnan(p) else f"{p:.3f}" if p >= 0.0005 or p == 0 else f"{p:.0e}"
