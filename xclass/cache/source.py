"""A run's passes over its data: parsed, and kept in a cache on the way, or read from it several times as fast.

Idea      A cache is used only if it is whole and its key is what it would be if it were made now (cache_key.py).
          Several passes need none: without one, parsed batches go to a temporary cache.
Differs   from VW, which uses any cache it finds, however old and whatever it was made of.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import batch_ops
from ..data.batch import Batch
from ..errors import DataError, UsageError
from ..options.declare import option
from ..system import leftovers
from ..text.reader import Reader as TextReader
from . import cache_key
from .batch_codec import Damaged
from .cache_file import Reader, Writer


@dataclass(frozen=True)
class Options:
    """Cache."""

    cache: bool = option(
        "keep the parsed examples in DATA.cache, and read that file instead of the data if it was made from the same "
        "data",
        flags=("-c", "--cache"),
        kind=bool,
    )
    cache_file: str | None = option("like --cache, with this file", metavar="FILE")
    kill_cache: bool = option("make the cache again even if it is current", flags=("-k", "--kill_cache"), kind=bool)


class Source:
    """The batches of each pass: parsed, and written to the cache on the way, or read from it.

    Parameters
    ----------
    reader : of the text
    options : of this room
    key : what `cache_key.make_key` gives
    constant : whether each example ends with the constant
    passes : how often it will be iterated
    names : whether the names of features are asked for, which no cache holds: the text is read in every pass

    Attributes
    ----------
    notes : messages for the user; take them by popping
    lines : of all files, once a pass has read them to the end
    parsing : whether the batches of this pass come from the text and hold it
    """

    def __init__(
        self,
        reader: TextReader,
        options: Options,
        key: dict[str, Any],
        constant: bool,
        passes: int,
        names: bool = False,
    ) -> None:
        self._text = reader
        self._reread = names and reader.again
        self._key = key
        self._limit: int | None = key["examples"]
        self._classes = key["labels"] == "classes"
        self._constant = constant
        self._passes = passes
        self._pass = 0
        self._writer: Writer | None = None
        self._cache: Reader | None = None
        self._used = False  # the cache that was there is good
        self.notes: list[str] = []
        self.lines = 0
        self.parsing = True
        self._told: list[str] = []  # all notes about the text
        self.path = options.cache_file
        if self.path is None and options.cache:
            if reader.paths[0] is None:
                raise UsageError("-c names the cache after the data file; for standard input give --cache_file FILE")
            self.path = f"{reader.paths[0]}.cache"
        if self.path is not None:
            leftovers.remove(os.path.realpath(self.path))
        if self.path is not None and os.path.exists(self.path):
            self._use(self.path, kill=options.kill_cache)
        elif self.path is not None and self._alone:
            raise DataError(f"{self.path}: there is no such cache, and no data to make it of; give the data with -d")

    @property
    def _alone(self) -> bool:
        """Whether there is nothing but the cache."""
        return self._text.paths == (None,) and no_input()

    @property
    def _files(self) -> list[str]:
        """The files of text; none where it comes from standard input."""
        return [path for path in self._text.paths if path is not None]

    def _use(self, path: str, kill: bool) -> None:
        """Take the cache that is there, or say why not."""
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DataError(f"{path}: the cache cannot be kept there, this is no regular file; give another name")
        alone = self._alone
        if kill or (self._reread and not alone):
            return
        why = ""
        try:
            with open(path, "rb") as file:
                cache = Reader(file, self._classes)
            if not self._files and not alone:
                why = "what comes through a pipe cannot be compared with it"
            else:
                why = cache_key.why_stale(cache.facts["key"], self._key, None if alone else self._files)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            why = str(error) if isinstance(error, Damaged) else "it is damaged"
        except OSError as error:
            why = f"it cannot be read ({error.strerror})"
        if not why:
            self._take(cache)
            self._used = True
        elif alone:
            raise DataError(f"{path}: cannot be used: {why}; give the data with -d, or the options it was made with")
        else:
            self.notes.append(f"{path} is made anew: {why}")

    def _take(self, cache: Reader) -> None:
        self._cache = cache
        parser = self._text.parser
        parser.bad, parser.skipped = cache.facts["bad"], cache.facts["skipped"]
        parser.kept = list(cache.facts["kept"])
        parser.names.add(cache.facts.get("names", []))
        self._told = list(cache.facts["told"])
        if self._pass == 0:
            self.notes += self._told

    # what the driver asks

    @property
    def name(self) -> str:
        """Of the file read last."""
        return self._text.name

    @property
    def parsing_seconds(self) -> float:
        """Spent on parsing text."""
        return self._text.parsing_seconds

    @property
    def writing(self) -> bool:
        """Whether a cache is being written, which needs the pass to go to the end."""
        return self._writer is not None

    @property
    def size(self) -> int | None:
        """Bytes of the data, in all passes."""
        return None if self._text.size is None else self._text.size * self._passes

    def position(self) -> int:
        """How far it is, on the scale of `size`."""
        one = self._text.size or 0
        here = int(self._cache.part * one) if self._cache is not None else self._text.position()
        return max(0, self._pass - 1) * one + here

    def part(self) -> float | None:
        """How much of this pass is read, 0 to 1; None where the size of the data is not known."""
        if self._cache is not None:
            return self._cache.part
        return self._text.position() / self._text.size if self._text.size else None

    def report(self) -> list[str]:
        """What to tell the user at the end of the run about malformed lines."""
        return self._text.report()

    def banner(self) -> list[str]:
        """VW's lines about the cache and the data."""
        if self._used:
            lines = [f"using cache_file = {self.path}"]
            if self._text.paths != (None,):
                lines.append("ignoring text input in favor of cache input")
            return lines
        if self.path is not None:
            first = f"creating cache_file = {self.path}"
        else:
            first = "using no cache" if self._passes == 1 else "using a temporary cache"
        return [first, f"Reading datafile = {self.name}"]

    def close(self) -> None:
        """Let go of what a pass that did not end has open."""
        if self._writer is not None:
            self._writer.abandon()

    # a pass

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        self._pass += 1
        last = 0  # line, counted over all files
        self.parsing = self._cache is None
        if self._cache is not None:
            try:
                for batch, before in self._cache:
                    yield batch, before
                    last = before + int(batch.line[-1])
                self.lines = self._cache.facts["lines"]
                return
            except Damaged as error:
                self._cache = None
                self.parsing = True
                if not self._text.again:
                    raise DataError(f"the cache cannot be read on: {error}; start again with -k") from None
                self.notes.append(f"{self.path or 'the temporary cache'} is made anew: {error}")
                self._text.parser.bad = self._text.parser.skipped = 0
                self._text.parser.kept = []
        yield from self._parse(last)

    def _parse(self, after: int) -> Iterator[tuple[Batch, int]]:
        """The batches of the text, from line `after` + 1 on; all of them go to the cache."""
        writer = self._writer = self._new_writer()
        then = None
        keyed = writer is not None and self.path is not None and bool(self._files)
        self._text.wrap = cache_key.Digesting if keyed else None
        if keyed:
            then = [cache_key.file_entry(path, None) for path in self._files]
        for batch in self._text:
            before = self._text.before
            self._pass_notes()
            whole = batch
            if self._limit is not None:
                batch = batch_ops.cut(batch, 0, int(np.searchsorted(batch.line, self._limit - before, side="right")))
            if writer is not None:
                try:
                    writer.write(batch, before)
                except OSError as error:
                    self._give_up(error)
                    writer = None
            lines = batch.line + before
            low = int(np.searchsorted(lines, after, side="right")) if after else 0
            if low < batch.n:
                yield batch_ops.cut(batch, low, batch.n), before
            if self._limit is not None and (batch.n < whole.n or before + self._text.lines >= self._limit):
                self.lines = before + self._text.lines
                break
        else:
            self.lines = self._text.before
        self._pass_notes()
        if writer is not None:
            self._end(writer, then)

    def _end(self, writer: Writer, then: list[dict[str, Any]] | None) -> None:
        """Finish the cache, unless the data changed under our hands."""
        parser = self._text.parser
        key = dict(self._key)
        if then is not None:
            found = [file.digest() for file in self._text.wrapped] + [None] * len(then)  # None: not read to its end
            key["files"] = [
                {**one, "sha256": digest or cache_key.digest_of(path)}
                for one, digest, path in zip(then, found, self._files, strict=False)
            ]
            now = [cache_key.file_entry(path, None) for path in self._files]
            if any(a["size"] != b["size"] or a["time"] != b["time"] for a, b in zip(then, now, strict=True)):
                self.notes.append(f"{self.path} is not kept: the data changed while it was read")
                writer.abandon()
                self._writer = None
                return
        facts = {
            "key": key,
            "bad": parser.bad,
            "skipped": parser.skipped,
            "kept": parser.kept,
            "told": self._told,
            "lines": self.lines,
        }
        if parser.names.growing:
            facts["names"] = parser.names.names
        try:
            writer.finish(facts)
            if not self._reread:
                self._take(Reader(writer.file, self._classes))
        except OSError as error:
            self._give_up(error)
            return
        writer.abandon()
        self._writer = None

    def _new_writer(self) -> Writer | None:
        if self.path is None and (self._pass >= self._passes or self._reread):
            return None
        if self._reread and self._pass > 1:
            return None
        try:
            return Writer(self.path, self._classes, self._constant)
        except OSError as error:
            self._give_up(error)
            return None

    def _give_up(self, error: OSError) -> None:
        """Go on without a cache."""
        folder = leftovers.temporary_folder() if self.path is None else os.path.dirname(os.path.realpath(self.path))
        where = self.path or f"a temporary cache in {folder}"
        another = "set TMPDIR to a folder with room" if self.path is None else "name another place with --cache_file"
        written = "" if self._writer is None else f"; {self._writer.size / 1e6:,.1f} MB were written"
        why = f"{error.strerror or error}{written}, {leftovers.free_space(folder)}"
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None
        if self._pass < self._passes and not self._text.again:
            raise DataError(
                f"{where}: cannot be written ({why}), and what comes through a pipe can be read once only; "
                f"make room, or {another}"
            )
        self.notes.append(f"{where}: cannot be written ({why}); going on without it")

    def _pass_notes(self) -> None:
        while self._text.notes:
            note = self._text.notes.pop(0)
            self._told.append(note)
            self.notes.append(note)


def no_input() -> bool:
    """Whether standard input is a terminal or /dev/null."""
    try:
        return stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return sys.stdin is None
