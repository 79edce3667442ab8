"""Files, compressed files and pipes to batches, in constant memory.

    bytes -> blocks that end after a newline -> parser -> Batch, Batch, ...

Blocks of a file are parsed on as many threads as there are processors, and delivered in order. Blocks start small, so
that the first rows of the table appear at once, and grow. A line longer than a block makes its block grow. A pipe
delivers what has arrived, without waiting for a full block. Every batch has a block of its own, so that several may be
in flight.
"""

from __future__ import annotations

import contextlib
import os
import queue
import stat
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from typing import Any, Protocol

import numpy as np

from ..array_types import UInt8s
from ..data.batch import Batch, Pool
from ..data.class_names import Names
from ..errors import DataError
from ..model import model_header
from ..options.declare import option
from ..system import processors
from . import parser
from .label_detection import Labels

PACKED = ((b"\x1f\x8b", ".gz", "zcat"), (b"\x28\xb5\x2f\xfd", ".zst", "zstdcat"))  # first bytes, ending, what unpacks
NO_TEXT = b"xclass cache\n"  # begins a cache
FIRST_BLOCK, LARGEST_BLOCK = 1 << 16, 1 << 18  # bytes
LOOK_BACK = 1 << 12  # bytes, in search of the end of a line


@dataclass(frozen=True)
class Options:
    data: tuple[str, ...] = option(
        "file of examples, plain, .gz or .zst",
        flags=("-d", "--data"),
        default_text="standard input",
        metavar="FILE",
        repeated=True,
        read=True,
    )


def look(paths: tuple[str, ...] | None, labels: Labels, begun: bytearray) -> None:
    """Show the first lines of the data to `labels` until its `classes` is known.

    Lines are shown as soon as they have arrived. What cannot be read is left for the reader to complain about.

    Parameters
    ----------
    begun : takes what was read of standard input, for the reader to begin with
    """
    line: list[bytes] = []  # pieces of one whose end is still to come, joined once: it may be gigabytes long
    with contextlib.ExitStack() as closing, contextlib.suppress(OSError, DataError, EOFError, zlib.error):
        if paths:
            if not stat.S_ISREG(os.stat(paths[0]).st_mode):
                return  # a named pipe can be opened and read once
            file = closing.enter_context(open(paths[0], "rb", buffering=0))
            stream = _unpacked(paths[0], file, closing)
        else:
            stream = _standard_input()
        room = bytearray(FIRST_BLOCK)
        pull = getattr(stream, "readinto1", None) or stream.readinto
        while labels.classes is None:
            got = pull(room)
            if not paths:
                begun += room[:got]
            line.append(bytes(room[:got]))
            if got and parser.NEWLINE not in line[-1]:
                continue
            *lines, rest = b"".join(line).split(b"\n")
            line = [rest]
            for whole in lines if got else (*lines, rest):
                labels.add(whole)
            if not got:
                return


class Stream(Protocol):
    """What text is read from."""

    def readinto(self, room: bytearray | memoryview, /) -> int | None: ...


class Wrapped(Stream, Protocol):
    """What stands for a file that is open, see `cache.cache_key.Digesting`."""

    def tell(self) -> int: ...

    def digest(self) -> str | None: ...


class _Behind:
    """Standard input from its beginning, of which some was read already."""

    def __init__(self, begin: bytes, stream: Stream) -> None:
        self._begin, self._stream = memoryview(begin), stream

    def readinto(self, room: bytearray | memoryview) -> int | None:
        if not self._begin:
            return self._stream.readinto(room)
        got = min(len(room), len(self._begin))
        room[:got] = self._begin[:got]
        self._begin = self._begin[got:]
        return got


Block = tuple[UInt8s, int, DataError | None]  # text that ends with a line, where it ends, what keeps from reading on


class Reader:
    """The batches of one file, or of several one after the other; iterating again reads them again.

    Parameters
    ----------
    options, parse : the options of this room and of parser
    bits, multiclass, lowest, highest, because, names : as in `parser.Parser`
    block_bytes : size of a block; None for the usual sizes
    stream : read instead of the file; anything with `readinto`
    begun : what was read of standard input before, see `look`

    Attributes
    ----------
    paths : of the files; (None,) for standard input
    name : of the file being read, for messages
    size : bytes of all files, None where it is not known (a pipe)
    again : whether they can be read again
    before : lines of the files before the one being read
    wrap, wrapped : called, if not None, with each file once it is open, and what it returned
    bytes : of text, parsed in this pass
    parsing_seconds : spent on parsing or on waiting for it, in all passes
    parser : its `lines`, `skipped`, `bad`, `notes` and `report()` tell of the lines
    """

    def __init__(
        self,
        options: Options,
        parse: parser.Options,
        bits: int,
        multiclass: bool,
        lowest: int | None = None,
        highest: int | None = None,
        because: str = "",
        block_bytes: int | None = None,
        stream: Stream | None = None,
        names: Names | None = None,
        begun: bytes = b"",
    ) -> None:
        self._begun = begun
        self.parser = parser.Parser(parse, bits, multiclass, lowest, highest, because, names)
        self.paths: tuple[str | None, ...] = (options.data,) if isinstance(options.data, str) else options.data
        self.paths = tuple(self.paths or (None,))
        self.name: str = self.paths[0] or "stdin"
        self.bytes = self.before = 0
        self.parsing_seconds = 0.0
        self._pool = Pool()  # of text
        self._scanners: list[parser.Scanner] = []
        self.size: int | None = None
        self.wrap: Callable[[FileIO], Wrapped] | None = None
        self.wrapped: list[Wrapped] = []
        self._path = self.paths[0]
        self._done = 0  # bytes of the files before this one
        self._stream = stream
        self._sizes = (block_bytes, block_bytes) if block_bytes else (FIRST_BLOCK, LARGEST_BLOCK)
        self._file: FileIO | Wrapped | None = None
        self._whole = True  # whether to wait for full blocks
        self.again = stream is None and self._path is not None
        sizes: list[int | None] = []
        for path in self.paths if self.again else ():
            assert path is not None
            self.name = path
            try:
                found = os.stat(path)
            except OSError as error:
                raise self._cannot_open(error) from None
            sizes.append(found.st_size if stat.S_ISREG(found.st_mode) else None)
        self.name = self.paths[0] or "stdin"
        if sizes and None not in sizes:
            self.size = sum(filter(None, sizes))
        self.again = self.size is not None

    @property
    def lines(self) -> int:
        """Lines read in this pass."""
        return self.parser.lines

    @property
    def skipped(self) -> int:
        """Lines left out under `--on_bad_line skip`, in all passes."""
        return self.parser.skipped

    @property
    def notes(self) -> list[str]:
        """Warnings that nobody took yet; take them by popping."""
        return self.parser.notes

    def report(self) -> list[str]:
        """What to tell the user at the end of the run about malformed lines."""
        return self.parser.report()

    def position(self) -> int:
        """Bytes of the file read so far, of the compressed file where it is compressed."""
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):
                return self._done + self._file.tell()
        return self.bytes

    def __iter__(self) -> Iterator[Batch]:
        self.bytes = self.before = self._done = 0
        self.wrapped = []
        if not self._scanners:
            self._scanners = [self.parser.scanner() for _ in range(processors.count())]
        for path in self.paths:
            self._path = path
            self.name = path or "stdin"
            self.parser.begin()
            with contextlib.ExitStack() as closing:
                try:
                    stream = self._open(closing)
                except OSError as error:
                    raise self._cannot_open(error) from None
                yield from self._batches(stream)
                self._done = self.position()
            self.before += self.parser.lines

    def _batches(self, stream: Stream) -> Iterator[Batch]:
        for scan, error in self._scanned(self._blocks(stream)):
            batch, problem = self.parser.take(scan, self.name)
            self.bytes += scan.used
            if batch.n:
                yield batch
            error = problem or error
            if error is not None:
                raise error

    def _blocks(self, stream: Stream) -> Iterator[Block]:
        """Text that ends with a line, padded, where it ends, and what keeps from reading on."""
        size, largest = self._sizes
        left = np.empty(0, np.uint8)  # of a line whose end is still to come
        first = True
        ended = False
        while not ended:
            begin = len(left)
            text = self._pool.take(begin + size + 1 + parser.PADDING)
            text[:begin] = left
            filled, ended, error = self._fill(stream, text, begin, begin + size)
            if ended and error is None and filled and text[filled - 1] != parser.NEWLINE:
                text[filled] = parser.NEWLINE
                filled += 1
            self._refuse_other(text[: min(filled, 128)].tobytes() if first else b"")
            end = _end_of_lines(text, begin, filled)
            left = text[end:filled].copy()
            text[end : end + parser.PADDING] = 0
            first = first and end == 0
            yield text, end, error
            size = min(size * 2, largest) if end else max(size, len(left))

    def _scanned(self, blocks: Iterator[Block]) -> Iterator[tuple[parser.Scan, DataError | None]]:
        """The blocks parsed: of a file some at a time, each on a thread of its own, delivered in order."""
        if not self._whole or len(self._scanners) == 1:
            for text, end, error in blocks:
                begun = time.perf_counter()
                scan = self._scanners[0].scan(text, end)
                self.parsing_seconds += time.perf_counter() - begun
                yield scan, error
            return
        free: queue.SimpleQueue[parser.Scanner] = queue.SimpleQueue()
        for scanner in self._scanners:
            free.put(scanner)

        def job(text: UInt8s, end: int) -> parser.Scan:
            scanner = free.get()
            try:
                return scanner.scan(text, end)
            finally:
                free.put(scanner)

        def next_one() -> tuple[parser.Scan, DataError | None]:
            future, error = waiting.popleft()
            begun = time.perf_counter()
            scan = future.result()
            self.parsing_seconds += time.perf_counter() - begun
            return scan, error

        waiting: deque[tuple[Future[parser.Scan], DataError | None]] = deque()
        with ThreadPoolExecutor(len(self._scanners), "parse") as threads:
            for text, end, error in blocks:
                waiting.append((threads.submit(job, text, end), error))
                if len(waiting) > len(self._scanners):
                    yield next_one()
            while waiting:
                yield next_one()

    def _refuse_other(self, begin: bytes) -> None:
        """Refuse what is no text: a model or a cache."""
        what = model_header.model_that_begins(begin)
        if what:
            raise DataError(f"{self.name}: is {what}, not data; name a file of examples, and a model with -i")
        for magic, ending, tool in PACKED:
            if begin.startswith(magic):
                cure = f"unpack it, `{tool} FILE{ending} | xclass ...`, or give -d FILE{ending}"
                if self._path is not None:
                    cure = f"rename it to end in {ending}"
                if self.name.endswith((".gz", ".zst")):
                    raise DataError(f"{self.name}: is compressed twice; unpack it once")
                raise DataError(f"{self.name}: is compressed, and not named as such; {cure}")
        if begin.startswith(NO_TEXT):
            raise DataError(f"{self.name}: is a cache of xclass, not data; give it with --cache_file")

    def _fill(self, stream: Stream, text: UInt8s, begin: int, end: int) -> tuple[int, bool, DataError | None]:
        """Read into `text[begin:end]`: where it is filled to, whether the file ended, what went wrong."""
        room = text.data
        pull = getattr(stream, "readinto1", None) or stream.readinto
        filled = begin
        while filled < end:
            try:
                got = pull(room[filled:end])
            except EOFError:
                return (
                    filled,
                    True,
                    DataError(
                        f"{self.name}: the compressed data ends too early; the file was cut short, fetch it again"
                    ),
                )
            except _damage() as error:
                return filled, True, DataError(f"{self.name}: cannot be read ({error}); check or fetch the file again")
            if not got:
                return filled, True, None
            filled += got
            if not self._whole and parser.NEWLINE in room[filled - got : filled].tobytes():
                break
        return filled, False, None

    def _open(self, closing: contextlib.ExitStack) -> Stream:
        if self._stream is not None:
            self._whole = False
            return self._stream
        if self._path is None:
            stream = _standard_input()
            with contextlib.suppress(OSError, ValueError):
                found = os.fstat(stream.fileno())
                self._whole = stat.S_ISREG(found.st_mode)
                if self._whole:
                    self.size = found.st_size
                    self._file = stream
            begun, self._begun = self._begun, b""
            return _Behind(begun, stream) if begun else stream
        self._file = closing.enter_context(open(self._path, "rb", buffering=0))  # noqa: SIM115
        closing.callback(setattr, self, "_file", None)
        self._whole = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        if self.wrap is not None:
            self._file = self.wrap(self._file)
            self.wrapped.append(self._file)
        return _unpacked(self._path, self._file, closing)

    def _cannot_open(self, error: OSError) -> DataError:
        if isinstance(error, FileNotFoundError):
            return DataError(f"{self.name}: there is no such file; check the name given to -d")
        if isinstance(error, IsADirectoryError):
            return DataError(f"{self.name}: is a directory; name a file of examples")
        return DataError(f"{self.name}: cannot be opened ({error.strerror}); check the name and its permissions")


def _end_of_lines(text: UInt8s, begin: int, end: int) -> int:
    """Where the last whole line of `text[:end]` ends, 0 if there is none; before `begin` there is none."""
    while end > begin:
        piece = max(begin, end - LOOK_BACK)
        at = text[piece:end].tobytes().rfind(b"\n")
        if at >= 0:
            return piece + at + 1
        end = piece
    return 0


def _standard_input() -> Any:
    """Not the buffered stream: at the end a thread that still waits in it would bring the interpreter down."""
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def _unpacked(path: str, file: FileIO | Wrapped, closing: contextlib.ExitStack) -> Stream:
    """The text of a file that may be compressed, as its name says."""
    if path.endswith(".gz"):
        try:
            from isal import igzip as gzip
        except ImportError:
            import gzip
        return closing.enter_context(gzip.open(file, "rb"))  # type: ignore[no-any-return]  # isal is not looked into
    if path.endswith(".zst"):
        try:
            import zstandard
        except ImportError:
            raise DataError(f"{path}: reading .zst needs a package; pip install zstandard") from None
        return _Unpacked(file, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError)
    return file


def _damage() -> tuple[type[Exception], ...]:
    """The errors that say that a file cannot be read, or that it cannot be unpacked."""
    isal = sys.modules.get("isal.isal_zlib")
    return (OSError, ValueError, zlib.error) if isal is None else (OSError, ValueError, zlib.error, isal.error)


class _Unpacked:
    """The text of a .zst file of one or more frames; zstandard's own reader does not tell a file cut short."""

    CHUNK = 1 << 15  # bytes; unpacked they stay within some MB

    def __init__(self, file: Any, new_frame: Callable[[], Any], damaged: type[Exception]) -> None:
        self._file, self._new_frame, self._damaged = file, new_frame, damaged
        self._frame: Any = None
        self._packed = b""
        self._text = memoryview(b"")

    def readinto(self, room: bytearray | memoryview) -> int:
        while not self._text:
            packed = self._packed or self._file.read(self.CHUNK)
            if not packed and self._frame is not None:
                raise EOFError
            if not packed:
                return 0
            if self._frame is None:
                self._frame = self._new_frame()
            try:
                self._text = memoryview(self._frame.decompress(packed))
            except self._damaged as error:
                raise OSError(str(error)) from None
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        got = min(len(room), len(self._text))
        room[:got] = self._text[:got]
        self._text = self._text[got:]
        return got
