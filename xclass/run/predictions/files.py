"""The files of -p and -r: which of them a run writes, and what it has found of a batch goes into which."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data import class_names
from ...reductions.core.contract import Work
from .writer import Writer


def open_writers(c: Any, names: Any) -> dict[str, Writer]:
    """Those asked for, by "predictions" and "raw". `c` : the configuration; `names` : of the classes"""
    o = c.driver
    kind = c.reduction.labels
    if c.answers.listed or c.oaa.scores:
        kind = "scores"
    writers = {}
    if o.predictions is not None:
        writers["predictions"] = Writer(o.predictions, kind, names.shown, rounded=o.vw_exact)
    if o.raw_predictions is not None:
        raw = "simple" if c.reduction.labels == "simple" else "raw_scores"
        writers["raw"] = Writer(o.raw_predictions, raw)
    return writers


def write(writers: dict[str, Writer], work: Work, met: np.ndarray | None = None) -> None:
    """A line for every example of a batch in each of them; classes beyond `met` (float64[n]) get no name."""
    batch = work.batch
    for name, writer in writers.items():
        if writer.kind == "simple":
            writer.write(batch, values=work.raw if name == "raw" else work.prediction)
        elif writer.kind == "multiclass":
            writer.write(batch, values=work.prediction if met is None else class_names.shown(work.prediction, met))
        elif name == "predictions":
            listing = work.listing
            if met is not None:
                each = np.repeat(met, np.diff(listing.start))
                listing = listing._replace(labels=class_names.shown(listing.labels, each))
            writer.write(batch, **listing._asdict())
        else:
            writer.write(batch, scores=work.scores, labels=work.score_labels, start=work.score_start)
