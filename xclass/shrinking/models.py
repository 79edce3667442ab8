"""Shrink a model: keep what predictions need, without the least salient weights, and the others in fewer bits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..api import configuration, files, model_contents
from ..api.configuration import LearnerUse
from ..api.learner import load
from ..api.learner_core import LearnerCore
from ..api.model_contents import Contents
from ..api.progress import Progress
from ..array_types import Bools
from ..errors import ModelError, UsageError
from ..kernels import jit
from ..model import compact_columns
from ..model.stored_arrays import Stored
from ..reductions.core.spec import Wanted
from ..system import thread_limit
from ..text import reader
from . import pruning
from .pruning import Table

DEFAULT_PART = 4  # without other wishes, the new file has at most this part of the bytes of the old one, unless
DEFAULT_KEEP = 0.25  # fewer weights than this share would be kept
ENTRY_BYTES = 1000  # most bytes of the entries of a table in the header
WIDTHS = (16, 8, 4)  # bits of a weight, the best first
SMALLEST_PROBABILITY = 1e-9  # of a label in the log loss
LEAST_SHARE = 2.0**-20
SEARCH_STEPS = 24


class Setting(NamedTuple):
    bits: int  # of a weight: 4, 8 or 16
    keep: float  # share of the weights of each table that are kept


class Shrunk(NamedTuple):
    contents: Contents
    setting: Setting
    weights: int  # number of weights of the model
    kept: int  # number of weights that are kept


def shrunk(path: str, size: int | None = None, bits: int | None = None, keep: float | None = None) -> Shrunk:
    """Return the contents of a model that predicts nearly the same and takes less space.

    Raise UsageError if no share of the weights fits into `size`.

    Parameters
    ----------
    size : most bytes of the new file; None for a quarter of the old one, or more if less than a quarter of the
        weights would be kept, or for no limit if `bits` or `keep` is given
    bits : 4, 8 or 16 bits for each weight; None for the most with which all weights that are kept fit into `size`
    keep : share of the weights that are kept, above 0 and at most 1; None for as many as fit into `size`
    """
    jit.activate(hide_scipy=False)
    contents = model_contents.load(path)
    config = configuration.of_model(path, contents.options).with_values({"predict_only_model": True})
    whole = dict(contents.arrays)
    with model_contents.naming(path):
        learner = LearnerCore(config, LearnerUse(loaded=True), contents._replace(arrays=dict(whole)))
    with learner:
        reduced = learner.contents()
        tables = pruning.tables_of(reduced.arrays, whole)
        if not tables and reduced.arrays.keys() == whole.keys():
            raise ModelError(
                f"{path}: a model of --{config.reduction.name} has no weight tables to shrink, and this one has "
                "nothing that only learning needs"
            )
        others = _other_arrays(reduced.arrays, tables)
        fixed = len(model_contents.to_bytes(reduced._replace(arrays=others))) + ENTRY_BYTES * len(tables)
        if size is None and bits is None and keep is None:
            setting = _default(tables, os.path.getsize(path) // DEFAULT_PART - fixed)
        else:
            setting = _setting(tables, None if size is None else size - fixed, bits, keep, fixed)
        arrays: dict[str, Stored] = dict(others)
        kept = 0
        for table in tables:
            part = pruning.kept(table, setting.keep)
            kept += len(part.slot)
            arrays.update(compact_columns.compacted(part.name, part.column, part.slot, part.slots, setting.bits))
        weights = sum(len(table.slot) for table in tables)
        return Shrunk(reduced._replace(arrays=arrays), setting, weights, kept)


class Loss(NamedTuple):
    name: str  # of the value, for the user
    value: float  # average loss: the share of wrong predictions, by weight, if labels are classes
    wrong: Bools | None  # bool[n], which of the labelled examples are predicted wrongly; None if labels are numbers
    log_loss: float | None  # mean of -log p of the labels that have a probability; None without probabilities


def loss(path: str, source: reader.Options) -> Loss:
    """Return the average loss of a model on the examples of files, which have to have labels."""
    wrong, p = [np.empty(0, np.bool_)], [np.empty(0)]
    with load(path) as learner:
        model = learner.core
        kind = model.config.reduction.labels
        counted = Progress(kind, None)
        wanted = Wanted(example_probabilities=model.config.reduction.probabilities)
        batches = (batch for _, batch in files.batches(model, source))
        for task in thread_limit.each(model.predict(batches, wanted)):
            counted.count(task)
            labelled = ~np.isnan(task.batch.label)
            assert task.prediction is not None  # the stages have set it
            is_wrong = task.prediction != task.batch.label
            if kind == "multilabel" and task.loss is not None:
                is_wrong = task.loss > 0
            wrong.append(is_wrong[labelled])
            if task.label_probability is not None:
                p.append(task.label_probability[labelled])
    if counted.average_loss is None:
        raise UsageError(
            f"-d {' '.join(source.data)}: it has no labelled examples, so there is no error; give data with labels"
        )
    known = np.concatenate(p)
    known = known[~np.isnan(known)]
    log_loss = float(-np.log(np.maximum(known, SMALLEST_PROBABILITY)).mean()) if len(known) else None
    name = "average loss" if kind == "simple" else "error"
    return Loss(name, counted.average_loss, None if kind == "simple" else np.concatenate(wrong), log_loss)


def _other_arrays(arrays: Mapping[str, Stored], tables: Sequence[Table]) -> dict[str, Stored]:
    columns = {f"{table.name}.{c}" for table in tables for c in ("w", "word", "index")}
    return {name: array for name, array in arrays.items() if name not in columns}


def _default(tables: Sequence[Table], room: int) -> Setting:
    """Return the setting for tables of at most `room` bytes, or the one that keeps a quarter of the weights."""
    least = Setting(WIDTHS[-1], DEFAULT_KEEP)
    return least if _table_bytes(tables, least) > room else _setting(tables, room, None, None, 0)


def _setting(tables: Sequence[Table], room: int | None, bits: int | None, keep: float | None, others: int) -> Setting:
    """Return how to shrink tables to at most `room` bytes, None for any; see `shrunk`.

    `others` are the bytes of the rest of the file.
    """
    if room is None:
        return Setting(bits or 8, keep or 1.0)
    widths = (bits,) if bits else WIDTHS
    for width in widths:
        if _table_bytes(tables, Setting(width, keep or 1.0)) <= room:
            return Setting(width, keep or 1.0)
    least = Setting(widths[-1], keep or LEAST_SHARE)
    needed = _table_bytes(tables, least)
    if keep is not None or needed > room:
        advice = "a larger --size" if keep is None else "a larger --size or a smaller --keep"
        raise UsageError(
            f"the model does not fit into {room + others:,} bytes: it takes up to {needed + others:,}; give {advice}"
        )
    low, high = LEAST_SHARE, 1.0
    for _ in range(SEARCH_STEPS):
        middle = (low + high) / 2
        fits = _table_bytes(tables, Setting(least.bits, middle)) <= room
        low, high = (middle, high) if fits else (low, middle)
    return Setting(least.bits, low)


def _table_bytes(tables: Sequence[Table], setting: Setting) -> int:
    """Return an upper bound of the bytes of the tables."""
    kept = [(pruning.rows_kept(len(table.slot), setting.keep), table) for table in tables]
    return sum(compact_columns.most_bytes(n, table.slots, setting.bits, table.tagged) for n, table in kept)
