"""Look keys up in an array of them: open addressing with linear probing.

Layout    `keys` has a power of two of cells, each a key or `empty`. A key lies in the cell that its hash names or,
          where that was taken, in the first free one behind it; the cell after the last is the first.
Secret    Keys may come from a file that somebody wrote to make searches slow. The hash therefore depends on a number
          that each table draws anew, so that nobody can choose keys whose searches are long. This needs a table of
          which nothing is saved or summed in the order of its cells. Prototypes of classes (`clusters.centroids`) are
          summed in that order, so their table has no secret; it leaves out keys whose search is long.
Bound     A search ends after as many steps as there are cells at the latest, whatever the keys.
Differs   Tables whose cells hold more than a key, or whose cells expire, have loops of their own, which say why.
"""

from __future__ import annotations

import secrets

import numpy as np

from ..array_types import AnyArray, Int
from .constants import GOLDEN, SPREAD
from .jit import jit


def new_secret() -> np.uint64:
    """Draw what the hash of a new table depends on."""
    return np.uint64(secrets.randbits(64))


@jit
def hashed(key: Int, secret: np.uint64) -> np.uint64:
    """Return a hash of 40 bits that depends on a secret."""
    z = (np.uint64(key) ^ secret) * GOLDEN
    return ((z ^ (z >> np.uint64(32))) * SPREAD) >> np.uint64(24)


@jit
def hashed_pair(key: Int) -> np.uint64:
    """Return a hash of a key whose halves are two numbers; the upper half reaches the lowest bits as well."""
    z = np.uint64(key) * GOLDEN
    return (z ^ (z >> np.uint64(29))) >> np.uint64(7)


@jit
def search(keys: AnyArray, key: Int, empty: Int, begin: Int, most: int) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs; -1 after `most` steps.

    Parameters
    ----------
    begin : hash of the key, whose lowest bits are the cell where the search begins
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
