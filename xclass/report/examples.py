"""Read the examples that the report shows once more, and predict and explain each of them alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from ..api import files
from ..api.learner import Learner
from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..errors import DataError, XclassWarning
from ..reductions.core.spec import Wanted
from ..text import reader
from . import outcomes
from .outcomes import Outcomes

MOST_TEXT = 300  # characters of a line that are shown
SHARES = 6  # features that are listed for a class


class Listed(NamedTuple):
    label: int
    probability: float


class Reason(NamedTuple):
    """Hold what a score is the sum of, for one class of an example."""

    label: int
    score: float | None  # None if the class was not compared
    shares: list[tuple[str, float]]  # the largest ones: features, and what each adds to the score
    instead: list[tuple[str, float]]  # of the answer: what speaks for it most, rather than for the label


class Shown(NamedTuple):
    """Hold an example that the report shows."""

    place: str  # file and line
    text: str  # the line, perhaps cut
    label: int
    answer: int
    answer_probability: float  # NaN if not known
    listed: list[Listed]  # the most probable classes
    reasons: list[Reason]  # of the answer and of the label, if the example was to be explained


def most_uncertain(tested: Outcomes, most: int) -> list[int]:
    """Return the numbers of the examples whose answers have the lowest probability; none without probabilities."""
    known = np.flatnonzero(~np.isnan(tested.answer_probability))
    order = np.lexsort((tested.row[known], tested.answer_probability[known]))
    numbers: list[int] = tested.row[known[order[:most]]].tolist()
    return numbers


def read(
    learner: Learner,
    source: reader.Options,
    tested: Outcomes,
    chosen: Collection[int],
    explained: Collection[int],
) -> dict[int, Shown]:
    """Return the chosen examples by their number; the prediction of some is explained."""
    wanted = outcomes.wanted(learner.core)
    numbers = np.array(sorted(chosen), np.int64)
    shown: dict[int, Shown] = {}
    seen = 0
    for path, batch in files.batches(learner.core, source):
        here = numbers[(numbers >= seen) & (numbers < seen + batch.n)]
        for number in here.tolist():
            row = np.array([number - seen])
            line = f"{path if len(source.data) > 1 else os.path.basename(path)}:{int(batch.line[row[0]])}"
            own = batch_ops.pick([(batch, row)], lines=True)
            shown[number] = _shown(learner, wanted, own, line, tested, number, number in explained)
        seen += batch.n
        if len(shown) == len(numbers):
            break
    if len(shown) < len(numbers):
        raise DataError(f"{' '.join(source.data)}: the data have changed while the report was made; make it again")
    return shown


def _shown(
    learner: Learner,
    wanted: Wanted,
    batch: Batch,
    place: str,
    tested: Outcomes,
    number: int,
    is_explained: bool,
) -> Shown:
    at = int(np.searchsorted(tested.row, number))
    (task,) = learner.core.predict([batch], wanted)
    lists = task.class_lists
    listed = []
    if lists is not None:
        pairs = zip(lists.labels.tolist(), lists.scores.tolist(), strict=True)
        listed = [Listed(label, float(p)) for label, p in pairs if label > 0]
    text = batch.text.tobytes().decode("utf-8", "surrogateescape").rstrip("\r\n")
    return Shown(
        place=place,
        text=text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " …",
        label=int(tested.label[at]),
        answer=int(tested.answer[at]),
        answer_probability=float(tested.answer_probability[at]),
        listed=listed,
        reasons=_reasons(learner, batch) if is_explained else [],
    )


def _number(learner: Learner, label: Any) -> int:
    return learner.core.names.names.index(label) + 1 if isinstance(label, str) else int(label)  # without a name


def _reasons(learner: Learner, batch: Batch) -> list[Reason]:
    """Return what the scores of the answer and of the label of the only example of a batch are sums of."""
    label, names = int(batch.label[0]), learner.core.names.class_list
    y = [label if names is None else class_names.name_of(label, names)]
    with warnings.catch_warnings():  # the report counts lines without a known feature
        warnings.simplefilter("ignore", XclassWarning)
        (explanation,) = learner.explain_many(batch, k=1, y=y)
    of_class = [{share.name: share.share for share in one.shares} for one in explanation.classes]
    rather = dict(of_class[0]) if of_class else {}
    for name, share in of_class[1].items() if len(of_class) > 1 else ():
        rather[name] = rather.get(name, 0.0) - share
    instead = sorted(((name, share) for name, share in rather.items() if share > 0), key=lambda pair: -pair[1])
    return [
        Reason(
            _number(learner, one.label),
            one.score,
            list(shares.items())[:SHARES],
            instead[:SHARES] if number == 0 else [],
        )
        for number, (one, shares) in enumerate(zip(explanation.classes, of_class, strict=True))
    ]
