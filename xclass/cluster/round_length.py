"""Choose how many examples each worker learns in a round, so that learning takes longer than the exchange.

Idea      Both are computed from numbers of examples, features and bytes, and from what one of them costs on a usual
          processor: measured times would make the model depend on the machine. Weights that a round changes are
          exchanged once however often it has changed them, so longer rounds exchange less for each example.
          The first rounds are short, because examples of classes that the model lacks wait for its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.configuration import Config
from .part_learner import Learned

FIRST = 4000  # examples of the first round
WANTED = 9.0  # seconds of learning for each second of exchange
GROWTH = 2.0  # most times as many examples as in the round before
MOST_WAITING = 0.1  # share of the examples that wait for classes, above which rounds stay as they are
# Nanoseconds. What is exchanged is listed, sent, merged, received and written, each at about 300 MB a second
EXAMPLE, FEATURE, BYTE = 20_000.0, 3_000.0, 16.0
SLOT = 1.5  # of a class in learners that train all classes on each feature
FEATURE_OF_ALL = 100.0  # in these learners, and in those without classes


def learning_cost(config: Config, examples: int, features: int) -> float:
    """Return the nanoseconds that one processor learns."""
    name = config.reduction.name
    if name in ("oaa", "multilabel_oaa", "scalar"):
        classes: Any = config.values().get(name) or 1
        return max(features, 1) * (FEATURE_OF_ALL + SLOT * float(classes))
    return examples * EXAMPLE + features * FEATURE


def next_length(config: Config, length: int, learned: Sequence[Learned]) -> int:
    """Return the number of examples of the next round; `learned` is what workers have learned in one of `length`."""
    counts = [one.result.counts for one in learned]
    examples = sum(count.examples for count in counts)
    exchanged = BYTE * sum(one.result.cost.sent for one in learned)
    waiting = sum(len(one.cursor.waiting) for one in learned)
    if examples == 0 or waiting > MOST_WAITING * examples:
        return length
    lacking = WANTED * exchanged / learning_cost(config, examples, sum(count.features for count in counts))
    return int(length * min(max(lacking, 1.0), GROWTH))


def described(every: int | None) -> str:
    """Return text for the banner; `every` is --sync_every."""
    if every is not None:
        return f"every {every} examples of each"
    return f"{FIRST} examples of each at first, later after more, so that learning takes longer than exchanging"
