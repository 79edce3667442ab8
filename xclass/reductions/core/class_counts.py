"""Define the learners that count how many examples of each class they have learned."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...array_types import Float64s, Int64s


class CountsClasses(ABC):
    """A learner that may know how many examples of each class it has learned."""

    @abstractmethod
    def class_counts(self) -> tuple[Int64s, Float64s] | None:
        """Return the counts, or None if the options select a learner that does not count.

        Returns
        -------
        label : int64[k], classes as written in the file, in any order
        count : float64[k], weight of the examples of each class
        """
