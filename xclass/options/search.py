"""Describe which values of an option are worth trying, for `xclass tune`.

An option declares its search beside its other attributes:

    learning_rate: float = option("learning rate", ..., search=between(0.05, 5.0, "log", first=(0.25, 1.0)))

A search has the values that are tried first, one option at a time, and a range from which further values are drawn. If
these depend on the data, the attribute is a function of `Facts`, which returns None if the option is not searched.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

DIGITS = 4  # significant digits of a drawn number
STEP = 0.35  # standard deviation of the change of a number, in logarithms or as a share of the range


class Facts(NamedTuple):
    """Hold what a search may depend on."""

    # name of the reduction or preset whose options are searched, "" while the reduction itself is chosen
    reduction: str
    classes: int  # highest class, or the number of names
    examples: int  # number of examples
    features: float  # mean number of features of an example, without the constant
    plain: bool  # whether the values of all features are 1, as in text
    groups: str  # first letters of the namespaces, in rising order
    metric: str = "error"  # value of --metric


@dataclass(frozen=True)
class Search:
    """Hold the values of an option that are worth trying."""

    # "one" for listed values, "flag" for an option without a value, or "log", "linear" or "int" for a range whose
    # values are drawn with even ratios, evenly, or evenly as whole numbers
    kind: str
    values: tuple[Any, ...]  # the listed values, or the lowest and the highest value of a range
    first: tuple[Any, ...] = ()  # values that are tried first, the most promising one first
    # how promising the option is; settings of options with larger weights are tried first and more often
    weight: float = 1.0

    def draw(self, rng: random.Random) -> Any:
        """Return a random value; None for a flag that is not given."""
        if self.kind == "flag":
            return True if rng.random() < 0.5 else None
        if self.kind == "one":
            return rng.choice(self.values)
        low, high = self.values
        if self.kind == "int":
            return rng.randint(low, high)
        if self.kind == "log":
            return self._rounded(math.exp(rng.uniform(math.log(low), math.log(high))))
        return self._rounded(rng.uniform(low, high))

    def near(self, value: Any, rng: random.Random) -> Any:
        """Return a random value that differs from `value` and, for a range, is likely to be close to it."""
        if self.kind == "flag":
            return None if value else True
        if self.kind == "one":
            return rng.choice([other for other in self.values if other != value] or list(self.values))
        if value is None:
            return self.draw(rng)
        low, high = self.values
        if self.kind == "int":
            step = max(1, round(abs(rng.gauss(0, STEP * (high - low) / 2))))
            return min(max(int(value) + rng.choice((-step, step)), low), high)
        if self.kind == "log":
            return self._rounded(value * math.exp(rng.gauss(0, 2 * STEP)))
        return self._rounded(value + rng.gauss(0, STEP * (high - low) / 2))

    def _rounded(self, value: float) -> float:
        """Return a number with few digits within the range."""
        low, high = self.values
        return float(f"{min(max(value, low), high):.{DIGITS}g}")


Declared: TypeAlias = Search | Callable[[Facts], Search | None] | None  # of `Option.search`


def one_of(*values: Any, first: tuple[Any, ...] | None = None, weight: float = 1.0) -> Search:
    """Return the search of an option with these values; all are tried first unless `first` lists others."""
    return Search("one", values, values if first is None else first, weight)


def between(low: Any, high: Any, kind: str, first: tuple[Any, ...] = (), weight: float = 1.0) -> Search:
    """Return the search of a number between `low` and `high`; `kind` is "log", "linear" or "int"."""
    return Search(kind, (low, high), first, weight)


def flag(weight: float = 1.0) -> Search:
    """Return the search of an option that is given or not."""
    return Search("flag", (), (True,), weight)


def resolved(declared: Declared, facts: Facts) -> Search | None:
    """Return the search of an option for the data that `facts` describes, None if it is not searched."""
    return declared(facts) if callable(declared) else declared
