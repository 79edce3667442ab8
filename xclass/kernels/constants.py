"""Define typed constants that several kernels use.

Kernels need the types: in numba, a float32 times the literal 2 is a float64.
"""

from __future__ import annotations

import numpy as np

ZERO, HALF, ONE, TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)
INFINITE = np.float32(np.inf)
LARGEST = float(np.finfo(np.float32).max)  # the largest float32, as a float64
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, an odd multiplier that mixes the high bits well
SPREAD = np.uint64(0xD6E8FEB86659FD93)  # a second odd multiplier, for hashes of two numbers
