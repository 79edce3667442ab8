"""Look up keys in hash tables with open addressing and linear probing.

Cost      A search takes O(1) on average, and at most as many steps as there are cells, whatever the keys.
Differs   Tables whose cells hold more than a key, or whose cells expire, are searched by loops of their own; the
          functions that contain these loops say why.
Idea      The number of cells in `keys` is a power of two; each cell contains a key or the value `empty`. The lowest
          bits of a key's hash give its first cell. If that is occupied by another key, the following cells are tried
          in turn, and after the last cell the first one.

Keys may come from a file that was made to slow searches down by keys that collide. The hash therefore depends on a
secret number, which each table draws anew, so that such keys cannot be chosen in advance. This requires that no result
depends on the order of the cells. The prototypes of classes (`clusters.centroids`) are summed in the order of the
cells, so their table uses no secret; it leaves out keys whose search would be long.
"""

from __future__ import annotations

import secrets

import numpy as np

from ..array_types import AnyArray, Int
from .constants import GOLDEN, SPREAD
from .jit import bare, jit


def new_secret() -> np.uint64:
    """Draw the secret that the hash of a new table depends on."""
    return np.uint64(secrets.randbits(64))


@bare
def hashed(key: Int, secret: np.uint64) -> np.uint64:
    """Return a 40-bit hash of a key that depends on a secret."""
    z = (np.uint64(key) ^ secret) * GOLDEN
    return ((z ^ (z >> np.uint64(32))) * SPREAD) >> np.uint64(24)


@jit
def hashed_pair(key: Int) -> np.uint64:
    """Return a hash of a key that packs two numbers; the upper half of the key affects the lowest bits of the hash too.

    It depends on no secret.
    """
    z = np.uint64(key) * GOLDEN
    return (z ^ (z >> np.uint64(29))) >> np.uint64(7)


@bare
def search(keys: AnyArray, key: Int, empty: Int, start_hash: Int, max_steps: int) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs; -1 after `max_steps` steps.

    The lowest bits of `start_hash` give the cell where the search begins.
    """
    last = np.int64(keys.shape[0] - 1)
    at = np.int64(start_hash) & last
    steps = 0
    while keys[at] != key and keys[at] != empty:
        if steps == max_steps:
            return np.int64(-1)
        at = (at + 1) & last
        steps += 1
    return at


@bare
def probe(keys: AnyArray, key: Int, empty: Int, secret: np.uint64) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs, in a table with a secret; -1 in a full table."""
    return search(keys, key, empty, hashed(key, secret), keys.shape[0])
