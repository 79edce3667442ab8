"""Supply the batches of each pass: parse the text and write a cache, or read the cache, which is several times as fast.

Idea      A cache is used only if it is complete and its key equals the key made now. Without --cache, a
          run of several passes writes its parsed batches to a temporary cache in the first one.
Differs   from VW, which uses any cache that exists, regardless of its age and of the data it was made from.

The key of a cache holds everything that decides which batches come out of the data: version, bits, kind of label, all
options of the parser, and for each file its size and times. The contents of files are not compared, because that would
take as long as to parse them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import batch_ops
from ..data.batch import Batch
from ..data.schema import Schema
from ..errors import DataError, UsageError
from ..options.declare import OptionGroup, option, warned
from ..system import leftovers
from ..text import urls
from ..text.reader import Reader as TextReader
from ..text.reader import is_pipe
from ..text.text_format import TextFormat
from .cache_file import MAGIC, CacheReader, CacheWriter, DamagedCacheError

VERSION = 8  # incremented whenever the format of blocks changes
SHOWN_LENGTH = 200  # characters of a value in a message
# nanoseconds between two times that a file system can give, at most, and on one that counts whole seconds
STEP, COARSE_STEP = 2 * 10**7, 2 * 10**9


def make_key(
    parse: OptionGroup, bits: int, labels: str, lowest: int | None, highest: int | None, limit: int | None
) -> dict[str, Any]:
    """Return the part of the key that does not depend on the data.

    `parse` has the options of the parser, `labels` is the kind of the labels, see `ReductionRecord`, and `limit` the
    number of lines to read, None for all.
    """
    return {
        "version": VERSION,
        "bits": bits,
        "labels": labels,
        "lowest": lowest,
        "highest": highest,
        "examples": limit,
        **dataclasses.asdict(parse),
    }


def file_entry(path: str) -> dict[str, Any]:
    status = os.stat(path)
    return {
        "size": status.st_size,
        "time": [status.st_mtime_ns, status.st_ctime_ns],
        "name": os.path.basename(path),
    }


def _endings(name: str) -> list[str]:
    """Return the endings of a file's name, which say the format."""
    return Path(name).suffixes[-2:]


def settled_entry(path: str) -> dict[str, Any]:
    """Wait until any further change of a file will give it another time, and return its entry."""
    while True:
        entry = file_entry(path)
        changed = entry["time"][1]
        step = STEP if changed % 10**9 else COARSE_STEP
        if not 0 <= time.time_ns() - changed < step:
            return entry
        time.sleep(step / 1e10)


def stale_reason(stored_key: dict[str, Any], current_key: dict[str, Any], paths: Sequence[str] | None) -> str:
    """Return why a cache with a key does not fit, or an empty string if it does; without `paths`, any data will do."""
    for name, value in json.loads(json.dumps(current_key)).items():
        if stored_key.get(name) != value:
            if name == "version":
                return "another version of xclass made it"
            texts = [str(setting) for setting in (stored_key.get(name), value)]
            then, now = (text if len(text) <= SHOWN_LENGTH else "..." for text in texts)
            return f"it was made with {name} {then}, but this run has {name} {now}"
    if set(stored_key) - {"files"} != set(current_key):
        return "another version of xclass made it"
    if paths is None:
        return ""
    files = stored_key.get("files")
    if not files:
        return "it was made from a pipe, which cannot be compared with the data"
    if len(files) != len(paths):
        return f"the number of its data files was {len(files)} and is now {len(paths)}"
    for path, stored in zip(paths, files, strict=True):
        current = file_entry(path)
        renamed = current["name"] != stored["name"]
        changed = any(current[name] != stored[name] for name in ("size", "time"))
        if renamed and (changed or _endings(current["name"]) != _endings(stored["name"])):
            return f"it was made from {stored['name']}, not from {path}"
        if current["size"] != stored["size"]:
            return f"{path} has changed: it had {stored['size']} bytes and now has {current['size']}"
        if changed:
            return f"{path} has changed"
    return ""


SHOWN = 64  # bytes at the beginning of a file that tell what it is
VW_CACHE = re.compile(rb"[\x01-\x20]\0{7}[0-9]+(?:\.[0-9]+)+\0c")  # the version of VW, and the kind of the file


def beside_data(paths: Sequence[str]) -> str:
    """Return the file of --cache, which is named after the first file of the data."""
    return f"{paths[0]}.cache"


class CacheOptions(OptionGroup):
    cache: bool = option(
        "keep the parsed examples in DATA.cache, and read that file instead of the data if it was made from the same "
        "data",
        flags=("-c", "--cache"),
        reads=True,
        writes="the cache",
        files=lambda cache, given: [beside_data(given["data"])] if cache and given.get("data") else [],
    )
    cache_file: str | None = option("like --cache, with this file", reads=True, writes="the cache")
    kill_cache: bool = option("make the cache again even if it is current", flags=("-k", "--kill_cache"))

    RULES = (
        warned("kill_cache", "without -c or --cache_file there is no cache to make again", cache=None, cache_file=None),
    )


class Source:
    """Iterate over the batches of a pass, parsing the text and writing a cache or reading the cache.

    Parameters
    ----------
    passes : number of times that the source will be iterated
    needed : whether the caller reads the cache itself, and cannot go on without it
    needs_lines : whether the caller needs the lines that the examples are read from, for the names of features; no
        cache holds them, so every pass parses the text
    schema : columns of the tables learned from, to which those of the data are added; None if they are not needed
    """

    def __init__(
        self,
        reader: TextReader,
        options: CacheOptions,
        key: dict[str, Any],
        constant: bool,
        passes: int,
        needs_lines: bool = False,
        schema: Schema | None = None,
        needed: bool = False,
    ) -> None:
        self._text = reader
        self._schema = Schema() if schema is None else schema
        self._parses_each_pass = needs_lines and reader.rereadable
        self._key = key
        self._limit: int | None = key["examples"]
        self._classes = key["labels"] != "simple"
        self._constant = constant
        self._passes = passes
        self._needed = needed
        self._pass = 0
        self._writer: CacheWriter | None = None
        # the cache that the next passes read; None before the first pass and if there is none
        self.complete_cache: CacheReader | None = None
        self._reused = False  # whether the cache existed and fits
        self.notes: list[str] = []  # messages for the user; the caller removes those that it has shown
        self.lines = 0  # number of lines in all files, known after the first complete pass
        self.parsing = True  # whether the batches of this pass come from the text and contain it
        self._text_notes: list[str] = []  # all messages about the text, which are stored in the cache
        self.path = options.cache_file
        if self.path is None and options.cache:
            self.path = beside_data(self._files or [""])  # .cache for standard input, as in VW
        if self.path is not None and any(map(urls.is_url, self._files)):
            raise UsageError(
                f"{self.path}: no cache is kept of a URL, which may change unnoticed; copy the file, or leave -c out"
            )
        if self.path is not None:
            leftovers.remove(os.path.realpath(self.path))
        if self.path is not None and os.path.exists(self.path):
            self._open_cache(self.path, kill=options.kill_cache)
        elif self.path is not None and self._cache_only:
            raise DataError(
                f"{self.path}: there is no such cache, and there are no data to make it from; give the data with -d"
            )

    @property
    def _cache_only(self) -> bool:
        return self._text.paths == (None,) and no_input()

    @property
    def _files(self) -> list[str]:
        return [path for path in self._text.paths if path is not None]

    @property
    def _are_comparable(self) -> bool:
        """Return whether a cache can be compared with the data, which no pipe allows."""
        return bool(self._files) and not any(map(is_pipe, self._files))

    def _open_cache(self, path: str, kill: bool) -> None:
        """Open the existing cache, or add a note why it cannot be used; raise DataError if it is another file."""
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise DataError(
                f"{path}: the cache cannot be kept here, because this is not a regular file; give another name"
            )
        cache_only, reason = self._cache_only, ""
        with contextlib.suppress(OSError), open(path, "rb") as file:
            first = file.read(SHOWN)
            if VW_CACHE.match(first):
                reason = "it is one of Vowpal Wabbit, which xclass cannot read"
            elif first[: len(MAGIC)] not in (MAGIC, b""):
                raise DataError(
                    f"{path}: this is not a cache of xclass, so it is neither read nor replaced; give another name by "
                    "--cache_file, or move the file away"
                )
        if kill or (self._parses_each_pass and not cache_only):
            return
        try:
            with open(path, "rb") as file:
                cache = CacheReader(file, path, self._classes)
            if not self._are_comparable and not cache_only:
                reason = "data from a pipe cannot be compared with it"
            else:
                reason = stale_reason(cache.facts["key"], self._key, None if cache_only else self._files)
        except DamagedCacheError as error:
            reason = reason or error.reason
        except OSError as error:
            reason = f"it cannot be read ({error.strerror})"
        if not reason:
            self._read_from(cache)
            self._reused = True
        elif cache_only:
            raise DataError(
                f"{path}: the cache cannot be used: {reason}; give the data with -d, or the options it was made with"
            )
        else:
            self.notes.append(f"{path}: the cache is made again: {reason}")

    def _read_from(self, cache: CacheReader) -> None:
        """Read from this cache in the passes to come and restore the counts and notes of the text."""
        self.complete_cache = cache
        parser = self._text.parser
        parser.bad, parser.skipped = cache.facts["bad"], cache.facts["skipped"]
        parser.first_messages, parser.left_out = list(cache.facts["kept"]), cache.facts["left_out"]
        parser.names.add(cache.facts.get("names", []))
        if "schema" in cache.facts:
            self._schema.replace(Schema.from_record(cache.facts["schema"]))
        self._text_notes = list(cache.facts["told"])
        if self._pass == 0:
            self.notes += self._text_notes

    # state, for the run and its reports

    @property
    def name(self) -> str:
        several = not self.parsing and len(self._files) > 1  # of which a cache says nothing
        return f"one of {len(self._files)} files" if several else self._text.name

    @property
    def parsing_seconds(self) -> float:
        return self._text.parsing_seconds

    @property
    def writing(self) -> bool:
        """Return whether a cache is being written, for which the pass has to be completed."""
        return self._writer is not None

    @property
    def size(self) -> int | None:
        """Return the bytes of the data times the number of passes, None if unknown."""
        return None if self._text.size is None else self._text.size * self._passes

    def position(self) -> int:
        """Return the progress over all passes in bytes, between 0 and `size`."""
        pass_size = self._text.size or 0
        cache = self.complete_cache
        position = self._text.position() if cache is None else int(cache.fraction_read * pass_size)
        return max(0, self._pass - 1) * pass_size + position

    def fraction_read(self) -> float | None:
        """Return the fraction of this pass that is read, 0 to 1, or None if the size of the data is unknown."""
        if self.complete_cache is not None:
            return self.complete_cache.fraction_read
        return self._text.position() / self._text.size if self._text.size else None

    def report(self) -> list[str]:
        return self._text.report()

    @property
    def format(self) -> TextFormat | None:
        return self._text.format

    def about(self) -> list[str]:
        """Return the lines about the format of the data that this method has not returned before."""
        lines: list[str] = []
        if self._text.format is not None and not self._reused:
            lines, self._text.format.about = self._text.format.about, []
        return lines

    def banner(self, exact: bool) -> list[str]:
        """Return the lines about the data, its format and the cache; with VW's names if `exact` is set."""
        if exact:
            return self._vw_banner()
        lines = [data_line(self.name if self._files else "standard input", len(self._files))]
        if self._reused:
            instead = " instead of the data" if self._text.paths != (None,) else ""
            return [*(lines if instead else []), f"Cache: {self.path} is read{instead}"]
        if self.path is not None:
            lines.append(f"Cache: {self.path} is written")
        elif self._passes > 1:
            lines.append("Cache: temporary, for the passes after the first")
        return [*lines, *self.about()]

    def _vw_banner(self) -> list[str]:
        if self._reused:
            lines = [f"using cache_file = {self.path}"]
            if self._text.paths != (None,):
                lines.append("ignoring text input in favor of cache input")
            return lines
        if self.path is not None:
            first = f"creating cache_file = {self.path}"
        else:
            first = "using no cache" if self._passes == 1 else "using a temporary cache"
        return [first, f"Reading datafile = {self.name}", *self.about()]

    def close(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    # a pass

    def __iter__(self) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the batches of the next pass, each with the line of each example, counted over all files.

        If the cache turns out to be damaged, the text is parsed from the line after the last batch and the cache is
        made again.
        """
        self._pass += 1
        last = 0  # last line yielded, counted over all files
        self.parsing = self.complete_cache is None
        if self.complete_cache is not None:
            try:
                for batch, lines_before in self.complete_cache:
                    yield batch, batch.line + lines_before
                    last = lines_before + int(batch.line[-1])
                self.lines = self.complete_cache.facts["lines"]
                return
            except DamagedCacheError as error:
                self.complete_cache = None
                self.parsing = True
                if not self._text.rereadable:
                    raise
                self.notes.append(f"{self.path or 'temporary cache'}: the cache is made again: {error.reason}")
                self._text.parser.bad = self._text.parser.skipped = 0
                self._text.parser.first_messages = []
        yield from self._parse(last)

    def _parse(self, after_line: int) -> Iterator[tuple[Batch, np.ndarray]]:
        """Parse all of the text into the cache, and yield the batches from line `after_line` + 1 on."""
        writer = self._writer = self._new_writer()
        entries = None
        keyed = writer is not None and self.path is not None and self._are_comparable
        if keyed:
            entries = list(map(settled_entry, self._files))
        for batch in self._text:
            lines_before = self._text.lines_before
            self._forward_notes()
            uncut = batch
            if self._limit is not None:
                batch = batch_ops.cut(
                    batch, 0, int(np.searchsorted(batch.line, self._limit - lines_before, side="right"))
                )
            if writer is not None:
                try:
                    writer.write(batch, lines_before)
                except OSError as error:
                    self._continue_without_cache(error)
                    writer = None
            lines = batch.line + lines_before
            low = int(np.searchsorted(lines, after_line, side="right")) if after_line else 0
            if low < batch.n:
                yield batch_ops.cut(batch, low, batch.n), lines[low:]
            if self._limit is not None and (batch.n < uncut.n or lines_before + self._text.parser.lines >= self._limit):
                self.lines = lines_before + self._text.parser.lines
                break
        else:
            self.lines = self._text.lines_before
        self._forward_notes()
        if writer is not None:
            self._complete_cache(writer, entries)

    def _complete_cache(self, writer: CacheWriter, entries_before: list[dict[str, Any]] | None) -> None:
        """Complete the cache and read the next passes from it, unless the data changed during the pass.

        `entries_before` are those of the files before the pass; None if the cache is not compared with its data.
        """
        parser = self._text.parser
        key = dict(self._key)
        if entries_before is not None:
            key["files"] = entries_before
            if entries_before != list(map(file_entry, self._files)):
                self.notes.append(f"{self.path}: the cache is not kept, because the data changed while they were read")
                writer.abandon()
                self._writer = None
                return
        facts = {
            "key": key,
            "bad": parser.bad,
            "skipped": parser.skipped,
            "kept": parser.first_messages,
            "told": self._text_notes,
            "left_out": parser.left_out,
            "lines": self.lines,
        }
        if self._schema.is_known:
            facts["schema"] = self._schema.record()
        if parser.names.growing:
            facts["names"] = parser.names.names
        try:
            writer.finish(facts)
            if not self._parses_each_pass:
                self._read_from(CacheReader(writer.file, self.path or "temporary cache", self._classes))
        except OSError as error:
            self._continue_without_cache(error)
            return
        writer.abandon()
        self._writer = None

    def _new_writer(self) -> CacheWriter | None:
        """Return a writer for the cache of this pass, or None if it needs none or cannot be written."""
        if self.path is None and (self._pass >= self._passes or self._parses_each_pass):
            return None
        if self._parses_each_pass and self._pass > 1:
            return None
        try:
            return CacheWriter(self.path, self._classes, self._constant)
        except OSError as error:
            self._continue_without_cache(error)
            return None

    def _continue_without_cache(self, error: OSError) -> None:
        """Continue without a cache; raise DataError if a further pass is needed and the text cannot be read again."""
        folder = leftovers.temporary_folder() if self.path is None else os.path.dirname(os.path.realpath(self.path))
        failure = f"{self.path}: the cache cannot" if self.path is not None else f"{folder}: a temporary cache cannot"
        remedy = "set TMPDIR to another folder" if self.path is None else "give another file with --cache_file"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = f"free some space there, or {remedy}"
        space = f", {leftovers.free_space(folder)}" if error.errno in leftovers.TOO_LARGE else ""
        written = "" if self._writer is None else f"; {self._writer.size / 1e6:,.1f} MB were written"
        failure += f" be written ({error.strerror or error}{written}{space})"
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None
        if self._needed:
            raise DataError(f"{failure}; a search reads the examples from it: {remedy}")
        if self._pass < self._passes and not self._text.rereadable:
            raise DataError(f"{failure}, and data from a pipe can be read only once; {remedy}")
        self.notes.append(f"{failure}; the run continues without it")

    def _forward_notes(self) -> None:
        """Move the notes of the reader to `notes`, and remember them for the cache."""
        while self._text.notes:
            note = self._text.notes.pop(0)
            self._text_notes.append(note)
            self.notes.append(note)


def data_line(name: str, files: int) -> str:
    """Return the line that names the data at the start of a run: the first of some files and the number of others."""
    more = files - 1
    return f"Data: {name}" + (f" and {more} more file{'s' * (more > 1)}" if more > 0 else "")


def no_input() -> bool:
    """Return whether standard input is closed, a terminal or /dev/null."""
    try:
        return stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return sys.stdin is None
