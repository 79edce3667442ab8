"""Call a kernel again and again without numba's dispatcher, which takes longer than a kernel for a single example.

Idea      The dispatcher derives a key from the types of all arguments, down to the fields of records, at each call: 10
          to 15 us for the hundred arrays and numbers that a reduction passes. A `DirectCall` does it for its
          first arguments only, and passes later ones to the same machine code if they have the same classes and, if
          they are arrays, the same dtypes.
Safety    The fields of a record are not compared. So a `DirectCall` belongs to one learner, which always fills a field
          with values of the same type, or its records have a fixed type for each field, as `Batch` has. Arrays have to
          be contiguous.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np


class DirectCall:
    """Call the kernel of a module and name with arguments whose types are always the same."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self._module, self._name = module, name
        # classes of the arguments, positions and dtypes of those that are arrays, and the machine code for them
        self._known: tuple[list[type], list[tuple[int, np.dtype[Any]]], Callable[..., Any]] | None = None

    def __call__(self, *args: Any) -> Any:
        classes = [*map(type, args)]
        known = self._known  # read once, because another thread may replace it
        if known is not None and known[0] == classes:
            for i, dtype in known[1]:
                if args[i].dtype != dtype:
                    break
            else:
                return known[2](*args)
        result = getattr(self._module, self._name)(*args)
        kernel = getattr(self._module, self._name)  # the dispatcher, which the first call puts in its place
        with contextlib.suppress(AttributeError, KeyError):  # numba is switched off
            dtypes = [(i, arg.dtype) for i, arg in enumerate(args) if type(arg) is np.ndarray]
            self._known = classes, dtypes, kernel.overloads[tuple(map(kernel.typeof_pyval, args))].entry_point
        return result
