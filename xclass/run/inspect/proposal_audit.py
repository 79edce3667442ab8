"""Write which features propose a class, for `--audit` with learners that have an index of features.

Source    This project's own; the form of the lines is that of VW's audit.
Cost      Examples are processed one at a time, which takes some hundred microseconds each.
Differs   from the audit of weight tables (`readable_model`): an example has two lines for each class that the index
          proposes before the example is learned, none for classes that only trees propose. The first line is the class
          and its score, `label:score`, and the tag; the second has `TAB name:share` for each feature that has a share
          in the score, in falling order. The shares of a class sum to its score. `explainer` has the whole score.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...abilities.find import ability
from ...data import class_names
from ...reductions.core.contract import BatchTask
from .example_audit import ExampleAudit, tag_of


class ProposalAudit(ExampleAudit):
    """Write an audit of the classes that features propose."""

    def _lines(self, task: BatchTask) -> Iterator[bytes]:
        """Yield the two lines of each class that features propose for an example."""
        batch = task.batch
        text_of = {feature.hash: feature.text for feature in self._features(task)}
        names = self._names()
        tag = tag_of(task)
        for proposal in ability(self._record, "inspect").proposals(self._model, batch):
            label = class_names.text_of(proposal.label, names)
            yield f"{label}:{proposal.score:g}".encode() + (b" " + tag if tag else b"")
            order = np.argsort(-proposal.share, kind="stable")
            yield b"".join(
                b"\t%s:%s" % (text_of.get(int(batch.index[f]), b""), f"{proposal.share[f]:g}".encode())
                for f in order.tolist()
                if proposal.share[f] > 0.0
            )
