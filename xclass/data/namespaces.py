r"""Drop or add features by namespace: `--ignore`, `--keep`, `--ignore_linear`, `--ngram`, `--skips`.

A namespace is identified by the first byte of its name, its group. The order is VW's: groups are dropped, n-grams
are added after the features of their group, then come the constant and the interactions. The n-gram of the features
i < j < ... of a group has the value 1, whatever their values are, and with 32-bit wraparound

    index = ((index_i * 27942141) + index_j) * 27942141 + ...

With skips, the parts of a gram may have gaps of at most that many features in total. A group whose linear terms are
ignored still takes part in interactions, and its features are counted.

Source    VW 9.11 (kskip_ngram_transformer.cc, parse_args.cc); order and indices are VW's.
Cost      a few ns per feature; nothing if no option is given.
Names     A gram is an n-gram; its pattern is the list of distances of its parts from its first part.
Differs   from VW: the n of a namespace is checked (VW reads `--ngram foo2` as 0 for f), and a namespace may be written
          `\xHH`. With `--invariant` alone, the size of an update does not depend on ignored linear terms (VW includes
          their squares).
Idea      Batches are transformed to batches, in pieces of bounded size.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

import numpy as np

from ..array_types import Bools, Float64s, Int64s
from ..errors import DataError, UsageError
from ..kernels.jit import jit
from ..options.declare import OptionGroup, no_effect, one_of, option, warned
from ..system import memory
from . import batch_ops
from .batch import CONSTANT_GROUP, UNNAMED_GROUP, Batch, empty

GRAM_MULTIPLIER = np.uint64(27942141)
PIECE = 1 << 23  # maximum features of one batch, 64 MB
MOST_WORDS = 200  # mean number of features up to which `xclass tune` tries n-grams
MOST_PARTS = 1 << 20  # maximum length of all patterns of a group
ENOUGH = 100  # examples after which an argument whose namespaces have not occurred is doubtful
MOST_SHOWN = 20  # namespaces in a message
MOST_FEATURES = 1 << 24  # maximum per example; it can be learned in about a second with any options
FEATURE_BYTES = 64  # upper bound of the memory per feature on its way through a learner
ORDINARY_FEATURES = 1 << 20  # up to this number, free memory is not checked
FIRST_OF_SEVERAL = 0xC0  # from here on, a byte begins a character; those from CONSTANT_GROUP on continue one in UTF-8


class NamespaceOptions(OptionGroup):
    ignore: tuple[str, ...] = option(
        "leave out the namespaces that begin with these letters", metavar="ABC", stored=True
    )
    keep: tuple[str, ...] = option(
        "leave out all namespaces except those that begin with these letters", metavar="ABC", stored=True
    )
    ignore_linear: tuple[str, ...] = option(
        "use the namespaces that begin with these letters for interactions only", metavar="ABC", stored=True
    )
    ngram: tuple[str, ...] = option(
        "add n-grams of 2 to N neighbouring features of every namespace; AN does so for namespace A only",
        metavar="[A]N",
        stored=True,
        search=lambda facts: (
            one_of((), ("2",), ("3",), first=(("2",),), weight=1.5) if facts.features <= MOST_WORDS else None
        ),
    )
    skips: tuple[str, ...] = option(
        "also add n-grams that skip up to N features, of every namespace or of A", metavar="[A]N", stored=True
    )

    RULES = (
        warned("ignore", "--keep leaves out all other namespaces", keep=True),
        no_effect("skips", "it needs --ngram", ngram=None),
    )


# -- kernels -------------------------------------------------------------------------------------------------------


@jit
def count_features(
    batch: Batch, constant: bool, dropped: Bools, first_pattern: Int64s, last_offset: Int64s, counts: Float64s
) -> None:
    """Count the features that each example will have.

    `constant` says whether the last group of each example is the constant, and `dropped` (bool[256]) which groups are
    dropped; `first_pattern` (int64[256, 2]) is the range of the patterns of each group, and `last_offset` the distance
    of the last part of each pattern. `counts` (float64[n]) is written.
    """
    for i in range(len(batch.label)):
        counts[i] = 0.0
        last = batch.group_first[i + 1] - 1
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            size = batch.group_start[j + 1] - batch.group_start[j]
            if constant and j == last:
                counts[i] += size
                continue
            name = batch.group_name[j]
            if dropped[name]:
                continue
            counts[i] += size
            for t in range(first_pattern[name, 0], first_pattern[name, 1]):
                counts[i] += max(0, size - last_offset[t])


@jit
def add_ngrams(
    batch: Batch, low: int, constant: bool, dropped: Bools, first_pattern: Int64s, pattern_start: Int64s,
    pattern: Int64s, last_offset: Int64s, out: Batch,
) -> int:  # fmt: skip
    """Write examples low..low+n-1 of `batch`, without dropped groups and with their grams, to `out`.

    Pattern t is `pattern[pattern_start[t]:pattern_start[t + 1]]`, distances of a gram's parts from its first one; other
    arguments are as in `count_features`. The number of groups is returned.
    """
    z = g = 0
    for r in range(len(out.label)):
        i = low + r
        last = batch.group_first[i + 1] - 1
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            name = batch.group_name[j]
            is_constant = constant and j == last
            if dropped[name] and not is_constant:
                continue
            begin, end = batch.group_start[j], batch.group_start[j + 1]
            out.group_name[g] = name
            out.group_start[g] = z
            g += 1
            for p in range(begin, end):
                out.index[z] = batch.index[p]
                out.value[z] = batch.value[p]
                z += 1
            if is_constant:
                continue
            for t in range(first_pattern[name, 0], first_pattern[name, 1]):
                for p in range(begin, end - last_offset[t]):
                    h = np.uint64(batch.index[p])
                    for q in range(pattern_start[t], pattern_start[t + 1]):
                        h = h * GRAM_MULTIPLIER + np.uint64(batch.index[p + pattern[q]])
                    out.index[z] = np.uint32(h)
                    out.value[z] = np.float32(1)
                    z += 1
        out.start[r + 1] = z
        out.group_first[r + 1] = g
    out.group_start[g] = z
    return g


# -- size of examples ---------------------------------------------------------------------------------------------


def pieces(counts: Float64s, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of examples with at most so many features (float64[n]), and the number of features of each."""
    total = np.cumsum(counts)
    low = 0
    while low < len(total):
        before = total[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(total, before + most, side="right")))
        yield low, high, int(total[high - 1] - before)
        low = high


def check_features(counts: Float64s, line: Int64s, source: str, advice: str, most: int) -> None:
    """Refuse an example that would have more than `most` features or more than memory can hold.

    `counts` and `line`, float64[n] and int64[n], are those of each example. `source` names the source of the features,
    with a verb, as "--ngram makes".
    """
    row = int(counts.argmax())
    if counts[row] <= min(most, ORDINARY_FEATURES):
        return
    free = memory.available()
    if counts[row] > most:
        limit = f"the {most:,} that an example may have{' in a server' if most < MOST_FEATURES else ''}"
    elif free is not None and counts[row] > free // FEATURE_BYTES:
        limit = f"the {free // FEATURE_BYTES:,} that this machine has memory for"
    else:
        return
    raise DataError(
        f"line {line[row]}: {source} {counts[row]:.3g} features of one example, more than {limit}; {advice}"
    )


# -- which namespaces ----------------------------------------------------------------------------------------------


def decode(argument: str, notes: list[str]) -> bytes:
    r"""Return the groups that an argument names, where `\xHH` is a byte; warnings are appended to `notes`."""

    def byte(match: re.Match[bytes]) -> bytes:
        try:
            return bytes([int(match[1], 16)])
        except ValueError:
            digits = match[1].decode("utf-8", "replace")
            notes.append(f"[warning] Possibly malformed hex representation of a namespace: '\\x{digits}'")
            return match[0]

    return re.sub(rb"\\x(..)", byte, argument.encode("utf-8", "surrogateescape"), flags=re.DOTALL)


def gram_patterns(n: int, skips: int) -> Iterator[tuple[int, ...]]:
    """Yield the patterns of grams of n parts with up to `skips` gaps, in VW's order."""
    return itertools.combinations(range(1, n + skips), n - 1)


def _sizes(
    arguments: tuple[str, ...], flag: str, meaning: str, minimum: int, notes: list[str], idle: IdleArguments
) -> tuple[list[int], str]:
    """Return the number given for each of the 256 groups (0 if none), and the last argument."""
    sizes = [0] * 256
    for argument in arguments:
        match = re.fullmatch(rb"([^0-9]?)([0-9]{1,9})", decode(argument, notes), flags=re.DOTALL)
        if match is None or int(match[2]) < minimum:
            raise UsageError(
                f"{flag} {argument!r}: give {meaning} as a number of at least {minimum}, such as {minimum + 1}, "
                f"or the first letter of a namespace and a number, such as a{minimum + 1}"
            )
        for group in match[1] or range(256):
            sizes[group] = int(match[2])
        if match[1]:
            idle.waiting[f"{flag} {argument} has no effect"] = match[1]
    return sizes, arguments[-1] if arguments else ""


class IdleArguments:
    """Report the arguments of options that name namespaces which the data do not have.

    `waiting` maps an argument, and what it is without, to the groups that it names and that have not occurred; `met`,
    uint8[256], is 1 for each group that an example had.
    """

    def __init__(self, joint: str) -> None:
        self._joint = joint
        self.waiting: dict[str, bytes] = {}
        self.met, self.examples, self.told = np.zeros(256, np.uint8), 0, False

    def note(self, batch: Batch) -> None:
        """Note the groups of a batch, for which arguments that name single groups are waiting."""
        self.met[batch.group_name] = 1
        self._note(batch.n)

    def add(self, other: IdleArguments) -> None:
        """Add the groups of examples that another process has noted."""
        self.met |= other.met
        self._note(other.examples)

    def _note(self, examples: int) -> None:
        self.examples += examples
        left = {argument: bytes(g for g in groups if not self.met[g]) for argument, groups in self.waiting.items()}
        self.waiting = {argument: groups for argument, groups in left.items() if groups}

    def messages(self, made_later: int, ended: bool) -> list[str]:
        """Return, once, a message for each argument that is still waiting.

        Arguments that name `made_later`, a group that learners generate, are left out. Unless the data have `ended`,
        fewer than ENOUGH examples give no message.
        """
        if self.told or self.examples < (1 if ended else ENOUGH):
            return []
        self.told = True
        met = [_shown(group) for group in np.flatnonzero(self.met[:CONSTANT_GROUP]).tolist()]
        found = f"those of the data begin with {', '.join(met[:MOST_SHOWN])}" if met else "the data have no features"
        return [
            f"{argument}: no example has features of namespaces that begin with "
            f"{self._joint.join(_shown(group) for group in dict.fromkeys(groups))}; {found}"
            for argument, groups in self.waiting.items()
            if made_later not in groups
        ]


def _shown(group: int) -> str:
    """Return the first character of the names of a group, for a message."""
    return "a blank (no name)" if group == UNNAMED_GROUP else repr(chr(group)) if group < 127 else f"'\\x{group:02x}'"


class NamespaceTransformer:
    """Apply the options about namespaces to batches, in pieces of at most `piece` features.

    `dropped` and `interaction_only`, bool[256], are the groups that are dropped, and those used for interactions only;
    `patterns` has the patterns of the grams of each group, in order.
    """

    most_features = MOST_FEATURES

    def __init__(self, options: NamespaceOptions, constant: bool, piece: int = PIECE) -> None:
        self.notes: list[str] = []
        self.constant = constant
        self._piece = piece
        self.idle = IdleArguments(" or with ")
        self.banner: list[str] = []
        self.vw_banner: list[str] = []
        self.dropped = self._named("--ignore", options.ignore)
        self.interaction_only = self._named("--ignore_linear", options.ignore_linear)
        if options.ignore:
            self.vw_banner.append("ignoring namespaces beginning with:" + _group_list(self.dropped))
        if options.ignore_linear:
            self.banner.append(
                "Namespaces used in interactions only: those that begin with" + _group_list(self.interaction_only)
            )
            self.vw_banner.append(
                "ignoring linear terms for namespaces beginning with:" + _group_list(self.interaction_only)
            )
        if options.keep:  # overrides --ignore, as in VW
            self.dropped = ~self._named("--keep", options.keep)
            self.banner.append("Namespaces used: those that begin with" + _group_list(~self.dropped))
            self.vw_banner.append("using namespaces beginning with:" + _group_list(~self.dropped))
        elif options.ignore:
            self.banner.append("Namespaces left out: those that begin with" + _group_list(self.dropped))
        grams, _ = _sizes(options.ngram, "--ngram", "the longest gram", 1, self.notes, self.idle)
        skips, last_skips = _sizes(
            options.skips, "--skips", "how many features may be left out", 0, self.notes, self.idle
        )
        for argument in options.skips:
            for group in decode(argument, [])[:1]:
                if not chr(group).isdecimal() and grams[group] < 2:
                    self.idle.waiting.pop(f"--skips {argument} has no effect", None)
                    self.notes.append(
                        f"--skips {argument} has no effect: --ngram makes no grams of namespaces that begin with "
                        f"{_shown(group)}; add --ngram {chr(group)}2, or leave the option out"
                    )
        patterns_of_size: dict[tuple[int, int], list[tuple[int, ...]]] = {(0, 0): []}
        for size in set(zip(grams, skips, strict=True)) - set(patterns_of_size):
            patterns_of_size[size] = []
            parts = 0
            for n in range(2, size[0] + 1):
                parts += n * math.comb(n + size[1] - 1, n - 1)
                if parts > MOST_PARTS:
                    raise UsageError(
                        f"--ngram {size[0]} with --skips {last_skips or 0} makes grams of more than {MOST_PARTS} parts "
                        "in all; give a smaller --ngram or --skips"
                    )
                patterns_of_size[size] += gram_patterns(n, size[1])
        if options.ngram:
            skipped = f"; skips: {' '.join(options.skips)}" if options.skips else ""
            self.banner.append(f"N-grams: {' '.join(options.ngram)}{skipped}")
        self.patterns = [patterns_of_size.get(size, []) for size in zip(grams, skips, strict=True)]
        self._make_arrays()

    def _named(self, flag: str, arguments: tuple[str, ...]) -> Bools:
        named = np.zeros(256, bool)
        for argument in arguments:
            groups = decode(argument, self.notes)
            named[list(groups)] = True
            effect = "keeps nothing" if flag == "--keep" else "has no effect"
            if len(groups) > 1:
                effect = "names namespaces by their first characters"
            begins = bytes(group for group in groups if not CONSTANT_GROUP <= group < FIRST_OF_SEVERAL)
            self.idle.waiting[f"{flag} {argument} {effect}"] = begins
        return named

    def _make_arrays(self) -> None:
        ranges: dict[int, tuple[int, int]] = {}  # keyed by identity, because groups share lists
        flat: list[tuple[int, ...]] = []
        self._first_pattern = np.zeros((256, 2), np.int64)
        for group, patterns in enumerate(self.patterns):
            if id(patterns) not in ranges:
                ranges[id(patterns)] = len(flat), len(flat) + len(patterns)
                flat += patterns
            self._first_pattern[group] = ranges[id(patterns)]
        self._pattern_start = np.cumsum([0] + [len(pattern) for pattern in flat], dtype=np.int64)
        self._pattern = np.array([distance for pattern in flat for distance in pattern] or [0], np.int64)
        self._last_offset = np.array([pattern[-1] for pattern in flat] or [0], np.int64)
        self._changes = bool(self.dropped.any() or flat)

    @property
    def active(self) -> bool:
        return self._changes or bool(self.idle.waiting)

    def apply(self, batch: Batch) -> Iterator[Batch]:
        """Yield `batch` without dropped groups and with n-grams, in pieces."""
        if self.idle.waiting:
            self.idle.note(batch)
        if not self._changes or batch.n == 0:
            yield batch
            return
        counts = np.empty(batch.n, np.float64)
        count_features(batch, self.constant, self.dropped, self._first_pattern, self._last_offset, counts)
        check_features(counts, batch.line, "--ngram makes", "use shorter grams or fewer skips", self.most_features)
        for low, high, features in pieces(counts, self._piece):
            rows = batch_ops.cut(batch, low, high)
            out = batch_ops.with_features(rows, empty(rows.n, features, len(rows.group_name), batch.text))
            g = add_ngrams(
                batch, low, self.constant, self.dropped, self._first_pattern, self._pattern_start, self._pattern,
                self._last_offset, out,
            )  # fmt: skip
            yield batch_ops.trimmed(out, rows.n, features, g)

    def linear(self, batch: Batch) -> Batch:
        """Return `batch` without the groups used for interactions only; shown counts still include them."""
        if not np.count_nonzero(self.interaction_only) or not self.interaction_only[batch.group_name].any():
            return batch
        out = batch_ops.with_features(batch, empty(batch.n, len(batch.index), len(batch.group_name), batch.text))
        none = np.zeros(1, np.int64)
        g = add_ngrams(batch, 0, False, self.interaction_only, np.zeros((256, 2), np.int64), none, none, none, out)
        return batch_ops.trimmed(out, batch.n, int(out.start[-1]), g)


def _group_list(groups: Bools) -> str:
    """Return the groups (bool[256]) as VW prints them."""
    return "".join(f" {chr(g)}" if 32 < g < 127 else f" \\x{g:02x}" for g in np.flatnonzero(groups))
