"""Choose how a run is spread over the workers of a cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api.configuration import Config, chosen_name
from ..api.model_contents import Contents
from ..errors import UsageError
from ..options.declare import options_of
from ..reductions import presets, registry
from ..run.report.console import Console
from ..run.run import Run
from ..run.signals import interrupt_told
from . import run_state, shards
from .averaged import Averaged
from .engines import ClusterEngine
from .options import Options
from .predicting import Predicting
from .session import Session


def first_lines(
    given: Mapping[str, Any], closing: contextlib.ExitStack, resolve: Callable[[Mapping[str, Any]], Config]
) -> tuple[str, list[bytes]]:
    """Return the first file of the data and its first lines, which a node of the cluster reads.

    The options are checked before.

    Parameters
    ----------
    given : the options that the user typed, field -> value
    closing : gets the connection to the cluster, which the run uses, too
    resolve : resolves the options of a run, see `options.resolve`
    """
    chosen = {record.name for record in registry.REDUCTIONS} | presets.PRESETS.keys()
    proposed = ({**given, "multiclass": 0}, {**given, presets.LISTS: 0}, given)  # the lines decide
    possible = [given] if chosen & given.keys() else proposed
    errors = []
    for values in possible:
        try:
            engine_of(resolve(values))
        except UsageError as error:
            errors.append(error)
    if len(errors) == len(possible):
        raise errors[0]
    options = {name: given[name] for name in options_of(Options) if name in given}
    session = closing.enter_context(
        Session(Options(**options), tell := Console(bool(given.get("quiet"))).info, tell=tell)
    )
    path = shards.find(session, given["data"], "").paths[0]
    return path, list(session.call(shards.first_lines, os.getcwd(), path).split(b"\n"))


def engine_of(config: Config) -> type[ClusterEngine]:
    """Return the engine of a run; raise UsageError if its reduction does not fit it."""
    if config.run.testonly:
        return Predicting
    name, reason = chosen_name(config), config.reduction.not_merged
    if reason:
        raise UsageError(
            f"--workers: models of --{name} cannot be averaged: {reason}; learn in one process, or choose --multiclass"
        )
    if config.reduction.labels == "multilabel" and config.parser.learn_names:
        raise UsageError(
            "--workers: workers learn no names of lists of labels; list the names by --named_labels without "
            "--learn_names, or learn in one process"
        )
    return Averaged


def execute(config: Config, contents: Contents | None, notes: Sequence[str]) -> int:
    """Execute a run with --workers and return its exit status."""
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    engine = engine_of(config)
    console = Console(config.run.quiet)
    with contextlib.ExitStack() as closing:
        with interrupt_told(console.line, config.values()):
            session = closing.enter_context(Session(config.cluster, console.info, tell=console.info))
            files = shards.find(session, config.reader.data, config.reader.format)
        run = Run(config.with_values({"data": files.paths}), notes, engine(session, files))
        status = run.execute(contents)
    if status == 0 and run.learning and config.run.final_regressor is not None:
        run_state.remove(config)
    return status
