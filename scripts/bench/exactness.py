"""Whether the search of --cpt finds the most probable classes: its top 10 against the probabilities of all classes.

    python -m scripts.bench.exactness DATA_DIR --sets reuters,wordnet --args='-b 24' --examples 300

Data as in compare.py. Learns a tree from each set's training file, writes for the first examples of its test file what
--top_k 10 and what --probabilities say, and compares: the same classes, or classes of the same probability. Prints a
line per set; the exit status is 1 where one differs.
"""

from __future__ import annotations

import argparse
import re
import shlex
from itertools import islice
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, measure

CLOSE = 2e-5  # probabilities are written with six digits


def pairs(line: str) -> dict[int, float]:
    """Return class -> probability of a line of -p, without what is left for others."""
    words = (word.split(":") for word in line.split() if ":" in word)
    return {int(label): float(p) for label, p in words if label not in ("", "0")}


def differing(top: Path, every: Path) -> tuple[int, int]:
    """Return the number of examples, and of those whose best classes are not those of highest probability."""
    examples = wrong = 0
    with open(top, encoding="ascii") as some, open(every, encoding="ascii") as all_of_them:
        for line, whole in zip(some, all_of_them, strict=True):
            best, known = pairs(line), pairs(whole)
            want = sorted(known.values(), reverse=True)[: len(best)]
            same = all(abs(known[label] - p) <= CLOSE * max(p, 1e-3) for label, p in best.items())
            right = all(abs(a - b) <= CLOSE * max(b, 1e-3) for a, b in zip(best.values(), want, strict=True))
            examples += 1
            wrong += not (same and right and len(best) == min(10, len(known)))
    return examples, wrong


def main() -> int:
    """Compare on every set; return the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--args", default="")
    options.add_argument("--examples", type=int, default=300)
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    status = 0
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            with open(folder / "test.vw", "rb") as lines:
                (folder / "some.vw").write_bytes(b"".join(islice(lines, given.examples)))
            xclass = TOOLS["xclass"]
            words = ["--cpt", str(classes), *shlex.split(given.args)]
            measure([*xclass, "-d", "train.vw", *words, "-f", "e.model", "--quiet"], folder)
            for listing in (["--top_k", "10"], ["--probabilities"]):
                out = f"{listing[0][2:]}.txt"
                result = measure([*xclass, "-d", "some.vw", "-t", "-i", "e.model", *listing, "-p", out], folder)
            examples, wrong = differing(folder / "top_k.txt", folder / "probabilities.txt")
            opened = re.search(r"nodes opened by a search: (.*)", result.stderr)
            depth = re.search(r"depth = (\d+)", result.stderr)
            print(
                f"{name}: {examples - wrong} of {examples} as all classes say; opened for the best: {opened[1]}; "
                f"depth {depth[1]}",
                flush=True,
            )
            status |= wrong > 0
    return status


if __name__ == "__main__":
    run(main)
