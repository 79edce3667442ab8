"""Decide who may ask: by the names Host and Origin, so that the page of a stranger cannot, and by the token.

A browser sends the requests of any page to any address, this machine's too. The page of a stranger then has another
Origin than the server, or it has given its own name the server's address, which Host tells. A program can send any
name, so neither keeps programs out: the token does, wherever others reach the address.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException

from .bodies import ENCODINGS

JSON = b"application/json"
JUDGED = (b"host", b"origin", b"authorization", b"content-type", b"content-encoding")  # headers that decide
NAME = re.compile(r"[\w.-]+", re.ASCII)  # of a server


class Guard:
    """Refuse requests that may not be answered, by an HTTPException.

    Parameters
    ----------
    loopback : whether the server listens at an address that only this machine reaches
    token : what learning and saving need; None if they need none at a loopback address, and are refused elsewhere
    allowed_hosts : names of the server besides localhost and all addresses in numbers
    """

    def __init__(self, loopback: bool, token: str | None = None, allowed_hosts: Collection[str] = ()) -> None:
        self._loopback, self._token = loopback, token
        self._names = frozenset({"localhost", *(name.lower() for name in allowed_hosts)})
        self._known: set[bytes] = set()  # values of Host that were accepted, for speed

    @property
    def needs_token(self) -> bool:
        """Return whether learning and saving need a token, which may be none."""
        return self._token is not None or not self._loopback

    def check_site(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request by its Host and Origin."""
        host = headers.get(b"host", b"")
        if host not in self._known:
            if not host:
                raise HTTPException(400, "the request has no Host; send the name or the address of the server in it")
            name = host_name(host)
            if name is None or not (name in self._names or is_address(name)):
                raise HTTPException(
                    403,
                    f"Host is {_shown(host)}, which is no name of this server; ask by its address"
                    + (f", or start it with --allow_host {name}" if name and NAME.fullmatch(name) else ""),
                )
            if len(self._known) < 100:
                self._known.add(host)
        origin = headers.get(b"origin")
        if origin is not None and origin not in (b"http://" + host, b"https://" + host):
            # a proxy may have put its own Host in place of the name in --allow_host
            name = host_name(origin.partition(b"://")[2])
            if name not in self._names - {"localhost"}:
                raise HTTPException(
                    403,
                    f"Origin is {_shown(origin)}; allowed are requests of the server's own page, whose name behind a "
                    "proxy --allow_host gives",
                )

    def check_change(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a request that would change or save the model, by its token."""
        if not self.needs_token:
            return
        if self._token is None:
            raise HTTPException(
                403, "learning and saving over HTTP need a token at this address; start the server with --token_file"
            )
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token.encode()):
            raise HTTPException(
                401,
                "this needs the token of the server, as Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )

    @staticmethod
    def check_content(headers: Mapping[bytes, bytes]) -> None:
        """Refuse a body that is not declared as JSON; a browser sends others to any site without asking it."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != JSON:
            raise HTTPException(415, f"Content-Type is {_shown(kind)}; send JSON as application/json")


def encoding(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the encoding of a body, nothing for none; refuse those that are not read."""
    given = headers.get(b"content-encoding", b"").strip().lower()
    if given in (b"", b"identity", *ENCODINGS):
        return b"" if given == b"identity" else given
    raise HTTPException(
        415,
        f"Content-Encoding is {_shown(given)}; send the body by gzip, deflate, or as it is",
        {"accept-encoding": "gzip, deflate"},
    )


def refuse_query(query: bytes) -> None:
    """Refuse a query string, because what is asked is in the body alone."""
    names = ", ".join(
        repr(name[:40]) for name in list(dict(parse_qsl(query[:1000].decode("ascii", "replace"), True)))[:5]
    )
    raise HTTPException(
        400,
        f"the address has a query string with {names or 'no names'}, which is not used; what is asked belongs in "
        'the body, as in {"texts": ["..."], "k": 5}',
    )


def check_repeated(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request that has a header twice by which it is judged, because a proxy may judge it by the other one."""
    counts = Counter(name for name, _ in headers)
    for name in JUDGED:
        if counts[name] > 1:
            raise HTTPException(
                400, f"the request has the header {name.decode().title()} {counts[name]} times; give one"
            )


def host_name(host: bytes) -> str | None:
    """Return the name in a value of Host, without its port and the brackets of an address; None if it is malformed."""
    try:
        text = host.decode("ascii").lower()
    except UnicodeDecodeError:
        return None
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        return name if bracket and (not port or (port[0] == ":" and port[1:].isdigit())) else None
    name, colon, port = text.partition(":")
    return name if name and (not colon or port.isdigit()) else None


def is_address(name: str) -> bool:
    """Return whether a name is an address in numbers, which no stranger can give another server."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _shown(value: bytes) -> str:
    return repr(value[:100].decode("ascii", "backslashreplace"))
