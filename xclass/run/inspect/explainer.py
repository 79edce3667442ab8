"""Write explanations of predictions: `--explain`, and `--audit` of learners that have no weight tables of VW's kind.

    --explain N   for each example its prediction, the first N classes and the label with the shares of the features in
                  their scores, and the paths through trees, as text or as JSON lines (`explain.records`)
    --audit       for each example two lines for each score on the paths and of the first AUDITED classes: `node:score`
                  or `class:score` and the tag; then `TAB name:share` for each share, the largest absolute value first

Cost      Examples are processed one at a time, which takes some milliseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...abilities.find import ability
from ...api.configuration import Config
from ...explain import naming, records
from ...explain.records import Explanation, Label, Share
from ...reductions.core.contract import BatchTask
from ...system import output_file
from .example_audit import ExampleAudit, tag_of
from .explain_options import Options

AUDITED = 10  # classes of which --audit shows the scores
OF_TURN = 3  # most shares that are shown for a turn
JSON_ENDS = (".json", ".jsonl", ".ndjson")


class Explainer(ExampleAudit):
    """Write explanations to a file or to standard output; the parameters are those of `ExampleAudit`.

    Attributes
    ----------
    file : the file, see `output_file.Output`
    """

    def __init__(self, config: Config, model: Any, names: Callable[[], Sequence[str] | None]) -> None:
        super().__init__(config, model, names)
        self._multiclass = config.reduction.labels == "multiclass"
        self._options: Options = config.explainer
        path = self._options.explain_file or output_file.STDOUT
        chosen = self._options.explain_format
        self._json = chosen == "json" if chosen else path.endswith(JSON_ENDS)
        self.file = output_file.Output(path, "explanations")

    def _write(self, task: BatchTask) -> None:
        with self.file.explained():
            for line in self._lines(task):
                self.file.out.write(line + b"\n")
            if self.file.streams:
                self.file.out.flush()

    def _lines(self, task: BatchTask) -> Iterator[bytes]:
        explained = self._explanation(task, self._options.explain).limited(self._options.explain_features, OF_TURN)
        tag, line = tag_of(task).decode("utf-8", "surrogateescape"), int(task.batch.line[0])
        if self._json:
            yield records.as_json(explained, line, tag).encode()
            return
        for text in records.as_text(explained, line, tag):
            yield text.encode("utf-8", "surrogateescape")

    def _explanation(self, task: BatchTask, k: int) -> Explanation:
        """Return the explanation of an example with k classes."""
        batch = naming.without_unknown_label(task.batch)
        named = naming.naming_of(self._names(), self._multiclass)
        return naming.explanation(
            ability(self._record, "explain").explain(self._model, batch, k), batch, self._features(task), named
        )


class ShareAudit(ExampleAudit):
    """Write the shares of every score for `--audit`."""

    def _lines(self, task: BatchTask) -> Iterator[bytes]:
        """Yield the two lines of each score of an example; turns that paths share are written once."""
        reasons = ability(self._record, "explain").explain(
            self._model, naming.without_unknown_label(task.batch), AUDITED
        )
        named = naming.naming_of(self._names(), True)
        explained = naming.explanation(reasons, task.batch, self._features(task), named)
        tag = tag_of(task)
        written = set()
        for of_class in explained.classes:
            for turn in of_class.path:
                if turn.score is not None and turn.node not in written:
                    written.add(turn.node)
                    yield from _two_lines(turn.node, turn.score, tag, turn.shares)
        for of_class in explained.classes:
            if of_class.score is not None:
                yield from _two_lines(of_class.label, of_class.score, tag, of_class.shares)


def _two_lines(name: Label, score: float, tag: bytes, shares: tuple[Share, ...]) -> Iterator[bytes]:
    yield f"{name}:{score:g}".encode("utf-8", "surrogateescape") + (b" " + tag if tag else b"")
    yield "".join(f"\t{share.name}:{share.share:g}" for share in shares).encode("utf-8", "surrogateescape")
