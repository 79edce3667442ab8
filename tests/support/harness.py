"""Use a reduction without a run: parse text into a batch, pass it through the learner's stages, return the results."""

import io
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from xclass.api import configuration
from xclass.api.learner_core import LearnerCore
from xclass.cli import arguments
from xclass.cli import command as cli
from xclass.cli.declared import resolved
from xclass.data import batch_ops, interactions
from xclass.data.batch import Batch
from xclass.kernels import jit
from xclass.options import resolve as config
from xclass.reductions.core import base
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.spec import LearnerSpec
from xclass.text import parser, reader


class Example(NamedTuple):
    """Hold one example in the form that oracles expect."""

    features: list[tuple[int, np.float32]]
    label: int | None
    weight: float


def configure(*words) -> config.Config:
    """Return the value of every option for a command line."""
    groups, reductions = cli.option_groups()
    given = arguments.read(groups, reductions, [str(word) for word in words])
    return resolved(given, None)


def spec_of(settled: config.Config) -> LearnerSpec:
    """Return the spec that the reduction of a command line is built from."""
    return configuration.spec_of(settled)


def learner_of(settled: config.Config, **changed) -> base.Reduction:
    """Return the reduction of a command line, built as in a run; `changed` are fields of `LearnerUse` to replace."""
    jit.activate()
    learner = LearnerCore(settled.with_values({}, replace(settled.use, **changed)))
    reduction, learner._reduction = learner.reduction, None  # a learner that is freed would close its reduction
    return reduction


def batch_of(settled: config.Config, text: str) -> Batch:
    """Return all examples of a text as one batch."""
    labels = configuration.label_range(settled)
    content = io.BytesIO(text.encode())
    batches = reader.Reader(
        settled.reader, parser.Parser(settled.parser, settled.learner.bits, settled.reduction.labels, *labels),
        block_bytes=1 << 20, stream=content,
    )  # fmt: skip
    (batch,) = batches
    crosser = interactions.Crosser(settled.interactions)
    if crosser.active:
        (batch,) = crosser.cross(batch)
    return batch


def batch_of_rows(rows: Sequence[Collection[tuple[int, float]]]) -> Batch:
    """Return a batch of examples without labels that have these (index, value) pairs."""
    out = batch_ops.empty(len(rows), sum(map(len, rows)), 0)
    at = 0
    for i, row in enumerate(rows):
        for out.index[at], out.value[at] in row:
            at += 1
        out.start[i + 1] = at
    return out


def examples_of(batch: Batch) -> list[Example]:
    """Return the examples of a batch as a list."""
    examples = []
    for i in range(batch.n):
        part = slice(batch.start[i], batch.start[i + 1])
        features = list(zip(batch.index[part].tolist(), batch.value[part], strict=True))
        label = None if np.isnan(batch.label[i]) else int(batch.label[i])
        examples.append(Example(features, label, float(batch.weight[i])))
    return examples


def go_through_stages(learner, batch: Batch, learn: bool = True) -> tuple[BatchTask, object]:
    """Pass a batch through a learner's stages; return the task, and its plan if the reduction makes one, else None."""
    weight = np.where(np.isnan(batch.label), 0.0, batch.weight.astype(np.float64))
    task = BatchTask(batch, learn, np.add.accumulate(weight))
    if learn:
        learner.survey(task, vw_exact=hasattr(learner, "rule") and not learner.rule.checked)
    plans = []
    if hasattr(learner, "_finish"):
        finish = type(learner)._finish
        learner._finish = lambda task: (plans.append(task.plan), finish(learner, task))
    try:
        for stage in learner.stages:
            stage(task)
    finally:
        learner.__dict__.pop("_finish", None)
    return task, plans[0] if plans else None


def learned(settled: config.Config, text: str) -> tuple[base.Reduction, Batch, BatchTask, object]:
    """Return a closed learner that has learned a text as one batch, the batch, and what `go_through_stages` returns."""
    learner = learner_of(settled)
    try:
        batch = batch_of(settled, text)
        return learner, batch, *go_through_stages(learner, batch)
    finally:
        learner.close()
