"""Read lists of labels and of predictions, and compute measures of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

RANKS = (1, 3, 5)
BINS = 10  # of the calibration error


def labels_of(line: bytes) -> set[bytes]:
    """Return the labels of a line of text."""
    words = line.partition(b"|")[0].split()
    return set(words[0].split(b",")) if words else set()


def precision(true: list[set[bytes]], ranked: list[list[bytes]]) -> list[float]:
    """Return the precision at each of RANKS, over the examples that have a label."""
    pairs = [pair for pair in zip(true, ranked, strict=True) if pair[0]]
    return [sum(len(labels & set(best[:k])) for labels, best in pairs) / (k * len(pairs)) for k in RANKS]


def read_lists(folder: Path) -> list[list[tuple[bytes, float]]]:
    lines = (folder / "predictions").read_bytes().splitlines()
    pairs = ([pair.rsplit(b":", 1) for pair in re.split(rb"[ ,]+", line) if pair] for line in lines)
    return [[(label, float(p)) for label, p in listed] for listed in pairs]


def calibration_error(p: np.ndarray, right: np.ndarray) -> float:
    """Return the mean difference between probabilities and the share of them that is right, in bins."""
    bins = np.minimum((BINS * p).astype(int), BINS - 1)
    return float(np.abs(np.bincount(bins, p - right)).sum() / len(p))


def micro_f1(p: np.ndarray, right: np.ndarray, true: int, threshold: float) -> float:
    """Return micro F1 of the labels above a threshold; `true` is the number of true labels."""
    chosen = p > threshold
    return float(2 * right[chosen].sum() / max(chosen.sum() + true, 1))
