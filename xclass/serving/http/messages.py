"""Hold HTTP requests as they arrive, the answers to them, and who may ask: by Host and Origin, and by the token.

A browser sends the requests of any page to any address, this machine's too. The page of a stranger then has another
Origin than the server, or it has given its own name the server's address, which Host tells. A program can send any
name, so neither keeps programs out: the token does, wherever others reach the address.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from ...errors import UsageError
from ..options import LOOPBACK, ServerOptions
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
    """Return a value as JSON, with null in place of numbers that are not finite, which JSON does not have."""
    dumped = partial(json.dumps, allow_nan=False, separators=(",", ":"))
    try:
        return dumped(content).encode()
    except ValueError:
        return dumped(_finite(content)).encode()


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


JSON = b"application/json"
READ = frozenset(  # headers that decide something
    b"host origin authorization content-type content-encoding content-length transfer-encoding expect".split()
)
NAME = re.compile(r"[\w.-]+", re.ASCII)  # of a server
LEAST_TOKEN = 16  # characters


class Access:
    """Refuse requests that may not be answered.

    Parameters
    ----------
    options : those of the server: its address, the token, and its names. Without a token, learning and saving are
        allowed if only this machine reaches the address. Raise UsageError if one is not allowed
    """

    def __init__(self, options: ServerOptions) -> None:
        assert options.http is not None
        for name in options.allow_host:
            if not NAME.fullmatch(name):
                raise UsageError(f"--allow_host {name}: allowed are names such as example.org, without a port")
        host, _ = address(options.http)
        self._token = None if options.token_file is None else read_token(options.token_file)
        self.needs_token = self._token is not None or host not in LOOPBACK  # to learn and to save
        self._own_names = frozenset(name.lower() for name in options.allow_host)
        self._known: set[bytes] = set()  # values of Host that were accepted, for speed

    def check_site(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request by its Host and Origin."""
        host = headers.get(b"host", b"")
        if host not in self._known:
            if not host:
                raise Refusal(400, "the request has no Host; send the name or the address of the server in it")
            name = host_name(host)
            if name is None or not (name == "localhost" or name in self._own_names or is_address(name)):
                raise Refusal(
                    403,
                    f"Host is {_shown(host)}, which is no name of this server; ask by its address"
                    + (f", or start it with --allow_host {name}" if name and NAME.fullmatch(name) else ""),
                )
            if len(self._known) < 100:
                self._known.add(host)
        # a proxy may have put its own Host in place of the name in --allow_host
        origin = headers.get(b"origin", b"http://" + host)
        scheme, _, place = origin.partition(b"://")
        is_own = scheme in (b"http", b"https") and place == host
        if not is_own and host_name(place) not in self._own_names:
            raise Refusal(
                403,
                f"Origin is {_shown(origin)}; allowed are requests of the server's own page; start the server "
                "with --allow_host NAME if a proxy serves the page by another name",
            )

    def check_change(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request that would change or save the model, by its token."""
        if not self.needs_token:
            return
        if self._token is None:
            raise Refusal(
                403, "learning and saving over HTTP need a token at this address; start the server with --token_file"
            )
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token.encode()):
            message = "this needs the token of the server, as Authorization: Bearer TOKEN"
            raise Refusal(401, message, {"www-authenticate": "Bearer"})


def check_content(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body that is not declared as JSON, which a browser sends to any site without asking it, or is encoded
    as nothing here reads it.
    """
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != JSON:
        raise Refusal(415, f"Content-Type is {_shown(kind)}; send JSON as application/json")
    coding = headers.get(b"transfer-encoding", b"chunked").lower()
    if coding != b"chunked":
        raise Refusal(501, f"Transfer-Encoding is {_shown(coding)}; send the body as it is, or chunked", CLOSE)
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding and encoding not in ENCODINGS:
        raise Refusal(
            415,
            f"Content-Encoding is {_shown(encoding)}; send the body by gzip, deflate, or as it is",
            {"accept-encoding": "gzip, deflate"},
        )


def refuse_query(query: bytes) -> None:
    """Refuse a query string, because what is asked is in the body alone."""
    names = ", ".join(
        repr(name[:40]) for name in list(dict(parse_qsl(query[:1000].decode("ascii", "replace"), True)))[:5]
    )
    raise Refusal(
        400,
        f"the address has a query string with {names or 'no names'}, which is not used; what is asked belongs in "
        'the body, as in {"texts": ["..."], "k": 5}',
    )


def refuse_repeated(name: bytes) -> None:
    """Refuse a request that has a header twice, because a proxy may judge it by the other one."""
    raise Refusal(400, f"the request has the header {name.decode().title()} more than once; give one")


def host_name(host: bytes) -> str | None:
    """Return the name in a value of Host, without its port and the brackets of an address; None if it is malformed."""
    try:
        text = host.decode("ascii").lower()
    except UnicodeDecodeError:
        return None
    found = re.fullmatch(r"(?:\[([^\]]*)\]|([^:\[][^:]*))(?::\d+)?", text)
    return found and (found[1] or found[2])


def is_address(name: str) -> bool:
    """Return whether a name is an address in numbers, which no stranger can give another server."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def address(text: str) -> tuple[str, int]:
    """Return the address and the port that --http names."""
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not port.isdecimal() or not port.isascii() or int(port) > 65535 or (text.startswith(":")):
        raise UsageError(f"--http {text}: allowed are a port from 0 to 65535, and an address with it, as in [::1]:8000")
    return host or LOOPBACK[0], int(port)


def read_token(path: str) -> str:
    """Return the token in a file, without blanks around it."""
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(1 << 16).strip()
        readable = os.stat(path).st_mode & 0o004
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token_file {path}: {getattr(error, 'strerror', None) or 'it is not ASCII'}") from None
    if readable:
        raise UsageError(f"--token_file {path}: every user may read it; change that by chmod o-r {path}")
    if len(token) < LEAST_TOKEN or not token.isprintable() or " " in token:
        raise UsageError(
            f"--token_file {path}: the token has {len(token)} characters; give at least {LEAST_TOKEN} without blanks, "
            f"such as those that `openssl rand -hex 32` prints"
        )
    return token


def _shown(value: bytes) -> str:
    return repr(value[:100].decode("ascii", "backslashreplace"))
