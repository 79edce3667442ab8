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
from . import averaged_run, predicting_run, shards
from .exact import run as exact_run
from .options import Options
from .session import Session


def first_lines(given: Mapping[str, Any], closing: contextlib.ExitStack) -> list[bytes]:
    """Return the first lines of the data, which a node of the cluster reads.

    `closing` gets the connection to the cluster, which the run uses, too.
    """
    chosen = {name: given[name] for name in options_of(Options) if name in given}
    session = closing.enter_context(Session(Options(**chosen), Console(bool(given.get("quiet"))).info))
    folder = os.getcwd()
    paths = session.call(shards.files_in, folder, given["data"])
    return list(session.call(shards.first_lines_in, folder, paths[0]).split(b"\n"))


def execute(config: Config, contents: Contents | None, notes: Sequence[str]) -> int:
    """Execute a run with --workers and return its exit status."""
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    if config.run.testonly:
        return predicting_run.execute(config, contents, notes)
    if config.cluster.sync_every is not None:
        return averaged_run.execute(config, contents, notes)
    if "spread" not in config.reduction.abilities:
        advice = (
            "leave --workers out, or choose --oaa, --cpt, --multiclass or --softmax_tree" if config.reduction.not_merged
            else "give --sync_every N, and models of parts of the data are averaged"
        )  # fmt: skip
        raise UsageError(f"--workers: --{chosen_name(config)} has no parts that learn by themselves; {advice}")
    return exact_run.execute(config, contents, notes)
