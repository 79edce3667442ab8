"""What a reduction is built from: its own options and what it has to know of the run or the program it works in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...binary import gd
from . import probabilities


@dataclass(frozen=True)
class Wanted:
    """What is asked of a learner beside its predictions.

    Attributes
    ----------
    answers : which probabilities are listed or summed up
    scores : whether the scores of classes, candidates or routers are listed
    exact_answer : whether predictions are shown one by one; where not, a learner may leave out what only they need
    weights_only : whether it only predicts, and nobody looks at its tables
    """

    answers: probabilities.Options = field(default_factory=probabilities.Options)
    scores: bool = False
    exact_answer: bool = True
    weights_only: bool = False


@dataclass(frozen=True)
class LearnerSpec:
    """All that a reduction may know when its options are checked and when it is built.

    Attributes
    ----------
    name : of the reduction
    options : its own `Options`
    binary : of the binary learner
    wanted : see `Wanted`
    given : names of the options that the user gave, of its own, the binary learner's and `answers`, and of presets
    seed : of everything drawn at random
    names : of the classes, where they are known from the start
    learn_names : whether labels are names that are numbered as they come
    constant : whether examples end with a constant feature
    any_label : whether labels that are none of the classes come through, as with `--on_bad_line vw`
    vw_exact : whether to do what VW does wherever that differs
    passes : over the data
    loaded : whether a model will be restored
    testing : whether nothing will be learned
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

    @property
    def classes(self) -> int | None:
        """The number of classes that was asked for, None where the reduction has no such option."""
        return getattr(self.options, self.name, None)
