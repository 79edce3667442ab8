"""Keep the state of a run with averages in a file beside its model, so that a later run of the same command can go on.

    MODEL.parts    a model file with the array `model`, the bytes of the model, and `waiting.NUMBER`, see `Cursor`

The state is written at every checkpoint, before the model, and removed when the run is complete.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..api.configuration import Config
from ..api.model_contents import Contents
from ..api.progress import Progress
from ..model import model_file
from .averaging import Averaging, as_bytes, from_bytes
from .exact import run_state
from .part_stream import Cursor


class RoundState(NamedTuple):
    """Hold what a run needs to continue."""

    model: Contents
    cursors: list[Cursor]
    passes_ended: int
    rounds: int
    progress: dict[str, Any]

    @property
    def parts(self) -> int:
        """Return the number of parts, which stays as it was with another number of workers."""
        return len(self.cursors)


def save(path: str, config: Config, averaging: Averaging, progress: Progress) -> None:
    """Write the state of a run after a round; raise ModelError if it cannot be written."""
    assert averaging.model is not None  # a round has ended
    arrays = {"model": as_bytes(averaging.model)}
    for number, cursor in enumerate(averaging.cursors):
        arrays[f"waiting.{number}"] = np.array(cursor.waiting, np.int64)
    facts = {
        "positions": [cursor.position for cursor in averaging.cursors],
        "ended": [cursor.ended for cursor in averaging.cursors],
        "passes_ended": averaging.passes_ended, "rounds": averaging.rounds,
        "progress": run_state.of_progress(progress),
    }  # fmt: skip
    model_file.save(path, options=run_state.options_of(config), facts=facts, arrays=arrays, links="replace")


def load(path: str, config: Config) -> RoundState:
    """Read the state of a run; errors are those of `run_state.stored`."""
    facts, arrays = run_state.stored(path, config)
    cursors = [
        Cursor(position, tuple(arrays[f"waiting.{number}"].tolist()), ended)
        for number, (position, ended) in enumerate(zip(facts["positions"], facts["ended"], strict=True))
    ]
    return RoundState(from_bytes(arrays["model"]), cursors, facts["passes_ended"], facts["rounds"], facts["progress"])


def restore(averaging: Averaging, state: RoundState) -> None:
    """Continue where the state was saved."""
    averaging.model, averaging.cursors = state.model, state.cursors
    averaging.passes_ended, averaging.rounds = state.passes_ended, state.rounds
