"""Refuse the options of a run that need all of the data in one process, where workers read parts of it."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.configuration import Config
from ..errors import UsageError

NOT_IN_PARTS = {
    "shuffle": "each worker reads its part in the order of the data; shuffle the files",
    **dict.fromkeys(("examples", "initial_pass_length"), "each worker reads its part to the end; give fewer files"),
    **dict.fromkeys(("cache", "cache_file", "kill_cache"), "the workers keep no cache"),
    **dict.fromkeys(
        ("audit", "invert_hash", "explain", "summary", "errors", "per_class", "curve"),
        "it needs all examples in one process; give it to a run with -t -i MODEL and without --workers",
    ),
}


def check(config: Config, mode: str, others: Mapping[str, str]) -> None:
    """Raise UsageError if an option cannot be combined with a mode.

    Parameters
    ----------
    mode : the options that choose the mode, for messages
    others : further options that are refused, and why
    """
    for name, reason in {**NOT_IN_PARTS, **others}.items():
        if name in config.given:
            raise UsageError(f"--{name} cannot be combined with {mode}: {reason}")
    o = config.interactions
    if any(":" in terms for terms in (*o.quadratic, *o.cubic, *o.interactions)):
        raise UsageError(
            f"{mode}: `:` in an interaction stands for the namespaces seen so far, which differ from worker to "
            "worker; write the namespaces"
        )
