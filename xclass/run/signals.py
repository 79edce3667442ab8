"""Ctrl-C and SIGTERM: the first one ends a run in good order, a second one ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Stopped(KeyboardInterrupt):
    """A second signal ends the run at once, wherever it is."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.signal = signal.Signals(number)


class SignalHandler:
    """Catches one signal while it lasts, and turns a second one into `Stopped`; a third one ends the process.

    Parameters
    ----------
    stop : called by the first signal, while there is something to stop

    Attributes
    ----------
    stopped : the signal that ended reading, or None
    late : one that came when the run was ending anyway, or None
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self.stopped: signal.Signals | None = None
        self.late: signal.Signals | None = None
        self._stop = stop
        self._ending = False
        self._before: dict[signal.Signals, Any] = {}  # the handlers that were there

    def __enter__(self) -> SignalHandler:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def end(self) -> None:
        """From here on there is nothing to stop: what is being saved is saved."""
        self._ending = True

    def _caught(self, number: int, frame: FrameType | None) -> None:
        for one in self._before:
            signal.signal(one, self._caught_again)
        if self._ending:
            self.late = signal.Signals(number)
        else:
            self.stopped = signal.Signals(number)
            self._stop()

    def _caught_again(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        raise Stopped(number)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
