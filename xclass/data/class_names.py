"""Say what the label of a class is, and number the names of classes: listed ones, and with `--learn_names` new ones.

A class is a number, written without a sign and leading zeros, or a name. `class_number` and `number_of` read the
number; `3.0` and `3.000e+00` are the class 3, because columns of numbers and programs write whole numbers in this way.
`spelled` and `key_of` say which names are the same: the key of a name has `_` in place of blanks, which names in VW
text cannot have. A class is shown by the first spelling of its name. A name has no comma, because commas separate
labels (`fault_of`); where a text can only be one label, `in_lists` puts `;` in its place.

Source    SipHash, see `hashing`; the table is our own.
Cost      one hash and one probe of a hash table per example, about 20 ns.
Names     A name's letters are the bytes of its key; name j (from 0) belongs to class j + 1.
Differs   from VW, whose --named_labels requires all names in advance.
Idea      A block of text is parsed in any thread, without knowledge of the blocks before it, so the parser stores the
          position of an example's first word as its label. The blocks are then taken in the order of the file, and
          this module replaces the positions by numbers, 1, 2, ... in the order in which names first occur. The result
          does not depend on the number of threads.
          Names are hashed by SipHash with a key that each table draws, so that names cannot be chosen to collide.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..array_types import AnyArray, Float64s, Int, Int32s, Int64s, UInt8s, UInt64s
from ..kernels import intrinsics
from ..kernels.jit import bare, jit, on_demand
from . import hashing

T = TypeVar("T")
SPACE, COMMA = 32, 44  # the largest byte that can follow a name, and what follows it in a list
DONE, TABLE_FULL, REFUSED = range(3)  # why `number_names` returned
UNKNOWN = 2**32 - 2  # label of a name that the model of -t does not know; it is no class
NAMELESS = 2**53  # stands for a class whose name has not occurred yet when a prediction is written
NEGATIVE, NO_NUMBER, OTHER_FORM = -1, -2, -3  # what `class_number` returns for a text that is not the number of a class
MOST_NUMBER = 10**15  # numbers of classes are read up to this one
MOST_BYTES = 4096  # of a name in UTF-8
NO_COMMA = "a name has no comma, which separates labels; write ; in its place, or a list if these are several labels"
MOST_EXPONENT = 9  # of the number of a class; larger ones are beyond all classes
NUMBER = re.compile(r"([+-]?[0-9]+)(?:\.([0-9]*))?(?:[eE]\+?0*([0-9]))?")
WHOLE = re.compile("0|-?[1-9][0-9]*")
BLANKS = re.compile(r"[ \t\n\r\v\f]+")  # white space as in `bytes.split`


class NameTable(NamedTuple):
    """Map names to numbers by open addressing; name j (from 0) has the letters `start[j]:start[j + 1]`."""

    slot: Int32s  # int32[power of two], number of a name, from 1, or 0 if the slot is free
    hash: UInt64s  # uint64[capacity], hash of each name
    start: Int64s  # int64[capacity + 1], where the letters of each name begin
    letters: UInt8s  # uint8[...], all names
    key: UInt64s  # uint64[2], secret key of the hash


# -- kernels


@on_demand
def _scaled(text: UInt8s, begin: Int, end: Int, number: Int) -> tuple[int, int]:
    """Return a number with the decimals and the exponent `text[begin:end]`, and `end` if the result is whole."""
    p = begin
    if text[p] == 46:
        p += 1
        while p < end and text[p] >= 48 and text[p] <= 57:
            p += 1
    last = p
    power: Int = 0
    if p + 1 < end and (text[p] == 69 or text[p] == 101):
        p += 1
        if text[p] == 43 and p + 1 < end:
            p += 1
        while p < end and text[p] >= 48 and text[p] <= 57 and power <= MOST_EXPONENT:
            power = power * 10 + (np.int64(text[p]) - 48)
            p += 1
        if power > MOST_EXPONENT:
            return int(number), int(begin)
    for i in range(begin + 1, max(last, begin + 1 + power)):
        digit: Int = np.int64(text[i]) - 48 if i < last else np.int64(0)
        if i - begin > power and digit > 0:
            return int(number), int(begin)
        if i - begin <= power and number < MOST_NUMBER:
            number = number * 10 + digit
    return int(number), int(p)


@bare
def class_number(text: UInt8s, begin: Int, end: Int) -> Int:
    """Return the number of the class that `text[begin:end]` writes, limited to about MOST_NUMBER; see `number_of`.

    `text[end]` is no digit.
    """
    p = begin
    negative, plus = text[p] == 45, text[p] == 43
    if negative or plus:
        p += 1
    first = p
    number: Int = 0
    while p < end and text[p] >= 48 and text[p] <= 57:
        if number < MOST_NUMBER:
            number = number * 10 + (np.int64(text[p]) - 48)
        p += 1
    digits = p - first
    if digits > 0 and p < end:
        number, p = _scaled(text, p, end, number)
    if digits == 0 or p < end:
        return NO_NUMBER
    if negative and number > 0:
        return NEGATIVE
    return OTHER_FORM if negative or plus or (digits > 1 and text[first] == 48) else number


@bare
def slot_of(data: UInt8s, begin: Int, end: Int, h: np.uint64, table: NameTable) -> np.int64:
    """Return the slot of the name `data[begin:end]` with the hash `h`, or the free slot where it belongs.

    This cannot use `hash_table.probe`: a slot holds the number of a name, and names are compared by their letters.
    """
    last = len(table.slot) - 1
    i = np.int64(h >> np.uint64(1)) & last
    while table.slot[i] > 0:
        j = np.int64(table.slot[i]) - 1
        low = table.start[j]
        if table.hash[j] == h and table.start[j + 1] - low == end - begin:
            p = 0
            while p < end - begin and table.letters[low + p] == data[begin + p]:
                p += 1
            if p == end - begin:
                break
        i = (i + 1) & last
    return i


@on_demand
def class_of(data: UInt8s, begin: Int, end: Int, table: NameTable) -> np.int64:
    """Return the class named `data[begin:end]` (uint8[...]), 0 if there is none."""
    return np.int64(table.slot[slot_of(data, begin, end, hashing.siphash(data, begin, end, table.key), table)])


@jit
def number_names(
    data: UInt8s, label: Float64s, row: int, table: NameTable, count: int, max_names: int, fixed: bool
) -> tuple[int, int, int]:
    """Replace positions of names in `label` by the numbers of the names; new names are added to the table.

    In `data`, every name ends with a comma or a byte of at most 32, which is followed by three bytes or more. `label`
    is float64[n], NaN for no name, and written from `row` on; `count` names are known. If `fixed`, unknown names get
    the label UNKNOWN. Return the example that could not be numbered, or n; the number of known names; and DONE,
    TABLE_FULL, or REFUSED for a new name that is one too many or too long.
    """
    text = intrinsics.pointer(data)
    for i in range(row, len(label)):
        if label[i] != label[i]:
            continue
        begin = np.int64(label[i])
        end = begin
        while text[end] > SPACE and text[end] != COMMA:
            end += 1
        h = hashing.siphash(text, begin, end, table.key)
        slot = slot_of(data, begin, end, h, table)
        if table.slot[slot] == 0:
            if fixed:
                label[i] = UNKNOWN
                continue
            if count >= max_names or end - begin > MOST_BYTES:
                return i, count, REFUSED
            low = table.start[count]
            if 2 * (count + 1) > len(table.slot) or low + end - begin > len(table.letters):
                return i, count, TABLE_FULL
            for p in range(end - begin):
                table.letters[low + p] = data[begin + p]
            table.hash[count] = h
            count += 1
            table.start[count] = low + end - begin
            table.slot[slot] = count
        label[i] = table.slot[slot]
    return len(label), count, DONE


@jit
def fill_slots(table: NameTable, count: int) -> None:
    """Insert the first `count` names into a table whose slots are all free; `hash` and `slot` are written."""
    last = len(table.slot) - 1
    for j in range(count):
        table.hash[j] = hashing.siphash(table.letters, table.start[j], table.start[j + 1], table.key)
        i = np.int64(table.hash[j] >> np.uint64(1)) & last
        while table.slot[i] > 0:
            i = (i + 1) & last
        table.slot[i] = j + 1


# -- Python


def name_of(label: float, names: Sequence[T] | None) -> T | None:
    """Return the name of a class, None if it has none; `names` are those of the classes 1, 2, ..."""
    return names[int(label) - 1] if names is not None and 0 < label <= len(names) else None


def text_of(label: float, names: Sequence[str] | None, unnamed: str = "") -> str:
    """Return the text of a class: its name, or `unnamed` if classes have names; otherwise its number."""
    return name_of(label, names) or (unnamed if names is not None else "") or str(int(label))


class Names:
    """Number the names of classes from 1, and remember which classes the learner has seen.

    Names are added only if it is `growing`. The list `names`, in the order of the classes, then grows while data are
    read, ahead of learning, so it is shared and never copied. Only classes up to `highest_seen`, the highest one that
    the learner has seen, are saved and shown, because the others depend on how far reading is ahead.
    """

    def __init__(self, listed: tuple[str, ...] = (), growing: bool = False) -> None:
        self.names = list(listed)
        self.highest_seen = len(listed)
        self._highest_read = 0
        self.growing = growing
        self._table: NameTable | None = None

    @property
    def class_list(self) -> list[str] | None:
        """Return `names`, or None if labels are numbers."""
        return self.names if self.names or self.growing else None

    def named_before(self, label: Float64s) -> Int64s:
        """Return the highest class that has a name before each example that is read, and after the last, int64[n + 1].

        `label` is as in `note_labels`, to which the same examples come later.
        """
        first = max(self._highest_read, self.highest_seen)
        known = np.where(label <= len(self.names), label, np.nan) if self.growing else np.full(len(label), np.nan)
        highest = np.fmax.accumulate(np.concatenate(([first], known))).astype(np.int64)
        self._highest_read = int(highest[-1])
        return highest

    def note_labels(self, label: Float64s) -> Float64s:
        """Note the labels of examples that were learned or predicted, float64[n], NaN for none.

        Return the highest class seen up to and including each example.
        """
        highest_seen = np.fmax.accumulate(np.concatenate(([self.highest_seen], label)))[1:]
        if len(highest_seen):
            self.highest_seen = int(highest_seen[-1])
        return highest_seen

    def add(self, names: list[str]) -> None:
        """Add names in their order, except those that are known."""
        known = set(map(key_of, self.names))
        self.append([name for name in names if key_of(name) not in known])

    def append(self, names: list[str]) -> None:
        if names:
            self.names += names
            self._table = None

    def number(
        self, text: UInt8s, label: Float64s, row: int, max_names: int | None, spellings: Mapping[str, str]
    ) -> int:
        """Number the names of a block, see `number_names`; return the first example with a name that is refused, or n.

        Unknown names become UNKNOWN unless `growing` is set. `max_names` is None for no limit. `spellings` has the
        spelling of each name that differs from its key.
        """
        table = self._table or self._new_table(0)
        count = known = len(self.names)
        while True:
            limit = 1 << 31 if max_names is None else max_names
            row, count, status = number_names(text, label, row, table, count, limit, not self.growing)
            if count > known:
                ends = table.start[known : count + 1] - table.start[known]
                letters = table.letters[table.start[known] : table.start[count]].tobytes()
                keys = [
                    letters[low:high].decode("utf-8", "surrogateescape")
                    for low, high in itertools.pairwise(ends.tolist())
                ]
                self.names += [spellings.get(key, key) for key in keys] if spellings else keys
                known = count
            if status != TABLE_FULL:
                return row
            begin = int(label[row])
            needed = int(np.argmax(text[begin:] <= SPACE))  # bytes of the name at most
            table = self._new_table(needed)

    def _new_table(self, extra_letters: int) -> NameTable:
        """Return a new table with space for at least twice as many names, and for `extra_letters` more letters."""
        count = len(self.names)
        self._table = new_table(self.names, 1 << max(10, (2 * count).bit_length()), extra_letters)
        return self._table


def whole_number(text: str) -> int | None:
    """Return the whole number that a text writes, None if it writes none; of many digits, the first 16 are read."""
    found = NUMBER.fullmatch(text)
    if found is None:
        return None
    digits, decimals, exponent = found[1], found[2] or "", int(found[3] or 0)
    if decimals[exponent:].strip("0"):
        return None
    number = int((digits.lstrip("+-0") + decimals[:exponent].ljust(exponent, "0")).lstrip("0")[:16] or "0")
    return -number if digits[0] == "-" else number


def number_of(text: str) -> int:
    """Return the number of the class that a text writes, such as `3`, `3.0` or `3.000e+00`.

    It is NEGATIVE for a negative number, OTHER_FORM for one with a sign or leading zeros, which would not be printed as
    it is written, and NO_NUMBER for other texts, which can only be names.
    """
    number = whole_number(text)
    if number is None:
        return NO_NUMBER
    if number < 0:
        return NEGATIVE
    return OTHER_FORM if text[0] in "+-" or (text[0] == "0" and text[1:2].isdigit()) else number


def spelled(label: Any) -> str:
    """Return a label as the name of its class is shown: each run of white space is one blank.

    A whole-valued number is written without decimals, so that numbers that are equal have the same name.
    """
    if isinstance(label, str):
        return BLANKS.sub(" ", label).strip(" ")
    if isinstance(label, (float, np.floating)) and label.is_integer():
        return str(int(label))
    return str(label)


def has_whole_float(label: Any) -> bool:
    """Return whether a label, or one in a list of labels, is a float without a fraction."""
    if isinstance(label, list):
        return any(map(has_whole_float, label))
    return isinstance(label, float) and label.is_integer()


@functools.lru_cache(1)
def may_be_rounded(key: str) -> re.Pattern[bytes]:
    """Return a pattern of the key of a label and its value in JSON, a list or a number that a float may make whole."""
    keys = {json.dumps(key, ensure_ascii=ascii_only) for ascii_only in (True, False)}
    spellings = "|".join(map(re.escape, keys)).encode("utf-8", "surrogateescape")
    return re.compile(rb"(?:%b)\s*:\s*(?:\[|-?[0-9.]{17}|-?[0-9.]+[eE])" % spellings)


def exact_json(source: bytes) -> Any:
    """Return the value of JSON in which numbers that a float would make whole are decimals.

    They are no numbers of classes, although 3.00000000000000000001 as a float is 3.
    """
    return json.loads(source.decode("utf-8-sig", "surrogateescape"), parse_float=_exact)


def _exact(text: str) -> float | Decimal:
    value = float(text)
    with contextlib.suppress(InvalidOperation):  # an exponent of 19 digits, which makes 0
        if value.is_integer() and Decimal(text) != value:
            return Decimal(text)
    return value


def key_of(name: str) -> str:
    """Return what makes the spellings of a name the same class: the name with `_` in place of blanks."""
    return spelled(name).replace(" ", "_")


def in_lists(name: str) -> str:
    """Return the name of a label of a program or of a list, which may hold commas, with `;` in their place."""
    return name.replace(",", ";")


def separated(text: str) -> tuple[str, ...]:
    """Return the names in a text in which commas separate them."""
    return tuple(text.split(",")) if text else ()


def fault_of(name: str) -> str:
    """Return why a name cannot be that of a class, or nothing: it is stored and printed as one short line."""
    try:
        size = len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "a name has no halves of surrogate pairs"
    if any(letter < " " and letter != "\t" for letter in set(name)):
        at = next(i for i, letter in enumerate(name) if letter < " " and letter != "\t")
        return f"it has the control character {name[at]!r} at position {at + 1}; remove it"
    if "," in name:
        return NO_COMMA
    if size > MOST_BYTES:
        return f"a name has at most {MOST_BYTES} bytes, and this one has {size}; give a shorter one"
    return "" if spelled(name) else "a name is not empty"


def new_table(names: Sequence[str], capacity: int, extra_letters: int = 0) -> NameTable:
    """Return a table of names; the first one is class 1.

    `capacity` is the maximum number of names, 0 or a power of two, and `extra_letters` is space in bytes for more
    letters.
    """
    text = "".join(names)  # to look at all at once is much faster
    keys = names if BLANKS.search(text) is None else list(map(key_of, names))
    if not text.isascii():
        keys = [key.encode("utf-8", "surrogateescape").decode("latin-1") for key in keys]
    count = len(names)
    end = np.zeros(capacity + 1, np.int64)
    end[1 : count + 1] = np.cumsum(list(map(len, keys)))
    letters = np.zeros(2 * int(end[count]) + extra_letters + 16 * capacity, np.uint8)
    letters[: end[count]] = np.frombuffer("".join(keys).encode("latin-1"), np.uint8)
    key = np.array([secrets.randbits(64) for _ in range(2)], np.uint64)
    table = NameTable(np.zeros(max(1, 2 * capacity), np.int32), np.zeros(capacity, np.uint64), end, letters, key)
    if count:
        fill_slots(table, count)
    return table


def fixed_table(names: Sequence[str]) -> NameTable:
    return new_table(names, 1 << len(names).bit_length() if names else 0)


def hide_unseen(classes: AnyArray, highest_seen: AnyArray | None) -> AnyArray:
    """Return the classes with NAMELESS in place of those above `highest_seen`, in the same shape; None hides none."""
    return classes if highest_seen is None else np.where(classes > highest_seen, NAMELESS, classes)
