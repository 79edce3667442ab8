"""Predict what a run on a cluster costs, compare this with runs, and extrapolate to a large one.

    python -m scripts.cluster.cost_model DATA_DIR --lines 20000 --sync_every 1000

DATA_DIR has ptb. The unit costs are measured in one process on the first lines of the set, and the start of a worker
by a run over a few lines. `average_cost` predicts from them the CPU seconds and bytes of runs over --lines lines, which
are compared with 1, 2 and 4 workers. The last table is for 10^10 examples, 10^6 classes and 100 machines; `Assumptions`
holds what it assumes.
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path
from typing import NamedTuple

from scripts.cluster.runs import Run, WorkerCost, head, learn, train_file
from scripts.cluster.unit_costs import AverageUnits, average_units
from scripts.lib.command_line import run, work_folder

AVERAGED = "ptb", ["--cpt", "10000"], 10000
FEW = 200  # lines of the shortest run
DAY = 86400.0


class Prediction(NamedTuple):
    """Hold what a run is expected to cost."""

    worker_cpu: float  # seconds of each worker
    driver_cpu: float  # seconds of the process that was started, without its start
    sent: float  # bytes that each worker sends
    received: float  # bytes that each worker receives


class Assumptions(NamedTuple):
    """Hold what the extrapolation assumes."""

    examples: float = 1e10
    classes: float = 1e6
    machines: int = 100
    bandwidth: float = 1.25e9  # bytes per second of each machine, 10 Gbit/s
    model: float = 2.0**32  # bytes of the averaged model, a table of -b 30
    speed: float = 1.0  # of a processor, relative to this machine's


def rounds_of(examples: float, workers: int, every: int) -> int:
    """Return the number of rounds, of which the first is that of the first worker alone."""
    return 1 + math.ceil(max(examples - every, 0.0) / (workers * every))


def average_cost(units: AverageUnits, start: float, examples: float, workers: int, every: int) -> Prediction:
    """Predict a run: every round, the model goes to the workers and their changes come back."""
    rounds = rounds_of(examples, workers, every)
    seen = [every * (1 + workers * r) for r in range(rounds - 1)]  # examples before each round but the first
    received = sum(units.model_after(min(number, examples)) for number in seen)
    models = received / units.model  # rounds with a model as large as the measured one that take as long as all rounds
    cpu = start + examples / workers * units.learn + models * units.unpack
    merging = (examples - every) * units.changes * units.merge + models * units.store if workers > 1 else 0.0
    return Prediction(cpu, merging, examples / workers * units.changes, received)


def scaled(units: AverageUnits, given: Assumptions) -> AverageUnits:
    """Return the unit costs of the large run.

    Paths in a tree grow with the logarithm of the classes. What is done with a whole model takes time in proportion to
    its bytes.
    """
    depth, size = math.log2(given.classes) / math.log2(AVERAGED[2]), given.model / units.model
    return units._replace(
        learn=units.learn * depth, unpack=units.unpack * size, store=units.store * size, model=given.model,
        changes=units.changes * depth,
    )  # fmt: skip


class LargeRound(NamedTuple):
    """Hold the seconds of a round of the extrapolated run."""

    learning: float
    unpacking: float
    transport: float
    merging: float

    @property
    def total(self) -> float:
        """Return the seconds of the round."""
        return sum(self)


def changes_of(units: AverageUnits, every: float) -> float:
    """Return the bytes that a part sends in a round, at most the model."""
    return min(every * units.changes, units.model)


def large_round(units: AverageUnits, every: float, given: Assumptions) -> LargeRound:
    """Return the seconds of a round: machines pass the model on, and all changes share the driver's connection."""
    moved = units.model * math.ceil(math.log2(given.machines)) + changes_of(units, every) * given.machines
    return LargeRound(
        every * units.learn / given.speed, units.unpack / given.speed, moved / given.bandwidth,
        (given.machines * changes_of(units, every) * units.merge + units.store) / given.speed,
    )  # fmt: skip


def row(*cells: object) -> None:
    """Print a row of a table."""
    print(
        "| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells) + " |", flush=True
    )


def table(*titles: str) -> None:
    """Print the head of a table."""
    print()
    row(*titles)
    row("---", *["--:"] * (len(titles) - 1))


def mean_cost(made: Run) -> WorkerCost:
    """Return the mean of what the workers of a run have spent."""
    return WorkerCost(*(statistics.mean(values) for values in zip(*made.costs, strict=True)))


def check(name: str, made: Run, expected: Prediction, driver_start: float) -> None:
    """Print a row with predicted and measured costs."""
    mean, driver = mean_cost(made), made.own_cpu - driver_start
    row(
        name, f"{expected.worker_cpu:.1f}", f"{mean.cpu:.1f}", f"{expected.sent / 1e6:.1f}", f"{mean.sent / 1e6:.1f}",
        f"{expected.received / 1e6:.1f}", f"{mean.received / 1e6:.1f}", f"{expected.driver_cpu:.1f}",
        f"{driver:.1f}", f"{mean.waiting:.1f}",
    )  # fmt: skip


HEADS = (
    "workers", "CPU s per worker, predicted", "measured", "MB sent, predicted", "measured", "MB received, predicted",
    "measured", "driver CPU s, predicted", "measured", "waiting s",
)  # fmt: skip


def report_averaged(options: argparse.Namespace, folder: Path) -> AverageUnits:
    """Measure, predict and check averaging."""
    name, words, _ = AVERAGED
    every = options.sync_every
    data = head(train_file(options.data_dir, name), options.lines, folder)
    few, some = cut(data, FEW, folder), cut(data, 16 * every, folder)
    units = average_units(words, some, every)
    begin = learn("few", [*words, "--workers", "1", "--sync_every", str(FEW), *ray_of(options)], few, folder)
    start = begin.costs[0].cpu - FEW * units.learn
    print(f"\nAveraging, {name} {' '.join(words)}, {options.lines} examples, --sync_every {every}. Unit costs:")
    print(f"{units.learn * 1e6:.2f} us to learn an example; {start:.1f} s to start")
    print(f"per round and worker {units.unpack:.2f} s to unpack the model")
    print(
        f"per round {units.store:.2f} s to store the merged model; {units.merge * 1e9:.1f} s to merge 1 GB of changes"
    )
    print(
        f"{units.model / 1e6:.1f} MB model after {units.seen:.0f} examples, growing as their power {units.growth:.2f};"
        f" {units.changes:.0f} bytes of changes per example"
    )
    table(*HEADS)
    for workers in options.workers:
        made = learn(
            "many", [*words, "--workers", str(workers), "--sync_every", str(every), *ray_of(options)], data, folder
        )
        check(str(workers), made, average_cost(units, start, options.lines, workers, every), begin.own_cpu)
    return units


def report_large(averaged: AverageUnits, given: Assumptions) -> None:
    """Print the extrapolation."""
    print(f"\n{given.examples:.0e} examples, {given.classes:.0e} classes, {given.machines} machines")
    units = scaled(averaged, given)
    table("--cpt --sync_every N", "rounds", "s learning", "s unpacking", "s transport", "s merging",
          "GB to the driver", "days")  # fmt: skip
    for every in (1e5, 1e6, 1e7, 1e8):
        one = large_round(units, every, given)
        rounds = rounds_of(given.examples, given.machines, int(every))
        row(f"N = {every:.0e}", rounds, one.learning, one.unpacking, one.transport, one.merging,
            changes_of(units, every) * given.machines / 1e9, rounds * one.total / DAY)  # fmt: skip


def ray_of(options: argparse.Namespace) -> list[str]:
    """Return the options of the command that name the cluster."""
    return ["--ray", options.ray] if options.ray else []


def cut(data: Path, lines: int, folder: Path) -> Path:
    """Return a file with the first lines of another one."""
    target = folder / f"{data.stem}.{lines}.vw"
    with data.open("rb") as whole, target.open("wb") as out:
        out.writelines(line for _, line in zip(range(lines), whole, strict=False))
    return target


def main(words: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    parser.add_argument("--lines", type=int, default=20000)
    parser.add_argument("--sync_every", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--ray", help="address of a cluster that is running, without which each run starts its own")
    parser.add_argument("--machines", type=int, default=Assumptions().machines)
    options = parser.parse_args(words)
    with work_folder(None) as folder:
        averaged = report_averaged(options, folder)
    report_large(averaged, Assumptions(machines=options.machines))


if __name__ == "__main__":
    run(main)
