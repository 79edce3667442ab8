"""Look keys up in an array of them: open addressing with linear probing.

Layout    `keys` has a power of two of cells, each a key or `empty`. A key lies in the cell that its hash names or,
          where that was taken, in the first free one behind it; the cell after the last is the first.
Bound     A search ends after as many steps as there are cells, whatever the keys: they may come from a file that
          somebody wrote to make searches slow. `search` takes a smaller bound, for the keys of a file on their way in.
Differs   Tables whose cells hold more than a key, or whose cells expire, have loops of their own, which say why.
"""

from __future__ import annotations

import numpy as np

from ..array_types import AnyArray, Int
from .constants import GOLDEN
from .jit import jit


@jit
def hashed(key: Int, shift: int) -> np.uint64:
    """Return a hash by multiplication, without the `shift` lowest bits of the product, which are mixed least."""
    return (np.uint64(key) * GOLDEN) >> np.uint64(shift)


@jit
def hashed_pair(key: Int) -> np.uint64:
    """Return a hash of a key whose halves are two numbers; the upper half reaches the lowest bits as well."""
    z = np.uint64(key) * GOLDEN
    return (z ^ (z >> np.uint64(29))) >> np.uint64(7)


@jit
def search(keys: AnyArray, key: Int, empty: Int, begin: Int, most: int) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs; -1 where that is over `most` steps from `begin`."""
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
def probe(keys: AnyArray, key: Int, empty: Int, shift: int) -> np.int64:
    """Return the cell of a key, or the empty cell where it belongs, by its hash of this `shift`; -1 in a full table."""
    return search(keys, key, empty, hashed(key, shift), keys.shape[0])
