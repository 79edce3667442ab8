"""Write which features propose a class, for `--audit` with learners that have an index of features.

Source    This project's own; the form of the lines is that of VW's audit.
Cost      Examples are processed one at a time, which takes some hundred microseconds each.
Differs   from the audit of weight tables (`readable_model`): an example has two lines for each class that the index
          proposes before the example is learned, none for classes that only trees propose. The first line is the class
          and its score, `label:score`, and the tag; the second has `TAB name:share` for each feature that has a share
          in the score, in falling order. The shares of a class sum to its score.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...api.configuration import Config, feature_bits
from ...reductions.core.base import ExplainsProposals
from ...reductions.core.contract import BatchTask
from ...system import terminal
from ...text.text_format import TextFormat
from . import feature_names


class ProposalAudit:
    """Write an audit of the classes that features propose; it takes the place of an `Inspector` in a run.

    Parameters
    ----------
    config : options of the run
    model : the learner
    names : returns the names of the classes known so far, or None if labels are numbers

    Attributes
    ----------
    one_by_one : True, because the learner must get one example at a time
    """

    one_by_one = True

    def __init__(self, config: Config, model: ExplainsProposals, names: Callable[[], Sequence[str] | None]) -> None:
        self._model = model
        self._names = names
        self._namer = feature_names.Namer(config.parser, config.features, config.interactions, feature_bits(config))

    def read_from(self, text: TextFormat) -> None:
        """Find the names of features in text of this format."""
        self._namer.format = text

    def attach(self, model: ExplainsProposals) -> None:
        """Inspect this learner from now on."""
        self._model = model

    def detach(self) -> None:
        """Drop the reference to the learner, to free its memory, until `attach` is called."""
        del self._model

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        """Return one stage that writes the audit of an example and then runs the stages of the learner."""

        def together(task: BatchTask) -> None:
            out = terminal.output_of(sys.stdout.buffer)
            for line in self._lines(task):
                out.write(line + b"\n")
            out.flush()
            for stage in stages:
                stage(task)

        return [together]

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write nothing at the end of a run; `Inspector` writes models as text."""

    def _lines(self, task: BatchTask) -> Iterator[bytes]:
        """Yield the two lines of each class that features propose for an example."""
        batch = task.batch
        features = (
            self._namer.of(batch, 0) if task.unnamed_batch is None else feature_names.nameless(task.unnamed_batch)
        )
        text_of = {feature.hash: feature.text for feature in features}
        names = self._names()
        tag = batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes()
        for proposal in self._model.proposals(batch):
            label = str(proposal.label) if names is None else names[proposal.label - 1]
            yield f"{label}:{proposal.score:g}".encode() + (b" " + tag if tag else b"")
            order = np.argsort(-proposal.share, kind="stable")
            yield b"".join(
                b"\t%s:%s" % (text_of.get(int(batch.index[f]), b""), f"{proposal.share[f]:g}".encode())
                for f in order.tolist()
                if proposal.share[f] > 0.0
            )
