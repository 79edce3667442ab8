"""Generate the pseudo-random numbers of VW, and mix the bits of integers.

The caller passes the state of the generator as an array, so that it can be stored in a model.
"""

from __future__ import annotations

import numpy as np

from ..array_types import UInt64s
from .jit import bare


@bare
def draw(state: UInt64s) -> np.float32:
    """Return the next float32 in [0, 1); `state` is uint64[1], initially `--random_seed`."""
    state[0] = np.uint64(0xEECE66D5DEECE66D) * state[0] + np.uint64(2147483647)
    return np.float32((state[0] >> np.uint64(25)) & np.uint64(0x7FFFFF)) / np.float32(8388608)


@bare
def mix(z: np.uint64) -> np.uint64:
    """Return a well-mixed hash of 64 bits.

    Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
    """
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
