"""Embed texts by the mean of the vectors of their tokens, and write the rows as arrays with labels beside them.

    pip install wordllama
    python -m scripts.dense.embed_texts DATA_DIR --sets clinc150,reuters --out ROWS

A set is a folder in DATA_DIR with train.vw and test.vw, whose features are the words of the texts, or with train.csv
and test.csv, which have the columns `label` and `text` (`scripts.text.sets`). It becomes ROWS/SET/{train,test}.npy and
{train,test}.labels.npy. `--vw` also writes ROWS/SET/{train,test}.vw, the lines of VW text with the row behind the
words, for `--dense e`.

The vectors, of 256 numbers, are in the wheel of wordllama; nothing else is fetched.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np

from scripts.dense.rows import PARTS, save
from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.peers import lines_of
from scripts.lib.processes import BenchError

TOKENS, VECTORS = "tokenizers/l2_supercat_tokenizer_config.json", "weights/l2_supercat_256.safetensors"
Embed = Callable[[list[str]], np.ndarray]  # texts -> float32[n, d]


def wordllama() -> Embed:
    """Return what embeds texts by the vectors in the wheel of wordllama."""
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise BenchError("wordllama is not installed: pip install wordllama")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    folder = Path(found.origin).parent
    (vectors,) = load_file(folder / VECTORS).values()
    model = WordLlamaInference(vectors, Tokenizer.from_file(str(folder / TOKENS)))
    return lambda texts: model.embed(texts, norm=False)


def texts_of(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the texts and the labels of a file, CSV or VW text."""
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [row["text"] for row in rows], np.array([row["label"] for row in rows])
    lines = list(lines_of(path))
    texts = [" ".join(name.partition("|")[2] for name, _ in features) for _, features in lines]
    return texts, np.array([label for label, _ in lines])


def write_beside(source: Path, rows: np.ndarray, target: Path) -> None:
    """Write the lines of VW text with their rows in the namespace e."""
    with open(source, "rb") as lines, open(target, "wb") as out:
        written = (line for line in lines if line.strip())
        for line, row in zip(written, rows.tolist(), strict=True):
            numbers = " ".join(f":{number:.6g}" for number in row)
            out.write(b"%s |e %s\n" % (line.rstrip(), numbers.encode()))


def embed(folder: Path, out: Path, model: Embed, vw: bool) -> None:
    """Write the rows of a set."""
    for part in PARTS:
        source = folder / f"{part}.csv"
        source = source if source.exists() else folder / f"{part}.vw"
        texts, labels = texts_of(source)
        rows = model(texts)
        save(out, part, rows, labels)
        if vw and source.suffix == ".vw":
            write_beside(source, rows, out / f"{part}.vw")


def main() -> None:
    """Embed the sets."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path, metavar="DATA_DIR")
    options.add_argument("--sets", type=names, required=True, metavar="A,B")
    options.add_argument("--out", type=Path, required=True, metavar="ROWS")
    options.add_argument("--vw", action="store_true", help="also write VW text with the rows beside the words")
    given = options.parse_args()
    model = wordllama()
    for name in given.sets:
        with work_folder(None) as work:
            folder = given.data_dir / name
            if not (folder / "train.csv").exists():
                folder, _ = prepare(given.data_dir, name, work)
            embed(folder, given.out / name, model, given.vw)


if __name__ == "__main__":
    run(main)
