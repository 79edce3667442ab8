"""The CPT paper's second table, on data whose examples recur: trees, a table of frequencies and the best possible loss.

    python -m scripts.paper.frequencies FOLDER [--ignore b,c] [--args='-b 24']

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, its experiment with web pages and their advertisements, whose data are proprietary.
          Next words stand in: with all words but the last ignored, a word is a page, the next one the advertisement.
Measured  The mean of (1 - f(y|x))**2 over FOLDER/test.vw, each example learned after it was predicted. In the table,
          f(y|x) is how often label y was seen with exactly the features of x, as a share of the examples of x; for the
          best possible one it is that share in the test set itself. "Equivalent" is the number of labels for which
          uniform guessing has the same loss, and the interval is Hoeffding's at 95 %.

Examples have no weights. xclass runs with the features that --ignore leaves.
"""

from __future__ import annotations

import argparse
import math
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import classes_in
from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import hoeffding_interval, number, table

TREES = {"random tree": "--cpt_tree random", "balanced tree": "--cpt_tree balanced", "general tree": ""}


def pairs(lines: Iterable[str], ignored: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the features and the label of every example, without the namespaces that begin with an ignored letter."""
    examples = []
    for line in lines:
        label, *spaces = line.rstrip("\n").split("|")
        examples.append(("|".join(space.strip() for space in spaces if space[:1] not in ignored), label.split()[0]))
    return examples


def table_loss(train: list[tuple[str, str]], test: list[tuple[str, str]]) -> float:
    """Return the loss of a table of frequencies, which goes on counting while it is tested."""
    pair, single, total = Counter(train), Counter(x for x, _ in train), 0.0
    for x, y in test:
        total += (1 - pair[x, y] / max(1, single[x])) ** 2
        pair[x, y] += 1
        single[x] += 1
    return total / len(test)


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
    losses = {}
    with work_folder(None) as work:
        for name, tree in TREES.items():
            common = [*shlex.split(tree), *words]
            learn = ["-d", str(folder / "train.vw"), "--cpt", str(classes_in(folder)), *common, "-f", "c.model"]
            measure([*TOOLS["xclass"], *learn, "--cpt_report", "losses"], work)
            test = ["-d", str(folder / "test.vw"), "-i", "c.model", "--cpt_report", "losses"]
            losses[name] = number(measure([*TOOLS["xclass"], *test], work).stderr, "^average squared loss =")
    train, test = (pairs((folder / f"{part}.vw").open(encoding="utf-8"), given.ignore) for part in ("train", "test"))
    losses["table"], losses["best possible"] = table_loss(train, test), best_possible(test)
    interval = hoeffding_interval(len(test))
    rows = [[name, f"{loss:.4f} ± {interval:.4f}", f"{equivalent(loss):.2f}"] for name, loss in losses.items()]
    print(table(["method", "squared loss", "equivalent"], rows))


if __name__ == "__main__":
    run(main)
