"""Make features of texts: fold their case, normalise them, split them into words, and join words to n-grams.

    "Is THIS a test?"  ->  is this a test ?  is^this this^a a^test test^?

Every text goes through `features`, whatever it comes from: columns of CSV and of DataFrames, strings of JSON, lines of
fastText, and texts of a program. VW text does not.

Idea      `characters` writes a copy of the text with replaced characters, which is then split and hashed.
Source    Grams of words are those of VW's `--ngram`; those of characters are those of scikit-learn's `char_wb`, with
          `<` and `>` in place of blanks.
Names     A gram is an n-gram.
Cost      About 5 ns for each byte of ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Int, Int64s, UInt8s, UInt32s
from ..errors import UsageError
from ..kernels import intrinsics
from ..kernels.jit import bare, jit, on_demand
from ..options.declare import OptionGroup, option
from . import characters, feature_names, hashing
from .characters import Characters
from .namespaces import GRAM_MULTIPLIER

SPLITS, CASES, NORMAL_FORMS = ("marks", "words", "spaces"), ("both", "fold", "keep"), ("nfkc", "accents", "keep")
MARKS, WORDS, SPACES = range(3)  # positions in SPLITS
RANGE = re.compile(r"([1-9])-([1-9])")
LETTERS = b"chars"  # name under which the grams of characters are hashed, as `chars:<gra` in VW text
PADDING = 16  # bytes of a copy behind the text, which hashes may read


class TextOptions(OptionGroup):
    text_split: str = option(
        "how texts are split (not VW text): `marks` takes words of letters and digits, and each punctuation mark or "
        "symbol as a word of its own; `words` leaves these out; `spaces` splits at white space only",
        choices=SPLITS,
        default="marks",
        stored=True,
        in_older_models="spaces",
    )
    text_case: str | None = option(
        "case of letters in texts: `fold` makes `it` of `IT`; `both` does, and adds words with capitals as they are "
        "written; `keep` leaves all as they are",
        choices=CASES,
        default_text="keep with --text_split spaces, fold with --ngram, else both",
        stored=True,
    )
    text_unicode: str | None = option(
        "how the characters of texts are normalised: `nfkc` makes one character of those that look alike, `accents` "
        "leaves out accents, too, and `keep` changes nothing",
        choices=NORMAL_FORMS,
        default_text="keep with --text_split spaces, else nfkc",
        stored=True,
    )
    text_ngram: int | None = option(
        "add n-grams of 2 to N neighbouring words of texts",
        default_text="1 with --text_split spaces or --ngram, else 2",
        minimum=1,
        maximum=9,
        stored=True,
    )
    text_chars: str | None = option(
        "add n-grams of A to B characters within each word of a text, between `<` and `>`",
        default_text="none",
        metavar="A-B",
        stored=True,
    )


class TextRules(NamedTuple):
    """Hold what kernels need to know to make features of texts."""

    split: int  # MARKS, WORDS or SPACES
    plain: bool  # whether texts are split at white space and not changed
    both: bool  # whether words are added as they are written
    grams: int  # most words of a gram
    shortest: int  # characters of the shortest gram of characters, 0 for none
    longest: int
    kind: UInt8s  # uint8[m], kind of each character
    read: Characters
    written: Characters  # of words as they are written
    letters: UInt8s  # LETTERS, with padding
    hash_all: bool
    mask: np.uint32


class TextScratch(NamedTuple):
    """Hold the memory for one text at a time."""

    copy: UInt8s  # the text as it is read
    other: UInt8s  # the text as it is written, or a word of it
    starts: Int64s  # where words begin and end, or characters of a word begin


# -- kernels


@bare
def kind_of(text: UInt8s, p: Int, end: Int, kind: UInt8s) -> tuple[int, Int]:
    """Return the number of bytes and the kind of the character at `p`."""
    if text[p] < 128:
        return 1, np.int64(kind[text[p]])
    width = characters.width_at(text, p, end)
    return width, characters.kind_at(text, p, width, kind)


@bare
def next_word(text: UInt8s, p: Int, end: Int, split: int, kind: UInt8s) -> tuple[Int, Int, bool]:
    """Return where the next word from `p` on begins and ends, `end` for none, and whether it consists of letters.

    `text` and `kind` are pointers.
    """
    if split == SPACES:
        while p < end and feature_names.is_space(text[p]):
            p += 1
        first = p
        while p < end and not feature_names.is_space(text[p]):
            p += 1
        return first, p, True
    while p < end:
        width, found = kind_of(text, p, end, kind)
        first = p
        p += width
        if found == characters.LETTER:
            while p < end:
                width, found = kind_of(text, p, end, kind)
                if found != characters.LETTER:
                    break
                p += width
            return first, p, True
        if found == characters.ALONE or (found == characters.MARK and split == MARKS):
            return first, p, False
    return end, end, False


@bare
def hashed(text: UInt8s, begin: Int, end: Int, seed: np.uint32, every: bool) -> np.uint32:
    if hashing.is_short(text, begin, end):
        return hashing.short_at(text, begin, end, seed)
    return hashing.word_at(text, begin, end, seed, every)


@bare
def features(
    text: UInt8s, begin: Int, end: Int, seed: np.uint32, rules: TextRules, work: TextScratch, index: UInt32s, z: int
) -> int:
    """Write the indices of the features of the text `text[begin:end]` to `index` from z on; return where they end.

    `text` and `index` are pointers, `seed` is the hash of the namespace, and `index` has room for `most_features`.
    First come the words, then grams of two words, of three and so on, then words as they are written, then grams of
    characters. Seven bytes beyond `end` are read and must exist.
    """
    if rules.plain:
        return feature_names.hash_words(text, begin, end, seed, rules.hash_all, rules.mask, index, z)
    copy, kind = intrinsics.pointer(work.copy), intrinsics.pointer(rules.kind)
    size, ascii = characters.normalise(text, begin, end, rules.read, copy)
    starts = intrinsics.pointer(work.starts)
    first, differ = z, 0
    low, high, _ = next_word(copy, 0, size, rules.split, kind)
    while low < high:
        index[z] = np.uint32(hashed(copy, low, high, seed, rules.hash_all) & rules.mask)
        z += 1
        if ascii and rules.both:
            p = low
            while p < high and copy[p] == text[begin + p]:
                p += 1
            if p < high:
                starts[differ], starts[differ + 1] = begin + low, begin + high
                differ += 2
        low, high, _ = next_word(copy, high, size, rules.split, kind)
    last = z
    for n in range(2, rules.grams + 1):
        for p in range(first, last - n + 1):
            h = np.uint64(index[p])
            for q in range(p + 1, p + n):
                h = h * GRAM_MULTIPLIER + np.uint64(index[q])
            index[z] = np.uint32(h & np.uint64(0xFFFFFFFF))
            z += 1
    for k in range(0, differ, 2):
        index[z] = np.uint32(hashed(text, starts[k], starts[k + 1], seed, rules.hash_all) & rules.mask)
        z += 1
    if rules.both and not ascii:
        z = written_words(text, begin, end, size, seed, rules, work, index, z)
    if rules.shortest > 0:
        z = character_grams(copy, size, seed, rules, work, index, z)
    return z


@on_demand
def written_words(
    text: UInt8s,
    begin: Int,
    end: Int,
    size: int,
    seed: np.uint32,
    rules: TextRules,
    work: TextScratch,
    index: UInt32s,
    z: int,
) -> int:
    """Write the indices of those words that differ from those of the text as it is read, `work.copy[:size]`."""
    copy, other, kind = (
        intrinsics.pointer(work.copy), intrinsics.pointer(work.other), intrinsics.pointer(rules.kind)
    )  # fmt: skip
    whole = characters.normalise(text, begin, end, rules.written, other)[0]
    high_read: Int = 0
    high: Int = 0
    while True:
        low_read, high_read, _ = next_word(copy, high_read, size, rules.split, kind)
        low, high, _ = next_word(other, high, whole, rules.split, kind)
        if low == high or low_read == high_read:
            return z
        same = high - low == high_read - low_read
        for k in range(high - low if same else 0):
            same = same and other[low + k] == copy[low_read + k]
        if not same:
            index[z] = np.uint32(hashed(other, low, high, seed, rules.hash_all) & rules.mask)
            z += 1


@on_demand
def character_grams(
    copy: UInt8s, size: int, seed: np.uint32, rules: TextRules, work: TextScratch, index: UInt32s, z: int
) -> int:
    """Write the indices of the grams of characters of `copy[:size]`, a text as it is read, see `features`."""
    kind, word, starts = (
        intrinsics.pointer(rules.kind), intrinsics.pointer(work.other), intrinsics.pointer(work.starts)
    )  # fmt: skip
    of_grams = hashed(intrinsics.pointer(rules.letters), 0, len(LETTERS), seed, rules.hash_all)
    low, high, letters = next_word(copy, 0, size, rules.split, kind)
    while low < high:
        if letters:
            word[0] = 60  # <
            starts[0] = 0
            m, p = 1, low
            while p < high:
                starts[m] = p - low + 1
                m += 1
                for _ in range(characters.width_at(copy, p, high)):
                    word[p - low + 1] = copy[p]
                    p += 1
            word[high - low + 1] = 62  # >
            starts[m], starts[m + 1] = high - low + 1, high - low + 2
            m += 1
            for n in range(rules.shortest, min(rules.longest, m) + 1):
                for k in range(m - n + 1):
                    h = hashed(word, starts[k], starts[k + n], of_grams, rules.hash_all)
                    index[z] = np.uint32(h & rules.mask)
                    z += 1
        low, high, letters = next_word(copy, high, size, rules.split, kind)
    return z


@jit
def indices(
    text: UInt8s, begin: Int64s, end: Int64s, seed: UInt32s, rules: TextRules, work: TextScratch, most: int
) -> tuple[Int64s, UInt32s]:
    """Return the indices of the features of n texts, and int64[n + 1], where those of each text begin.

    Text i is `text[begin[i]:end[i]]`, and `feature_names.PADDING` bytes follow the last one. `seed`, uint32[n], is the
    hash of the namespace of each, and `most` the number of features that all texts have at most.
    """
    pointer = intrinsics.pointer(text)
    n = len(begin)
    start = np.zeros(n + 1, np.int64)
    index = np.empty(most, np.uint32)
    place = intrinsics.pointer(index)
    z = 0
    for i in range(n):
        z = features(pointer, begin[i], end[i], seed[i], rules, work, place, z)
        start[i + 1] = z
    return start, index[:z].copy()


@jit
def word_ranges(text: UInt8s, size: int, rules: TextRules) -> tuple[Int64s, Int64s, Int64s]:
    """Return where the words of a normalised text, `text[:size]`, begin and end, and whether they have letters."""
    pointer, kind = intrinsics.pointer(text), intrinsics.pointer(rules.kind)
    found = np.empty((3, size + 1), np.int64)
    n = 0
    low, high, letters = next_word(pointer, 0, size, rules.split, kind)
    while low < high:
        found[0, n], found[1, n], found[2, n] = low, high, letters
        n += 1
        low, high, letters = next_word(pointer, high, size, rules.split, kind)
    return found[0, :n], found[1, :n], found[2, :n]


# -- Python


def resolved(options: TextOptions, other_grams: bool = False) -> dict[str, object]:
    """Return the options whose default depends on others, field -> value.

    `other_grams` says whether `--ngram` makes the grams of words.
    """
    as_written = options.text_split == "spaces"
    return {
        "text_case": options.text_case or ("keep" if as_written else "fold" if other_grams else "both"),
        "text_unicode": options.text_unicode or ("keep" if as_written else "nfkc"),
        "text_ngram": options.text_ngram or (1 if as_written or other_grams else 2),
    }


class Texts:
    """Give the rules of texts, for kernels; the tables of Unicode are made for the first text that needs them.

    UsageError is raised if an option is malformed.
    """

    def __init__(self, options: TextOptions, hash_all: bool, mask: np.uint32) -> None:
        chosen = resolved(options)
        case, form, grams = str(chosen["text_case"]), str(chosen["text_unicode"]), int(str(chosen["text_ngram"]))
        shortest, longest = range_of(options.text_chars)
        split = SPLITS.index(options.text_split)
        plain = (split, case, form, grams, shortest) == (SPACES, "keep", "keep", 1, 0)
        self._tables = [("keep" if case == "keep" else "fold", form), ("keep", form)]
        read, written = (characters.tables(*table, 128) for table in self._tables)
        letters = np.frombuffer(bytearray(LETTERS + bytes(PADDING)), np.uint8)
        self._rules = TextRules(
            split, plain, case == "both", grams, shortest, longest, characters.kinds(128), read, written, letters,
            hash_all, mask,
        )  # fmt: skip

    def rules(self, text: UInt8s) -> TextRules:
        """Return the rules for a text, uint8[...]."""
        if len(self._rules.kind) == 128 and not self._rules.plain and (text > 127).any():
            read, written = (characters.tables(*table, characters.BMP) for table in self._tables)
            self._rules = self._rules._replace(kind=characters.kinds(characters.BMP), read=read, written=written)
        return self._rules


def range_of(given: str | None) -> tuple[int, int]:
    """Return the shortest and the longest gram that `--text_chars` names, 0 for none."""
    if not given:
        return 0, 0
    found = RANGE.fullmatch(given)
    if found is None or not 2 <= int(found[1]) <= int(found[2]):
        raise UsageError(
            f"--text_chars {given!r}: give the numbers of characters of the shortest and the longest gram, from 2 to "
            "9, as in 3-5"
        )
    return int(found[1]), int(found[2])


def work_for(rules: TextRules, size: int) -> TextScratch:
    """Return memory for texts of at most so many bytes."""
    room = 0 if rules.plain else 2 * size + PADDING
    return TextScratch(np.empty(room, np.uint8), np.empty(room, np.uint8), np.empty(room, np.int64))


def most_features(rules: TextRules, size: int, texts: int) -> int:
    """Return a number of features that so many texts of `size` bytes have at most."""
    if rules.plain:
        return (size + texts) // 2
    return size * (rules.grams + rules.both + 3 * (rules.longest - rules.shortest + 1 if rules.shortest else 0))


def named(text: bytes, rules: TextRules) -> Iterator[tuple[bytes, ...]]:
    """Yield the names of the features of a text in the order of `features`.

    A word is (word,), a gram of words (word, word, ...), and one of characters (LETTERS, gram, b"").
    """
    if rules.plain:
        yield from ((word,) for word in text.split())
        return
    words = _words(text, rules, rules.read)
    yield from ((word,) for word, _ in words)
    for n in range(2, rules.grams + 1):
        for k in range(len(words) - n + 1):
            yield tuple(word for word, _ in words[k : k + n])
    if rules.both:
        as_written = _words(text, rules, rules.written)
        yield from ((own,) for (own, _), (word, _) in zip(as_written, words, strict=False) if own != word)
    for word, has_letters in words if rules.shortest else ():
        for gram in _grams(b"<" + word + b">", rules) if has_letters else ():
            yield LETTERS, gram, b""


def _words(text: bytes, rules: TextRules, by: Characters) -> list[tuple[bytes, bool]]:
    """Return the words of a text as they are hashed, and whether each consists of letters."""
    padded = np.frombuffer(bytearray(text + bytes(PADDING)), np.uint8)
    copy = np.empty(2 * len(text) + PADDING, np.uint8)
    size = characters.copy_of(padded, len(text), by, copy)
    content = copy[:size].tobytes()
    ranges = zip(*(part.tolist() for part in word_ranges(copy, size, rules)), strict=True)
    return [(content[begin:end], bool(letters)) for begin, end, letters in ranges]


def _grams(word: bytes, rules: TextRules) -> Iterator[bytes]:
    characters = word.decode("utf-8", "surrogateescape")
    for n in range(rules.shortest, min(rules.longest, len(characters)) + 1):
        for k in range(len(characters) - n + 1):
            yield characters[k : k + n].encode("utf-8", "surrogateescape")


def part_indices(given: Sequence[str], seed: int, texts: Texts) -> tuple[Int64s, UInt32s]:
    """Return the indices of the features of texts of a program, see `indices`."""
    encoded = [feature_names.encoded(text) for text in given]
    end = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    begin = end - np.array([len(text) for text in encoded], np.int64)
    letters = np.frombuffer(b"".join([*encoded, bytes(feature_names.PADDING)]), np.uint8)
    rules = texts.rules(letters)
    most = most_features(rules, len(letters) - feature_names.PADDING, len(given))
    work = work_for(rules, max(map(len, encoded), default=0))
    return indices(letters, begin, end, np.full(len(given), seed, np.uint32), rules, work, most)
