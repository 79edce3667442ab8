"""Read lines of fastText: `__label__tea a kettle of leaves`.

    line := { word }     separated by white space

A word that begins with `__label__` is the label, wherever it stands; the others are a text, whose features are in the
default namespace. A line without words is an example without features.

Source    fastText's supervised mode.
Differs   from fastText, which adds a word for the end of each line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..array_types import Int64s, UInt8s
from ..data import feature_names, texts
from ..data.batch import Batch
from ..data.schema import PLAIN
from ..kernels import intrinsics
from ..kernels.jit import inlined, jit
from ..text import label_words, numbers
from ..text.line_parts import Rules
from ..text.malformed import INNER_RETURN, LABEL_NAME, NO_NAME, SEVERAL_LABELS
from ..text.parser import Parser
from ..text.text_format import OtherFormat, WrittenFeature
from . import line_scanner

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
        first, _ = line_scanner.after_space(text, p, end)
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
        p = line_scanner.begin_of_line(text, p)
        stop = line_scanner.end_of_line(text, p)
        z0 = z
        label = np.nan
        labelled = False
        problem, where = 0, start
        begin = -1  # of the first word that is no label
        inner = False  # whether a label follows it
        while p < stop:
            first, returned = line_scanner.after_space(text, p, stop)
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
                    label, problem, where = line_scanner.read_label(text, where, p, rules, lists, n)
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
            bad, left_out, stopped = line_scanner.note_problem(notes, rules, True, problem, line, start, where, bad)
            skipped += left_out
        else:  # an empty line, too, since fastText writes a prediction for each line
            n, z, g = line_scanner.end_example(out, rules, n, z0, z, g, label, start, line)
    return n, z, g, line, bad, skipped, stopped


# -- Python


class FastText(OtherFormat):
    name = "fasttext"
    form = PLAIN
    labelled = "a labelled line is `__label__tea kettle leaf`"

    def scanner(self, of: Parser) -> line_scanner.LineScanner:
        return line_scanner.LineScanner(of.rules, parse_words, of_texts=of.texts)

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        text = b" ".join(word for word in line.split() if not word.startswith(PREFIX))
        if text:
            yield WrittenFeature(text, np.float32(1), is_text=True)

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        for line in text.split(b"\n"):
            given = line.removeprefix(b"\xef\xbb\xbf").partition(b"\r")[0].split()  # the reader refuses what follows CR
            if given:
                yield b",".join(word.removeprefix(PREFIX) for word in given if word.startswith(PREFIX)), True
