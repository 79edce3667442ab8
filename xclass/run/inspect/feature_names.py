"""Names of features, for those who ask: a line of text is walked once more, in plain Python.

The parser keeps hashes only. What `--audit` and `--invert_hash` print is found here, by reading the line an example
was made of again and doing to its names what was done to its features: groups left out, n-grams, interactions.

Source    VW 9.11: `namespace^name`, `namespace^name^word`, `Constant`; grams joined by ^, interactions by *.
Cost      some microseconds per feature, so only where names are asked for.
Differs   from VW: nothing known.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

import numpy as np

from ...data import batch_ops, interactions, namespaces
from ...data.batch import CONSTANT, CONSTANT_GROUP, Batch
from ...text import numbers, parser

WORD = 2**32 - 1
ENDS = b" \t|\r"


class Part(NamedTuple):
    """What a plain feature is called."""

    namespace: bytes
    name: bytes
    word: bytes = b""

    def text(self) -> bytes:
        """Return the name as VW prints it."""
        text = self.name if self.namespace in (b"", b" ") else self.namespace + b"^" + self.name
        return text + b"^" + self.word if self.word else text


Groups: TypeAlias = dict[int, list[tuple[Part, int, np.float32]]]  # the features of an example by group


class Named(NamedTuple):
    """One feature of an example: its name, and its index and value as in a Batch."""

    text: bytes
    hash: int
    value: np.float32


class Namer:
    """Finds the names of an example's features.

    Parameters
    ----------
    parse, feature, cross : the options of parser, features and interactions
    bits : of the index of a feature
    """

    def __init__(
        self, parse: parser.Options, feature: namespaces.Options, cross: interactions.Options, bits: int
    ) -> None:
        import mmh3  # not for --help

        self._murmur = mmh3.hash
        self._mask = (1 << min(bits, 32)) - 1
        self._seed = parse.hash_seed
        self._all = parse.hash == "all"
        self._constant = not parse.noconstant
        self._features = namespaces.Features(feature, constant=self._constant)
        self._crosser = interactions.Crosser(cross)
        self._permuted = cross.permutations
        self.wild = self._crosser.wild  # names depend on the groups of all examples before

    def of(self, batch: Batch, i: int) -> list[Named]:
        """Name the features of example i, those with ignored linear terms too. Call it for examples in their order."""
        groups: Groups = {}
        self._walk(line_of(batch, i), groups)
        for group in list(groups):
            if self._features.dropped[group]:
                del groups[group]
                continue
            plain = list(groups[group])
            for pattern in self._features.patterns[group]:
                for at in range(len(plain) - pattern[-1]):
                    groups[group].append(_gram([plain[at], *(plain[at + d] for d in pattern)]))
        if self._constant:
            groups.setdefault(CONSTANT_GROUP, []).append((Part(b"", b"Constant"), CONSTANT, np.float32(1)))
        found = [Named(part.text(), index, value) for one in groups.values() for part, index, value in one]
        for terms in self._crosser.after(list(groups)):
            if all(term in groups for term in terms):
                self._cross(groups, terms, found)
        return found

    def _cross(self, groups: Groups, terms: bytes, found: list[Named]) -> None:
        def extend(place: int, first: int, hashed: int, value: np.float32, texts: list[bytes]) -> None:
            again = place > 0 and terms[place] == terms[place - 1] and not self._permuted
            one = groups[terms[place]]
            for i in range(first if again else 0, len(one)):
                part, index, x = one[i]
                product = x if place == 0 else value * x
                names = [*texts, part.text()]
                if place == len(terms) - 1:
                    found.append(Named(b"*".join(names), (hashed ^ index) & WORD, product))
                else:
                    extend(place + 1, i, int(interactions.PRIME) * (hashed ^ index) & WORD, product, names)

        with np.errstate(all="ignore"):
            extend(0, 0, 0, np.float32(1), [])

    # the walk, as tokens and VW do it

    def _hash(self, name: bytes, seed: int) -> int:
        if not self._all:
            stripped = name.strip(bytes(range(33)))
            if all(48 <= c <= 57 for c in stripped):
                return (int(stripped or b"0") + seed) & WORD
            name = stripped
        return self._murmur(name, seed & WORD, signed=False)

    def _walk(self, line: bytes, groups: Groups) -> None:
        at = line.find(b"|")
        if at < 0:
            return
        # the kernel that reads numbers looks beyond the end, where a newline stands
        text = np.frombuffer(line + b"\n" + bytes(parser.PADDING), np.uint8)
        end = len(line)
        while at < end and line[at] == 124:  # |
            at += 1
            scale, unnamed = np.float32(1), 0
            if at == end or line[at] in ENDS:
                namespace, group = b" ", 32
                seed = self._murmur(b"", self._seed, signed=False) if self._seed else 0
            elif line[at] == 58:  # :
                return
            else:
                namespace = _name(line, at)
                group = namespace[0]
                seed = self._hash(namespace, self._seed)
                at += len(namespace)
                if at < end and line[at] == 58:
                    scale, at, _ = numbers.read_number(text, at + 1)
                    scale = np.float32(1) if np.isnan(scale) else np.float32(scale)
            while at < end and line[at] in b" \t":
                at += 1
                if at == end or line[at] in ENDS:
                    continue
                name, word, value = _name(line, at), b"", scale
                at += len(name)
                if at < end and line[at] == 58:
                    number, after, _ = numbers.read_number(text, at + 1)
                    if after > at + 1:
                        at = after
                        with np.errstate(all="ignore"):
                            value = np.float32(0) if np.isnan(number) else np.float32(number) * scale
                    else:
                        value = np.float32(1)
                        gap = _begin(rb"[ \t\r\n]*", line, at + 1)
                        gap = b"" if at + 1 + len(gap) == end else gap
                        word = _begin(rb"[^ \t\r\n]*", line, at + 1 + len(gap))
                        at += 1 + len(gap) + len(word)
                if word:
                    index = self._hash(word, self._hash(name, seed)) & self._mask
                elif name:
                    index = self._hash(name, seed) & self._mask
                else:
                    index = (seed + unnamed) & WORD
                    unnamed += 1
                if value != 0:
                    groups.setdefault(group, []).append((Part(namespace, name, word), index, value))


def nameless(batch: Batch) -> list[Named]:
    """The features of the only example of `batch` as VW shows them where it has lost their names."""
    text = [b"Constant" if group == CONSTANT_GROUP else b"" for group in batch.group_name.tolist()]
    found = []
    for name, low, high in zip(text, batch.group_start[:-1].tolist(), batch.group_start[1:].tolist(), strict=True):
        found += [Named(name, int(batch.index[p]), batch.value[p]) for p in range(low, high)]
    return found


def line_of(batch: Batch, i: int) -> bytes:
    """Return the line example i was read from, without its end."""
    low, high = batch_ops.line_of(batch, i)
    return batch.text[low:high].tobytes().removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf")


def _name(line: bytes, at: int) -> bytes:
    return _begin(rb"[^ \t:|\r]*", line, at)


def _begin(pattern: bytes, line: bytes, at: int) -> bytes:
    """What a pattern matches from a place on; it may be nothing."""
    matched = re.match(pattern, line[at:])
    return matched[0] if matched is not None else b""


def _gram(parts: list[tuple[Part, int, np.float32]]) -> tuple[Part, int, np.float32]:
    index = parts[0][1]
    for part in parts[1:]:
        index = (index * int(namespaces.GRAM) + part[1]) & WORD
    return Part(parts[0][0].namespace, b"^".join(part[0].name for part in parts)), index, np.float32(1)
