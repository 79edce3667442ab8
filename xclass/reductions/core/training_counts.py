"""Define the learners that count the examples of each class, and those of each feature, while they learn."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...array_types import Float64s, Int64s, UInt32s


class CountsTraining(ABC):
    """A learner that may know in how many examples each class and each feature occurred."""

    @abstractmethod
    def class_counts(self) -> tuple[Int64s, Float64s] | None:
        """Return the counts of classes, or None if the options select a learner that does not count.

        Returns
        -------
        label : int64[k], classes as written in the file, in any order
        count : float64[k], weight of the examples of each class
        """

    @abstractmethod
    def feature_counts(self, index: UInt32s) -> Float64s | None:
        """Return the weight of the examples with each feature, or None if the learner does not count.

        Features whose hashes collide are counted together.

        Parameters
        ----------
        index : uint32[z], features by their hashes

        Returns
        -------
        count : float64[z]
        """
