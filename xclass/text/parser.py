"""VW text to batches of examples: `17 2.5 'tag |w:0.5 cat:2 colour:red dog |x :7`.

    line      := [prefix TAB] [label words] [tag] namespace*
    namespace := '|' [name [':' weight]] { (SPACE | TAB) [feature] }
    feature   := name | name ':' number | name ':' word | ':' number

Idea      tokens finds lines, names and numbers, label_words reads what stands before the first bar, malformed says
          what is wrong with a line.
Source    the grammar and its corners are those of VW 9.11 (parse_example_text.cc, parse_primitives.h).
Differs   from VW in what happens to a malformed line (`--on_bad_line`; `vw` is VW's way).

With these three the only room that knows the text format.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..array_types import Float64s, Int64s, UInt8s, UInt32s
from ..data import batch_ops, hashing
from ..data.batch import Batch, Pool
from ..data.class_names import Names, listed_table
from ..errors import DataError, UsageError
from ..options.declare import option
from . import label_words, tokens
from .malformed import (
    CLASS,
    CLASS_WORDS,
    CURE,
    FULL,
    KEPT,
    NAME,
    NO_NAME,
    ONE_NAME,
    ONE_WORD,
    OTHER_WEIGHT,
    OUTSIDE,
    PADDED,
    SENTENCES,
    SKIP,
    TREATMENTS,
    VW,
    VW_DOES,
    WARNINGS,
    WEIGHT,
    label_words_of,
    word_at,
)
from .name_weights import NameWeights
from .numbers import NEWLINE
from .rules import Rules
from .tokens import PADDING

__all__ = ["NEWLINE", "PADDING", "Options", "Parser"]


@dataclass(frozen=True)
class Options:
    hash: str = option(
        "which names are hashed: `strings` uses names of digits as numbers and hashes the others, `all` hashes all "
        "names",
        choices=("strings", "all"),
        default="strings",
        stored=True,
    )
    hash_seed: int = option(
        "seed of the hash", kind=int, default=0, metavar="N", minimum=0, maximum=2**32 - 1, stored=True
    )
    named_labels: str | None = option(
        "labels are these names instead of numbers, separated by commas, or the lines of a file",
        metavar="A,B,C|@FILE",
        stored=True,
    )
    learn_names: bool = option(
        "labels are names, which are numbered in order of appearance. Numbers continue after those of --named_labels,"
        " and the model keeps the names. This is the default if the first three labels are not numbers",
        kind=bool,
        stored=True,
    )
    noconstant: bool = option("do not add the constant feature", kind=bool, stored=True)
    on_bad_line: str = option(
        "what to do at a malformed line: stop, skip the line, or read it as VW does", choices=TREATMENTS, default="stop"
    )

    def __post_init__(self) -> None:
        known: set[str] = set()
        for name in self.label_names():
            if name in known:
                raise UsageError(f"--named_labels names {name!r} twice; every name is one label")
            known.add(name)

    def label_names(self) -> tuple[str, ...]:
        """The names of labels 1, 2, ...; none where labels are numbers."""
        return tuple(self.named_labels.split(",")) if self.named_labels else ()


class Scan(NamedTuple):
    """A block parsed as if it began the file."""

    batch: Batch  # with more room than is used
    size: tuple[int, int, int]  # examples, features and groups
    used: int  # bytes up to the end of the last whole line
    lines: int  # read
    bad: int  # malformed places
    skipped: int  # lines left out
    stopped: bool  # whether the last line read ends the run
    notes: Int64s  # int64[KEPT + 2, 4], see tokens


class Parser:
    """Turns text into batches, and remembers what was wrong with it.

    Parameters
    ----------
    options : of this room
    bits : of the index of a feature
    multiclass : whether labels are classes, or real numbers
    lowest, highest : classes allowed; None for every class. Not looked at under `--on_bad_line vw`
    because : what sets the range, for the message: `--oaa 1000`
    names : of the classes; None for those of the options

    Attributes
    ----------
    lines, skipped, bad : lines read, lines left out, malformed places met
    notes : messages for the user that nobody took yet
    """

    def __init__(
        self,
        options: Options,
        bits: int,
        multiclass: bool,
        lowest: int | None = None,
        highest: int | None = None,
        because: str = "",
        names: Names | None = None,
    ) -> None:
        self.options = options
        self.names = names or Names(options.label_names(), options.learn_names)
        self.lines = self.skipped = self.bad = 0
        self.notes: list[str] = []
        self.kept: list[str] = []  # the first messages about malformed lines
        self._told_label = False
        self._weights: NameWeights | None = None  # from the first block on
        treatment = TREATMENTS.index(options.on_bad_line)
        free = highest is None or treatment == VW
        low, high = (0, label_words.UNLABELLED) if highest is None else (lowest or 0, highest)
        self._range = f"{low}..{high}" + (f" ({because})" if because else "")
        every = options.hash == "all"
        empty = np.zeros(PADDING, np.uint8)
        seed = np.uint32(options.hash_seed)
        self._rules = Rules(
            multiclass=multiclass,
            mask=np.uint32((1 << min(bits, 32)) - 1),
            hash_all=every,
            hash_seed=seed,
            unnamed=np.uint32(hashing.murmur3(empty, 0, 0, seed) if options.hash_seed else 0),
            constant=not options.noconstant,
            treatment=treatment,
            lowest=0 if free else low,
            highest=-1 if free else high,
            names=listed_table(() if options.learn_names else options.label_names()),
            names_come=options.learn_names,
        )

    @cached_property
    def _letters(self) -> UInt32s:
        """The hash of every name of one byte."""
        names = np.arange(256 + PADDING).astype(np.uint8)
        rules = self._rules
        letters = [hashing.name_hash(names, i, i + 1, rules.hash_seed, rules.hash_all) for i in range(256)]
        return np.array(letters, np.uint32)

    @cached_property
    def _scanner(self) -> Scanner:
        return self.scanner()

    def scanner(self) -> Scanner:
        """What parses blocks for this parser, on a thread of its own if need be."""
        return Scanner(self._rules, self._letters)

    def begin(self) -> None:
        """Start at line 1 again (another pass, another file)."""
        self.lines = 0

    def parse(self, text: UInt8s, end: int, name: str) -> tuple[Batch, DataError | None, int]:
        """Parse the whole lines of `text[:end]`.

        Parameters
        ----------
        text : uint8[end + PADDING or more], writable; kept by the batch
        name : of the file, for messages

        Returns
        -------
        batch : the examples, before the malformed line that ends the run
        error : what ends the run, or None
        used : bytes up to the end of the last whole line
        """
        scan = self._scanner.scan(text, end)
        return *self.take(scan, name), scan.used

    def take(self, scan: Scan, name: str) -> tuple[Batch, DataError | None]:
        """The block's examples, before the malformed line that ends the run, and what ends it, or None.

        Blocks are taken in the order they have in the file, whatever the order in which they were parsed.
        """
        n, z, g = scan.size
        batch = _trimmed(scan.batch, n, z, g)
        batch.line[:] += self.lines
        scan.notes[:, 1] += self.lines
        self.lines += scan.lines
        self.skipped += scan.skipped
        self.bad += scan.bad
        full = None
        if self.options.learn_names:
            batch, full = self._number_names(batch, name)
        error = self._take_notes(scan.batch.text, scan.notes, min(scan.bad, KEPT), scan.stopped, name)
        return batch, full or error

    def _number_names(self, batch: Batch, name: str) -> tuple[Batch, DataError | None]:
        """The batch with numbers of classes as labels, cut where there is a name too many, or without such rows."""
        before = len(self.names.names)
        if self._weights is None:
            self._weights = NameWeights(before)
        place = None if not self.names.growing or self._weights.idle(batch.weight) else batch.label.copy()
        most = self._rules.highest if self._rules.highest >= 0 else None
        kept = np.ones(batch.n, bool)
        row = 0
        while (row := self.names.number(batch.text, batch.label, row, most)) < batch.n:
            where = int(batch.label[row])
            begin = batch.text[:where].tobytes().rfind(b"\n") + 1
            message = self._message(batch.text, [FULL, int(batch.line[row]), begin, where], name)
            if self._rules.treatment != SKIP:
                return batch_ops.cut(batch, 0, row), DataError(f"{message}. {CURE}")
            self.bad += 1
            self.skipped += 1
            if len(self.kept) < KEPT:
                self.kept.append(message)
            kept[row] = False
            batch.label[row] = np.nan
        if place is not None:
            self._compare_weights(batch, place, before, name)
        if not kept.all():
            batch = batch_ops.pick([(batch, np.flatnonzero(kept))], lines=True)
        return batch, None

    def _compare_weights(self, batch: Batch, place: Float64s, before: int, name: str) -> None:
        """Tell the user where a name comes with another weight; `place` : of the names of the batch in its text."""
        assert self._weights is not None  # it was asked before whether it is idle
        row, weight = self._weights.compare(batch.label, batch.weight, before, len(self.names.names))
        if row < 0:
            return
        begin = int(place[row])
        words = label_words_of(batch.text, begin) or [word_at(batch.text, begin)]  # a name of some hundred letters
        message = OTHER_WEIGHT.format(
            seen=" ".join(words), name=words[0], weight=f"{batch.weight[row]:g}", before=f"{weight:g}",
            whole="_".join(words),
        )  # fmt: skip
        self.notes.append(f"{name}:{int(batch.line[row])}: {message}")

    def report(self) -> list[str]:
        """What to tell the user at the end of the run about malformed lines and names that cannot be meant."""
        alone = self.names.growing and self._weights is not None and len(self.names.names) == 1
        return [*self._report_bad(), *([ONE_NAME.format(name=self.names.names[0])] if alone else [])]

    def take_report(self) -> list[str]:
        """Return what `report` says of malformed lines since this was last called."""
        found = self._report_bad()
        self.skipped = self.bad = 0
        self.kept.clear()
        return found

    def _report_bad(self) -> list[str]:
        if not self.bad:
            return []
        what = "malformed line was skipped" if self.skipped else "malformed place was read the way VW does"
        if self.bad > 1:
            what = what.replace("line was", "lines were").replace("place was", "places were")
        return [f"{self.bad} {what}" + ("; the first:" if self.bad > KEPT else ":"), *self.kept]

    def _take_notes(self, text: UInt8s, notes: Int64s, bad: int, stopped: bool, name: str) -> DataError | None:
        if notes[0, 0] and not self._told_label:
            self._told_label = True
            problem, line, _, where = notes[0].tolist()
            self.notes.append(f"{name}:{line}: {WARNINGS[problem].format(seen=word_at(text, where))}")
        for note in notes[1 : bad + 1].tolist():
            if len(self.kept) < KEPT:
                self.kept.append(self._message(text, note, name))
        return DataError(f"{self._message(text, notes[-1].tolist(), name)}. {CURE}") if stopped else None

    def _message(self, text: UInt8s, note: list[int], name: str) -> str:
        problem, line, start, where = note
        seen = word_at(text, where)
        sentence = NO_NAME if problem == CLASS and self._rules.names_come else SENTENCES[problem]
        sentence = sentence.format(seen=seen, range=self._range)
        if problem == OUTSIDE and seen == "0":
            sentence += "; classes are counted from 1"
        if problem in (CLASS_WORDS, WEIGHT, PADDED, NAME) and (self._rules.names_come or len(self._rules.names.hash)):
            words = label_words_of(text, start)
            if len(words) > 1:
                sentence += f"; {ONE_WORD.format(name='_'.join(words))}"
        message = f"{name}:{line}:{where - start + 1}: {sentence}"
        if self._rules.treatment == VW and problem in VW_DOES:
            message += f"; {VW_DOES[problem]}"
        return message


class Scanner:
    """Parses blocks of text for a `Parser`, knowing nothing of the lines before; one thread at a time uses it."""

    def __init__(self, rules: Rules, letters: UInt32s) -> None:
        self._rules, self._letters = rules, letters
        self._pool = Pool()  # memory of the batches
        self._positions = np.empty(0, np.int32)
        self._line_of = np.empty(256, np.int64)

    def scan(self, text: UInt8s, end: int) -> Scan:
        """Parse the whole lines of `text[:end]`; text : as in `Parser.parse`."""
        if len(self._positions) < end + 64:
            self._positions = np.empty(end + 64, np.int32)
        kept, blanks, bars, lines, returns = tokens.find_delimiters(text, end, self._positions)
        out = self._pool.batch(lines, blanks + lines, bars + lines, text[:end])
        notes = np.zeros((KEPT + 2, 4), np.int64)
        if kept == 0:
            return Scan(out, (0, 0, 0), 0, 0, 0, 0, False, notes)
        used = int(self._positions[kept - 1]) + 1
        self._line_of[:] = -1
        rules = self._rules
        n, z, g, line, bad, skipped, unmerged, stopped = tokens.parse_lines(
            text, self._positions, kept, returns, rules, self._letters, 0, out, notes, self._line_of
        )
        if unmerged > 0:
            index, value = np.empty(unmerged, np.uint32), np.empty(unmerged, np.float32)
            g = tokens.merge_groups(n, rules.constant, out, index, value)
        return Scan(out, (n, z, g), used, line, bad, skipped, stopped, notes)


def _trimmed(out: Batch, n: int, z: int, g: int) -> Batch:
    """The first n examples."""
    return Batch(
        start=out.start[: n + 1],
        index=out.index[:z],
        value=out.value[:z],
        label=out.label[:n],
        weight=out.weight[:n],
        initial=out.initial[:n],
        group_first=out.group_first[: n + 1],
        group_name=out.group_name[:g],
        group_start=out.group_start[: g + 1],
        tag_start=out.tag_start[:n],
        tag_end=out.tag_end[:n],
        line=out.line[:n],
        text=out.text,
    )
