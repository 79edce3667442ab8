"""Check the size of a weight table against the free memory and the number of classes, and define its default range."""

from __future__ import annotations

from ..errors import UsageError
from ..system import memory

FIELDS = 4  # number of float32 in a slot
SLOT_BYTES = 4 * FIELDS
LEAST_BITS, MOST_BITS = 18, 26  # range of log2 of the table's size if -b is not given
PLACES = 10  # log2 of the slots per class if -b is not given


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, more: int = 0) -> None:
    """Check that a table of 2**bits slots fits into free memory.

    Parameters
    ----------
    bits : log2 of the number of slots
    slot_bytes : size of a slot
    more : bytes that the reduction needs besides the table

    Raises
    ------
    UsageError
        If it does not fit; the message names the largest table that does.
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
    """Return a warning for the banner if a table has too few slots per class, otherwise no line."""
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
