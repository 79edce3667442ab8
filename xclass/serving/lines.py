"""Answer lines of VW text by a learner, one line for each: parse them, predict or learn, and format the predictions.

The answers are the lines that `-p` writes, and what is learned is what a run learns from a file of the same lines. A
line that cannot be read, or has no bar, is answered by an error. Errors, and blanks in names, are marked by bytes that
no name has; `unmarked` takes the marks off, for clients that do not know them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .. import client
from ..api import configuration, inputs
from ..api.labels import KindOfLabels
from ..api.learner import Learner
from ..array_types import Int64s, UInt8s
from ..data import batch_ops
from ..data.batch import Batch
from ..errors import UsageError, XclassError
from ..options.spelling import FLAG
from ..reductions.core import probabilities
from ..reductions.core.contract import BatchTask
from ..reductions.core.spec import LearnerUse
from ..run import predictions
from ..system.printable import printable
from ..text import malformed, parser
from ..text.numbers import BAR, NEWLINE

NO_BAR = "the line {}; a line is `label | features`, or `| features`"
ERROR, BLANK = client.ERROR.encode(), client.BLANK.encode()  # marks: what errors begin with, and a blank in a name
MOST_FEATURES = 1 << 18  # that n-grams or interactions may make of an example, which others wait for
MOST_LABEL_WORDS = 2  # of a line with a class: it and a weight
PLACE = re.compile("^(batch)?:[0-9]+: ")  # of a line in a batch, which means nothing to the operator


class LineHandler:
    """Answer lines of VW text by a learner.

    Parameters
    ----------
    learner : the learner; nothing else may use it while `handle` runs
    learns : whether labelled lines are learned
    listing : which classes the answers list; None for what the options of the learner say

    Attributes
    ----------
    learns : as given

    Raises
    ------
    UsageError
        If the learner cannot do that.
    """

    def __init__(self, learner: Learner, learns: bool, listing: probabilities.ListingOptions | None = None) -> None:
        config = learner.core.config
        if learns:
            learner.core.check_learns()
            if config.reduction.learns_at_end or learner.core.reduction.awaited:
                raise UsageError(
                    f"{config.reduction.name} with these options needs to see the data before it learns, so a server "
                    "can only predict with it; learn the model from files, and serve it with -t"
                )
            dense, _ = config.parser.dense_namespace()
            if dense and not learner.core.schema.width:
                name = dense.decode(errors="replace")
                raise UsageError(
                    f"--dense {name}: the first row that a client sends would fix the number of columns for all "
                    f"clients; give that number to a new model, as in --dense {name}:4"
                )
        if listing is not None and not config.reduction.probabilities:
            raise UsageError(f"{config.reduction.name} does not estimate the probabilities that the answers would list")
        if listing is not None:
            listing.check(config.reduction.name, config.reduction.class_estimates, config.run.vw_exact)
        if listing is not None and listing.top_k and listing.probabilities and config.reduction.labels == "multiclass":
            raise UsageError("--top_k has no effect, because --probabilities lists all classes; leave one of them out")
        self.learner, self.learns, self._listing = learner, learns, listing
        self._prepare()

    def _prepare(self) -> None:
        """Make the parser and the formatter for the options of the learner."""
        core = self._core = self.learner.core
        core.preparation.limit(MOST_FEATURES)
        self._wanted = None if self._listing is None else LearnerUse(listing_options=self._listing)
        listing = self._listing or core.config.listing_options
        if listing.probabilities and core.config.run.vw_exact:  # VW counts the losses of unlabelled lines, too
            core.progress.lists_scores = core.config.reduction.labels == "multiclass"
        self._needs_no_bar = core.config.run.vw_exact
        kind = predictions.kind_of_predictions(core, listing)
        self._lines = predictions.LineFormatter(kind, core.names.class_list, core.config.run.vw_exact, BLANK)
        config = core.config.with_values({"on_bad_line": "skip"})
        self._parser = configuration.parser_of(config, core.label_range, core.names, self.learns)
        self._parser.notes, self._parser.place = core.notes, "column {column}"
        self._scanner = self._parser.scanner()

    def learns_from(self, text: bytes) -> bool:
        """Return whether one of the lines, each of which ends with a newline, would be learned.

        So do any lines of a new learner, which finds out by them whether labels are names.
        """
        if not self.learns or self.learner.core.is_new:
            return self.learns
        scan = self._scan(text)
        return not np.isnan(scan.batch.label[: scan.size[0]]).all()

    def _scan(self, text: bytes) -> parser.Scan:
        if self.learner.core is not self._core:  # labels have told whether they are names or lists
            self._prepare()
        if not self._needs_no_bar:
            text = _with_bars(text)
        of, padded = self._parser, _padded(text)
        of.lines = 0
        of.width = self.learner.core.schema.width
        of.look_for_rows(padded, len(text))
        return self._scanner.scan(padded, len(text))

    def handle(self, text: bytes, learn: bool) -> tuple[bytes, Int64s]:
        """Return the answers to lines, and where each answer ends.

        Every line of `text` ends with a newline, and so does every answer. Without `learn`, all are only predicted.
        """
        core = self.learner.core
        core.names.growing = learn and self.learner.growing
        core.want(self._wanted)
        answers = self._handle_until_learned(text) if learn and core.is_new else self._handle(text, learn)
        return answers, _ends(answers)

    def _handle_until_learned(self, text: bytes) -> bytes:
        """Answer lines one by one until one is learned: the first label tells whether labels are names or lists."""
        done, begin = [], 0
        while begin < len(text) and self.learner.core.is_new:
            end = text.index(b"\n", begin) + 1
            line = text[begin:end]
            words = malformed.label_words_of(_padded(line), 0)
            if len(words) <= MOST_LABEL_WORDS and (b"|" in line or self._needs_no_bar):  # other lines are malformed
                self.learner.adapt(partial(_kind_of_labels, line))
            done.append(self._handle(line, True))
            begin = end
        done.append(self._handle(text[begin:], True))
        return b"".join(done)

    def _handle(self, text: bytes, learn: bool) -> bytes:
        """Return the answers to lines."""
        scan = self._scan(text)
        batch, _ = self._parser.take(scan, "")
        answers = b"".join(self._execute(batch, learn))
        if batch.n == scan.lines:
            return answers
        good, found = set(batch.line.tolist()), iter(answers.split(b"\n"))
        lines = enumerate(text.split(b"\n")[:-1], 1)
        return b"".join(next(found) + b"\n" if i in good else self._error_of(line) for i, line in lines)

    def _error_of(self, line: bytes) -> bytes:
        """Return the answer to a line that is no example."""
        if b"|" not in line and not self._needs_no_bar:
            return error_line(NO_BAR.format("has no bar" if line.strip() else "is empty"))
        of = self._parser
        of.lines = 0
        of.first_messages.clear()
        of.parse(_padded(line + b"\n"), len(line) + 1, "")
        return error_line(for_clients(next(iter(of.first_messages), "column 1: the line is malformed")))

    def _execute(self, batch: Batch, learn: bool) -> list[bytes]:
        """Predict the examples of a batch, learn from them if `learn`, and return their answers, in pieces."""
        core, answers = self.learner.core, list[bytes]()

        def executed(part: Batch) -> Iterator[BatchTask]:
            return map(core.execute, core.tasks(part, learn, core.clock))

        for task in refused_alone(batch, executed):
            if isinstance(task, XclassError):
                answers.append(error_line(for_clients(str(task))))
            else:
                core.progress.count(task)
                contents = predictions.contents(self._lines.kind, task)
                answers += map(bytes, self._lines.pieces(task.batch, **contents))
        return answers

    def take_notes(self) -> list[str]:
        """Return the warnings of the learner for the log, without places in a batch."""
        return [PLACE.sub("", note) for note in self.learner.core.take_notes()]


def refused_alone(batch: Batch, executed: Callable[[Batch], Iterator[BatchTask]]) -> Iterator[BatchTask | XclassError]:
    """Yield the tasks of a batch that a function has executed, and an error in place of each example that is refused.

    That is one of which crossing namespaces makes too many features; the others are then executed one by one.
    """
    done = 0
    try:
        for task in executed(batch):
            done += task.batch.n
            yield task
    except XclassError:
        for i in range(done, batch.n):
            try:
                yield from executed(batch_ops.cut(batch, i, i + 1))
            except XclassError as error:
                yield error


def _kind_of_labels(line: bytes, lists: bool) -> KindOfLabels:
    return inputs.kind_of_labels(line.decode("utf-8", "surrogateescape"), None, lists)


def for_clients(message: str) -> str:
    """Return a message of a learner for a client; if it names an option, say that the server is started with it."""
    if not any(found[1] for found in FLAG.finditer(message)):
        return message
    told = message.removesuffix(malformed.CORRECT)
    return f"{told}; options are given when the server is started{message[len(told) :]}"


def error_line(message: str) -> bytes:
    """Return the answer to a line that is refused."""
    return ERROR + f"{printable(message)}\n".encode("utf-8", "backslashreplace")


def unmarked(answers: bytes) -> bytes:
    """Return answers as `-p` writes them."""
    return answers.replace(ERROR, ERROR[1:]).replace(BLANK, b" ")


def _with_bars(text: bytes) -> bytes:
    """Return lines, of which those without a bar are left empty."""
    ends = _ends(text)
    bars = np.searchsorted(np.flatnonzero(np.frombuffer(text, np.uint8) == BAR), ends)
    if np.diff(bars, prepend=0).all():  # as nearly always
        return text
    return b"".join(line + b"\n" if b"|" in line else b"\n" for line in text.split(b"\n")[:-1])


def _padded(text: bytes) -> UInt8s:
    """Return the bytes of a text as an array with the padding that the parser needs, which may be written."""
    return np.frombuffer(bytearray(text + bytes(parser.PADDING)), np.uint8)


def _ends(text: bytes) -> Int64s:
    """Return where each line of a text ends."""
    return np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE) + 1
