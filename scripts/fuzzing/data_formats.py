"""Random text in the data formats other than VW text, for the campaign of `texts`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from scripts.fuzzing.seeds import CLASSES

FORMATS = ("fasttext", "libsvm", "xmc", "csv", "jsonl")
WORDS = (
    "a", "7", "007", "longer-name", "é", "\x01", "\x00", "inf", "-3", "|", "a:b", "#", ":", "1:1", '"', "{", ",",
    "\ufeff", "4294967296", "99999999999999999999", "__label__", "__label__x", "qid:1", "\N{GRINNING FACE}", "\r", "\t",
    "\udcff",
)  # fmt: skip
NUMBERS = (
    "1", "0", "-2", ".5", "1e2", "1e-3", "1e", "-", "+3", "0x1f", "inf", "nan", "1e39", "1x", "2:3", "9" * 30, "1e-45",
)  # fmt: skip
LABELS = ("", "x", "1,2", "-1", "0", "4294967295", "99999999999999999999", "1.5", "3.0", "13", "name,1", "a b", "#")


def in_format(kind: str, seed: int, n: int, odd: float) -> bytes:
    """Return `n` lines of a data format; about the share `odd` of their words is odd."""
    rng = random.Random(seed)

    def word(plain: object, others: Sequence[str] = WORDS) -> str:
        return rng.choice(others) if rng.random() < odd else str(plain)

    lines = {"xmc": [f"{n} 40 {CLASSES}"], "csv": ["label,x,y,text"]}.get(kind, [])
    for _ in range(n):
        label = word(rng.randrange(kind != "xmc", CLASSES), LABELS)
        names, value = [word(rng.randrange(40)) for _ in range(rng.randrange(6))], rng.gauss(0, 2)
        if kind == "fasttext":
            line = " ".join([word(f"__label__{label}"), *names])
        elif kind in ("libsvm", "xmc"):
            line = " ".join([label, *(f"{name}:{word(f'{value:.3g}', NUMBERS)}" for name in names)])
        elif kind == "csv":
            line = f"{label},{word(f'{value:.3g}', NUMBERS)},{word(7)},{word(' '.join(names), ('', chr(34), 'a,b'))}"
        else:
            given: dict[str, object] = {"label": label, "text": " ".join(names), "features": {word("f"): value}}
            given[word("weight")] = rng.choice((0.5, 1, "x", None)) if rng.random() < odd else 1
            line = json.dumps(given)
        lines.append(line)
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")
