"""Cases from a hypothesis strategy: a list of them, the same for the same seed."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st


def drawn(strategy: st.SearchStrategy, n: int, start: int) -> list[Any]:
    """Return up to `n` values of a strategy."""
    values: list[Any] = []

    @settings(
        max_examples=n, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @seed(start)
    @given(strategy)
    def collect(value):
        values.append(value)

    collect()
    return values[:n]


def edit(kind: str, *parts: st.SearchStrategy) -> st.SearchStrategy[tuple]:
    """Return a strategy of records that begin with the kind of a change."""
    return st.tuples(st.just(kind), *parts)


def weighted(*choices: tuple[int, st.SearchStrategy]) -> st.SearchStrategy:
    """Return a strategy that draws from each of the others with a weight; `one_of` draws from equal ones once."""
    return st.sampled_from([i for i, (weight, _) in enumerate(choices) for _ in range(weight)]).flatmap(
        lambda i: choices[i][1]
    )
