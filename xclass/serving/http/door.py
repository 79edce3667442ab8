"""Listen for HTTP by uvicorn's protocol on httptools, and keep slow clients from holding the others.

uvicorn waits without end for the rest of a request, and for a client to read an answer, and it takes a head of any
length. Here a client has to send a request, and to read its answer, within a limit of time; what the server takes to
answer does not count. Where there are too many connections, one on which no whole request has arrived is closed for a
new one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
from typing import cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ..listener import SWEEP_SECONDS, Listener

IDLE_SECONDS = 75  # without a request on a connection
HEAD_BYTES = 1 << 15  # of the names and values before a body that are kept while more of them come
BODY = (b"content-length", b"transfer-encoding")  # headers of requests with a body
UPGRADE = "neither CONNECT nor a body with the header Upgrade is understood; send the request by HTTP/1.1 alone"
SILENT = logging.Logger("xclass.http", logging.CRITICAL + 1)  # what clients do wrong is not worth a line each


class Door(Listener):
    """Serve an application until `close` is called.

    Parameters
    ----------
    app : the application
    host, port : where to listen, 0 for any free port
    most_connections : connections at the same time
    seconds : limit for a client to send a request, and to read its answer
    headers : of every answer
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
        super().__init__(f"--http: cannot listen at {host}:{port}", "address", min(SWEEP_SECONDS, seconds))
        self.host, self.port, self.most_connections, self.seconds = host, port, most_connections, seconds
        self.config = uvicorn.Config(
            app, http=HttpToolsProtocol, ws="none", lifespan="off", interface="asgi3", log_config=None,
            proxy_headers=False, server_header=False, date_header=False, headers=headers,
            timeout_keep_alive=IDLE_SECONDS,
        )  # fmt: skip
        self.config.load()
        self.state = ServerState()
        self.state.default_headers = self.config.encoded_headers

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}/"

    async def _listen(self) -> list[asyncio.Server]:
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
            servers = [await loop.create_server(lambda: _Connection(self), sock=one, backlog=2048) for one in listening]
        except OSError:
            for one in listening:
                one.close()
            raise
        self.port = listening[0].getsockname()[1]
        return servers

    def make_room(self) -> bool:
        """Close the oldest connection that waits for a request if there are too many; return whether there is room."""
        if len(self.connections) < self.most_connections:
            return True
        oldest = next((connection for connection in self.connections if connection.waits), None)
        if oldest is not None:
            del self.connections[oldest]  # it is told only later that it is closed, perhaps after more have come
            oldest.transport.abort()
        return oldest is not None


class _Connection(HttpToolsProtocol):
    """Count the bytes of a head, and note since when the client sends a request or does not read an answer."""

    def __init__(self, door: Door) -> None:
        super().__init__(door.config, door.state, {})
        self.logger, self.access_log = SILENT, False
        self._door = door
        self._head = 0  # bytes since the last head, or part of a body, that is complete
        self._began: float | None = None  # when the first byte came of a request that is not complete
        self._blocked: float | None = None  # since when the client does not read
        self._ended = False  # whether the client sends no more

    @property
    def waits(self) -> bool:
        """Return whether no whole request is there to be answered."""
        # an earlier request is being answered while later ones are in the pipeline
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete or self.cycle.more_body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        room = self._door.make_room()
        super().connection_made(cast(asyncio.Transport, transport))
        self._began = time.monotonic()
        if room:
            self._door.connections[self] = None
        else:
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._door.lost(self)

    def eof_received(self) -> bool:  # type: ignore[override]  # asyncio takes a bool
        """Return whether to keep the connection, on which a client that sends no more may read the last answers."""
        self._ended = True
        if not self.waits:
            self.cycle.message_event.set()  # because the client may be gone, an answer that takes long is given up
        return not self.waits

    def data_received(self, data: bytes) -> None:
        if self._began is None:
            self._began = time.monotonic()
        self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_BYTES and not self.transport.is_closing():
            if self.waits:
                self.send_400_response(f"the headers of the request are longer than {HEAD_BYTES} bytes")
            else:  # this would be taken for the answer to an earlier request
                self.transport.abort()

    def on_message_begin(self) -> None:
        if self._began is None:
            self._began = time.monotonic()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = 0
        if self.parser.should_upgrade() and any(name in BODY for name, _ in self.headers):
            raise ValueError(UPGRADE)  # the parser would take the body for the next request
        super().on_headers_complete()
        self.headers = []  # those behind a body are none of the request's

    def on_body(self, body: bytes) -> None:
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head, self._began = 0, None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._began is not None:  # the next request waited for this answer, perhaps
            self._began = time.monotonic()
        super().on_response_complete()
        not_sent = self.expect_100_continue and self.cycle.response_complete and self.cycle.more_body
        if not_sent or (self._ended and self.waits):
            self.transport.close()  # perhaps the client sends its next request in place of the body

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request that can be read, in JSON, and close the connection."""
        if not self.waits:  # this would be taken for the answer to an earlier request
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self.parser.should_upgrade():
            msg = UPGRADE
        content = json.dumps({"error": msg}).encode()
        headers = [*self.server_state.default_headers, (b"content-type", b"application/json")]
        headers += [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n%b\r\n%b" % (head, content))
        self.transport.close()

    def end(self) -> None:
        self.shutdown()

    def check_time(self, now: float) -> None:
        """Close the connection if the client takes too long to send a request or to read an answer."""
        if not self.transport.get_write_buffer_size():
            self._blocked = None
        elif self._blocked is None:
            self._blocked = now
        sending = self._began if self.waits else None
        if any(since is not None and now - since > self._door.seconds for since in (sending, self._blocked)):
            self.transport.abort()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()
