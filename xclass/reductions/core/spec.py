"""Define what a reduction is built from: its options, and what it needs to know about the run or program using it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...binary import gd
from . import probabilities


class LabelRange(NamedTuple):
    """Hold the lowest and highest label that a learner accepts (None for no limit), and the option that sets them."""

    lowest: int | None = None
    highest: int | None = None
    set_by: str = ""


@dataclass(frozen=True)
class LearnerUse:
    """Say how a learner is used, as far as its options do not, and which results it gives besides predictions."""

    # options about probabilities, which say what is listed and what is summed up for the summary
    listing_options: probabilities.ListingOptions = field(default_factory=probabilities.ListingOptions)
    scores: bool = False  # whether the scores of classes, candidates or routers are listed
    # whether the probabilities of the label and of the answer are used for each example
    example_probabilities: bool = False
    inspected: bool = False  # whether weight tables are shown as text
    weights_only: bool = False  # whether the learner only predicts and its tables are never inspected
    passes: int = 1  # number of passes over the data
    loaded: bool = False  # whether a model will be restored
    testing: bool = False  # whether the learner only predicts
    # whether it is averaged with others now and then, and sees only a part of the data meanwhile
    averaged: bool = False

    @property
    def needs_probabilities(self) -> bool:
        """Return whether any result needs probabilities."""
        return self.listing_options.needs_probabilities or self.example_probabilities

    @property
    def lists_best(self) -> bool:
        """Return whether the best classes are listed."""
        return self.listing_options.top_k is not None or self.scores


@dataclass(frozen=True, kw_only=True)
class LearnerSpec(LearnerUse):
    """Hold everything that a reduction may know when its options are checked and when it is built."""

    name: str  # name of the reduction
    options: Any  # those of the reduction
    binary: gd.BinaryOptions  # options of the binary learner
    # names of the options that the user or a preset set, among those of the reduction, of the binary learner and of
    # `core.probabilities`
    given: frozenset[str] = frozenset()
    seed: int = 0  # seed of all random numbers
    names: tuple[str, ...] = ()  # names of the classes that are known from the start
    learn_names: bool = False  # whether labels are names, which get numbers in the order in which they occur
    constant: bool = True  # whether examples end with a constant feature
    # whether the reduction receives examples whose labels are no classes, as with `--on_bad_line vw`
    any_label: bool = False
    vw_exact: bool = False  # whether to follow VW wherever it differs

    @property
    def classes(self) -> int | None:
        """Return the number of classes given as the reduction's option, None if that option is none or not a number."""
        value = getattr(self.options, self.name, None)
        return value if isinstance(value, int) else None

    @property
    def lowest_label(self) -> int:
        """Return the lowest label of a reduction that learns lists of labels: 0, or 1 if labels are names."""
        return int(self.learn_names or bool(self.names))
