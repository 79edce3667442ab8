"""Make the door for HTTP as the options of a server say: its address, the token, the names of the server."""

from __future__ import annotations

import os
from collections.abc import Callable

from ...errors import UsageError
from ..models import Models
from ..options import LOOPBACK, Options
from .app import HEADERS, App
from .door import Door
from .guard import NAME, Guard

LEAST_TOKEN = 16  # characters


def door(models: Models, options: Options, log: Callable[[str], object]) -> Door:
    """Return the door for HTTP, which is not open yet; raise UsageError if an option is not allowed."""
    assert options.http is not None
    host, port = address(options.http)
    token = None if options.token_file is None else read_token(options.token_file)
    for name in options.allow_host:
        if not NAME.fullmatch(name):
            raise UsageError(f"--allow_host {name}: allowed are names such as example.org, without a port")
    guard = Guard(host in LOOPBACK, token, options.allow_host)
    app = App(models, guard, options.max_body, options.max_line, log)
    return Door(app, host, port, options.max_connections, options.timeout, HEADERS)


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
