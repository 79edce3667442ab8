"""VW's random numbers. The state is an array handed in: nothing is hidden, everything can be saved."""

from __future__ import annotations

import numpy as np

from .jit import jit


@jit
def draw(state):
    """The next float32 in [0, 1); the 64-bit state is `state[0]`, at first `--random_seed`."""
    state[0] = np.uint64(0xEECE66D5DEECE66D) * state[0] + np.uint64(2147483647)
    return np.float32((state[0] >> np.uint64(25)) & np.uint64(0x7FFFFF)) / np.float32(8388608)
