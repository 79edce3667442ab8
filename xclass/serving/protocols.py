"""Recognise clients that speak another protocol than lines of VW text by what they send first.

Load balancers, browsers and scanners ask any port. The lines behind such a first one may have a bar, as the body of a
request that the page of a stranger posts, so nothing of the connection is read as examples.
"""

from __future__ import annotations

import re

HEAD_BYTES = 4096  # of a first line that are looked at
AT_ONCE = (  # beginnings of lines that need not be complete
    ("TLS", rb"\x16(\x03|\Z)|[\x80-\xff].\x01"),
    ("SSH", rb"SSH-[0-9]"),
    ("the PROXY protocol", rb"PROXY (TCP|UDP|UNKNOWN)|\x00\r"),
    ("a protocol that is not text", rb"[\x01-\x08\x0e-\x1f]|\x00."),  # one zero may begin either
)
OF_A_LINE = (("HTTP", rb"[A-Z]{3,20} (/|[a-z]+:)[!-~]* +(HTTP|RTSP|SIP|ICAP)/[0-9.]+\r?\Z"),)  # with a bar or without
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
PATTERNS = {pattern: re.compile(pattern, re.DOTALL) for _, pattern in (*AT_ONCE, *OF_A_LINE, *WITHOUT_BAR)}


def foreign(head: bytes) -> tuple[str | None, bool]:
    """Return the protocol of a client that begins with `head`, None for VW text, and whether this is certain.

    It is certain once the first line, or HEAD_BYTES of it, has arrived.
    """
    line, newline, _ = head.lstrip(b"\r\n").partition(b"\n")
    certain = bool(newline) or len(head) >= HEAD_BYTES
    tables = [AT_ONCE, *([OF_A_LINE] if certain else []), *([WITHOUT_BAR] if certain and b"|" not in line else [])]
    found = (name for table in tables for name, pattern in table if PATTERNS[pattern].match(line))
    return next(found, None), certain
