"""Extract results from the summaries and predictions of runs, store them in files, and format tables."""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from scripts.lib.processes import BenchError


def table_row(line: str) -> tuple[float, int] | None:
    """Return average loss and number of examples of a row of the progress table; None for any other line."""
    words = line.split()
    try:
        return (float(words[0]), int(words[2])) if len(words) == 7 and float(words[1]) >= 0 else None
    except ValueError:
        return None


def test_error(data: Path, predictions: Path) -> float:
    """Return the share of examples whose predicted class is wrong."""
    wrong = n = 0
    with open(data, "rb") as truth, open(predictions, "rb") as predicted:
        for line, prediction in itertools.zip_longest(truth, predicted):
            if line is None or prediction is None:
                raise BenchError(f"{data} and {predictions} differ in length")
            if not line.strip():
                continue
            n += 1
            wrong += int(line.split(None, 1)[0]) != float(prediction.split(None, 1)[0])
    return wrong / n


def binomial_interval(share: float, n: float) -> float:
    """Return half of the interval at 95 % of a share of n examples, by the normal approximation."""
    return 1.96 * math.sqrt(share * (1 - share) / n)


def hoeffding_interval(n: float) -> float:
    """Return half of the interval at 95 % of a mean of n numbers between 0 and 1."""
    return math.sqrt(math.log(2 / 0.05) / (2 * n))


def chi_squared_test(share: float, n: float, other: float, m: float) -> float:
    """Return p of the N - 1 chi-squared test that shares of n and of m examples have the same expectation."""
    both = (share * n + other * m) / (n + m)
    variance = both * (1 - both) * (1 / n + 1 / m)
    if not variance:
        return 1.0
    statistic = (n + m - 1) / (n + m) * (share - other) ** 2 / variance
    return math.erfc(math.sqrt(statistic / 2))


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean, or NaN if there are no values."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


class ResultStore:
    """Store measurements in a JSON file as records with their keys, so that none is made twice."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.records: list[dict] = json.loads(path.read_text(encoding="utf-8")) if path and path.exists() else []

    def get(self, key: dict, make: Callable[[], dict]) -> dict:
        """Return the result stored for a key; if there is none, call `make` and store its result."""
        for record in self.records:
            if all(record.get(name) == value for name, value in key.items()):
                return {name: value for name, value in record.items() if name not in key}
        result = make()
        self.records.append({**key, **result})
        if self.path:
            self.path.write_text(lines_of(self.records), encoding="utf-8")
        print(f"{key}: {result}"[:300], file=sys.stderr, flush=True)
        return result


def lines_of(records: list[dict]) -> str:
    """Return records as JSON, one a line."""
    return "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table whose first column is aligned to the left, as are the others that have no figures."""
    heads, rows = list(heads), [list(row) for row in rows]
    cells = [[row[i] for row in rows if row[i]] for i in range(len(heads))]
    of_figures = [i > 0 and all(re.match(r"[*> .+-]*\d", cell) for cell in own) for i, own in enumerate(cells)]
    lines = [heads, ["--:" if right else "---" for right in of_figures], *rows]
    return "\n".join(re.sub(r"  +", " ", f"| {' | '.join(row)} |") for row in lines)
