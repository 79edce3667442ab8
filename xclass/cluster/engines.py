"""Define what the engines of a cluster have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..cache.source import data_line
from ..run.run import Engine
from ..text.text_format import TextFormat
from .part_progress import JoinedProgress
from .part_worker import NO_COST, Cost, PartResult, added, cost_line
from .session import Session
from .shards import DataPart, PartFiles


class RemoteSource:
    """Have the attributes of a `cache.source.Source` that a run needs."""

    format: TextFormat | None = None
    parsing = False
    parsing_seconds = 0.0

    def __init__(self, name: str, size: int | None, banner: list[str]) -> None:
        self.name, self.size, self._banner = name, size, banner
        self.notes: list[str] = []
        self.told: list[str] = []  # lines about the format that are not shown yet
        self.read: dict[tuple[int, int], int] = {}  # bytes read, by pass and part
        self.reports: dict[int, Sequence[str]] = {}  # for each part, lines about malformed lines

    def banner(self, exact: bool) -> list[str]:
        return self._banner  # which the engine has chosen by `exact`

    def about(self) -> list[str]:
        lines, self.told = self.told, []
        return lines

    def report(self) -> list[str]:
        return [line for _, lines in sorted(self.reports.items()) for line in lines]

    def position(self) -> int:
        return sum(self.read.values())

    def fraction_read(self) -> float | None:
        """Return None: learners in this process read nothing."""
        return None

    def close(self) -> None:
        """Do nothing, because the workers close their files."""


class ClusterEngine(Engine):
    """Let the workers of a cluster read the data in parts, and learn or predict."""

    new_progress = JoinedProgress

    def __init__(self, session: Session, files: PartFiles) -> None:
        self._session, self._files = session, files
        self._workers: Sequence[Any] = ()
        self._costs: list[Cost] = []

    def _start_workers(self, worker: type, count: int) -> None:
        self._workers = self._session.actors(worker, count, os.getcwd(), self.run.config)
        self._costs = [NO_COST] * count

    def source(self) -> Any:
        paths, sizes = self._files.paths, [size for size in self._files.sizes if size is not None]
        compressed = any(path.endswith((".gz", ".zst")) for path in paths)  # text that is read is larger
        known = len(sizes) == len(paths) and not compressed
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        as_vw = ["using no cache", f"Reading datafile = {paths[0]}{more}"]
        banner = as_vw if self.run.options.vw_exact else [data_line(paths[0], len(paths))]
        return RemoteSource(paths[0], sum(sizes) * self.run.config.passes.passes if known else None, banner)

    def _add(self, part: DataPart, worker: int, result: PartResult) -> None:
        """Add what a worker, from 0, tells about a part, and show what is due."""
        run, reader, progress = self.run, self.run.reader, self.run.progress
        assert isinstance(reader, RemoteSource) and isinstance(progress, JoinedProgress)
        self._costs[worker] = added(self._costs[worker], result.cost)
        run.model.counted.add(result.examples)
        run.model.preparation.add_idle(result.idle)
        run.model.reduction.add_tallies(result.tallies)
        reader.read[progress.passes, part.number] = result.bytes_read
        if result.report is not None:
            reader.reports[part.number] = result.report
        for row in progress.add(result.counts):
            run.console.table_line(row)
        run.warn(result.notes)
        run.console.move_bar(reader.position, progress.examples)

    def end(self) -> list[str]:
        return [cost_line(i, cost) for i, cost in enumerate(self._costs, 1)]
