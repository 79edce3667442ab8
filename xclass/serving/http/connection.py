"""Read HTTP requests by httptools, and write their answers in order; slow clients do not hold the others.

A client has to send a request, and to read its answer, within a limit of time; what the server takes to answer does
not count. The head of a request is judged before its body is read. Where there are too many connections, one on which
no whole request has arrived is closed for a new one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import cast
from urllib.parse import unquote

import httptools

from ..listener import Listener
from ..options import ServerOptions
from .endpoints import Endpoints
from .messages import CLOSE, READ, HttpRequest, Refusal, Response

IDLE_SECONDS = 75  # without a request on a connection
HEAD_BYTES = 1 << 15  # of a head while more of it comes, and of what is kept of it
BODY = (b"content-length", b"transfer-encoding")  # headers of requests with a body
INVALID = "this is no HTTP request that can be read"
TOO_LONG = f"the headers of the request are longer than {HEAD_BYTES} bytes"
UPGRADE = "neither CONNECT nor a body with the header Upgrade is understood; send the request by HTTP/1.1 alone"
GIVEN_UP = "the client sends no more, so it may be gone, and what takes long is given up; keep the connection open"


class HttpConnection(asyncio.Protocol):
    """Read the requests of a client, and write the answers."""

    transport: asyncio.Transport

    def __init__(self, listener: Listener, endpoints: Endpoints, options: ServerOptions) -> None:
        self._listener, self._endpoints, self._options = listener, endpoints, options
        self._buffers = endpoints.buffers
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[HttpRequest] = deque()  # that are not answered; the last one may be incomplete
        self._task: asyncio.Task[Response] | None = None  # answers the first of them
        self._head = 0  # bytes since the last head, or part of a body, that is complete
        self._began: float | None = None  # when the first byte came of a request that is not complete
        self._answered = 0.0  # when the last answer was written
        self._unread: float | None = None  # since when the client has not read all answers
        self._blocked = False  # whether it reads so little that no more is written
        self._ended = self._failed = False  # whether the client sends no more; whether it has sent no HTTP
        self._closing = False  # whether the connection is closed when all requests are answered

    @property
    def waits(self) -> bool:
        """Return whether no whole request is there to be answered."""
        return not self._requests or not self._requests[0].complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._began = time.monotonic()
        others = self._listener.connections
        if len(others) >= self._options.max_connections:
            oldest = next((other for other in others if other.waits), None)
            if oldest is None:
                return self.transport.abort()
            del others[oldest]  # it is told only later that it is closed, perhaps after more have come
            oldest.transport.abort()
        others[self] = None

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        if self._task is not None and self._requests[0].gives_up:
            self._task.cancel()
        for request in list(self._requests)[self._task is not None :]:
            self._buffers.release(request)
        self._listener.lost(self)

    def eof_received(self) -> bool:
        """Return whether to keep the connection, on which a client that sends no more may read the last answers."""
        self._ended = True
        if self._task is not None and self._requests[0].gives_up:
            self._task.cancel()
        return not self.waits

    # reading

    def data_received(self, data: bytes) -> None:
        if self._failed:
            return
        if self._began is None:
            self._began = time.monotonic()
        self._head += len(data)
        rest = memoryview(data)
        while rest:
            try:
                self._parser.feed_data(rest)
                break
            except httptools.HttpParserUpgrade as upgrade:  # the request is answered as if it did not ask for that
                rest = rest[upgrade.args[0] :]
            except httptools.HttpParserError:
                self._fail(UPGRADE if self._parser.should_upgrade() else INVALID)
                break
        if self._head > HEAD_BYTES and not self.transport.is_closing():
            if self.waits:
                self._fail(TOO_LONG)
            else:  # this would be taken for the answer to an earlier request
                self.transport.abort()

    def on_message_begin(self) -> None:
        if self._began is None:
            self._began = time.monotonic()
        self._request, self._url = HttpRequest(self._advance), b""
        self._headers: dict[bytes, bytes] = {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in READ:
            if name in self._headers:
                self._request.repeated = name
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        request, parser, self._head = self._request, self._parser, 0
        request.headers, self._headers = self._headers, {}  # those behind a body are none of the request's
        headers = request.headers
        if parser.should_upgrade() and any(name in headers for name in BODY):
            raise ValueError(UPGRADE)  # the parser would take the body for the next request
        url = httptools.parse_url(self._url)
        request.method, request.query = parser.get_method().decode(), url.query or b""
        request.path = unquote((url.path or b"/").decode("ascii"))
        is_old = parser.get_http_version() == "1.0"
        request.keeps_alive = not is_old and parser.should_keep_alive()
        request.expects_continue = not is_old and headers.get(b"expect", b"").lower() == b"100-continue"
        request.began = time.perf_counter()
        self._requests.append(request)
        try:
            if len(self._url) + sum(map(len, headers.values())) > HEAD_BYTES:
                raise Refusal(400, TOO_LONG, CLOSE)
            self._endpoints.begin(request)
            length = headers.get(b"content-length", b"")
            if length and int(length[:20]) > self._buffers.longest:
                raise self._buffers.too_long()
        except Refusal as refusal:
            request.response = refusal.response()
        self._advance()

    def on_body(self, body: bytes) -> None:
        self._head, request = 0, self._request
        if request.response is not None:
            return
        request.body += body
        try:
            self._buffers.hold(request, len(request.body))
        except Refusal as refusal:
            request.response = refusal.response()
            self._advance()

    def on_message_complete(self) -> None:
        self._head, self._began = 0, None
        self._buffers.complete(self._request)
        self._advance()

    def _fail(self, message: str) -> None:
        """Answer what is no request that can be read, unless that would be taken for the answer to an earlier one."""
        self._failed = self._closing = True
        if self._requests and not self._requests[-1].complete:
            self._buffers.release(self._requests.pop())
        if not self._requests:
            request = HttpRequest(self._advance)
            request.response = Refusal(400, message, CLOSE).response()
            self._requests.append(request)
            self._advance()

    # answering

    def _advance(self) -> None:
        """Answer the first request if it is complete or refused, and read on if no other one waits."""
        while self._requests and self._task is None and not self._blocked and not self.transport.is_closing():
            request = self._requests[0]
            if request.response is None and request.complete and self._ended and request.gives_up:
                request.response = Refusal(408, GIVEN_UP, CLOSE).response()
            if request.response is not None:
                self._write(request, request.response)
            elif request.complete:
                self._task = asyncio.ensure_future(self._endpoints.answer(request))
                self._task.add_done_callback(self._written)
            else:
                if request.expects_continue:
                    request.expects_continue = False
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                break
        waits = len(self._requests) > 1 or self._blocked
        if waits == self.transport.is_reading() and not self._ended and not self.transport.is_closing():
            (self.transport.pause_reading if waits else self.transport.resume_reading)()

    def _written(self, task: asyncio.Task[Response]) -> None:
        """Write what a task has answered; it was cancelled if the client sends no more."""
        self._task = None
        request = self._requests[0]
        response = Refusal(408, GIVEN_UP, CLOSE).response() if task.cancelled() else task.result()
        self._write(request, response)
        self._advance()

    def _write(self, request: HttpRequest, response: Response) -> None:
        self._requests.popleft()
        self._buffers.release(request)
        if self.transport.is_closing():
            return
        not_sent = request.expects_continue and not request.complete  # perhaps its body never comes
        last = self.waits if self._ended else self._closing and not self._requests
        closes = response.closes or not request.keeps_alive or not_sent or last
        self.transport.write(response.written(request.method, closes))
        self._endpoints.note(request, response.status)
        self._answered = time.monotonic()
        if self._began is not None:  # the next request waited for this answer, perhaps
            self._began = self._answered
        if closes:
            self.transport.close()

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        self._advance()

    def end(self) -> None:
        """Close the connection when all requests that have begun are answered."""
        self._closing = True
        if not self._requests:
            self.transport.close()

    def check_time(self, now: float) -> None:
        """Close the connection if the client takes too long to send a request or to read an answer."""
        if not self.transport.get_write_buffer_size():
            self._unread = None
        elif self._unread is None:
            self._unread = now
        sending = self._began if self.waits else None
        is_idle = not self._requests and self._began is None and now - self._answered > IDLE_SECONDS
        if is_idle or any(
            since is not None and now - since > self._options.timeout for since in (sending, self._unread)
        ):
            self.transport.abort()
