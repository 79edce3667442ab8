"""Numbers as text, read in every place of every format, against Python's `float` and NumPy's rounding to float32."""

from __future__ import annotations

import io
import random
import re
import string
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

from scripts.fuzzing.runs import ACCEPTED, Bench, Outcome, Part, wrong
from xclass.formats import detect
from xclass.text import numbers, parser, reader

NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PLACES = {  # place -> format, header, line with the number at %s
    "kernel": ("", "", ""),
    "value": ("vw", "", "1 | x:%s"),
    "namespace": ("vw", "", "1 |n:%s x"),
    "label": ("vw", "", "%s | x"),
    "weight": ("vw", "", "1 %s | x"),
    "initial": ("vw", "", "1 1 %s | x"),
    "libsvm": ("libsvm", "", "1 5:%s"),
    "libsvm label": ("libsvm", "", "%s 5:1"),
    "xmc": ("xmc", "{n} 9 9\n", "1 5:%s"),
    "csv": ("csv", "label,x\n", "1,%s"),
    "csv label": ("csv", "label,x\n", "%s,1"),
    "json": ("jsonl", "", '{"label": 1, "features": {"x": %s}}'),
    "json weight": ("jsonl", "", '{"label": 1, "weight": %s}'),
}
BATCH = 100  # texts of a case
# words that no place reads as a number, and VW text not as a word either
NO_NUMBERS = [
    "1e", "1e+", "1E-", ".", "-", "-.", "e5", "-e5", ".e1", "inf", "-inf", "Infinity", "nan", "-nan", "0x11",
    "0x1p3", "1x", "1_0", "1e5.0", "1.2.3", "1e1e1", "1f", "1d5", "1e+-5", "1-2", "12e0x1", "1.5e",
]  # fmt: skip


class Case(NamedTuple):
    """Texts, and the place where each is written."""

    place: str
    texts: tuple[str, ...]


def digits(rng: random.Random, most: int) -> str:
    """Return some digits."""
    return "".join(rng.choices(string.digits, k=rng.randint(1, most)))


def near_middle(rng: random.Random) -> str:
    """Return a number at, or very near, the middle of two neighbouring float32, where rounding is hardest."""
    low = np.uint32(rng.randrange(0x7F800000)).view(np.float32)
    with np.errstate(over="ignore"):
        high = np.nextafter(low, np.float32(np.inf))
    middle = (float(low) + (float(high) if np.isfinite(high) else 2.0**128)) / 2
    neighbour = float(np.nextafter(middle, rng.choice((0.0, np.inf))))
    with localcontext(prec=1000):
        number = rng.choice((Decimal(middle), Decimal(neighbour), (Decimal(middle) + Decimal(neighbour)) / 2))
        number += rng.choice((0, 0, 1, -1)) * number * Decimal(10) ** -rng.randrange(15, 400)
        shown = rng.choice((str(number), f"{number:f}", f"{number:.{rng.randrange(15, 60)}e}"))
    return rng.choice(("", "-")) + shown


def number_text(rng: random.Random) -> str:
    """Return a random number as text."""
    kind = rng.randrange(6)
    if kind == 0:
        return f"{rng.uniform(-1e3, 1e3):.{rng.randrange(12)}f}"
    if kind == 1:
        return repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-50, 42))
    if kind == 2:
        fraction = rng.choice(("", ".", "." + digits(rng, 40)))
        return digits(rng, 40) + fraction + rng.choice(("", f"e{rng.randrange(-90, 60)}"))
    if kind == 3:
        exponent = f"{rng.choice('eE')}{rng.choice(('', '+', '-'))}{digits(rng, rng.choice((1, 2, 3, 25)))}"
        return rng.choice(("", "+", "-")) + rng.choice(("", "0" * rng.randrange(30))) + "." + digits(rng, 30) + exponent
    if kind == 4:
        zeros = rng.randrange(400)
        shifted = (f"1{'0' * zeros}e-{zeros + rng.randrange(3)}", f"0.{'0' * zeros}{digits(rng, 20)}e{zeros}")
        return rng.choice(shifted)
    return near_middle(rng)


def expected(text: str, place: str) -> float | None:
    """Return the float32 that a place reads, or None if it refuses the text."""
    if not (JSON_NUMBER if place.startswith("json") else NUMBER).fullmatch(text):
        return None
    with np.errstate(over="ignore"):
        value = np.float32(float(text))
    negative = value < 0 if place == "weight" else place == "json weight" and float(text) < 0
    if negative or not np.isfinite(value):
        return None
    return float(value)


def content(case: Case) -> bytes:
    """Return the texts of a case as a file."""
    _, header, line = PLACES[case.place]
    return (header.format(n=len(case.texts)) + "".join(line % text + "\n" for text in case.texts)).encode()


def read(case: Case) -> list[float | None]:
    """Return what is read from each text of a case, None for what is refused."""
    form, header, _ = PLACES[case.place]
    if not form:
        return [_kernel(text) for text in case.texts]
    # numbers with leading zeros would be identifiers
    source = reader.ReaderOptions(format=form, column_kind=("x:number",) if case.place == "csv" else ())
    rules = parser.ParserOptions(noconstant=True, on_bad_line="skip", learn_names=form == "xmc")
    batches = reader.Reader(
        source, parser.Parser(rules, 18, "multiclass" if form == "xmc" else "simple"), stream=io.BytesIO(content(case)),
        choose=detect.chooser(source),
    )  # fmt: skip
    result: list[float | None] = [None] * len(case.texts)
    first = 2 if header else 1
    for batch in batches:
        for i in range(batch.n):
            if case.place.endswith("label"):
                value = batch.label[i]
            elif case.place.endswith("weight"):
                value = batch.weight[i]
            elif case.place == "initial":
                value = batch.initial[i]
            else:
                value = batch.value[batch.start[i]] if batch.start[i + 1] > batch.start[i] else 0.0
            result[int(batch.line[i]) - first] = float(value)
    return result


def _kernel(text: str) -> float | None:
    """Return what the kernel reads from a whole text, or None."""
    padded = np.frombuffer(bytearray(text.encode() + b"\n" + bytes(parser.PADDING)), np.uint8)
    value, end, count = numbers.read_number(padded, 0)
    return float(value) if count and end == len(text) and np.isfinite(value) else None


def differences(case: Case) -> list[str]:
    """Return a description of each text that is read as another number than Python reads."""
    return [
        f"{case.place}: {text} is read as {got!r}, not as {wanted!r}"
        for text, got in zip(case.texts, read(case), strict=True)
        if got != (wanted := expected(text, case.place))
    ]


def drawn(rng: random.Random, place: str, n: int) -> Case:
    """Draw a case of `n` texts."""
    texts = [rng.choice(NO_NUMBERS) if rng.random() < 0.1 else number_text(rng) for _ in range(n)]
    if place == "csv":  # with a text in it, the whole column would be text
        texts = [text if NUMBER.fullmatch(text) else "1" for text in texts]
    return Case(place, tuple(texts))


class Decimals(Part):
    """The part `numbers` of the campaign."""

    name = "numbers"

    def __init__(self, only: str = "") -> None:
        super().__init__()

    def prepare(self, bench: Bench) -> None:
        for case in self.cases(0, len(PLACES)):
            differences(case)

    def cases(self, seed: int, n: int) -> list[Case]:
        rng = random.Random(seed)
        places = list(PLACES)
        return [drawn(rng, places[i % len(places)], BATCH) for i in range(n)]

    def run(self, case: Case, bench: Bench) -> Outcome:
        found = differences(case)
        if found:
            return wrong("\n".join(found), f"{case.place} differs from Python", len(case.texts))
        return Outcome(ACCEPTED, lines=len(case.texts))

    def smaller(self, case: Case) -> Iterator[Case]:
        half = len(case.texts) // 2
        for texts in (case.texts[:half], case.texts[half:]) if half > 1 else ((text,) for text in case.texts):
            if texts != case.texts:
                yield case._replace(texts=texts)

    def group(self, case: Case) -> str:
        return case.place

    def reproduction(self, case: Case) -> dict[str, bytes]:
        return {"data": content(case)}

    def words(self, case: Case) -> tuple[str, ...]:
        return ("-d", "data", "--format", PLACES[case.place][0] or "vw", "--audit", "--noconstant")
