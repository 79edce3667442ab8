"""Write weights and explanations as text, with the names of features; a base of the objects that do so in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...abilities.find import ability
from ...api.configuration import Config, feature_bits
from ...api.learner_core import LearnerCore
from ...explain import feature_names
from ...explain.feature_names import NamedFeature
from ...reductions.core.contract import BatchTask
from ...system import output_file


class Inspector:
    """Look at a learner during a run, and write what it shows."""

    one_by_one = True  # whether the learner must get one example at a time
    file: output_file.Output | None = None  # file that is written during the run, None if there is none

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        self._config, self._learner = config, learner
        self.namer = feature_names.Namer(config.parser, config.features, config.interactions, feature_bits(config))

    @property
    def _model(self) -> Any:
        return self._learner.reduction

    @property
    def _describe(self) -> Any:
        return ability(self._config.reduction, "describe")

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        """Return one stage that looks at a task before and after the stages of the learner."""

        def together(task: BatchTask) -> None:
            self._before(task)
            for stage in stages:
                stage(task)
            self._after(task)

        return [together]

    def _before(self, task: BatchTask) -> None:
        """Look at a task that the learner has not seen yet."""

    def _after(self, task: BatchTask) -> None:
        """Look at a task that has passed the stages of the learner."""

    def _features(self, task: BatchTask) -> list[NamedFeature]:
        """Return the features of the only example of a task; those that a cache has stored have no names."""
        if task.unnamed_batch is not None:
            return feature_names.nameless(task.unnamed_batch)
        return self.namer.of(task.batch, 0)

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write the files of --readable_model and --invert_hash at the end of the run."""
        options = self._config.inspect
        for path, named in ((options.readable_model, False), (options.invert_hash, True)):
            if path is not None:
                with output_file.opened(path, "the model as text") as file:
                    for line in self._header(counters, stored):
                        file.write(line.encode("utf-8", "surrogateescape") + b"\n")
                    file.writelines(self._lines(named))

    def _header(self, counters: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
        """Yield the lines before the weights."""
        raise NotImplementedError

    def _lines(self, named: bool) -> Iterator[bytes]:
        """Yield the lines of the weights, with line ends; `named` says whether with names of features."""
        raise NotImplementedError


def tag_of(task: BatchTask) -> bytes:
    """Return the tag of the only example of a task, empty for none."""
    batch = task.batch
    return batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes()
