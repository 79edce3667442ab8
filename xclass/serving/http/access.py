"""Decide who may ask: by the names Host and Origin, so that the page of a stranger cannot, and by the token.

A browser sends the requests of any page to any address, this machine's too. The page of a stranger then has another
Origin than the server, or it has given its own name the server's address, which Host tells. A program can send any
name, so neither keeps programs out: the token does, wherever others reach the address.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

from ...errors import UsageError
from ..options import LOOPBACK, ServerOptions
from .messages import CLOSE, ENCODINGS, Refusal

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
