"""Parse lines of text into features, in two steps: find all delimiters, then read the text between them.

Idea      `find_delimiters` compares 64 bytes at a time and lists the positions of all delimiters. `parse_lines` walks
          that list, so that neither searches byte by byte; it hashes names (`hashing`) and reads numbers (`numbers`).
Cost      About 2 ns per byte on one core.
"""

from __future__ import annotations

import math

import numpy as np

from ..array_types import Int32s, Int64s, UInt8s, UInt32s
from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch
from ..kernels import intrinsics
from ..kernels.jit import bare, inlined, jit
from . import label_words, line_parts, malformed, vw_numbers
from .line_parts import Rules
from .numbers import BAR, COLON, NEWLINE, RETURN, SPACE, TAB

PADDING = 80  # bytes that must follow the text in its array, because both kernels read beyond its end


# -- kernels


@jit
def find_delimiters(data: UInt8s, end: int, positions: Int32s) -> tuple[int, int, int, int, int]:
    """List in `positions` all delimiters of `data[:end]`: SPACE, TAB, ':', '|', CR and newline.

    `data` is uint8[end + PADDING or more], and `positions` int32[end + 64 or more].

    Returns
    -------
    complete : number of the positions up to the last newline, included
    blanks, bars, lines : numbers of SPACE and TAB, of '|' and of newlines in the text
    returns : number of CR that are not before a newline
    """
    text, delimiter = intrinsics.pointer(data), intrinsics.pointer(positions)
    count = complete = blanks = bars = lines = returns = 0
    p = 0
    while p < end:
        blank = intrinsics.equal64(text, p, SPACE) | intrinsics.equal64(text, p, TAB)
        bar = intrinsics.equal64(text, p, BAR)
        newline = intrinsics.equal64(text, p, NEWLINE)
        cr = intrinsics.equal64(text, p, RETURN)
        mask = blank | bar | newline | cr | intrinsics.equal64(text, p, COLON)
        if end - p < 64:
            inside = (np.uint64(1) << np.uint64(end - p)) - np.uint64(1)
            blank &= inside
            bar &= inside
            newline &= inside
            cr &= inside
            mask &= inside
        blanks += intrinsics.count_ones(blank)
        bars += intrinsics.count_ones(bar)
        if cr != np.uint64(0):
            returns += intrinsics.count_ones(cr & ~intrinsics.equal64(text, p + 1, NEWLINE))
        if newline != np.uint64(0):
            lines += intrinsics.count_ones(newline)
            last = newline
            while last & (last - np.uint64(1)) != np.uint64(0):
                last &= last - np.uint64(1)
            complete = count + intrinsics.count_ones(mask & (last | (last - np.uint64(1))))
        following = count + intrinsics.count_ones(mask)
        while count < following:
            for i in range(4):  # writing up to three positions too many is faster than counting them one by one
                delimiter[count + i] = p + intrinsics.trailing_zeros(mask)
                mask &= mask - np.uint64(1)
            count += 4
        count = following
        p += 64
    return complete, blanks, bars, lines, returns


@inlined
def _refined(text: UInt8s, problem: int, position: int, inner_return: int) -> tuple[int, int]:
    """Return a problem and its position, those of a second label or of a CR within the line if it has one of these."""
    if problem == malformed.CLASS or problem == malformed.LABEL or problem == malformed.UNKNOWN_NAME:
        p = label_words.second_label(text, position)
        if p >= 0:
            return malformed.SEVERAL_LABELS, p
    if problem == 0 and inner_return >= 0:
        return malformed.INNER_RETURN, inner_return
    return problem, position


@bare
def parse_lines(
    data: UInt8s, positions: Int32s, count: int, returns: int, rules: Rules, letter_hashes: UInt32s, line: int,
    out: Batch, notes: Int64s, line_of: Int64s,
) -> tuple[int, int, int, int, int, int, bool, bool]:  # fmt: skip
    """Parse the lines whose delimiters are `positions[:count]`, of which the last is a newline.

    `returns` is the number of CR within lines, `letter_hashes` (uint32[256]) has the hashes of the namespaces of one
    byte, and `line` is the number of the line before the first. Written are `out`, which has room for all that lines
    hold and zeros in `dense`, and `notes` (int64[MAX_MESSAGES + 2, 4]): problem, line, start of the line, position of
    the problem. Row 0 is for words that look like labels but are not, the last row for the problem that ended the
    reading. `line_of` (int64[256]), filled with -1, is scratch: the line in which a group was last seen.

    Return the numbers of examples, features and groups, the number of the last line read, the numbers of malformed
    places and of lines left out, whether an example has a group in several places, and whether the last line is
    malformed and ended the reading.
    """
    text, delimiter = intrinsics.pointer(data), intrinsics.pointer(positions)
    letter, notes_pointer = intrinsics.pointer(letter_hashes), intrinsics.pointer(notes.reshape(-1))
    features = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    name_rules = line_parts.name_rules_of(rules)
    rows, width, dense = intrinsics.pointer(out.dense.reshape(-1)), out.dense.shape[1], np.int64(rules.dense)
    group_name, group_start = intrinsics.pointer(out.group_name), intrinsics.pointer(out.group_start)
    lists = intrinsics.pointer(out.label_start), intrinsics.pointer(out.labels)
    n = z = g = k = start = bad = skipped = 0
    scattered = stopped = False
    treatment = rules.treatment
    numbers_as_classes = rules.multiclass and len(rules.names.hash) == 0 and not rules.learn_names
    while k < count:
        line += 1
        at = start
        if text[at] == 0xEF and text[at + 1] == 0xBB and text[at + 2] == 0xBF:
            at += 3
        e = np.int64(delimiter[k])
        c = text[e]
        if e == at and vw_numbers.ends_number(text, e) and c != SPACE and c != TAB:  # an empty line is not an example
            k += 2 if c == RETURN else 1
            start = np.int64(delimiter[k - 1]) + 1
            continue
        z0, g0 = z, g
        label = np.nan
        weight, initial = np.float32(1), np.float32(0)
        tag_start = tag_end = position = at
        problem = 0
        number = line_parts.read_lone_class(text, at, e) if numbers_as_classes else np.int64(-1)
        if number >= 0:
            label = np.float64(number)
            if rules.highest >= 0 and (number < rules.lowest or number > rules.highest):
                problem = malformed.OUTSIDE
            if rules.lists:
                lists[1][lists[0][n]], label = label, 1.0
            k += 1
        elif c != BAR or e > at:
            k, e = line_parts.end_of_label(text, delimiter, k, at)
            label, weight, initial, tag_start, tag_end, problem, position = label_words.read_label(
                text, at, e, rules, lists, n
            )
        if problem == malformed.LABEL_AS_TAG or problem == malformed.LABEL_BEFORE_TAB or problem == malformed.TAG_ONLY:
            if notes_pointer[0] == 0 or (notes_pointer[0] == malformed.TAG_ONLY and problem != malformed.TAG_ONLY):
                line_parts.note(notes_pointer, 0, problem, line, start, position)
            problem = 0
        elif problem > malformed.CLASS_WORDS and treatment == malformed.VW:  # VW continues after a warning
            bad += 1
            line_parts.note(notes_pointer, bad, problem, line, start, position)
            problem = 0
        inner = line_parts.inner_return(text, delimiter, k) if returns > 0 and treatment != malformed.VW else -1
        problem, position = _refined(text, problem, position, inner)

        c = text[delimiter[k]]
        while c == BAR and problem == 0:
            k, group, seed, scale, problem, position = line_parts.read_namespace(text, delimiter, k, name_rules, letter)
            if problem != 0:
                break
            if math.isnan(scale):
                scale = np.float32(1)
                bad += 1
                line_parts.note(notes_pointer, bad, malformed.NAMESPACE_WEIGHT, line, start, position)
            first = z
            if np.int64(group) == dense and seed == rules.dense_seed:
                k, problem, position, bad = line_parts.read_row(
                    text, delimiter, k, scale, name_rules, (rows, n * width, width), notes_pointer, bad, line, start
                )
            else:
                k, z, problem, position, bad = line_parts.read_features(
                    text, delimiter, k, seed, scale, name_rules, features, z, notes_pointer, bad, line, start
                )
            c = text[delimiter[k]]
            if z > first and not (g > g0 and group_name[g - 1] == group):
                scattered = scattered or line_of[group] == line
                line_of[group] = line
                group_name[g] = group
                group_start[g] = first
                g += 1

        if problem != 0:
            left_out = treatment != malformed.VW or problem <= malformed.CLASS_WORDS
            if left_out:
                z, g = z0, g0
            if left_out and not (treatment == malformed.SKIP and label_words.can_be_skipped(problem, rules)):
                line_parts.note(notes_pointer, -1, problem, line, start, position)
                stopped = True
                break
            bad += 1
            line_parts.note(notes_pointer, bad, problem, line, start, position)
            skipped += left_out
        while text[delimiter[k]] != NEWLINE:
            k += 1
        start = np.int64(delimiter[k]) + 1
        k += 1
        if problem != 0 and treatment != malformed.VW:
            out.dense[n : n + 1] = np.float32(0)
            continue
        if rules.constant:
            features[0][z], features[1][z] = np.uint32(CONSTANT), np.float32(1)
            group_name[g], group_start[g] = np.uint8(CONSTANT_GROUP), z
            z, g = z + 1, g + 1
        out.label[n], out.weight[n], out.initial[n] = label, weight, initial
        out.tag_start[n], out.tag_end[n], out.line[n] = tag_start, tag_end, line
        if rules.lists:
            out.label_start[n + 1] = out.label_start[n] + (0 if math.isnan(label) else np.int64(label))
        n += 1
        out.start[n], out.group_first[n] = z, g
    group_start[g] = z
    return n, z, g, line, bad, skipped, scattered, stopped
