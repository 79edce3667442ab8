"""Find the names of the features of an example, for `--audit`, `--invert_hash` and explanations.

The parser keeps only hashes. This module parses the line of an example again, in plain Python, and applies the same
steps to the names as to the features: ignored namespaces, n-grams and interactions.

Source    VW 9.11: `namespace^name`, `namespace^name^word`, `Constant`; n-grams are joined by ^, interactions by *.
Cost      Some microseconds per feature, so it is done only if names are needed.
Differs   from VW: no differences are known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..array_types import UInt8s
from ..data import batch_ops, interactions, namespaces, texts
from ..data.array_input import is_missing
from ..data.batch import CONSTANT, CONSTANT_GROUP, UNNAMED_GROUP, Batch
from ..data.feature_names import UINT32, NameHasher, encoded, new_hashing
from ..data.frames import Frame
from ..data.schema import DENSE, NUMBER, TEXT
from ..system.steps import pause
from ..text import numbers, parser, vw_numbers
from ..text.text_format import OtherFormat, TextFormat, WrittenFeature

ENDS = b" \t|\r"


# namespace, name, word after the name, index and value of a feature; a plain tuple of these is nothing that the garbage
# collector looks through, for which it would stop a server that explains a long line
Entry: TypeAlias = tuple[bytes, bytes, bytes, int, np.float32]
Groups: TypeAlias = dict[int, list[Entry]]


class NamedFeature(NamedTuple):
    """Hold one feature of an example: its name, and its index and value as in a Batch."""

    text: bytes
    hash: int
    value: np.float32


class Namer:
    """Find the names of the features of examples, whose index has `bits` bits.

    A `crosser` has seen the namespaces of all examples before; without it, `of` must be called for all of them. Names
    depend on these examples if `has_wildcards` is set. `format` is that of the text of the batches.
    """

    def __init__(
        self, parse: parser.ParserOptions, feature: namespaces.NamespaceOptions, cross: interactions.InteractionOptions,
        bits: int, crosser: interactions.Crosser | None = None,
    ) -> None:  # fmt: skip
        rules = [new_hashing(parse.hash_seed, parse.hash == "all", bits, vw_text=vw_text) for vw_text in (True, False)]
        self._hash, self._hash_word = (NameHasher(rule).hash_bytes for rule in rules)
        self._mask, self._unnamed = int(rules[0].mask), int(rules[0].unnamed)
        self._texts = texts.Texts(parse, rules[1].hash_all, rules[1].mask)
        self._seed, self._dense = parse.hash_seed, parse.dense_namespace()[0]
        self._vw_numbers = parse.number_rules == "vw"
        self._constant = not parse.noconstant
        self._features = namespaces.NamespaceTransformer(feature, constant=self._constant)
        self._crosser = interactions.Crosser(cross) if crosser is None else crosser
        self._permuted = cross.permutations
        self.has_wildcards = self._crosser.has_wildcards
        self.format = TextFormat()

    def of(self, batch: Batch, i: int) -> list[NamedFeature]:
        """Return the named features of example i, including those with ignored linear terms."""
        if isinstance(self.format, OtherFormat):
            return self.of_written(self.format.features(line_of(batch, i)))
        groups: Groups = {}
        self._parse_line(line_of(batch, i), groups)
        return self._of_groups(groups)

    def of_written(self, features: Iterator[WrittenFeature]) -> list[NamedFeature]:
        """Return the named features of an example that is not VW text, as `of` does."""
        groups: Groups = {}
        self._add_features(features, groups)
        return self._of_groups(groups)

    def _of_groups(self, groups: Groups) -> list[NamedFeature]:
        """Return the features of groups after dropping some and adding n-grams, the constant and interactions."""
        for group in list(groups):
            if self._features.dropped[group]:
                del groups[group]
                continue
            plain = list(groups[group])
            for pattern in self._features.patterns[group]:
                for at in range(len(plain) - pattern[-1]):
                    pause()
                    groups[group].append(_ngram([plain[at], *(plain[at + d] for d in pattern)]))
        if self._constant:
            groups.setdefault(CONSTANT_GROUP, []).append((b"", b"Constant", b"", CONSTANT, np.float32(1)))
        named = []
        for entry in itertools.chain.from_iterable(groups.values()):
            pause()
            named.append(NamedFeature(_text(entry), *entry[3:]))
        for terms in self._crosser.interactions_for(list(groups)):
            if all(term in groups for term in terms):
                self._cross(groups, terms, named)
        return named

    def _cross(self, groups: Groups, terms: bytes, crossed: list[NamedFeature]) -> None:
        """Append the interactions of the groups `terms` to `crossed`, in VW's order."""

        def extend(place: int, first: int, hashed: int, value: np.float32, texts: list[bytes]) -> None:
            same_group = place > 0 and terms[place] == terms[place - 1] and not self._permuted
            group = groups[terms[place]]
            for i in range(first if same_group else 0, len(group)):
                pause()
                index, x = group[i][3:]
                product = x if place == 0 else value * x
                names = [*texts, _text(group[i])]
                if place == len(terms) - 1:
                    crossed.append(NamedFeature(b"*".join(names), (hashed ^ index) & UINT32, product))
                else:
                    extend(place + 1, i, int(interactions.PRIME) * (hashed ^ index) & UINT32, product, names)

        with np.errstate(all="ignore"):
            extend(0, 0, 0, np.float32(1), [])

    # parsing, as in `tokens`

    def _add_features(self, features: Iterator[WrittenFeature], groups: Groups) -> None:
        for name, value, namespace, word, is_index, is_text in features:
            pause()
            if value != 0:
                seed = self._hash_word(namespace, self._seed) if namespace else self._unnamed
                if is_text:
                    self._add_text(name, namespace, seed, groups)
                    continue
                index = (self._hash if is_index else self._hash_word)(name, seed)
                if word is not None:
                    index = self._hash_word(word, index)
                group = namespace[0] if namespace else UNNAMED_GROUP
                groups.setdefault(group, []).append((namespace, name, word or b"", index & self._mask, value))

    def _add_text(self, text: bytes, namespace: bytes, seed: int, groups: Groups) -> None:
        one, group = np.float32(1), namespace[0] if namespace else UNNAMED_GROUP
        for name, *others in texts.named(text, self._texts.rules(np.frombuffer(text, np.uint8))):
            pause()
            found = namespace, name, b"", self._hash_word(name, seed) & self._mask, one
            if others[1:] == [b""]:  # characters
                gram = self._hash_word(others[0], self._hash_word(name, seed)) & self._mask
                found = namespace, name, others[0], gram, one
            elif others:
                words = [(namespace, w, b"", self._hash_word(w, seed) & self._mask, one) for w in others]
                found = _ngram([found, *words])
            groups.setdefault(group, []).append(found)

    def _read_number(self, text: UInt8s, begin: int) -> tuple[np.float32, int]:
        """Return the number at `begin` and one past its end, which is `begin` if there is none."""
        vw = self._vw_numbers or bool(numbers.is_blank(text[begin]))
        value, end, _ = vw_numbers.read_by_rules(text, begin, vw)
        return np.float32(value), end

    def _parse_line(self, line: bytes, groups: Groups) -> None:
        at = line.find(b"|")
        if at < 0:
            return
        # the kernel that reads numbers needs a newline and padding after the line
        text = np.frombuffer(line + b"\n" + bytes(parser.PADDING), np.uint8)
        end = len(line)
        while at < end and line[at] == 124:  # |
            at += 1
            scale, nameless = np.float32(1), 0
            if at == end or line[at] in ENDS:
                namespace, group, seed = b" ", UNNAMED_GROUP, self._unnamed
            elif line[at] == 58:  # :
                return
            else:
                namespace = _name(line, at)
                group = namespace[0]
                seed = self._hash(namespace, self._seed)
                at += len(namespace)
                if at < end and line[at] == 58:
                    scale, at = self._read_number(text, at + 1)
                    if np.isinf(scale) and not self._vw_numbers:
                        return
                    scale = np.float32(1) if np.isnan(scale) else scale
            if namespace == self._dense:
                at = (line + b"|").index(b"|", at)
            while at < end and line[at] in b" \t":
                at += 1
                pause()
                if at == end or line[at] in ENDS:
                    continue
                name, word, value = _name(line, at), b"", scale
                at += len(name)
                if at < end and line[at] == 58:
                    begin = at + 1
                    number, at = self._read_number(text, begin)
                    if at > begin:
                        with np.errstate(all="ignore"):
                            value = np.float32(0) if np.isnan(number) else number * scale
                        if not self._vw_numbers and not np.isfinite(value):
                            value = np.float32(0)
                    else:
                        value = np.float32(1)
                        gap = _match_at(rb"[ \t\r\n]*", line, begin)
                        gap = b"" if begin + len(gap) == end else gap
                        word = _match_at(rb"[^ \t\r\n]*", line, begin + len(gap))
                        at = begin + len(gap) + len(word)
                        if begin < at == vw_numbers.read_number(text, begin)[1] and not gap:
                            return
                if word:
                    index = self._hash(word, self._hash(name, seed)) & self._mask
                elif name:
                    index = self._hash(name, seed) & self._mask
                else:
                    index = (seed + nameless) & UINT32
                    nameless += 1
                if value != 0:
                    groups.setdefault(group, []).append((namespace, name, word, index, value))


def nameless(batch: Batch) -> list[NamedFeature]:
    """Return the features of the only example of `batch` with empty names, as VW shows them if the names are lost."""
    text = [b"Constant" if group == CONSTANT_GROUP else b"" for group in batch.group_name.tolist()]
    named = []
    for name, low, high in zip(text, batch.group_start[:-1].tolist(), batch.group_start[1:].tolist(), strict=True):
        named += [NamedFeature(name, int(batch.index[p]), batch.value[p]) for p in range(low, high)]
    return named


def with_columns(features: Sequence[NamedFeature], columns: Sequence[object]) -> list[NamedFeature]:
    """Return features of which feature `j`, column j of a matrix, has the name `columns[j]`."""
    return [
        feature._replace(text=encoded(str(columns[int(feature.text)])))
        if feature.text.isdigit() and int(feature.text) < len(columns)
        else feature
        for feature in features
    ]


def line_of(batch: Batch, i: int) -> bytes:
    """Return the line of text of example i, without its end and without a byte order mark."""
    low, high = batch_ops.line_of(batch, i)
    return batch.text[low:high].tobytes().removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf")


def _name(line: bytes, at: int) -> bytes:
    return _match_at(rb"[^ \t:|\r]*", line, at)


def _match_at(pattern: bytes, line: bytes, at: int) -> bytes:
    matched = re.compile(pattern).match(line, at)  # a slice of the line for each feature would take squared time
    return matched[0] if matched is not None else b""


def _text(entry: Entry) -> bytes:
    """Return the name of a feature as VW prints it."""
    namespace, name, word, *_ = entry
    text = name if namespace in (b"", b" ") else namespace + b"^" + name
    return text + b"^" + word if word else text


def _ngram(parts: list[Entry]) -> Entry:
    index = parts[0][3]
    for part in parts[1:]:
        index = (index * int(namespaces.GRAM_MULTIPLIER) + part[3]) & UINT32
    return parts[0][0], b"^".join(part[1] for part in parts), b"", index, np.float32(1)


# features of Python objects, which `data` converts into batches that have only the hashes of the names


def written_features(given: Any, i: int) -> Iterator[WrittenFeature] | None:
    """Return the features of example i, with their names; None if it is not known how they are named.

    `given` are examples that `Learner.predict_many` accepts and that are not VW text; a sparse matrix is in rows.
    """
    if isinstance(given, Frame):
        return _of_row(given, i)
    if hasattr(given, "indptr"):
        begin, end = int(given.indptr[i]), int(given.indptr[i + 1])
        return _of_columns(given.indices[begin:end], given.data[begin:end])
    if isinstance(given, (list, tuple, np.ndarray)):
        if isinstance(given[i], (list, tuple, np.ndarray)):
            row = np.ma.filled(np.ma.asarray(given[i], np.float32), 0)
            columns = np.flatnonzero(row)
            return _of_columns(columns, row[columns])
        if isinstance(given[i], Mapping):
            return _of_dict(given[i], b"")
        if isinstance(given[i], str):
            return iter([WrittenFeature(encoded(given[i]), np.float32(1), is_text=True)])
    return None


def _of_columns(columns: Any, values: Any) -> Iterator[WrittenFeature]:
    """Yield the features of a row of a matrix; column j is the feature named `j`."""
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        yield WrittenFeature(b"%d" % column, np.float32(value), is_index=True)


def _of_dict(example: Mapping[Any, Any], namespace: bytes) -> Iterator[WrittenFeature]:
    """Yield the features of a dictionary, and those of the dictionaries in it, whose names are namespaces."""
    for name, value in example.items():
        if isinstance(value, Mapping):
            yield from _of_dict(value, encoded(str(name)))
        elif isinstance(value, str):
            yield WrittenFeature(encoded(str(name)), np.float32(1), namespace, encoded(value))
        elif not is_missing(value):
            yield WrittenFeature(encoded(str(name)), np.float32(value), namespace)


def _of_row(frame: Frame, i: int) -> Iterator[WrittenFeature]:
    """Yield the features of a row of a DataFrame: numbers, and the words of columns of text and categories."""
    for j, (name, kind) in enumerate(frame.columns):
        if kind == NUMBER:
            (value,) = frame.numbers(j, i, i + 1).astype(np.float32)
            if not np.isnan(value):
                yield WrittenFeature(encoded(name), value)
        elif kind == DENSE:  # features of learners that do not take the numbers as they are
            for k, value in enumerate(frame.block(j, i, i + 1)[0].tolist()):
                yield WrittenFeature(b"%d" % k, np.float32(value), encoded(name))
        else:
            (text,) = frame.words(j, i, i + 1)
            if text:
                yield WrittenFeature(encoded(text), np.float32(1), encoded(name), is_text=kind == TEXT)
