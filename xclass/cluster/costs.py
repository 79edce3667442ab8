"""Add up what workers spend, and describe it in the summary."""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Hold what a process has spent so far."""

    examples: int
    cpu: float  # seconds
    sent: int  # bytes
    received: int
    waiting: float  # seconds without anything to do


NO_COST = Cost(0, 0.0, 0, 0, 0.0)


def added(first: Cost, second: Cost) -> Cost:
    """Return what two processes have spent."""
    return Cost._make(a + b for a, b in zip(first, second, strict=True))


def cost_line(number: int, cost: Cost) -> str:
    """Return the line of the summary about what a worker has spent."""
    return (
        f"worker {number}: examples = {cost.examples}, CPU seconds = {cost.cpu:.2f}, bytes sent = {cost.sent}, bytes "
        f"received = {cost.received}, seconds waiting = {cost.waiting:.2f}"
    )
