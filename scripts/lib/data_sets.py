"""Find and unpack data sets, and define the options that methods need for them.

A set is a folder in DATA_DIR. It has train.vw, test.vw and labels.txt, plain or .gz, or else train.txt and test.txt
with an article on each line, which scripts/convert/words.py converts to VW text. The sets in `SETS` are used in place
of the data sets of the papers.
"""

from __future__ import annotations

import gzip
import itertools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.processes import ROOT, BenchError

WARM_UP_LINES = 200
FILES = ("train.vw", "test.vw", "labels.txt")
BITS = {"ptb": 26, "wiki": 26, "books": 26}
ROOMY = ((25_000, 30), (5_000, 28))  # classes above which --oaa gets a larger table, and its bits
EXTRA = {"aloi27": "-q ff"}  # options without which a set cannot be learned well, according to its description


@dataclass(frozen=True)
class StandIn:
    """Describe a set that is used in place of sets of the papers.

    Attributes
    ----------
    options : options that all methods get
    passes : number of passes
    crossed : namespace that the recall tree crosses with its path features, as in VW's demo; empty for none
    softmax_tree : additional options of the softmax tree
    """

    options: str = ""
    passes: int = 1
    crossed: str = ""
    softmax_tree: str = ""


SETS = {  # in rising order of the time they take
    "isolet1": StandIn(passes=5),
    "clinc150": StandIn(passes=5),
    "reuters": StandIn(passes=2),
    "aloi27": StandIn(EXTRA["aloi27"], passes=5, crossed="f"),
    "wordnet": StandIn(),
    "wiki": StandIn("-q ab --cubic abc", crossed="a"),
    "ptb": StandIn("--ignore d --ignore e --ignore f"),
    "books": StandIn("-q ab --cubic abc", crossed="a", softmax_tree="--tao_iterations 2"),
}


def options_of(name: str) -> str:
    """Return the options that all methods get on a set."""
    return SETS[name].options if name in SETS else ""


def bits_of(name: str, method: str, classes: int | str) -> int:
    """Return the -b of a method on a set."""
    roomy = ROOMY if method == "oaa" and isinstance(classes, int) else ()
    return next((bits for above, bits in roomy if classes > above), BITS.get(name, 24))


def passes_of(name: str) -> str:
    """Return the options for the passes through a set."""
    passes = SETS[name].passes if name in SETS else 1
    return f"--passes {passes} --holdout_off" if passes > 1 else ""


def path_crosses(name: str) -> str:
    """Return the option that crosses a set's features with the path features of the recall tree, or nothing."""
    return rf"-q '{SETS[name].crossed}\x88'" if name in SETS and SETS[name].crossed else ""


def file_in(folder: Path, name: str) -> Path | None:
    """Return the path of a file of a set, plain or .gz, or None if there is none."""
    return next((p for p in (folder / name, folder / (name + ".gz")) if p.is_file()), None)


def classes_in(folder: Path) -> int:
    """Return the number of classes of a set, the lines of its labels.txt that are not empty."""
    path = file_in(folder, "labels.txt")
    if path is None:
        raise BenchError(f"{folder} has no labels.txt")
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return sum(1 for line in file if line.strip())


def has_training_file(data: Path, name: str) -> bool:
    """Return whether a set exists in the folder `data`."""
    return any(file_in(data / name, file) for file in ("train.vw", "train.txt"))


def prepare(data: Path, name: str, work: Path) -> tuple[Path, int]:
    """Unpack the files of a set, after conversion if needed.

    Parameters
    ----------
    data : folder of all sets
    name : name of the set
    work : folder in which the folder of the unpacked set is created

    Returns
    -------
    folder : folder of the unpacked files
    classes : number of classes
    """
    source, folder = data / name, work / name
    if not has_training_file(data, name):
        raise BenchError(f"{source} has neither train.vw nor train.txt, plain or .gz")
    if file_in(source, "train.vw") is None:
        if not (folder / "labels.txt").exists():
            convert(source, folder)
        source = folder
    return folder, unpack(source, folder)


def convert(source: Path, folder: Path) -> None:
    """Write a set from the words of a text to `folder`."""
    files = [file_in(source, f"{part}.txt") for part in ("train", "test")]
    if None in files:
        raise BenchError(f"{source} has no test.txt, plain or .gz")
    command = [sys.executable, "-m", "scripts.convert.words", "--join", "--least", "2", "--out", str(folder.resolve())]
    command += ["--train", str(files[0].resolve()), "--test", str(files[1].resolve())]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if result.returncode:
        raise BenchError(result.stderr.strip())


def unpack(source: Path, target: Path) -> int:
    """Write the unpacked files of a set to `target`; return the number of classes."""
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        plain, packed = source / name, source / (name + ".gz")
        if not (target / name).exists():
            if not plain.exists() and not packed.exists():
                raise BenchError(f"there is neither {plain} nor {packed}")
            with open(plain, "rb") if plain.exists() else gzip.open(packed) as f, open(target / "part", "wb") as g:
                shutil.copyfileobj(f, g, 1 << 20)
            (target / "part").rename(target / name)
    with open(target / "train.vw", "rb") as f, open(target / "few.vw", "wb") as g:
        g.writelines(itertools.islice(f, WARM_UP_LINES))
    return classes_in(target)
