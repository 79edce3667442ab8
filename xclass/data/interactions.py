"""Generate interactions: features made of one feature from each of several namespaces (`-q ab`, `--cubic abc`).

An interaction of groups n1 .. nk takes one feature of each group; with 32-bit wraparound

    h = 16777619 * index1;  h = 16777619 * (h XOR index2) for each middle one;  index = h XOR indexk

and the value is the product of the values. A group that occurs twice gives combinations with repetition, i.e.
features i <= j, or all pairs with `--permutations`. `:` stands for every group seen so far in the run whose name is
in 32..126.

Source    VW 9.11 (interactions.h, interactions_predict.h); order and names are VW's.
Cost      a few ns per generated feature.
Names     A term is one group of an interaction; a crossed feature, or cross, is a generated one.
Differs   from VW: all features are generated before learning, piece by piece in bounded memory.
Idea      Batches are transformed to batches. An interaction with the path features of the recall tree yields nothing
          here; the tree generates these features and their crosses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ..array_types import Float64s, Int64s, UInt8s
from ..errors import UsageError
from ..kernels import intrinsics
from ..kernels.jit import jit
from ..options.declare import Facts, OptionGroup, SearchRange, no_effect, one_of, option
from . import batch_ops
from .batch import CROSSED_GROUP, PATH_GROUP, Batch, Features, Pool, features_of
from .namespaces import MOST_FEATURES, IdleArguments, check_features, decode, pieces

WILDCARD = ord(":")
MOST_GROUPS, MOST_CROSSED = 6, 60  # namespaces and mean number of features up to which `xclass tune` tries crosses
PIECE = 1 << 21  # maximum features of one batch, 16 MB
PRIME = np.uint64(16777619)


def _pairs(facts: Facts) -> SearchRange | None:
    """Return the pairs of namespaces to try: all of them together, each with itself, and each with each other one."""
    if not facts.groups or len(facts.groups) > MOST_GROUPS or facts.features > MOST_CROSSED:
        return None
    pairs = [a + b for i, a in enumerate(facts.groups) for b in facts.groups[i:]]
    within = tuple(pair for pair in pairs if pair[0] == pair[1])
    return one_of((), *dict.fromkeys([("::",), within, *((pair,) for pair in pairs)]), first=(("::",),))


class InteractionOptions(OptionGroup):
    quadratic: tuple[str, ...] = option(
        "cross two namespaces; `:` is any namespace",
        flags=("-q", "--quadratic"),
        metavar="AB",
        stored=True,
        search=_pairs,
    )
    cubic: tuple[str, ...] = option("cross the features of three namespaces", metavar="ABC", stored=True)
    interactions: tuple[str, ...] = option("cross the features of two or more namespaces", metavar="ABCD", stored=True)
    permutations: bool = option("when a namespace is crossed with itself, add the features of both orders", stored=True)
    leave_duplicate_interactions: bool = option("keep interactions that are given more than once", stored=True)

    RULES = (
        no_effect(
            "permutations leave_duplicate_interactions",
            "no namespaces are crossed; give -q",
            quadratic=None,
            cubic=None,
            interactions=None,
        ),
    )


# -- kernels -------------------------------------------------------------------------------------------------------


@jit
def _find_groups(batch: Features, i: int, begin: Int64s, end: Int64s, row_of: Int64s) -> None:
    """Find the groups of example i: `begin[group]` and `end[group]` are valid if `row_of[group] == i` (int64[256])."""
    for j in range(batch.group_first[i], batch.group_first[i + 1]):
        name = batch.group_name[j]
        begin[name] = batch.group_start[j]
        end[name] = batch.group_start[j + 1]
        row_of[name] = i


@jit
def count_crossed(
    batch: Features, terms: UInt8s, term_start: Int64s, permuted: bool, path: int, counts: Float64s, met: UInt8s,
    crossing: UInt8s,
) -> None:  # fmt: skip
    """Count the features that interactions generate for each example.

    Parameters
    ----------
    terms, term_start : interaction t is `terms[term_start[t]:term_start[t + 1]]`
    permuted : whether a repeated group gives all pairs
    path : number of path features that an example has, 0 where they do not matter
    counts : float64[n], written; float, because the number may exceed int64
    met : uint8[256], set to 1 for each group that an example has
    crossing : uint8[...], set to 1 for each interaction that generates a feature
    """
    begin = np.empty(256, np.int64)
    end = np.empty(256, np.int64)
    row_of = np.full(256, -1, np.int64)
    for i in range(len(counts)):
        _find_groups(batch, i, begin, end, row_of)
        if path > 0:
            begin[PATH_GROUP], end[PATH_GROUP], row_of[PATH_GROUP] = 0, path, i
        counts[i] = 0.0
        for t in range(len(term_start) - 1):
            product = 1.0
            same = 0
            for j in range(term_start[t], term_start[t + 1]):
                name = terms[j]
                if row_of[name] != i:
                    product = 0.0
                    break
                same = same + 1 if j > term_start[t] and terms[j - 1] == name and not permuted else 0
                product *= (end[name] - begin[name] + same) / (same + 1.0)  # combinations with repetition
            counts[i] += np.rint(product)
            if product > 0.0:
                crossing[t] = 1
    for name in range(256):
        if row_of[name] >= 0:
            met[name] = 1


@jit
def cross_rows(
    batch: Features, low: int, terms: UInt8s, term_start: Int64s, permuted: bool, max_terms: int, out: Features
) -> int:
    """Write examples low..low+n-1 of `batch`, with the features that interactions generate, to `out`.

    `max_terms` is the number of terms of the longest interaction; other arguments are as in `count_crossed`. The number
    of groups is returned.
    """
    begin = np.empty(256, np.int64)
    end = np.empty(256, np.int64)
    row_of = np.full(256, -1, np.int64)
    position = np.empty(max_terms, np.int64)
    hashed = np.empty(max_terms, np.uint32)
    product = np.empty(max_terms, np.float32)
    old_index, old_value = intrinsics.pointer(batch.index), intrinsics.pointer(batch.value)
    index, value = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    z = g = 0
    for r in range(len(out.start) - 1):
        i = low + r
        _find_groups(batch, i, begin, end, row_of)
        shift = z - batch.start[i]
        for p in range(batch.start[i], batch.start[i + 1]):
            out.index[z] = batch.index[p]
            out.value[z] = batch.value[p]
            z += 1
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            out.group_name[g] = batch.group_name[j]
            out.group_start[g] = batch.group_start[j] + shift
            g += 1
        crosses_begin = z
        for t in range(len(term_start) - 1):
            t0 = term_start[t]
            last = term_start[t + 1] - t0 - 1
            present = True
            for j in range(t0, t0 + last + 1):
                present = present and row_of[terms[j]] == i
            if not present:
                continue
            depth = 0
            position[0] = begin[terms[t0]]
            while depth >= 0:
                name = terms[t0 + depth]
                if depth == last:
                    p0, h, v = position[depth], hashed[depth - 1], product[depth - 1]
                    size = end[name] - p0
                    for j in range(size):
                        index[z + j] = h ^ old_index[p0 + j]
                        value[z + j] = v * old_value[p0 + j]
                    z += size
                    depth -= 1
                    position[depth] += 1
                    continue
                p = position[depth]
                if p == end[name]:
                    depth -= 1
                    if depth >= 0:
                        position[depth] += 1
                    continue
                if depth == 0:
                    hashed[0] = np.uint32(PRIME * np.uint64(batch.index[p]))
                    product[0] = batch.value[p]
                else:
                    mixed = np.uint64(hashed[depth - 1] ^ batch.index[p])
                    hashed[depth] = np.uint32(PRIME * mixed)
                    product[depth] = product[depth - 1] * batch.value[p]
                following = terms[t0 + depth + 1]
                position[depth + 1] = p if following == name and not permuted else begin[following]
                depth += 1
        if z > crosses_begin:
            out.group_name[g] = np.uint8(CROSSED_GROUP)
            out.group_start[g] = crosses_begin
            g += 1
        out.start[r + 1] = z
        out.group_first[r + 1] = g
    out.group_start[g] = z
    return g


def crossed_counts(batch: Batch) -> Int64s:
    """Return int64[n]: the number of generated features of each example; they form its last group."""
    last = batch.group_first[1:] - 1
    nonempty = batch.group_first[:-1] <= last
    counts = np.zeros(batch.n, np.int64)
    last_groups = last[nonempty]
    sizes = batch.group_start[last_groups + 1] - batch.group_start[last_groups]
    counts[nonempty] = np.where(batch.group_name[last_groups] == CROSSED_GROUP, sizes, 0)
    return counts


# -- which interactions --------------------------------------------------------------------------------------------


def _sorted(interactions: list[bytes]) -> list[bytes]:
    return sorted(interactions, key=lambda terms: (len(terms), terms))


def without_duplicates(interactions: list[bytes], keep_duplicates: bool = False) -> tuple[list[bytes], int, int]:
    """Drop interactions that are equal except for order, and sort those with a repeated group and others.

    Return the interactions, the number of those dropped, and the number of those sorted, which as in VW includes those
    already in order.
    """
    unique: list[bytes] = []
    seen: set[bytes] = set()
    reordered = 0
    for interaction in interactions:
        ordered = bytes(sorted(interaction))
        if keep_duplicates or ordered not in seen:
            seen.add(ordered)
            mixed = 1 < len(set(ordered)) < len(ordered)  # `aab`, not `aaa` or `abc`
            reordered += mixed
            unique.append(ordered if mixed else interaction)
    return unique, len(interactions) - len(unique), reordered


def expand(interactions: list[bytes], groups: list[int], keep_duplicates: bool = False) -> list[bytes]:
    """Replace the wildcards of interactions by all combinations of `groups`, in VW's order."""
    result = []
    for interaction in interactions:
        wildcards = interaction.count(WILDCARD)
        if wildcards == 0:
            result.append(interaction)
            continue
        # VW makes pairs in ascending order and everything else in descending order
        choices = itertools.combinations_with_replacement(sorted(groups, reverse=wildcards != 2), wildcards)
        for chosen in itertools.product(sorted(groups), repeat=wildcards) if keep_duplicates else choices:
            filling = iter(chosen)
            result.append(bytes(next(filling) if name == WILDCARD else name for name in interaction))
    return without_duplicates(_sorted(result), keep_duplicates)[0]


def as_arrays(interactions: list[bytes]) -> tuple[UInt8s, Int64s]:
    """Return `terms` and `term_start` of interactions, see `count_crossed`."""
    terms = np.frombuffer(bytearray(b"".join(interactions) or b"\0"), np.uint8)
    return terms, np.cumsum([0] + [len(interaction) for interaction in interactions], dtype=np.int64)


class Crosser:
    """Add the features of `interactions`, which may have wildcards, to batches of at most `piece` features."""

    most_features = MOST_FEATURES

    def __init__(self, options: InteractionOptions, piece: int = PIECE) -> None:
        self.notes: list[str] = []
        parsed = []
        self.idle = IdleArguments(" and with ")
        for arguments, flag, length, requirement in (
            (options.quadratic, "-q", 2, "two namespaces, such as -q ab or -q 'user|item'"),
            (options.cubic, "--cubic", 3, "three namespaces, such as --cubic abc or --cubic 'user|item|day'"),
            (options.interactions, "--interactions", 0, "two or more namespaces, such as --interactions abcd"),
        ):
            for argument in arguments:
                names = argument.split("|")  # which no name of a namespace contains
                interaction = decode(argument if len(names) == 1 else "".join(name[:1] for name in names), self.notes)
                if len(interaction) < 2 or (length and len(interaction) != length):
                    count = "1 namespace" if len(interaction) == 1 else f"{len(interaction)} namespaces"
                    raise UsageError(f"{flag} {argument} names {count}; it takes {requirement}")
                parsed.append(interaction)
                if WILDCARD not in interaction:
                    self.idle.waiting[f"{flag} {argument} crosses nothing"] = bytes(sorted(interaction))
        self.has_wildcards = any(WILDCARD in interaction for interaction in parsed)
        self.permuted = options.permutations
        self._keep_duplicates = options.leave_duplicate_interactions
        if self.has_wildcards and not self._keep_duplicates:
            self.notes.append("[info] Any duplicate namespace interactions will be removed")
        self.interactions, removed, reordered = without_duplicates(_sorted(parsed), self._keep_duplicates)
        if removed:
            self.notes.append(f"[warning] Duplicate namespace interactions were found. Removed: {removed}.")
        if reordered:
            self.notes.append(
                "[warning] Some interactions contain duplicate characters and their characters order has been "
                f"changed. Interactions affected: {reordered}."
            )
        self._piece = piece
        self._pool = Pool()
        self._seen = np.zeros(256, np.uint8)
        self._set_current([] if self.has_wildcards else self.interactions)

    @property
    def active(self) -> bool:
        return bool(self.interactions)

    def with_group(self, group: int) -> list[bytes]:
        return [interaction for interaction in self.interactions if group in interaction]

    def expanded(self, groups: list[int]) -> list[bytes]:
        """Return the interactions with each wildcard replaced by the groups that it may stand for."""
        return expand(self.interactions, [group for group in groups if 32 <= group <= 126], self._keep_duplicates)

    def interactions_for(self, groups: list[int]) -> list[bytes]:
        """Note the groups of an example; return the interactions that apply to it, with wildcards replaced."""
        new_groups = [group for group in groups if 32 <= group <= 126 and not self._seen[group]]
        if self.has_wildcards and new_groups:
            self._seen[new_groups] = 1
            self._set_current(self.expanded(np.flatnonzero(self._seen).tolist()))
        return self._current

    def check_features(self, counts: Float64s, line: Int64s) -> None:
        """Refuse an example for which interactions make too many features, `counts` (float64[n])."""
        advice = "use fewer or smaller interactions"
        check_features(counts, line, "the interactions make", advice, self.most_features)

    def cross(self, batch: Batch) -> Iterator[Batch]:
        """Yield `batch` with generated features after the constant of each example, in pieces."""
        low = 0
        if self.has_wildcards:
            names, first = np.unique(batch.group_name, return_index=True)
            new = (names >= 32) & (names <= 126) & (self._seen[names] == 0)
            names, rows = names[new], np.searchsorted(batch.group_first, first[new], side="right") - 1
            for row in sorted(set(rows.tolist())):
                if row > low:
                    yield from self._cross(batch_ops.cut(batch, low, row))
                    low = row
                self._seen[names[rows == row]] = 1
                self._set_current(self.expanded(np.flatnonzero(self._seen).tolist()))
        yield from self._cross(batch_ops.cut(batch, low, batch.n) if low else batch)

    def _set_current(self, interactions: list[bytes]) -> None:
        self._current = interactions
        self._terms, self._term_start = as_arrays(interactions)

    def _cross(self, batch: Batch) -> Iterator[Batch]:
        if not self._current or batch.n == 0:
            yield batch
            return
        counts = np.empty(batch.n, np.float64)
        self.idle.examples += batch.n
        crossing = np.zeros(len(self._current), np.uint8)
        old = features_of(batch)
        count_crossed(old, self._terms, self._term_start, self.permuted, 0, counts, self.idle.met, crossing)
        if self.idle.waiting:
            crossed = {bytes(sorted(self._current[t])) for t in np.flatnonzero(crossing).tolist()}
            self.idle.waiting = {given: terms for given, terms in self.idle.waiting.items() if terms not in crossed}
        self.check_features(counts, batch.line)
        for low, high, features in pieces(counts + np.diff(batch.start), self._piece):
            rows = batch_ops.cut(batch, low, high)
            n = high - low
            groups = int(batch.group_first[high] - batch.group_first[low]) + n
            out = batch_ops.with_features(rows, self._pool.batch(n, features, groups, batch.text))
            max_terms = int(np.diff(self._term_start).max())
            g = cross_rows(old, low, self._terms, self._term_start, self.permuted, max_terms, features_of(out))
            yield batch_ops.trimmed(out, n, features, g)
