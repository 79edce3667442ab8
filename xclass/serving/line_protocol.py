"""Serve Vowpal Wabbit's line protocol: a client sends lines of VW text and gets a line for each, in order.

A connection ends when the client has closed its side and all its lines are answered. Nothing that a client does or
leaves undone holds others: its lines wait in a buffer of limited size, it has at most two requests with the service at
a time, and nothing more is read from it while these are not answered or it does not read the answers. A client whose
first line is that of another protocol gets one error, and nothing of it is learned: load balancers, browsers and
scanners ask any port, and the lines behind such a first one may have a bar, as the body of a request that the page of a
stranger posts.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import cast

import numpy as np

from ..client import GREETING, ONLY_PREDICTS
from ..text.numbers import NEWLINE
from .lines import ERROR, error_line, unmarked
from .listener import Listener
from .options import ServerOptions
from .service import LineJob, Service

REQUESTS = 2  # of a connection that the service has at a time: it works at one while the other is prepared
REQUEST_BYTES = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GREETED = (ONLY_PREDICTS.encode(), ERROR + b"none\n")  # answers to GREETING, by whether the server learns
UNREAD_ANSWERS = 1 << 18  # bytes of answers from which on nothing is read from a client
LINGER_SECONDS = 1.0
HEAD_BYTES = 4096  # of a first line that are looked at
AT_ONCE = (  # beginnings of lines that need not be complete
    ("TLS", rb"\x16(\x03|\Z)|[\x80-\xff].\x01"),
    ("SSH", rb"SSH-[0-9]"),
    ("the PROXY protocol", rb"PROXY (TCP|UDP|UNKNOWN)|\x00\r"),
    ("a protocol that is not text", rb"[\x01-\x08\x0e-\x1f]|\x00."),  # one zero may begin either
)
OF_A_LINE = (("HTTP", rb"[A-Z]{3,20} (/|[a-z]+:)[!-~]* +(HTTP|RTSP|SIP|ICAP)/[0-9.]+\r?\Z"),)  # with a bar or without
# of a line that is longer than HEAD_BYTES, with a bar or without
OF_A_BEGINNING = (("HTTP", rb"[A-Z]{3,20} (/|[a-z]+:)[!-~]*( +[A-Z]*/?[0-9.]*\r?)?\Z"),)
WITHOUT_BAR = (
    ("HTTP", rb"\S+ \S+ +(HTTP|RTSP|SIP|ICAP)/[0-9.]+\r?\Z|HTTP/[0-9]|[A-Z]{3,20} (/|\*|[a-z]+:)[!-~]*\r?\Z"),
    (
        "memcached's protocol",
        rb"(set|add|replace|append|prepend|cas) \S+ [0-9]+ -?[0-9]+ [0-9]+|stats( [a-z]+)?\r?\Z|"
        rb"(gets?|gats?|touch|incr|decr|delete|m[gsdnae]|watch|slabs|lru|version|flush_all|verbosity)( |\r?\Z)",
    ),
    (
        "Redis' protocol",
        rb"[*$]-?[0-9]+\r?\Z|(?i:ping|auth|hello|info|select|set|get|mget|del|exists|keys|echo|command|config|client|"
        rb"eval|monitor|subscribe|sync|psync|dbsize|flushall)( |\r?\Z)",
    ),
    (
        "a protocol of mail or files",
        rb"(?i:ehlo|helo|lhlo|mail from:|rcpt to:|user|pass|starttls|noop|quit|capa|data|rset|vrfy|feat|syst|nick|"
        rb"\S+ (login|capability|starttls))",
    ),
    ("a protocol that is not text", rb".*[\x00-\x08\x0e-\x1f]"),
)
PATTERNS = {
    pattern: re.compile(pattern, re.DOTALL) for _, pattern in (*AT_ONCE, *OF_A_LINE, *OF_A_BEGINNING, *WITHOUT_BAR)
}


class LineConnection(asyncio.Protocol):
    """Read the lines of a client, and write their answers."""

    transport: asyncio.Transport

    def __init__(self, listener: Listener, service: Service, options: ServerOptions) -> None:
        self._listener, self._service, self._options = listener, service, options
        self._received = bytearray()  # what is not yet with the service
        self._asked = 0  # requests that the service has
        self._begun = False  # whether the first line has been looked at
        self._marked = False  # whether answers are marked, see GREETING
        self._skipping = False  # whether the line that is being received is too long
        self._ended = False  # whether nothing more is read from the client
        self._refused = False  # whether it was told why
        self._incomplete = False  # whether its last line has no newline
        self._blocked = False  # whether the client does not read
        self._line_began = self._last_received = self._blocked_since = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=UNREAD_ANSWERS)
        if len(self._listener.connections) >= self._options.max_connections:
            self._refuse(f"the server has {self._options.max_connections} connections already; try again later")
        else:
            self._listener.connections[self] = None

    def connection_lost(self, error: Exception | None) -> None:
        self._received.clear()
        self._listener.lost(self)

    def _refuse(self, reason: str) -> None:
        """Tell the client why the connection is closed, and close it.

        What it sends for a while is dropped, because the system drops the message if it gets more for a closed one.
        """
        self._received.clear()
        self._ended = self._refused = True
        self._blocked_since = time.monotonic()
        self._write(error_line(reason))
        self.transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self.transport.close)

    # reading

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._last_received = time.monotonic()
        if b"\n" in data:
            self._line_began = self._last_received
            if self._skipping:
                self._skipping = False
                data = data[data.index(b"\n") + 1 :]
        elif self._skipping:
            return
        elif not self._received:
            self._line_began = self._last_received
        self._received += data
        if self._begun or self._begin():
            self._submit()

    def _begin(self) -> bool:
        """Look at the first line as far as it is there; return whether it may be one of VW text."""
        protocol, self._begun = foreign(bytes(self._received[:HEAD_BYTES]))
        if protocol is not None:
            self._refuse(
                f"this port takes lines of VW text, and the client speaks {protocol}; start the server with --http "
                "PORT for HTTP"
            )
            return False
        if self._begun:
            if self._received.startswith(BYTE_ORDER_MARK):
                del self._received[: len(BYTE_ORDER_MARK)]
            if self._received.startswith(GREETING):
                del self._received[: len(GREETING)]
                self._marked = True
                self.transport.write(GREETED[self._service.learns])
        return True

    def eof_received(self) -> bool:
        """Read nothing more; answers are still written."""
        self.end()
        return True

    def end(self) -> None:
        """Read nothing more; close the connection when all lines are answered.

        A client that has died leaves an incomplete line, too, so such a line is not learned.
        """
        complete = self._received.rfind(b"\n") + 1
        self._incomplete = self._incomplete or complete < len(self._received)
        del self._received[complete:]
        self._ended = True
        self._submit()
        self._close_if_done()

    def _submit(self) -> None:
        """Give the service what it may have, and read on if there is room."""
        while self._received and self._asked < REQUESTS and not self._blocked:
            taken = self._take()
            if taken is None:
                break
            text, lines, deliver = *taken, self._reply
            if not lines:  # a line that is too long; the answer to it keeps its place
                deliver = self._reply_too_long
            self._asked += 1
            self._service.ask(LineJob(deliver, self, text, lines))
        waits = len(self._received) >= REQUEST_BYTES and (self._asked == REQUESTS or self._blocked)
        if waits == self.transport.is_reading() and not self._ended and not self.transport.is_closing():
            (self.transport.pause_reading if waits else self.transport.resume_reading)()

    def _take(self) -> tuple[bytes, int] | None:
        """Take the next lines for a request and return their number, 0 for a line that is too long; None if no line is
        complete.
        """
        received, longest = self._received, self._options.max_line
        most = self._service.lines_at_once
        if len(received) <= min(longest, REQUEST_BYTES) and received.endswith(b"\n"):  # as of a client that waits
            count = received.count(b"\n")
            if count <= most:
                text = bytes(received)
                received.clear()
                return text, count
        head = bytes(received[:REQUEST_BYTES])
        ends = np.flatnonzero(np.frombuffer(head, np.uint8) == NEWLINE) + 1
        if not len(ends):  # the line is longer than usual requests
            end = received.find(b"\n", len(head)) + 1
            if not end:
                if len(received) <= longest:
                    return None
                self._skipping = True
                received.clear()
                return b"", 0
            ends = np.array([end])
        too_long = np.flatnonzero(np.diff(ends, prepend=0) > longest + 1)
        count = min(len(ends), most) if not len(too_long) else min(int(too_long[0]), most)
        end = int(ends[max(count, 1) - 1])
        text = bytes(received[:end]) if count else b""
        del received[:end]
        return text, count

    # answering

    def _write(self, answers: bytes) -> None:
        self.transport.write(answers if self._marked else unmarked(answers))

    def _reply(self, answers: bytes, last: bool) -> None:
        if self.transport.is_closing() or self._refused:
            return
        self._write(answers)
        if last:
            self._asked -= 1
            self._submit()
            self._close_if_done()

    def _reply_too_long(self, answers: bytes, last: bool) -> None:
        limit = self._options.max_line
        message = f"the line is longer than {limit} bytes; start the server with a larger --max_line"
        self._reply(error_line(message), last)

    def _close_if_done(self) -> None:
        if self._ended and not self._asked and not self._received and not self.transport.is_closing():
            if self._incomplete:
                self._write(error_line("the last line has no newline at its end, so it is not used"))
            self._blocked_since = time.monotonic()
            self.transport.close()

    def pause_writing(self) -> None:
        self._blocked, self._blocked_since = True, time.monotonic()

    def resume_writing(self) -> None:
        self._blocked = False
        self._submit()

    # limits of time

    def check_time(self, now: float) -> None:
        """Close the connection if the client takes too long."""
        limit = self._options.timeout
        if self._blocked or self._refused or self.transport.is_closing():
            if now - self._blocked_since > limit and self.transport.get_write_buffer_size():
                self.transport.abort()
        elif self._asked:
            pass
        elif (self._received or self._skipping) and now - self._line_began > limit:
            self._refuse(f"a line was not complete after {limit:g} seconds; start the server with a larger --timeout")
        elif now - self._last_received > self._options.idle_timeout:
            limit = self._options.idle_timeout
            self._refuse(f"nothing was sent for {limit:g} seconds; start the server with a larger --idle_timeout")


def foreign(head: bytes) -> tuple[str | None, bool]:
    """Return the protocol of a client that begins with `head`, None for VW text, and whether this is certain.

    It is certain once the first line, or HEAD_BYTES of it, has arrived.
    """
    line, newline, _ = head.lstrip(b"\r\n").partition(b"\n")
    certain = bool(newline) or len(head) >= HEAD_BYTES
    tables: list[tuple[tuple[str, bytes], ...]] = [AT_ONCE]
    if certain:
        tables.append(OF_A_LINE if newline else OF_A_BEGINNING)
        if b"|" not in line:
            tables.append(WITHOUT_BAR)
    found = (name for table in tables for name, pattern in table if PATTERNS[pattern].match(line))
    return next(found, None), certain
