"""Write lines about each example before it is learned, with the names of its features; a base of audits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...api.configuration import Config, feature_bits
from ...explain import feature_names
from ...explain.feature_names import NamedFeature
from ...reductions.core.contract import BatchTask
from ...system import terminal
from ...text.text_format import TextFormat


class ExampleAudit(ABC):
    """Write lines about each example; it takes the place of an `Inspector` in a run.

    `names` returns the names of the classes known so far, or None if labels are numbers.

    Attributes
    ----------
    one_by_one : True, because the learner must get one example at a time
    """

    one_by_one = True

    def __init__(self, config: Config, model: Any, names: Callable[[], Sequence[str] | None]) -> None:
        self._record, self._model, self._names = config.reduction, model, names
        self._namer = feature_names.Namer(config.parser, config.features, config.interactions, feature_bits(config))

    def read_from(self, text: TextFormat) -> None:
        self._namer.format = text

    def attach(self, model: Any) -> None:
        self._model = model

    def detach(self) -> None:
        del self._model

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        """Return one stage that writes the lines of an example and then runs the stages of the learner."""

        def together(task: BatchTask) -> None:
            self._write(task)
            for stage in stages:
                stage(task)

        return [together]

    def write(  # noqa: B027 (nothing has to be written at the end)
        self, counters: dict[str, Any], stored: dict[str, Any]
    ) -> None:
        """Write nothing at the end of a run; `Inspector` writes models as text."""

    def _write(self, task: BatchTask) -> None:
        """Write the lines of an example to standard output."""
        out = terminal.output_of(terminal.standard_output())
        for line in self._lines(task):
            out.write(line + b"\n")
        out.flush()

    @abstractmethod
    def _lines(self, task: BatchTask) -> Iterator[bytes]:
        """Yield the lines of an example, without line ends."""

    def _features(self, task: BatchTask) -> list[NamedFeature]:
        """Return the features of an example; those that a cache has stored have no names."""
        if task.unnamed_batch is not None:
            return feature_names.nameless(task.unnamed_batch)
        return self._namer.of(task.batch, 0)


def tag_of(task: BatchTask) -> bytes:
    """Return the tag of an example, empty for none."""
    batch = task.batch
    return batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes()
