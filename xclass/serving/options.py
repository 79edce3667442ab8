"""Declare the options of a server."""

from __future__ import annotations

from ..errors import UsageError
from ..options.declare import BYTES, SECONDS, OptionGroup, option

LOOPBACK = ("127.0.0.1", "::1", "localhost")  # addresses that only this machine reaches


class ServerOptions(OptionGroup):
    """Declare where a server listens, the files in which it says so, and the limits for its clients."""

    host: str = option("address to listen at; anyone who reaches it can use the learner", default=LOOPBACK[0])
    port: int = option("port to listen at; 0 for any free one", default=26542, minimum=0, maximum=65535)
    socket: str | None = option(
        "listen at this Unix socket instead, which only this user can open",
        metavar="PATH",
        writes="the socket",
    )
    pid_file: str | None = option(
        "write the number of the process to this file while it serves", writes="the number of the process"
    )
    port_file: str | None = option(
        "write the port to this file while it serves, and that of HTTP in a second line; with --models or --socket "
        "only that of HTTP",
        writes="the port",
    )
    http: str | None = option(
        "serve HTTP and a page at this port, too, which may have an address before it. Elsewhere than at 127.0.0.1, "
        "learning and saving over HTTP need --token_file",
        metavar="[ADDRESS:]PORT",
    )
    token_file: str | None = option(
        "file with the token that requests to learn or to save over HTTP have to send", reads=True
    )
    allow_host: tuple[str, ...] = option(
        "name of the server in HTTP requests besides localhost and addresses in numbers, as a proxy passes it on",
        metavar="NAME",
    )
    max_body: int = option(
        "bytes of the longest HTTP request",
        default=1 << 23,
        metavar="SIZE",
        minimum=1 << 10,
        maximum=1 << 30,
        unit=BYTES,
    )
    max_connections: int = option(
        "connections at the same time; further ones are refused", default=2000, minimum=1, maximum=100_000
    )
    max_line: int = option(
        "bytes of the longest line that is read; a longer one is answered by an error",
        default=1 << 20,
        metavar="SIZE",
        minimum=64,
        maximum=1 << 30,
        unit=BYTES,
    )
    timeout: float = option(
        "close a connection that takes longer than X seconds to complete a line, or to read its answers",
        default=60.0,
        minimum=0.1,
        maximum=1e6,
        unit=SECONDS,
    )
    idle_timeout: float = option(
        "close a connection on which nothing is sent for X seconds",
        default=3600.0,
        minimum=0.1,
        maximum=1e6,
        unit=SECONDS,
    )

    def __post_init__(self) -> None:
        """Raise UsageError if an option has no effect, because there is no HTTP or no port."""
        for name in ("token_file", "allow_host") if self.http is None else ():
            if getattr(self, name):
                raise UsageError(f"--{name} has no effect without --http PORT; give that, or leave --{name} out")
        if self.socket is not None and self.port_file is not None and self.http is None:
            raise UsageError(
                "--port_file has no effect: with --socket and without --http there is no port; leave it out"
            )
