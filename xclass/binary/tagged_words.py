"""Store regressors that learn by AdaGrad in tagged words of four bytes, so that no two of them share a weight.

Source    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011 (the diagonal rule). The table is this
          project's own: an associative cache in which a word says whose it is; docs/defaults.md has the measurements.
Cost      O(s) to score or train all regressors of a block on an example of s features: one cache line for each feature.
Names     w weight | G sum of importance * slope**2 * x**2 | word: w, G and a tag in 32 bits | line: 16 words, a cache
          line | block: up to three levels of a tree, seven nodes | q number of a regressor within its block | place of
          a regressor: 8 * block + q | home: one of two lanes where the word of a feature and regressor belongs.
Differs   from slots that are found by hashing alone (`tree_routers`): there, regressors whose hashes collide share a
          weight. Here a word has a tag, and a regressor without a word has weight 0. When a line is full, a new word
          takes the place of the word with the smallest G, if the G that it would begin with is at least as large;
          otherwise the feature is left out of the step. So what is kept are the weights that have learned most.
          w has 8 significant bits and G has 2. Both are rounded up or down at random, such that their means are exact.

    word   | sign of w, 1 bit | |w|, 5 bits exponent and 7 bits mantissa | G, 5 and 1 | tag, 13 bits |

|w| lies between 2**-25 and 2**13, with fewer significant bits below 2**-18, and G between 2**-16 and 1.5 * 2**15.
Larger numbers become the largest. A word in use is never 0, because its G is not.

The line of a feature and a block, and ten bits of the tag, are bits of the hash of both; the last three bits of the
tag are q. Three more bits of the hash, the twist, decide the homes of q: lane q ^ twist of each half of the line. A new
word goes home if one of its homes is empty, otherwise to the lane of the smallest G; it moves home when it learns and
finds a home empty, which happens after the table was doubled. A scorer has one word for each
feature and class, in any lane of a line that depends on both, and 13 bits of the hash as the tag.

A table can be doubled without knowing the hashes: the highest bit of the tag that is not yet part of the line's number
decides which of two lines a word goes to.

Random numbers are derived from a counter of the features that were learned, so that the same examples give the same
words. The kernels receive an example as in `adagrad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Bools, Float32s, Int, Int64s, UInt32s, UInt64s
from ..kernels import intrinsics, packed_words, tagged_format, tagged_lines, used_items
from ..kernels.constants import GOLDEN, SPREAD, ZERO
from ..kernels.jit import bare, jit
from ..model import stored_arrays
from ..model.archive import WORDS, Archive, LiveTable
from ..options.declare import option, refused
from ..system import memory, sparse_memory

LINE_WORDS = tagged_format.LANES
# Positions in `Words.state`, and its size. A table is doubled when USED reaches FULL, or LOST reaches MOST_LOST.
COUNTER, USED, EVICTED, REFUSED, LOST, FULL, MOST_LOST, DOUBLINGS, EAGER, NUMBERS = range(10)
STORED = FULL  # numbers of the state that a model file stores
MOST_DOUBLINGS = 6
START_BITS = 20  # -b at which a table begins that is doubled when it is full
# The first doublings are for what the data need; later ones cost more memory than most data are worth, so they wait
# until more was lost, that is evicted or refused since the last doubling, than two tables hold.
EAGER_DOUBLINGS = 3
EAGER_SHARE, LOST_SHARE = 0.5, 2.0  # of the words of a table: in use, and lost
NEVER = np.iinfo(np.int64).max
TAG_BITS, TAG_MASK, NUMBER_MASK = tagged_format.TAG_BITS, np.uint32(tagged_format.TAG_MASK), tagged_format.NUMBER_MASK
OF_BLOCK = np.uint32(tagged_format.TAG_MASK & ~NUMBER_MASK)  # bits of a tag without q
LEAST_TAG = np.uint32(NUMBER_MASK + 1)  # so that the bits of the hash in a tag are never those of an empty word
LANES = np.uint64(LINE_WORDS)


class Words(NamedTuple):
    """Hold a table of 2**L lines that all regressors share."""

    word: UInt32s  # uint32[16 << L]; lines begin at multiples of 64 bytes
    shift: np.uint64  # 64 - L
    tag_shift: np.uint64  # 64 - 13 - L of the table before it was doubled
    # int64[NUMBERS]: features learned; words in use; evicted; refused; both since the last doubling; limits of the
    # words in use and of those lost, of doublings, and of those that wait for no loss
    state: Int64s
    lines: packed_words.PackedLines  # of a table without its empty lanes, see `packed_words`, which cannot learn


class Pairs(NamedTuple):
    """Hold what is known about the words of some pairs of a feature and a class while an example is learned."""

    at: Int64s  # int64[n], position of the word, or of another one of its line if there is none
    tag: UInt32s  # uint32[n], tag of the word, see `locate`
    w: Float32s  # float32[n], its weight
    g: Float32s  # float32[n], its G
    code: UInt32s  # uint32[n], scratch: bits of the word after a step, without the tag
    before: UInt32s  # uint32[n], bits of the word as they were last read or written, without the tag


LAYOUT_RULE = refused(
    "layout",
    "{layout} cannot be used with --{reduction}, which keeps its weights in tagged words; leave it out",
    layout={"odd", "vw"},
)


def doublings_option(when: str = "half of its words are in use") -> Any:
    """Return the declaration of the option `max_doublings`."""
    return option(
        f"how often a table of weights is doubled when {when}; -b is the size at which it begins",
        minimum=0,
        maximum=MOST_DOUBLINGS,
        default_text=f"0 with -b, else {MOST_DOUBLINGS}",
        stored=True,
    )


def default_sizes(bits: int | None, doublings: int | None, size: int) -> dict[str, object]:
    """Return the layout and the defaults of -b and --max_doublings; `size` is that of all tables with START_BITS."""
    resolved: dict[str, object] = {"layout": "tagged"}
    if bits is None:
        resolved["bits"] = START_BITS
    if doublings is None:
        resolved["max_doublings"] = affordable_doublings(size) if bits is None else 0
    return resolved


def new_pairs(size: int) -> Pairs:
    return Pairs(
        np.empty(size, np.int64), np.empty(size, np.uint32), np.empty(size, np.float32), np.empty(size, np.float32),
        np.empty(size, np.uint32), np.empty(size, np.uint32),
    )  # fmt: skip


def new_words(
    line_bits: int, doublings: int = 0, weights_only: bool = False, eager: int = EAGER_DOUBLINGS
) -> Words:  # fmt: skip
    """Return an empty table of 2**line_bits lines that may be doubled `doublings` times, the first `eager` ones early.

    With `weights_only` it is packed: it can be restored from a model and predict, but neither learn nor be inspected.
    """
    tag_shift = np.uint64(64 - TAG_BITS - line_bits)
    state = np.zeros(NUMBERS, np.int64)
    state[[DOUBLINGS, EAGER]] = doublings, eager
    if weights_only:
        no_words = np.empty(0, np.uint32)
        word, lines = packed_words.padded(no_words), packed_words.lines_of(no_words, 1 << line_bits)
    else:
        word, lines = sparse_memory.zeros(LINE_WORDS << line_bits), packed_words.no_lines()
    return _with_limit(Words(word, np.uint64(64 - line_bits), tag_shift, state, lines))


def size(words: Words) -> int:
    """Return the number of words for which a table has lanes."""
    return LINE_WORDS << int(64 - words.shift)


def affordable_doublings(size: int) -> int:
    """Return how often tables of `size` bytes may be doubled without taking a quarter of the free memory."""
    free, times = memory.available(), MOST_DOUBLINGS
    while free is not None and times > 0 and size << times > free // 4:
        times -= 1
    return times


def _with_limit(words: Words) -> Words:
    """Return a table after setting the numbers of words from which it is doubled."""
    lanes, times = size(words), doublings(words)
    words.state[[FULL, MOST_LOST]] = NEVER
    if times < words.state[DOUBLINGS]:
        if times < words.state[EAGER]:
            words.state[FULL] = int(EAGER_SHARE * lanes)
        else:
            words.state[MOST_LOST] = int(LOST_SHARE * lanes)
    return words


def is_crowded(lanes: int, eager: bool, used: int, lost: int) -> bool:
    """Return whether a table is doubled that may be, by the words in use and those lost."""
    return used >= EAGER_SHARE * lanes if eager else lost >= LOST_SHARE * lanes


def copied(words: Words) -> Words:
    word = sparse_memory.zeros(len(words.word))
    word[:] = words.word
    return words._replace(word=word, state=words.state.copy())


def doublings(words: Words) -> int:
    """Return how often a table was doubled."""
    return int(64 - words.shift) - int(64 - TAG_BITS - words.tag_shift)


def doubled(words: Words) -> Words:
    """Return a table of twice as many lines with the same words."""
    larger = words._replace(word=sparse_memory.zeros(2 * len(words.word)), shift=words.shift - np.uint64(1))
    spread_lines(words.word, larger.word, TAG_BITS - 1 - doublings(words))
    larger.state[LOST] = 0
    return _with_limit(larger)


def serialize(archive: Archive, name: str, words: Words) -> Words:
    """Save a table, without G if only predictions are needed, or return a new one filled from a model.

    Any word is valid: weights are always finite. The number of words in use is counted anew. A table that is packed,
    see `new_words`, stays so if few of its lanes have words.
    """
    times = archive.take(f"{name}.doublings", np.array([doublings(words)]), (1,), 0, int(words.state[DOUBLINGS]))
    packed = len(words.lines.bitmap) > 0
    if archive.live is not None:
        limits = np.array([size(words) >> times[0] if archive.saves else 0, *words.state[[DOUBLINGS, EAGER]]])
        archive.fill(f"{name}.limits", limits)
        live = archive.hand_over(name, LiveTable(WORDS, (words.word,)))
        if not archive.saves:
            words = words._replace(shift=words.shift - np.uint64(times[0]))
            words = words._replace(word=sparse_memory.zeros(size(words)) if live is None else live.planes[0])
        archive.fill_counts(f"{name}.counts", words.state[:STORED])
        return words if archive.saves else _with_limit(words)
    if archive.saves:
        word = words.word
        if archive.predict_only:
            word = np.empty_like(words.word)
            forget_g(words.word, word)
        if packed:
            word = word[: -packed_words.PADDING]
            kept = word != 0
            index = packed_words.positions(words.lines)[kept]
            archive.arrays.update(stored_arrays.pack_rows(name, index, {"word": word[kept]}, size(words)))
        else:
            archive.table(name, {"word": word})
        archive.fill(f"{name}.counts", words.state[:STORED])
        return words
    words = words._replace(shift=words.shift - np.uint64(times[0]))
    lanes = size(words)
    few = stored_arrays.rows_in_use(name, archive.arrays, lanes, {"word": np.uint32}) if packed else None
    if few is not None:
        stored_arrays.check_memory(f"{name}.doublings", used_items.bitmap_bytes(lanes // LINE_WORDS))
        used = int(np.count_nonzero(few[1]["word"]))
        words = words._replace(word=packed_words.padded(few[1]["word"]))
        words = words._replace(lines=packed_words.lines_of(few[0], lanes // LINE_WORDS))
    else:
        stored_arrays.check_memory(f"{name}.doublings", 4 * lanes)
        words = words._replace(word=sparse_memory.zeros(lanes), lines=packed_words.no_lines())
        # counted where the words are stored, because counting reads all pages of a table that is almost empty
        counts: list[int] = []
        stored_arrays.unpack_table(
            name, archive.arrays, {"word": words.word}, lambda _, word: counts.append(int(np.count_nonzero(word)))
        )
        used = sum(counts)
    archive.fill_counts(f"{name}.counts", words.state[:STORED])
    words.state[USED] = used
    return _with_limit(words)


def read_lines(words: Words, position: Int64s) -> UInt32s:
    """Return the words of some lines, uint32[n, 16]; `position` is int64[n], see `locate`."""
    if not len(words.lines.bitmap):
        lines: UInt32s = words.word[position[:, None] + np.arange(LINE_WORDS)]
        return lines
    lines = np.zeros((len(position), LINE_WORDS), np.uint32)
    packed_words.copy_lines(words, position.copy(), lines)
    return lines


def waits_for_loss(words: Words) -> bool:
    """Return whether a table loses words because this is how its learner tells that it has to be doubled."""
    return bool(words.state[EAGER] == 0 and doublings(words) < words.state[DOUBLINGS])


def occupancy(tables: Sequence[Words]) -> str:
    used, evicted, refused = (sum(int(words.state[i]) for words in tables) for i in (USED, EVICTED, REFUSED))
    lanes = sum(map(size, tables))
    return f"weights in use = {used} of {lanes} ({100 * used / lanes:.1f}%), evicted = {evicted}, refused = {refused}"


# -- kernels


@bare
def is_full(words: Words) -> bool:
    full: bool = words.state[USED] >= words.state[FULL] or words.state[LOST] >= words.state[MOST_LOST]
    return full


@jit
def forget_g(word: UInt32s, stripped: UInt32s) -> None:
    """Copy words with the smallest G, and without those whose weight is 0, which predictions do not miss."""
    keep = np.uint32(~((tagged_format.G_CODES - 1) << tagged_format.G_FIELD) & 0xFFFFFFFF)
    for i in range(len(word)):
        has_weight = np.int64(word[i]) >> tagged_format.W_FIELD & (tagged_format.W_CODES - 1) != 0
        stripped[i] = word[i] & keep | np.uint32(1 << tagged_format.G_FIELD) if has_weight else np.uint32(0)


@jit
def spread_lines(word: UInt32s, larger: UInt32s, bit: Int) -> None:
    """Copy each word to the same lane of line 2 i or 2 i + 1 of `larger`, zeros before, by a bit of its tag."""
    for i in range(len(word)):
        half = np.int64(word[i]) >> bit & 1
        larger[(2 * (i >> 4) + half) * LINE_WORDS + (i & LINE_WORDS - 1)] = word[i]


@bare
def locate(words: Words, feature: np.uint64, key: Int) -> tuple[Int, np.uint32]:
    """Return the position of the line of a feature for a block or class, and the tag, at least LEAST_TAG."""
    z = (feature ^ (np.uint64(key) * SPREAD)) * GOLDEN
    position = np.int64((z >> words.shift) * LANES)
    return position, max(np.uint32(z >> words.tag_shift) & TAG_MASK, LEAST_TAG)


@bare
def prefetch_line(words: Words, position: Int) -> None:
    """Prefetch what is read first of the line at a position."""
    if packed_words.is_packed(words):
        packed_words.prefetch(words, position)
    else:
        intrinsics.prefetch(words.word, position)


@bare
def prefetch_block(words: Words, h: UInt64s, count: Int, block: Int) -> None:
    for f in range(count):
        prefetch_line(words, locate(words, h[f], block)[0])


@bare
def fetch_block(words: Words, h: UInt64s, count: Int, block: Int, at: Int64s, first: Int) -> None:
    """Prefetch the lines of a block, and write to `at[first:first + count]` where they are, for `score_fetched`."""
    for f in range(count):
        position, tag = locate(words, h[f], block)
        prefetch_line(words, position)
        at[first + f] = position << TAG_BITS | np.int64(tag)
    if packed_words.is_packed(words):
        packed_words.find(words, at, first, first + count, np.int64(TAG_BITS))


@bare
def read_block(words: Words, feature: np.uint64, block: Int, w: Float32s) -> None:
    """Write the weights of a feature in the regressors of a block to `w`, float32[8], 0 where there is no word."""
    position, tag = locate(words, feature, block)
    w[:] = ZERO
    for lane in range(LINE_WORDS):
        word: Any = words.word[position + lane]
        if word != 0 and (word ^ tag) & OF_BLOCK == 0:
            w[np.int64(word) & NUMBER_MASK] = tagged_format.decode_w(word)


@jit
def mark_known(words: Words, feature: UInt32s, first: Int, end: Int, found: Bools) -> None:
    """Set `found` (bool[z]) for each feature (uint32[z]) that has a weight in one of the blocks first..end-1."""
    h, one, at, scores = np.empty(1, np.uint64), np.ones(1, np.float32), np.empty(1, np.int64), np.empty(8, np.float32)
    for f in range(len(feature)):
        h[0] = np.uint64(feature[f]) * GOLDEN
        block = first
        while block < end and not found[f]:
            score_block(words, h, one, np.int64(1), block, at, scores, np.int64(0))
            found[f] = np.any(scores != ZERO)
            block += 1


@bare
def score_block(
    words: Words, h: UInt64s, x: Float32s, count: Int, block: Int, at: Int64s, scores: Float32s, begin: Int
) -> None:
    """Write the scores of the regressors of a block to `scores[begin:begin + 8]`; `at` is int64[count], scratch."""
    fetch_block(words, h, count, block, at, np.int64(0))  # all lines are fetched before the first is used
    score_fetched(words, x, count, at, np.int64(0), scores, begin)


@bare
def score_fetched(words: Words, x: Float32s, count: Int, at: Int64s, first: Int, scores: Float32s, begin: Int) -> None:
    """Write the scores of the regressors of a block that `fetch_block` fetched to `scores[begin:begin + 8]`."""
    if packed_words.is_packed(words):
        packed_words.score(words, x, count, at, first, scores, begin)
        return
    sums = tagged_lines.new_sums()
    for f in range(count):
        where: Any = at[first + f]
        position, tag = where >> TAG_BITS, np.uint32(where) & TAG_MASK
        elsewhere = tagged_lines.add_line(sums, words.word, position, tag, x[f])
        while elsewhere != 0:
            lane = intrinsics.trailing_zeros(np.uint64(elsewhere))
            elsewhere &= elsewhere - 1
            word: Any = words.word[position + lane]
            tagged_lines.add_to_sum(sums, np.int64(word) & NUMBER_MASK, tagged_format.decode_w(word) * x[f])
    tagged_lines.store_sums(sums, scores, begin)


@bare
def _lane_elsewhere(words: Words, position: Int, lanes: Int, key: Int) -> Int:
    """Return the lowest of some lanes whose word has the tag `key`, or -1."""
    while lanes != 0:
        lane = intrinsics.trailing_zeros(np.uint64(lanes))
        if np.int64(words.word[position + lane] & TAG_MASK) == key:
            return lane
        lanes &= lanes - 1
    return -1


@bare
def _empty_home(words: Words, position: Int, home: Int) -> Int:
    """Return the lane `home` of the first or else of the second half of a line, if it is empty, or -1."""
    for lane in (home, home + tagged_format.HALF_LANES):
        if words.word[position + lane] == 0:
            return lane
    return -1


@bare
def _weakest(words: Words, position: Int, g: Any) -> Int:
    """Return the lane that a new word with this G takes, or -1 if it is refused, and count it."""
    lane = tagged_lines.weakest_lane(words.word, position)
    word: Any = words.word[position + lane]
    if word == 0:
        words.state[USED] += 1
    elif g >= tagged_format.decode_g(word):
        words.state[EVICTED] += 1
        words.state[LOST] += 1
    else:
        words.state[REFUSED] += 1
        words.state[LOST] += 1
        return -1
    return lane


@bare
def _search_and_learn(
    words: Words, position: Int, tag: np.uint32, missing: Int, elsewhere: Int, square: Float32s, x: np.float32,
    number: Int, rate: Float32s, begin: Int, r: np.float32 | None,
) -> None:  # fmt: skip
    """Do what `tagged_lines.learn_line` left: find words elsewhere than at home, and add new ones to full homes.

    A word that is found elsewhere is moved home if one of its homes has become empty. `missing` are bits of the
    regressors, `elsewhere` those of the lanes with words of the feature and block that are not at home, and `number` is
    that of the step, for random numbers.
    """
    twist = np.int64(tag) & NUMBER_MASK
    for phase in range(3):
        for q in range(tagged_format.HALF_LANES):
            if missing >> q & 1 == 0:
                continue
            key = np.int64(tag & OF_BLOCK) | q
            before: Any = ZERO
            total = square[q] * (x * x)
            lane: Int = np.int64(-1)
            rest: Int = 0
            if phase == 0:
                lane = _lane_elsewhere(words, position, elsewhere, key)
                if lane >= 0:
                    word: Any = words.word[position + lane]
                    before = tagged_format.decode_g(word)
                    total += before
                    rest = np.int64(word) & ~(tagged_format.G_CODES - 1 << tagged_format.G_FIELD)
                    home = _empty_home(words, position, q ^ twist)
                    if home >= 0:  # since the table was doubled; at home a word is found faster
                        words.word[position + lane] = np.uint32(0)
                        lane = home
            else:
                if phase == 1:
                    lane = _empty_home(words, position, q ^ twist)
                    words.state[USED] += lane >= 0
                else:
                    lane = _weakest(words, position, total)
                rest = key
            if lane < 0:
                continue
            missing &= ~(1 << q)
            random = tagged_format.random32(number, q, tagged_format.G_RANDOM)
            words.word[position + lane] = np.uint32(rest | tagged_format.encode_g(total, random))
            if total > ZERO:
                rate[begin + q] = x * tagged_format.rate_factor(before, total, r)


@bare
def add_squares(
    words: Words, h: UInt64s, x: Float32s, count: Int, block: Int, square: Float32s, rate: Float32s, reach: Float32s,
    r: np.float32 | None,
) -> int:  # fmt: skip
    """Add square * x**2 to G of the regressors of a block, and compute the rates of their features.

    `square` is float32[8], importance * slope**2, 0 for regressors that do not learn. Written are `rate`, float32[8 *
    count], x times `tagged_format.rate_factor` of each feature and regressor, to which `r` belongs, 0 where it has no
    weight, and `reach`, float32[8], the sums of x * rate. The number of the step is returned, for `move`.
    """
    number: int = words.state[COUNTER]
    words.state[COUNTER] += count
    sums = tagged_lines.new_sums()
    for f in range(count):
        position, tag = locate(words, h[f], block)
        step = np.uint32(number + f)
        left = tagged_lines.learn_line(words.word, position, tag, square, x[f], step, rate, 8 * f, sums, r)
        words.state[USED] += intrinsics.count_ones(np.uint64(left >> 24))
        if left & 255 != 0:
            _search_and_learn(
                words, position, tag, left & 255, left >> 8 & 65535, square, x[f], np.int64(step), rate, 8 * f, r
            )
            left &= 255
            while left != 0:
                q = intrinsics.trailing_zeros(np.uint64(left))
                left &= left - 1
                tagged_lines.add_to_sum(sums, q, x[f] * rate[8 * f + q])
    tagged_lines.store_sums(sums, reach, 0)
    return number


@bare
def move(words: Words, h: UInt64s, count: Int, block: Int, step: Float32s, rate: Float32s, number: Int) -> None:
    """Subtract step * rate from the weights of a block; `rate` and `number` are those of `add_squares`."""
    for f in range(count):
        position, tag = locate(words, h[f], block)
        missing = tagged_lines.move_line(words.word, position, tag, step, np.uint32(number + f), rate, 8 * f)
        while missing != 0:
            q = intrinsics.trailing_zeros(np.uint64(missing))
            missing &= missing - 1
            key = (tag & OF_BLOCK) | np.uint32(q)
            lanes = tagged_lines.match_lanes(words.word, position, key)
            while lanes != 0:
                lane = intrinsics.trailing_zeros(np.uint64(lanes))
                lanes &= lanes - 1
                word: Any = words.word[position + lane]
                if word != 0:
                    random = tagged_format.random32(np.int64(np.uint32(number + f)), q, tagged_format.W_RANDOM)
                    w = tagged_format.decode_w(word) - step[q] * rate[8 * f + q]
                    words.word[position + lane] = np.uint32(
                        np.int64(word) & ((1 << tagged_format.W_FIELD) - 1) | tagged_format.encode_w(w, random)
                    )
                    break


@bare
def read_words(words: Words, pairs: Pairs, begin: Int, end: Int) -> None:
    """Find the words of the pairs begin..end-1, and read their weights and G, 0 where there is none.

    Before, `pairs.at` holds positions of lines, and `tag` is set.
    """
    if packed_words.is_packed(words):
        packed_words.read(words, pairs, begin, end)
        return
    at, tag, w, g, _, before = pairs
    for i in range(begin, end):
        lanes = tagged_lines.match_lanes(words.word, at[i], tag[i])
        # no branch, because it could not be predicted
        at[i] += intrinsics.trailing_zeros(np.uint64(lanes)) & LINE_WORDS - 1
        word = words.word[at[i]] & np.uint32(-np.int64(lanes != 0))
        w[i] = tagged_format.decode_w(word)
        g[i] = tagged_format.decode_g(word)
        before[i] = word & ~TAG_MASK


@bare
def _stepped(w: Any, g: Any, x: Any, square: np.float32, step: np.float32, delta: np.float32, number: Int) -> Any:
    """Return the bits, but for the tag, of a word after a step, see `step_words`."""
    total = g + square * x * x
    moved = w - step * x / np.sqrt(total + delta)
    g_code = tagged_format.encode_g(total, tagged_format.random32(number, 0, tagged_format.G_RANDOM))
    w_code = tagged_format.encode_w(moved, tagged_format.random32(number, 0, tagged_format.W_RANDOM))
    return np.uint32(g_code | w_code)


@bare
def step_words(
    x: Float32s, count: Int, pairs: Pairs, begin: Int, square: np.float32, step: np.float32, delta: np.float32,
    number: Int,
) -> None:  # fmt: skip
    """Add square * x**2 to G of a scorer, subtract step * x / sqrt(G + delta) from its weights, and round both.

    `w`, `g` and `code` of the pairs begin..begin+count-1 are written. `number` is that of the first feature among all
    that were learned, for random numbers.
    """
    _, _, w, g, code, _ = pairs
    first = np.uint64(begin)
    for f in range(count):
        i = first + np.uint64(f)  # unsigned, so that the loop becomes vector instructions
        bits = _stepped(w[i], g[i], x[f], square, step, delta, number + f)
        code[i] = bits
        w[i] = tagged_format.decode_w(bits)
        g[i] = tagged_format.decode_g(bits)


@bare
def write_words(
    words: Words, x: Float32s, count: Int, pairs: Pairs, begin: Int, square: np.float32, step: np.float32,
    delta: np.float32, number: Int,
) -> None:  # fmt: skip
    """Store what `step_words` computed from the same arguments, and add the words that are missing.

    If a word is not as the pair left it, because its feature occurs twice in the example, the step is taken from the
    word as it is now. A pair that is refused a word keeps the weight 0.
    """
    at, tag, w, g, code, before = pairs
    for f in range(count):
        i = begin + f
        own: Any = tag[i]
        if words.word[at[i]] & TAG_MASK != own:
            line: Any = at[i] & ~np.int64(LINE_WORDS - 1)
            lanes = tagged_lines.match_lanes(words.word, line, own)
            lane: Int
            if lanes != 0:
                lane = np.int64(intrinsics.trailing_zeros(np.uint64(lanes)))
            else:
                lane = _weakest(words, line, square * x[f] * x[f])
                before[i] = np.uint32(0)
            if lane < 0:
                w[i] = ZERO
                g[i] = ZERO
                continue
            at[i] = line + lane
            if lanes == 0:
                words.word[at[i]] = own
        current: Any = words.word[at[i]] & ~TAG_MASK
        if current != before[i]:
            old_w, old_g = tagged_format.decode_w(current), tagged_format.decode_g(current)
            bits = _stepped(old_w, old_g, x[f], square, step, delta, number + f)
            code[i] = bits
            w[i] = tagged_format.decode_w(bits)
            g[i] = tagged_format.decode_g(bits)
        words.word[at[i]] = own | code[i]
        before[i] = code[i]
