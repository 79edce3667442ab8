"""Build models and reports for the tests of this folder."""

import random
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from command import learn

CLASSES, RARE = 12, 3  # classes, and those among them that have one training example each
HOSTILE = '<b>"$x_^2$&amp;'  # name of a class that would break HTML, or formulas in figures


class Files(NamedTuple):
    """Hold the paths of a model and its data."""

    model: Path
    train: Path
    test: Path


def name(c: int) -> str:
    """Return the name of a class."""
    return HOSTILE if c == 1 else f"class{c}"


def line(rng: random.Random, c: int) -> str:
    """Return an example of a class: words of its own, and words that all classes have."""
    words = [f"w{c}_{rng.randrange(4)}" for _ in range(3)] + [f"all{rng.randrange(9)}" for _ in range(rng.randrange(5))]
    if c == 2:  # has nearly the words of class 3
        words = [f"w3_{rng.randrange(4)}" for _ in range(3)]
    return f"{name(c)} | {' '.join(words)}"


def write(folder: Path, *options: str, numbers: bool = False) -> Files:
    """Write data with rare, similar and unknown classes, and learn a model from them with these options."""
    rng = random.Random(7)
    files = Files(folder / "model.bin", folder / "train.vw", folder / "test.vw")
    train = [line(rng, c) for c in range(1, CLASSES - RARE + 1) for _ in range(30)]
    train += [line(rng, c) for c in range(CLASSES - RARE + 1, CLASSES + 1)]
    rng.shuffle(train)
    test = [line(rng, c) for c in range(1, CLASSES + 1) for _ in range(8)]
    if not numbers:
        test.append("unheard_of | <script>alert(1)</script> all1")
    texts = {files.train: train, files.test: test}
    for path, lines in texts.items():
        text = "\n".join(lines) + "\n"
        if numbers:
            text = text.replace(HOSTILE, "1").replace("class", "")
        path.write_text(text, encoding="utf-8")
    learn("-d", files.train, "-f", files.model, "-b", 16, "--quiet", *options)
    return files


class Elements(HTMLParser):
    """Collect the tags, ids and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.headings: list[str] = []
        self._open: list[str] = []
        self.unclosed: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data):
        self.texts.append(data)
        if self._open and self._open[-1] == "h2":
            self.headings.append(data)

    @property
    def text(self) -> str:
        """Return all text, with single spaces."""
        return " ".join(" ".join(self.texts).split())
