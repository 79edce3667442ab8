"""Count what the kernels, run as plain Python, read and write in the arrays of a learner.

An array is replaced by one that notes every access by an index or a slice. Not seen are operations on whole arrays,
arrays that a kernel creates itself, and views that do not belong to a learner.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from scripts.lib.processes import ROOT, BenchError
from scripts.lib.training import head, learn

LINE = 64  # bytes of a cache line
RECENT, COUNTED = 10, 30  # examples before each one whose lines are not new, and examples that are counted
NEEDED = RECENT + COUNTED  # lines after those that the model has learned


class Counted(np.ndarray):
    """An array that notes what is read and written.

    Attributes
    ----------
    accesses : number of accesses
    positions : positions of the numbers accessed; None for parts of an array, which note nothing
    slot : how many numbers of a weight table are a slot
    weights : whether this is a weight table
    """

    accesses = 0
    positions: set[int] | None = None
    slot = 1
    weights = False

    def __getitem__(self, at):
        self._note(at)
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        self._note(at)
        super().__setitem__(at, value)

    def _note(self, at) -> None:
        if self.positions is not None:
            where = self._positions(at)
            self.accesses += len(where)
            self.positions.update(where)

    def _positions(self, at):
        """Return the positions, in the flattened array, that an index refers to."""
        if self.ndim == 1 and isinstance(at, (int, np.integer)):
            return (int(at),)
        if self.ndim == 1 and isinstance(at, slice):
            return range(*at.indices(len(self)))
        if isinstance(at, tuple) and len(at) == self.ndim == 2 and all(isinstance(i, (int, np.integer)) for i in at):
            return (int(at[0]) * self.shape[1] + int(at[1]),)
        return np.arange(self.size).reshape(self.shape)[at].ravel().tolist()

    def clear(self) -> None:
        """Begin to note, or begin again."""
        self.accesses, self.positions = 0, set()

    def different(self, size: int) -> int:
        """Return how many different groups of `size` consecutive numbers were accessed."""
        return len({at // size for at in self.positions or ()})


Arrays: TypeAlias = dict[tuple, Counted]  # by address, shape and type of numbers


def watch(owner: object, everything: bool = False) -> list[Counted]:
    """Put counted arrays, with nothing noted yet, in the place of all weight tables that an object reaches.

    Parameters
    ----------
    owner : object with attributes
    everything : whether to do the same with all other arrays

    Returns
    -------
    list of the counted arrays
    """
    arrays: Arrays = {}
    _watch(owner, arrays, everything, set())
    for array in arrays.values():
        array.clear()
    return list(arrays.values())


def _watch(owner, arrays: Arrays, everything: bool, seen: set[int]) -> None:
    """Do what `watch` does with the attributes of one object."""
    if id(owner) in seen or not hasattr(owner, "__dict__"):
        return
    seen.add(id(owner))
    for name, value in list(vars(owner).items()):
        vars(owner)[name] = _watched(value, arrays, everything, seen)


def _watched(value: Any, arrays: Arrays, everything: bool, seen: set[int]):
    """Return a value with counted arrays in it."""
    if isinstance(value, np.ndarray):
        if everything and value.size and value.flags.c_contiguous:
            return _counted(value, arrays, getattr(value, "weights", False), getattr(value, "slot", 1))
    elif hasattr(value, "_asdict"):
        items = value._asdict()
        if "flat" in items and not getattr(value, "tagged", False):
            items["flat"] = _counted(value.flat, arrays, True, int(getattr(value, "stride", 2)))
        elif "tag_shift" in items:  # tagged words; the plain functions read and write whole lines
            items["word"] = _counted(value.word, arrays, True, 1)
        return type(value)(*(_watched(item, arrays, everything, seen) for item in items.values()))
    elif isinstance(value, list):
        value[:] = [_watched(item, arrays, everything, seen) for item in value]
    elif type(value).__module__.startswith("xclass."):
        _watch(value, arrays, everything, seen)
    return value


def _counted(array: np.ndarray, arrays: Arrays, weights: bool, slot: int) -> Counted:
    """Return an array as a counted one, which is added to `arrays`."""
    key = array.ctypes.data, array.shape, array.dtype
    counted = arrays.setdefault(key, array if isinstance(array, Counted) else array.view(Counted))
    counted.weights, counted.slot = counted.weights or weights, slot
    return counted


def of_example(model, act: Callable[[list[str]], Any], line: str, recent: deque[set[int]]) -> dict[str, int]:
    """Learn an example, or predict its class, and count what is visited.

    Parameters
    ----------
    act : `learn_many` or `predict_many` of the model
    recent : the lines that each of the examples before visited; those of this example are added

    Returns
    -------
    bytes of all weight tables; features; cache lines of weights, and of other arrays and the text; how many of these
    lines do not follow another one in memory and how many do; the same of those that no recent example visited
    """
    arrays = watch(model, everything=True)
    features: list[int] = []
    model.core.reduction.stages.insert(0, lambda task: features.append(int(task.batch.start[-1])))
    act([line])
    del model.core.reduction.stages[0]
    lines: dict[bool, set[int]] = {True: set(), False: set()}
    for array in arrays:
        begin = array.ctypes.data
        lines[array.weights].update((begin + at * array.itemsize) // LINE for at in array.positions or ())
    text = -(-len(line.encode()) // LINE)
    visited = lines[True] | lines[False]
    new = visited.difference(*recent)
    recent.append(visited)
    counts = {
        "bytes": sum(array.nbytes for array in arrays if array.weights),
        "features": sum(features),
        "weights": len(lines[True]),
        "other": len(lines[False]) + text,
    }
    for name, some in (("", visited), ("new_", new)):
        following = sum(at - 1 in some for at in some)
        counts |= {f"{name}apart": len(some) - following, f"{name}following": following + text}
    return counts


def count_lines(folder: Path, words: list[str], examples: int) -> dict[str, float]:
    """Train on the first examples of train.vw, and return the averages of further ones, see `count_further`."""
    learn(folder, words, head(folder, examples))
    return count_further(folder / "f.model", folder / "train.vw", examples)


def count_further(model: Path, data: Path, begin: int) -> dict[str, float]:
    """Predict and then learn the lines of a file from line `begin` on; return the averages of `of_example`.

    Those of predicting have names that begin with `predict_`.
    """
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    command += [str(model), str(data), str(begin)]
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True)
    if result.returncode:
        raise BenchError(result.stderr[-2000:])
    return json.loads(result.stdout)


def main() -> None:
    """Print as JSON what `count_further` returns, in a process of its own in which nothing is compiled."""
    import xclass

    warnings.simplefilter("ignore")  # plain Python warns of every hash that overflows
    model_file, data, begin = sys.argv[1:]
    with open(data, encoding="utf-8") as file:
        examples = list(islice(file, int(begin), int(begin) + NEEDED))
    if len(examples) < NEEDED:
        sys.exit(f"{data} has fewer than {NEEDED} lines after line {begin}")
    averages = {}
    with xclass.load(model_file) as model:
        for prefix, act in (("predict_", model.predict_many), ("", model.learn_many)):
            recent: deque[set[int]] = deque(maxlen=RECENT)
            found = [of_example(model, act, line.rstrip("\n"), recent) for line in examples][RECENT:]
            averages |= {prefix + key: fmean(one[key] for one in found) for key in found[0]}
    print(json.dumps(averages))
