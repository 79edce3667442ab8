"""Oracle of the text reader: parse lines of VW's text format, character by character, into groups of hashed features.

Source   The behaviour of VW 9.11.9's parse_example.cc, parse_primitives.h, hashstring.h and interactions.cc.
Idea     A cursor moves along each line as in VW. Numbers are computed in np.float32 with VW's rounding. Of a malformed
         line, what was read before the error is kept, as in VW after its warning.
Differs  from VW: a namespace whose name begins with byte 128 has the same group as the constant, and VW then processes
         both twice, in slots whose index is multiplied twice; here they are two groups. If the last newline of a file
         is missing, what VW reads there depends on its buffer; here it is a newline.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import mmh3
import numpy as np

F = np.float32
CONSTANT = 11650396
CONSTANT_GROUP = 128
FNV_PRIME = 16777619
UNLABELLED = 0xFFFFFFFF
ENDS_NAME = b" \t|:\r"
WILDCARD = ord(":")


class BadLabel(ValueError):
    """Report a multiclass label at which VW stops."""

    def __init__(self, line_number: int, word: bytes):
        super().__init__(f"line {line_number}: bad label {word!r}")
        self.line_number, self.word = line_number, word


@dataclass
class Example:
    """Hold the contents of one line.

    Attributes
    ----------
    label : None for an unlabelled line
    weight, initial, tag : importance weight, initial prediction, and tag
    groups : [(first byte of the name, [(index, value)])] in the order of their first features; the constant, group 128,
        is the last one. Indices of named features are masked to `bits` bits, others to 32 bits
    line : number of the line, from 1, empty lines included
    """

    label: float | None = None
    weight: float = 1.0
    initial: float = 0.0
    tag: bytes = b""
    groups: list[tuple[int, list[tuple[int, np.float32]]]] = field(default_factory=list)
    line: int = 0

    def features(self) -> list[tuple[int, np.float32]]:
        """Return all features in order, without interactions."""
        return [feature for _, features in self.groups for feature in features]


# -- hashing


def hash_all(name: bytes, seed: int) -> int:
    """Return MurmurHash3_x86_32 of a name, with the lowest 32 bits of the seed."""
    return mmh3.hash(name, seed % (1 << 32), signed=False)


def hash_strings(name: bytes, seed: int) -> int:
    """Return the hash of `--hash strings`: the value plus the seed for names of digits, else `hash_all`.

    Bytes 0..32 are stripped from both ends first; an empty name has the value 0.
    """
    name = name.strip(bytes(range(33)))
    if all(48 <= byte <= 57 for byte in name):
        return (int(name or b"0") + seed) % (1 << 64)
    return hash_all(name, seed)


HASHES = {"strings": hash_strings, "all": hash_all}


# -- numbers


def _pow10() -> dict[int, np.float32]:
    """Return 10**-37 to 10**38 by repeated multiplication and division in float32."""
    table = {0: F(1)}
    for e in range(1, 39):
        table[e] = F(10) * table[e - 1]
    for e in range(-1, -38, -1):
        table[e] = table[e + 1] / F(10)
    return table


POW10 = _pow10()


def pow10(exponent: int) -> np.float32:
    exponent = (exponent + 128) % 256 - 128  # VW stores the exponent in a signed byte
    if exponent > 38:
        return F(np.inf)
    return POW10.get(exponent, F(0))


_STRTOF = re.compile(
    rb"[ \t\n\v\f\r]*(?P<sign>[+-]?)(?:(?P<inf>inf(?:inity)?)|(?P<nan>nan(?:\([0-9a-z_]*\))?)"
    rb"|0x(?P<hex>[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p(?P<two>[+-]?[0-9]+))?"
    rb"|(?P<dec>[0-9]+\.?[0-9]*|\.[0-9]+)(?:e(?P<ten>[+-]?[0-9]+))?)",
    re.IGNORECASE,
)


def nearest_float32(exact: Fraction) -> np.float32:
    """Return the float32 nearest to a fraction of at least 0, ties to even; infinity above the range of float32."""
    if exact == 0:
        return F(0)
    size = exact.numerator.bit_length() - exact.denominator.bit_length()
    if exact < Fraction(2) ** size:
        size -= 1  # now 2^size <= exact < 2^(size + 1)
    unit = Fraction(2) ** max(size - 23, -149)
    value = round(exact / unit) * unit
    return F(np.inf) if value >= Fraction(2) ** 128 else F(float(value))


def strtof(data: bytes, start: int) -> tuple[np.float32, int]:
    """Read a number as C's strtof does; return its value and its number of bytes, 0 if there is no number."""
    match = _STRTOF.match(data, start)
    if not match:
        return F(0), 0
    part = match.groupdict()
    if part["inf"]:
        value = F(np.inf)
    elif part["nan"]:
        value = F(np.nan)
    else:
        base, digits, exponent = (16, part["hex"], part["two"]) if part["hex"] else (10, part["dec"], part["ten"])
        whole, _, rest = digits.partition(b".")
        number = int(whole + rest or b"0", base)
        # limit the exponent: beyond this the result is infinity or 0 anyway, and the exact fraction would be huge
        power = max(min(int(exponent or b"0"), 9999), -9999)
        scale = Fraction(2) ** power if base == 16 else Fraction(10) ** power
        value = nearest_float32(number * scale / Fraction(base) ** len(rest))
    return (-value if part["sign"] == b"-" else value), match.end() - start


def parse_float(data: bytes, start: int, end: int) -> tuple[np.float32, int]:
    """Read a number in data[start:end] as VW's parse_float does; return its value and its number of bytes.

    Leading spaces are skipped. Digits are accumulated in float32 and scaled by one power of ten. If the number does not
    end at `end`, a space, a TAB or a newline, the result is that of strtof. An empty text or spaces give 0.
    """

    def at(place: int) -> int:
        return data[place] if place < len(data) else 10

    p, sign, acc, decimals, exponent = start, F(1), F(0), 0, 0
    if at(p) == 0:
        return F(0), 0
    while at(p) == 32 and p < end:
        p += 1
    if at(p) == ord("-"):
        sign, p = F(-1), p + 1
    with np.errstate(all="ignore"):
        while 48 <= at(p) <= 57 and p < end:
            acc = acc * F(10) + F(at(p)) - F(48)
            p += 1
        if at(p) == ord("."):
            p += 1
            while 48 <= at(p) <= 57 and p < end:
                if decimals < 35:
                    acc = acc * F(10) + F(at(p) - 48)
                    decimals += 1
                p += 1
        if at(p) in b"eE" and p < end:
            p, e_sign = p + 1, 1
            if at(p) == ord("-") and p < end:
                p, e_sign = p + 1, -1
            while 48 <= at(p) <= 57 and p < end:
                exponent = exponent * 10 + at(p) - 48
                p += 1
            exponent *= e_sign
        if at(p) in b" \n\t" or p == end:
            return sign * (acc * pow10(exponent - decimals)), p - start
    return strtof(data, start)


def _float_word(data: bytes, start: int, end: int) -> np.float32:
    """Return the value of a label or weight; text that is not a number gives 0, text after a number is ignored."""
    value, used = parse_float(data, start, end)
    return F(0) if used == 0 or np.isnan(value) else value


_STRTOL = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)")


def _class_word(data: bytes, start: int, line: int, word: bytes) -> int:
    """Return a class, read by strtol, limited to the range of int64 and reduced modulo 2**32.

    Only a space, a zero byte or the end of the data may follow.
    """
    match = _STRTOL.match(data, start)
    value, end = (int(match[1]), match.end()) if match else (0, start)
    if end < len(data) and data[end] not in b" \0":
        raise BadLabel(line, word)
    return max(min(value, (1 << 63) - 1), -(1 << 63)) % (1 << 32)


# -- lines


def lines_of(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield (line number, start, end) of each line, without byte order mark, newline and carriage return before it."""
    start, number = 0, 0
    while start < len(data):
        number += 1
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        first, end = start, stop
        if data[first : first + 3] == b"\xef\xbb\xbf":
            first += 3
        if end > first and data[end - 1] == 13:
            end -= 1
        yield number, first, end
        start = stop + 1


def read(
    data: bytes,
    *,
    multiclass: bool,
    bits: int = 18,
    hash: str = "strings",
    hash_seed: int = 0,
    constant: bool = True,
) -> list[Example]:
    """Return the examples of a text, without empty lines; raise BadLabel at a label at which VW stops reading."""
    examples = []
    for number, start, end in lines_of(data):
        if start == end:
            continue
        example = Example(line=number)
        bar = data.find(b"|", start, end)
        if bar != start:
            _read_label(data, start, end if bar < 0 else bar, example, multiclass)
        if bar >= 0:
            _Features(data, bar, end, HASHES[hash], hash_seed, bits, example).read()
        if constant:
            example.groups.append((CONSTANT_GROUP, [(CONSTANT, F(1))]))
        examples.append(example)
    return examples


def _read_label(data: bytes, start: int, end: int, example: Example, multiclass: bool) -> None:
    """Read the label words and the tag; text before a TAB is ignored, and words are separated by spaces only."""
    tab = data.find(b"\t", start, end)
    start = tab + 1 if tab >= 0 else start
    words = [(start + m.start(), start + m.end()) for m in re.finditer(rb"[^ ]+", data[start:end])]
    if words and (words[-1][1] == end or data[words[-1][0]] == ord("'")):
        tag = data[slice(*words.pop())]
        example.tag = tag[1:] if tag[:1] == b"'" else tag
    if not words:
        return
    if multiclass:
        if len(words) > 2:
            raise BadLabel(example.line, data[words[0][0] : words[-1][1]])
        label = _class_word(data, words[0][0], example.line, data[slice(*words[0])])
        example.label = None if label == UNLABELLED else float(label)
        if len(words) == 2:
            example.weight = max(float(_float_word(data, *words[1])), 0.0)
    elif len(words) <= 3:
        numbers = [float(_float_word(data, *word)) for word in words]
        example.label = None if numbers[0] == float(np.finfo(F).max) else numbers[0]
        example.weight = numbers[1] if len(numbers) > 1 else 1.0
        example.initial = numbers[2] if len(numbers) > 2 else 0.0


class _Features:
    """Parse a line from the first bar on, with a method for each rule of the grammar; `at` is the cursor."""

    def __init__(self, data, start, end, hasher, seed, bits, example):
        self.data, self.at, self.end = data, start, end
        self.hasher, self.seed, self.mask, self.example = hasher, seed, (1 << bits) - 1, example
        self.groups: dict[int, list] = {}

    def peek(self) -> bytes:
        """Return the next byte, b"" at the end of the line."""
        return self.data[self.at : min(self.at + 1, self.end)]

    def ends_feature(self) -> bool:
        return self.peek() in (b"", b" ", b"\t", b"|", b"\r")

    def read(self) -> None:
        while self.peek() == b"|":
            self.at += 1
            if not self.namespace():
                break
        self.example.groups.extend(self.groups.items())

    def namespace(self) -> bool:
        """Read a namespace; return whether another one follows."""
        self.scale, self.anonymous = F(1), 0
        if self.ends_feature():
            self.group = ord(" ")
            self.hash = hash_all(b"", self.seed) if self.seed else 0
        elif self.peek() == b":":
            return False
        else:
            self.group = self.data[self.at]
            self.hash = self.hasher(self.name(), self.seed)
            if self.peek() == b":":
                self.at += 1
                self.scale, used = parse_float(self.data, self.at, self.end)
                self.at += used
                if np.isnan(self.scale):
                    self.scale = F(1)
        while self.peek() in (b" ", b"\t"):
            self.at += 1
            if not self.ends_feature():
                self.feature()
        return self.peek() == b"|"

    def name(self) -> bytes:
        start = self.at
        while self.at < self.end and self.data[self.at] not in ENDS_NAME:
            self.at += 1
        return self.data[start : self.at]

    def feature(self) -> None:
        name, text, value = self.name(), b"", self.scale
        if self.peek() == b":":
            self.at += 1
            number, used = parse_float(self.data, self.at, self.end)
            if used:
                self.at += used
                with np.errstate(all="ignore"):
                    value = F(0) if np.isnan(number) else number
                    value = self.scale * value
            else:
                text, value = self.string_value(), F(1)  # the weight of the namespace does not apply to words
        if text:
            index = self.hasher(text, self.hasher(name, self.hash)) & self.mask
        elif name:
            index = self.hasher(name, self.hash) & self.mask
        else:
            index = (self.hash + self.anonymous) % (1 << 32)
            self.anonymous += 1
        if value != 0:
            self.groups.setdefault(self.group, []).append((index, value))

    def string_value(self) -> bytes:
        """Skip white space, and return the text up to the next white space; it may contain bars and colons."""
        rest = self.data[self.at : self.end]
        skipped = len(rest) - len(rest.lstrip(b" \t\r\n"))
        if skipped == len(rest):
            skipped = 0
        text = re.match(rb"[^ \t\r\n]*", rest[skipped:])[0]
        self.at += skipped + len(text)
        return text


# -- interactions


def unescape(text: str | bytes) -> bytes:
    r"""Return the bytes of an argument that names namespaces, where `\xHH` is one byte."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
    return re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), raw)


def _must_sort(terms: bytes) -> bool:
    """Return whether some but not all of the sorted terms are equal."""
    same = [a == b for a, b in itertools.pairwise(terms)]
    return len(terms) <= 1 or (any(same) and not all(same))


def _tidy(interactions: Iterable[bytes], leave_duplicates: bool) -> list[bytes]:
    """Sort interactions by length and bytes, and drop those that are permutations of earlier ones.

    The terms of an interaction with a repeated group and other groups are sorted, too.
    """
    groups, seen = [], set()
    for terms in sorted(interactions, key=lambda terms: (len(terms), terms)):
        ordered = bytes(sorted(terms))
        if ordered in seen and not leave_duplicates:
            continue
        seen.add(ordered)
        groups.append(ordered if _must_sort(ordered) else terms)
    return groups


def normalise(
    interactions: Iterable[str | bytes], groups: Iterable[int] = (), *, leave_duplicates: bool = False
) -> list[bytes]:
    """Return the interactions in the order and form in which VW evaluates them; each byte is a group.

    `groups` are the groups seen so far in the run. Those in 32..126 replace the wildcard `:`.
    """
    settled = _tidy(map(unescape, interactions), leave_duplicates)
    if not any(WILDCARD in terms for terms in settled):
        return settled
    known = sorted({group for group in groups if 32 <= group <= 126})
    expanded = []
    for terms in settled:
        holes = terms.count(b":")
        for choice in _choices(known, holes, leave_duplicates) if holes else [()]:
            filling = iter(choice)
            expanded.append(bytes(next(filling) if term == WILDCARD else term for term in terms))
    return _tidy(expanded, leave_duplicates) if known else []


def _choices(known: list[int], holes: int, leave_duplicates: bool) -> Iterable[tuple[int, ...]]:
    """Return the combinations of groups that replace the wildcards of an interaction.

    Each combination is in rising order for up to two wildcards, and in falling order for more, as in VW; the order
    changes the indices of the features. With `leave_duplicates`, all orders are returned.
    """
    if leave_duplicates:
        return itertools.product(known, repeat=holes)
    rising = itertools.combinations_with_replacement(known, holes)
    return rising if holes <= 2 else (choice[::-1] for choice in rising)


def interact(
    example: Example, interactions: Iterable[bytes], *, permutations: bool = False
) -> list[tuple[int, np.float32]]:
    """Return (index mod 2**32, value) of the features that interactions generate, in VW's order.

    `interactions` are those that `normalise` returns. Where a group is repeated, features i <= j are combined, and with
    `permutations` all pairs.
    """
    groups = dict(example.groups)
    made = []

    def extend(terms: bytes, place: int, first: int, hashed: int, value: np.float32) -> None:
        features = groups[terms[place]]
        same_as_before = place > 0 and terms[place] == terms[place - 1] and not permutations
        for i in range(first if same_as_before else 0, len(features)):
            index, x = features[i]
            product = x if place == 0 else value * x
            if place == len(terms) - 1:
                made.append(((hashed ^ index) % (1 << 32), product))
            else:
                extend(terms, place + 1, i, (FNV_PRIME * (hashed ^ index)) % (1 << 64), product)

    with np.errstate(all="ignore"):
        for terms in interactions:
            if all(groups.get(term) for term in terms):
                extend(terms, 0, 0, 0, F(1))
    return made


def features_of(
    examples: Iterable[Example],
    interactions: Iterable[str | bytes] = (),
    *,
    permutations: bool = False,
    leave_duplicates: bool = False,
) -> list[list[tuple[int, np.float32]]]:
    """Return the features of each example with interactions; wildcards stand for the groups of the examples so far."""
    interactions = list(interactions)
    seen: set[int] = set()
    rows = []
    for example in examples:
        seen.update(group for group, _ in example.groups)
        settled = normalise(interactions, seen, leave_duplicates=leave_duplicates)
        rows.append(example.features() + interact(example, settled, permutations=permutations))
    return rows
