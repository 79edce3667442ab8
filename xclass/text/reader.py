"""Read files, compressed files and pipes as batches, in constant memory.

    bytes -> blocks that end after a newline -> parser -> Batch, Batch, ...

The blocks of a file are parsed on as many threads as there are processors, and delivered in order. The first blocks are
small, so that the first rows of the progress table appear at once; later blocks are larger. A block grows until it
holds a complete line. From a pipe, a block is parsed as soon as a line has arrived. Each batch owns its block, so that
several batches can be in flight.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import queue
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from io import FileIO, RawIOBase
from typing import Any, Protocol

import numpy as np

from ..array_types import UInt8s
from ..data.batch import Batch, Pool
from ..errors import NO_SUCH_FILE, DataError, UsageError
from ..options.declare import OptionGroup, option
from ..options.files import STDIN
from ..system import streams, thread_limit
from ..system.streams import ByteStream
from . import foreign, malformed, parser, urls
from .text_format import FORMATS, BlockScanner, Chooser, OtherFormat, TextFormat, vw_text

NO_FEATURES = (
    "no example has a feature; a line of VW text is `label | features`, and --format names the format of other data"
)
FIRST_BLOCK, LARGEST_BLOCK = 1 << 16, 1 << 18  # bytes
# blocks of long lines are larger, because the work for each batch counts when it has few examples
BLOCK_LINES, LARGEST_BLOCK_OF_LONG_LINES = 1 << 10, 1 << 20
BESIDE = (".labels.npy", ".labels.txt")  # endings of files with the labels of arrays, in place of .npy
EXAMINED, PIECE = 1 << 20, 1 << 12  # bytes that are decoded: of all blocks that are not ASCII, and of each later one
Block = tuple[UInt8s, int, DataError | None]  # text, end of its last complete line, error that ends the reading


def _data_files(paths: tuple[str, ...] | None, given: Mapping[str, Any]) -> list[str]:
    """Return the files of data: those of patterns, which runs on a cluster read, and standard input without a file."""
    if not paths:
        return [] if "no_stdin" in given else [STDIN]
    return [
        path for pattern in paths if not urls.is_url(pattern)
        for path in (not os.path.exists(pattern) and glob.glob(pattern)) or [pattern]
    ]  # fmt: skip


def labels_beside(path: str) -> list[str]:
    """Return the files beside an array of NumPy that hold its labels if none is given."""
    stem = path.removesuffix(streams.ending_of(path)).removesuffix(".npy")
    return [stem + ending for ending in BESIDE if os.path.isfile(stem + ending)]


def _label_files(path: str | None, given: Mapping[str, Any]) -> list[str]:
    """Return the files with the labels of arrays: the one that is given, or those beside the arrays."""
    if path is not None:
        return [path]
    data = _data_files((*given.get("data", ()), *given.get("train", ())), {"no_stdin": True})
    return [labels for one in data if _is_array(one, given) for labels in labels_beside(one)]


def _is_array(path: str, given: Mapping[str, Any]) -> bool:
    """Return whether a file is read as an array, which its name or its first bytes say; False if it is not known."""
    if path.lower().removesuffix(streams.ending_of(path)).endswith(".npy"):
        return True
    with streams.errors_ignored(), contextlib.ExitStack() as closing:
        return bool(labels_beside(path)) and streams.opened(path, closing).peek().startswith(foreign.ARRAY)
    return False


class ReaderOptions(OptionGroup):
    data: tuple[str, ...] = option(
        "file of examples, plain, .gz, .bz2, .xz or .zst",
        flags=("-d", "--data"),
        default_text="standard input",
        reads=True,
        files=_data_files,
    )
    format: str = option(
        "format of the data: VW text, lines of fastText, LIBSVM, files of the extreme classification repository, CSV "
        "or TSV, JSON lines, or arrays of NumPy; `auto` chooses by the first lines and the name of the first file",
        choices=FORMATS,
        default="auto",
    )
    label_column: str | None = option(
        "column of the label in CSV files, by its name or its number from 1, 0 if there is none; in JSON lines the key",
        default_text="that of the model, else `label`, else the first column",
        metavar="NAME",
    )
    label_columns: tuple[str, ...] = option(
        "columns of CSV files or keys of JSON lines that hold 1 for examples with the label of this name and 0 for "
        "others, separated by commas",
        default_text="those of the model",
        metavar="NAMES",
    )
    label_separator: str | None = option(
        "text between the labels of a list in a cell of a CSV file or a text of JSON lines, such as `;`",
        default_text="that of the model, else a comma",
        metavar="TEXT",
    )
    label_file: str | None = option(
        "labels of the rows of an array, ROWS.npy: an array of them, .npy, or text with one in each line",
        default_text="ROWS.labels.npy or ROWS.labels.txt, if there is one",
        reads=True,
        files=_label_files,
    )
    columns: tuple[str, ...] = option(
        "columns of CSV files or keys of JSON lines that are features, separated by commas; others are left out",
        default_text="all",
        metavar="NAMES",
    )
    ignore_column: tuple[str, ...] = option("columns or keys to leave out, separated by commas", metavar="NAMES")
    column_kind: tuple[str, ...] = option(
        "kind of a column: number, text (its words are features) or category (the whole cell is one feature)",
        default_text="that of the model, else number if the first rows have only numbers, category if these are "
        "identifiers (`01067`), else text",
        metavar="NAME:KIND",
    )
    header: tuple[str, ...] = option(
        "names of all columns of CSV files without a header, in order, separated by commas", metavar="NAMES"
    )

    quoting: str = option(
        "quotes in a CSV file: `csv` takes a cell within double quotes as one cell and refuses text behind the closing "
        "quote; `none` takes quotes as ordinary characters, so that each line is a row",
        choices=("csv", "none"),
        default="csv",
    )

    def meaning(self) -> dict[str, object]:
        """Return the options that decide what the bytes of the data mean, field -> value, for keys of caches."""
        return {name: value for name, value in asdict(self).items() if name != "data"}


def first_of(paths: Sequence[str]) -> str:
    """Return the first file that is not empty, which decides what labels are; the first file if all are empty."""
    return next((path for path in paths if not os.path.isfile(path) or os.path.getsize(path)), paths[0])


@dataclass
class Peeked:
    """Hold what was taken from data that can be read only once, standard input or a named pipe."""

    text: bytearray = field(default_factory=bytearray)  # the first bytes, decompressed
    path: str | None = None  # of the named pipe
    stream: Any = None  # the named pipe, which stays open for the reader


def is_pipe(path: str) -> bool:
    """Return whether a file is a named pipe, which can be read only once."""
    with contextlib.suppress(OSError, ValueError):
        return not urls.is_url(path) and stat.S_ISFIFO(os.stat(path).st_mode)
    return False


def read_once(paths: Sequence[str] | None) -> str:
    """Return the name of the first of these data that can be read only once, empty if there is none."""
    return next(filter(is_pipe, paths), "") if paths else "stdin"


def peek_labels(paths: tuple[str, ...] | None, labels: LineDetector, peeked: Peeked) -> None:
    """Pass the first lines of the data to `labels` until its `classes` is known.

    Lines are passed on as soon as they arrive. Errors are ignored here, because the reader reports them later. What is
    taken from standard input or a named pipe is kept in `peeked`, since the reader has to start with it.
    """
    line: list[bytes] = []  # pieces of an incomplete line, joined only once, because it may be gigabytes long
    with contextlib.ExitStack() as closing, streams.errors_ignored():
        if not paths:
            stream = streams.standard_input()
        elif is_pipe(path := first_of(paths)):
            stream = peeked.stream or streams.decompressed(path, urls.opened(path), contextlib.ExitStack())
            peeked.path, peeked.stream = path, stream
        else:
            file = closing.enter_context(urls.opened(path))
            stream = streams.decompressed(path, file, closing)
        buffer = bytearray(FIRST_BLOCK)
        read_into = getattr(stream, "readinto1", None) or stream.readinto
        while labels.classes is None:
            size = read_into(buffer)
            if not paths or peeked.path is not None:
                peeked.text += buffer[:size]
            line.append(bytes(buffer[:size]))
            if size and parser.NEWLINE not in line[-1]:
                continue
            *lines, rest = b"".join(line).split(b"\n")
            line = [rest]
            for complete_line in lines if size else (*lines, rest):
                labels.add(complete_line)
            if not size:
                return


class LineDetector(Protocol):
    """Describe an object that examines lines until it has detected something, as `LabelDetector` does."""

    @property
    def classes(self) -> bool | None: ...

    def add(self, line: bytes, /) -> None: ...


class Reader:
    """Iterate over the batches of one or several files; iterating again reads the files again.

    Parameters
    ----------
    of_lines : parses the blocks of the files
    stream : what is read instead of the files
    peeked : what was taken from the data before, see `peek_labels`; None for nothing
    choose : returns the format of the data by the beginning of a file; all files have that of the first one

    Attributes
    ----------
    paths : paths of the files; (None,) for standard input
    size : bytes of all files; None if it is not known, as for a pipe
    rereadable : whether the files can be read again
    wrap : function that is called with each open file and returns a stream to read instead; None for none
    lines_skipped : number of lines of the file that `wrap` skips
    bytes : bytes of text parsed in this pass
    parsing_seconds : seconds spent on parsing or waiting for it, in all passes
    """

    def __init__(
        self,
        options: ReaderOptions,
        of_lines: parser.Parser,
        block_bytes: int | None = None,
        stream: ByteStream | None = None,
        peeked: Peeked | None = None,
        choose: Chooser = vw_text,
    ) -> None:
        self._peeked = peeked or Peeked()
        self._choose = choose
        self.format: TextFormat | None = None
        self.parser = of_lines
        self.paths: tuple[str | None, ...] = (options.data,) if isinstance(options.data, str) else options.data
        self.paths = tuple(self.paths or (None,))
        self.name: str = self.paths[0] or "stdin"
        self.notes = self.parser.notes
        self.bytes = self.lines_before = 0
        self.parsing_seconds = 0.0
        self._pool = Pool()  # memory of blocks
        self._parts_to_check: deque[tuple[bytes, int]] = (
            deque()
        )  # see `_part_to_check`, of the blocks that are being parsed
        self._scanners: list[BlockScanner] = []
        self.size: int | None = None
        self.wrap: Callable[[FileIO], RawIOBase] | None = None
        self.lines_skipped = 0
        self._path = self.paths[0]
        self._done = 0  # bytes of the files before the one being read
        self._stream = stream
        self._sizes = (block_bytes, block_bytes) if block_bytes else (FIRST_BLOCK, LARGEST_BLOCK)
        self._file: RawIOBase | None = None
        self._waits_for_full_blocks = True  # whether to wait until a block is full
        self._header_lines = 0  # of the current file
        self.rereadable = stream is None and self._path is not None
        sizes: list[int | None] = []
        for path in self.paths if self.rereadable else ():
            assert path is not None
            self.name = path
            try:
                sizes.append(_size(path))
            except OSError as error:
                raise self._cannot_open(error) from None
        self.name = self.paths[0] or "stdin"
        if sizes and None not in sizes:
            self.size = sum(filter(None, sizes))
        self.rereadable = self.size is not None

    def report(self) -> list[str]:
        """Return the lines for the end of the run about malformed lines, and about data that may not be VW text."""
        vw_text = self.format is not None and self.format.name == "vw"
        lines = self.parser.report(vw_text)
        if vw_text and self.bytes and self.parser.featureless:
            lines.append(NO_FEATURES)
        return lines

    def position(self) -> int:
        """Return the number of bytes read so far, before decompression."""
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                return self._done + self._file.tell()
        return self.bytes

    def __iter__(self) -> Iterator[Batch]:
        self.bytes = self.lines_before = self._done = self._examined = 0
        self._parts_to_check.clear()
        for path in self.paths:
            self._path = path
            self.name = path or "stdin"
            self.parser.lines = 0
            with contextlib.ExitStack() as closing:
                try:
                    stream = self._open(closing)
                except OSError as error:
                    raise self._cannot_open(error) from None
                yield from self._batches(stream)
                self._done = self.position()
            self.lines_before += self.parser.lines

    def _batches(self, stream: ByteStream) -> Iterator[Batch]:
        """Yield the batches of one file; raise its error after the examples before it."""
        for scan, error in self._scanned(self._blocks(stream)):
            self._check_encoding(*self._parts_to_check.popleft())
            names = self.parser.names.names
            known = len(names)
            with thread_limit.working():
                batch, problem = self.parser.take(scan, self.name)
            if self._is_binary and not "".join(names[known:]).isascii():  # of labels that are in another file
                self._check_names(names[known:], known + 1, batch)
            self.bytes += scan.used
            if batch.n:
                yield batch
            error = problem or error
            if error is not None:
                self.parser.left_out = ""  # the error counts more
                raise error
        if self.format is not None:
            self.format.finish(self.parser.lines - self._header_lines, self.name)

    def _check_names(self, names: list[str], number: int, batch: Batch) -> None:
        """Add a warning if the name of a new class is not UTF-8; the first one is that of the class `number`."""
        assert self.format is not None
        for k, name in enumerate(names, number):
            if not name.isascii():
                rows = np.flatnonzero(batch.label == k)  # none if there are lists, which have a name in any line
                encoded = name.encode("utf-8", "surrogateescape")
                self.format.check_encoding(encoded, self.name, int(batch.line[rows[0]]) if len(rows) else 1, True)

    def _part_to_check(self, text: UInt8s) -> tuple[bytes, int]:
        """Return the part of a block that has to be UTF-8, and how many lines are before it; nothing if it is ASCII.

        That is all of the first blocks that are not, and of later ones so much that reading stays as fast.
        """
        if self._is_binary or text.max(initial=0) < 128:
            return b"", 0
        data = text.tobytes()
        self._examined += len(data)
        if self._examined <= EXAMINED:
            return data, 0
        begin = data.rfind(b"\n", 0, int(np.argmax(text >= 128))) + 1
        return data[begin : begin + PIECE], data.count(b"\n", 0, begin)

    def _check_encoding(self, piece: bytes, lines: int) -> None:
        """Add a warning if a part of the next block, after so many of its lines, is not UTF-8."""
        if piece and self.format is not None and self.parser.rules.treatment != malformed.VW:
            self.format.check_encoding(piece, self.name, self.parser.lines + lines + 1)

    def _blocks(self, stream: ByteStream) -> Iterator[Block]:
        """Yield the text of a file in blocks with padding; the complete lines of a block end after its last newline."""
        size, largest_size = self._sizes
        text, begin, capacity = self._pool.take(size + 1 + parser.PADDING), 0, size
        header: int | None = 0
        needed = 0  # bytes before the format is looked for again
        first, ended = True, False
        while not ended:
            if begin == capacity:  # the line is longer than the block
                capacity *= 2
                text = np.concatenate((text[:begin], np.empty(capacity - begin + 1 + parser.PADDING, np.uint8)))
            filled, ended, error = self._fill(stream, text, begin, capacity)
            binary = text[: len(foreign.ARRAY)].tobytes() == foreign.ARRAY if first else self._is_binary
            if ended and error is None and filled and text[filled - 1] != parser.NEWLINE and not binary:
                text[filled] = parser.NEWLINE
                filled += 1
            if first:
                shown = text[: min(filled, foreign.SHOWN)].tobytes()
                if kind := foreign.what_it_is(shown, self.name, self._path is not None):
                    raise DataError(f"{self.name}: {kind}")
                header = self._begin_format(text[:filled].tobytes(), ended) if ended or filled >= needed else None
                needed = 2 * filled if filled > 2 * FIRST_BLOCK else 0
            end = 0
            if header is not None and self.format is not None:
                end = self.format.end_of_lines(text, 0 if first else begin, filled)
            if not end and not ended:
                begin = filled
                continue
            begin_of_lines = min(header or 0, end)
            if first:
                first, header = False, 0
            if end and size < largest_size == LARGEST_BLOCK:
                largest_size = _largest_block(text[:end])
            size = min(size * 2, largest_size) if end else size
            begin = filled - end
            capacity = begin + size
            following = self._pool.take(capacity + 1 + parser.PADDING)
            following[:begin] = text[end:filled]
            text[end : end + parser.PADDING] = 0
            self._parts_to_check.append(self._part_to_check(text[begin_of_lines:end]))
            lines, size_of_lines = text[begin_of_lines:], end - begin_of_lines
            if not isinstance(self.format, OtherFormat):
                self.parser.look_for_rows(lines, size_of_lines)  # for the number of columns of rows of numbers
            yield lines, size_of_lines, error
            text = following
        if begin and error is None:
            assert self.format is not None
            raise DataError(f"{self.name}:{self.parser.lines + 1}:1: {self.format.unfinished}")

    @property
    def _is_binary(self) -> bool:
        return self.format is not None and self.format.binary

    def preview(self) -> None:
        """Choose the format by the first lines before reading, if the data are a file or what was peeked suffices.

        Errors are ignored here, because they are raised again later.
        """
        with contextlib.ExitStack() as closing, streams.errors_ignored():
            peeked, ended = bytes(self._peeked.text), False
            if self.rereadable and self._path is not None:
                file = closing.enter_context(urls.opened(self._path))
                stream = streams.decompressed(self._path, file, closing)
                text = np.empty(2 * FIRST_BLOCK, np.uint8)
                filled, ended, _ = self._fill(stream, text, 0, len(text))
                peeked = text[:filled].tobytes()
            if peeked:
                self._begin_format(peeked, ended)

    def _begin_format(self, text: bytes, ended: bool) -> int | None:
        """Choose the format by the beginning of the first file, check it for the others, and read the header of a file.

        Return the number of bytes of the header, or None if more of the file is needed.
        """
        if not ended:
            text = text[: text.rfind(b"\n") + 1]
        if not text and not ended:
            return None
        if self.format is None or self._path != self.paths[0]:
            chosen = self._choose(text, ended, self.name)
            if chosen is None:
                return None
            if self.format is None:
                self.notes += chosen.notes
                chosen.notes, self.format = self.notes, chosen
        if isinstance(self.format, OtherFormat) and self.parser.options.dense and not self.format.binary:
            if self.format.dense is None:
                raise UsageError(
                    f"--dense: the rows of numbers are in VW text, JSON lines or an array of NumPy, .npy, and "
                    f"{self.name} is {self.format.name}; write it as one of these"
                )
            self.format.dense = self.parser.dense.decode("utf-8", "surrogateescape")
        header = self.format.begin(text, ended, self.name)
        if header is None:
            return None
        if not self._scanners:
            count = thread_limit.processors() if self.format.parallel else 1
            self._scanners = [self.format.scanner(self.parser) for _ in range(count)]
        size, self._header_lines = header
        self.parser.lines = self._header_lines + self.lines_skipped
        return size

    def _scanned(self, blocks: Iterator[Block]) -> Iterator[tuple[parser.Scan, DataError | None]]:
        """Yield the scans of blocks in order; the blocks of a file are scanned on several threads."""
        blocks = itertools.chain([next(blocks)], blocks)  # the first one decides on the format and the scanners
        if not self._waits_for_full_blocks or len(self._scanners) == 1:
            for text, end, error in blocks:
                start = time.perf_counter()
                with thread_limit.working():
                    scan = self._scanners[0].scan(text, end)
                self.parsing_seconds += time.perf_counter() - start
                yield scan, error
            return
        free: queue.SimpleQueue[BlockScanner] = queue.SimpleQueue()
        for scanner in self._scanners:
            free.put(scanner)

        def job(text: UInt8s, end: int) -> parser.Scan:
            scanner = free.get()
            try:
                with thread_limit.working():
                    return scanner.scan(text, end)
            finally:
                free.put(scanner)

        def next_scan() -> tuple[parser.Scan, DataError | None]:
            future, error = waiting.popleft()
            start = time.perf_counter()
            scan = future.result()
            self.parsing_seconds += time.perf_counter() - start
            return scan, error

        waiting: deque[tuple[Future[parser.Scan], DataError | None]] = deque()
        with ThreadPoolExecutor(len(self._scanners), "parse") as threads:
            for text, end, error in blocks:
                waiting.append((threads.submit(job, text, end), error))
                if len(waiting) > len(self._scanners):
                    yield next_scan()
            while waiting:
                yield next_scan()

    def _fill(self, stream: ByteStream, text: UInt8s, begin: int, end: int) -> tuple[int, bool, DataError | None]:
        """Read into `text[begin:end]`; return one past the last byte read, whether the file ended, and what ends the
        reading.
        """
        buffer = text.data
        read_into = getattr(stream, "readinto1", None) or stream.readinto
        filled = begin
        while filled < end:
            try:
                size = read_into(buffer[filled:end])
            except streams.read_errors() as error:
                cause = streams.failure(error, "check it, or get another copy")
                return filled, True, DataError(f"{self.name}: {cause}")
            if not size:
                return filled, True, None
            filled += size
            if not self._waits_for_full_blocks and parser.NEWLINE in buffer[filled - size : filled].tobytes():
                break
        return filled, False, None

    def _open(self, closing: contextlib.ExitStack) -> ByteStream:
        """Open the current file, or standard input, and return its decompressed bytes as a stream."""
        if self._stream is not None:
            self._waits_for_full_blocks = False
            return self._stream
        if self._path is None or self._path == self._peeked.path:
            stream = self._peeked.stream or streams.standard_input()
            with contextlib.suppress(OSError, ValueError):
                status = os.fstat(stream.fileno())
                self._waits_for_full_blocks = stat.S_ISREG(status.st_mode)
                if self._waits_for_full_blocks:
                    self.size = status.st_size
                    self._file = stream
            peeked, self._peeked = bytes(self._peeked.text), Peeked()
            read = iter(lambda: stream.read(FIRST_BLOCK), b"")
            return streams.Pieces(itertools.chain([peeked], read)) if peeked else stream
        file = closing.enter_context(urls.opened(self._path))
        self._file = file
        self._waits_for_full_blocks = urls.is_url(self._path) or stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        closing.callback(setattr, self, "_file", None)
        if self.wrap is not None:
            self._file = file = self.wrap(file)
        return streams.decompressed(self._path, file, closing)

    def _cannot_open(self, error: OSError) -> DataError:
        if isinstance(error, FileNotFoundError):
            return DataError(f"{self.name}: {NO_SUCH_FILE}")
        if isinstance(error, IsADirectoryError):
            return DataError(f"{self.name}: this is a directory; give a file of examples")
        reason = error.strerror or error
        return DataError(f"{self.name}: the file cannot be opened ({reason}); check its name and permissions")


def _largest_block(text: UInt8s) -> int:
    """Return the bytes of the largest blocks to read, by the length of the lines of a first block."""
    lines = max(1, int(np.count_nonzero(text == parser.NEWLINE)))
    return min(max(LARGEST_BLOCK, BLOCK_LINES * len(text) // lines), LARGEST_BLOCK_OF_LONG_LINES)


def _size(path: str) -> int | None:
    if urls.is_url(path):
        return urls.size(path)
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None
