"""Learners for tests of what a learner does: made by `xclass.Learner`, with what a run of the command would show.

    with xclass.Learner("cpt", 17, bits=20) as model:
        shown = go_through(model, text, top_k=3)
    shown.lists[0]     # {17: 0.61, 4: 0.2, 9: 0.05, 0: 0.14}, before the first example was learned from

Use plain `model.learn`, `predict`, `top_k` and `probabilities` where they give what the test needs.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from xclass.api.inputs import Inputs
from xclass.api.learner import Learner
from xclass.reductions.core import probabilities
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.spec import Wanted


class Shown(NamedTuple):
    """What came of a text."""

    predictions: list[float]  # of every example, made before it was learned from
    lists: list[dict[int, float]]  # label -> probability, in the order of `-p`; 0 is all others; empty if not asked for
    loss: float  # the sum over the examples, each times its weight
    summary: str  # the learner's lines of the summary; `fact` takes a number from them
    notes: list[str]


def go_through(model: Learner, text: str, learn: bool = True, **answers) -> Shown:
    """Take text through the stages of a learner, learning from it or only predicting.

    Parameters
    ----------
    answers : fields of `probabilities.Options`, such as `top_k=3`; they hold from here on
    """
    if answers:
        model.reduction.want(Wanted(answers=probabilities.Options(**answers)))
    batch = Inputs(model.config, model.names, model.label_range).batch(text, learn=learn)
    tasks: list[BatchTask] = []
    for task in model.tasks(batch, learn, model.clock):
        for stage in model.stages:
            stage(task)
        if learn:
            model.note(task)
            model.progress.count(task)
        tasks.append(task)
    predictions = [p for task in tasks if task.prediction is not None for p in task.prediction.tolist()]
    loss = sum(float(np.sum(task.loss)) for task in tasks if task.loss is not None)
    lists = [one for task in tasks for one in lists_of(task)]
    return Shown(predictions, lists, loss, summary_of(model), [note for task in tasks for note in task.notes])


def lists_of(task: BatchTask) -> list[dict[int, float]]:
    """Return what `-p` would write of every example in place of a class: its labels and their probabilities."""
    if task.listing is None:
        return []
    scores, labels, start = (part.tolist() for part in task.listing)
    return [dict(zip(labels[low:high], scores[low:high], strict=True)) for low, high in itertools.pairwise(start)]


def summary_of(model: Learner) -> str:
    """Return the learner's lines of a run's summary."""
    return "".join(f"{line}\n" for line in model.reduction.summary())


def fact(text: str, name: str) -> float:
    """Return the number of a summary that a name has."""
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))
