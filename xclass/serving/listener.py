"""Listen for clients, close connections that take too long, and close all when the server ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from ..errors import UsageError

SWEEP_SECONDS = 1.0  # between two searches for connections that take too long


class Listener:
    """Hold the connections of a protocol.

    Attributes
    ----------
    connections : those that are open, the oldest first. Each has a `transport`, `check_time(now)`, which closes it if
        the client takes too long, and `end()`, which reads nothing more and closes it when all is answered
    port : the port that is listened at, once it is open
    """

    def __init__(self, failure: str, another: str, pause: float = SWEEP_SECONDS) -> None:
        """Keep what to say if it cannot listen, `failure` and what else to give, and the seconds between two sweeps."""
        self.connections: dict[Any, None] = {}
        self.port: int | None = None
        self._failure, self._another, self._pause = failure, another, pause
        self._servers: list[asyncio.Server] = []
        self._empty = asyncio.Event()

    async def _listen(self) -> list[asyncio.Server]:
        """Return what listens, and set the port; raise OSError if that is not possible."""
        raise NotImplementedError

    async def open(self) -> None:
        """Begin to listen; raise UsageError if that is not possible."""
        try:
            self._servers = await self._listen()
        except OSError as error:
            raise UsageError(f"{self._failure}: {error.strerror or error}; give another {self._another}") from None
        self._sweep()

    def _sweep(self) -> None:
        now = time.monotonic()
        for connection in list(self.connections):
            connection.check_time(now)
        self._sweeper = asyncio.get_running_loop().call_later(self._pause, self._sweep)

    def lost(self, connection: object) -> None:
        """Note that a connection is closed."""
        self.connections.pop(connection, None)
        if not self.connections:
            self._empty.set()

    async def close(self, patience: float) -> None:
        """Listen no more, answer what was received, and close all connections after `patience` seconds."""
        if not self._servers:
            return
        for server in self._servers:
            server.close()
        self._empty.clear()
        for connection in list(self.connections):
            connection.end()
        if self.connections:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._empty.wait(), patience)
        for connection in list(self.connections):
            connection.transport.abort()
        self._sweeper.cancel()
