"""Define what a run asks of the object that writes weights or proposals as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...reductions.core.contract import BatchTask
from ...text.text_format import TextFormat


class RunInspector(Protocol):
    """Look at a learner during a run, and write what it shows."""

    @property
    def one_by_one(self) -> bool:
        """Return whether the learner must get one example at a time."""

    def read_from(self, text: TextFormat) -> None:
        """Find the names of features in text of this format."""

    def attach(self, model: Any) -> None:
        """Inspect this learner from now on, which is of the same class as the one before."""

    def detach(self) -> None:
        """Drop the reference to the learner, to free its memory, until `attach` is called."""

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        """Return the stages of the learner with those of this object."""

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write the files that are written at the end of the run."""
