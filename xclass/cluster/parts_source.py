"""Coordinate a run whose data workers read in parts: the base of such runs, and what stands for the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..api.configuration import Config
from ..api.model_contents import Contents
from ..cache.source import data_line
from ..run import finish as ending
from ..run.run import Run
from ..text.text_format import TextFormat
from . import shards
from .costs import NO_COST, Cost, cost_line
from .part_progress import JoinedProgress
from .session import Session


class PartsRun(Run):
    """Execute a run whose data workers read in parts.

    Parameters
    ----------
    config : options of the run
    notes : lines to show at its start
    session : of the cluster
    paths, sizes : files and their bytes
    """

    progress: JoinedProgress
    new_progress = JoinedProgress

    def __init__(
        self, config: Config, notes: Sequence[str], session: Session, paths: Sequence[str], sizes: Sequence[int | None]
    ) -> None:
        super().__init__(config, notes, b"")
        self._session, self._paths, self._sizes = session, paths, sizes
        self._splittable = config.reader.format in ("auto", "vw")
        self._workers: Sequence[Any] = ()
        self._costs: list[Cost] = []

    @classmethod
    def executed(cls, config: Config, contents: Contents | None, notes: Sequence[str]) -> int:
        """Execute a run and return its exit status.

        Parameters
        ----------
        config : options of the run, those of the cluster included
        contents : contents of the model of -i, or None
        notes : lines to show at the start of the run

        Raises
        ------
        UsageError, DataError, ModelError, ClusterError
            the error that ended the run.
        """
        folder = os.getcwd()
        with Session.of_run(config) as session:
            paths = session.call(shards.files_in, folder, config.reader.data)
            sizes = session.call(shards.survey, folder, paths)
            return cls(config.with_values({"data": paths}), notes, session, paths, sizes).execute(contents)

    def _start_workers(self, worker: type, count: int) -> None:
        """Start the workers."""
        self._workers = self._session.actors(worker, count, os.getcwd(), self.config)
        self._costs = [NO_COST] * count

    def _compile(self) -> None:
        """Leave the compilation to the workers."""

    def _parts(self) -> ending.RunParts:
        """Return the parts that `finish` needs."""
        return super()._parts()._replace(costs=[cost_line(i, cost) for i, cost in enumerate(self._costs, 1)])


class PartsSource:
    """Have the attributes of a `cache.source.Source` that a run needs.

    Parameters
    ----------
    paths : all files
    sizes : their bytes, None where unknown
    passes : number of passes over the data

    Attributes
    ----------
    read : for each part, bytes of text read in this pass
    reports : for each part, lines about malformed lines
    """

    format: TextFormat | None = None
    parsing = False
    parsing_seconds = 0.0

    def __init__(self, paths: Sequence[str], sizes: Sequence[int | None], passes: int) -> None:
        self.name = paths[0]
        self._files = len(paths)
        known = [size for size in sizes if size is not None]
        self._pass_bytes = sum(known)
        compressed = any(path.endswith((".gz", ".zst")) for path in paths)  # text that is read is larger
        self.size = self._pass_bytes * passes if len(known) == len(sizes) and not compressed else None
        self._ended = 0
        self.notes: list[str] = []
        self.read: dict[int, int] = {}
        self.reports: dict[int, tuple[str, ...]] = {}

    def banner(self, exact: bool) -> list[str]:
        """Return the lines about the data for the start of the run; with VW's names if `exact` is set."""
        if not exact:
            return [data_line(self.name, self._files)]
        files = f" and {self._files - 1} more" if self._files > 1 else ""
        return ["using no cache", f"Reading datafile = {self.name}{files}"]

    def about(self) -> list[str]:
        """Return no lines about the format, which the workers detect."""
        return []

    def report(self) -> list[str]:
        """Return the lines about malformed input for the end of the run."""
        return [line for number in sorted(self.reports) for line in self.reports[number]]

    def position(self) -> int:
        """Return the progress over all passes in bytes."""
        return self._ended * self._pass_bytes + sum(self.read.values())

    def end_pass(self) -> None:
        """Begin another pass."""
        self._ended += 1
        self.read = {}

    def fraction_read(self) -> float | None:
        """Return None, because workers learn as they read."""
        return None

    def close(self) -> None:
        """Do nothing, because the workers close their files."""
