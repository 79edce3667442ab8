"""Read lines of fastText, of LIBSVM, and of the extreme classification repository, whose words white space separates.

    fastText  line := { word }, as in `__label__tea a kettle of leaves`
    LIBSVM    line := [label] ['qid:' word] { number ':' value } ['#' comment]
    xmc       file := 'N D L' newline, then N lines [label { ',' label }] { number ':' value }

The feature j is the feature of the default namespace whose name is `j`. In a file of the repository, features and
labels are counted from 0, and an empty line is an example. In LIBSVM it is none.

In fastText, a word that begins with `__label__` is the label, wherever it stands; the others are a text, whose features
are in the default namespace. A line without words is an example without features.

Source    The formats of fastText's supervised mode, of LIBSVM's svm-train and SVMlight, and of the extreme
          classification repository (Bhatia et al.).
Differs   from fastText, which adds a word for the end of each line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from ..array_types import Int, Int64s, UInt8s
from ..data import feature_names, hashing, texts
from ..data.batch import Batch
from ..data.schema import MATRICES, PLAIN
from ..errors import DataError
from ..kernels import intrinsics
from ..kernels.jit import inlined, jit
from ..system.printable import short_repr
from ..text import label_words, numbers, parser
from ..text.label_words import COMMA
from ..text.line_parts import Rules
from ..text.malformed import (
    BEYOND_FEATURES,
    BEYOND_LABELS,
    INNER_RETURN,
    LABEL_NAME,
    NO_NAME,
    PAIR,
    PAIR_VALUE,
    SENTENCES,
    SEVERAL_LABELS,
)
from ..text.text_format import OtherFormat, WrittenFeature
from . import records

PREFIX = b"__label__"
DASH = 95  # `_`
LENGTH = len(PREFIX)


# -- kernels


@inlined
def is_label(text: UInt8s, begin: int, end: int) -> bool:
    """Return whether the word `text[begin:end]` begins with `__label__`."""
    if end - begin < 9 or text[begin] != 95 or text[begin + 1] != 95:
        return False
    labe = np.uint32(0x6562616C)  # "labe", the first byte the lowest
    return bool(
        (intrinsics.load32(text, begin + 2) == labe)
        and (text[begin + 6] == 108 and text[begin + 7] == 95 and text[begin + 8] == 95)
    )


@inlined
def may_have_more(text: UInt8s, p: int, stop: int) -> bool:
    """Return whether `text[p:stop]` may contain a label or a carriage return, since it has `__` or a return."""
    while p < stop:
        dashes = intrinsics.equal64(text, p, DASH)
        if dashes & (dashes >> np.uint64(1)) or dashes >> np.uint64(63):
            return True
        if intrinsics.equal64(text, p, numbers.RETURN) != 0:
            return True
        p += 64
    return False


@jit
def copy_words(text: UInt8s, begin: int, end: int, words: UInt8s) -> int:
    """Write the words of a line that are no labels, with a blank after each, to `words`; return their length.

    `text` is a pointer.
    """
    z = 0
    p = begin
    while p < end:
        first, _ = records.after_space(text, p, end)
        p = first
        while p < end and not feature_names.is_space(text[p]):
            p += 1
        if p > first and not is_label(text, first, p):
            for k in range(first, p):
                words[z] = text[k]
                z += 1
            words[z] = 32
            z += 1
    return z


@jit
def parse_words(
    data: UInt8s, end: int, rules: Rules, out: Batch, notes: Int64s, of_texts: texts.TextRules, work: texts.TextScratch
) -> tuple[int, int, int, int, int, int, bool]:
    """Parse lines of fastText; arguments and results are those of a `LineScanner` kernel."""
    text = intrinsics.pointer(data)
    index, value = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    lists = intrinsics.pointer(out.label_start), intrinsics.pointer(out.labels)
    words = np.zeros(0, np.uint8)
    n = z = g = line = bad = skipped = p = 0
    stopped = False
    while p < end and not stopped:
        line += 1
        start = p
        p = records.begin_of_line(text, p)
        stop = records.end_of_line(text, p)
        z0 = z
        label = np.nan
        labelled = False
        problem, where = 0, start
        begin = -1  # of the first word that is no label
        inner = False  # whether a label follows it
        while p < stop:
            first, returned = records.after_space(text, p, stop)
            if returned >= 0:
                problem, where = INNER_RETURN, returned
                break
            p = first
            while not feature_names.is_space(text[p]):
                p += 1
            if p == first:
                break
            if is_label(text, first, p):
                if labelled and not rules.lists:
                    problem, where = SEVERAL_LABELS, first
                    break
                labelled = True
                inner = inner or begin >= 0
                where = first + LENGTH
                if p == where:
                    problem = NO_NAME
                elif rules.lists:
                    count = 0 if math.isnan(label) else np.int64(label)
                    number, problem = label_words.read_class(text, where, p, rules)
                    lists[1][lists[0][n] + count] = number
                    label = np.float64(count + 1)
                else:
                    label, problem, where = records.read_label(text, where, p, rules, lists, n)
                if problem != 0 and label_words.second_label(text, first + LENGTH) >= 0:
                    problem, where = LABEL_NAME, first + LENGTH
                if problem != 0:
                    break
                continue
            if begin < 0:
                begin = first
                if not may_have_more(text, p, stop):
                    break
        if problem == 0 and inner:
            if len(words) < stop - begin + texts.PADDING:
                words = np.zeros(2 * (stop - begin) + texts.PADDING, np.uint8)
            size = copy_words(text, begin, stop, words)
            z = texts.features(intrinsics.pointer(words), 0, size, rules.unnamed, of_texts, work, index, z)
        elif problem == 0 and begin >= 0:
            z = texts.features(text, begin, stop, rules.unnamed, of_texts, work, index, z)
        for k in range(z0, z):
            value[k] = np.float32(1)
        p = stop + 1
        if problem != 0:
            bad, left_out, stopped = records.note_problem(notes, rules, True, problem, line, start, where, bad)
            skipped += left_out
        else:  # an empty line, too, since fastText writes a prediction for each line
            n, z, g = records.end_example(out, rules, n, z0, z, g, label, start, line)
    return n, z, g, line, bad, skipped, stopped


# -- Python


class FastText(OtherFormat):
    name = "fasttext"
    form = PLAIN
    labelled = "a labelled line is `__label__tea kettle leaf`"

    def scanner(self, of: parser.Parser) -> records.LineScanner:
        return records.LineScanner(of.rules, parse_words, of_texts=of.texts)

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        text = b" ".join(word for word in line.split() if not word.startswith(PREFIX))
        if text:
            yield WrittenFeature(text, np.float32(1), is_text=True)

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        for line in text.split(b"\n"):
            given = line.removeprefix(b"\xef\xbb\xbf").partition(b"\r")[0].split()  # the reader refuses what follows CR
            if given:
                yield b",".join(word.removeprefix(PREFIX) for word in given if word.startswith(PREFIX)), True


COLON, HASH, SPACE = 58, 35, 32
MOST = 10**14  # examples, features or labels in a header
COLUMN = re.compile(rb"(?<=[ \t])([0-9]{1,9}):")
FIRST_BYTES = 1 << 14  # whose columns are compared with those learned from
HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+([0-9]+)[ \t]*\r?")


# -- kernels


@inlined
def ends_word(text: UInt8s, p: int, headed: bool) -> bool:
    """Return whether a word ends at `p`: at white space and, in LIBSVM, at a comment."""
    return feature_names.is_space(text[p]) or (text[p] == HASH and not headed)


@inlined
def is_group_id(text: UInt8s, p: int) -> bool:
    """Return whether `qid:` stands at `p`."""
    return bool(intrinsics.load32(text, p) == np.uint32(0x3A646971))


@inlined
def read_index(text: UInt8s, begin: int) -> tuple[Int, int]:
    """Return the number at `begin`, below 10**15 and at least MOST if it has more digits, and one past its end."""
    p = begin
    number: Int = 0
    while numbers.is_digit(text[p]):
        if number < MOST:
            number = number * 10 + (np.int64(text[p]) - 48)
        p += 1
    return number, p


@jit
def label_problem(text: UInt8s, begin: int, end: int, most: int, lists: bool) -> tuple[int, int]:
    """Return the problem of the label of a line, or 0, and its position.

    `most` is the number of labels in the header, -1 in LIBSVM, and `lists` says whether the line may have several.
    """
    for p in range(begin, begin if lists else end):
        if text[p] == COMMA:
            return SEVERAL_LABELS, p + 1
    p = begin
    while most >= 0 and p < end:
        number, stop = read_index(text, p)
        if (stop < end and text[stop] != COMMA) or number >= most:
            return BEYOND_LABELS, p
        p = stop + 1
    return 0, begin


@jit
def parse_pairs(
    data: UInt8s, end: int, rules: Rules, out: Batch, notes: Int64s, most_features: int, most_labels: int
) -> tuple[int, int, int, int, int, int, bool]:
    """Parse lines of pairs; arguments and results are those of a `LineScanner` kernel.

    `most_features` and `most_labels` are numbers in the header; -1 for LIBSVM.
    """
    text = intrinsics.pointer(data)
    index, value_of = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    lists = intrinsics.pointer(out.label_start), intrinsics.pointer(out.labels)
    seed, mask, every = rules.unnamed, rules.mask, rules.hash_all
    headed = most_labels >= 0
    n = z = g = line = bad = skipped = p = 0
    stopped = False
    while p < end and not stopped:
        line += 1
        start = p
        p = records.begin_of_line(text, p)
        stop = records.end_of_line(text, p)
        z0 = z
        label = np.nan
        problem, where = 0, start
        count = 0
        of_label = False
        while True:
            first, returned = records.after_space(text, p, stop)
            p = first
            if text[p] == HASH and not headed:  # the rest is a comment
                while p < stop and returned < 0:
                    while not feature_names.is_space(text[p]):
                        p += 1
                    p, returned = records.after_space(text, p, stop)
            if returned >= 0:
                problem, where, of_label = INNER_RETURN, returned, True
            if p == stop or problem != 0:
                break
            count += 1
            number, p = read_index(text, first)
            name_end = p
            if text[p] != COLON or p == first:
                while not ends_word(text, p, headed) and text[p] != COLON:
                    p += 1
                where = first
                if not headed and is_group_id(text, first):
                    while not ends_word(text, p, headed):
                        p += 1
                elif count == 1 and text[p] != COLON:
                    problem, where = label_problem(text, first, p, most_labels, rules.lists)
                    if text[p] == HASH and not headed:  # the name of a class is read up to a blank
                        text[p] = SPACE
                        if p + 1 < stop:
                            text[p + 1] = HASH
                    if problem == 0:
                        label, problem, where = records.read_label(text, first, p, rules, lists, n)
                    of_label = True
                else:
                    problem, of_label = PAIR, False
                if problem != 0:
                    break
                continue
            p += 1
            where = first
            if headed and number >= most_features:
                problem, of_label = BEYOND_FEATURES, False
                break
            where = p
            value, p, digits = numbers.read_number(text, p)
            if digits == 0 or not math.isfinite(value) or not ends_word(text, p, headed):
                problem, of_label = PAIR_VALUE, False
                break
            if value != 0:
                index[z] = np.uint32(hashing.name_at(text, first, name_end, seed, every) & mask)
                value_of[z] = value
                z += 1
        p = stop + 1
        left_out = False
        if problem != 0:
            bad, left_out, stopped = records.note_problem(notes, rules, of_label, problem, line, start, where, bad)
            skipped += left_out
        if left_out or stopped:
            z = z0
        elif count > 0 or headed:
            n, z, g = records.end_example(out, rules, n, z0, z, g, label, start, line)
    return n, z, g, line, bad, skipped, stopped


# -- Python


class Libsvm(OtherFormat):
    name = "libsvm"
    form = MATRICES
    labelled = "a labelled line is `label number:value number:value`"
    _most_features = _most_labels = -1

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        self._compare_columns(text, file)
        return 0, 0

    def _compare_columns(self, text: bytes, file: str) -> None:
        """Note the columns of the first lines of a file, and compare them with those of the first file."""
        lines = (line.partition(b"#")[0] for line in text[:FIRST_BYTES].split(b"\n")[:-1])
        columns = np.array(sorted({int(column) for line in lines for column in COLUMN.findall(line)}), np.int64)
        if not len(self.first_columns):
            self.first_columns = columns
        known = partial(np.isin, test_elements=self.first_columns)
        note = feature_names.shift_note(columns, known, "the first file has", file, feature_names.ALIKE)
        if note and note not in self._noted:
            self._noted.add(note)
            self.notes.append(note)

    def scanner(self, of: parser.Parser) -> records.LineScanner:
        return records.LineScanner(of.rules, parse_pairs, self._most_features, self._most_labels)

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        for word in line.partition(b"#")[0].split():
            name, colon, _ = word.partition(b":")
            if colon and name != b"qid":
                value = np.float32(numbers.read_number(records.padded(word), len(name) + 1)[0])
                yield WrittenFeature(name, value, is_index=True)

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        for line in text.split(b"\n"):
            given = line.removeprefix(b"\xef\xbb\xbf").partition(b"#")[0].split()
            if given:
                yield b"" if b":" in given[0] else given[0], self._most_labels >= 0


class ExtremeClassification(Libsvm):
    name = "xmc"
    labelled = "a labelled line is `number number:value`, with the number of its label first"
    _examples = 0

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        first, newline, _ = text.partition(b"\n")
        header = HEADER.fullmatch(first.removeprefix(b"\xef\xbb\xbf"))
        if header is None and b"\r" in first.rstrip():
            raise DataError(f"{file}:1:{first.index(13) + 1}: {SENTENCES[INNER_RETURN]}")
        if header is None:
            raise DataError(
                f"{file}:1:1: {short_repr(first.decode('utf-8', 'replace'))} is not the header of a file of the "
                "extreme classification repository, which has the numbers of examples, features and labels; add it, "
                "or give --format libsvm"
            )
        counts = tuple(int(digits) if len(digits) < 1000 else MOST + 1 for digits in header.groups())
        if max(counts) > MOST:
            raise DataError(
                f"{file}:1:1: {short_repr(first.decode('ascii'))} has a number above {MOST:g}, which is too large; "
                "correct the header"
            )
        if self._most_labels >= 0 and counts[1:] != (self._most_features, self._most_labels):
            raise DataError(
                f"{file}:1:1: the header has {counts[1]} features and {counts[2]} labels, and that of the first file "
                f"{self._most_features} and {self._most_labels}; give files of one data set"
            )
        if self._most_labels < 0:
            self.about.append(f"{counts[0]} examples, {counts[1]} features, {counts[2]} labels, numbered from 0")
        self._examples, self._most_features, self._most_labels = counts
        self._compare_columns(text[len(first) :], file)
        return len(first) + len(newline), 1

    def finish(self, lines: int, file: str) -> None:
        if lines != self._examples:
            raise DataError(
                f"{file}: the header names {self._examples} examples, and the file has {lines}; fetch the file again, "
                "or correct the header"
            )
