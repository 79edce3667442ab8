"""Write the lines of a model as text that come before its weights, as VW 9.11 does, so that its tools can read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import __version__
from ...api.configuration import Config
from ...array_types import Float
from ...options.declare import OptionGroup, options_of


class Learned(NamedTuple):
    """Hold the numbers of the binary learner that the lines show."""

    low: Float  # range of the predictions
    high: Float
    normalizer: Float = 0.0  # sum of the norms of the examples
    l1_state: Float = 0.0
    l2_state: Float = 1.0


def lines(
    config: Config,
    stored: dict[str, Any],
    counters: Mapping[str, Any],
    learned: Learned,
    reduction: Iterable[str],
    more: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yield the lines; `more` are fields of options that are shown although VW does not store them."""
    low, high = _as_text(learned.low), _as_text(learned.high)
    yield from ("Version 9.11.9", f"Id xclass {__version__}", f"Min label:{low}", f"Max label:{high}")
    yield from (f"bits:{config.learner.bits}", "lda:0")
    for kind, sizes in (("ngram", config.features.ngram), ("skip", config.features.skips)):
        yield f"{len(sizes)} {kind}:" + "".join(f"{size} " for size in sizes)
    yield "options:" + _command(config, stored, more)
    yield "Checksum: "
    yield from reduction
    if config.learner.predict_only_model:
        yield ":0"
        return
    yield ":1"
    yield f"initial_t {_as_text(config.learner.initial_t)}"
    yield f"norm normalizer {_as_text(learned.normalizer)}"
    states = (("l1_state", learned.l1_state), ("l2_state", learned.l2_state))
    for name, value in (*counters.items(), *states):
        yield f"{name} {_as_text(value)}"


VW_STORED_OPTIONS = (
    "adaptive", "binary", "cubic", "ect", "error", "hash", "hash_seed", "ignore", "ignore_linear", "indexing",
    "interactions", "invariant", "keep", "learning_rate", "link", "max_candidates", "max_depth", "named_labels",
    "node_only", "noconstant", "normalized", "oaa", "power_t", "quadratic", "randomized_routing", "recall_tree", "sgd",
)  # fmt: skip


def _command(config: Config, stored: dict[str, Any], more: tuple[str, ...]) -> str:
    """Return the options that VW stores in a model, and `more`, as a command line, each with a space before it."""
    words: list[str] = []
    chosen = getattr(config, config.reduction.name)
    groups: tuple[OptionGroup, ...] = (config.parser, config.features, config.interactions, config.learner, chosen)
    for group in groups:
        for name, entry in options_of(type(group)).items():
            value = stored.get(name)
            if (
                name not in VW_STORED_OPTIONS + more
                or value in (None, [], False)
                or (name not in config.given and value == entry.default)
            ):
                continue
            if name in ("learning_rate", "power_t", "hash", "hash_seed", "link") and name not in config.given:
                continue
            if name == "named_labels":
                value = str(value).replace(" ", "_")  # a name is one word of a command line
            words += (
                [f" --{name}"] if value is True else [f" --{name} {v}" for v in (value if entry.repeated else [value])]
            )
    return "".join(sorted(words))


def _as_text(value: object) -> str:
    """Return a value as text; numbers are formatted as by C++ streams."""
    return format(float(value), "g") if isinstance(value, (float, np.floating)) else str(value)
