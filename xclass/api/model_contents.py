"""Save and load the contents of a model file: options, counters, class names, and the arrays of the learner.

Model files may come from untrusted sources. This module checks the counters and class names, `options.resolve` checks
the options, and each learner checks its own arrays and facts when it restores them. `model_file` reads and writes the
bytes of the file and knows nothing of their meaning.

Names     The names of classes are stored as an array, because a million names do not fit into the header: uint8[...],
          see `class_names.separated`.
Schema    So is the schema of the columns of tables, see `schema.Schema`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..data.schema import Schema
from ..errors import OTHER_MODEL, ModelError, UsageError
from ..model import compact_columns, model_file, stored_arrays
from ..model.archive import LiveTable
from ..model.stored_arrays import Arrays, Stored
from ..system import leftovers, output_file
from ..system.printable import short_repr
from .progress import SUMS, VW, VW_COUNTS, VW_SUMS

CLASS_NAMES, SCHEMA = "class_names", "schema"  # names of the arrays
FACTS = ("learner", "examples", "clock", "counters")
OPTIONAL_SUM = "log_loss_sum"  # None unless a run computed probabilities
LARGEST_COUNT = 2**62
TAB = 9


class ModelContents(NamedTuple):
    """Hold the contents of a model: those read from a file, after checks, or those to be written.

    The option `named_labels` holds the names of the classes seen, see `class_names.separated`.
    """

    options: dict[str, Any]  # field name -> JSON value; checked by `resolve.resolve`
    learner: dict[str, Any]  # facts of the learner, which checks them
    examples: int  # number of examples learned from, in all runs
    clock: float  # sum of the weights of the labelled examples, in all runs
    counters: dict[str, Any] | None  # see `progress.Progress.counters`; None with --predict_only_model
    arrays: Arrays  # arrays of the learner, which checks them
    schema: Schema  # of the tables learned from; empty if there were none
    live: Mapping[str, LiveTable] | None = None  # large tables that are not among the arrays, see `Archive`


def save(
    path: str,
    get_contents: Callable[[], ModelContents],
    links: str = "follow",
    into: leftovers.Unfinished | None = None,
) -> None:
    """Save a model; after any exception, such as ModelError, an existing file at `path` is unchanged.

    `links` and `into` are those of `model_file.save`.
    """
    try:
        options, facts, arrays = _stored(get_contents())
        model_file.save(path, options=options, facts=facts, arrays=arrays, links=links, into=into)
    except (ModelError, MemoryError):
        raise
    except OSError as error:
        raise ModelError(f"{path}: cannot save the model: {error.strerror or error}") from error


def to_bytes(contents: ModelContents) -> bytes:
    """Return the bytes of the file that `save` would write."""
    return model_file.to_bytes(*_stored(contents))


def _stored(model: ModelContents) -> tuple[dict[str, Any], dict[str, Any], dict[str, Stored]]:
    """Return the options, facts and arrays of a model file."""
    arrays = compact_columns.packed(model.arrays)
    names = model.options.get("named_labels")
    if names:
        arrays[CLASS_NAMES] = np.frombuffer(names.encode("utf-8", "surrogateescape"), np.uint8)
    if model.schema.is_known:
        arrays[SCHEMA] = np.frombuffer(model.schema.to_bytes(), np.uint8)
    facts = {
        "learner": model.learner,
        "examples": model.examples,
        # JSON has no infinity, but with --on_bad_line vw the weight of an example may be infinite
        "clock": model.clock if math.isfinite(model.clock) else repr(float(model.clock)),
        "counters": model.counters,
    }
    return {**model.options, "named_labels": None}, facts, arrays


def from_bytes(data: bytes) -> ModelContents:
    """Return the contents of a model from the bytes of its file, see `load`."""
    return _checked("the model in memory", model_file.from_bytes(data))


def load(path: str) -> ModelContents:
    """Return the contents of a model file after checking the header; the arrays are read and checked when used."""
    return _checked(path, model_file.opened(path))


def _checked(path: str, model: model_file.Model) -> ModelContents:
    """Check and return the contents of a model that was read from `path`."""
    options, facts, arrays = model
    for name in facts:
        if name not in FACTS:
            raise ModelError(
                f"{path}: it holds a fact {short_repr(name)}, which this xclass does not know; update xclass, or "
                f"{OTHER_MODEL}"
            )
    for name in FACTS:
        if name not in facts:
            raise ModelError(f"{path}: it does not hold the fact {name!r}; {OTHER_MODEL}")
    if not isinstance(facts["learner"], dict):
        raise _damaged(path, "learner", facts["learner"], "an object")
    examples, clock = _count(path, "examples", facts["examples"]), _sum(path, "clock", facts["clock"])
    counters = facts["counters"]
    if counters is not None:
        counters = _counters(path, counters)
    if options.get("named_labels") is not None:
        raise ModelError(f"{path}: it holds the names of its classes as an option; {OTHER_MODEL}")
    if CLASS_NAMES in arrays:
        options["named_labels"] = _names(path, np.asarray(arrays.pop(CLASS_NAMES)))
    with naming(path):
        schema = Schema.from_bytes(_bytes_of(arrays.pop(SCHEMA), SCHEMA)) if SCHEMA in arrays else Schema()
    compact = compact_columns.is_compact(arrays)
    if compact and counters is not None:
        raise _damaged(path, "counters", counters, "null, because the weights are stored for predictions only")
    with naming(path):
        expanded = compact_columns.expanded(arrays)
    return ModelContents(options, facts["learner"], examples, clock, counters, expanded, schema)


@contextlib.contextmanager
def naming(path: str | None) -> Iterator[None]:
    """Turn model and usage errors raised in the `with` block into model errors that name the file, if there is one."""
    try:
        yield
    except (ModelError, UsageError) as error:
        if path is None:
            raise
        named = str(error).startswith(f"{path}: ")
        raise (error if named else ModelError(f"{path}: {error}")) from None


def save_with_fallback(save_to: Callable[..., None], path: str) -> None:
    """Call `save_to(path)`, and `save_to("<path>.interrupted", links="replace")` if that raises an exception.

    The message of the exception says where the model is then, or why it is lost.
    """
    try:
        save_to(path)
    except Exception as error:
        try:
            fallback = output_file.interrupted(path)
            save_to(fallback, links="replace")
        except Exception as fallback_error:
            outcome = f"what was learned is lost: {fallback_error}"
        else:
            outcome = f"what was learned is in {fallback}"
        if isinstance(error, ModelError):
            raise ModelError(*error.args, f"xclass: {outcome}") from error
        error.args = (f"{error}; {outcome}",)
        raise


def _names(path: str, name_bytes: np.ndarray) -> str:
    """Check the array of class names, uint8[...], and return the names as text, separated by commas."""
    with naming(path):
        text = _bytes_of(name_bytes, CLASS_NAMES)
    if ((name_bytes < 32) & (name_bytes != TAB)).any():
        raise ModelError(
            f"{path}: the array {CLASS_NAMES!r} holds control characters, which no name has; {OTHER_MODEL}"
        )
    return text.decode("utf-8", "surrogateescape")


def _bytes_of(array: Stored, name: str) -> bytes:
    """Return the bytes of the array `name`, uint8[...]; raise ModelError if it is another array."""
    if array.dtype != np.uint8 or len(array.shape) != 1 or not array.shape[0]:
        raise ModelError(
            f"the array {name!r} is {array.dtype}{list(array.shape)}, and has to be uint8[any]; {OTHER_MODEL}"
        )
    return np.asarray(array).tobytes()


def _counters(path: str, counters: dict[str, Any]) -> dict[str, Any]:
    """Check and return the counters of earlier runs."""
    own = {name: value for name, value in counters.items() if name != VW} if isinstance(counters, dict) else counters
    _check_counters(path, "counters", own, SUMS, ("features",))
    if VW in counters:  # of --vw_exact
        _check_counters(path, f"counters.{VW}", counters[VW], ("t", *VW_SUMS), tuple(VW_COUNTS))
        own[VW] = counters[VW]
    return own


def _check_counters(path: str, where: str, counters: object, sums: tuple[str, ...], counts: tuple[str, ...]) -> None:
    """Check an object of sums, which are text, because JSON has no infinity, and of counts, which are limited."""
    expected = {*sums, *counts}
    if not isinstance(counters, dict) or set(counters) != expected:
        raise _damaged(path, where, counters, f"an object of {', '.join(sorted(expected))}")
    for name in sums:
        if counters[name] is None and name == OPTIONAL_SUM:
            continue
        if not isinstance(counters[name], str):
            raise _damaged(path, f"{where}.{name}", counters[name], "a number as text")
        _sum(path, f"{where}.{name}", counters[name])
    for name in counts:
        counters[name] = _count(path, f"{where}.{name}", counters[name])


def _count(path: str, name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_COUNT:
        raise _damaged(path, name, value, "a whole number from 0 to 2**62")
    return min(value, stored_arrays.MAX_COUNT)


def _sum(path: str, name: str, value: object) -> float:
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, str) and value.isascii():
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise _damaged(path, name, value, "a number")


def _damaged(path: str, name: str, value: object, expected: str) -> ModelError:
    return ModelError(f"{path}: the fact {name!r} is {short_repr(value)}, and has to be {expected}; {OTHER_MODEL}")
