"""Show whether a change of the code changes models: hashes of a fixed list of models, predictions and summaries.

    python -m scripts.same_models DATA_DIR > FILE            before the change
    python -m scripts.same_models DATA_DIR --check FILE      after it; names what differs, and ends with status 1

Every line has the name of a run and the first digits of three SHA-256: of the bytes of the model, of the predictions
that it makes for its training data, and of the summary without times. The runs are one pass, three passes, and one pass
in which the model is saved after half of the data and continued. A run that is refused has its message in the place of
the model. The list has every reduction and the variants that execute most of its code.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scripts.lib import in_process
from scripts.lib.command_line import new_parser, run, work_folder
from scripts.lib.processes import BenchError

LINES = 600
SETS = {"words": ("clinc150", 10), "lists": ("ml_bibtex", 2), "rows": ("isolet1", 1)}  # set, and each n-th line of it
WORDS = """
--multiclass
--multiclass --sgd --trees 2
--multiclass --max_doublings 3 --calibration c
--multiclass --trees 1 --normalize_features columns
--multiclass -q ww
--cpt 150
--cpt 150 --loss_function logistic --cpt_tree balanced
--cpt 150 --cpt_tree random --random_seed 5 --calibration c
--cpt 150 --normalize_features unit --trees 3
--cpt 150 --cpt_tree kmeans --tree_sample 200
--cpt 150 --cpt_arity 4 --cpt_alpha 0.1
--cpt 150 --cpt_arity 16 --rerank --trees 2
--oaa 150
--oaa 150 --vw_exact --loss_function logistic
--oaa 150 --oaa_subsample 10
--oaa 150 --loss_function hinge --sgd
--oaa 150 --l1 0.0001
--recall_tree 150
--recall_tree 150 --vw_exact --randomized_routing
--recall_tree 150 --router_weight paper --recall_stop paper --node_only
--log_multi 150
--log_multi 150 --vw_exact
--log_multi 150 --max_predictors 30 --swap_resistance 1 --loss_function logistic
--ect 150
--ect 150 --error 3 --vw_exact
--ect 150 --loss_function logistic --error 1
--random_tree 150
--random_tree 150 --layout vw --loss_function hinge --sgd
--mach 150
--mach 150 --sgd --random_seed 7
--softmax_tree 150 --depth 2
--softmax_tree 150 --depth 1 --tree_init whole --tao_tolerance 0
--softmax_tree 150 --depth 2 --tree_init prototypes --zero_loss beta --beta 10
--softmax_tree 150 --depth 2 --tree_init random --zero_loss remove
--sparse_experts 150 --experts 3
--sparse_experts 150 --experts 2 --group_lasso 0.002 --prune_every 30
--loss_function squared
--loss_function quantile --sgd
--loss_function squared --vw_exact
"""
LISTS = """
--multilabel
--multilabel --arow_r 0.3 --threshold 0.2
--multilabel --max_doublings 3 --calibration c
--multilabel_oaa 160
--multilabel_oaa 160 --vw_exact --loss_function logistic
--multilabel_oaa 160 --threshold 0.2
--plt 160
--plt 160 --plt_tree kmeans --tree_sample 200
--plt 160 --plt_tree balanced --threshold 0.2
--plt 160 --plt_tree random --random_seed 5
"""
ROWS = """
--means
--means --calibration c
--multiclass
--oaa 26
"""
COLUMNS = 617  # of a line of isolet1
MODELS = {"words": WORDS, "lists": LISTS, "rows": ROWS}
PASSES = {"1": (), "3": ("--passes", "3"), "resumed": ()}
UNEQUAL = ("seconds =", "compiling", "compiled in")  # parts of lines that differ from run to run


def main() -> int:
    """Print a line for each run, or compare them with a file."""
    options = new_parser(__doc__)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--check", type=Path, metavar="FILE", help="lines of this command to compare with")
    options.add_argument("--only", default="", metavar="TEXT", help="only runs whose names contain it")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    known = dict(line.rsplit("\t", 1) for line in given.check.read_text().splitlines()) if given.check else {}
    data_dir, different = given.data_dir.absolute(), []
    with work_folder(given.work) as work, contextlib.chdir(work):
        for kind, (name, each) in SETS.items():
            write(kind, lines(data_dir / name / "train.vw.gz", each))
        for title, hashes in runs(given.only):
            print(title, hashes, sep="\t", flush=True)
            if given.check and known.get(title) != hashes:
                different.append(f"{title}\n    before {known.get(title)}\n    now    {hashes}")
    if given.check:
        print(f"{len(different)} of them differ", *different, sep="\n", file=sys.stderr)
    return bool(different)


def lines(path: Path, each: int) -> list[str]:
    """Return the first lines of a data set, one of each `each`."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(itertools.islice(file, 0, LINES * each, each))


def write(kind: str, text: list[str]) -> None:
    """Write the two halves of a set to the working folder."""
    middle = len(text) // 2
    for half, part in (("1", text[:middle]), ("2", text[middle:])):
        if kind != "rows":
            Path(f"{kind}{half}.vw").write_text("".join(part), encoding="utf-8")
            continue
        rows = np.zeros((len(part), COLUMNS), np.float32)
        for row, line in zip(rows, part, strict=True):
            for word in line.split("|f")[1].split():
                column, _, value = word.partition(":")
                row[int(column) - 1] = float(value)
        np.save(f"{kind}{half}.npy", rows)
        np.save(f"{kind}{half}.labels.npy", np.array([int(line.split()[0]) for line in part]))


def runs(only: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the hashes of each run."""
    for kind, models in MODELS.items():
        ending = "npy" if kind == "rows" else "vw"
        halves = [f"{kind}1.{ending}", f"{kind}2.{ending}"]
        for model in models.strip().splitlines():
            words = model.split()
            for passes, more in PASSES.items():
                title = f"{kind} {model} ({passes})"
                if only in title:
                    yield title, hashes_of(words, more, halves, passes == "resumed")


def hashes_of(words: list[str], more: tuple[str, ...], halves: list[str], resumed: bool) -> str:
    """Learn, save and predict; return the hashes of the model, the predictions and the summary."""
    data = [word for half in halves for word in ("-d", half)]
    if resumed:
        status, said = call([*words, "-d", halves[0], "-f", "half.model"])
        if status == 0:
            status, said = call(["-i", "half.model", "-d", halves[1], "-f", "model"])
    else:
        status, said = call([*words, *more, *data, "-f", "model"])
    if status != 0:
        return f"status {status}: {said.splitlines()[-1]}"
    exact = [word for word in words if word == "--vw_exact"]
    status, predicted = call(["-t", "-i", "model", *exact, *data, "-p", "predictions"])
    if status != 0:
        raise BenchError(f"{' '.join(words)}: {predicted}")
    return " ".join(map(digest, (Path("model").read_bytes(), Path("predictions").read_bytes(), said.encode())))


def call(words: list[str]) -> tuple[int, str]:
    """Execute a command line in this process; return its status, and what it says that does not depend on time."""
    ended = in_process.xclass(words)
    return ended.status, without_times(ended.err + ended.out.decode())


def without_times(said: str) -> str:
    """Return what a run has said without lines and cells that differ from run to run."""
    lines = [line for line in said.splitlines() if not any(part in line for part in UNEQUAL)]
    # rows of the iterations of --softmax_tree begin with their number and end with a column of seconds
    cell = re.compile(r"^(\s*\d+ .*\S)(\s+\S+)$")
    return "\n".join(cell.sub(lambda row: row[1] + " " * (len(row[2]) - 4), line) for line in lines)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    run(main)
