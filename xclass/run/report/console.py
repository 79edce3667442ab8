"""Write the messages of a run to standard error: rows, warnings, a progress bar and the summary."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ...api import progress_table
from ...api.configuration import Config
from ...api.progress import Progress
from ...kernels import compiling
from ...reductions.core.base import Reduction
from ...system import memory, terminal

WARNING = "warning:"
# progress bars, at most 79 characters wide in a window of 80 columns
READING = "{percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"
READING_UNKNOWN = "{n_fmt}B in {elapsed}{postfix}"  # if the size of the data is not known
STEPS = "{percentage:3.0f}%|{bar}| {n_fmt} of {total_fmt} {unit}, {elapsed}, {remaining} left"


class Console:
    """Write lines for the user, on a terminal with a progress bar below them; if `quiet`, only what cannot be turned
    off. The same holds for the lines about the compiling of kernels.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        compiling.tell(None if quiet else self.line)
        self._bar: Any = None

    def line(self, text: str) -> None:
        """Write one line; characters that are not printable are escaped."""
        mark = WARNING if text.startswith(WARNING) else ""
        with contextlib.nullcontext() if self._bar is None else self._bar.external_write_mode(file=self._bar.fp):
            terminal.error_line(text[len(mark) :], mark, terminal.YELLOW)

    def table_line(self, text: str) -> None:
        """Write a line of the progress table; a terminal that is too narrow for VW's columns gets narrower ones."""
        is_narrow = 0 < terminal.error_columns() < progress_table.WIDTH
        self.line(progress_table.narrowed(text) if is_narrow else text)

    def warn(self, note: str) -> None:
        """Write a warning unless `quiet`."""
        if not self.quiet:
            self.line(f"warning: {note}")

    def info(self, text: str) -> None:
        """Write a line unless `quiet`."""
        if not self.quiet:
            self.line(text)

    def start_steps(self, count: int, unit: str) -> None:
        """Show, on a terminal, a bar for `count` steps of an activity other than reading, in place of any other bar."""
        self.end_bar()
        self._show_bar(total=count, unit=unit.strip(), bar_format=STEPS)

    def step(self) -> None:
        """Advance the bar by one step; may be called from any thread."""
        if self._bar is not None:
            self._bar.update()

    def start_bar(self, size: int | None) -> None:
        """Show, on a terminal, a bar for the reading of `size` bytes in all passes, None if it is not known.

        It shows the share that is read, the time so far and an estimate of the time left, both in minutes and seconds,
        the speed and the memory in use. Without a size, there are neither share nor time left.
        """
        layout = READING_UNKNOWN if size is None else READING
        self._show_bar(total=size, bar_format=layout, unit_scale=True, unit_divisor=1000)

    def _show_bar(self, **settings: Any) -> None:
        if self.quiet or not terminal.shows_errors():
            return
        from tqdm import tqdm  # only terminals need it

        file = terminal.error_stream()
        self._bar = tqdm(leave=False, file=file, mininterval=0.2, dynamic_ncols=True, smoothing=0.1, **settings)

    def move_bar(self, position: Callable[[], int], examples: int) -> None:
        """Move the bar to byte `position()` of the data, and show the speed and the memory in use."""
        if self._bar is None:
            return
        speed = examples / max(self._bar.format_dict["elapsed"], 1e-3)
        self._bar.set_postfix_str(f"{speed:,.0f} examples/s, {memory.peak() / 2**20:,.0f} MB", refresh=False)
        self._bar.update(position() - self._bar.n)

    def end_bar(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class OperatorConsole(Console):
    """Write for the operator of a server: lines are dropped if standard error is closed or cannot be written."""

    def line(self, text: str) -> None:
        with contextlib.suppress(OSError):
            super().line(text)


def summary(c: Config, progress: Progress, learner: Reduction) -> list[str]:
    """Return VW's lines after the table."""
    limits = None
    if learner.tables:
        lowest, highest = learner.tables[0].range
        limits = float(lowest), float(highest)
    constant = not c.scalar.dont_output_best_constant
    return progress.summary(c.learner.loss_function, c.learner.quantile_tau, limits, constant)


def best_pass(progress: Progress, saved: int | None, stopped: bool) -> list[str]:
    """Return the line about the best pass, if there are several passes or held-out examples.

    `saved` is the number of the pass whose model is saved, None if no model is.
    """
    holdout = progress.holdout
    if holdout is None:
        return []
    if progress.passes > 1 and holdout.has_loss:
        saved_model = f"; the model saved is that of pass {saved}" if saved is not None else ""
        return [f"best pass = {holdout.best_pass}{saved_model}"]
    if not stopped and progress.passes and not holdout.has_loss:
        return ["no labelled example was held out, so no pass is the best one; see --holdout_period"]
    return []


def cost(seconds: float, examples: int) -> str:
    """Return the line about time and memory."""
    return (
        f"seconds = {seconds:.2f}, examples per second = {examples / max(seconds, 1e-9):.0f}, "
        f"peak memory = {memory.peak() / 2**20:.0f} MB"
    )
