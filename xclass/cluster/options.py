"""Declare the options of a run on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..options.declare import SECONDS, OptionGroup, OptionRule, conflict, option, refused

NOT_IN_PARTS = {  # options that need all of the data in one process, where workers read parts of it, and why
    "shuffle": "each worker reads its part in the order of the data; shuffle the files",
    "examples initial_pass_length": "each worker reads its part to the end; give fewer files",
    "cache cache_file kill_cache": "the workers keep no cache; leave it out",
    "audit invert_hash explain summary errors per_class curve": "it needs all examples in one process; give it to a "
    "run with -t -i MODEL and without --workers",
}


def _in_parts(mode: str, others: Mapping[str, str], **conditions: object) -> Iterator[OptionRule]:
    """Yield the rules of a mode in which each worker reads a part of the data; `others` are refused, too."""
    for names, reason in {**NOT_IN_PARTS, **others}.items():
        yield refused(names, f"cannot be combined with {mode}: {reason}", **conditions)
    for terms in ("quadratic", "cubic", "interactions"):
        yield conflict(
            f"{mode}: `:` in an interaction stands for the namespaces seen so far, which differ from worker to worker; "
            "write the namespaces",
            **conditions,
            **{terms: lambda given: any(":" in one for one in given)},
        )


class ClusterOptions(OptionGroup):
    """Declare the options of a run on a Ray cluster."""

    workers: int = option(
        "spread the run over N workers, processes of a Ray cluster that have a processor each. Each learns from a part "
        "of the data, and their models are averaged; -d then also takes patterns such as 'part-*.vw' and URLs",
        minimum=1,
        maximum=100_000,
    )
    ray: str = option(
        "the cluster: `auto`, HOST:PORT or ray://HOST:PORT",
        default_text="RAY_ADDRESS, else a Ray on this machine that ends with the run",
        metavar="ADDRESS",
    )
    sync_every: int = option(
        "with --workers, average the models whenever each worker has learned from N further examples",
        default_text="4000 at first, later up to twice as many in each round until learning takes nine times as long "
        "as the exchange of what was learned",
        minimum=1,
    )
    ray_timeout: float = option(
        "how long to wait for a Ray on this machine to start, and for processors of the cluster, in seconds",
        default=600.0,
        minimum=0.0,
        metavar="SECONDS",
        unit=SECONDS,
    )
    resume_run: bool = option(
        "with --workers, continue an earlier run of the same command from its last checkpoint (also `--resume` "
        "without a value)"
    )

    RULES = (
        refused(
            "ray sync_every ray_timeout resume_run",
            "has no effect without --workers N, which spreads the run over a Ray cluster",
            workers=None,
        ),
        *_in_parts(
            "-t and --workers",
            {
                "sync_every resume_run holdout_after": "with -t nothing is learned; leave it out",
                "passes": "a single pass predicts all; leave it out",
            },
            workers=True,
            testonly=True,
        ),
        *_in_parts(
            "--workers",
            {
                "predictions raw_predictions": "predictions are made while several models learn; give -t -i MODEL to "
                "another run",
                "vw_exact": "Vowpal Wabbit averages in another way; leave one of them out",
            },
            workers=True,
            testonly=None,
        ),
        conflict(
            "--resume_run continues the run that has written the model of -f; give -f MODEL",
            resume_run=True,
            final_regressor=None,
        ),
        conflict(
            "--resume_run cannot continue a run that saves the model of its best pass; begin it again, or give "
            "--holdout_off or --keep_last to both runs",
            resume_run=True,
            passes=lambda passes: passes > 1,
            holdout_off=None,
            keep_last=None,
        ),
    )
