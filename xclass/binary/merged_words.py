"""Merge tables of tagged words: the words of a feature and regressor are found by line and tag, and averaged.

Source    The rule is that of `merging`, for words of 32 bits; see `tagged_words` for the table.
Cost      O(words) for each model, and O(lines * words of a line) where models differ.
Names     w, G, dG as in `merging` | line, lane, tag, home, q as in `tagged_words`.
Differs   from `merging`: G has two significant bits and grows at random, so dG is often 0 for a weight that has
          changed. Such a weight counts as if dG were FLOOR times the base's G. If this is 0 for all models, as for
          words of G code 0 that the base lacks, the average is the plain one.
Idea      Tables that were doubled a different number of times are doubled to the largest size first. Then the words of
          a line belong to the same features and regressors in all models. A word that a single model has changed is
          taken as it is, and one that no model has any more is gone. If more than 16 words belong to a line, all tables
          are doubled once more if that is allowed, and else those with the smallest G are dropped, as if they had been
          evicted. A word stays in its lane if that is free, otherwise it goes to its other home or to any empty lane.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Int, Int64s, UInt32s
from ..kernels import tagged_format
from ..kernels.constants import LARGEST
from ..kernels.jit import jit
from ..model import stored_arrays
from . import tagged_words
from .merging import added_counts
from .tagged_words import DOUBLINGS, EVICTED, LINE_WORDS, LOST, REFUSED, USED, Words

PIECE_LINES = 1 << 12  # lines to merge at a time
FLOOR = 1.0 / 16.0  # least dG of a word that has changed, as a share of the base's G
TAG_MASK = tagged_words.TAG_MASK
MIX = 0x9E3779B1  # odd multiplier of the numbers that decide how averages are rounded


def merged(models: Sequence[Words], base: Words) -> Words:
    """Return the table that results from merging tables that may have different sizes.

    Parameters
    ----------
    models : tables of the models, read only
    base : table of the base, empty without one; read only
    """
    tables = same_size([base, *models])
    while True:
        result, dropped = _merged_lines(tables)
        times = tagged_words.doublings(result)
        if not dropped or times >= result.state[DOUBLINGS]:
            break
        tables = [_enlarged(words, times + 1) for words in tables]
    counts = [words.state for words in tables]
    for position in (tagged_words.COUNTER, EVICTED, REFUSED, LOST):
        added = added_counts([state[position] for state in counts[1:]], counts[0][position])
        result.state[position] = min(int(added), stored_arrays.MAX_COUNT - dropped)
    result.state[[EVICTED, LOST]] += dropped
    result.state[USED] = np.count_nonzero(result.word)
    return result


def same_size(tables: Sequence[Words]) -> list[Words]:
    """Return tables that are doubled until all are as large as the largest."""
    times = max(tagged_words.doublings(words) for words in tables)
    return [_enlarged(words, times) for words in tables]


def _enlarged(words: Words, times: int) -> Words:
    """Return a table doubled until it has been doubled `times` times; its counts are a copy."""
    words = words._replace(state=words.state.copy())
    while tagged_words.doublings(words) < times:
        words = tagged_words.doubled(words)
    return words


def _merged_lines(tables: Sequence[Words]) -> tuple[Words, int]:
    """Return the merged table and the number of words dropped; the base is the first table."""
    result = tagged_words.copied(tables[0])
    step = PIECE_LINES * LINE_WORDS
    dropped = 0
    for begin in range(0, len(result.word), step):
        pieces = [words.word[begin : begin + step] for words in tables]
        if all(np.array_equal(piece, pieces[0]) for piece in pieces[1:]):
            continue
        dropped += merge_lines(np.stack(pieces), begin // LINE_WORDS, result.word[begin : begin + step])
    return result, dropped


# -- kernels


@jit
def merge_lines(tables: UInt32s, first_line: Int, out: UInt32s) -> int:
    """Merge some lines; return the number of words that found no place.

    Parameters
    ----------
    tables : uint32[models + 1, 16 * lines], words of the base, then of each model; read only
    first_line : number of the first line
    out : uint32[16 * lines], written
    """
    most = LINE_WORDS * tables.shape[0]
    tag, word, lane = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.int64)
    dropped = 0
    for begin in range(0, out.shape[0], LINE_WORDS):
        if _is_unchanged(tables, begin):
            for j in range(LINE_WORDS):
                out[begin + j] = tables[0, begin + j]
            continue
        size = _list_tags(tables, begin, tag, lane)
        number = (first_line + begin // LINE_WORDS) * MIX
        for e in range(size):
            word[e] = average_word(tables, begin, tag[e], number)
        while size > LINE_WORDS:
            size = _drop_weakest(tag, word, lane, size)
            dropped += 1
        _place(word, lane, size, begin, out)
    return dropped


@jit
def _is_unchanged(tables: UInt32s, begin: Int) -> bool:
    """Return whether a line is the same in all tables."""
    for k in range(1, tables.shape[0]):
        for j in range(begin, begin + LINE_WORDS):
            if tables[k, j] != tables[0, j]:
                return False
    return True


@jit
def _list_tags(tables: UInt32s, begin: Int, tag: UInt32s, lane: Int64s) -> int:
    """List the different tags of a line in the models, and the first lane of each; return their number."""
    size = 0
    for k in range(1, tables.shape[0]):
        for j in range(LINE_WORDS):
            word = tables[k, begin + j]
            if word == 0:
                continue
            own = word & TAG_MASK
            e = 0
            while e < size and tag[e] != own:
                e += 1
            if e == size:
                tag[e] = own
                lane[e] = j
                size += 1
    return size


@jit
def find_word(tables: UInt32s, k: Int, begin: Int, tag: np.uint32) -> np.uint32:
    """Return the first word of a line in table k with a tag, 0 if there is none."""
    for j in range(begin, begin + LINE_WORDS):
        word: np.uint32 = tables[k, j]
        if word != 0 and word & TAG_MASK == tag:
            return word
    return np.uint32(0)


@jit
def average_word(tables: UInt32s, begin: Int, tag: np.uint32, number: Int) -> np.uint32:
    """Return the merged word of a tag.

    Parameters
    ----------
    tables, begin : the line
    number : decides, with the tag, how the average is rounded
    """
    before = find_word(tables, 0, begin, tag)
    before_g = np.float64(tagged_format.decode_g(before))
    result = before
    changed = 0
    total = plain = mass = added = 0.0
    for k in range(1, tables.shape[0]):
        word = find_word(tables, k, begin, tag)
        if word == 0 or word == before:
            continue
        changed += 1
        result = word
        d = np.float64(tagged_format.decode_g(word)) - before_g
        added += max(d, 0.0)
        d = max(d, FLOOR * before_g)
        w = np.float64(tagged_format.decode_w(word))
        plain += w
        total += d * w
        mass += d
    if changed < 2:
        return result
    key = number + np.int64(tag)
    g = np.float32(min(before_g + added, LARGEST))
    g_code = tagged_format.encode_g(g, tagged_format.random32(key, 0, tagged_format.G_RANDOM))
    mean = np.float32(total / mass if mass > 0.0 else plain / changed)
    w_code = tagged_format.encode_w(mean, tagged_format.random32(key, 0, tagged_format.W_RANDOM))
    averaged: np.uint32 = np.uint32(g_code | w_code | np.int64(tag))
    return averaged


@jit
def _drop_weakest(tag: UInt32s, word: UInt32s, lane: Int64s, size: Int) -> int:
    """Remove the last of the words with the smallest G; return how many remain."""
    weakest = 0
    for e in range(1, size):
        if tagged_format.decode_g(word[e]) <= tagged_format.decode_g(word[weakest]):
            weakest = e
    for e in range(weakest, size - 1):
        tag[e] = tag[e + 1]
        word[e] = word[e + 1]
        lane[e] = lane[e + 1]
    return size - 1


@jit
def _place(word: UInt32s, lane: Int64s, size: Int, begin: Int, out: UInt32s) -> None:
    """Write words to a line: each to its lane, else to the same lane of the other half, else to any empty lane."""
    for j in range(LINE_WORDS):
        out[begin + j] = np.uint32(0)
    waiting = 0
    for e in range(size):
        at = begin + lane[e]
        if out[at] == 0:
            out[at] = word[e]
        else:
            word[waiting] = word[e]
            lane[waiting] = lane[e] ^ tagged_format.HALF_LANES
            waiting += 1
    rest = 0
    for e in range(waiting):
        at = begin + lane[e]
        if out[at] == 0:
            out[at] = word[e]
        else:
            word[rest] = word[e]
            rest += 1
    at = begin
    for e in range(rest):
        while out[at] != 0:
            at += 1
        out[at] = word[e]
