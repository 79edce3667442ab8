"""Look up keys in hash tables with open addressing and linear probing.

Cost      A search takes O(1) on average, and at most as many steps as there are cells, whatever the keys.
Differs   Tables whose cells hold more than a key, or whose cells expire, have loops of their own, which say why.
Idea      `keys` has a power of two of cells, each a key or `empty`. A key is in the cell that its hash names or, if
          that was taken, in the first free cell behind it; the cell after the last is the first.

Keys may come from a file that was made to slow searches down. The hash therefore depends on a secret number that each
table draws anew, so that such keys cannot be chosen in advance. This requires that no result depends on the order of
the cells. The prototypes of classes (`clusters.centroids`) are summed in that order, so their table has no secret;
instead it leaves out keys whose search is long.
"""

from __future__ import annotations

import secrets

import numpy as np

from ..array_types import AnyArray, Int
from .constants import GOLDEN, SPREAD
from .jit import jit


def new_secret() -> np.uint64:
    """Draw the secret that the hash of a new table depends on."""
    return np.uint64(secrets.randbits(64))


@jit
def hashed(key: Int, secret: np.uint64) -> np.uint64:
    """Return a 40-bit hash of a key that depends on a secret."""
    z = (np.uint64(key) ^ secret) * GOLDEN
    return ((z ^ (z >> np.uint64(32))) * SPREAD) >> np.uint64(24)


@jit
def hashed_pair(key: Int) -> np.uint64:
    """Return a hash of a key that combines two numbers; its upper half affects the lowest bits too."""
    z = np.uint64(key) * GOLDEN
    return (z ^ (z >> np.uint64(29))) >> np.uint64(7)


@jit
def search(keys: AnyArray, key: Int, empty: Int, begin: Int, most: int) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs; -1 after `most` steps.

    Parameters
    ----------
    keys : integers[cells], read only
    key : key to look up
    empty : value of empty cells
    begin : hash of the key, whose lowest bits are the cell where the search begins
    most : largest number of steps
    """
    last = np.int64(keys.shape[0] - 1)
    at = np.int64(begin) & last
    steps = 0
    while keys[at] != key and keys[at] != empty:
        if steps == most:
            return np.int64(-1)
        at = (at + 1) & last
        steps += 1
    return at


@jit
def probe(keys: AnyArray, key: Int, empty: Int, secret: np.uint64) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs, in a table with a secret; -1 in a full table."""
    return search(keys, key, empty, hashed(key, secret), keys.shape[0])
