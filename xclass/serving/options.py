"""Declare the options of a server."""

from __future__ import annotations

from dataclasses import dataclass

from ..options.declare import OptionGroup, option


@dataclass(frozen=True)
class Options(OptionGroup):
    """Declare where a server listens, the files in which it says so, and the limits for its clients."""

    host: str = option("address to listen at; anyone who reaches it can use the learner", default="127.0.0.1")
    port: int = option("port to listen at; 0 for any free one", default=26542, minimum=0, maximum=65535)
    socket: str | None = option("listen at this Unix socket instead, which only this user can open", metavar="PATH")
    pid_file: str | None = option(
        "write the number of the process to this file while it serves", writes="the number of the process"
    )
    port_file: str | None = option("write the port to this file while it serves", writes="the port")
    max_connections: int = option(
        "connections at the same time; further ones are refused", default=2000, minimum=1, maximum=100_000
    )
    max_line: int = option(
        "bytes of the longest line that is read; a longer one is answered by an error",
        default=1 << 20,
        minimum=64,
        maximum=1 << 30,
    )
    timeout: float = option(
        "close a connection that takes longer than X seconds to complete a line, or to read its answers",
        default=60.0,
        minimum=0.1,
        maximum=1e6,
    )
    idle_timeout: float = option(
        "close a connection on which nothing is sent for X seconds", default=3600.0, minimum=0.1, maximum=1e6
    )
