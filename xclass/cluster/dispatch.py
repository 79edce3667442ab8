"""Choose how a run is spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.configuration import Config, chosen_name
from ..api.model_contents import Contents
from ..errors import UsageError
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
    if config.run.testonly:
        raise UsageError("--workers spreads learning; leave it or -t out")
    if "sync_every" in config.given:
        raise UsageError("--sync_every: models of parts of the data are merged by `xclass merge`; leave the option out")
    if not exact_run.has_parts(config):
        raise UsageError(
            f"--workers: --{chosen_name(config)} has no parts that learn by themselves; leave --workers out, or choose "
            "--oaa, --cpt, --multiclass or --softmax_tree"
        )
    if not config.reader.data:
        raise UsageError("--workers: the workers open the data themselves; give files, patterns or URLs by -d")
    return exact_run.execute(config, contents, notes)
