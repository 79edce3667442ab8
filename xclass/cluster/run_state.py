"""Keep the state of a run in a file beside its model, so that a later run of the same command can continue it.

    MODEL.parts    a model file whose arrays are those of the state, `state.NAME`, and of the sums, `tallies.NAME`

The state is written at every checkpoint, before the model, and removed when the run is complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..api.configuration import Config
from ..api.progress import Progress
from ..errors import ModelError, UsageError
from ..model import model_file
from ..options.declare import Option, long_flag
from ..options.resolve import as_typed
from ..run.passes import STATE

# options that a continued run may change
FREE = {"workers", "ray", "ray_timeout", "resume_run", "quiet", "progress", "checkpoint"}
SET_BY_RUN = ("schedule", "names", "holdout", "simple", "as_vw", "lists_scores")  # attributes of Progress
State = dict[str, Any]  # by name: arrays, and numbers and texts that JSON can hold
FORMAT = 2  # to be raised if `Averaging.state` has other values
FLOAT = "float:"  # before the text of a number, because JSON has no infinity


def path_of(config: Config) -> str:
    return f"{config.run.final_regressor}{STATE}"


def save(config: Config, progress: Progress, state: State, tallies: Mapping[str, Any]) -> None:
    """Write the state of a run; raise ModelError if it cannot be written.

    Parameters
    ----------
    progress : the counts of the run, see `restore_progress`
    state : see `Averaging.state`
    tallies : sums for the summary, see `Learner.tallies`
    """
    arrays, rest = {}, {}
    for kind, values in (("state", state), ("tallies", _flat(tallies))):
        arrays.update({f"{kind}.{name}": value for name, value in values.items() if isinstance(value, np.ndarray)})
        rest[kind] = {name: _stored(value) for name, value in values.items() if not isinstance(value, np.ndarray)}
    facts = {"format": FORMAT, "progress": _counts(progress), **rest}
    model_file.save(path_of(config), options=_options(config), facts=facts, arrays=arrays, links="replace")


def load(config: Config) -> tuple[Mapping[str, Any], State, dict[str, Any]]:
    """Return the counts, for `restore_progress`, the state and the tallies of a run that is continued.

    Raise ModelError if there is no state or it cannot be read, and UsageError if the run had other options.
    """
    path = path_of(config)
    if not os.path.exists(path):
        raise ModelError(
            f"{path}: there is no state of a run that could be continued; leave --resume_run out, or give the -f and "
            "the --checkpoint of the run that was interrupted"
        )
    options, facts, arrays = model_file.load(path)
    if facts.get("format") != FORMAT:
        raise ModelError(
            f"{path}: another version of xclass has written the state of this run; continue with that version, or "
            "leave --resume_run out to begin anew"
        )
    now, declared = _options(config), config.declared()
    for name in sorted(now.keys() | options.keys()):
        if options.get(name) != now.get(name):
            had, has = (_typed(name, declared.get(name), values.get(name)) for values in (options, now))
            raise UsageError(
                f"--resume_run: the run that is continued had {had}, and now it has {has}; give the same command"
            )
    for name, array in arrays.items():
        kind, _, own_name = name.partition(".")
        facts[kind][own_name] = array
    state, tallies = ({name: _restored(value) for name, value in facts[kind].items()} for kind in ("state", "tallies"))
    return facts["progress"], state, _nested(tallies)


def remove(config: Config) -> None:
    """Remove the state of a run that is complete, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path_of(config))


def notes(config: Config, examples: int) -> list[str]:
    """Return a line for the banner if a run is continued; `examples` are those learned before."""
    return [f"continues from {path_of(config)}, after {examples} examples"] if config.cluster.resume_run else []


def restore_progress(progress: Progress, counts: Mapping[str, Any]) -> None:
    """Continue the counts that were given to `save`."""
    for name, value in counts.items():
        if name != "holdout":
            setattr(progress, name, _restored(value))
    if progress.holdout is not None:
        vars(progress.holdout).update({name: _restored(value) for name, value in counts["holdout"].items()})
        progress.holdout.best = np.float32(progress.holdout.best)


def _options(config: Config) -> dict[str, Any]:
    """Return the options that a continued run must have, as JSON values."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in config.values().items()}
    return {name: value for name, value in values.items() if name not in FREE}


def _typed(name: str, declared: Option | None, value: Any) -> str:
    """Return an option of `_options` as it is written on a command line."""
    flag = f"--{name}" if declared is None else long_flag(declared)
    if value is None or value is False or value == []:
        return f"no {flag}"
    return flag if declared is None else as_typed(declared, tuple(value) if isinstance(value, list) else value)


def _counts(progress: Progress) -> dict[str, Any]:
    counts = {name: _stored(value) for name, value in vars(progress).items() if name not in SET_BY_RUN}
    held_out = {} if progress.holdout is None else vars(progress.holdout)
    return {**counts, "holdout": {name: _stored(value) for name, value in held_out.items()}}


def _flat(tallies: Mapping[str, Any]) -> State:
    """Return nested values by their names with dots between them."""
    flat: State = {}
    for name, value in tallies.items():
        inside = _flat(value) if isinstance(value, Mapping) else None
        flat.update({name: value} if inside is None else {f"{name}.{own}": one for own, one in inside.items()})
    return flat


def _nested(flat: State) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, own = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[own] = value
    return nested


def _stored(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return FLOAT + repr(float(value)) if isinstance(value, float) else value


def _restored(value: Any) -> Any:
    return float(value[len(FLOAT) :]) if isinstance(value, str) and value.startswith(FLOAT) else value
