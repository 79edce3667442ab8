"""Compare the test errors of models averaged over workers with those of one process and of Vowpal Wabbit's nodes.

    python -m scripts.cluster.averages DATA_DIR --sets spelling,clinc150,wordnet,aloi27 --workers 2,4
    python -m scripts.cluster.averages DATA_DIR --sets panlex,ptb --sync_every 5000,20000
    python -m scripts.cluster.averages DATA_DIR --sets clinc150 --vw --kill

DATA_DIR/NAME has train.vw and test.vw. Each set is learned in one pass by one process, and with each number of
--workers and of --sync_every, whose default is that of xclass. With --holdout, all is learned from the first nine
tenths of train.vw and tested on the last one. A row has the test errors in percent, their quotient, and for each worker
the mean of the bytes that it has sent and received, of its CPU seconds and of the seconds that it has waited.

With --vw, Vowpal Wabbit learns a quarter of the lines on each of four nodes, which average their models by its spanning
tree at the end of the pass, and for comparison all lines in one process. With --kill, one of the nodes is killed while
it learns its lines 20 times over, and the nodes that then wait and do nothing are counted.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path

from scripts.cluster import spanning_tree
from scripts.cluster.runs import Run, head, learn, train_file
from scripts.lib.command_line import names, numbers, run, work_folder
from scripts.lib.holdout import split_train
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import test_error
from xclass.cluster.options import SYNC_EVERY

CASES = {  # set -> options of xclass, and of VW
    "spelling": (["--multiclass"], ["--oaa", "3497", "-b", "24"]),
    "wordnet": (["--multiclass"], ["--ect", "20307", "-b", "24"]),
    "aloi27": (["--means", "--dense", "f:129"], ["--oaa", "1000", "-b", "24"]),
    "clinc150": (["--multiclass"], ["--oaa", "150", "-b", "20"]),
    "panlex": (["--oaa", "2111"], ["--oaa", "2111", "-b", "24"]),
    # of VW's reductions for many classes, those whose trees do not change can be averaged; --oaa takes hours here
    "ptb": (["--multiclass"], ["--ect", "10000", "-b", "24"]),
    "books": (["--cpt", "54349"], ["--ect", "54349", "-b", "24"]),
}
VW = ["--loss_function", "logistic", "--quiet"]
NODES = 4
REPEATED = 20  # times that a node learns its lines if one is to be killed, so that there is time for this
PATIENCE = 20.0  # seconds without use of a processor after which nodes of VW are taken to wait for ever


def error_of(model: Path, test: Path, folder: Path, tool: str = "xclass") -> float:
    """Return the error of a model on a test file, in percent."""
    predictions = folder / "predictions"
    words = ["-d", str(test), "-t", "-i", str(model), "-p", str(predictions), "--quiet"]
    measure([*TOOLS[tool], *words], folder)
    return 100 * test_error(test, predictions)


def cells_of(made: Run) -> list[str]:
    """Return the cells of a table about the costs of a run."""
    if not made.costs:
        return ["", "", f"{made.cpu:.1f}", ""]
    sent, received, cpu, waiting = (
        statistics.mean(values)
        for values in zip(*[(c.sent, c.received, c.cpu, c.waiting) for c in made.costs], strict=True)
    )
    return [f"{sent / 1e6:.1f}", f"{received / 1e6:.1f}", f"{cpu:.1f}", f"{waiting:.1f}"]


def row(*cells: str) -> None:
    """Print a row of the table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def compare(name: str, options: argparse.Namespace, folder: Path) -> None:
    """Print the rows of a set."""
    data = head(train_file(options.data_dir, name), options.lines, folder)
    test = train_file(options.data_dir, name, "test")
    if options.holdout:
        (folder / "train.vw").unlink(missing_ok=True)
        (folder / "train.vw").symlink_to(data)
        for part in ("first.vw", "last.vw"):
            (folder / part).unlink(missing_ok=True)
        data, test = (folder / part for part in split_train(folder))
    own, vw = CASES[name]
    own = own + options.more
    if options.workers:
        one = learn("one", own, data, folder)
        first = error_of(one.model, test, folder)
        row(name, " ".join(own), "one process", f"{first:.2f}", "1", *cells_of(one))
        for workers, every in itertools.product(options.workers, options.sync_every):
            cluster = ["--workers", str(workers), "--sync_every", str(every)]
            cluster += ["--ray", options.ray] if options.ray else []
            many = learn("many", [*own, *cluster], data, folder)
            error = error_of(many.model, test, folder)
            row(name, "", " ".join(cluster[:4]), f"{error:.2f}", f"{error / first:.3f}", *cells_of(many))
    if options.vw:
        compare_vw(name, vw, data, test, folder)
    if options.kill:
        waiting = spanning_tree.left_waiting(quarters(data, folder, REPEATED), [*vw, *VW], folder, PATIENCE)
        print(
            f"{name}: a node of Vowpal Wabbit was killed; {len(waiting)} of the other {NODES - 1} still wait after "
            f"{PATIENCE:g} seconds in which they used no processor"
        )


def compare_vw(name: str, words: Sequence[str], data: Path, test: Path, folder: Path) -> None:
    """Print the rows of Vowpal Wabbit."""
    alone = folder / "alone.model"
    measure([*TOOLS["vw"], "-d", str(data), *words, *VW, "-f", str(alone)], folder)
    first = error_of(alone, test, folder, "vw")
    row(name, "VW " + " ".join(words), "one process", f"{first:.2f}", "1", "", "", "", "")
    merged = spanning_tree.learn(quarters(data, folder), [*words, *VW], folder)
    error = error_of(merged, test, folder, "vw")
    row(name, "", f"{NODES} nodes, averaged at the end", f"{error:.2f}", f"{error / first:.3f}", "", "", "", "")


def quarters(data: Path, folder: Path, times: int = 1) -> list[Path]:
    """Write consecutive lines of a file to a file for each node, so many times."""
    lines = data.read_bytes().splitlines(keepends=True)
    paths = [folder / f"quarter{i}.vw" for i in range(NODES)]
    for i, path in enumerate(paths):
        path.write_bytes(b"".join(lines[i * len(lines) // NODES : (i + 1) * len(lines) // NODES]) * times)
    return paths


def main(words: list[str] | None = None) -> None:
    """Print a table of test errors and costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    parser.add_argument("--sets", type=names, required=True, metavar="A,B")
    parser.add_argument("--workers", type=numbers, default=[], metavar="N,N")
    parser.add_argument("--sync_every", type=numbers, default=[SYNC_EVERY], metavar="N,N")
    parser.add_argument("--holdout", action="store_true", help="test on the last tenth of train.vw")
    parser.add_argument("--lines", type=int, help="number of lines to learn from; all by default")
    parser.add_argument("--vw", action="store_true", help="compare Vowpal Wabbit, too")
    parser.add_argument("--kill", action="store_true", help="kill a node of Vowpal Wabbit")
    parser.add_argument("--ray", help="address of a cluster that is running, without which each run starts its own")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further options of xclass")
    options = parser.parse_args(words)
    if unknown := set(options.sets) - set(CASES):
        raise BenchError(f"--sets: {', '.join(sorted(unknown))} is none of {', '.join(CASES)}")
    row("set", "options", "how", "error", "ratio", "MB sent", "MB received", "CPU s", "waiting s")
    row("---", "---", "---", "--:", "--:", "--:", "--:", "--:", "--:")
    with work_folder(None) as folder:
        for name in options.sets:
            compare(name, options, folder)


if __name__ == "__main__":
    run(main)
