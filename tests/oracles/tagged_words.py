"""Oracle of tagged words: a table of weights for AdaGrad in which a weight, its G and a tag share 4 bytes.

Source   Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011 (the diagonal rule).
Idea     The hash of a feature and a block of eight regressors (or a class) chooses a line of 16 words. A tag, further
         bits of the hash, tells whose a word is. In a full line, the word with the least G makes room, unless its G is
         larger than what the new one would get. Weights and Gs are rounded at random, so that small steps are not lost.
Names    w weight | G sum of importance * slope**2 * x**2 | g what an example adds to G | word: uint32, 0 if empty |
         line: 16 words | lane: position in a line | q number of a regressor in its block | key: tag bits of a word.
         A word is, from the highest bit: the sign of w, 12 bits of |w|, 6 bits of G, 13 bits of tag.

Weights, Gs, values and scores are np.float32, and each operation is rounded once. Words, hashes and codes are ints of
Python; where they have to wrap, they are masked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

F = np.float32
ZERO, ONE, TWO = F(0), F(1), F(2)
GOLDEN, SPREAD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
LANES, BLOCK = 16, 8  # words per line, regressors per block
MOST_DOUBLINGS = 6
VELOCITIES = 1 << 40  # from a block to that of its velocities

TAG_BITS, TAG = 13, 0x1FFF
G_SHIFT, G_CODES = 13, 0x3F
W_SHIFT, W_CODES = 19, 0xFFF
SIGN = 1 << 31
W_UNIT, G_UNIT = F(2.0**-108), F(2.0**-111)  # a code is the highest bits of the float32 w * W_UNIT or G * G_UNIT
LEAST_TAG = 8  # so that the ten bits of the hash in a tag are never 0, as in an empty word
ROOT_BITS = 0x5F375A86
FOR_G, FOR_W, FOR_Q = 0x85EBCA6B, 0xC2B2AE35, 0x9E3779B9  # multipliers of the random numbers

Line = list[int]


def bits_of(a: np.float32) -> int:
    """Return the bits of a float32."""
    return int(F(a).view(np.uint32))


def from_bits(bits: int) -> np.float32:
    """Return the float32 that has these bits."""
    return np.uint32(bits).view(F)


def encode_w(w: np.float32, r: int) -> int:
    """Return w as the bits 31..19 of a word, rounded with the random r in 0..65535; the other bits are 0."""
    code = min((bits_of(abs(F(w) * W_UNIT)) + r) >> 16, W_CODES)
    if code == 0:
        return 0
    sign = SIGN if np.signbit(w) else 0
    return sign | code << W_SHIFT


def decode_w(word: int) -> np.float32:
    """Return the weight of a word."""
    size = from_bits((word >> W_SHIFT & W_CODES) << 16) / W_UNIT
    return -size if word & SIGN else size


def encode_g(g: np.float32, r: int) -> int:
    """Return G as the bits 18..13 of a word, rounded with the random r in 0..2**22-1; the other bits are 0."""
    bits = int((F(g) * G_UNIT).view(np.int32))  # signed, so that a G that is not a number may become the smallest one
    return min(max((bits + r) >> 22, 1), G_CODES) << G_SHIFT


def decode_g(word: int) -> np.float32:
    """Return the G of a word."""
    return from_bits((word >> G_SHIFT & G_CODES) << 22) / G_UNIT


def inverse_root(g: np.float32) -> np.float32:
    """Return an estimate of 1 / sqrt(g), 0 if g is 0: half of the exponent, and a line for the rest."""
    return from_bits(ROOT_BITS - (bits_of(g) >> 1)) if g > 0 else ZERO


def random_bits(number: int, q: int, multiplier: int) -> int:
    """Return the 32 random bits of regressor q for a feature, of which `number` have been counted before."""
    return ((number & MASK32) + q * FOR_Q) * multiplier & MASK32


def key(tag: int, q: int) -> int:
    """Return the tag bits of the word of regressor q; the lowest three bits of the feature's tag are not kept."""
    return tag & ~7 | q


def homes(tag: int, q: int) -> tuple[int, int]:
    """Return the two lanes in which the word of regressor q should be."""
    lane = q ^ (tag & 7)
    return lane, lane + 8


def belongs(word: int, bits: int) -> bool:
    """Tell whether a word is in use and has these tag bits."""
    return word != 0 and word & TAG == bits


def find(line: Line, tag: int, q: int) -> int | None:
    """Return the lane of the word of regressor q: a home if possible, else the lowest lane that has it."""
    for lane in (*homes(tag, q), *range(LANES)):
        if belongs(line[lane], key(tag, q)):
            return lane
    return None


def find_class(line: Line, tag: int) -> int | None:
    """Return the lowest lane whose word has this tag."""
    for lane in range(LANES):
        if belongs(line[lane], tag):
            return lane
    return None


class TaggedTable:
    """Hold the words of blocks of regressors (`*_block`) or of classes (`*_class`); a table is for one of these.

    Parameters
    ----------
    base : log2 of the number of lines with which the table was made, at least 1
    kind : loss of the blocks, "squared" or "logistic"
    rate : learning rate of the blocks
    doublings : how many times the table has been doubled since
    momentum : that of plain steps, which blocks take in place of those of AdaGrad, None for AdaGrad

    Attributes
    ----------
    words : the lines, lists of 16 ints
    counter : number of features learned from so far (mod 2**64), the source of random numbers
    used : number of words in use
    evicted : number of words that were replaced
    refused : number of times that a feature got no word
    lost : evicted and refused since the last doubling
    """

    def __init__(self, base: int, kind: str, rate: float, doublings: int = 0, momentum: float | None = None):
        if kind not in ("squared", "logistic"):
            raise ValueError(kind)
        if base < 1:
            raise ValueError(f"{1 << base} line")
        if not 0 <= doublings <= MOST_DOUBLINGS:
            raise ValueError(f"{doublings} doublings")
        self.base, self.kind, self.rate, self.doublings = base, kind, F(rate), doublings
        self.momentum = None if momentum is None else F(momentum)
        self.words: list[Line] = [[0] * LANES for _ in range(1 << (base + doublings))]
        self.counter = self.used = self.evicted = self.refused = self.lost = 0

    # -- blocks

    def score_block(self, hashes: Sequence[int], xs: Sequence[float], block: int) -> list[np.float32]:
        """Return the scores of the eight regressors of a block."""
        sums = [ZERO] * BLOCK
        for h, x in zip(hashes, xs, strict=True):
            line, tag = self._place(h, block)
            for q in range(BLOCK):
                own = [lane for lane in range(LANES) if belongs(line[lane], key(tag, q))]
                in_home = [lane for lane in homes(tag, q) if lane in own]
                elsewhere = [lane for lane in own if lane not in homes(tag, q)]
                for lane in in_home[:1] + elsewhere:
                    sums[q] += decode_w(line[lane]) * F(x)
        return sums

    def learn_block(
        self,
        hashes: Sequence[int],
        xs: Sequence[float],
        block: int,
        s: Sequence[float],
        y: Sequence[float],
        weight: float,
    ) -> None:
        """Learn an example of this weight by the block's scores `s` and labels `y`: -1, 1, or 0 to leave one out."""
        weight = F(weight)
        square, gradient, step = {}, {}, {}  # of the active regressors
        for q in range(BLOCK):
            d = self.slope(F(s[q]), F(y[q])) if y[q] != 0 else ZERO
            if weight * d * d > 0:
                square[q] = weight * d * d
                gradient[q] = weight * d
                step[q] = self.rate * weight * d
        if not square:
            return
        if self.momentum is not None:
            self._learn_plainly(hashes, xs, block, square, gradient)
            return
        first, rates, reach = self._add_squares(hashes, xs, block, square)
        if self.kind == "squared":
            for q in step:
                distance = F(s[q]) - F(y[q])
                if abs(step[q]) * reach[q] > abs(distance):
                    step[q] = distance / reach[q]
        self._move(hashes, block, first, rates, step)

    def learn_block_by_arow(
        self, hashes: Sequence[int], xs: Sequence[float], block: int, s: Sequence[np.float32],
        y: Sequence[np.float32], weight: float, r: float, bias: dict[int, np.float32], big_g: dict[int, np.float32],
        bias_square: np.float32, slack: np.float32,
    ) -> float:  # fmt: skip
        """Learn as `learn_block` does, but by AROW with the regularisation r, see `xclass.binary.arow`.

        Return the slope of log r.

        `bias` and `big_g` have the bias of each regressor of the block, the weight of a feature whose value is the root
        of `bias_square`, and its G; they are written. Features that are refused a word do not add to the variance.
        """
        weight, r = F(weight), F(r)
        square = {q: weight for q in range(BLOCK) if y[q] != 0 and ONE - y[q] * s[q] > slack}
        if not square:
            return 0.0
        first, rates, reach = self._add_squares(hashes, xs, block, square, r)
        step = {}
        slope = 0.0
        for q in square:
            slope += float(weight) * float(y[q] - s[q]) * float(s[q] - bias[q])
            variance = r / (r + big_g[q])
            tau = (y[q] - s[q]) / (reach[q] + bias_square * variance + r / weight)
            bias[q] += bias_square * variance * tau
            big_g[q] += weight * bias_square
            step[q] = -tau
        self._move(hashes, block, first, rates, step)
        return slope

    def _learn_plainly(self, hashes, xs, block: int, square: dict, gradient: dict) -> None:
        """Move by the velocities v = momentum * v + gradient * x, which are the weights of a block of their own."""
        velocities = block + VELOCITIES
        for own in (velocities, block) if self.momentum else (block,):
            first, rates, _ = self._add_squares(hashes, xs, own, square)
            for h, x, rate in zip(hashes, xs, rates, strict=True):
                line, tag = self._place(h, velocities)
                for q in rate:
                    lane = find(line, tag, q) if self.momentum else None
                    v = ZERO if lane is None else decode_w(line[lane])
                    if rate[q] == 0:
                        continue
                    if own == velocities:
                        rate[q] = v - (self.momentum * v + gradient[q] * F(x))
                    else:
                        rate[q] = v if v != 0 else gradient[q] * F(x)
            self._move(hashes, own, first, rates, dict.fromkeys(square, ONE if own == velocities else self.rate))

    def _add_squares(
        self, hashes, xs, block: int, square: dict, r: np.float32 | None = None
    ) -> tuple[int, list[dict[int, np.float32]], dict]:
        """Add to the Gs; return the number of the step, rates for each feature, and the reach of each regressor.

        The rates are those of AdaGrad, or with a number r of AROW.
        """
        first = self._count(len(hashes))
        rates: list[dict[int, np.float32]] = []  # of each feature; without those that were refused
        reach = dict.fromkeys(square, ZERO)
        for f, (h, x) in enumerate(zip(hashes, xs, strict=True)):
            x = F(x)
            line, tag = self._place(h, block)
            totals = self._add_to_gs(line, tag, {q: square[q] * (x * x) for q in square}, first + f)
            if r is None:
                rates.append({q: x * inverse_root(total) for q, (_, total) in totals.items()})
            else:
                rates.append({q: x * (r / (r + g)) if total > 0 else ZERO for q, (g, total) in totals.items()})
            for q, rate in rates[f].items():
                reach[q] += x * rate
        return first, rates, reach

    def _move(self, hashes, block: int, first: int, rates: list[dict[int, np.float32]], step: dict) -> None:
        for f, h in enumerate(hashes):
            line, tag = self._place(h, block)
            for q, rate in rates[f].items():
                lane = find(line, tag, q)  # again, because another word may be there by now
                if rate != 0 and lane is not None:
                    w = decode_w(line[lane]) - step[q] * rate
                    rest = line[lane] & ((1 << W_SHIFT) - 1)
                    line[lane] = encode_w(w, random_bits(first + f, q, FOR_W) >> 16) | rest

    def slope(self, s: np.float32, y: np.float32) -> np.float32:
        """Return the derivative of the loss with respect to the score, as `xclass.binary.adagrad.slope` does.

        The last bit of a logistic slope may differ, because the exponential functions do.
        """
        if math.isnan(s):
            return ZERO
        if self.kind == "logistic":
            margin = min(max(float(y * s), -708.0), 709.0)
            return F(-float(y) / (1.0 + math.exp(margin)))
        return TWO * (min(max(s, -ONE), ONE) - y)

    def _add_to_gs(self, line: Line, tag: int, g: dict[int, np.float32], number: int) -> dict[int, tuple]:
        """Add each g to the G of its regressor's word, finding words for those that have none; return old and new Gs.

        Words that exist are updated first, and moved home if they are elsewhere and a home is empty; then empty homes
        are taken, and last the weakest words of the line. What is returned is not rounded to codes; regressors that are
        refused are left out.
        """
        totals = {}

        def add(lane: int, q: int) -> None:
            before = decode_g(line[lane])
            totals[q] = before, before + g[q]
            rest = line[lane] & ~(G_CODES << G_SHIFT)
            line[lane] = rest | encode_g(totals[q][1], random_bits(number, q, FOR_G) >> 10)

        for q in g:
            lane = find(line, tag, q)
            if lane is not None:
                empty = [home for home in homes(tag, q) if line[home] == 0]
                if lane not in homes(tag, q) and empty:
                    line[empty[0]], line[lane] = line[lane], 0
                    lane = empty[0]
                add(lane, q)
        for q in [q for q in g if q not in totals]:
            empty = [lane for lane in homes(tag, q) if line[lane] == 0]
            if empty:
                self._take(line, empty[0], key(tag, q))
                add(empty[0], q)
        for q in [q for q in g if q not in totals]:
            lane = self._take_weakest(line, key(tag, q), g[q])
            if lane is not None:
                add(lane, q)
        return totals

    # -- classes

    def read(self, hashes: Sequence[int], xs: Sequence[float], label: int) -> list[tuple[np.float32, np.float32]]:
        """Return w and G of each feature for a class, 0 where it has no word."""
        pairs = []
        for h in hashes:
            line, tag = self._place(h, label)
            lane = find_class(line, tag)
            pairs.append((ZERO, ZERO) if lane is None else (decode_w(line[lane]), decode_g(line[lane])))
        return pairs

    def update_class(
        self,
        hashes: Sequence[int],
        xs: Sequence[float],
        label: int,
        square: float,
        step: float,
        delta: float,
        read: list[tuple[np.float32, np.float32]] | None = None,
    ) -> None:
        """Add square * x**2 to the Gs of a class and subtract step * x / sqrt(G + delta) from its weights.

        Parameters
        ----------
        read : what `read` returned before the first step on this example; it becomes what the step leaves
        """
        read = self.read(hashes, xs, label) if read is None else read
        square, step, delta = F(square), F(step), F(delta)
        first = self._count(len(hashes))
        for f, (h, x) in enumerate(zip(hashes, xs, strict=True)):
            x = F(x)
            line, tag = self._place(h, label)
            g = square * x * x
            lane = find_class(line, tag)
            if lane is not None:  # if the feature occurs twice, the word may have changed since it was read
                read[f] = decode_w(line[lane]), decode_g(line[lane])
            total = read[f][1] + g
            w = read[f][0] - step * x / np.sqrt(total + delta)
            w_bits = encode_w(w, random_bits(first + f, 0, FOR_W) >> 16)
            g_bits = encode_g(total, random_bits(first + f, 0, FOR_G) >> 10)
            if lane is None:
                lane = self._take_weakest(line, tag, g)
            if lane is None:
                read[f] = ZERO, ZERO
                continue
            line[lane] = w_bits | g_bits | tag
            read[f] = decode_w(line[lane]), decode_g(line[lane])

    # -- lines

    def double(self) -> None:
        """Double the number of lines; the next bit of its tag decides to which half of its line a word goes."""
        if self.doublings == MOST_DOUBLINGS:
            raise ValueError(f"{MOST_DOUBLINGS + 1} doublings")
        bit = TAG_BITS - 1 - self.doublings
        words = [[0] * LANES for _ in range(2 * len(self.words))]
        for i, line in enumerate(self.words):
            for lane, word in enumerate(line):
                words[2 * i + (word >> bit & 1)][lane] |= word  # an empty word leaves its lane empty
        self.words = words
        self.doublings += 1
        self.lost = 0

    def _place(self, h: int, number: int) -> tuple[Line, int]:
        """Return the line and the tag of a feature's hash for a block or a class."""
        z = (int(h) ^ (int(number) * SPREAD & MASK64)) * GOLDEN & MASK64
        tag = max(z >> (64 - self.base - TAG_BITS) & TAG, LEAST_TAG)
        return self.words[z >> (64 - self.base - self.doublings)], tag

    def _count(self, features: int) -> int:
        first = self.counter
        self.counter = (self.counter + features) & MASK64
        return first

    def _take(self, line: Line, lane: int, bits: int) -> None:
        """Start a word with these tag bits, with a w and a G of 0."""
        if line[lane] == 0:
            self.used += 1
        else:
            self.evicted += 1
            self.lost += 1
        line[lane] = bits

    def _take_weakest(self, line: Line, bits: int, g: np.float32) -> int | None:
        """Start a word in the lane with the least code of G, unless it holds a G that is larger than g."""
        lane = min(range(LANES), key=lambda lane: line[lane] >> G_SHIFT & G_CODES)  # the lowest lane on a tie
        if line[lane] == 0 or g >= decode_g(line[lane]):
            self._take(line, lane, bits)
            return lane
        self.refused += 1
        self.lost += 1
        return None


class Regularisation:
    """Hold r of AROW, which learns between `least` and `most` unless they are equal."""

    def __init__(self, least: float, most: float, r: float = 1.0):
        self.limits, self.log, self.squares = (math.log(least), math.log(most)), math.log(r), 1.0

    @property
    def r(self) -> np.float32:
        return F(math.exp(self.log))

    def adapt(self, slope: float) -> None:
        if self.limits[0] == self.limits[1]:
            return
        self.squares += slope * slope
        log = self.log - 0.02 * slope / math.sqrt(self.squares)
        self.log = min(max(log, self.limits[0]), self.limits[1])
