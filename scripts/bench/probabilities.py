"""How good the probabilities are: progressive and test losses of several ways to get them, and of label counts alone.

    python -m scripts.bench.probabilities DATA_DIR --sets reuters,ptb,wiki --bits 24 --oaa reuters

Data as in compare.py. For every set a row each of the conditional probability tree (general, balanced, random; squared
and logistic loss), four trees and their reranking, of `--oaa` on the sets named by --oaa (its time grows with the
classes), and of the label counts so far. Prints a Markdown table: mean squared loss (1 - p)**2 and log loss while
learning, perplexity and error on the test file, seconds of training.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import fact

WAYS = {
    "general": "--cpt {k}",
    "balanced": "--cpt {k} --cpt_tree balanced",
    "random": "--cpt {k} --cpt_tree random",
    "general, logistic": "--cpt {k} --loss_function logistic",
    "balanced, logistic": "--cpt {k} --cpt_tree balanced --loss_function logistic",
    "random, logistic": "--cpt {k} --cpt_tree random --loss_function logistic",
    "4 trees": "--cpt {k} --trees 4",
    "4 trees, reranked": "--cpt {k} --trees 4 --rerank",
    "one-against-all": "--oaa {k} --probabilities",
}


def labels_of(path: Path) -> list[int]:
    """Return the label of every line."""
    with open(path, "rb") as lines:
        return [int(line.split(None, 1)[0]) for line in lines]


def counts_alone(folder: Path) -> tuple[float, float, float, float]:
    """Progressive squared loss and log loss, test perplexity and error of saying how often each label came.

    Half an example is shared by all labels not seen so far, as its log loss has to be finite.
    """
    seen: Counter[int] = Counter()
    squared = log = known = 0.0
    train = labels_of(folder / "train.vw")
    for n, y in enumerate(train):
        p = seen[y] / (n + 0.5)
        squared += (1 - p) ** 2
        if seen[y]:
            log -= math.log(p)
            known += 1
        seen[y] += 1
    test = labels_of(folder / "test.vw")
    likely = seen.most_common(1)[0][0]
    surprise = sum(-math.log(max(seen[y], 0.5) / (len(train) + 0.5)) for y in test)
    wrong = sum(y != likely for y in test)
    return squared / len(train), log / known, math.exp(surprise / len(test)), wrong / len(test)


def try_way(folder: Path, words: list[str]) -> tuple[float, float, float, float, float]:
    """Learn and test once; return the four measures and the seconds of training."""
    xclass = TOOLS["xclass"]
    measure([*xclass, "-d", "few.vw", *words, "--quiet"], folder)  # compiles what is not compiled yet
    learned = measure([*xclass, "-d", "train.vw", *words, "-f", "p.model"], folder)
    tested = measure([*xclass, "-d", "test.vw", "-t", "-i", "p.model", "--perplexity"], folder)
    return (
        fact(learned.stderr, "average squared loss"),
        fact(learned.stderr, "average log loss"),
        fact(tested.stderr, "perplexity"),
        fact(tested.stderr, "average loss"),
        learned.wall,
    )


def main() -> None:
    """Try every way on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--bits", type=int, default=24)
    options.add_argument("--oaa", type=names, default=[], help="sets to try --oaa on")
    options.add_argument("--ways", type=lambda text: text.split(";"), default=list(WAYS), help="names, separated by ;")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    if unknown := set(given.ways) - set(WAYS):
        raise BenchError(f"--ways: {', '.join(sorted(unknown))} is none of {'; '.join(WAYS)}")
    print("| set | | squared loss | log loss | test perplexity | test error % | s |")
    print("| --- | --- | --: | --: | --: | --: | --: |", flush=True)
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            squared, log, perplexity, error = counts_alone(folder)
            print(f"| {name} | counts | {squared:.4f} | {log:.3f} | {perplexity:.1f} | {100 * error:.1f} | |")
            for way in given.ways:
                if way == "one-against-all" and name not in given.oaa:
                    continue
                words = [*WAYS[way].format(k=classes).split(), "-b", str(given.bits)]
                squared, log, perplexity, error, took = try_way(folder, words)
                losses = f"{squared:.4f} | {log:.3f} | {perplexity:.1f} | {100 * error:.1f}"
                print(f"| {name} | {way} | {losses} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    run(main)
