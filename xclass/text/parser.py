"""Parse VW text into batches of examples: `17 2.5 'tag |w:0.5 cat:2 colour:red dog |x :7`.

    line      := [prefix TAB] [label words] [tag] namespace*
    namespace := '|' [name [':' weight]] { (SPACE | TAB) [feature] }
    feature   := name | name ':' number | name ':' word | ':' number

The label words are the label, the weight and, for real-valued labels, the initial prediction; all are optional.

Idea      `tokens` finds lines, names and numbers, `label_words` reads the part of a line before the first bar, and
          `malformed` describes the problems of a line. Blocks of text are parsed independently, each as if it began
          the file (`Scanner`); line numbers and new class names are filled in when blocks are taken in order
          (`Parser.take`).
Source    The grammar and its treatment of corner cases are those of VW 9.11 (parse_example_text.cc,
          parse_primitives.h).
Differs   from VW in the treatment of malformed lines; `--on_bad_line vw` treats them as VW does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from ..array_types import Float64s, Int64s, UInt8s, UInt32s
from ..data import batch_ops, class_names, feature_names, texts
from ..data.alike_names import MOST_UNKNOWN, AlikeNames, NameWeights
from ..data.batch import NO_DENSE, Batch, Pool
from ..data.class_names import Names, fixed_table, key_of, separated
from ..data.feature_names import NameHasher
from ..errors import DataError, NotClassNumber, UsageError
from ..kernels.direct import DirectCall
from ..options.declare import option, refused
from ..system.printable import short_repr
from . import label_words, malformed, tokens
from .line_parts import Rules
from .numbers import NEWLINE, SPACE
from .tokens import PADDING

MOST_COLUMNS = 1 << 20  # of a row of numbers
MOST_FOUND = 1 << 14  # columns of the first row, unless their number is given

__all__ = ["NEWLINE", "PADDING", "Parser", "ParserOptions"]


class ParserOptions(texts.TextOptions):
    hash: str = option(
        "which names are hashed: `strings` uses names of digits as numbers (outside VW text only those below 2^32 "
        "without leading zeros) and hashes the others, `all` hashes all names",
        choices=("strings", "all"),
        default="strings",
        stored=True,
    )
    hash_seed: int = option("seed of the hash", default=0, minimum=0, maximum=2**32 - 1, stored=True)
    named_labels: str | None = option(
        "labels are these names instead of numbers, separated by commas, or the lines of a file",
        metavar="A,B,C|@FILE",
        stored=True,
        reads=True,
        files=lambda names, _: [names[1:]] if names and names.startswith("@") else [],
    )
    learn_names: bool = option(
        "labels are names, numbered as they appear. Numbers continue after those of --named_labels,"
        " and the model keeps the names. This is the default if the first three labels are not numbers",
        stored=True,
    )
    dense: tuple[str, ...] = option(
        "namespace of VW text or key of JSON lines with a row of numbers, `NAME` or `NAME:COLUMNS`, or columns of "
        "numbers of a DataFrame, separated by commas; they are learned as they are, not hashed",
        metavar="NAMES",
        stored=True,
        unset_is_left_out=True,
    )
    noconstant: bool = option("do not add the constant feature", stored=True)
    on_bad_line: str = option(
        "what to do at a malformed line: stop, skip the line, or read it as VW does",
        choices=malformed.TREATMENTS,
        default="stop",
    )
    number_rules: str = option(
        "how numbers in VW text are read: correctly rounded, or as VW reads them, rounded after each digit, with "
        "exponents modulo 256, and including inf, nan and hexadecimal numbers",
        choices=("ieee", "vw"),
        default="ieee",
        stored=True,
    )

    RULES = (
        refused(
            "text_ngram",
            "and --ngram both make n-grams of the words of texts; leave one of them out",
            ngram=True,
            text_ngram=lambda n: n != 1,
        ),
        refused(
            "text_chars",
            "makes features of which --ngram would make n-grams; give --text_ngram in place of --ngram",
            ngram=True,
        ),
    )

    def __post_init__(self) -> None:
        texts.range_of(self.text_chars)
        if not all(self.dense_names()):
            raise UsageError(f"--dense {','.join(self.dense)!r}: there is an empty name; give a name, or leave it out")
        known: set[str] = set()
        self.dense_namespace()
        for name in self.label_names():
            key = key_of(name)
            is_short = 0 < 4 * len(key) <= class_names.MOST_BYTES
            if not (is_short and name.isprintable()) and (fault := class_names.fault_of(name)):
                raise UsageError(f"--named_labels lists {short_repr(name)}; {fault}")
            if key in known:
                raise UsageError(f"--named_labels lists {name!r} twice; list every name once")
            known.add(key)

    def dense_names(self) -> tuple[str, ...]:
        """Return the namespaces or columns whose numbers are the dense block."""
        return tuple(name.strip() for names in self.dense for name in names.split(","))

    def dense_namespace(self) -> tuple[bytes, int]:
        """Return the name of the namespace whose features are rows of numbers, and the columns, 0 if not given."""
        name, _, columns = (self.dense_names() or ("",))[0].rpartition(":")
        if not name or not columns.isdecimal():
            return (self.dense_names() or ("",))[0].encode("utf-8", "surrogateescape"), 0
        if not 0 < int(columns[:10]) <= MOST_COLUMNS:
            raise UsageError(f"--dense {name}:{columns}: allowed are 1 to {MOST_COLUMNS} columns")
        return name.encode("utf-8", "surrogateescape"), int(columns)

    def check_dense(self) -> None:
        """Raise UsageError if --dense names several columns, which only a DataFrame has."""
        if len(self.dense_names()) > 1:
            raise UsageError(
                f"--dense {','.join(self.dense)}: only a DataFrame has several columns of numbers with names; give one "
                "name for the rows of a file or an array"
            )

    def label_names(self) -> tuple[str, ...]:
        """Return the names of labels 1, 2, ... that are listed in advance; none if labels are numbers."""
        return separated(self.named_labels or "")


class Scan(NamedTuple):
    """Hold the result of parsing a block as if it began the file."""

    batch: Batch  # arrays with more capacity than is used
    size: tuple[int, int, int]  # numbers of examples, features and groups
    used: int  # bytes up to the end of the last complete line
    lines: int  # number of lines read
    bad: int  # number of malformed places
    skipped: int  # number of lines left out
    stopped: bool  # whether the last line read ends the run
    notes: Int64s  # int64[MAX_MESSAGES + 2, 4], see `tokens.parse_lines`
    label_column: Callable[[int], int] | None = None  # column of an example's label; None if the text holds the line
    left_out: Int64s | None = None  # lines without an example; None for all that are not in the batch
    spellings: Mapping[str, int] = {}  # spelling of each name with a blank or `_` -> first line; none in VW text


class Parser:
    """Parse text into batches, and collect messages about malformed lines.

    Parameters
    ----------
    labels : kind of the labels, as in `ReductionRecord.labels`
    lowest, highest : lowest and highest class allowed; None for every class. Ignored with `--on_bad_line vw`
    range_option : the option that sets the range, for messages: `--oaa 1000`

    Attributes
    ----------
    lines : number of lines read of the current file
    skipped, bad : numbers of lines left out, and of malformed places
    notes : messages that are not yet shown to the user; the caller removes them
    featureless : whether there have been examples, none of which has had a feature
    predicting : whether `report` says that lines without an example have no prediction
    left_out : the place of the first line without an example
    learning : whether to warn of a line that has a tag and no label; a caller that learns sets it
    label_file : the file that has the labels, if it is another one
    width : number of columns of the dense block, 0 before its namespace has occurred; a caller sets that of a model
    """

    learning = False
    label_file = ""

    def __init__(
        self,
        options: ParserOptions,
        bits: int,
        labels: str,
        lowest: int | None = None,
        highest: int | None = None,
        range_option: str = "",
        names: Names | None = None,
    ) -> None:
        self.options = options
        self.names = names or Names(options.label_names(), options.learn_names)
        self.lines = self.skipped = self.bad = 0
        self.notes: list[str] = []
        self.first_messages: list[str] = []
        self.place = "{name}:{line}:{column}"  # with which a message about a malformed line begins
        self.predicting = self.featureless = self._has_features = False
        self.left_out = ""
        self._label_warned = False  # whether a warning about a word that looks like a label was given
        self._weight_noted = False  # whether a note about a weight that may be a second label was given
        self._known = len(self.names.names)  # names before the data, 0 after the first labels were compared with them
        self._spelling_warned = False
        self._alike = AlikeNames()
        self._spellings: dict[str, str] = {}  # key of a name -> its first spelling in these data
        self._weights: NameWeights | None = None  # None before the first block
        self.dense, self.width = options.dense_namespace()
        self._has_rows = bool(self.width)
        self._expects_rows = bool(self.dense)  # until the first examples show whether they have them
        treatment = malformed.TREATMENTS.index(options.on_bad_line)
        any_class = highest is None or treatment == malformed.VW
        low, high = (0, label_words.UNLABELLED) if highest is None else (lowest or 0, highest)
        self._range = f"{low}..{high}" + (f" ({range_option})" if range_option else "")
        hash_all = options.hash == "all"
        mask = np.uint32((1 << min(bits, 32)) - 1)
        self.texts = texts.Texts(options, hash_all, mask)  # how texts are read in other formats than VW text
        hashing = feature_names.new_hashing(options.hash_seed, hash_all, bits, vw_text=True)
        seed = options.hash_seed
        self.rules = Rules(
            multiclass=labels != "simple",
            lists=labels == "multilabel",
            mask=mask,
            hash_all=hash_all,
            hash_seed=hashing.seed,
            unnamed=hashing.unnamed,
            constant=not options.noconstant,
            treatment=treatment,
            vw_numbers=options.number_rules == "vw",
            lowest=0 if any_class else low,
            highest=-1 if any_class else high,
            names=fixed_table(() if options.learn_names else options.label_names()),
            learn_names=options.learn_names,
            dense=self.dense[0] if self.dense else -1,
            dense_seed=np.uint32(NameHasher(hashing).hash_bytes(self.dense, seed)),
        )

    @cached_property
    def _scanner(self) -> Scanner:
        return self.scanner()

    def scanner(self) -> Scanner:
        """Return a new scanner for the blocks of this parser; each thread needs its own."""
        self.options.check_dense()
        return Scanner(self.rules, _letter_hashes(self.options.hash_seed, self.rules.hash_all), lambda: self.width)

    def look_for_rows(self, text: UInt8s, end: int) -> None:
        """Set `width` by the first row of numbers of a block, unless it is known.

        It has to be called for the blocks of a file in order, before a later one is scanned.
        """
        if self.dense and not self.width:
            self.width = self._width_in(text[:end])

    def _width_in(self, text: UInt8s) -> int:
        """Return the number of columns of the first row of numbers in a text, 0 if it has none."""
        pattern = rb"\|%b(?::[^ \t|\n]*)?[ \t]([^|\n]*)" % re.escape(self.dense)
        for row in re.finditer(pattern, text.tobytes()):
            names = [word.partition(b":")[0] for word in row[1].split()]
            numbered = [int(name) + 1 for name in names if name.isdigit() and len(name) < 10]
            width = max(names.count(b""), *numbered, 0)
            if 0 < width <= MOST_FOUND:
                return width
        return 0

    def parse(self, text: UInt8s, end: int, name: str) -> tuple[Batch, DataError | None, int]:
        """Parse the complete lines of `text[:end]`, which PADDING bytes follow and to which the batch refers.

        Return the examples, up to a malformed line that ends the run, the error that ends it, or None, and the number
        of bytes up to the end of the last complete line.
        """
        self.look_for_rows(text, end)
        scan = self._scanner.scan(text, end)
        return *self.take(scan, name), scan.used

    def take(self, scan: Scan, name: str) -> tuple[Batch, DataError | None]:
        """Return the examples of a block, up to a line that ends the run, and the error that ends it, or None.

        Blocks must be taken in their order in the file; they may be parsed in any order.
        """
        n, z, g = scan.size
        batch = batch_ops.trimmed(scan.batch, n, z, g)
        if self.dense and batch.columns and not self._has_rows:
            # other threads may have found the width in a later block; a row in this one may be 0 throughout
            self._has_rows = bool(batch.dense.any()) or self._width_in(scan.batch.text[: scan.used]) > 0
            batch = batch if self._has_rows else batch._replace(dense=NO_DENSE)
            self._has_features |= self._has_rows
        has_features = z > (n if self.rules.constant else 0) or bool(batch.dense.any())
        if self._expects_rows and has_features:
            self._expects_rows = False
            if self.learning and not batch.dense.any() and not self._width_in(scan.batch.text[: scan.used]):
                shown = self.dense.decode("utf-8", "replace")
                raise DataError(
                    f"{name}: --dense {shown!r}: none of the first {n} examples has this namespace or key; name the "
                    "one that has the numbers, or leave the option out"
                )
        self._has_features |= has_features
        self.featureless = not self._has_features and (self.featureless or n > 0)
        if scan.lines > n and not self.left_out:
            left_out = scan.left_out
            if left_out is None:
                left_out = np.setdiff1d(np.arange(1, scan.lines + 1), batch.line)
            if len(left_out):
                self.left_out = f"{name}:{left_out[0] + self.lines}"
        before = self.lines
        if before:
            batch.line[:] += before
            scan.notes[:, 1] += before
        self.lines += scan.lines
        self.skipped += scan.skipped
        self.bad += scan.bad
        full = None
        for spelling, line in scan.spellings.items():
            earlier = self._spellings.setdefault(key_of(spelling), spelling)
            if earlier != spelling and not self._spelling_warned:
                self._spelling_warned = True
                warning = malformed.TWO_SPELLINGS.format(seen=spelling, earlier=earlier)
                self.notes.append(f"{name}:{line + before}: {warning}")
        if self.options.learn_names:
            batch, full = self._number_names(batch, name, scan.label_column)
        if batch.has_lists and self.rules.treatment != malformed.VW:
            batch = batch_ops.with_lists_in_order(batch)
            if scan.label_column is None:
                self._note_weight(batch, scan.batch.text, before, name)
        error = self._take_notes(scan.batch.text, scan.notes, min(scan.bad, malformed.MAX_MESSAGES), scan.stopped, name)
        return batch, full or error

    def _number_names(
        self, batch: Batch, name: str, label_column: Callable[[int], int] | None
    ) -> tuple[Batch, DataError | None]:
        """Replace names by the numbers of their classes, adding new classes.

        A name that is too long or beyond the highest class ends the batch with an error, or its row is removed if bad
        lines are skipped.
        """
        count_before = len(self.names.names)
        if self._weights is None:
            self._weights = NameWeights(count_before)
        positions = None
        label = batch.labels if batch.has_lists else batch.label
        # only in VW text can a number be a part of the name that looks like a weight
        may_be_name = label_column is None and self.names.growing and not batch.has_lists
        if may_be_name and not self._weights.can_skip(batch.weight):
            positions = batch.label.copy()
        written = label.copy() if not self.names.growing else label
        max_classes = self.rules.highest if self.rules.highest >= 0 else None
        keep = np.ones(batch.n, bool)
        at = 0
        while (at := self.names.number(batch.text, label, at, max_classes, self._spellings)) < len(label):
            row = int(np.searchsorted(batch.label_start, at, side="right")) - 1 if batch.has_lists else at
            position = int(label[at])
            if label_column is not None:
                line_start = position - label_column(row) + 1
            else:
                line_start = batch.text[:position].tobytes().rfind(b"\n") + 1
            letters = batch.text[position : position + class_names.MOST_BYTES + 1]
            is_long = bool(((letters > SPACE) & (letters != label_words.COMMA)).all())
            problem = malformed.LONG_NAME if is_long else malformed.TOO_MANY_CLASSES
            note = [problem, int(batch.line[row]), line_start, position]
            message = self._message(batch.text, note, name)
            if self.rules.treatment != malformed.SKIP:
                return batch_ops.cut(batch, 0, row), DataError(f"{message}{malformed.CURE}")
            self.bad += 1
            self.skipped += 1
            if len(self.first_messages) < malformed.MAX_MESSAGES:
                self.first_messages.append(message)
            keep[row] = False
            label[at : batch.label_start[row + 1] if batch.has_lists else at + 1] = np.nan
        if positions is not None:
            self._compare_weights(batch, positions, count_before, name)
        if self._known and self.names.growing:
            self._note_numbers(batch, label, name)
        elif not self.names.growing:
            self._note_unknown(batch, label, written, name)
        if not keep.all():
            batch = batch_ops.pick([(batch, np.flatnonzero(keep))], lines=True)
        return batch, None

    def _compare_weights(self, batch: Batch, positions: Float64s, count_before: int, name: str) -> None:
        """Add a note about the first name that occurs with another weight than before.

        `positions` are those of the names in the text, and `count_before` names were known before this batch.
        """
        assert self._weights is not None  # set by the caller
        row, weight = self._weights.compare(batch.label, batch.weight, count_before, len(self.names.names))
        if row < 0:
            return
        name_start = int(positions[row])
        # a name of hundreds of bytes is not in what `label_words_of` reads
        words = malformed.label_words_of(batch.text, name_start) or [malformed.word_at(batch.text, name_start)]
        message = malformed.DIFFERENT_WEIGHT.format(
            seen=" ".join(words), name=words[0], weight=f"{batch.weight[row]:g}", earlier=f"{weight:g}",
            one_word="_".join(words if len(words) > 1 else [*words, f"{weight:g}"]),
        )  # fmt: skip
        self.notes.append(f"{name}:{int(batch.line[row])}: {message}")

    def _note_numbers(self, batch: Batch, label: Float64s, name: str) -> None:
        """Add a note if the first labels, `label`, are all numbers that become names, and no name before was one."""
        if not (label > 0).any():
            return
        known, names, self._known = self._known, self.names.names, 0

        def are_numbers(given: Sequence[str]) -> set[bool]:
            return {class_names.number_of(word) != class_names.NO_NUMBER for word in given}

        if np.nanmin(label) > known and are_numbers(names[known:]) == {True} and are_numbers(names[:known]) == {False}:
            line = int(batch.line[np.argmax(batch.label > 0)])
            self.notes.append(f"{name}:{line}: {malformed.NEW_NUMBERS.format(seen=names[known], known=names[0])}")

    def _note_unknown(self, batch: Batch, label: Float64s, positions: Float64s, name: str) -> None:
        """Add a note about the first unknown name that looks like that of a class; `positions` are those of names."""
        for at in (
            [] if self._alike.has_warned else np.flatnonzero(label == class_names.UNKNOWN)[:MOST_UNKNOWN].tolist()
        ):
            word = re.split(rb"[\x00-\x20,|]", batch.text[int(positions[at]) :][: class_names.MOST_BYTES].tobytes())[0]
            note = self._alike.unknown(word.decode("utf-8", "surrogateescape"), self.names.names)
            if note:
                row = int(np.searchsorted(batch.label_start, at, side="right")) - 1 if batch.has_lists else at
                self.notes.append(f"{name}:{int(batch.line[row])}: {note}")
                break

    def _note_weight(self, batch: Batch, text: UInt8s, before: int, name: str) -> None:
        """Add a note about the first line whose weight may be meant as a second label, as in `1 5 | words`."""
        weight = batch.weight
        rows = np.flatnonzero((weight > 1) & (weight == np.floor(weight)))
        for row in [] if self._weight_noted else rows[:1].tolist():
            line = int(batch.line[row])
            begin = int(np.flatnonzero(text == NEWLINE)[line - before - 2]) + 1 if line - before > 1 else 0
            words = malformed.label_words_of(text, begin)
            inside = self.rules.learn_names or weight[row] <= self.rules.highest
            if inside and len(words) == 2 and all(word.isdecimal() for word in words):
                self._weight_noted = True
                note = malformed.WEIGHT_OR_LABEL.format(label=words[0], weight=words[1])
                self.notes.append(f"{name}:{line}: {note}")

    def report(self, vw_text: bool = True) -> list[str]:
        """Return the lines for the end of the run: malformed lines, missing predictions, one name for all examples."""
        single = self.names.growing and self._weights is not None and len(self.names.names) == 1
        left_out = [malformed.LEFT_OUT.format(place=self.left_out)] if self.left_out and self.predicting else []
        lines = [*self._report_bad(), *left_out]
        about = malformed.NAME_IN_VW_TEXT if vw_text else ""
        return [*lines, malformed.SINGLE_NAME.format(name=self.names.names[0]) + about] if single else lines

    def take_report(self) -> list[str]:
        """Return the lines of `report` about malformed lines since the last call of this method."""
        lines = self._report_bad()
        self.skipped = self.bad = 0
        self.first_messages.clear()
        return lines

    def _report_bad(self) -> list[str]:
        if not self.bad:
            return []
        if self.skipped:
            summary = "malformed line was skipped" if self.bad == 1 else "malformed lines were skipped"
        else:
            summary = "malformed place was read as VW reads it"
            if self.bad > 1:
                summary = "malformed places were read as VW reads them"
        end = "; the first:" if self.bad > malformed.MAX_MESSAGES else ":"
        return [f"{self.bad} {summary}{end}", *self.first_messages]

    def _take_notes(self, text: UInt8s, notes: Int64s, bad: int, stopped: bool, name: str) -> DataError | None:
        """Turn the notes of `tokens.parse_lines` into messages; return the error that ends the run, or None."""
        unlabelled = self.learning and self.rules.treatment != malformed.VW
        if notes[0, 0] and not self._label_warned and (notes[0, 0] != malformed.TAG_ONLY or unlabelled):
            self._label_warned = True
            problem, line, _, position = notes[0].tolist()
            warning = malformed.WARNINGS[problem].format(seen=malformed.word_at(text, position))
            self.notes.append(f"{name}:{line}: {warning}")
        for note in notes[1 : bad + 1].tolist() if bad else ():
            if len(self.first_messages) < malformed.MAX_MESSAGES:
                self.first_messages.append(self._message(text, note, name))
        if not stopped:
            return None
        cure = malformed.CURE
        if notes[-1, 0] == malformed.SEVERAL_LABELS:  # which always stops a regression
            cure = malformed.CURE_OF_LISTS if self.rules.multiclass else ""
        of_number = notes[-1, 0] in (malformed.NEGATIVE, malformed.OUTSIDE)
        message = self._message(text, notes[-1].tolist(), name)
        cure = "" if message.endswith(malformed.FROM_ONE) else cure  # it is probably one of many
        return (NotClassNumber if of_number else DataError)(message + cure)

    def _message(self, text: UInt8s, note: list[int], name: str) -> str:
        """Return the message about one problem; `note` is its number, line, start of the line and position."""
        problem, line, start, position = note
        word = malformed.name_before if problem == malformed.EMPTY_VALUE else malformed.word_at
        seen = word(text, position)
        if problem in malformed.OF_LABELS and (self.rules.lists or problem == malformed.SEVERAL_LABELS):
            seen = seen.partition(",")[0]
        if problem == malformed.SEVERAL_LABELS and seen in ("", '""'):
            problem = malformed.EMPTY_LIST
        of_name = problem == malformed.CLASS and self.rules.learn_names
        sentence = malformed.sentence_about(malformed.LABEL_NAME if of_name else problem, text, position)
        about = malformed.words_after(text, position)
        sentence = sentence.format(
            seen=seen, range=self._range, column=about, as_text=repr(f"{about}:text"), width=self.width
        )
        if problem == malformed.OUTSIDE and seen.strip("0") in ("", "."):
            lists = malformed.LIST.search(text.tobytes()) is not None
            sentence += f"; {malformed.LEARN_LISTS}" if lists else malformed.FROM_ONE
        if problem in (malformed.CLASS_WORDS, malformed.WEIGHT, malformed.LEADING_ZEROS, malformed.UNKNOWN_NAME):
            words = malformed.label_words_of(text, start)
            named = self.rules.learn_names or len(self.rules.names.hash)
            if len(words) > 1 and named:
                sentence += f"; {malformed.NAME_IS_ONE_WORD.format(one_word='_'.join(words))}"
            if len(words) > 1 and self.rules.lists and (named or all(word[0].isdecimal() for word in words)):
                sentence += f"; {malformed.COMMAS_BETWEEN.format(list=','.join(words))}"
        if self.label_file and problem in malformed.OF_LABELS:
            name = self.label_file
        message = f"{self.place.format(name=name, line=line, column=position - start + 1)}: {sentence}"
        if self.rules.treatment == malformed.VW and problem in malformed.VW_TREATMENT:
            message += f"; {malformed.VW_TREATMENT[problem]}"
        return message


@cache
def _letter_hashes(hash_seed: int, hash_all: bool) -> UInt32s:
    """Return the hash of each name of one byte, as uint32[256]."""
    hasher = NameHasher(feature_names.new_hashing(hash_seed, hash_all, 32, vw_text=True))
    return np.array([hasher.hash_bytes(bytes([i]), hash_seed) for i in range(256)], np.uint32)


class Scanner:
    """Parse blocks of text for a `Parser`, independently of earlier lines; only one thread at a time may use it."""

    def __init__(self, rules: Rules, letter_hashes: UInt32s, width: Callable[[], int]) -> None:
        self._rules, self._letter_hashes, self._width = rules, letter_hashes, width
        self._pool = Pool()  # memory of the batches
        self._positions = np.empty(0, np.int32)
        self._line_of = np.empty(256, np.int64)
        self._parse_lines = DirectCall(tokens, "parse_lines")

    def scan(self, text: UInt8s, end: int) -> Scan:
        """Parse the complete lines of `text[:end]`; `text` is as in `Parser.parse`."""
        if len(self._positions) < end + 64:
            self._positions = np.empty(end + 64, np.int32)
        complete, blanks, bars, lines, returns = tokens.find_delimiters(text, end, self._positions)
        labels = int(np.count_nonzero(text[:end] == label_words.COMMA)) + lines if self._rules.lists else None
        out = self._pool.batch(lines, blanks + lines, bars + lines, text[:end], labels, self._width())
        out.dense[:] = 0
        notes = np.zeros((malformed.MAX_MESSAGES + 2, 4), np.int64)
        if complete == 0:
            return Scan(out, (0, 0, 0), 0, 0, 0, 0, False, notes)
        used = int(self._positions[complete - 1]) + 1
        self._line_of[:] = -1
        rules = self._rules
        n, z, g, line, bad, skipped, scattered, stopped = self._parse_lines(
            text, self._positions, complete, returns, rules, self._letter_hashes, 0, out, notes, self._line_of
        )
        if scattered:
            g = batch_ops.merge_groups(n, rules.constant, out)
        return Scan(out, (n, z, g), used, line, bad, skipped, stopped, notes)
