"""Handle Ctrl-C and SIGTERM: the first signal stops a run and saves its model, a second one ends it at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

NOTHING_LEARNED = "nothing was learned yet, so nothing was saved"


class Stopped(KeyboardInterrupt):
    """Report a second signal, which ends the run at once."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def interrupt_told(line: Callable[[str], None], options: Mapping[str, Any]) -> Iterator[None]:
    """Write a line about Ctrl-C in the `with` block, which prepares a run with these options, field name -> value."""
    try:
        yield
    except KeyboardInterrupt:
        saves = options.get("final_regressor") is not None and not options.get("testonly")
        line("xclass: stopped by SIGINT" + f"; {NOTHING_LEARNED}" * saves)
        raise


class SignalHandler:
    """Handle signals within a `with` block: call `stop` for the first one and raise `Stopped` for the second.

    `stopped` is the signal that stopped the run, `late` one that came after `end` was called. The previous handlers are
    restored before `Stopped` is raised, so a third signal has its usual effect.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.stopped: signal.Signals | None = None
        self.late: signal.Signals | None = None
        self._stop = stop
        self._ending = False
        self._before: dict[signal.Signals, Any] = {}  # the previous handlers

    def __enter__(self) -> SignalHandler:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def end(self) -> None:
        """Note that reading has ended, so that a first signal is only recorded in `late`."""
        self._ending = True

    def _caught(self, number: int, frame: FrameType | None) -> None:
        """Handle the first signal."""
        for handled in self._before:
            signal.signal(handled, self._caught_again)
        if self._ending:
            self.late = signal.Signals(number)
        else:
            self.stopped = signal.Signals(number)
            self._stop()

    def _caught_again(self, number: int, frame: FrameType | None) -> None:
        """Handle the second signal."""
        self._restore()
        raise Stopped(number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
