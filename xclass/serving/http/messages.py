"""Hold HTTP requests as they arrive, and the answers to them."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from ..service import Service

HEADERS = (  # of every answer
    "x-content-type-options: nosniff\r\ncross-origin-resource-policy: same-origin\r\nreferrer-policy: no-referrer\r\n"
    "cache-control: no-store\r\n"
)
NONE: Mapping[str, str] = MappingProxyType({})
CLOSE = {"connection": "close"}  # header of an answer that is the last one of its connection
ENCODINGS = (b"identity", b"gzip", b"x-gzip", b"deflate")
MOST_PARTS = 100  # members of a compressed body
LONG = 1 << 14  # bytes of a body that a thread parses, and that may have to give way
MOST_HELD = 1 << 25  # bytes from which on long bodies are refused; once they are parsed they take ten times as much


class Response:
    """Hold the answer to a request: its body, its type, the status, and headers besides those of every answer."""

    def __init__(
        self, content: bytes, kind: str = "application/json", status: int = 200, more: Mapping[str, str] = NONE
    ) -> None:
        self.content, self.status, self.closes = content, status, "connection" in more
        self._head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{HEADERS}content-type: {kind}\r\n"
            f"content-length: {len(content)}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in more.items())
        )

    def written(self, method: str, closes: bool) -> bytes:
        """Return the bytes to send; `closes` says whether the connection is closed after them."""
        end = "connection: close\r\n\r\n" if closes and not self.closes else "\r\n"
        return (self._head + end).encode() + (self.content if method != "HEAD" else b"")


class Refusal(Exception):
    """Report that a request is refused: the status, why, and headers of the answer."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] = NONE) -> None:
        super().__init__(reason)
        self.status, self.headers = status, headers

    def response(self) -> Response:
        """Return the answer that says so."""
        return Response(to_json({"error": str(self)}), status=self.status, more=self.headers)


class HttpRequest:
    """Hold a request; `changed` is called when it is refused.

    Attributes
    ----------
    method, path, query, headers : its head; `headers` are those that are read, by lower-case names
    repeated : name of one that was sent twice, if there is one
    body : what has come of its body
    complete : whether all of it has come
    keeps_alive : whether the client asks for another answer on the connection
    expects_continue : whether the client waits for 100 Continue before it sends the body
    operation : what is done with the examples in the body; empty if it asks for `facts`
    service : what does it
    response : the answer, if it is refused
    began : time at which its head was complete
    held : bytes that its body takes
    """

    service: Service
    facts: Callable[[], Response]

    def __init__(self, changed: Callable[[], object]) -> None:
        self.changed = changed
        self.method, self.path, self.query = "", "", b""
        self.headers: dict[bytes, bytes] = {}
        self.repeated = b""
        self.body = bytearray()
        self.complete = self.expects_continue = False
        self.keeps_alive = True
        self.operation = ""
        self.response: Response | None = None
        self.began = time.perf_counter()
        self.held = 0

    @property
    def encoding(self) -> bytes:
        """Return how the body is compressed, nothing if it is not."""
        given = self.headers.get(b"content-encoding", b"").strip().lower()
        return given if given != b"identity" else b""

    @property
    def gives_up(self) -> bool:
        """Return whether it is given up if its client sends no more: what takes long, but learning has an order."""
        return self.operation == "explain" or (self.operation == "predict" and self.held >= LONG)


class Buffers:
    """Bound the bytes of the bodies that wait for their answers, apart from short ones, which connections bound.

    `longest` is the limit of a body in bytes, and `held` the bytes of all.
    """

    def __init__(self, longest: int) -> None:
        self.longest, self.held = longest, 0
        self._incomplete: dict[HttpRequest, None] = {}  # long bodies, the oldest first

    def hold(self, request: HttpRequest, size: int) -> None:
        """Note how many bytes the body of a request takes.

        If there are too many of them, the oldest long bodies that are not complete are refused, and if there is none,
        a Refusal is raised. So it is if the body is too long.
        """
        self.held += size - request.held
        request.held = size
        if size > self.longest:
            raise self.too_long()
        if size < LONG:
            return
        if not request.complete:
            self._incomplete[request] = None
        while self.held > max(MOST_HELD, self.longest):
            oldest = next(iter(self._incomplete), request)
            if oldest is request:
                raise busy()
            self.release(oldest)
            oldest.response = busy().response()
            oldest.changed()

    def complete(self, request: HttpRequest) -> None:
        """Note that the body of a request has come."""
        request.complete = True
        self._incomplete.pop(request, None)

    def release(self, request: HttpRequest) -> None:
        """Forget the body of a request, which is answered or refused."""
        self.held -= request.held
        request.held, request.body = 0, bytearray()
        self._incomplete.pop(request, None)

    def decompressed(self, request: HttpRequest) -> bytes:
        """Return the body of a request, which is compressed; raise Refusal if it is damaged or too long."""
        parts, size, rest, made = list[bytes](), 0, bytes(request.body), 16 + zlib.MAX_WBITS
        name = request.encoding.decode()
        if name == "deflate":  # of zlib, but some send it without its head
            made = zlib.MAX_WBITS if rest[:1] == b"\x78" else -zlib.MAX_WBITS
        while rest:  # gzip may have several parts
            if len(parts) == MOST_PARTS:
                raise Refusal(400, f"the body has more than {MOST_PARTS} gzip members; compress it as one")
            one = zlib.decompressobj(made)
            try:
                parts.append(one.decompress(rest, self.longest + 1 - size))
            except zlib.error as error:
                raise Refusal(400, f"the body is not {name}, as Content-Encoding says: {error}") from None
            size += len(parts[-1])
            if size > self.longest:
                raise self.too_long()
            if not one.eof:
                raise Refusal(400, f"the body ends before its {name} data do")
            rest = one.unused_data if name != "deflate" else b""
        return b"".join(parts)

    def too_long(self) -> Refusal:
        """Return the refusal of a body that is too long."""
        return Refusal(413, f"the body is longer than {self.longest} bytes; send fewer examples at once", CLOSE)


def busy() -> Refusal:
    """Return the refusal of a request because too many wait."""
    return Refusal(503, "too many requests wait; ask again later", {"retry-after": "1", **CLOSE})


def to_json(content: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
