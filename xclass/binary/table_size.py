"""Check the size of a weight table against the free memory and the number of classes, and define its default range."""

from __future__ import annotations

from ..errors import UsageError
from ..system import memory

FIELDS = 4  # number of float32 in a slot
SLOT_BYTES = 4 * FIELDS
MIN_BITS, MAX_BITS = 18, 26  # range of log2 of the table's size if -b is not given
CLASS_SLOTS_LOG2 = 10  # log2 of the slots per class if -b is not given


def check_memory(bits: int, slot_bytes: int = SLOT_BYTES, extra_bytes: int = 0) -> None:
    """Check that a table of 2**bits slots fits into free memory, beside `extra_bytes` that the reduction needs."""
    free = memory.available()
    if free is None or (slot_bytes << bits) + extra_bytes <= free:
        return
    fits = max((b for b in range(1, 32) if (slot_bytes << b) + extra_bytes <= free), default=0)
    advice = f"the largest that fits is -b {fits}" if fits else "no table fits; give a smaller --max_depth"
    raise UsageError(
        f"-b {bits} needs {(slot_bytes << bits) / 2**20:,.0f} MB for the weights"
        + (f" and {extra_bytes / 2**20:,.0f} MB for the tree" if extra_bytes > 2**20 else "")
        + f", but only {free / 2**20:,.0f} MB of memory are free; {advice}"
    )


FEW_CLASS_SLOTS = 64  # slots per class below which collisions make most of the error


def crowding_warning(bits: int, classes: int, width: int, layout: str) -> list[str]:
    """Return a warning for the banner if a table has too few slots per class, otherwise no line."""
    class_slots = (1 << bits) // (width if layout == "vw" else classes)
    if class_slots >= FEW_CLASS_SLOTS:
        return []
    enough = bits
    while (1 << enough) // (width if layout == "vw" else classes) < FEW_CLASS_SLOTS and enough < 31:
        enough += 1
    return [
        f"warning: -b {bits} leaves {class_slots} slots for the features of each class, so many features share "
        f"a slot; give at least -b {enough}"
    ]
