"""Choose how a run is spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.configuration import Config, chosen_name
from ..api.model_contents import Contents
from ..errors import UsageError
from . import averaged_run, predicting_run
from .exact import run as exact_run


def execute(config: Config, contents: Contents | None, notes: Sequence[str]) -> int:
    """Execute a run with --workers and return its exit status.

    Parameters
    ----------
    config : options of the run
    contents : contents of the model of -i, or None
    notes : lines to show at the start of the run

    Raises
    ------
    UsageError
        if the options do not allow to spread the run.
    """
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    if config.run.testonly:
        return predicting_run.execute(config, contents, notes)
    if config.cluster.sync_every is not None:
        return averaged_run.execute(config, contents, notes)
    if not exact_run.has_parts(config):
        advice = (
            "leave --workers out, or choose --oaa, --cpt, --multiclass or --softmax_tree" if config.reduction.not_merged
            else "give --sync_every N, and models of parts of the data are averaged"
        )  # fmt: skip
        raise UsageError(f"--workers: --{chosen_name(config)} has no parts that learn by themselves; {advice}")
    return exact_run.execute(config, contents, notes)
