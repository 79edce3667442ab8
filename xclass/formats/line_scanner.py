"""Read the parts that lines of several formats have in common, and labels of all formats but VW text."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..array_types import Float64s, Int64s, UInt8s
from ..data import feature_names, texts
from ..data.batch import CONSTANT, CONSTANT_GROUP, UNNAMED_GROUP, Batch, Pool
from ..kernels import intrinsics
from ..kernels.jit import apart, inlined, jit
from ..text import label_words, line_parts, numbers
from ..text.label_words import UNLABELLED
from ..text.line_parts import Rules
from ..text.malformed import MAX_MESSAGES, REAL_LABEL, SEVERAL_LABELS, SKIP, VW
from ..text.parser import PADDING, Scan

Kernel = Callable[..., tuple[int, int, int, int, int, int, bool]]

# -- kernels


@inlined
def begin_of_line(text: UInt8s, p: int) -> int:
    """Return `p`, or the position after a byte order mark that begins there."""
    return p + 3 if text[p] == 0xEF and text[p + 1] == 0xBB and text[p + 2] == 0xBF else p


@inlined
def end_of_line(text: UInt8s, p: int) -> int:
    """Return the position of the first newline from `p` on; `text` is a pointer to text that has one."""
    while True:
        mask = intrinsics.equal64(text, p, numbers.NEWLINE)
        if mask != np.uint64(0):
            return p + intrinsics.trailing_zeros(mask)
        p += 64


@inlined
def after_space(text: UInt8s, p: int, stop: int) -> tuple[int, int]:
    """Return the position of the next word from `p` on, and of a carriage return before it, -1 for none.

    The position is `stop`, the end of the line, if there is no word; carriage returns before it are allowed.
    """
    returned = -1
    while feature_names.is_space(text[p]) and p < stop:
        if text[p] == numbers.RETURN and returned < 0:
            returned = p
        p += 1
    return p, returned if p < stop else -1


@jit
def note_problem(
    notes: Int64s, rules: Rules, ends: bool, problem: int, line: int, start: int, where: int, bad: int
) -> tuple[int, bool, bool]:
    """Note a malformed line; return the number of those, whether this one is left out, and whether the run ends.

    `notes` is as in `tokens.parse_lines`. `ends` says whether the problem is one at which `--on_bad_line vw` ends the
    run.
    """
    pointer = intrinsics.pointer(notes.reshape(-1))
    skipped = rules.treatment != VW or ends
    if skipped and not (rules.treatment == SKIP and label_words.can_be_skipped(problem, rules)):
        line_parts.note(pointer, -1, problem, line, start, where)
        return bad, False, True
    line_parts.note(pointer, bad + 1, problem, line, start, where)
    return bad + 1, skipped, False


@jit
def end_example(
    out: Batch, rules: Rules, n: int, z0: int, z: int, g: int, label: float, where: int, line: int
) -> tuple[int, int, int]:
    """Complete example n, whose features from z0 to z are in the default namespace; return n, z and g for the next one.

    `where` is a position in the line, for the tag, which is empty.
    """
    if z > z0:
        out.group_name[g], out.group_start[g] = np.uint8(UNNAMED_GROUP), z0
        g += 1
    if rules.constant:
        out.index[z], out.value[z] = np.uint32(CONSTANT), np.float32(1)
        out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
        z, g = z + 1, g + 1
    out.label[n], out.weight[n], out.initial[n] = label, np.float32(1), np.float32(0)
    out.tag_start[n] = out.tag_end[n] = where
    out.line[n] = line
    if rules.lists:
        out.label_start[n + 1] = out.label_start[n] + (0 if math.isnan(label) else np.int64(label))
    n += 1
    out.start[n], out.group_first[n] = z, g
    out.group_start[g] = z
    return n, z, g


@apart
def read_label(
    text: UInt8s, begin: int, end: int, rules: Rules, lists: tuple[Int64s, Float64s], n: int
) -> tuple[float, int, int]:
    """Read the label `text[begin:end]`, which is not empty; a byte of at most 32 follows it.

    `lists` points to the fields `label_start` and `labels` of the batch, into which a list of labels of example n is
    read, see `label_words.read_list`. Return the label as in a Batch, its position with `rules.learn_names`, the number
    of the problem in `malformed`, or 0, and its position.
    """
    if rules.lists:
        return label_words.read_list(text, begin, end, rules, lists[1], lists[0][n])
    label, problem = np.nan, REAL_LABEL
    if not rules.multiclass:
        real, p, digits = line_parts.read_number(text, begin, False)
        if p == end and digits > 0 and math.isfinite(real):
            label, problem = np.float64(real), 0
    else:
        number, problem = label_words.read_class(text, begin, end, rules)
        if problem == 0 and (number != UNLABELLED or rules.learn_names):
            label = np.float64(number)
    if problem != 0 and 0 < label_words.second_label(text, begin) <= end:
        return label, SEVERAL_LABELS, label_words.second_label(text, begin)
    return label, problem, begin


# -- Python


def padded(text: bytes) -> UInt8s:
    """Return a text as an array with padding; kernels would be compiled once more for arrays that are read only."""
    array = np.full(len(text) + PADDING, numbers.NEWLINE, np.uint8)
    array[: len(text)] = np.frombuffer(text, np.uint8)
    return array


class LineScanner:
    """Parse blocks of lines by a kernel; only one thread at a time may use it.

    The kernel has the arguments text, end, rules, batch, notes, and then `more`. It returns the numbers of examples,
    features, groups, lines, malformed lines, skipped lines, and whether the last line ends the run. If features are
    made by `of_texts`, its rules and memory are the first of `more`.
    """

    def __init__(self, rules: Rules, kernel: Kernel, *more: object, of_texts: texts.Texts | None = None) -> None:
        self._rules, self._kernel, self._more, self._texts = rules, kernel, more, of_texts
        self._pool = Pool()  # memory of the batches

    def scan(self, text: UInt8s, end: int) -> Scan:
        """Parse the complete lines of `text[:end]`; `text` is as in `Parser.parse`."""
        lines = int(np.count_nonzero(text[:end] == numbers.NEWLINE))
        blanks = int(np.count_nonzero(text[:end] <= numbers.SPACE))  # at least the number of features
        labels, features, more = None, blanks, self._more
        if self._texts is not None:
            text_rules = self._texts.rules(text[:end])
            features, more = (
                texts.most_features(text_rules, end, lines),
                (text_rules, texts.work_for(text_rules, end), *more),
            )
        if self._rules.lists:
            labels = blanks + lines + int(np.count_nonzero(text[:end] == label_words.COMMA))  # at least their number
        out = self._pool.batch(lines, features + lines, 2 * lines, text[:end], labels)
        notes = np.zeros((MAX_MESSAGES + 2, 4), np.int64)
        n, z, g, line, bad, skipped, stopped = self._kernel(text, end, self._rules, out, notes, *more)
        return Scan(out, (n, z, g), end, line, bad, skipped, stopped, notes)
