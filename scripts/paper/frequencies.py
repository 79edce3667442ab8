"""The CPT paper's second table, on data whose examples recur: trees, a table of frequencies and the best possible loss.

    python -m scripts.paper.frequencies FOLDER [--ignore b,c] [--args='-b 24']

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, its experiment with web pages and their advertisements, whose data are proprietary.
          Next words stand in: with all words but the last ignored, a word is a page, the next one the advertisement.
Measured  The mean of (1 - f(y|x))**2 over FOLDER/test.vw, each example learned after it was predicted. In the table,
          f(y|x) is how often label y was seen with exactly the features of x, as a share of the examples of x; for the
          best possible one it is that share in the test set itself. "Equivalent" is the number of labels for which
          uniform guessing has the same loss, and the interval is Hoeffding's at 95 %. Rare pages were seen at most
          three times in training; there the paper found trees substantially better than the table.

Examples have no weights. xclass runs with the features that --ignore leaves.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import classes_in
from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import fact, hoeffding_interval, table

RARE = 3  # times that a rare page was seen in training, at most
TREES = {"random tree": "--cpt_tree random", "balanced tree": "--cpt_tree balanced", "general tree": ""}


def pairs(lines: Iterable[str], ignored: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the features and the label of every example, without the namespaces that begin with an ignored letter."""
    examples = []
    for line in lines:
        label, *spaces = line.rstrip("\n").split("|")
        examples.append(("|".join(space.strip() for space in spaces if space[:1] not in ignored), label.split()[0]))
    return examples


def rare(train: list[tuple[str, str]], test: list[tuple[str, str]], most: int) -> list[bool]:
    """Return for each test example whether its features were seen at most so many times in training."""
    single = Counter(x for x, _ in train)
    return [single[x] <= most for x, _ in test]


def table_loss(train: list[tuple[str, str]], test: list[tuple[str, str]], counts: list[bool] | None = None) -> float:
    """Return the loss of a table of frequencies, which goes on counting while it is tested, over what `counts`."""
    pair, single, losses = Counter(train), Counter(x for x, _ in train), []
    for x, y in test:
        losses.append((1 - pair[x, y] / max(1, single[x])) ** 2)
        pair[x, y] += 1
        single[x] += 1
    kept = list(itertools.compress(losses, counts or [True] * len(losses)))
    return sum(kept) / len(kept) if kept else math.nan


def best_possible(test: list[tuple[str, str]]) -> float:
    """Return the loss of the frequencies of the test set."""
    pair, single = Counter(test), Counter(x for x, _ in test)
    return sum(n * (1 - n / single[x]) ** 2 for (x, _), n in pair.items()) / len(test)


def equivalent(loss: float) -> float:
    """Return the number of labels for which uniform guessing has this loss."""
    return math.inf if loss >= 1 else 1 / (1 - math.sqrt(loss))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--ignore", type=names, default=[], metavar="A,B", help="namespaces, by their first letters")
    options.add_argument("--args", default="", help="more options for xclass, as one word")
    given = options.parse_args()
    folder = given.folder.resolve()
    words = shlex.split(given.args) + [word for space in given.ignore for word in ("--ignore", space)]
    train, test = (pairs((folder / f"{part}.vw").open(encoding="utf-8"), given.ignore) for part in ("train", "test"))
    few = rare(train, test, RARE)
    lines = [line for line in (folder / "test.vw").open(encoding="utf-8") if line.strip()]
    losses = {}
    with work_folder(None) as work:
        (work / "rare.vw").write_text("".join(itertools.compress(lines, few)), encoding="utf-8")
        for name, tree in TREES.items():
            common = [*shlex.split(tree), *words]
            learn = ["-d", str(folder / "train.vw"), "--cpt", str(classes_in(folder)), *common, "-f", "c.model"]
            measure([*TOOLS["xclass"], *learn, "--cpt_report", "losses"], work)
            found = []
            for part in (str(folder / "test.vw"), "rare.vw"):
                learns = ["-d", part, "-i", "c.model", "--cpt_report", "losses"]
                summary = measure([*TOOLS["xclass"], *learns], work).stderr if part != "rare.vw" or any(few) else ""
                found.append(fact(summary, "average squared loss"))
            losses[name] = found
    losses["table"] = [table_loss(train, test), table_loss(train, test, few)]
    losses["best possible"] = [best_possible(test), best_possible(list(itertools.compress(test, few)) or test)]
    interval, of_rare = hoeffding_interval(len(test)), hoeffding_interval(max(1, sum(few)))
    rows = [
        [name, f"{loss:.4f} ± {interval:.4f}", f"{equivalent(loss):.2f}", f"{on_rare:.4f} ± {of_rare:.4f}"]
        for name, (loss, on_rare) in losses.items()
    ]
    print(table(["method", "squared loss", "equivalent", "on rare pages"], rows))


if __name__ == "__main__":
    run(main)
