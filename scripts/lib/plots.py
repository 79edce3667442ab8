"""Draw figures with matplotlib, which only the commands with --plot need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scripts.lib.processes import BenchError
from xclass.errors import install_extra

PIXELS = 80  # per inch


def plotting():
    """Return matplotlib's pyplot, set up to draw to files."""
    try:
        import matplotlib
    except ImportError:
        raise BenchError(f"--plot needs matplotlib, which is not installed; {install_extra('plot')}") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def log_axis(area, ticks: Iterable[int] = ()) -> None:
    """Make the x axis logarithmic, with labels at 1, 2 and 5 times powers of ten, or at `ticks`."""
    from matplotlib import ticker

    area.set_xscale("log")
    if ticks:
        area.set_xticks(list(ticks), [str(tick) for tick in ticks])
    else:
        area.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        area.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    area.tick_params(axis="x", which="minor", labelbottom=False)


def label_points(area, points: Sequence[tuple[float, float]], labels: Sequence[str], size: float = 7) -> list:
    """Write a label beside each point so that it covers no other label or point; return matplotlib's text objects.

    The layout of the figure must be final. Positions are tried from near to far, and a thin line connects a label to
    its point if they are far apart.
    """
    canvas = area.figure.canvas
    canvas.draw()  # makes the limits of the axes final
    renderer = canvas.get_renderer()
    frame = area.get_window_extent(renderer)
    at = area.transData.transform(list(points))
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    texts = []
    for (x, y), point, label in sorted(zip(at, points, labels, strict=True), key=lambda item: -item[0][1]):
        text = area.text(*point, label, fontsize=size, transform=None)
        extent = text.get_window_extent(renderer)
        wide, high = extent.width, extent.height
        best = None
        for far in (6, 12, 20, 30, 42, 56, 72, 90):
            for label_x, label_y in (
                (x + far, y - high / 2), (x + far, y + far / 2), (x + far, y - far / 2 - high),
                (x - far - wide, y - high / 2), (x - far - wide, y + far / 2), (x - far - wide, y - far / 2 - high),
                (x - wide / 2, y + far), (x - wide / 2, y - far - high),
            ):  # fmt: skip
                box = (label_x - 1, label_y - 1, label_x + wide + 1, label_y + high + 1)
                inside = box[0] > frame.x0 and box[2] < frame.x1 and box[1] > frame.y0 and box[3] < frame.y1
                if inside and not any(_overlap(box, other) for other in taken):
                    best = (label_x, label_y, far, box)
                    break
            if best:
                break
        if best is None:
            raise BenchError(f"there is no space for the label {label!r}: make the figure larger")
        label_x, label_y, far, box = best
        text.set_position((label_x, label_y))
        taken.append(box)
        texts.append(text)
        if far > 12:
            near = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
            ends = area.transData.inverted().transform([(x, y), near])
            area.plot(ends[:, 0], ends[:, 1], color="grey", linewidth=0.5, zorder=1)
    return texts


def _overlap(a: tuple, b: tuple) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
