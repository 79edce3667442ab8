"""The lines of -p and -r, digit for digit as C++ streams and so VW print them.

A kernel turns a whole batch into bytes. Four kinds of line, each with a space and the tag after it if there is
one:

    simple       0.302885          `%.6f`; no decimals where the number is whole
    multiclass   17
    scores       1:0.302885 2:-0.5     `%g`, six digits (--scores, --probabilities, --top_k)
    raw_scores    1:0.302885 2:-0.5    the same after a space (-r)

Rounding is that of the exact decimal value, halves to the even digit, as in printf: a float32 has 24 bits, so
that times 10**6 is exact in float64 (`%.6f`), and times any power of ten is found with 100 bits (`%g`).

Differs from VW: classes above 2**24 are printed in full (VW takes them through a float32).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from ...data.batch import Batch
from ...errors import DataError
from ...kernels.jit import jit

STDOUT = "stdout"  # as a file name: standard output
KINDS = ("simple", "multiclass", "scores", "raw_scores")

BUFFER = 1 << 20  # bytes formatted before they are written
NUMBER_ROOM = 48  # bytes no number needs: 39 digits, a sign and more
SCORE_ROOM = 40  # bytes no `label:score` needs

LEAST, MOST = -33, 50  # powers of ten that bring a float32 between 10**5 and 10**6


class Powers(NamedTuple):
    """10**k for k from LEAST on as a sum of three float64; a float32 times `high` or `middle` is exact."""

    whole: np.ndarray  # the nearest float64, high + middle
    high: np.ndarray
    middle: np.ndarray
    low: np.ndarray  # what is missing


def _powers() -> Powers:
    whole = [float(f"1e{k}") for k in range(LEAST, MOST + 1)]
    low = []
    for k, near in zip(range(LEAST, MOST + 1), whole, strict=True):
        above, below = near.as_integer_ratio()
        ten = 10 ** abs(k)
        low.append((ten * below - above) / below if k >= 0 else (below - above * ten) / (below * ten))
    nearest = np.array(whole)
    high = (nearest.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    return Powers(nearest, high, nearest - high, np.array(low))


class Letters(NamedTuple):
    """Names of classes: class j has `letters[start[j]:start[j + 1]]`, class 0 and those beyond nothing."""

    named: bool  # False: classes are written as numbers
    start: np.ndarray  # int64[classes + 2]
    letters: np.ndarray  # uint8[...]


POWERS = _powers()
MINUS, POINT, COLON, SPACE, NEWLINE, ZERO = np.frombuffer(b"-.: \n0", np.uint8)
INF = np.frombuffer(b"inf", np.uint8)
NAN = np.frombuffer(b"nan", np.uint8)


# -- kernels: each writes into out from place `at` on and returns the place after it ------------------------------


@jit
def put_digits(out: np.ndarray, at: int, number: int, width: int) -> int:
    """The digits of a number that is not negative, with zeros in front up to `width`."""
    size = 1
    rest = number // 10
    while rest > 0:
        rest //= 10
        size += 1
    size = max(size, width)
    for i in range(at + size - 1, at - 1, -1):
        out[i] = ZERO + np.uint8(number % 10)
        number //= 10
    return at + size


@jit
def put_special(out: np.ndarray, at: int, x: float) -> int:
    """inf or nan."""
    if np.isnan(x):
        out[at : at + 3] = NAN
        return at + 3
    if x < 0:
        out[at] = MINUS
        at += 1
    out[at : at + 3] = INF
    return at + 3


@jit
def put_whole(out: np.ndarray, at: int, x: float) -> int:
    """The digits of a whole float64 from 2**62 up to the largest float32, by long division by 10**9."""
    part = np.empty(5, np.int64)
    bits = np.empty(4, np.int64)  # in 32 bits each, highest first
    for i in range(4):
        unit = 2.0 ** (32 * (3 - i))
        bits[i] = np.int64(x / unit)
        x -= bits[i] * unit
    for j in range(5):
        rest = np.int64(0)
        for i in range(4):
            now = (rest << 32) + bits[i]
            bits[i] = now // 1000000000
            rest = now % 1000000000
        part[4 - j] = rest
    first = 0
    while part[first] == 0:
        first += 1
    at = put_digits(out, at, part[first], 1)
    for j in range(first + 1, 5):
        at = put_digits(out, at, part[j], 9)
    return at


@jit
def put_fixed(out: np.ndarray, at: int, value: float) -> int:
    """A float32 as `%.6f`; as `%.0f` where it is whole."""
    x = np.float64(np.float32(value))
    if not np.isfinite(x):
        return put_special(out, at, x)
    if np.signbit(x):
        out[at] = MINUS
        at += 1
        x = -x
    if np.floor(x) == x:
        return put_digits(out, at, np.int64(x), 1) if x < 2.0**62 else put_whole(out, at, x)
    millionths = np.int64(np.rint(x * 1e6))  # the product is exact, so this rounds as printf does
    at = put_digits(out, at, millionths // 1000000, 1)
    out[at] = POINT
    return put_digits(out, at + 1, millionths % 1000000, 6)


@jit
def six_digits(x: float) -> tuple[int, int]:
    """The six leading decimal digits of a positive float32, rounded, and the exponent of the first."""
    exponent = np.int64(np.floor(np.log10(x)))
    while True:
        k = 5 - exponent - LEAST
        scaled = x * POWERS.whole[k]
        if scaled < 1e5:
            exponent -= 1
            continue
        if scaled >= 1e6:
            exponent += 1
            continue
        error = ((x * POWERS.high[k] - scaled) + x * POWERS.middle[k]) + x * POWERS.low[k]
        digits = np.int64(scaled)
        above = ((scaled - digits) - 0.5) + error  # beyond the half
        if above > 1e-18 or (above > -1e-18 and digits % 2 == 1):  # less than that apart is a tie
            digits += 1
        if digits == 1000000:
            return 100000, exponent + 1
        return digits, exponent


@jit
def put_general(out: np.ndarray, at: int, value: float) -> int:
    """A float32 as `%g`: six digits without zeros at the end, with an exponent below 1e-4 and from 1e6 on."""
    x = np.float64(value)
    if not np.isfinite(x):
        return put_special(out, at, x)
    if np.signbit(x):
        out[at] = MINUS
        at += 1
        x = -x
    if x == 0:
        out[at] = ZERO
        return at + 1
    digits, exponent = six_digits(x)
    size = 6
    while digits % 10 == 0:
        digits //= 10
        size -= 1
    if exponent < -4 or exponent >= 6:  # 1.5e-07
        end = put_digits(out, at + 1, digits, size)  # one place to the right, then the first digit moves
        out[at] = out[at + 1]
        if size > 1:
            out[at + 1] = POINT
        else:
            end -= 1
        out[end] = np.uint8(101)  # e
        out[end + 1] = np.uint8(45) if exponent < 0 else np.uint8(43)
        return put_digits(out, end + 2, abs(exponent), 2)
    if exponent < 0:  # 0.00015
        out[at] = ZERO
        out[at + 1] = POINT
        return put_digits(out, at + 2, digits, size - exponent - 1)
    whole = exponent + 1
    if size <= whole:  # 150000
        for _ in range(whole - size):
            digits *= 10
        return put_digits(out, at, digits, whole)
    end = put_digits(out, at + 1, digits, size)  # 15.5
    for i in range(at, at + whole):
        out[i] = out[i + 1]
    out[at + whole] = POINT
    return end


@jit
def put_tag(out: np.ndarray, at: int, text: np.ndarray, begin: int, end: int) -> int:
    """The end of a line: the tag after a space, if there is one."""
    if end > begin:
        out[at] = SPACE
        at += 1
        for i in range(begin, end):
            out[at] = text[i]
            at += 1
    out[at] = NEWLINE
    return at + 1


@jit
def put_class(out: np.ndarray, at: int, label: int, names: Letters) -> int:
    """A class as a number, or its name."""
    if not names.named:
        return put_digits(out, at, label, 1)
    if label + 1 < len(names.start):
        for p in range(names.start[label], names.start[label + 1]):
            out[at] = names.letters[p]
            at += 1
    return at


@jit
def simple_lines(
    values: np.ndarray, text: np.ndarray, tag_start: np.ndarray, tag_end: np.ndarray, row: int, out: np.ndarray
) -> tuple[int, int]:
    """Lines of examples from `row` on while they fit; returns the next row and the bytes written."""
    at = 0
    while row < len(values) and at + NUMBER_ROOM + tag_end[row] - tag_start[row] <= len(out):
        at = put_fixed(out, at, values[row])
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def multiclass_lines(
    values: np.ndarray,
    names: Letters,
    longest: int,
    text: np.ndarray,
    tag_start: np.ndarray,
    tag_end: np.ndarray,
    row: int,
    out: np.ndarray,
) -> tuple[int, int]:
    """As `simple_lines`, for classes; no name is longer than `longest`."""
    at = 0
    room = NUMBER_ROOM + longest
    while row < len(values) and at + room + tag_end[row] - tag_start[row] <= len(out):
        at = put_class(out, at, np.int64(values[row]), names)
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def score_lines(
    scores: np.ndarray,
    labels: np.ndarray,
    start: np.ndarray,
    space_first: bool,
    names: Letters,
    longest: int,
    text: np.ndarray,
    tag_start: np.ndarray,
    tag_end: np.ndarray,
    row: int,
    out: np.ndarray,
) -> tuple[int, int]:
    """As `multiclass_lines`, for lists of label:score; 0 is all other classes."""
    at = 0
    while row < len(tag_start):
        room = (start[row + 1] - start[row]) * (SCORE_ROOM + longest) + NUMBER_ROOM + tag_end[row] - tag_start[row]
        if at + room > len(out):
            break
        for i in range(start[row], start[row + 1]):
            if space_first or i > start[row]:
                out[at] = SPACE
                at += 1
            at = put_class(out, at, labels[i], names) if labels[i] > 0 else put_digits(out, at, labels[i], 1)
            out[at] = COLON
            at = put_general(out, at + 1, scores[i])
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


# -- Python --------------------------------------------------------------------------------------------------------


class Writer:
    """Writes one line for every example of a batch.

    Parameters
    ----------
    path : file to write; "stdout" is standard output.
    kind : one of KINDS, see the head of this file.
    names : written for the classes 1, 2, ... (multiclass, scores), may grow; None for numbers. Other classes have an
        empty name, but for 0 in a list, which is all others.
    rounded : whether classes are rounded to float32, as VW does before it writes them.
    """

    def __init__(self, path: str, kind: str, names: Sequence[str] | None = None, rounded: bool = False) -> None:
        if kind not in KINDS:
            raise ValueError(kind)
        self.kind = kind
        self.path = path
        self._rounded = rounded and kind == "multiclass"
        self._names = () if names is None else names
        self._laid_out = 0  # of the names
        named = names is not None and kind in ("multiclass", "scores")
        self._letters = Letters(named, np.zeros(2, np.int64), np.empty(0, np.uint8))
        self._longest = 0  # of the names, in bytes
        self._own = path != STDOUT
        try:
            self._file: BinaryIO = open(path, "wb") if self._own else sys.stdout.buffer  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise DataError(f"{path}: predictions cannot be written there: {error.strerror}") from None
        self._at_once = not _is_regular(self._file)  # somebody may be waiting at the other end
        self._out = np.empty(BUFFER, np.uint8)

    def write(
        self,
        batch: Batch,
        values: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        start: np.ndarray | None = None,
    ) -> None:
        """Write the lines of a batch.

        Parameters
        ----------
        values : float64[n], numbers or classes (simple, multiclass).
        scores, labels, start : float32[...], int64[...], int64[n + 1]; example i has the scores
            `start[i]:start[i + 1]` (scores, raw_scores).

        Raises
        ------
        BrokenPipeError
            when nobody reads any more.
        DataError
            when the disk is full or the like.
        """
        if batch.n == 0:
            return
        if self._letters.named and len(self._names) > self._laid_out:
            self._lay_out()
        tags = (batch.text, batch.tag_start, batch.tag_end)
        names = (self._letters, self._longest)
        most = int((batch.tag_end - batch.tag_start).max()) + NUMBER_ROOM + self._longest
        if start is not None:
            most += int((start[1:] - start[:-1]).max()) * (SCORE_ROOM + self._longest)
        if most > len(self._out):
            self._out = np.empty(most, np.uint8)
        if self._rounded:
            values = np.asarray(values).astype(np.float32)
        row = 0
        while row < batch.n:
            if self.kind == "simple":
                row, size = simple_lines(np.asarray(values, np.float64), *tags, row, self._out)
            elif self.kind == "multiclass":
                row, size = multiclass_lines(np.asarray(values, np.float64), *names, *tags, row, self._out)
            else:
                first = self.kind == "raw_scores"
                row, size = score_lines(scores, labels, start, first, *names, *tags, row, self._out)
            self._do(self._file.write, self._out[:size].data)
        if self._at_once:
            self._do(self._file.flush)

    def _lay_out(self) -> None:
        """Take in the names that have come since the last batch."""
        fresh = [name.encode("utf-8", "surrogateescape") for name in self._names[self._laid_out :]]
        self._laid_out += len(fresh)
        old = self._letters
        ends = old.start[-1] + np.cumsum([len(name) for name in fresh])
        letters = np.concatenate((old.letters, np.frombuffer(b"".join(fresh), np.uint8)))
        self._letters = old._replace(start=np.concatenate((old.start, ends)), letters=letters)
        self._longest = max(self._longest, *map(len, fresh))

    def close(self) -> None:
        """Finish the file."""
        self._do(self._file.close if self._own else self._file.flush)

    def _do(self, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise DataError(f"{self.path}: predictions cannot be written there: {error.strerror}") from None


def _is_regular(file: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):  # standard output replaced by something without a descriptor
        return False
