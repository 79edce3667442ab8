"""Write explanations of predictions, `--explain N`, and define the base of what writes weights in a run.

For each example an explanation is its prediction, the first N classes and the label with the shares of the features in
their scores, and the paths through trees, as text or as JSON lines (`explain.records`).

Cost      Examples are processed one at a time, which takes some milliseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...abilities import find
from ...api.configuration import Config, feature_bits
from ...api.learner_core import LearnerCore
from ...explain import feature_names, records
from ...explain.feature_names import NamedFeature
from ...reductions.core.contract import BatchTask
from ...system import output_file

OF_TURN = 3  # most shares that are shown for a turn
JSON_ENDS = (".json", ".jsonl", ".ndjson")


class Inspector:
    """Look at a learner during a run, and write what it shows."""

    one_by_one = True  # whether the learner must get one example at a time
    file: output_file.OutputFile | None = None  # file that is written during the run, None if there is none

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        self._config, self._learner = config, learner
        self.namer = feature_names.Namer(config.parser, config.features, config.interactions, feature_bits(config))

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
        if task.read.whole is not None:
            return feature_names.nameless(task.read.whole)
        return self.namer.of(task.batch, 0)

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write the files that are written at the end of the run."""


def tag_of(task: BatchTask) -> bytes:
    """Return the tag of the only example of a task, empty for none."""
    batch = task.batch
    return batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes()


class Explainer(Inspector):
    """Write explanations to a file or to standard output."""

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        super().__init__(config, learner)
        options = config.inspect
        path, form = options.explain_file or output_file.STDOUT, options.explain_format
        self._form = form or ("json" if path.endswith(JSON_ENDS) else "text")
        self.file = output_file.OutputFile(path, "explanations")

    def _before(self, task: BatchTask) -> None:
        assert self.file is not None
        with self.file.explained():
            for line in self._lines_of(task):
                self.file.out.write(line.encode("utf-8", "surrogateescape") + b"\n")
            if self.file.streams:
                self.file.out.flush()

    def _lines_of(self, task: BatchTask) -> Iterator[str]:
        """Yield the lines of an example, without line ends."""
        options, record = self._config.inspect, self._config.reduction
        naming = records.naming_of(self._learner.names.class_list, record.labels != "simple")
        explained = find.explanation(
            record, self._learner.reduction, task.batch, self._features(task), naming, options.explain
        ).limited(options.explain_features, OF_TURN)
        tag, line = tag_of(task).decode("utf-8", "surrogateescape"), int(task.batch.line[0])
        if self._form == "json":
            yield records.as_json(explained, line, tag)
        else:
            yield from records.lines_of(explained, self._form == "parts", line, tag)
