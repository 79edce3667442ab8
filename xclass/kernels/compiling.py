"""Tell that kernels are compiled: a line at the beginning, on a terminal a bar, and a line at the end.

    with compiling.under_way():
        ...
        compiling.add_one()  # a kernel was compiled

Kernels are compiled whenever one is called for the first time, and which one is the last is not known beforehand. So a
thread shows how many there are, and ends when none has been compiled for a second, or when the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..system import terminal

IDLE = 1.0  # seconds without a kernel after which all are compiled
INTERVAL = 0.2  # seconds between two looks at the number of kernels
BAR = "{desc}: {n_fmt} done in {elapsed}"  # of minutes and seconds

each: Callable[[], object] | None = None  # is called after each kernel
_say: Callable[[str], object] | None = terminal.error_line
_kernels = 0  # compiled by this process, and by others for it
_busy = 0  # calls of `under_way` that have not ended
_latest = 0.0  # time at which the latest of them ended
_watch: threading.Thread | None = None
_lock = threading.Lock()
_ended = threading.Event()


def tell(say: Callable[[str], object] | None) -> None:
    """Let `say` be called with the lines; None for neither lines nor a bar."""
    global _say
    _say = say


def add_one() -> None:
    """Count a kernel that was compiled."""
    global _kernels
    _kernels += 1
    if each is not None:
        each()


@contextlib.contextmanager
def under_way(shown: bool = True) -> Iterator[None]:
    """Show, until the context has ended, that kernels are compiled; unless `shown`, only if that is shown already."""
    global _busy, _latest, _watch
    with _lock:
        _busy += 1
        if shown and _say is not None and not (_watch is not None and _watch.is_alive()) and not _ended.is_set():
            _say("xclass: compiling kernels for this machine; this takes seconds to minutes")
            _watch = threading.Thread(target=_show, args=(_say, _kernels), name="xclass-compiling", daemon=True)
            _watch.start()
    try:
        yield
    finally:
        with _lock:
            _busy -= 1
            _latest = time.monotonic()


def _show(say: Callable[[str], object], before: int) -> None:
    """Show how many kernels beyond those `before` are compiled, until all are."""
    begin = time.monotonic()
    bar: Any = None
    if terminal.shows_errors():
        from tqdm import tqdm

        bar = tqdm(
            desc="compiling kernels", bar_format=BAR, leave=False, file=terminal.error_stream(), dynamic_ncols=True
        )
    while not _ended.wait(INTERVAL) and (_busy or time.monotonic() < _latest + IDLE):
        if bar is not None:
            bar.n = _kernels - before
            bar.refresh()
    if bar is not None:
        bar.close()
    count, seconds = _kernels - before, (time.monotonic() if _busy else _latest) - begin
    say(f"xclass: {count} kernel{'s' * (count != 1)} compiled in {seconds:.0f} s")


@atexit.register
def end() -> None:
    """Show the end, and nothing more: threads that write while the process ends could crash it."""
    _ended.set()
    if _watch is not None:
        _watch.join()
