"""Get from an `xclass.Learner`, in a test, everything that a run of the command would show.

    with xclass.Learner("cpt", 17, bits=20) as model:
        shown = go_through(model, text, top_k=3)
    shown.lists[0]     # {17: 0.61, 4: 0.2, 9: 0.05, 0: 0.14}, before the first example was learned from

If `model.learn`, `predict`, `top_k` and `probabilities` return what a test needs, it should use these instead.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xclass.abilities import find
from xclass.api import configuration
from xclass.api.inputs import Inputs
from xclass.api.learner import Learner
from xclass.api.learner_core import LearnerCore
from xclass.api.model_contents import ModelContents
from xclass.kernels import jit
from xclass.reductions.core import probabilities
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.spec import LearnerUse


class Results(NamedTuple):
    """Hold the results of passing a text through a learner."""

    predictions: list[float]  # prediction of each example before it was learned from
    lists: list[dict[int, float]]  # per example label -> probability, in the order of `-p`; 0 stands for all others
    loss: float  # sum of the losses of the examples times their weights
    summary: str  # the learner's lines of the summary; `fact` extracts a number from them
    notes: list[str]  # messages about the examples
    scores: list[dict[int, float]]  # scores of classes, candidates or routers, in the order of `-r`; see `with_scores`
    skipped_steps: list[int]  # numbers, from 1, of the examples whose update was skipped, see `binary.finite`


def with_scores(reduction: str, classes: int, **options) -> Learner:
    """Return a learner that returns the scores behind its predictions, as with `-r`."""
    jit.activate(hide_scipy=False)
    return Learner.of(LearnerCore(configuration.configured(reduction, classes, options, LearnerUse(scores=True))))


def for_passes(passes: int, reduction: str, classes: int | None, **options) -> Learner:
    """Return a new learner whose defaults suit a number of passes, as those of a run with `--passes` do."""
    jit.activate(hide_scipy=False)
    return Learner.of(LearnerCore(configuration.configured(reduction, classes, options, LearnerUse(passes=passes))))


def go_through(model: Learner, text: str, learn: bool = True, **listing_options) -> Results:
    """Pass text through the stages of a learner.

    The text is also the preview of a learner that needs to see examples before it learns from any.

    Parameters
    ----------
    model : the learner
    text : lines in VW's format
    learn : whether to learn from the examples, and not only to predict them
    answers : fields of `probabilities.ListingOptions`, such as `top_k=3`; they stay set for later calls, and the sums
        for the summary restart at 0
    """
    if listing_options:
        model.core.reduction.want(
            replace(model.core.spec, listing_options=probabilities.ListingOptions(**listing_options))
        )
    (batch,) = Inputs(model.core).batches(text, learn=learn)
    core = model.core
    if learn and model.preview_size is not None:
        for task in core.tasks(batch, True, core.clock):
            if not core.reduction.preview(task):
                break
        core.reduction.end_preview()
        core.preparation.forget_namespaces()
    tasks: list[BatchTask] = []
    for task in core.tasks(batch, learn, core.clock):
        for stage in core.reduction.stages:
            stage(task)
        if learn:
            core.record(task)
            core.progress.count(task)
        tasks.append(task)
    predictions = [p for task in tasks if task.prediction is not None for p in task.prediction.tolist()]
    loss = sum(float(np.sum(task.loss)) for task in tasks if task.loss is not None)
    lists = [listing for task in tasks if task.class_lists is not None for listing in dicts_of(*task.class_lists[:3])]
    scores = [
        listing for task in tasks if task.scored is not None
        for listing in dicts_of(*task.scored[:3])
    ]  # fmt: skip
    notes = [note for task in tasks for note in task.notes]
    skipped_steps = np.flatnonzero(np.concatenate([task.guard.skipped for task in tasks])) + 1
    return Results(predictions, lists, loss, summary_of(model), notes, scores, skipped_steps.tolist())


def dicts_of(scores: np.ndarray, labels: np.ndarray, start: np.ndarray) -> list[dict[int, float]]:
    """Return label -> score for each example; example i has the scores `start[i]:start[i + 1]`."""
    pairs = list(zip(labels.tolist(), scores.tolist(), strict=True))
    return [dict(pairs[low:high]) for low, high in itertools.pairwise(start.tolist())]


def trained(reduction: str, classes: int | None, text: str, **options) -> Learner:
    """Return a new learner that has learned from a text, including the end of the pass."""
    model = Learner(reduction, classes, **options)
    model.learn_many(text)
    model.end_pass()
    return model


def same_contents(first: Learner, second: Learner) -> bool:
    """Return whether two learners would save the same model."""
    return state_of(first) == state_of(second)


def same_arrays(first: Learner, second: Learner) -> bool:
    """Return whether two learners would save the same arrays; their options may differ."""
    return state_of(first).arrays == state_of(second).arrays


def summary_of(model: Learner | LearnerCore) -> str:
    """Return the lines that the learner adds to the summary of a run."""
    core = model.core if isinstance(model, Learner) else model
    return "".join(f"{line}\n" for line in find.summary(core.config.reduction, core.reduction))


def state_of(model: Learner) -> ModelContents:
    """Return the contents of a model file in a form that can be compared by `==`."""
    contents = model.core.contents()
    arrays = {name: np.asarray(array) for name, array in contents.arrays.items()}
    return contents._replace(
        arrays={name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
    )


def fact(text: str, name: str) -> float:
    """Return the number after `name =` in a summary."""
    return float(text.split(name + " = ")[1].split()[0].rstrip(",;"))
