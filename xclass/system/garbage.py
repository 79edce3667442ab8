"""Collect no garbage while many objects are created that stay, as by imports: it would take a tenth of their time."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def kept(for_good: bool = False) -> Iterator[None]:
    """Collect no garbage in this block, by no thread.

    `for_good` says that the new objects stay. They count as old ones after the block, so that the collector does not
    look through all of them at once.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if for_good and not gc.get_freeze_count():  # otherwise the program has frozen objects, which stay frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
