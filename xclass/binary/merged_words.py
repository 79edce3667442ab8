"""Merge tables of tagged words: the words of a feature and regressor are found by line and tag, and averaged.

Source    The rule is that of `merging`, for words of 32 bits; see `tagged_words` for the table.
Cost      O(words) to find the words that a model has changed, and O(words of a line) for each line where models differ.
Names     w, G, dG as in `merging` | line, lane, tag, home, q as in `tagged_words`.
Differs   from `merging`: G has two significant bits and grows at random, so dG is often 0 for a weight that has
          changed. Such a weight counts as if dG were FLOOR times the base's G. If this is 0 for all models, as for
          words of G code 0 that the base lacks, the average is the plain one.
Idea      Tables that were doubled a different number of times are doubled to the largest size first. Then the words of
          a line belong to the same features and regressors in all models. A word that a single model has changed is
          taken as it is, and one that no model has any more is gone. If more than 16 words belong to a line, those
          with the smallest G are dropped, as if they had been evicted. A word stays in its lane if that is free,
          otherwise it goes to its other home or to any empty lane. All tables are doubled once more before if the
          merged one would be full by the rule of learning, or if more than a hundredth of its words would be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float64s, Int, Int64s, UInt32s
from ..kernels import intrinsics, tagged_format
from ..kernels.constants import LARGEST
from ..kernels.jit import inlined, jit
from ..model import stored_arrays, table_changes
from ..model.table_changes import Changes, joined
from . import tagged_words
from .merging import added_counts
from .tagged_words import DOUBLINGS, EVICTED, LINE_WORDS, LOST, REFUSED, USED, Words

FLOOR = 1.0 / 16.0  # least dG of a word that has changed, as a share of the base's G
TAG_MASK = tagged_words.TAG_MASK
MIX = 0x9E3779B1  # odd multiplier of the numbers that decide how averages are rounded
WORD = "word"  # plane of a table in a model file
SAMPLE = 1 << 20  # words of a table from which is estimated how full the merged one will be
MOST_DROPPED = 0.01  # share of the words in use that may be dropped while the table can be doubled
ALL = np.empty(0, np.int64)
AHEAD = 16  # changes of a model whose lines are fetched before they are used


class Averages(NamedTuple):
    """Hold sums over the models that have changed the word of a lane, for each of the 16 lanes of a line."""

    changed: Int64s  # number of these models
    last: UInt32s  # word of the last of them
    total: Float64s  # sum of mass times weight
    plain: Float64s  # sum of the weights
    mass: Float64s
    added: Float64s  # what they have added to G


def merged(models: Sequence[Words], base: Words, live: bool = False) -> Words:
    """Return the table that results from merging tables that may have different sizes.

    The base is empty if there is none; the result is written into its words, unless tables are doubled first. If they
    are live, words are merged elsewhere, and all tables have the size of the result.
    """
    times = max(tagged_words.doublings(words) for words in (base, *models))
    while True:
        models, base = [_enlarged(words, times) for words in models], _enlarged(base, times)
        listed = [] if live else [changes_of(words.word, base.word) for words in models]
        counts = [words.state for words in (base, *models)]
        lost = int(added_counts([own[LOST] for own in counts[1:]], counts[0][LOST]))
        if live or not _is_too_small(base, listed, lost):
            break
        times += 1
    dropped, added = merge_changes(base.word, listed) if listed else (0, 0)
    state = base.state.copy()
    for position in (tagged_words.COUNTER, EVICTED, REFUSED, LOST):
        total = added_counts([own[position] for own in counts[1:]], counts[0][position])
        state[position] = min(int(total), stored_arrays.MAX_COUNT - dropped)
    state[[EVICTED, LOST]] += dropped
    state[USED] += added
    return base._replace(state=state)


def _is_too_small(base: Words, changes: Sequence[Changes], lost: int) -> bool:
    """Return whether to double tables before they are merged.

    `lost` are the words evicted and refused since the last doubling in the base and in the models.
    """
    if tagged_words.doublings(base) >= base.state[DOUBLINGS]:
        return False
    words = min(len(base.word), SAMPLE)  # the first lines are like the others, because lines are chosen by a hash
    first = []
    for own in changes:
        n = int(np.searchsorted(own.rows, words))
        first.append(Changes(own.rows[:n], {WORD: own.planes[WORD][:n]}))
    dropped, added = (
        count * (len(base.word) // words) for count in merge_lines(base.word, *_joined(first), False, ALL)
    )
    state = base.state.copy()
    state[USED] += added
    state[LOST] = lost + dropped
    return bool(tagged_words.is_full(base._replace(state=state)) or dropped > MOST_DROPPED * state[USED])


def merge_changes(word: UInt32s, changes: Sequence[Changes], lines: Int64s = ALL) -> tuple[int, int]:
    """Merge words of a base with those that each model has changed; return what `merge_lines` does.

    `lines` are the numbers of the lines, if these are not all.
    """
    return merge_lines(word, *_joined(changes), True, lines)


def _joined(changes: Sequence[Changes]) -> tuple[UInt32s | Int64s, UInt32s, Int64s]:
    """Return the rows and the words of the changes of all models, and where those of each begin, and the last end."""
    rows = np.concatenate([own.rows for own in changes])
    return rows, joined(changes, WORD), np.cumsum([0, *(len(own.rows) for own in changes)])


def _enlarged(words: Words, times: int) -> Words:
    """Return a table doubled until it has been doubled `times` times; its counts are a copy."""
    words = words._replace(state=words.state.copy())
    while tagged_words.doublings(words) < times:
        words = tagged_words.doubled(words)
    return words


def changes_of(words: UInt32s, base: UInt32s) -> Changes:
    """Return the words in which a table differs from that of the base, which has the same size."""
    return table_changes.of_whole({WORD: words}, {WORD: base})


# -- kernels


@jit
def merge_lines(
    base: UInt32s, rows: UInt32s | Int64s, word: UInt32s, start: Int64s, write: bool, numbers: Int64s
) -> tuple[int, int]:
    """Merge the lines in which a model differs from the base; return how many words found no place, and by how many
    more words are in use in the result than in the base, with those that find no place if `write` is not set.

    Parameters
    ----------
    base : uint32[16 * lines], words of the base; replaced by the merged ones if `write` is set
    rows : uint32[changes], or int64 for tables of more than 16 GB, places in which models differ from the base, rising
        for each model
    word : uint32[changes], what is there
    start : int64[models + 1], where the changes of each model begin
    write : if not, words are only counted
    numbers : int64[lines], those of the lines in the table; nothing if they are all lines
    """
    models = len(start) - 1
    tables = np.empty((models + 1, LINE_WORDS), np.uint32)
    most = LINE_WORDS * models
    tag, merged_word, lane = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most, np.int64)
    at, end = start[:models].copy(), start[:models].copy()
    out = np.empty(LINE_WORDS, np.uint32)
    averages = _new_averages()
    dropped = added = 0
    lines = len(base) // LINE_WORDS
    while True:
        line: Int = lines
        for k in range(models):
            at[k] = end[k]
            if at[k] < start[k + 1]:
                line = min(line, np.int64(rows[at[k]]) // LINE_WORDS)
        if line == lines:
            return dropped, added
        begin, mixed = line * LINE_WORDS, (numbers[line] if len(numbers) > 0 else line) * MIX
        for k in range(models):
            if at[k] + AHEAD < start[k + 1]:
                intrinsics.prefetch(base, np.int64(rows[at[k] + AHEAD]))
            while end[k] < start[k + 1] and np.int64(rows[end[k]]) - begin < LINE_WORDS:
                end[k] += 1
        if _average_in_place(base, begin, rows, word, at, end, averages):
            if write:
                added += _store(averages, mixed, base, begin)
            else:
                for j in range(LINE_WORDS):
                    added += averages.changed[j] > 0 and base[begin + j] == 0
            continue
        for k in range(models + 1):
            for j in range(LINE_WORDS):
                tables[k, j] = base[begin + j]
        for k in range(models):
            for i in range(at[k], end[k]):
                tables[k + 1, np.int64(rows[i]) - begin] = word[i]
        size = _list_tags(tables, tag, lane)
        if not write:
            dropped += max(size - LINE_WORDS, 0)
            for j in range(LINE_WORDS):
                added -= base[begin + j] != 0
            added += size
            continue
        for e in range(size):
            merged_word[e] = average_word(tables, tag[e], mixed)
        while size > LINE_WORDS:
            size = _drop_weakest(tag, merged_word, lane, size)
            dropped += 1
        _place(merged_word, lane, size, out)
        for j in range(LINE_WORDS):
            added += int(out[j] != 0) - int(base[begin + j] != 0)
            base[begin + j] = out[j]


@inlined
def _new_averages() -> Averages:
    total, plain, mass, added = np.empty(LINE_WORDS), np.empty(LINE_WORDS), np.empty(LINE_WORDS), np.empty(LINE_WORDS)
    return Averages(np.zeros(LINE_WORDS, np.int64), np.empty(LINE_WORDS, np.uint32), total, plain, mass, added)


@jit
def _average_in_place(
    base: UInt32s, begin: Int, rows: UInt32s | Int64s, word: UInt32s, at: Int64s, end: Int64s, averages: Averages
) -> bool:
    """Add up the changes of a line if each lane has words of one tag only, and each tag has one lane, as is usual.

    The line begins at `begin` of the base, and its changes in model k are `at[k]:end[k]`. Return False if a word was
    removed or has another lane in another model.
    """
    changed, last, total, plain, mass, added = averages
    j: Int
    for j in range(LINE_WORDS):
        changed[j] = 0
    for k in range(len(at)):
        for i in range(at[k], end[k]):
            own: np.uint32 = word[i]
            j = np.int64(rows[i]) - begin
            before: np.uint32 = base[begin + j]
            if own == 0 or (before != 0 and (own ^ before) & TAG_MASK != 0):
                return False
            if changed[j] == 0:
                if before == 0:
                    for other in range(LINE_WORDS):
                        if changed[other] > 0 and (own ^ last[other]) & TAG_MASK == 0:
                            return False
                total[j] = plain[j] = mass[j] = added[j] = 0.0
            elif (own ^ last[j]) & TAG_MASK != 0:
                return False
            changed[j] += 1
            last[j] = own
            before_g = np.float64(tagged_format.decode_g(before))
            d = np.float64(tagged_format.decode_g(own)) - before_g
            added[j] += max(d, 0.0)
            d = max(d, FLOOR * before_g)
            w = np.float64(tagged_format.decode_w(own))
            plain[j] += w
            total[j] += d * w
            mass[j] += d
    return True


@inlined
def _store(averages: Averages, number: Int, base: UInt32s, begin: Int) -> int:
    """Write the averages of a line; return the number of lanes that were empty before."""
    new = 0
    for j in range(LINE_WORDS):
        if averages.changed[j] == 0:
            continue
        before: Any = base[begin + j]
        new += before == 0
        before_g = np.float64(tagged_format.decode_g(before))
        base[begin + j] = _averaged(
            averages.changed[j], averages.last[j], before_g, averages.total[j], averages.plain[j], averages.mass[j],
            averages.added[j], number,
        )  # fmt: skip
    return new


@inlined
def _averaged(
    changed: Int, last: np.uint32, before_g: float, total: float, plain: float, mass: float, added: float, number: Int
) -> np.uint32:
    """Return the merged word from the sums over the words of a tag that have changed, the last of which is given."""
    if changed < 2:
        return last
    tag = np.int64(last & TAG_MASK)
    g = np.float32(min(before_g + added, LARGEST))
    g_code = tagged_format.encode_g(g, tagged_format.random32(number + tag, 0, tagged_format.G_RANDOM))
    mean = np.float32(total / mass if mass > 0.0 else plain / changed)
    w_code = tagged_format.encode_w(mean, tagged_format.random32(number + tag, 0, tagged_format.W_RANDOM))
    return np.uint32(g_code | w_code | tag)


@jit
def _list_tags(tables: UInt32s, tag: UInt32s, lane: Int64s) -> int:
    """List the different tags of a line in the models, and the first lane of each; return their number."""
    size = 0
    for k in range(1, tables.shape[0]):
        for j in range(LINE_WORDS):
            word = tables[k, j]
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
def find_word(tables: UInt32s, k: Int, tag: np.uint32) -> np.uint32:
    """Return the first word of a line in table k with a tag, 0 if there is none."""
    for j in range(LINE_WORDS):
        word: np.uint32 = tables[k, j]
        if word != 0 and word & TAG_MASK == tag:
            return word
    return np.uint32(0)


@jit
def average_word(tables: UInt32s, tag: np.uint32, number: Int) -> np.uint32:
    """Return the merged word of a tag.

    `tables` is uint32[models + 1, 16], the words of a line in the base, then in each model. `number` decides, with the
    tag, how the average is rounded.
    """
    before = find_word(tables, 0, tag)
    before_g = np.float64(tagged_format.decode_g(before))
    result = before
    changed = 0
    total = plain = mass = added = 0.0
    for k in range(1, tables.shape[0]):
        word = find_word(tables, k, tag)
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
    return _averaged(changed, result, before_g, total, plain, mass, added, number)


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
def _place(word: UInt32s, lane: Int64s, size: Int, out: UInt32s) -> None:
    """Write words to a line: each to its lane, else to the same lane of the other half, else to any empty lane."""
    for j in range(LINE_WORDS):
        out[j] = np.uint32(0)
    waiting = 0
    for e in range(size):
        if out[lane[e]] == 0:
            out[lane[e]] = word[e]
        else:
            word[waiting] = word[e]
            lane[waiting] = lane[e] ^ tagged_format.HALF_LANES
            waiting += 1
    rest = 0
    for e in range(waiting):
        if out[lane[e]] == 0:
            out[lane[e]] = word[e]
        else:
            word[rest] = word[e]
            rest += 1
    at = 0
    for e in range(rest):
        while out[at] != 0:
            at += 1
        out[at] = word[e]
