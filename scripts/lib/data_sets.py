"""Find and unpack data sets.

A set is a folder in DATA_DIR. It has train.vw, test.vw and labels.txt, plain or .gz, or else train.txt and test.txt
with an article on each line, which scripts/convert/words.py converts to VW text.
"""

from __future__ import annotations

import gzip
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.lib.processes import ROOT, BenchError

WARM_UP_LINES = 200
PACKED = (".gz", ".bz2", ".xz", ".Z", ".zip")
FILES = ("train.vw", "test.vw", "labels.txt")


def file_in(folder: Path, name: str) -> Path | None:
    """Return the path of a file of a set, plain or .gz, or None if there is none."""
    return next((p for p in (folder / name, folder / (name + ".gz")) if p.is_file()), None)


def local_file(folder: Path, name: str) -> Path | None:
    """Return the file that is there by this name, or packed or unpacked."""
    stem = next((name[: -len(end)] for end in PACKED if name.endswith(end)), name)
    for candidate in (name, stem, *(stem + end for end in PACKED)):
        if (folder / candidate).is_file():
            return folder / candidate
    return None


def lines_in(folder: Path, name: str) -> int:
    """Return the number of lines of a file of a set that are not empty, 0 if there is no file."""
    path = file_in(folder, name)
    if path is None:
        return 0
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        return sum(1 for line in file if line.strip())


def prepare(data: Path, name: str, work: Path) -> tuple[Path, int]:
    """Unpack the files of a set of `data` into a folder in `work`; return it and the number of classes."""
    source, folder = data / name, work / name
    if not any(file_in(source, file) for file in ("train.vw", "train.txt")):
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
    return lines_in(target, "labels.txt")
