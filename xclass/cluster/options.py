"""Declare the options of a run on a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..errors import UsageError
from ..options.declare import option

NEEDED = "workers"  # the option without which the others have no effect


@dataclass(frozen=True)
class Options:
    """Declare the options of a run on a Ray cluster."""

    workers: int = option(
        "spread the run over N workers, processes of a Ray cluster that have a processor each; -d then also takes "
        "patterns such as 'part-*.vw' and URLs",
        kind=int,
        minimum=1,
        maximum=100_000,
        metavar="N",
    )
    ray: str = option(
        "the cluster: `auto`, HOST:PORT or ray://HOST:PORT",
        default_text="RAY_ADDRESS, else a Ray on this machine that ends with the run",
        metavar="ADDRESS",
    )
    sync_every: int = option(
        "each worker learns from its own part of the data, and their models are averaged whenever each has learned "
        "from N further examples",
        kind=int,
        minimum=1,
        metavar="N",
    )
    ray_timeout: float = option(
        "how long to wait for a Ray on this machine to start, and for processors of the cluster, in seconds",
        kind=float,
        default=600.0,
        minimum=0.0,
        metavar="SECONDS",
    )
    resume_run: bool = option(
        "continue an earlier run of the same command from its last checkpoint, see --checkpoint (also `--resume` "
        "without a value)",
        kind=bool,
    )


def check_given(given: Collection[str]) -> None:
    """Raise UsageError if an option of the cluster is given without --workers."""
    for name in ("ray", "sync_every", "ray_timeout", "resume_run"):
        if name in given and NEEDED not in given:
            raise UsageError(f"--{name} has no effect without --{NEEDED} N, which spreads the run over a Ray cluster")
