"""Keep the state of a run in a file beside its model, so that a later run of the same command can continue it.

    MODEL.parts    a model file whose arrays are those of the states of all parts, `NUMBER.NAME`

The state is written at every checkpoint, before the model, and removed when the run is complete.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..abilities.spread.parts import State
from ..api.configuration import Config
from ..api.progress import Progress
from ..errors import ModelError, UsageError
from ..model import model_file
from ..run.passes import STATE

# options that a continued run may change
FREE = {"workers", "ray", "ray_timeout", "resume_run", "quiet", "progress", "checkpoint", "predictions"}
SET_BY_RUN = ("schedule", "names", "holdout", "simple", "as_vw", "lists_scores")  # attributes of Progress
FLOAT = "float:"  # before the text of a number, because JSON has no infinity


def path_of(config: Config) -> str:
    return f"{config.run.final_regressor}{STATE}"


def save(
    config: Config, counted: Sequence[Progress], states: Sequence[State], tallies: Mapping[str, Any], **facts: Any
) -> None:
    """Write the state of a run; raise ModelError if it cannot be written.

    Parameters
    ----------
    counted : counts, see `restore_progress`
    states : what the parts have learned and, last, the whole
    tallies : sums for the summary, see `Learner.tallies`
    facts : what else the run needs to continue, as JSON values
    """
    arrays, rest = {}, []
    for i, state in enumerate([*states, _flat(tallies)]):
        arrays.update({f"{i}.{name}": value for name, value in state.items() if isinstance(value, np.ndarray)})
        rest.append({name: _stored(value) for name, value in state.items() if not isinstance(value, np.ndarray)})
    facts |= {"progress": [_counts(progress) for progress in counted], "states": rest}
    model_file.save(path_of(config), options=_options(config), facts=facts, arrays=arrays, links="replace")


def load(config: Config) -> tuple[dict[str, Any], list[State]]:
    """Return the facts of a run that is continued, its tallies among them, and the states that `save` was given.

    Raise ModelError if there is no state or it cannot be read, and UsageError if the run had other options.
    """
    path = path_of(config)
    if not os.path.exists(path):
        raise ModelError(
            f"{path}: there is no state of a run that could be continued; leave --resume_run out, or give the -f and "
            "the --checkpoint of the run that was interrupted"
        )
    options, facts, arrays = model_file.load(path)
    now = _options(config)
    for name in sorted(now.keys() | options.keys()):
        if options.get(name) != now.get(name):
            raise UsageError(
                f"--resume_run: the run that is continued had --{name} {options.get(name)}, and now it is "
                f"{now.get(name)}; give the same command"
            )
    states = facts.pop("states")
    for name, array in arrays.items():
        number, _, own_name = name.partition(".")
        states[int(number)][own_name] = array
    *states, tallies = [{name: _restored(value) for name, value in state.items()} for state in states]
    return {**facts, "tallies": _nested(tallies)}, states


def remove(config: Config) -> None:
    """Remove the state of a run that is complete, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path_of(config))


def notes(config: Config, examples: int) -> list[str]:
    """Return a line for the banner if a run is continued; `examples` are those learned before."""
    return [f"continues from {path_of(config)}, after {examples} examples"] if config.cluster.resume_run else []


def restore_progress(counted: Sequence[Progress], stored: Sequence[Mapping[str, Any]]) -> None:
    """Continue the counts that were given to `save`."""
    for progress, counts in zip(counted, stored, strict=True):
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
