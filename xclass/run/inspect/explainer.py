"""Write explanations of predictions: `--explain`, and `--audit` of learners that have no weight tables of VW's kind.

    --explain N   for each example its prediction, the first N classes and the label with the shares of the features in
                  their scores, and the paths through trees, as text or as JSON lines (`explain.records`)
    --audit       for each example two lines for each score on the paths and of the first AUDITED classes: `node:score`
                  or `class:score` and the tag; then `TAB name:share` for each share, the largest absolute value first

Cost      Examples are processed one at a time, which takes some milliseconds each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...abilities.find import ability
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...explain import naming, records
from ...explain.records import Explanation, Label, Share
from ...reductions.core.contract import BatchTask
from ...system import output_file
from .inspector import Inspector, tag_of

AUDITED = 10  # classes of which --audit shows the scores
OF_TURN = 3  # most shares that are shown for a turn
JSON_ENDS = (".json", ".jsonl", ".ndjson")


class Explainer(Inspector):
    """Write explanations to a file or to standard output."""

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        super().__init__(config, learner)
        options = config.inspect
        path, form = options.explain_file or output_file.STDOUT, options.explain_format
        self._form = form or ("json" if path.endswith(JSON_ENDS) else "text")
        self.file = output_file.Output(path, "explanations")

    def _before(self, task: BatchTask) -> None:
        assert self.file is not None
        with self.file.explained():
            for line in self._lines_of(task):
                self.file.out.write(line.encode("utf-8", "surrogateescape") + b"\n")
            if self.file.streams:
                self.file.out.flush()

    def _lines_of(self, task: BatchTask) -> Iterator[str]:
        """Yield the lines of an example, without line ends."""
        options = self._config.inspect
        explained = self._explanation(task, options.explain).limited(options.explain_features, OF_TURN)
        tag, line = tag_of(task).decode("utf-8", "surrogateescape"), int(task.batch.line[0])
        if self._form == "json":
            yield records.as_json(explained, line, tag)
        else:
            yield from records.lines_of(explained, self._form == "parts", line, tag)

    def _explanation(self, task: BatchTask, k: int) -> Explanation:
        """Return the explanation of an example with k classes."""
        batch, record = naming.without_unknown_label(task.batch), self._config.reduction
        named = naming.naming_of(self._learner.names.class_list, record.labels != "simple")
        reasons = ability(record, "describe").explain(self._model, batch, k)
        return naming.explanation(reasons, batch, self._features(task), named)


class ShareAudit(Explainer):
    """Write the shares of every score for `--audit`."""

    def _lines_of(self, task: BatchTask) -> Iterator[str]:
        """Yield the two lines of each score of an example; turns that paths share are written once."""
        explained, tag = self._explanation(task, AUDITED), tag_of(task).decode("utf-8", "surrogateescape")
        notes = getattr(ability(self._config.reduction, "describe"), "node_notes", None)
        note = notes(self._model) if notes is not None else None
        written = set()
        for of_class in explained.classes:
            for turn in of_class.path:
                if turn.score is not None and turn.node not in written:
                    written.add(turn.node)
                    more = note[int(turn.node)] if note else ""
                    yield from _two_lines(turn.node, turn.score, tag, turn.shares, more)
        for of_class in explained.classes:
            if of_class.score is not None:
                yield from _two_lines(of_class.label, of_class.score, tag, of_class.shares)


def _two_lines(name: Label, score: float, tag: str, shares: tuple[Share, ...], note: str = "") -> Iterator[str]:
    yield f"{name}:{score:g}{note}" + (f" {tag}" if tag else "")
    yield "".join(f"\t{share.name}:{share.share:g}" for share in shares)
