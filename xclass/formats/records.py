"""Make batches of the examples of all formats but VW text: of lines by a kernel, and of examples collected in Python.

Idea      A format gives the label, the weight and the tag of each example, and its items: names with values, and texts
          whose words are features. `Records` keeps their bytes, and one call of a kernel hashes all of them.
Names     A namespace is given by its number, the position of its name among `Namespaces`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..array_types import Bools, Float32s, Float64s, Int32s, Int64s, UInt8s, UInt32s
from ..data import feature_names, hashing, texts
from ..data.batch import CONSTANT, CONSTANT_GROUP, UNNAMED_GROUP, Batch, Features, Pool, features_of
from ..data.feature_names import Hashing, NameHasher
from ..kernels import intrinsics
from ..kernels.jit import apart, inlined, jit
from ..text import label_words, line_parts, numbers
from ..text.label_words import UNLABELLED
from ..text.line_parts import Rules
from ..text.malformed import BLANK, MAX_MESSAGES, REAL_LABEL, SEVERAL_LABELS, SKIP, VW
from ..text.parser import PADDING, Parser, Scan

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


class Items(NamedTuple):
    """Hold the items of n examples: a name with a value, or a text if the value is NaN."""

    first: Int64s  # int64[n + 1], first item of each example
    namespace: Int32s  # int32[m], number of the namespace
    begin: Int64s  # int64[m], where the name or the text begins
    end: Int64s  # int64[m], where it ends
    value: Float32s  # float32[m], value of the feature; NaN for a text


# -- kernels


@jit
def assemble(
    text: UInt8s, items: Items, seeds: UInt32s, groups: UInt8s, hash_all: bool, mask: np.uint32, constant: bool,
    words_first: Int64s, words: UInt32s, rows: Int64s, out: Features,
) -> tuple[int, int]:  # fmt: skip
    """Write the features of the examples `rows` (int64[m]) to `out`; return the numbers of features and groups.

    `text` holds names and texts, followed by PADDING bytes. The items of an example with the same group are neighbours.
    `seeds` and `groups`, uint32[s] and uint8[s], are hash and first byte of the name of each namespace. `hash_all`,
    `mask` and `constant` are as in `Rules`. The features of the text of item k are
    `words[words_first[k]:words_first[k + 1]]`.
    """
    pointer, index = intrinsics.pointer(text), intrinsics.pointer(out.index)
    z = g = 0
    for r, i in enumerate(rows):
        g0 = g
        for k in range(items.first[i], items.first[i + 1]):
            space, begin, end, value = items.namespace[k], items.begin[k], items.end[k], items.value[k]
            before = z
            if value != value:
                for q in range(words_first[k], words_first[k + 1]):
                    index[z], out.value[z] = words[q], np.float32(1)
                    z += 1
            elif value != 0:
                index[z] = np.uint32(hashing.word_at(pointer, begin, end, seeds[space], hash_all) & mask)
                out.value[z] = value
                z += 1
            if z > before and not (g > g0 and out.group_name[g - 1] == groups[space]):
                out.group_name[g], out.group_start[g] = groups[space], before
                g += 1
        if constant:
            out.index[z], out.value[z] = np.uint32(CONSTANT), np.float32(1)
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            z, g = z + 1, g + 1
        out.start[r + 1], out.group_first[r + 1] = z, g
    out.group_start[g] = z
    return z, g


@jit
def read_labels(
    text: UInt8s, begin: Int64s, end: Int64s, rules: Rules, label: Float64s, problem: Int64s, where: Int64s,
    labels: Float64s,
) -> None:  # fmt: skip
    """Read the labels of n examples.

    `begin` and `end`, int64[n], are the range of each label, empty for none; a byte of at most 32 follows it. `label`,
    `problem`, `where`, float64[n] and int64[n], and `labels` are written, see `read_label`.
    """
    pointer, start = intrinsics.pointer(text), np.zeros(1, np.int64)
    lists = intrinsics.pointer(start), intrinsics.pointer(labels)
    for i in range(len(begin)):
        label[i], problem[i] = np.nan, 0
        if end[i] > begin[i]:
            label[i], problem[i], where[i] = read_label(pointer, begin[i], end[i], rules, lists, 0)
            start[0] += 0 if math.isnan(label[i]) else np.int64(label[i])


@jit
def read_values(text: UInt8s, begin: Int64s, end: Int64s, value: Float32s, blank: Bools) -> None:
    """Read numbers with white space around them as `numbers.read_number` does.

    Parameters
    ----------
    text : uint8[...], a newline follows every number
    begin, end : int64[n, m], range of each number
    value : float32[n, m], written; NaN for what is not a finite number
    blank : bool[n, m], written: whether there is nothing but white space
    """
    pointer = intrinsics.pointer(text)
    for i in range(begin.shape[0]):
        for k in range(begin.shape[1]):
            p, last = begin[i, k], end[i, k]
            while p < last and feature_names.is_space(pointer[p]):
                p += 1
            while last > p and feature_names.is_space(pointer[last - 1]):
                last -= 1
            blank[i, k] = p == last
            value[i, k] = np.nan
            if p < last:
                number, q, digits = numbers.read_number(pointer, p)
                if q == last and digits > 0 and math.isfinite(number):
                    value[i, k] = number


# -- Python


class Namespaces:
    """Number namespaces in the order in which they occur; number 0 is the default namespace."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        hashes = Hashing(rules.hash_seed, rules.hash_all, rules.unnamed, rules.mask, False, False)
        self._hasher = NameHasher(hashes)
        self._numbers: dict[tuple[bytes, bytes | None], int] = {(b"", None): 0}
        self._seeds, self._groups = [int(rules.unnamed)], [UNNAMED_GROUP]

    def number(self, namespace: bytes, feature: bytes | None = None) -> int:
        """Return the number of a namespace, or of a feature in it that has words, whose hashes it seeds."""
        known = self._numbers.get((namespace, feature))
        if known is None:
            seed, name = int(self._rules.hash_seed), namespace
            if feature is not None:
                seed, name = self._seeds[self.number(namespace)], feature
            hashed = self._hasher.hash_bytes(name, seed)
            known = self._numbers[namespace, feature] = len(self._seeds)
            self._seeds.append(hashed)
            self._groups.append(namespace[0] if namespace else UNNAMED_GROUP)
        return known

    def arrays(self) -> tuple[UInt32s, UInt8s]:
        """Return hash and first byte of each namespace, uint32[s] and uint8[s]."""
        return np.array(self._seeds, np.uint32), np.array(self._groups, np.uint8)


class RecordProblem(NamedTuple):
    """Describe what is malformed in an example."""

    kind: int  # its number in `malformed`
    line: int  # line in the block, from 1
    column: int
    seen: bytes  # the word to show
    ends: bool = False  # whether `--on_bad_line vw` ends the run here
    about: bytes = b""  # name of the column, or numbers of cells, or what is allowed


@dataclass
class Examples:
    """Collect the examples of a block."""

    line: list[int] = field(default_factory=list)  # first line of each example in the block, from 1
    label: list[bytes] = field(default_factory=list)  # as `one_line` returns it, empty for none
    tag: list[bytes] = field(default_factory=list)  # one word, empty for none
    weight: list[float] = field(default_factory=list)
    source: list[bytes] = field(default_factory=list)  # without newlines; features are found again in it
    problems: dict[int, RecordProblem] = field(default_factory=dict)  # number of the example -> what is malformed in it

    def add(self, line: int, label: bytes, tag: bytes, weight: float, source: bytes) -> None:
        self.line.append(line)
        self.label.append(label)
        self.tag.append(tag)
        self.weight.append(weight)
        self.source.append(source)


def one_word(text: bytes) -> bytes:
    return b"_".join(text.split())


def one_line(text: bytes) -> bytes:
    """Return a label with one blank in place of each run of white space, see `class_names.spelled`."""
    return b" ".join(text.split())


def spellings_of(labels: list[bytes], lines: list[int]) -> dict[str, int]:
    """Return the labels that other labels could be equal to, with the line in which each occurs first."""
    several = [label for label in dict.fromkeys(labels) if b" " in label or b"_" in label]
    if not several:
        return {}
    first = dict(zip(reversed(labels), reversed(lines), strict=True))
    return {label.decode("utf-8", "surrogateescape"): first[label] for label in several}


def source_of(line: bytes) -> bytes:
    """Return the source of an example from its line in the text of a batch: label, tag and source."""
    return line.split(b" ", 2)[2]


class RecordScanner:
    def __init__(self, of: Parser) -> None:
        self.rules, self._texts = of.rules, of.texts
        self.namespaces = Namespaces(of.rules)
        self._pool = Pool()  # memory of the batches

    def scan_of(
        self,
        examples: Examples,
        items: Items,
        text: bytes,
        lines: int,
        end: int,
        column_of_label: Callable[[int], int],
        empty: Int64s,
    ) -> Scan:
        """Return the scan of a block of so many lines that ends at a byte.

        `text` has the bytes of the items, `empty` are the lines that are empty, and `column_of_label` returns the
        column of the label of an example, for messages.
        """
        lists, named, lines_of = self.rules.lists, examples.label, examples.line
        if lists:
            parts_of = [[part.strip() for part in label.split(b",")] for label in examples.label]
            examples.label = [b",".join(parts) for parts in parts_of]
            named = list(itertools.chain.from_iterable(parts_of))
            lines_of = [line for line, parts in zip(examples.line, parts_of, strict=True) for _ in parts]
        spellings = spellings_of(named, lines_of)
        keys = [label.replace(b" ", b"_") for label in examples.label] if spellings else examples.label
        parts = list(itertools.chain.from_iterable(zip(keys, examples.tag, examples.source, strict=True)))
        size = np.fromiter(map(len, parts), np.int64, len(parts))
        stop = np.cumsum(size + 1) - 1  # a space or a newline follows
        begin = stop - size
        whole = b"%b %b %b\n" * len(examples.line) % tuple(parts)
        n = len(examples.line)
        label, problem, where = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
        labels = np.empty(len(named) if lists else 0)
        batch_text = padded(whole)
        read_labels(batch_text, begin[::3], stop[::3], self.rules, label, problem, where, labels)
        for i in np.flatnonzero(problem).tolist():
            seen = examples.label[i][where[i] - begin[3 * i] :]  # from the malformed label of a list on
            problem_of_label = RecordProblem(int(problem[i]), examples.line[i], column_of_label(i), seen, True)
            examples.problems.setdefault(i, problem_of_label)
        notes, kept, bad, skipped, seen_words = self._judged(examples, len(whole))
        if seen_words:
            batch_text = padded(whole + seen_words)
        rows = np.flatnonzero(kept)
        padded_text = padded(text)
        seeds, groups = self.namespaces.arrays()
        words_first, words = self._words_of(padded_text, items, seeds)
        count = np.nan_to_num(label).astype(np.int64) if lists else np.zeros(n, np.int64)
        labels = labels[: count.sum()][np.repeat(kept, count)]
        most = len(items.value) + len(rows)  # groups, or features that are not from texts
        out = self._pool.batch(len(rows), len(words) + most, most, batch_text, len(labels) if lists else None)
        if lists:
            out.label_start[1:], out.labels[:] = np.cumsum(count[rows]), labels
        z, g = assemble(
            padded_text, items, seeds, groups, self.rules.hash_all, self.rules.mask, self.rules.constant, words_first,
            words, rows, features_of(out),
        )  # fmt: skip
        out.label[:], out.weight[:], out.initial[:] = label[rows], np.array(examples.weight, np.float32)[rows], 0
        out.tag_start[:], out.tag_end[:] = begin[1::3][rows], stop[1::3][rows]
        out.line[:] = np.array(examples.line, np.int64)[rows]
        stopped = bool(notes[-1, 0])
        left_out = np.sort(np.concatenate((empty, np.array(examples.line, np.int64)[~kept])))
        has_names = self.rules.learn_names or len(self.rules.names.hash)
        return Scan(
            out, (len(rows), z, g), end, lines, bad, skipped, stopped, notes,
            lambda row: column_of_label(int(rows[row])), left_out, spellings if has_names else {},
        )  # fmt: skip

    def _words_of(self, text: UInt8s, items: Items, seeds: UInt32s) -> tuple[Int64s, UInt32s]:
        """Return where the features of the text of each item begin, and these features, see `assemble`."""
        is_text = np.isnan(items.value)
        first = np.zeros(len(is_text) + 1, np.int64)
        if not is_text.any():
            return first, np.zeros(0, np.uint32)
        rules = self._texts.rules(text)
        begin, end = items.begin[is_text], items.end[is_text]
        most = texts.most_features(rules, int((end - begin).sum()), len(begin))
        work = texts.work_for(rules, int((end - begin).max()))
        start, words = texts.indices(text, begin, end, seeds[items.namespace[is_text]], rules, work, most)
        first[1:][is_text] = np.diff(start)
        return first.cumsum(), words

    def _judged(self, examples: Examples, at: int) -> tuple[Int64s, Bools, int, int, bytes]:
        """Decide by `--on_bad_line` what becomes of malformed examples.

        Return notes as in `tokens.parse_lines`, whether each example is read, the numbers of malformed lines and of
        lines left out, and the words to show, which will be at position `at` of the text of the batch.
        """
        notes = np.zeros((MAX_MESSAGES + 2, 4), np.int64)
        kept = np.ones(len(examples.line), bool)
        bad = skipped = 0
        seen_words = b""
        for i, problem in sorted(examples.problems.items()):
            where = at + len(seen_words)
            line_start = where - problem.column + 1
            bad, left_out, stopped = note_problem(
                notes, self.rules, problem.ends, problem.kind, problem.line, line_start, where, bad
            )
            if stopped or bad <= MAX_MESSAGES:
                seen = BLANK.join(problem.seen[:200].split()) or b'""'
                seen_words += seen + b" " + one_line(problem.about[:200]) + b"\n"
            if stopped:
                kept[i:] = False
                break
            skipped += left_out
            kept[i] = not left_out
        return notes, kept, bad, skipped, seen_words
