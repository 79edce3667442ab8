"""Define what a learner is merged from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...binary import merging
from ...errors import ModelError
from ...model.stored_arrays import MAX_SUM

CONTINUE = "let all continue from one model that has learned from an example of each class, and give it as --base"


class Sources(NamedTuple):
    """Hold the learners that a new learner is merged from; they have the same options.

    Merging may change their arrays. Without a base, `base` is a new learner that has learned nothing.
    """

    learners: Sequence[Any]  # of the class of the new learner; in an order that does not depend on their names
    base: Any  # the learner that all began with, a new learner if there is none
    has_base: bool
    paths: Sequence[str]  # names of the models in messages
    base_path: str
    examples: Sequence[float]  # weight of the examples that each has learned since the base
    keys: Sequence[Sequence[str]]  # of the names of the classes in each model, nothing if labels are numbers
    base_keys: Sequence[str]
    merged_keys: Sequence[str]  # those of the base, then the others in the order of the models
    live: bool  # whether large tables are empty, because they are merged elsewhere, see `ranges`

    def of(self, name: str) -> Sources:
        """Return the parts of the learners that an attribute holds."""
        return self._replace(learners=[getattr(one, name) for one in self.learners], base=getattr(self.base, name))


def add_up(target: Any, sources: Sources, name: str, most: float = MAX_SUM) -> None:
    """Fill counts, the array `name` of an object, with those of the base and what each of the others has added."""
    values = sources.of(name)
    getattr(target, name)[:] = np.minimum(merging.added_counts(values.learners, values.base), most)


def average(target: Any, sources: Sources, name: str) -> None:
    """Fill parameters and their sums, see `merging.average_parameters`, float64[2, ...]."""
    values, own = sources.of(name), getattr(target, name)
    merging.average_parameters(
        own.reshape(2, -1), [one.reshape(2, -1) for one in values.learners], values.base.reshape(2, -1)
    )


def not_continued(path: str, base_path: str, reason: str) -> ModelError:
    return ModelError(
        f"{path} has not continued from {base_path}: {reason}; give the model that all have continued from as "
        "--base, or leave that out"
    )


def check_continued(k: int | None, sources: Sources) -> None:
    """Raise ModelError if `average_slots` has found a model (index k) whose sums are smaller than those of a base."""
    if k is not None and sources.has_base:
        raise not_continued(sources.paths[k], sources.base_path, "a sum of squared gradients is smaller")


def check_names(sources: Sources) -> None:
    """Raise ModelError if a class has other names in other models, for learners whose words depend on its number."""
    others = zip([sources.base_keys, *sources.keys], [sources.base_path, *sources.paths], strict=True)
    for keys, path in others:
        for number, (own, merged) in enumerate(zip(keys, sources.keys[0], strict=False), 1):
            if own != merged:
                raise ModelError(
                    f"class {number} is {own} in {path} and {merged} in {sources.paths[0]}, and weights of classes "
                    "cannot be renumbered: give each training the same --named_labels @FILE with the names of all "
                    f"classes, or {CONTINUE}"
                )
