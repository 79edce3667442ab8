"""Compare models that were spread over workers with those of one process, byte for byte, while workers are killed.

    python -m scripts.cluster.exactness DATA_DIR --sets panlex,wordnet,ptb,clinc150 --kills 5

DATA_DIR/NAME/train.vw is learned by one process and with each number of workers, and the models and predictions are
compared. Then it is learned with the last number of workers until in --kills runs a worker chosen at random was killed,
as by `kill -9`, at a random time. CPU seconds are those of the process that was started and of its workers. Those of
Ray's own processes are shown beside them.
"""

from __future__ import annotations

import argparse
import filecmp
import random
from pathlib import Path

from scripts.cluster.runs import Run, head, learn, train_file
from scripts.lib.command_line import names, run, work_folder
from scripts.lib.processes import BenchError

CASES = {
    "panlex": ["--oaa", "2111"],
    "wordnet": ["--multiclass"],
    "ptb": ["--multiclass"],
    "clinc150": ["--softmax_tree", "150"],
}


def same(first: Run, second: Run) -> bool:
    """Return whether two runs have the same model and the same predictions."""
    pairs = ((first.model, second.model), (first.predictions, second.predictions))
    return all(filecmp.cmp(a, b, shallow=False) for a, b in pairs)


def compare(name: str, options: argparse.Namespace, folder: Path) -> bool:
    """Compare the runs on a data set, print a line for each, and return whether all are equal."""
    data = head(train_file(options.data_dir, name), options.lines, folder)
    words = CASES[name] + options.more
    one = learn("one", words, data, folder)
    print(f"{name} {' '.join(words)}: one process, {one.cpu:.1f} CPU s, {one.seconds:.1f} s", flush=True)
    equal = True
    for count in options.workers:
        cluster = ["--workers", str(count), *(["--ray", options.ray] if options.ray else [])]
        many = learn("many", [*words, *cluster], data, folder)
        equal &= same(one, many)
        print(
            f"  {count} workers: {'equal' if same(one, many) else 'DIFFERENT'}, {many.cpu:.1f} CPU s "
            f"({many.cpu / one.cpu:.2f} x), {many.seconds:.1f} s; the driver: {many.own_cpu:.1f} CPU s; "
            f"Ray: {many.services_cpu:.1f} CPU s",
            *(f"    {line}" for line in many.messages if line.startswith("worker ")), sep="\n", flush=True,
        )  # fmt: skip
    rng, runs, kills, differ = random.Random(options.seed), 0, 0, 0
    while kills < options.kills:  # a run may end before its worker is killed
        after = rng.random() * max(0.5, many.seconds - options.start_seconds)
        killed = learn("killed", [*words, *cluster], data, folder, after, rng, options.node)
        runs += 1
        kills += killed.killed
        differ += not same(one, killed)
    if options.kills:
        print(f"  {runs} runs, in {kills} of which a worker was killed: {differ} different", flush=True)
    return equal and not differ


def main(words: list[str] | None = None) -> int:
    """Compare the runs on the data sets that are named; return 1 if any differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    parser.add_argument("--sets", type=names, default=list(CASES), metavar="A,B")
    parser.add_argument("--lines", type=int, help="number of lines of each data set; all by default")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=0, help="number of runs in which a worker has to be killed")
    parser.add_argument("--start_seconds", type=float, default=4.0, help="time before and after the learning of a run")
    parser.add_argument("--ray", help="address of a cluster that is running, without which each run starts its own")
    parser.add_argument("--node", type=int, help="with --ray: process id of the raylet whose workers are killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of the command")
    options = parser.parse_args(words)
    if unknown := set(options.sets) - set(CASES):
        raise BenchError(f"--sets: {', '.join(sorted(unknown))} is none of {', '.join(CASES)}")
    if options.ray and options.kills and not options.node:
        raise BenchError("--kills with --ray needs --node, because it kills workers of this machine")
    with work_folder(None) as folder:
        return int(not all([compare(name, options, folder) for name in options.sets]))


if __name__ == "__main__":
    run(main)
