"""Measure, in this process and without Ray, what workers and driver of a cluster spend for an example or a round.

The CPU seconds of learning are differences between two runs, so that what a start takes is not in them. Kernels are
compiled before.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from xclass.api.configuration import Config
from xclass.api.model_contents import Contents
from xclass.cli import arguments, help_text
from xclass.cli import command as cli
from xclass.cluster import shards
from xclass.cluster.averaging import Averaging
from xclass.cluster.part_learner import Learned, PartLearner, Work, nbytes
from xclass.kernels import jit
from xclass.options import resolve
from xclass.reductions import presets
from xclass.run import learner_use

ATTEMPTS = 3  # of which the least CPU seconds count
PARTS = 2  # in the rounds that are measured
LONGER = 5  # how many times more examples a long round has than a short one


class AverageUnits(NamedTuple):
    """Hold the unit costs of averaging."""

    learn: float  # CPU seconds per example
    unpack: (
        float  # CPU seconds of a worker per round: the model of the round becomes a learner, and changes are encoded
    )
    merge: float  # CPU seconds of the driver per byte of changes: they are averaged
    store: float  # CPU seconds of the driver per round, whatever has changed: the merged model is stored
    model: float  # bytes of the model after `seen` examples
    seen: float
    growth: float  # the bytes of the model grow with this power of the examples
    changes: float  # bytes per example that a part sends

    def model_after(self, examples: float) -> float:
        """Return the bytes of the model after so many examples."""
        return grown(self.model, self.seen, self.growth, examples)


def grown(model: float, seen: float, growth: float, examples: float) -> float:
    """Return the bytes of a model that has `model` bytes after `seen` examples and grows with a power of them."""
    return model * math.pow(examples / seen, growth)


def config_of(words: Sequence[str], data: Path) -> Config:
    """Return the configuration of a command."""
    groups, reductions = cli.option_groups()
    typed = arguments.read(help_text.sections(groups, reductions), [*words, "-d", str(data)])
    return resolve.resolve(
        typed, None, groups, reductions, presets=presets.PRESETS, resolve_defaults=learner_use.with_defaults
    )


def average_units(words: Sequence[str], data: Path, every: int) -> AverageUnits:
    """Measure the unit costs of averaging, in a round after three others.

    Parameters
    ----------
    words : options
    data : file with at least 16 * every lines
    every : examples of a part in a round
    """
    jit.activate()
    _Rounds(words, data, every, every)  # compiles
    rounds = _Rounds(words, data, every, every)
    short, long = (rounds.worker_cpu(examples) for examples in (every, LONGER * every))
    learn = max(long - short, 0.0) / ((LONGER - 1) * every)
    growth = math.log(rounds.model / rounds.first_model) / math.log(rounds.seen / every)
    unpack = max(short - every * learn, 0.0)
    few, many = (_least_driver([_Rounds(words, data, every, examples) for _ in range(ATTEMPTS)])
                 for examples in (every, LONGER * every))  # fmt: skip
    merge = max(many.driver - few.driver, 0.0) / max(many.changes - few.changes, 1.0)
    store = max(few.driver - merge * few.changes, 0.0)
    changes = rounds.changes / PARTS / every
    return AverageUnits(learn, unpack, merge, store, rounds.model, rounds.seen, growth, changes)


def _least_driver(rounds: Sequence[_Rounds]) -> _Rounds:
    """Return the rounds of which the driver took the least CPU seconds."""
    return min(rounds, key=lambda one: one.driver)


class _Rounds:
    """Learn four rounds with two parts in this process, the last one with `last` examples of each part.

    Attributes
    ----------
    driver : CPU seconds of the driver in the last round
    first_model, model : bytes of the model after the first round and before the last one
    seen : number of examples before the last round
    changes : bytes that all parts send in the last round
    """

    def __init__(self, words: Sequence[str], data: Path, every: int, last: int) -> None:
        self._config = config_of([*words, "--workers", str(PARTS), "--sync_every", str(every)], data)
        self._parts = shards.deal(shards.Files([str(data)], shards.sizes_of([str(data)]), True), PARTS)
        self._workers = [PartLearner(number, ".", self._config) for number in range(1, PARTS + 1)]
        self._inside, self._examples = 0.0, every
        self._learned: list[Learned] = []
        averaging = Averaging(self._config, self._parts, self._execute, None)
        rounds = averaging.rounds_of_pass()
        sizes = []
        for _ in range(3):
            next(rounds)
            assert averaging.model is not None
            sizes.append(float(nbytes(averaging.model)))
        self._cursor = averaging.cursors[1]
        self._base = pickle.loads(pickle.dumps(averaging.model))  # a copy, because the next round changes the arrays
        self.first_model, self.model, self.seen = sizes[0], sizes[-1], 5.0 * every
        self._inside, self._examples, begin = 0.0, last, time.process_time()
        next(rounds)
        self.driver = time.process_time() - begin - self._inside
        self.changes = sum(0.0 if one.arrays is None else one.arrays.nbytes for one in self._learned)

    def worker_cpu(self, examples: int) -> float:
        """Return the CPU seconds of a worker for so many examples of the last round, the least of some attempts."""
        attempts = []
        for _ in range(ATTEMPTS):
            work = Work(self._parts[1], self._cursor, examples, 0, False)
            attempts.append(PartLearner(1, ".", self._config).learn(self._base, work).result.cost.cpu)
        return min(attempts)

    def _execute(self, model: Contents | None, works: Sequence[Work]) -> Iterator[Learned]:
        begin = time.process_time()
        works = [work._replace(examples=self._examples) for work in works]
        self._learned = [self._workers[work.part.number - 1].learn(model, work) for work in works]
        self._inside += time.process_time() - begin
        yield from self._learned
