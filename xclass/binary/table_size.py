"""How many slots a weight table may have: what the machine offers, what the classes need."""

from __future__ import annotations

from ..errors import UsageError
from ..system import memory

FIELDS = 4  # float32 per slot of a training table
SLOT_BYTES = 4 * FIELDS
LEAST_BITS, MOST_BITS = 18, 26  # of a table whose size nobody gave
PLACES = 10  # and the bits it has for every class


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, more: int = 0) -> None:
    """Refuse a table that cannot fit, naming the largest that does.

    Parameters
    ----------
    more : bytes the reduction needs beside the table.
    """
    free = memory.available()
    if free is None or (slot_bytes << bits) + more <= free:
        return
    fits = max((b for b in range(1, 32) if (slot_bytes << b) + more <= free), default=0)
    advice = f"the largest that fits is -b {fits}" if fits else "no table fits beside it; choose a smaller --max_depth"
    raise UsageError(
        f"-b {bits} asks for {(slot_bytes << bits) / 2**20:,.0f} MB of weights"
        + (f" and {more / 2**20:,.0f} MB of tree" if more > 2**20 else "")
        + f", {free / 2**20:,.0f} MB are free: {advice}"
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
