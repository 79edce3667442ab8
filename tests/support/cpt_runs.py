"""What the tests of the conditional probability tree read: examples for its oracles, and what a run wrote."""

from __future__ import annotations

from pathlib import Path

from tests.oracles import reader as plain_reader

BITS = ("-b", 20)


def pairs(line: str) -> tuple[dict[int, float], float]:
    """The labels of a line of --top_k, and what is left for others."""
    found = {int(word.split(":")[0]): float(word.split(":")[1]) for word in line.split(" ") if ":" in word}
    return {label: p for label, p in found.items() if label > 0}, found[0]


def examples(text: str) -> list[tuple]:
    """(features, label or None, weight) of every line."""
    found = plain_reader.read(text.encode(), multiclass=True, bits=32)
    labels = [None if e.label is None else int(e.label) for e in found]
    return list(zip(plain_reader.features_of(found), labels, [e.weight for e in found], strict=True))


def lines_of(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def fact(text: str, name: str) -> float:
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))
