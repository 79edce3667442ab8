"""Listen for clients, close connections that take too long, and close all when the server ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import time
from collections.abc import Callable
from typing import Any

from ..errors import UsageError

SWEEP_SECONDS = 1.0  # between two searches for connections that take too long
BACKLOG = 2048  # connections that the system holds until they are accepted


class Listener:
    """Listen at an address, and hold the connections that are open.

    Parameters
    ----------
    connect : returns the protocol of a new connection to this listener. It has a `transport`, `check_time(now)`, which
        closes the connection if the client takes too long, and `end()`, which reads nothing more and closes it when all
        is answered
    address : host and port, or the path of a Unix socket
    option : the options that give the address, for the message if nothing can listen there
    pause : seconds between two searches for connections that take too long

    Attributes
    ----------
    connections : those that are open, the oldest first
    port : the port that is listened at, once it is open; None at a Unix socket
    """

    def __init__(
        self,
        connect: Callable[[Listener], asyncio.Protocol],
        address: tuple[str, int] | str,
        option: str,
        pause: float = SWEEP_SECONDS,
    ) -> None:
        self.connections: dict[Any, None] = {}
        self.port: int | None = None
        self._connect, self._address, self._option, self._pause = connect, address, option, pause
        self._own_file: os.stat_result | None = None  # the socket that this listener has made
        self._server: asyncio.Server | None = None
        self._empty = asyncio.Event()

    @property
    def address(self) -> str:
        """Return the host and the port, or the path of the socket."""
        if isinstance(self._address, str):
            return self._address
        host, port = self._address
        return f"{f'[{host}]' if ':' in host else host}:{self.port or port}"

    async def open(self) -> None:
        """Begin to listen; raise UsageError if that is not possible."""
        loop = asyncio.get_running_loop()
        try:
            if isinstance(self._address, str):
                own = self._bind(self._address)
                self._server = await loop.create_unix_server(lambda: self._connect(self), sock=own, backlog=BACKLOG)
            else:
                host, port = self._address
                self._server = await loop.create_server(lambda: self._connect(self), host, port, backlog=BACKLOG)
                self.port = self._server.sockets[0].getsockname()[1]
        except OSError as error:
            raise UsageError(
                f"cannot listen at {self.address}: {error.strerror or error}; give another {self._option}"
            ) from None
        self._sweep()

    def _bind(self, path: str) -> socket.socket:
        """Return a socket that has a path, and that only this user may connect to once it listens."""
        _remove_dead_socket(path)
        own = socket.socket(socket.AF_UNIX)
        try:
            own.bind(path)
            self._own_file = os.lstat(path)
            os.chmod(path, 0o600)
        except BaseException:
            own.close()
            raise
        return own

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

    async def close(self, patience: float, hurry: asyncio.Event) -> None:
        """Listen no more, and answer what was received; after `patience` seconds or `hurry`, close all connections."""
        if self._own_file is not None:  # before others can find that nobody listens there, and put theirs in its place
            remove_own(self.address, self._own_file)
        if self._server is None:
            return
        self._server.close()
        self._empty.clear()
        for connection in list(self.connections):
            connection.end()
        if self.connections:
            events = [asyncio.ensure_future(event.wait()) for event in (self._empty, hurry)]
            await asyncio.wait(events, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for event in events:
                event.cancel()
        for connection in list(self.connections):
            connection.transport.abort()
        self._sweeper.cancel()


def remove_own(path: str, made: os.stat_result) -> None:
    """Remove a file that this process has made, unless another server has put its own in its place.

    Devices, pipes and links, to which it may have written, stay.
    """
    with contextlib.suppress(OSError):
        now = os.lstat(path)
        is_same = os.path.samestat(now, made) and now.st_mtime_ns == made.st_mtime_ns
        if is_same and (stat.S_ISREG(now.st_mode) or stat.S_ISSOCK(now.st_mode)):
            os.unlink(path)


def _remove_dead_socket(path: str) -> None:
    """Remove the socket of a server that has ended; raise UsageError if one listens there, or if it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise UsageError(f"--socket {path}: a file with this name exists; give another name")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise UsageError(f"--socket {path}: another server listens there; give another name")
