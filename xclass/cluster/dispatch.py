"""Choose how a run is spread over the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..api.configuration import Config, chosen_name
from ..api.model_contents import Contents
from ..errors import UsageError
from ..options.declare import options_of
from ..run.report.console import Console
from ..run.run import Run
from . import shards
from .averaged import Averaged
from .engines import ClusterEngine
from .exact import run_state
from .exact.spread import Spread
from .options import Options
from .predicting import Predicting
from .session import Session


def first_lines(given: Mapping[str, Any], closing: contextlib.ExitStack) -> list[bytes]:
    """Return the first lines of the data, which a node of the cluster reads.

    `closing` gets the connection to the cluster, which the run uses, too.
    """
    chosen = {name: given[name] for name in options_of(Options) if name in given}
    session = closing.enter_context(Session(Options(**chosen), Console(bool(given.get("quiet"))).info))
    path = shards.find(session, given["data"], "").paths[0]
    return list(session.call(shards.first_lines, os.getcwd(), path).split(b"\n"))


def engine_of(config: Config) -> type[ClusterEngine]:
    """Return the engine of a run; raise UsageError if its reduction does not fit it."""
    if config.run.testonly or config.cluster.sync_every is None:
        return Predicting if config.run.testonly else Spread
    reason = config.reduction.not_merged
    if reason:
        raise UsageError(f"--sync_every: models of --{chosen_name(config)} cannot be averaged: {reason}")
    return Averaged


def execute(config: Config, contents: Contents | None, notes: Sequence[str]) -> int:
    """Execute a run with --workers and return its exit status."""
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    if not config.run.testonly and config.cluster.sync_every is None and "spread" not in config.reduction.abilities:
        advice = (
            "leave --workers out, or choose --oaa, --cpt, --multiclass or --softmax_tree" if config.reduction.not_merged
            else "give --sync_every N, and models of parts of the data are averaged"
        )  # fmt: skip
        raise UsageError(f"--workers: --{chosen_name(config)} has no parts that learn by themselves; {advice}")
    engine = engine_of(config)
    with Session.of_run(config) as session:
        files = shards.find(session, config.reader.data, config.reader.format)
        run = Run(config.with_values({"data": files.paths}), notes, engine(session, files))
        status = run.execute(contents)
    if status == 0 and run.learning and config.run.final_regressor is not None:
        run_state.remove(run_state.path_of(config.run.final_regressor))
    return status
