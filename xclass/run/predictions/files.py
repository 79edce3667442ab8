"""The files of -p and -r: which of them a run writes, and what it has found of a batch goes into which."""

from __future__ import annotations

import numpy as np

from ...api.configuration import Config
from ...data import class_names
from ...data.class_names import Names
from ...reductions.core.contract import BatchTask
from .writer import Writer


def open_writers(c: Config, names: Names, lists_scores: bool) -> dict[str, Writer]:
    """Return the writers asked for, by "predictions" and "raw".

    Parameters
    ----------
    c : the configuration
    names : of the classes
    lists_scores : whether predictions are the scores of all classes
    """
    o = c.driver
    kind = c.reduction.labels
    if c.answers.listed or lists_scores:
        kind = "scores"
    writers = {}
    if o.predictions is not None:
        writers["predictions"] = Writer(o.predictions, kind, names.shown, rounded=o.vw_exact)
    if o.raw_predictions is not None:
        raw = "simple" if c.reduction.labels == "simple" else "raw_scores"
        writers["raw"] = Writer(o.raw_predictions, raw)
    return writers


def write(writers: dict[str, Writer], task: BatchTask, met: np.ndarray | None = None) -> None:
    """A line for every example of a batch in each of them; classes beyond `met` (float64[n]) get no name."""
    batch, prediction, listing = task.batch, task.prediction, task.listing
    if prediction is not None and met is not None:
        prediction = class_names.shown(prediction, met)
    for name, writer in writers.items():
        if writer.kind == "simple":
            writer.write(batch, values=task.raw if name == "raw" else prediction)
        elif writer.kind == "multiclass":
            writer.write(batch, values=prediction)
        elif name == "predictions" and listing is not None:
            if met is not None:
                each = np.repeat(met, np.diff(listing.start))
                listing = listing._replace(labels=class_names.shown(listing.labels, each))
            writer.write(batch, scores=listing.scores, labels=listing.labels, start=listing.start)
        else:
            writer.write(batch, scores=task.scores, labels=task.score_labels, start=task.score_start)
