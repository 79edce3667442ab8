"""Define what a reduction is built from: its options, and what it needs to know about the run or program using it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...binary import gd
from . import probabilities


@dataclass(frozen=True)
class Wanted:
    """Say which results a learner produces in addition to predictions.

    Attributes
    ----------
    listing_options : options about probabilities, which say what is listed and what is summed up for the summary
    scores : whether the scores of classes, candidates or routers are listed
    weights_only : whether the learner only predicts and its tables are never inspected
    example_probabilities : whether the probabilities of the label and of the answer are used for each example
    """

    listing_options: probabilities.Options = field(default_factory=probabilities.Options)
    scores: bool = False
    weights_only: bool = False
    example_probabilities: bool = False

    @property
    def needs_probabilities(self) -> bool:
        """Return whether any result needs probabilities."""
        return self.listing_options.needs_probabilities or self.example_probabilities


class Part(NamedTuple):
    """Say which part of a learner is built, if its parts are in different processes; see `abilities.spread`."""

    number: int | None  # from 0; None for the whole, which puts together what the parts have learned
    of: int  # number of the parts


@dataclass(frozen=True)
class LearnerSpec:
    """Hold everything that a reduction may know when its options are checked and when it is built.

    Attributes
    ----------
    name : name of the reduction
    options : its `Options`
    binary : options of the binary learner
    wanted : results in addition to predictions
    given : names of the options that the user or a preset set, among those of the reduction, of the binary learner and
        of `core.probabilities`
    seed : seed of all random numbers
    names : names of the classes that are known from the start
    learn_names : whether labels are names, which get numbers in the order in which they occur
    constant : whether examples end with a constant feature
    any_label : whether the reduction receives examples whose labels are no classes, as with `--on_bad_line vw`
    vw_exact : whether to follow VW wherever it differs
    passes : number of passes over the data
    loaded : whether a model will be restored
    testing : whether the learner only predicts
    part : which part of the learner is built; None for all of it
    averaged : whether it is averaged with others now and then, and sees only a part of the data meanwhile
    """

    name: str
    options: Any
    binary: gd.Options
    wanted: Wanted = field(default_factory=Wanted)
    given: frozenset[str] = frozenset()
    seed: int = 0
    names: tuple[str, ...] = ()
    learn_names: bool = False
    constant: bool = True
    any_label: bool = False
    vw_exact: bool = False
    passes: int = 1
    loaded: bool = False
    testing: bool = False
    part: Part | None = None
    averaged: bool = False

    @property
    def classes(self) -> int | None:
        """Return the number of classes given as the reduction's option, None if that option is none or not a number."""
        value = getattr(self.options, self.name, None)
        return value if isinstance(value, int) else None

    @property
    def lowest_label(self) -> int:
        """Return the lowest label of a reduction that learns lists of labels: 0, or 1 if labels are names."""
        return int(self.learn_names or bool(self.names))
