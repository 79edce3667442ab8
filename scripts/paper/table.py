"""Show the rows of FOLDER/rows.jsonl, which row.py made, as a Markdown table: paper, xclass, difference, time.

    python -m scripts.paper.table FOLDER TITLE

Errors and precisions are in percent; the difference is xclass less paper. Times are of training, from the start of the
process to its end, the paper's on its own machines. Rows of `--published` have the paper's figures alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scripts.lib.papers import RANKS

TITLES = {
    "error": "test error, %",
    "progressive": "progressive error, %",
    "top5": "test error of five answers, %",
    "perplexity": "perplexity",
    "squared": "squared loss",
    "covered": "labels in the leaf, %",
    "covered_perplexity": "perplexity of these",
    "train": "training error, %",
    "train_top5": "training error of five answers, %",
    "train_perplexity": "perplexity, training",
    "train_covered": "labels in the leaf, training, %",
    "train_covered_perplexity": "perplexity of these",
    **{f"p{k}": f"P@{k}, %" for k in RANKS},
    **{f"psp{k}": f"PSP@{k}, %" for k in RANKS},
    **{f"online_p{k}": f"P@{k} before learning, %" for k in RANKS},
    "milliseconds": "ms an example",
    "megabytes": "model, MB",
}
DIGITS = {"squared": 4, "perplexity": 0, "covered_perplexity": 0, "covered": 1, "milliseconds": 3, "megabytes": 1}
HEAD = ("method", "setting", "measure", "paper", "xclass", "difference", "s", "paper's s")


def number(value: float | None, digits: int = 2, sign: str = "") -> str:
    """Return a figure as the table shows it, nothing for None."""
    return "" if value is None else f"{value:{sign},.{digits}f}"


def spread(row: dict, kind: str, name: str, digits: int) -> str:
    """Return the standard deviation of a measure as it follows the mean, nothing if there is none."""
    value = row.get(kind, {}).get(name)
    return "" if value is None else f" ± {number(value, digits)}"


def cells(row: dict) -> list[list[str]]:
    """Return the lines of one method: one for each measure, times in the first."""
    lines = []
    paper, values = row["paper"], row["found"]
    for name in [measure for measure in paper if measure != "seconds"]:
        digits = DIGITS.get(name.removeprefix("train_"), 2)
        value = values.get(name)
        both = value is not None and paper[name] is not None
        text = number(value, digits) or ("failed" if "failed" in row else "")
        first = not lines
        lines.append(
            [
                row["method"] if first else "",
                row["setting"] if first else "",
                TITLES[name],
                number(paper[name], digits) + spread(row, "of_paper", name, digits),
                text + spread(row, "deviations", name, digits),
                number(value - paper[name], digits, "+") if both else "",
                number(values.get("seconds"), 1) if first else "",
                number(paper.get("seconds"), 0) if first else "",
            ]
        )
    return lines


def table(rows: list[dict]) -> str:
    """Return the Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "| --- | --- | --- |" + " --: |" * (len(HEAD) - 3)]
    lines += ["| " + " | ".join(line) + " |" for row in rows for line in cells(row)]
    return "\n".join(lines)


def main() -> int:
    """Print the table; return 1 if a row failed."""
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    path = Path(sys.argv[1]) / "rows.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    if not rows:
        print("no rows: xclass has none of the methods asked for")
        return 0
    print(f"\n{sys.argv[2]}\n\n{table(rows)}")
    failed = [row for row in rows if "failed" in row]
    for row in failed:
        print(f"\nfailed: {row['method']}, {row['setting']}: {row['failed']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
