"""Draw with matplotlib, which only the commands that draw need."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scripts.lib.processes import BenchError

PIXELS = 80  # of an inch


def plotting():
    """matplotlib's pyplot, drawing to files."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError("--plot needs matplotlib, which is not installed: pip install 'xclass[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def log_axis(area, ticks: Iterable[int] = ()) -> None:
    """Make the axis across a logarithmic one, with the names of powers of ten, or of `ticks`, alone."""
    area.set_xscale("log")
    if ticks:
        area.set_xticks(list(ticks), [str(one) for one in ticks])
    area.tick_params(axis="x", which="minor", labelbottom=False)


def name_axes(area, title: str, across: str, up: str) -> None:
    """Say what a panel shows."""
    area.set_title(title)
    area.set_xlabel(across)
    area.set_ylabel(up)
    area.legend(fontsize=8)


def save(figure, file: Path) -> None:
    """Write a picture."""
    figure.tight_layout()
    figure.savefig(file, dpi=PIXELS)
