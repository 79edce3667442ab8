"""The quickstart's clock and its last words.

    python demo/report.py run FILE COMMAND...     run the command, note in FILE how long it took and how much memory
    python demo/report.py show FOLDER             compare predictions.txt with test.vw, print the figures

Both use the standard library only.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path


def run(note: Path, command: list[str]) -> int:
    """Run a command on this terminal; write its wall time in seconds and its peak memory in bytes to `note`."""
    note.unlink(missing_ok=True)
    start = time.perf_counter()
    try:
        status = subprocess.call(command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    wall = time.perf_counter() - start
    if status == 0:
        unit = 1 if sys.platform == "darwin" else 1024
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
        note.write_text(json.dumps({"seconds": wall, "memory": memory}) + "\n", encoding="utf-8")
    return status if status >= 0 else 128 - status


def error_of(truth: Path, predictions: Path) -> float:
    """Return the share of examples whose predicted class is not the one in the data."""
    wrong = n = 0
    with open(truth, "rb") as lines, open(predictions, "rb") as answers:
        for line, answer in itertools.zip_longest(lines, answers, fillvalue=b""):
            if not line or not answer.strip():
                raise SystemExit(f"report: {predictions} does not have one prediction for each line of {truth}")
            n += 1
            wrong += int(line.split(None, 1)[0]) != int(answer.split(None, 1)[0])
    return wrong / n


def show(folder: Path) -> None:
    """Print what was learned, against two simple guesses, and what it took."""
    facts, train, test = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("facts.json", "train.json", "test.json")
    )
    error = error_of(folder / "test.vw", folder / "predictions.txt")
    print(
        f"Error on {facts['test']:,} examples of {facts['test_files']} files held out, {facts['classes']:,} classes:\n"
        f"  {error:.4f}  xclass\n"
        f"  {facts['previous_token_error']:.4f}  saying what most often followed the previous token\n"
        f"  {facts['majority_error']:.4f}  always saying {facts['majority']}, the most frequent\n"
        "Time and memory, from the start of the process to its end:\n"
        f"  training  {facts['train'] / train['seconds']:>9,.0f} examples/s, {train['seconds']:.1f} s, "
        f"{train['memory'] / 1e6:,.0f} MB\n"
        f"  testing   {facts['test'] / test['seconds']:>9,.0f} examples/s, {test['seconds']:.1f} s, "
        f"{test['memory'] / 1e6:,.0f} MB"
    )


def main() -> int:
    """Do what the first word asks for; return the exit status."""
    words = sys.argv[1:]
    if len(words) > 2 and words[0] == "run":
        return run(Path(words[1]), words[2:])
    if len(words) == 2 and words[0] == "show":
        show(Path(words[1]))
        return 0
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
