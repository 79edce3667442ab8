"""Shrink a model: keep what predictions need, without the least salient weights, and the others in fewer bits.

Source    LeCun, Denker, Solla, "Optimal Brain Damage", NIPS 1989: leaving out a weight w costs w**2 times the second
          derivative of the loss, for which AdaGrad's sum of squared gradients G stands.
Names     saliency of a weight: |w| * sqrt(G), or |w| if the model has no G.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .api import configuration, files, model_contents
from .api.learner import load
from .api.learner_core import LearnerCore
from .api.model_contents import ModelContents
from .api.progress import Progress
from .array_types import AnyArray, Bools, Float32s, UInt32s
from .errors import ModelError, UsageError
from .kernels import tagged_format
from .kernels.jit import activate, jit
from .model import compact_columns
from .model.stored_arrays import Arrays, Stored
from .reductions.core.spec import LearnerUse
from .system import thread_limit
from .text import reader

DEFAULT_PART = 4  # without other wishes, the new file has at most this part of the bytes of the old one, unless
DEFAULT_KEEP = 0.25  # fewer weights than this share would be kept
ENTRY_BYTES = 1000  # most bytes of the entries of a table in the header
WIDTHS = (16, 8, 4)  # bits of a weight, the best first
LEAST_SHARE = 2.0**-20
SEARCH_STEPS = 24


class UsedRows(NamedTuple):
    """Hold the rows of a weight table that have a weight other than 0."""

    name: str
    column: AnyArray  # float32[n] or uint32[n], weights or tagged words
    slot: UInt32s  # uint32[n], their slots, rising
    saliency: Float32s  # float32[n]

    @property
    def slots(self) -> int:
        """Return the number of slots up to the last one in use."""
        return int(self.slot[-1]) + 1 if len(self.slot) else 0

    @property
    def tagged(self) -> bool:
        return bool(self.column.dtype == np.uint32)


class ShrinkSetting(NamedTuple):
    bits: int  # of a weight: 4, 8 or 16
    keep: float  # share of the weights of each table that are kept


class Shrunk(NamedTuple):
    contents: ModelContents
    setting: ShrinkSetting
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
    activate(hide_scipy=False)
    contents = model_contents.load(path)
    config = configuration.of_model(path, contents.options).with_values({"predict_only_model": True})
    whole = dict(contents.arrays)
    with model_contents.naming(path):
        learner = LearnerCore(config, contents._replace(arrays=dict(whole)))
    with learner:
        reduced = learner.contents()
        tables = tables_of(reduced.arrays, whole)
        if not tables and reduced.arrays.keys() == whole.keys():
            raise ModelError(
                f"{path}: a model of --{config.reduction.name} has no weight tables to shrink, and this one has "
                "nothing that only learning needs"
            )
        columns = {f"{table.name}.{c}" for table in tables for c in ("w", "word", "index")}
        others = {name: array for name, array in reduced.arrays.items() if name not in columns}
        fixed = len(model_contents.to_bytes(reduced._replace(arrays=others))) + ENTRY_BYTES * len(tables)
        if size is None and bits is None and keep is None:
            setting = _default(tables, os.path.getsize(path) // DEFAULT_PART - fixed)
        else:
            setting = _setting(tables, None if size is None else size - fixed, bits, keep, fixed)
        arrays: dict[str, Stored] = dict(others)
        kept = 0
        for table in tables:
            part = kept_of(table, setting.keep)
            kept += len(part.slot)
            arrays.update(compact_columns.compacted(part.name, part.column, part.slot, part.slots, setting.bits))
        weights = sum(len(table.slot) for table in tables)
        return Shrunk(reduced._replace(arrays=arrays), setting, weights, kept)


class Loss(NamedTuple):
    name: str  # of the value, for the user
    value: float  # average loss: the share of wrong predictions, by weight, if labels are classes
    wrong: Bools | None  # bool[n], which of the labelled examples are predicted wrongly; None if labels are numbers
    log_loss: float | None  # mean of -log p of the labels that have a probability; None without probabilities


def loss(path: str, source: reader.ReaderOptions) -> Loss:
    """Return the average loss of a model on the examples of files, which have to have labels."""
    wrong = [np.empty(0, np.bool_)]
    with load(path) as learner:
        model = learner.core
        record = model.config.reduction
        counted = Progress(record.labels, None)
        batches = (batch for _, batch in files.batches(model, source))
        for task in thread_limit.each(model.predict(batches, LearnerUse(example_probabilities=record.probabilities))):
            counted.count(task)
            assert task.prediction is not None  # the stages have set it
            is_wrong = task.prediction != task.batch.label
            if record.labels == "multilabel" and task.loss is not None:
                is_wrong = task.loss > 0
            wrong.append(is_wrong[~np.isnan(task.batch.label)])
        report = model.reduction.report
    if counted.average_loss is None:
        raise UsageError(
            f"-d {' '.join(source.data)}: it has no labelled examples, so there is no error; give data with labels"
        )
    log_loss = None if report is None else report.figures().get("log_loss")
    if record.labels == "simple":
        return Loss("average loss", counted.average_loss, None, log_loss)
    return Loss("error", counted.average_loss, np.concatenate(wrong), log_loss)


def _default(tables: Sequence[UsedRows], room: int) -> ShrinkSetting:
    """Return the setting for tables of at most `room` bytes, or the one that keeps a quarter of the weights."""
    least = ShrinkSetting(WIDTHS[-1], DEFAULT_KEEP)
    return least if _table_bytes(tables, least) > room else _setting(tables, room, None, None, 0)


def _setting(
    tables: Sequence[UsedRows], room: int | None, bits: int | None, keep: float | None, others: int
) -> ShrinkSetting:
    """Return how to shrink tables to at most `room` bytes, None for any; see `shrunk`.

    `others` are the bytes of the rest of the file.
    """
    if room is None:
        return ShrinkSetting(bits or 8, keep or 1.0)
    widths = (bits,) if bits else WIDTHS
    for width in widths:
        if _table_bytes(tables, ShrinkSetting(width, keep or 1.0)) <= room:
            return ShrinkSetting(width, keep or 1.0)
    least = ShrinkSetting(widths[-1], keep or LEAST_SHARE)
    needed = _table_bytes(tables, least)
    if keep is not None or needed > room:
        advice = "a larger --size" if keep is None else "a larger --size or a smaller --keep"
        raise UsageError(
            f"the model does not fit into {room + others:,} bytes: it takes up to {needed + others:,}; give {advice}"
        )
    low, high = LEAST_SHARE, 1.0
    for _ in range(SEARCH_STEPS):
        middle = (low + high) / 2
        fits = _table_bytes(tables, ShrinkSetting(least.bits, middle)) <= room
        low, high = (middle, high) if fits else (low, middle)
    return ShrinkSetting(least.bits, low)


def _table_bytes(tables: Sequence[UsedRows], setting: ShrinkSetting) -> int:
    """Return an upper bound of the bytes of the tables."""
    kept = [(rows_kept(len(table.slot), setting.keep), table) for table in tables]
    return sum(compact_columns.most_bytes(n, table.slots, setting.bits, table.tagged) for n, table in kept)


def tables_of(for_prediction: Arrays, whole: Arrays) -> list[UsedRows]:
    """Return the weight tables of a model, sorted by their names.

    `for_prediction` are the arrays that predictions need; `whole` are those of the model as it was saved, which may
    have G.
    """
    found = []
    for key in sorted(for_prediction):
        name, _, end = key.rpartition(".")
        if end not in ("w", "word"):
            continue
        column, index = _rows(for_prediction, name, np.asarray(for_prediction[key]))
        w = compact_columns.weights(column)
        saliency = np.abs(w)
        g = _squares(name, whole, index)
        if g is not None and g.any():
            saliency = saliency * np.sqrt(g)
        has_weight = w != 0
        saliency = np.nan_to_num(saliency[has_weight], nan=np.inf)
        found.append(UsedRows(name, column[has_weight], index[has_weight], saliency))
    return found


def kept_of(table: UsedRows, share: float) -> UsedRows:
    """Return a table with this share of its rows: those with the largest saliency, the first ones if some are equal."""
    n = rows_kept(len(table.slot), share)
    if n == len(table.slot):
        return table
    order = np.sort(np.argsort(-table.saliency, kind="stable")[:n])
    return table._replace(column=table.column[order], slot=table.slot[order], saliency=table.saliency[order])


def rows_kept(rows: int, share: float) -> int:
    return min(rows, int(np.ceil(rows * share)))


def _rows(arrays: Arrays, name: str, column: AnyArray) -> tuple[AnyArray, UInt32s]:
    stored = arrays.get(f"{name}.index")
    index = np.arange(len(column), dtype=np.uint32) if stored is None else np.asarray(stored)
    return column, index


def _squares(name: str, arrays: Arrays, wanted: UInt32s) -> Float32s | None:
    """Return G of some slots as float32[n], 0 where a model does not store it; None if it has none at all."""
    if f"{name}.g" in arrays:
        column = np.asarray(arrays[f"{name}.g"])
    elif f"{name}.word" in arrays:
        word = np.asarray(arrays[f"{name}.word"])
        column = np.empty(len(word), np.float32)
        word_squares(word, column)
    else:
        return None
    column, index = _rows(arrays, name, column)
    if not len(index):
        return np.zeros(len(wanted), np.float32)
    at = np.minimum(np.searchsorted(index, wanted), len(index) - 1)
    return np.where(index[at] == wanted, column[at], np.float32(0))


@jit
def word_squares(word: UInt32s, g: Float32s) -> None:
    """Write G of tagged words: `word` is uint32[n], `g` is float32[n], written."""
    for i in range(len(word)):
        g[i] = tagged_format.decode_g(word[i])
