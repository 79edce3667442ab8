"""Write the lines of -p and -r, digit for digit as C++ streams, and therefore VW, print them.

A kernel formats a batch as bytes. There are these kinds of lines; a space and the tag follow, if there is a tag:

    simple       0.302885          `%.6f`; no decimals where the number is whole
    multiclass   17
    multilabel   1,5,7             any number of labels, none on an empty line
    scores       1:0.302885 2:-0.5     `%g`, six digits (--scores, --probabilities, --top_k)
    raw_scores    1:0.302885 2:-0.5    the same after a space (-r)
    vw_labels    1,5,7             with a space at the end (--vw_exact with lists of labels)

The probability of all classes that a list does not name is the last, `:0.19`: no class has an empty name.

Idea      The exact decimal value is rounded, halves to the even digit, as in printf. A float32 has 24 bits, so its
          product with 10**6 is exact in float64 (`%.6f`), and its product with any power of ten is computed with about
          100 bits (`%g`).
Differs   from VW: classes above 2**24 are printed exactly (VW rounds them to float32).

Each `put_` kernel writes into `out`, uint8[...], from position `at` on and returns the position after the last byte.
The caller makes sure that `out` has enough space. No other array argument is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..array_types import Float, Float32s, Float64s, Int, Int64s, UInt8s
from ..data import class_names
from ..data.batch import Batch
from ..errors import UsageError
from ..kernels.jit import jit, on_demand
from ..reductions.core import probabilities
from ..reductions.core.contract import BatchTask
from ..system import output_file

MAX_NUMBER_BYTES = 48  # upper bound of the bytes of a number: 39 digits, a sign, and some more
MAX_SCORE_BYTES = 40  # upper bound of the bytes of `label:score`

MIN_EXPONENT, MAX_EXPONENT = -33, 50  # exponents of the powers of ten that scale a float32 to between 10**5 and 10**6


class Powers(NamedTuple):
    """Hold 10**k for k from MIN_EXPONENT to MAX_EXPONENT as sums of three float64.

    A float32 times `high` or `middle` is exact.
    """

    whole: np.ndarray  # float64[exponents], the nearest float64, equal to high + middle
    high: np.ndarray  # float64[exponents]
    middle: np.ndarray  # float64[exponents]
    low: np.ndarray  # float64[exponents], 10**k - whole


def _powers() -> Powers:
    """Compute the table of powers of ten."""
    whole = [float(f"1e{k}") for k in range(MIN_EXPONENT, MAX_EXPONENT + 1)]
    low = []
    for k, near in zip(range(MIN_EXPONENT, MAX_EXPONENT + 1), whole, strict=True):
        numerator, denominator = near.as_integer_ratio()
        power = 10 ** abs(k)
        if k >= 0:
            low.append((power * denominator - numerator) / denominator)
        else:
            low.append((denominator - numerator * power) / (denominator * power))
    nearest = np.array(whole)
    high = (nearest.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    return Powers(nearest, high, nearest - high, np.array(low))


class ClassNames(NamedTuple):
    """Hold names of classes: class j has `text[start[j]:start[j + 1]]`; class 0 and unknown classes have none."""

    named: bool  # whether classes are written as names, and not as numbers
    start: np.ndarray  # int64[classes + 2]
    text: np.ndarray  # uint8[...], the names one after the other
    longest: int  # bytes of the longest name


POWERS = _powers()
MINUS, POINT, COLON, SPACE, NEWLINE, ZERO, COMMA = np.frombuffer(b"-.: \n0,", np.uint8)
INF = np.frombuffer(b"inf", np.uint8)
NAN = np.frombuffer(b"nan", np.uint8)


@jit
def put_digits(out: UInt8s, at: Int, number: Int, width: Int) -> Int:
    """Write the digits of a whole number >= 0, with leading zeros up to `width` digits."""
    size: Int = 1
    rest = number // 10
    while rest > 0:
        rest //= 10
        size += 1
    size = max(size, width)
    for i in range(at + size - 1, at - 1, -1):
        out[i] = ZERO + np.uint8(number % 10)
        number //= 10
    return at + size


@on_demand
def put_special(out: UInt8s, at: Int, x: Float) -> int:
    """Write inf, -inf or nan."""
    if np.isnan(x):
        out[at : at + 3] = NAN
        return int(at) + 3
    if x < 0:
        out[at] = MINUS
        at += 1
    out[at : at + 3] = INF
    return int(at) + 3


@jit
def put_whole(out: UInt8s, at: Int, x: Float) -> Int:
    """Write the digits of a whole float64 from 2**62 to the largest float32, by long division by 10**9."""
    part = np.empty(5, np.int64)
    bits = np.empty(4, np.int64)  # the number in units of 32 bits, the highest first
    for i in range(4):
        unit = 2.0 ** (32 * (3 - i))
        bits[i] = np.int64(x / unit)
        x -= bits[i] * unit
    for j in range(5):
        rest = np.int64(0)
        for i in range(4):
            dividend = (rest << 32) + bits[i]
            bits[i] = dividend // 1000000000
            rest = dividend % 1000000000
        part[4 - j] = rest
    first = 0
    while part[first] == 0:
        first += 1
    at = put_digits(out, at, part[first], 1)
    for j in range(first + 1, 5):
        at = put_digits(out, at, part[j], 9)
    return at


@jit
def put_fixed(out: UInt8s, at: Int, value: Float) -> Int:
    """Write a float32 as `%.6f`, or as `%.0f` if it is a whole number."""
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
def six_digits(x: Float) -> tuple[Int, Int]:
    """Return the six leading decimal digits of a positive float32, rounded, and the exponent of the first digit."""
    exponent = np.int64(np.floor(np.log10(x)))
    while True:
        k = 5 - exponent - MIN_EXPONENT
        scaled = x * POWERS.whole[k]
        if scaled < 1e5:
            exponent -= 1
            continue
        if scaled >= 1e6:
            exponent += 1
            continue
        error = ((x * POWERS.high[k] - scaled) + x * POWERS.middle[k]) + x * POWERS.low[k]
        digits = np.int64(scaled)
        excess = ((scaled - digits) - 0.5) + error  # distance from the half
        if excess > 1e-18 or (excess > -1e-18 and digits % 2 == 1):  # a smaller distance is a tie
            digits += 1
        if digits == 1000000:
            return 100000, exponent + 1
        return digits, exponent


@jit
def put_general(out: UInt8s, at: Int, value: Float) -> Int:
    """Write a float32 as `%g`: six digits without trailing zeros, with an exponent below 1e-4 and from 1e6 on."""
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
        end = put_digits(out, at + 1, digits, size)  # one byte to the right, then the first digit is moved back
        out[at] = out[at + 1]
        if size > 1:
            out[at + 1] = POINT
        else:
            end -= 1
        out[end] = np.uint8(101)  # e
        out[end + 1] = np.uint8(45) if exponent < 0 else np.uint8(43)
        return put_digits(out, end + 2, max(exponent, -exponent), 2)
    if exponent < 0:  # 0.00015
        out[at] = ZERO
        out[at + 1] = POINT
        return put_digits(out, at + 2, digits, size - exponent - 1)
    int_digits = exponent + 1
    if size <= int_digits:  # 150000
        for _ in range(int_digits - size):
            digits *= 10
        return put_digits(out, at, digits, int_digits)
    end = put_digits(out, at + 1, digits, size)  # 15.5
    for i in range(at, at + int_digits):
        out[i] = out[i + 1]
    out[at + int_digits] = POINT
    return end


@jit
def put_tag(out: UInt8s, at: Int, text: UInt8s, begin: Int, end: Int) -> Int:
    """Write the end of a line: the tag `text[begin:end]` after a space, if it is not empty, and a newline."""
    if end > begin:
        out[at] = SPACE
        at += 1
        for i in range(begin, end):
            out[at] = text[i]
            at += 1
    out[at] = NEWLINE
    return at + 1


@jit
def put_class(out: UInt8s, at: Int, label: Int, names: ClassNames) -> Int:
    """Write a class as a number, or its name."""
    if not names.named:
        return put_digits(out, at, label, 1)
    if label + 1 < len(names.start):
        for p in range(names.start[label], names.start[label + 1]):
            out[at] = names.text[p]
            at += 1
    return at


@jit
def simple_lines(
    values: Float64s, text: UInt8s, tag_start: Int64s, tag_end: Int64s, row: Int, out: UInt8s
) -> tuple[Int, Int]:
    """Write lines with a number each, from example `row` on, while they fit; return the next example and the bytes
    written.

    `text`, uint8[...], contains the tags, `tag_start` and `tag_end`, int64[n], are their positions; `out` is written.
    """
    at: Int = 0
    while row < len(values) and at + MAX_NUMBER_BYTES + tag_end[row] - tag_start[row] <= len(out):
        at = put_fixed(out, at, values[row])
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def list_lines(
    scores: Float32s,
    labels: Int64s,
    start: Int64s,
    has_rest: bool,
    scored: bool,
    spaced: bool,
    names: ClassNames,
    text: UInt8s,
    tag_start: Int64s,
    tag_end: Int64s,
    row: Int,
    out: UInt8s,
) -> tuple[Int, Int]:
    """Write lines with a list of labels each, or of label:score if `scored`, as `simple_lines` does.

    `scores` and `labels` are those of all examples; example i has `start[i]:start[i + 1]`. `has_rest` says whether the
    last score of each example is that of all other classes, which have no name. `spaced` asks for a space, too: before
    a list of scores, or after one of labels.
    """
    at: Int = 0
    while row < len(tag_start):
        size = start[row + 1] - start[row]
        space = size * (MAX_SCORE_BYTES + names.longest) + MAX_NUMBER_BYTES + tag_end[row] - tag_start[row]
        if at + space > len(out):
            break
        for i in range(start[row], start[row + 1]):
            if i > start[row] or (scored and spaced):
                out[at] = SPACE if scored else COMMA
                at += 1
            if not has_rest or i < start[row + 1] - 1:
                at = put_class(out, at, labels[i], names)
            if scored:
                out[at] = COLON
                at = put_general(out, at + 1, scores[i])
        if spaced and not scored:
            out[at] = SPACE
            at += 1
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


NO_SCORES = np.empty(0, np.float32)
KINDS = ("simple", "multiclass", "multilabel", "scores", "raw_scores", "vw_labels")
BUFFER = 1 << 20  # bytes that are formatted before they are written


class LineFormatter:
    """Format one line for each example of a batch.

    `kind` is one of KINDS, see the module. `names` are those of the classes 1, 2, ...; the list may grow; None writes
    numbers, and a class without a name is an empty string. With `rounded`, classes are rounded to float32, as in VW.
    `blank` is the byte that is written for a blank in a name.
    """

    def __init__(
        self, kind: str, names: Sequence[str] | None = None, rounded: bool = False, blank: bytes = b" "
    ) -> None:
        if kind not in KINDS:
            raise ValueError(kind)
        self.kind = kind
        self._rounded = rounded and kind == "multiclass"
        self._names, self._blank = () if names is None else names, blank
        self._encoded = 0  # number of names in `_class_names`
        named = names is not None and kind in ("multiclass", "multilabel", "scores")
        self._class_names = ClassNames(named, np.zeros(2, np.int64), np.empty(0, np.uint8), 0)
        self._out = np.empty(BUFFER, np.uint8)

    def pieces(
        self,
        batch: Batch,
        values: np.ndarray | None = None,
        scores: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        start: np.ndarray | None = None,
        has_rest: bool = False,
    ) -> Iterator[memoryview]:
        """Yield the lines of a batch in pieces, each of which is valid until the next one is asked for.

        `values`, float64[n], are numbers or classes (simple, multiclass). In the other kinds, example i has the scores
        and classes `start[i]:start[i + 1]` of `scores` and `labels`, of which the last is that of all other classes if
        `has_rest` is set; lists of labels have no scores.
        """
        if batch.n == 0:
            return
        if self._class_names.named and len(self._names) > self._encoded:
            self._encode_new_names()
        tags = (batch.text, batch.tag_start, batch.tag_end)
        if self.kind == "multiclass":  # lists of one label
            assert values is not None
            labels = (values.astype(np.float32) if self._rounded else values).astype(np.int64)
            start = np.arange(batch.n + 1)
        line_size = int((batch.tag_end - batch.tag_start).max()) + MAX_NUMBER_BYTES
        if start is not None:
            line_size += int((start[1:] - start[:-1]).max()) * (MAX_SCORE_BYTES + self._class_names.longest)
        if line_size > len(self._out):
            self._out = np.empty(line_size, np.uint8)
        row: Int = 0
        while row < batch.n:
            if self.kind == "simple":
                row, size = simple_lines(np.asarray(values, np.float64), *tags, row, self._out)
            else:
                assert labels is not None and start is not None
                row, size = list_lines(
                    NO_SCORES if scores is None else scores, labels, start, has_rest and scores is not None,
                    scores is not None, self.kind in ("vw_labels", "raw_scores"), self._class_names, *tags, row,
                    self._out,
                )  # fmt: skip
            yield self._out[:size].data

    def _encode_new_names(self) -> None:
        """Append the names that are new since the last batch to the arrays for the kernels."""
        new_names = [name.encode("utf-8", "surrogateescape") for name in self._names[self._encoded :]]
        if self._blank != b" ":
            new_names = [name.replace(b" ", self._blank) for name in new_names]
        self._encoded += len(new_names)
        old = self._class_names
        ends = old.start[-1] + np.cumsum([len(name) for name in new_names])
        text = np.concatenate((old.text, np.frombuffer(b"".join(new_names), np.uint8)))
        longest = max(old.longest, *map(len, new_names))
        self._class_names = ClassNames(old.named, np.concatenate((old.start, ends)), text, longest)


class PredictionWriter(LineFormatter):
    """Write the lines of batches to a file; `description` says what it holds, for messages."""

    def __init__(
        self,
        path: str,
        kind: str,
        names: Sequence[str] | None = None,
        rounded: bool = False,
        description: str = "predictions",
    ) -> None:
        super().__init__(kind, names, rounded)
        self.path = path
        self.file = output_file.OutputFile(path, description)

    def write(self, batch: Batch, **contents: Any) -> None:
        """Write the lines of a batch; BrokenPipeError is raised if the reader of the output has closed it.

        `contents` are the arguments of `pieces`.
        """
        for piece in self.pieces(batch, **contents):
            with self.file.explained():
                self.file.out.write(piece)
        self._flush_if_awaited()

    def write_lines(self, lines: bytes) -> None:
        """Write complete lines that another writer of this kind has made; errors are as in `write`."""
        with self.file.explained():
            self.file.out.write(lines)
        self._flush_if_awaited()

    def _flush_if_awaited(self) -> None:
        """Flush after a batch if a reader may be waiting."""
        if self.file.streams:
            with self.file.explained():
                self.file.out.flush()

    def close(self) -> None:
        """Close the complete file, or flush standard output."""
        self.file.close()


def kind_of_predictions(learner: LearnerCore, listing: probabilities.ListingOptions) -> str:
    """Return the kind of the lines of -p; `listing` says which classes are listed."""
    c = learner.config
    if c.run.vw_exact and c.reduction.labels == "multilabel":
        return "scores" if listing.probabilities else "vw_labels"
    return "scores" if listing.lists_classes or learner.reduction.lists_scores else c.reduction.labels


def open_writers(c: Config, learner: LearnerCore) -> dict[str, PredictionWriter]:
    """Return the writers for -p and -r of a run, as far as these are given, by their options."""
    o = c.run
    kind = kind_of_predictions(learner, c.listing_options)
    writers = {}
    if o.predictions is not None:
        writers["predictions"] = PredictionWriter(o.predictions, kind, learner.names.class_list, rounded=o.vw_exact)
    if o.raw_predictions is not None:
        if c.reduction.labels == "multilabel" and not c.reduction.class_scores:
            raise UsageError(
                f"-r has no scores of --{c.reduction.name} to write; --top_k N -p FILE writes the best labels with "
                "their probabilities"
            )
        raw = "simple" if c.reduction.labels == "simple" else "raw_scores"
        writers["raw_predictions"] = PredictionWriter(o.raw_predictions, raw, description="scores")
    return writers


def write(writers: dict[str, PredictionWriter], task: BatchTask) -> None:
    """Write a line for each example of a task to each file of `open_writers`."""
    for name, writer in writers.items():
        writer.write(task.batch, **contents(writer.kind, task, name == "raw_predictions"))


def contents(kind: str, task: BatchTask, raw: bool = False) -> dict[str, Any]:
    """Return what the lines of a task hold, as arguments of `LineFormatter.pieces`.

    `kind` is that of the lines, and `raw` says whether they are those of -r.
    """
    class_lists, seen = task.class_lists, task.read.seen
    if kind in ("simple", "multiclass"):
        if raw:
            return {"values": None if task.scored is None else task.scored.scores}
        return {"values": None if task.prediction is None else class_names.hide_unseen(task.prediction, seen)}
    if not raw and (lists := class_lists or (task.label_lists and task.label_lists.chosen)) is not None:
        if seen is not None:
            lists = lists._replace(labels=class_names.hide_unseen(lists.labels, np.repeat(seen, np.diff(lists.start))))
        return lists._asdict()
    if task.scored is None:
        if raw and task.batch.n:
            raise UsageError("-r: the reduction gives no scores to write; leave it out")
        return {}
    has_rest = class_lists is not None and class_lists.has_rest and task.scored.scores is class_lists.scores
    return task.scored._replace(has_rest=has_rest)._asdict()
