"""Count what the kernels, run as plain Python, read and write in the arrays of a learner.

An array is replaced by one that notes every access by an index or a slice. Not seen are operations on whole arrays,
arrays that a kernel creates itself, and views that do not belong to a learner.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

LINE = 64  # bytes of a cache line


class Counted(np.ndarray):
    """An array that notes what is read and written.

    Attributes
    ----------
    positions : positions of the numbers accessed; None for parts of an array, which note nothing
    slot : how many numbers of a weight table are a slot
    weights : whether this is a weight table
    """

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
            self.positions.update(self._positions(at))

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
        self.positions = set()

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
