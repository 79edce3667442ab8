"""Open the files of -p and -r, and write the predictions and scores of each batch to them."""

from __future__ import annotations

import numpy as np

from ...api.configuration import Config
from ...data import class_names
from ...data.class_names import Names
from ...reductions.core.contract import BatchTask
from .writer import Writer

OPTIONS = ("predictions", "raw_predictions")


def open_writers(c: Config, names: Names, lists_scores: bool) -> dict[str, Writer]:
    """Return the writers for -p and -r, as far as these are given, by their options.

    `lists_scores` says whether predictions are the scores of all classes.
    """
    o = c.run
    kind = c.reduction.labels
    if c.listing_options.lists_classes or lists_scores:
        kind = "scores"
    writers = {}
    if o.predictions is not None:
        writers["predictions"] = Writer(o.predictions, kind, names.class_list, rounded=o.vw_exact)
    if o.raw_predictions is not None:
        raw = "simple" if c.reduction.labels == "simple" else "raw_scores"
        writers["raw_predictions"] = Writer(o.raw_predictions, raw, description="scores")
    return writers


def write(writers: dict[str, Writer], task: BatchTask, highest_seen: np.ndarray | None = None) -> None:
    """Write a line for each example of a task to each file.

    Parameters
    ----------
    writers : as returned by `open_writers`
    highest_seen : float64[n], the highest class that has a name at each example; None if all classes do
    """
    batch, prediction, class_lists = task.batch, task.prediction, task.class_lists
    if prediction is not None and highest_seen is not None:
        prediction = class_names.hide_unseen(prediction, highest_seen)
    for name, writer in writers.items():
        if writer.kind == "simple":
            writer.write(batch, values=task.raw if name == "raw_predictions" else prediction)
        elif writer.kind == "multiclass":
            writer.write(batch, values=prediction)
        elif name == "predictions" and class_lists is not None:
            if highest_seen is not None:
                highest_of_label = np.repeat(highest_seen, np.diff(class_lists.start))
                class_lists = class_lists._replace(labels=class_names.hide_unseen(class_lists.labels, highest_of_label))
            writer.write(
                batch, scores=class_lists.scores, labels=class_lists.labels, start=class_lists.start,
                has_rest=class_lists.has_rest,
            )  # fmt: skip
        else:
            has_rest = class_lists is not None and class_lists.has_rest and task.scores is class_lists.scores
            writer.write(
                batch, scores=task.scores, labels=task.score_labels, start=task.score_start, has_rest=has_rest
            )  # fmt: skip
