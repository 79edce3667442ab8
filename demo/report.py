"""The quickstart's clock and its last words.

    python demo/report.py run FILE COMMAND...     run the command, note in FILE how long it took and how much memory
    python demo/report.py tokens FOLDER           print places.txt, the predictions for places.vw, as tokens
    python demo/report.py show FOLDER OPTIONS...  compare WAY.predictions.txt with test.vw, print the figures; WAY is
                                                  the first of the options, such as cpt

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
    with open(truth, "rb") as lines, open(predictions, "rb") as predicted:
        for line, prediction in itertools.zip_longest(lines, predicted, fillvalue=b""):
            if not line or not prediction.strip():
                raise SystemExit(f"report: {predictions} does not have one prediction for each line of {truth}")
            n += 1
            wrong += int(line.split(None, 1)[0]) != int(prediction.split(None, 1)[0])
    return wrong / n


def show_tokens(folder: Path) -> None:
    """Print the tokens before each place, the one that follows, and the most probable ones with their probability."""
    with open(folder / "labels.txt", encoding="utf-8") as file:
        token = dict(line.rstrip("\n").split("\t") for line in file)
    with open(folder / "places.vw", encoding="utf-8") as places, open(folder / "places.txt", encoding="utf-8") as lists:
        for place, listed in zip(places, lists):  # noqa: B905 - Python 3.9 has no `strict`
            label, *namespaces = place.split("|")
            before = [words.split()[1] for words in reversed(namespaces)]
            print(f"after {' '.join(before)} comes {token[label.strip()]}; predicted:")
            pairs = (pair.split(":") for pair in listed.split())  # that of all other classes has no number
            print("   ", ", ".join(f"{token[number]} {float(p):.2f}" for number, p in pairs if number))


def show(folder: Path, options: list[str]) -> None:
    """Print what was learned with each of the options, against two simple guesses, and what it took."""
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    print(
        f"Error on {facts['test']:,} examples of {facts['test_files']} files held out, {facts['classes']:,} classes:\n"
        f"  {facts['majority_error']:.4f}  always saying {facts['majority']}, the most frequent\n"
        f"  {facts['previous_token_error']:.4f}  saying what most often followed the previous token"
    )
    took = []
    for typed in options:
        way = typed.split()[0].lstrip("-")
        print(f"  {error_of(folder / 'test.vw', folder / f'{way}.predictions.txt'):.4f}  xclass {typed}")
        for phase, action in (("train", "training"), ("test", "testing")):
            note = json.loads((folder / f"{way}.{phase}.json").read_text(encoding="utf-8"))
            speed = facts[phase] / note["seconds"]
            took.append(
                f"  --{way:11} {action:8} {speed:>9,.0f} examples/s, {note['seconds']:5.1f} s, "
                f"{note['memory'] / 1e6:,.0f} MB"
            )
    print(
        "The average loss shown while learning is lower, because the rest of a file repeats names that its beginning\n"
        "has taught; the files held out have names of their own."
    )
    print("Time and memory, from the start of the process to its end:", *took, sep="\n")


def main() -> int:
    """Execute the requested command; return the exit status."""
    words = sys.argv[1:]
    if len(words) > 2 and words[0] == "run":
        return run(Path(words[1]), words[2:])
    if len(words) > 2 and words[0] == "show":
        show(Path(words[1]), words[2:])
        return 0
    if len(words) == 2 and words[0] == "tokens":
        show_tokens(Path(words[1]))
        return 0
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
