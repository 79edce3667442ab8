"""Learners for tests of what a learner does: made by `xclass.Learner`, with what a run of the command would show.

    with xclass.Learner("cpt", 17, bits=20) as model:
        shown = go_through(model, text, top_k=3)
    shown.lists[0]     # {17: 0.61, 4: 0.2, 9: 0.05, 0: 0.14}, before the first example was learned from

Use plain `model.learn`, `predict`, `top_k` and `probabilities` where they give what the test needs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xclass.api import configuration
from xclass.api.configuration import Purpose
from xclass.api.inputs import Inputs
from xclass.api.learner import Learner
from xclass.api.model_contents import Contents
from xclass.reductions.core import probabilities
from xclass.reductions.core.contract import BatchTask


class Shown(NamedTuple):
    """What came of a text."""

    predictions: list[float]  # of every example, made before it was learned from
    lists: list[dict[int, float]]  # label -> probability, in the order of `-p`; 0 is all others; empty if not asked for
    loss: float  # the sum over the examples, each times its weight
    summary: str  # the learner's lines of the summary; `fact` takes a number from them
    notes: list[str]
    scores: list[dict[int, float]]  # of classes, candidates or routers, in the order of `-r`; see `with_scores`
    untaken: list[int]  # numbers, from 1, of the examples from which a step was not taken; see `finite`


def with_scores(reduction: str, classes: int, **options) -> Learner:
    """Return a learner that shows the scores behind its predictions, as `-r` asks for them."""
    return Learner.from_config(configuration.configured(reduction, classes, options), Purpose(scores=True))


def go_through(model: Learner, text: str, learn: bool = True, **answers) -> Shown:
    """Take text through the stages of a learner, learning from it or only predicting.

    A learner that wants to see examples before it learns from any is shown those of the text.

    Parameters
    ----------
    answers : fields of `probabilities.Options`, such as `top_k=3`; they hold from here on, and sums for the summary
        begin anew
    """
    if answers:
        model.reduction.want(replace(model._spec.wanted, answers=probabilities.Options(**answers)))
    batch = Inputs(model.config, model.names, model.label_range).batch(text, learn=learn)
    if learn and model.preview_size is not None:
        model.preview(batch)
        model.learn("")
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
    lists = [one for task in tasks if task.listing is not None for one in dicts_of(*task.listing[:3])]
    scores = [
        one for task in tasks if task.scores is not None
        for one in dicts_of(task.scores, task.score_labels, task.score_start)
    ]  # fmt: skip
    notes = [note for task in tasks for note in task.notes]
    untaken = np.flatnonzero(np.concatenate([task.missed for task in tasks])) + 1
    return Shown(predictions, lists, loss, summary_of(model), notes, scores, untaken.tolist())


def dicts_of(scores: np.ndarray, labels: np.ndarray, start: np.ndarray) -> list[dict[int, float]]:
    """Return the scores of every example by their labels; those of example i are `start[i]:start[i + 1]`."""
    pairs = list(zip(labels.tolist(), scores.tolist(), strict=True))
    return [dict(pairs[low:high]) for low, high in itertools.pairwise(start.tolist())]


def trained(reduction: str, classes: int | None, text: str, **options) -> Learner:
    """Return a new learner that has learned from text, to the end of the data."""
    model = Learner(reduction, classes, **options)
    model.learn(text)
    model.end_pass()
    return model


def same_contents(first: Learner, second: Learner) -> bool:
    """Tell whether two learners would write the same model."""
    return state_of(first) == state_of(second)


def same_arrays(first: Learner, second: Learner) -> bool:
    """Tell whether two learners have learned the same, whatever their options are."""
    return state_of(first).arrays == state_of(second).arrays


def summary_of(model: Learner) -> str:
    """Return the learner's lines of a run's summary."""
    return "".join(f"{line}\n" for line in model.reduction.summary())


def state_of(model: Learner) -> Contents:
    """Return all that a model file would hold; equal for two learners whose models are the same byte for byte."""
    kept = model.contents()
    arrays = {name: np.asarray(one) for name, one in kept.arrays.items()}
    return kept._replace(arrays={name: (one.dtype.str, one.shape, one.tobytes()) for name, one in arrays.items()})


def fact(text: str, name: str) -> float:
    """Return the number of a summary that a name has."""
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))
