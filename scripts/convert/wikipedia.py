"""A dump of Wikipedia, or its beginning, -> the plain words of its articles, one article per line.

    python -m scripts.convert.wikipedia enwik9.zip articles.txt

What a reader would see remains, in lower case letters a to z: text of links, captions and names of categories; digits
are spelled out. Left out are redirections, markup, references, templates, tables, addresses and links to other
languages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.convert.source import lines
from scripts.lib.command_line import new_parser, run
from scripts.lib.processes import BenchError

BEGIN = re.compile(r"<text\b[^>]*?(/?)>")
REMOVED = re.compile(
    r"<!--.*?-->"
    r"|<(ref|math|gallery|timeline)\b[^>]*?/>"
    r"|<(ref|math|gallery|timeline)\b[^>]*>.*?</\2\s*>"
    r"|<[^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
BRACES = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\|).)*?\|\}", re.DOTALL)
LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
ADDRESS = re.compile(r"\[(?:https?|ftp)://[^\s\]]*([^\]]*)\]|\b(?:https?|ftp)://\S+")
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?|simple")
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGITS = {ord("0") + d: f" {name} " for d, name in enumerate(NAMES)}
WORD = re.compile(r"[a-z]+")


def link_text(match: re.Match) -> str:
    """Return what a reader sees of a link [[...]]."""
    target, *more = match[1].split("|")
    place, colon, name = target.partition(":")
    place = place.strip().lower()
    if colon and place in ("image", "file"):
        return more[-1] if more and not re.fullmatch(r"\s*(thumb|left|right|center|\d+px|frame)\s*", more[-1]) else ""
    if colon and place == "category":
        return name
    if colon and LANGUAGE.fullmatch(place) and not more:
        return ""
    return more[-1] if more else target


def plain(markup: str) -> str:
    """Return the words of an article's source, between single spaces."""
    text = REMOVED.sub(" ", html.unescape(markup))
    for pattern, replacement in ((BRACES, " "), (LINK, link_text)):
        count = 1
        while count:  # from the innermost out
            text, count = pattern.subn(replacement, text)
    text = ADDRESS.sub(lambda match: match[1] or " ", text)
    return " ".join(WORD.findall(html.unescape(text).lower().translate(DIGITS)))


def articles(path: Path) -> Iterator[str]:
    """Yield the source of every article of a dump that is no redirection; the last one may be cut short."""
    parts: list[str] | None = None
    for _, line in lines(path):
        text = line.decode("utf-8", "replace")
        if parts is None:
            opening = BEGIN.search(text)
            if not opening or opening[1]:
                continue
            parts, text = [], text[opening.end() :]
        before, end, _ = text.partition("</text>")
        parts.append(before)
        if end:
            if not parts[0].lstrip().lower().startswith("#redirect"):
                yield "\n".join(parts)
            parts = None
    if parts:
        yield "\n".join(parts)


def main() -> None:
    """Write the articles' words."""
    parser = new_parser(__doc__)
    parser.add_argument("dump", type=Path, metavar="DUMP", help="XML, plain or packed")
    parser.add_argument("out", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, metavar="N", help="first N articles")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    part = given.out.with_name(given.out.name + ".part")
    count = tokens = 0
    with open(part, "w", encoding="ascii", newline="\n") as file:
        for markup in articles(given.dump):
            if count == given.limit:
                break
            words = plain(markup)
            if words:
                file.write(words + "\n")
                count += 1
                tokens += words.count(" ") + 1
    if not count:
        raise BenchError(f"{given.dump}: no article (<text>...</text>) in it")
    part.replace(given.out)
    print(f"{count:,} articles, {tokens:,} words")


if __name__ == "__main__":
    run(main)
