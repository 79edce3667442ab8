"""What each part of `--multiclass` is worth: test error with one part changed at a time, on several data sets.

    python -m scripts.bench.ablation DATA_DIR --sets clinc150,reuters,spelling

Data as in compare.py; `--holdout` as in variants.py. Prints a Markdown table, a row for each change: test error in
percent, and in brackets the CPU seconds of training, of all threads.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scripts.lib.command_line import print_changes, run
from scripts.lib.data_sets import EXTRA
from scripts.lib.holdout import split_train, train_and_test

WHOLE = "--multiclass K"
CHANGES: dict[str, str] = {  # name -> words; K is the number of classes
    "as it is: 4 trees, 5 candidates each, an index of 16 slots": WHOLE,
    "1 tree": f"{WHOLE} --trees 1",
    "2 trees": f"{WHOLE} --trees 2",
    "8 trees": f"{WHOLE} --trees 8",
    "3 candidates a tree": f"{WHOLE} --candidates 3",
    "8 candidates a tree": f"{WHOLE} --candidates 8",
    "all candidates, however unlikely": f"{WHOLE} --candidate_cut 0",
    "searches keep 4 blocks": f"{WHOLE} --beam 4",
    "exact searches": f"{WHOLE} --exact",
    "no index": f"{WHOLE} --index_slots 0",
    "an index of 8 slots": f"{WHOLE} --index_slots 8 --index_bits 20",
    "16 candidates of the index": f"{WHOLE} --index_candidates 16",
    "features not weighted": f"{WHOLE} --normalize_features unit",
    "no scorers": "--cpt K --trees 4",
    "no scorers, 1 tree": "--cpt K",
    "trees with a noise of .3": f"{WHOLE} --tree_noise 0.3",
    "alpha .3": f"{WHOLE} --cpt_alpha 0.3",
    "alpha .9": f"{WHOLE} --cpt_alpha 0.9",
    "trees by k-means": f"{WHOLE} --cpt_tree kmeans",
    "nodes of 4 branches": f"{WHOLE} --cpt_arity 4",
    "rate of the trees .35": f"{WHOLE} -l 0.35",
    "rate of the trees .7": f"{WHOLE} -l 0.7",
    "rate of the scorers .2": f"{WHOLE} --rerank_rate 0.2",
    "rate of the scorers .6": f"{WHOLE} --rerank_rate 0.6",
    "examples in another order": f"{WHOLE} --shuffle 100000000",
    "examples not of length 1": f"{WHOLE} --normalize_features none",
}


def main() -> None:
    """Run every change on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--args", default="", help="more options for all of them, as one word")
    options.add_argument("--holdout", action="store_true")
    print_changes(options, CHANGES, cell)


def cell(change: str, name: str, folder: Path, classes: int, given: argparse.Namespace) -> str:
    train, test = split_train(folder) if given.holdout else ("train.vw", "test.vw")
    words = shlex.split(f"{CHANGES[change].replace('K', str(classes), 1)} {given.args} {EXTRA.get(name, '')}")
    error, took = train_and_test(folder, train, test, words)
    return f"{100 * error:.1f} ({took:.1f})"


if __name__ == "__main__":
    run(main)
