"""Describe a run as one JSON record (`--summary`); docs/errors.md defines its keys."""

from __future__ import annotations

import math
import os
import platform
import resource
from typing import Any

import numpy as np

from ... import __version__
from ...abilities import find
from ...api.configuration import Config, chosen_name
from ...api.progress import Progress
from ...reductions.core.base import Reduction
from ...system import memory, thread_limit
from ...system.bounded_json import Anything, Number, OneOf, OrNull, Record, Text, Whole
from . import outcomes

SCHEMA = "xclass summary 1"

_COST = Number(0, 1e30)
SHAPE = Record(  # what is read of a summary; the other names are for other programs
    {
        "schema": OneOf((SCHEMA,)),
        "reduction": Text(),
        "options": Record(others=Anything()),
        "examples": Whole(),
        "average_loss": OrNull(Number()),
        "figures": Record(others=OrNull(Number(-1e30, 1e30))),
        "outcomes": OrNull(outcomes.SHAPE),
        "seconds": _COST,
        "cpu_seconds": _COST,
        "peak_memory_bytes": Whole(),
    },
    others=Anything(),
)


def record(
    config: Config, learner: Reduction, progress: Progress, data: str, status: str, error: str | None, lines: list[str]
) -> dict[str, Any]:
    """Return the record of a run, without times.

    `status` is "finished", "stopped" or "failed". `lines` are those of the summary on the screen.
    """
    holdout = progress.holdout
    held_out = None
    if holdout is not None and holdout.has_loss:
        held_out = {"best_pass": holdout.best_pass, "best_loss": float(holdout.best)}
    return {
        "schema": SCHEMA,
        "status": status,
        "error": error,
        "reduction": chosen_name(config),
        "testing": config.run.testonly,
        "data": data,
        "model": config.run.final_regressor,
        "initial_model": config.run.initial_regressor,
        "options": {name: _option(value) for name, value in sorted(config.values().items())},
        "given": sorted(config.given),
        "versions": {name.lower(): version for name, version in versions().items()},
        "machine": {"system": machine(), "processors": thread_limit.processors()},
        "examples": progress.examples,
        "passes": progress.passes,
        "weight": progress.weight,
        "labelled_weight": progress.labelled_weight,
        "features": progress.features,
        "average_loss": progress.average_loss,
        "held_out": held_out,
        "figures": find.figures(config.reduction, learner),
        "lines": [line for line in lines if line],
    }


def versions() -> dict[str, str]:
    """Return the versions on which learning depends, by name."""
    import numba  # takes time

    return {
        "xclass": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def machine() -> str:
    """Return the system, its release and the kind of the machine."""
    system = os.uname()
    return f"{system.sysname} {system.release} {system.machine}"


def costs(seconds: float, parts: dict[str, float]) -> dict[str, Any]:
    """Return the times and the memory of the run; `parts` has the seconds of each activity, see `timing.Stopwatch`."""
    times = os.times()
    return {
        "seconds": round(seconds, 4),
        "cpu_seconds": round(times.user + times.system, 4),
        "seconds_by_activity": {name: round(value, 4) for name, value in sorted(parts.items())},
        "peak_memory_bytes": memory.peak(),
        "page_faults": resource.getrusage(resource.RUSAGE_SELF).ru_minflt,
    }


def finite(value: Any) -> Any:
    """Return a JSON value in which numbers that are not finite, which JSON cannot express, are None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _option(value: object) -> object:
    """Return the value of an option as JSON; text may hold bytes that could not be decoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return [_option(item) for item in value] if isinstance(value, tuple) else value
