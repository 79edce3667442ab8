"""Listen for HTTP by uvicorn, and keep slow clients from holding the others.

uvicorn waits without end for the rest of a request, and for a client to read an answer. Here a request that has begun
has to be received and answered within a limit of time. Where there are too many connections, one on which no whole
request has arrived is closed for a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ...errors import UsageError

IDLE_SECONDS = 75  # without a request on a connection
HEAD_BYTES = 1 << 15  # of the names and values before a body
SWEEP_SECONDS = 1.0  # between two searches for connections that take too long


class Door:
    """Serve an application until `close` is called.

    Parameters
    ----------
    app : the application
    host, port : where to listen, 0 for any free port
    most_connections : connections at the same time
    seconds : limit for a request, from its first byte until its answer is read
    headers : of every answer

    Attributes
    ----------
    port : the port that is listened at, once it is open
    connections : those that are open, the oldest first
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        most_connections: int,
        seconds: float,
        headers: list[tuple[str, str]],
    ) -> None:
        self.host, self.port, self.most_connections, self._seconds = host, port, most_connections, seconds
        self.connections: dict[_Connection, None] = {}
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # what clients do wrong is not worth a line each
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        connection: Any = functools.partial(_Connection, door=self)
        config = uvicorn.Config(
            app, http=connection, ws="none", lifespan="off", interface="asgi3", log_config=None, access_log=False,
            proxy_headers=False, server_header=False, date_header=False, headers=headers,
            timeout_keep_alive=IDLE_SECONDS, h11_max_incomplete_event_size=HEAD_BYTES,
        )  # fmt: skip
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    async def open(self) -> None:
        """Begin to listen; raise UsageError if that is not possible."""
        loop = asyncio.get_running_loop()
        listening: list[socket.socket] = []
        try:
            for family, _, _, _, address in await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
                if listening and not self.port:
                    break  # each address would get a port of its own
                one = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # otherwise asyncio keeps delays
                listening.append(one)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind(address)
        except OSError as error:
            for one in listening:
                one.close()
            raise UsageError(
                f"--http: cannot listen at {self.host}:{self.port}: {error.strerror or error}; give another address"
            ) from None
        self.port = listening[0].getsockname()[1]
        self._task = asyncio.ensure_future(self._server.serve(listening))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.001)
        self._sweeper = loop.call_later(0.0, self._sweep)

    def _sweep(self) -> None:
        now = time.monotonic()
        for connection in list(self.connections):
            connection.check_time(now, self._seconds)
        self._sweeper = asyncio.get_running_loop().call_later(min(SWEEP_SECONDS, self._seconds), self._sweep)

    def make_room(self) -> bool:
        """Close the oldest connection that waits for a request if there are too many; return whether there is room."""
        if len(self.connections) < self.most_connections:
            return True
        oldest = next((connection for connection in self.connections if connection.waits), None)
        if oldest is not None:
            oldest.transport.abort()
        return oldest is not None

    async def close(self, patience: float) -> None:
        """Listen no more, answer what was received, and close all connections after `patience` seconds."""
        if self._task is None:
            return
        self._server.config.timeout_graceful_shutdown = max(1, round(patience))
        self._server.should_exit = True
        self._server.force_exit = patience <= 0
        await asyncio.shield(self._task)
        self._sweeper.cancel()
        for connection in list(self.connections):
            connection.transport.abort()


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the server."""
        yield


class _Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn chooses it when it is imported
    """Note when a request began, and when the client has stopped to read."""

    def __init__(self, *given: Any, door: Door, **more: Any) -> None:
        super().__init__(*given, **more)
        self._door = door
        self._began: float | None = None  # when the first byte of the request came that is not answered
        self._blocked: float | None = None  # since when the client does not read

    @property
    def waits(self) -> bool:
        """Return whether no whole request is there to be answered."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        room = self._door.make_room()
        super().connection_made(cast(asyncio.Transport, transport))
        self._door.connections[self] = None
        self._began = time.monotonic()
        if not room:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._door.connections.pop(self, None)

    def data_received(self, data: bytes) -> None:
        if self._began is None:
            self._began = time.monotonic()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._began = None
        super().on_response_complete()
        if self.cycle is not None and not self.cycle.response_complete:  # the next request was here already
            self._began = time.monotonic()

    def check_time(self, now: float, limit: float) -> None:
        """Close the connection if the client takes too long to send a request or to read an answer."""
        if not self.transport.get_write_buffer_size():
            self._blocked = None
        elif self._blocked is None:
            self._blocked = now
        if any(since is not None and now - since > limit for since in (self._began, self._blocked)):
            self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()
