"""The data sets that stand in for those of the papers, how they are learned, and what the papers say about theirs.

A set is a folder of DATA_DIR with train.vw, test.vw and labels.txt, plain or .gz, or with the words of a text,
train.txt and test.txt, one article to a line, which scripts/convert/words.py makes VW text of. The papers' figures
are read from scripts/paper/*.sh.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "paper"))

import row
from bench import BenchError, unpack
from peers import BITS
from variants import EXTRA

HERE = Path(__file__).resolve().parent
ROOMY = ((25_000, 30), (5_000, 28))  # classes above which --oaa gets a larger table, and its bits
WORDS_OF_A_LINE = 500  # of a text, about: a cut takes so many fewer lines


@dataclass(frozen=True)
class StandIn:
    """A set, the scripts of the sets it stands for, and the options all methods get."""

    papers: tuple[str, ...]
    options: str = ""
    passes: int = 1
    crossed: str = ""  # namespace that the recall tree crosses with its path features, as the papers do
    softmax_tree: str = ""  # options that the softmax tree gets besides


SETS = {  # the quickest first
    "isolet1": StandIn(("isolet",), passes=5),
    "clinc150": StandIn(("sector",), passes=5),
    "reuters": StandIn(("rcv1",), passes=2),
    "aloi27": StandIn(("aloi",), EXTRA["aloi27"], passes=5, crossed="f"),
    "wordnet": StandIn(("odp", "wiki_small")),
    "wiki": StandIn(("ltcb",), "-q ab --cubic abc", crossed="a"),
    "ptb": StandIn(("ptb",), "--ignore d --ignore e --ignore f"),
    "books": StandIn(("ltcb",), "-q ab --cubic abc", crossed="a", softmax_tree="--tao_iterations 2"),  # of an hour each
}
METHODS = {
    name: row.METHODS[name]
    for name in ("oaa", "recall_tree", "log_multi", "filter_tree", "random_tree", "cpt", "hsm", "softmax_tree")
}
METHODS["multiclass"] = "--multiclass {K}"  # what is learned where nothing is named


def path_crosses(name: str) -> str:
    """Return the option that crosses a set's features with the path features of the recall tree; none for most sets."""
    return rf"-q '{SETS[name].crossed}\x88'" if name in SETS and SETS[name].crossed else ""


def words_of(name: str, method: str, classes: int | str) -> list[str]:
    """Return the options a method is given on a set."""
    how = SETS[name]
    words = [METHODS[method].replace("{K}", str(classes)), how.options]
    if method == "recall_tree":
        words.append(path_crosses(name))
    if method == "softmax_tree":
        words.append(how.softmax_tree)
    else:  # has a table of weights; that one keeps the examples, and its weights as they come
        bits = BITS.get(name, 24)
        if method == "oaa" and isinstance(classes, int):
            bits = next((larger for above, larger in ROOMY if classes > above), bits)
        words.append(f"-b {min(bits + 1, 26) if method == 'multiclass' else bits}")
        words.append(f"--passes {how.passes} --holdout_off" if how.passes > 1 else "")
    return shlex.split(" ".join(words))


# -- the papers' figures ---------------------------------------------------------------------------------------------


@cache
def paper(script: str) -> tuple[str, dict[tuple[str, str], float]]:
    """Return the title of a script of scripts/paper and (method, measure) -> the least figure of all its settings."""
    title, found = "", {}
    text = (HERE / "paper" / f"{script}.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        first = line.split()[:1]
        if first == ["begin"]:
            title = shlex.split(line)[2].split(",")[0]
        if first in (["row"], ["tuned"]):
            _, method, _, figures, *_ = shlex.split(line)
            for measure, value in row.figures(figures).items():
                if value is not None:
                    found[method, measure] = min(value, found.get((method, measure), value))
    return title, found


def titles(name: str) -> str:
    """Return the names of the sets that a set stands for."""
    return ", ".join(paper(script)[0] for script in SETS[name].papers)


def best(name: str, method: str, measure: str) -> list[float]:
    """Return the best figures the papers have for a method on the sets that a set stands for; each set's, if any."""
    found = [paper(script)[1].get((method, measure)) for script in SETS[name].papers]
    return [value for value in found if value is not None]


# -- the data ----------------------------------------------------------------------------------------------------------


def held(data: Path, name: str) -> bool:
    """Tell whether a folder has a set."""
    return any(row.file_in(data / name, file) for file in ("train.vw", "train.txt"))


def prepare(data: Path, name: str, work: Path, limit: int | None = None) -> tuple[Path, int]:
    """Return a folder with a set's files, unpacked, and the number of classes; `limit` takes its first examples."""
    source, folder = data / name, work / name
    if not held(data, name):
        raise BenchError(f"{source} has neither train.vw nor train.txt, plain or .gz")
    text = row.file_in(source, "train.vw") is None
    if text or limit:
        if not (folder / "labels.txt").exists():
            convert(source, folder, text, limit)
        source = folder
    return folder, unpack(source, folder)


def convert(source: Path, folder: Path, text: bool, limit: int | None) -> None:
    """Make a set of words, or of the beginning of another set."""
    kind = "txt" if text else "vw"
    files = [row.file_in(source, f"{part}.{kind}") for part in ("train", "test")]
    if None in files:
        raise BenchError(f"{source} has no test.{kind}, plain or .gz")
    program = "words" if text else "vw"
    command = [
        sys.executable,
        str(HERE / "convert" / f"{program}.py"),
        "--train",
        str(files[0]),
        "--test",
        str(files[1]),
    ]
    if text:
        command += ["--join", "--least", "2"]
    if limit:
        command += ["--limit", str(max(1, limit // WORDS_OF_A_LINE) if text else limit)]
    done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise BenchError(done.stderr.strip())
