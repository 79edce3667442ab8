"""How many slots a weight table may have: what the machine offers, what the classes need.

Source    /proc/meminfo where there is one, else sysconf.
"""

from __future__ import annotations

import os

import numpy as np

from . import address_space
from .errors import DataError, UsageError

FIELDS = 4  # float32 per slot of a training table
SLOT_BYTES = 4 * FIELDS
LEAST_BITS, MOST_BITS = 18, 26  # of a table whose size nobody gave
PLACES = 10  # and the bits it has for every class


def available_memory() -> int | None:
    """Bytes this process may still take, or None where the machine does not tell."""
    bounds = [bound for bound in (_free_memory(), address_space.left()) if bound is not None]
    return min(bounds, default=None)


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, more: int = 0) -> None:
    """Refuse a table that cannot fit, naming the largest that does.

    Parameters
    ----------
    more : bytes the reduction needs beside the table.
    """
    memory = available_memory()
    if memory is None or (slot_bytes << bits) + more <= memory:
        return
    fits = max((b for b in range(1, 32) if (slot_bytes << b) + more <= memory), default=0)
    advice = f"the largest that fits is -b {fits}" if fits else "no table fits beside it; choose a smaller --max_depth"
    raise UsageError(
        f"-b {bits} asks for {(slot_bytes << bits) / 2**20:,.0f} MB of weights"
        + (f" and {more / 2**20:,.0f} MB of tree" if more > 2**20 else "")
        + f", {memory / 2**20:,.0f} MB are free: {advice}"
    )


MOST_FEATURES = 1 << 31  # of one example
FEATURE_BYTES = 64  # what a feature takes on its way through a learner, at most
ORDINARY_FEATURES = 1 << 20  # an example of so many is not worth a look at the memory


def check_features(counts: np.ndarray, line: np.ndarray, what: str, advice: str) -> None:
    """Refuse an example that crosses or grams turn into more features than memory holds.

    Parameters
    ----------
    counts : features of each example, float64[n]
    line : of each example, int64[n]
    what : what makes the features, with its verb: "--ngram makes"

    Raises
    ------
    DataError
        naming the line.
    """
    row = int(counts.argmax())
    if counts[row] <= ORDINARY_FEATURES:
        return
    memory = available_memory()
    most = MOST_FEATURES if memory is None else min(MOST_FEATURES, memory // FEATURE_BYTES)
    if counts[row] > most:
        raise DataError(
            f"line {line[row]}: {what} {counts[row]:.3g} features of one example, more than the {most:.3g} that this "
            f"machine has memory for; {advice}"
        )


FEW_PLACES = 64  # slots per class below which collisions make most of the error


def crowding(bits: int, classes: int, width: int, layout: str) -> list[str]:
    """A warning for the banner where a table is too small for its classes; no line where it is not."""
    places = (1 << bits) // (width if layout == "vw" else classes)
    if places >= FEW_PLACES:
        return []
    enough = bits
    while (1 << enough) // (width if layout == "vw" else classes) < FEW_PLACES and enough < 31:
        enough += 1
    return [
        f"warning: -b {bits} leaves {places} slots for the features of each class; expect collisions, "
        f"or give at least -b {enough}"
    ]
