"""Hash names of features that are Python strings, columns of a matrix, and words between blanks.

A feature gets the index that the readers of files give the same name in the same namespace. The reader of VW text takes
every name of digits for a number, the others only one that is written as a number of 32 bits is, see `hashing`.

Source    `hashing`, whose kernels hash text; `mmh3` computes the same hash of single names.
Cost      0.1 us for a short name that was hashed before, as the latest 65,536 are cached; 1 us for a new one.
Names     The seed of a feature is the hash of its namespace; that of the namespace without a name is `unnamed`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..array_types import Bools, Int, Int64s, UInt8s, UInt32s
from ..kernels.jit import inlined, jit
from . import hashing

CACHED, SPACES = 1 << 16, 1 << 10  # names of features and of namespaces that are cached
LETTERS = 64  # of a name that is cached; all of them take 16 MB if they are short, and 36 MB at most
STRIPPED = bytes(range(33))  # bytes that --hash strings strips from both ends of a name in VW text
UINT32 = 2**32 - 1
LONGEST = 300  # bytes of a name that `mmh3` hashes; a longer one is left to the kernel
PADDING = 8  # bytes that must follow a document in its array, because short words are loaded eight bytes at a time
DIGITS = 20 + 3  # bytes of the largest column number, and those that `hashing.murmur3_at` reads beyond its end


class Hashing(NamedTuple):
    seed: np.uint32  # --hash_seed
    hash_all: bool  # whether names of digits are hashed too (--hash all)
    unnamed: np.uint32  # hash of the namespace without a name
    mask: np.uint32  # 2**b - 1
    identity: bool  # whether a column number is the index itself
    vw_text: bool  # whether all names of digits are numbers, as in VW text


def encoded(text: str) -> bytes:
    """Return the bytes that are hashed for a text: UTF-8, with bytes that were not decoded as they were.

    Half of a surrogate pair, which JSON may contain, becomes three bytes, as in the reader of JSON lines.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def new_hashing(hash_seed: int, hash_all: bool, bits: int, identity: bool = False, vw_text: bool = False) -> Hashing:
    unnamed = _murmur3()(b"", hash_seed, signed=False) if hash_seed else 0
    mask = np.uint32((1 << min(bits, 32)) - 1)
    return Hashing(np.uint32(hash_seed), hash_all, np.uint32(unnamed), mask, identity, vw_text)


def _murmur3() -> Callable[..., int]:
    """Return the hash function of mmh3, which is imported on first use, because `--help` does not need it."""
    import mmh3

    hash_function: Callable[..., int] = mmh3.hash
    return hash_function


class NameHasher:
    """Hash the names of features and namespaces that are Python strings, one by one.

    `index` returns the index of a feature by its name and the seed of its namespace, and `namespace` such a seed by a
    name. `index` caches, and so is for names of at most LETTERS letters, and `index_of_long` for others: a server
    would have to keep all the long ones that a client sends.
    """

    def __init__(self, rule: Hashing) -> None:
        self.rule, self._murmur3 = rule, _murmur3()
        self._mask = int(rule.mask)
        self.index = lru_cache(CACHED)(self.index_of_long)
        self._namespace = lru_cache(SPACES)(self.hash)

    def index_of_long(self, name: str, seed: int) -> int:
        return self.hash(name, seed) & self._mask

    def namespace(self, name: str) -> int:
        if not name:
            return int(self.rule.unnamed)
        return (self._namespace if len(name) <= LETTERS else self.hash)(name, int(self.rule.seed))

    def hash(self, name: str, seed: int) -> int:
        return self.hash_bytes(encoded(name), seed)

    def hash_bytes(self, data: bytes, seed: int) -> int:
        """Return the hash of a name, of 32 bits, which `hashing.name_hash` gives the same name."""
        rule = self.rule
        if len(data) > LONGEST:
            letters = np.frombuffer(data, np.uint8)
            return int(hashing.name_hash(letters, 0, len(letters), np.uint32(seed), rule.hash_all, rule.vw_text))
        if not rule.hash_all:
            if rule.vw_text:
                data = data.strip(STRIPPED) or b"0"
            if data.isdigit():
                number = int(data) & UINT32
                if rule.vw_text or data == b"%d" % number:
                    return (number + seed) & UINT32
        return self._murmur3(data, seed, False)  # a keyword takes as long as the hash


# -- kernels


@jit
def _hashes_of_numbers(columns: Int64s, seed: np.uint32) -> UInt32s:
    """Return the hashes of numbers, int64[z], which are written with digits."""
    digits = np.zeros(DIGITS, np.uint8)
    hashes = np.empty(len(columns), np.uint32)
    for k in range(len(columns)):
        begin = DIGITS - 3
        rest = columns[k]
        while begin == DIGITS - 3 or rest > 0:
            begin -= 1
            digits[begin] = np.uint8(48 + rest % 10)
            rest //= 10
        hashes[k] = hashing.murmur3(digits, begin, DIGITS - 3, seed)
    return hashes


@inlined
def is_space(c: int) -> bool:
    """Return whether a byte is white space, which separates words, as in `bytes.split`."""
    return (c == 32) | ((c >= 9) & (c <= 13))


@inlined
def hash_words(
    text: UInt8s, begin: Int, end: Int, seed: np.uint32, every: bool, mask: np.uint32, index: UInt32s, z: int
) -> int:
    """Write the indices of the words of one document to `index` from z on; return z plus the number of words.

    `:` and `|` have no special meaning. Seven bytes beyond `end` are read and must exist.
    """
    p = begin
    while p < end:
        while p < end and is_space(text[p]):
            p += 1
        first = p
        while p < end and not is_space(text[p]):
            p += 1
        if p > first:
            if hashing.is_short(text, first, p):
                h = hashing.short_at(text, first, p, seed)
            else:
                h = hashing.word_at(text, first, p, seed, every)
            index[z] = np.uint32(h & mask)
            z += 1
    return z


# -- Python


def column_indices(columns: Int64s, rule: Hashing) -> UInt32s:
    """Return the indices of columns of a matrix, int64[z]; column j is the feature named `j` without a namespace."""
    if rule.hash_all and not rule.identity:
        hashes = _hashes_of_numbers(columns, rule.unnamed)
    else:
        hashes = (columns.astype(np.uint64) + np.uint64(0 if rule.identity else rule.unnamed)).astype(np.uint32)
    return hashes & rule.mask


ALIKE = "count the columns of all data from the same number"  # advice
FEWEST, MOST_KNOWN = 3, 0.9  # columns that seem to count from another number, and the share known of those between


def shift_note(columns: Int64s, known: Callable[[Int64s], Bools | None], before: str, given: str, advice: str) -> str:
    """Return a note if columns seem to count from 0 where those learned from count from 1, or the reverse, or nothing.

    Parameters
    ----------
    columns : int64[c], those of the examples, rising
    known : returns which columns were learned from, bool[any] for int64[any]; None if that is not known
    before, given : words for the note: what has the others, as "the model has learned from", and what has the columns
    advice : what to do
    """
    if len(columns) < FEWEST:
        return ""
    last = int(columns[-1])
    found = known(np.array([0, *columns[columns > 0][:-1], last, last + 1]))
    if found is None or found[1:-2].mean() < MOST_KNOWN:
        return ""
    if columns[0] == 0 and not found[0] and found[-2] and found[-1]:
        others, first = f"columns 1 to {last + 1} at least", 0
    elif columns[0] == 1 and found[0] and not found[-2]:
        others, first = "columns from 0 on", 1
    else:
        return ""
    return (
        f"{before} {others}, and {given} has columns {first} to {last}, as if they were counted "
        f"from {first}: each may be taken for another one; {advice}"
    )
