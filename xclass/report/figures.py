"""Draw the figures of the report by matplotlib, as SVG that is part of the page.

Text stays text, so that it scales and can be searched. Colours become CSS variables, so that the page can have a light
and a dark scheme. Figures are as wide as a phone, and the page enlarges them where there is space. No figure contains
a time or a random number, so that equal contents give equal bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..array_types import Float64s
from ..errors import UsageError, install_extra
from .failing import Bin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.6  # inches of 100 pixels
ROW, MARGIN = 0.27, 0.95  # inches: height of a bar, and of everything above and below the bars
COLOURS = {  # what is drawn -> the CSS variable that replaces it
    "#010203": "--ink", "#010204": "--muted", "#010205": "--line", "#010206": "--first",
}  # fmt: skip
INK, MUTED, LINE, FIRST = COLOURS
STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "xclass", "font.family": "DejaVu Sans", "font.size": 8,
    "text.parse_math": False, "axes.unicode_minus": True, "axes.edgecolor": MUTED, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "text.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": LINE, "grid.linewidth": 0.8, "axes.grid": True, "axes.axisbelow": True, "lines.linewidth": 1.8,
    "figure.constrained_layout.use": True,
}  # fmt: skip
MISSING = f"xclass report draws its figures by matplotlib, which is not installed; {install_extra('plot')}"


def check_installed() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UsageError(MISSING) from None


def version() -> str:
    import matplotlib

    return matplotlib.__version__


def _drawn(name: str, title: str, text: str, height: float, draw: Callable[[Axes], None]) -> str:
    """Return a figure as an `svg` element; `name` is the prefix of its ids, and screen readers say title and text."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):
        figure = Figure(figsize=(WIDTH, height), dpi=100)
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.subplots()
        axes.patch.set_alpha(0)
        draw(axes)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inlined(file.getvalue(), name, title, text)


def _inlined(svg: str, name: str, title: str, text: str) -> str:
    """Return the `svg` element of a file without anything outside the page, with its own ids and the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, f"var({variable})")
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None  # matplotlib writes it
    head = (
        f'<svg viewBox="{box[1]}" role="img" aria-labelledby="{name}-title {name}-text" class="figure">\n'
        f'<title id="{name}-title">{title}</title>\n<desc id="{name}-text">{text}</desc>'
    )
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    return re.sub(r"\n\s*", "\n", svg).strip()


def error_by_frequency(bins: Sequence[Bin], axis: str) -> str:
    from matplotlib.ticker import PercentFormatter

    def draw(axes: Axes) -> None:
        place = range(len(bins))
        axes.barh(place, [one.error for one in bins], height=0.68, color=FIRST)
        axes.set_yticks(place, [one.text for one in bins])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.15)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
        axes.grid(axis="y", visible=False)
        for at, one in enumerate(bins):
            axes.annotate(
                f"{one.error:.0%}", (one.error, at), xytext=(3, 0), textcoords="offset points", va="center"
            )  # fmt: skip
        axes.set_xlabel("error")
        axes.set_title(axis, loc="left", fontsize=8, x=0)

    parts = "; ".join(f"{one.text} examples: {one.error:.0%}" for one in bins)
    return _drawn(
        "frequency", "Error by class frequency", f"Error of the classes with {parts}.", MARGIN + ROW * len(bins), draw
    )


def calibration(centre: Float64s, weight: Float64s, forecast: Float64s, observed: Float64s) -> str:
    """Draw the share of right answers of bins of examples against the mean probability of their answers.

    The arguments are float64[bins]: middle of the probabilities of a bin, number of examples, and both shares.
    """

    def draw(axes: Axes) -> None:
        axes.bar(centre, 0.3 * weight / weight.max(), width=0.085, color=LINE, label="number of examples")
        axes.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1, label="ideal")
        axes.plot(forecast, observed, "o-", color=FIRST, markersize=4, label="measured")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("probability of the answer")
        axes.set_ylabel("share of right answers")
        axes.legend(
            loc="lower left", bbox_to_anchor=(-0.12, 1.0), ncols=3, frameon=False, handlelength=1.4,
            columnspacing=1.0, fontsize=7.5, borderaxespad=0.2,
        )  # fmt: skip

    parts = "; ".join(f"{mean:.2f}: {right:.2f}" for mean, right in zip(forecast, observed, strict=True))
    return _drawn("calibration", "Calibration", f"Mean probability and share of right answers: {parts}.", 3.0, draw)
