"""Random text in the data formats other than VW text, for the campaign of `texts`."""

from __future__ import annotations

import csv
import io
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


TABLE_OPTIONS = (
    "", "", "", "--label_column label", "--label_column 1", "--label_column 0", "--ignore_column x", "--columns x,text",
    "--column_kind text:category", "--column_kind x:text", "--column_kind y:number", "--label_column text",
    "--column_kind x:category,y:text", "--columns y --label_column x", "--ignore_column text,label",
)  # fmt: skip
OPTIONS = {"csv": (*TABLE_OPTIONS, "--quoting none", "--header label,x,y,text"), "jsonl": TABLE_OPTIONS}


def in_format(kind: str, seed: int, n: int, odd: float) -> bytes:
    """Return `n` lines of a data format; about the share `odd` of their words is odd."""
    rng = random.Random(seed)

    def word(plain: object, others: Sequence[str] = WORDS) -> str:
        return rng.choice(others) if rng.random() < odd else str(plain)

    delimiter, flat = rng.choice(",,,\t;"), rng.random() < 0.5
    header = delimiter.join(["label", "x", "y", "text"])
    lines = {"xmc": [f"{n} 40 {CLASSES}"], "csv": [header]}.get(kind, [])
    for _ in range(n):
        label = word(rng.randrange(kind != "xmc", CLASSES), LABELS)
        names, value = [word(rng.randrange(40)) for _ in range(rng.randrange(6))], rng.gauss(0, 2)
        if kind == "fasttext":
            line = " ".join([word(f"__label__{label}"), *names])
        elif kind in ("libsvm", "xmc"):
            line = " ".join([label, *(f"{name}:{word(f'{value:.3g}', NUMBERS)}" for name in names)])
        elif kind == "csv":
            text = word(" ".join(names), ("", '"', "a,b", 'a "b" c', "x\ny", '"a" b', "NA", "nan"))
            cells = [label, word(f"{value:.3g}", (*NUMBERS, "NA", "")), word(7), text]
            line = delimiter.join(cells) if rng.random() < odd else _quoted(cells, delimiter)
        elif flat:
            number = rng.choice((value, "x", None, True, [1], "2.5", 10**30)) if rng.random() < odd else value
            line = json.dumps({"label": label, "x": number, "y": word(7), "text": " ".join(names)})
        else:
            given: dict[str, object] = {"label": label, "text": " ".join(names), "features": {word("f"): value}}
            given[word("weight")] = rng.choice((0.5, 1, "x", None)) if rng.random() < odd else 1
            line = json.dumps(given)
        lines.append(line)
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _quoted(cells: Sequence[str], delimiter: str) -> str:
    """Return a row of CSV with the quotes that it needs."""
    row = io.StringIO()
    csv.writer(row, delimiter=delimiter, lineterminator="").writerow(cells)
    return row.getvalue()
