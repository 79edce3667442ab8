"""Keep the state of a run in a file beside its model, so that a later run of the same command can continue it.

    MODEL.parts    a model file whose arrays are those of the states of all parts, `NUMBER.NAME`

The state is written at every checkpoint, before the model, and removed when the run is complete.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...abilities.spread.parts import State
from ...api.configuration import Config
from ...api.progress import Progress
from ...array_types import AnyArray
from ...errors import ModelError, UsageError
from ...model import model_file
from ...run.passes import STATE
from .task_stream import Cursor
from .worker import Place

# options that a continued run may change
FREE = {"workers", "ray", "ray_timeout", "resume_run", "quiet", "progress", "checkpoint", "predictions"}
SKIPPED = ("schedule", "names", "holdout")  # attributes of Progress that a run sets itself
FLOAT = "float:"  # before the text of a number, because JSON has no infinity


class RunState(NamedTuple):
    """Hold what a run needs to continue."""

    place: Place
    clock: float  # weight of the labelled examples before the run, and now:
    clock_now: float
    examples: int
    highest_seen: int  # the highest class that was seen, if labels are names
    progress: list[dict[str, Any]]  # counts, see `of_progress`
    states: Sequence[State]


def path_of(model: str) -> str:
    """Return the path of the state of a run with this -f."""
    return model + STATE


def options_of(config: Config) -> dict[str, Any]:
    """Return the options that a continued run must have, as JSON values."""
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in config.values().items()}
    return {name: value for name, value in values.items() if name not in FREE}


def save(path: str, config: Config, state: RunState) -> None:
    """Write the state of a run; raise ModelError if it cannot be written."""
    arrays, parts = {}, []
    for i, part in enumerate(state.states):
        arrays.update({f"{i}.{name}": value for name, value in part.items() if isinstance(value, np.ndarray)})
        parts.append({name: value for name, value in part.items() if not isinstance(value, np.ndarray)})
    facts = {**state._asdict(), "states": parts}
    model_file.save(path, options=options_of(config), facts=facts, arrays=arrays, links="replace")


def load(path: str, config: Config) -> RunState:
    """Read the state of a run; errors are those of `stored`."""
    facts, arrays = stored(path, config)
    for name, array in arrays.items():
        number, _, own_name = name.partition(".")
        facts["states"][int(number)][own_name] = np.array(array)
    (passes, items), stops = facts.pop("place")
    return RunState(Place(Cursor(passes, items), stops), **facts)


def stored(path: str, config: Config) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the facts and arrays of the state of a run.

    Errors are a ModelError if there is none or it cannot be read, and a UsageError if the run had other options.
    """
    if not os.path.exists(path):
        raise ModelError(
            f"{path}: there is no state of a run that could be continued; leave --resume_run out, or give the -f and "
            "the --checkpoint of the run that was interrupted"
        )
    options, facts, arrays = model_file.load(path)
    now = options_of(config)
    for name in sorted(now.keys() | options.keys()):
        if options.get(name) != now.get(name):
            raise UsageError(
                f"--resume_run: the run that is continued had --{name} {options.get(name)}, and now it is "
                f"{now.get(name)}; give the same command"
            )
    return facts, arrays


def remove(path: str) -> None:
    """Remove the state of a run that is complete, if there is one."""
    if os.path.exists(path):
        os.unlink(path)


def of_progress(progress: Progress) -> dict[str, Any]:
    """Return the counts of a run as JSON values."""
    counts = {name: _stored(value) for name, value in vars(progress).items() if name not in SKIPPED}
    if progress.holdout is not None:
        counts["holdout"] = {name: _stored(value) for name, value in vars(progress.holdout).items()}
    return counts


def notes(config: Config, examples: int) -> list[str]:
    """Return a line for the banner if a run is continued; `examples` are those learned before."""
    if not config.cluster.resume_run:
        return []
    return [f"continues from {path_of(config.run.final_regressor)}, after {examples} examples"]


def restore_progress(progress: Progress, counts: Mapping[str, Any]) -> None:
    """Continue the counts of a run."""
    for name, value in counts.items():
        if name == "holdout":
            for held, number in value.items():
                setattr(progress.holdout, held, _restored(number))
        elif name not in ("simple", "as_vw", "lists_scores"):
            setattr(progress, name, _restored(value))
    if progress.holdout is not None:
        progress.holdout.best = np.float32(progress.holdout.best)


def _stored(value: Any) -> Any:
    """Return a JSON value for a number or a list."""
    return FLOAT + repr(float(value)) if isinstance(value, (float, np.floating)) else value


def _restored(value: Any) -> Any:
    """Return the number or the list of a JSON value."""
    return float(value[len(FLOAT) :]) if isinstance(value, str) and value.startswith(FLOAT) else value
