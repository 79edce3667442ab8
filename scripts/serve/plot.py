"""Draw what `bench` and `http_bench` have measured: throughput and latency of the line protocol and of HTTP.

    python -m scripts.serve.bench --json serving.json
    python -m scripts.serve.http_bench --python peer/bin/python --json serving.json
    python -m scripts.serve.plot serving.json serving.png

Each bar is the median over the rounds. The axes are logarithmic.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

from scripts.lib.command_line import run
from scripts.lib.plots import plotting, save

Rounds = list[dict[str, float]]


def middle(rounds: Rounds, key: str) -> float:
    """Return the median of a figure over the rounds, 0 if it was not measured."""
    return median(one.get(key, 0.0) for one in rounds)


def bars(area, title: str, groups: list[str], systems: dict[str, list[float]]) -> None:
    """Draw a group of bars for each of `groups`, one for each system; a figure of 0 is left out."""
    width = 0.8 / len(systems)
    for i, (system, values) in enumerate(systems.items()):
        at = [group + width * i for group in range(len(values)) if values[group]]
        drawn = area.bar(at, [value for value in values if value], 0.92 * width, label=system)
        area.bar_label(drawn, [f"{value:,.0f}" if value >= 10 else f"{value:.2f}" for value in values if value])
    area.set_xticks([group + width * (len(systems) - 1) / 2 for group in range(len(groups))], groups)
    area.set_yscale("log")
    area.set_title(title)
    area.margins(y=0.25)


def draw(path: Path, lines: dict[str, Rounds], http: dict[str, dict[str, Rounds]]) -> None:
    """Draw the line protocol in the upper row and HTTP in the lower one."""
    pyplot = plotting()
    figure, ((speed, latency), (http_speed, http_latency)) = pyplot.subplots(2, 2, figsize=(9.5, 7))
    bars(speed, "line protocol: lines/s", ["pipelined"], {name: [middle(of, "a_second")] for name, of in lines.items()})
    keys = {"1 client, p50": "p50_ms", "1 client, p99": "p99_ms", "50, p50": "many_p50_ms", "50, p99": "many_p99_ms"}
    times = {name: [middle(of, key) for key in keys.values()] for name, of in lines.items()}
    bars(latency, "line protocol: ms until the answer", list(keys), times)
    groups = [f"{clients} client{'s' if clients != '1' else ''}" for clients in next(iter(http.values()))]
    for area, key, title in (
        (http_speed, "a_second", "HTTP: predictions/s"),
        (http_latency, "p99_ms", "HTTP: ms until the answer, p99"),
    ):
        bars(area, title, groups, {name: [middle(of, key) for of in rounds.values()] for name, rounds in http.items()})
    latency.legend(fontsize=8)
    http_latency.margins(y=0.6)
    http_latency.legend(fontsize=8)
    save(figure, path)


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("measured", type=Path, metavar="JSON")
    parser.add_argument("picture", type=Path, metavar="PNG")
    given = parser.parse_args()
    found = json.loads(given.measured.read_text())
    draw(given.picture, found["lines"], found["http"])


if __name__ == "__main__":
    run(main)
