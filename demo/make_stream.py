"""Make a stream of real examples with many classes from what every Python has: its library's own source.

    python demo/make_stream.py FOLDER [--limit N] [--seed S]

The task is to say the next token of a program from the six before it, as in the experiment of the Recall Tree
paper on a large text: namespace a holds the previous token, b the one before, ... f the sixth.

    48 |a return |b <newline+8> |c <colon> |d 0 |e < |f n          the next token is `self`, class 48

A token is a word or number, one other character, or a line's end together with the indentation that follows.
Classes are tokens, the most frequent first; tokens seen only once in the training files are one class `<oov>`.
Files are taken in random order, each read from top to bottom; every tenth is held out for testing. The library's
own tests are left out. The same Python and the same options give the same bytes.

FOLDER gets train.vw, test.vw, labels.txt (class, tab, token) and facts.json (what is printed below, for programs).

With - in place of FOLDER the examples of all files go to standard output as the files are read, for a pipe. Nothing is
counted beforehand: every token has a class of its own, and classes are numbered as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import sysconfig
import time
from collections import Counter
from pathlib import Path
from typing import TextIO

TOKEN = re.compile(r"\n[ \t]*(?=\S)|\w+|[^\w\s]")
CONTEXT = 6  # tokens before the one to be predicted
LINE = "%d " + " ".join(f"|{name} %s" for name in "abcdef") + "\n"
OUTSIDE = "<start>"  # stands before a file's first token
RARE = "<oov>"
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idle_test", "pydoc_data", "encodings", "__pycache__"}
EVERY = 10  # one file in this many is held out


def library_files(root: Path, seed: int) -> list[Path]:
    """Return the library's own source files in random order, the same on every machine that has the same files."""
    paths = [p for p in root.rglob("*.py") if not SKIPPED.intersection(p.relative_to(root).parts)]
    paths.sort(key=lambda p: p.relative_to(root).as_posix())
    random.Random(seed).shuffle(paths)
    return paths


def tokens_of(path: Path) -> list[str]:
    """Return the tokens of a file; none if it cannot be read as UTF-8."""
    try:
        return TOKEN.findall(path.read_text("utf-8"))
    except (UnicodeDecodeError, OSError):
        return []


def read_tokens(files: list[Path], limit: int | None) -> tuple[list[list[str]], list[list[str]]]:
    """Return the tokens of each training file, `limit` in all, and of each test file, at least one."""
    train, test = [], []
    remaining = sys.maxsize if limit is None else limit
    number = 0
    for path in files:
        if remaining == 0 and test:
            break
        tokens = tokens_of(path)
        if not tokens:
            continue
        number += 1
        if number % EVERY == 0:
            test.append(tokens)
        elif remaining:
            train.append(tokens[:remaining])
            remaining -= len(train[-1])
    return train, test


def written(token: str) -> str:
    """Return a token as a feature: without characters that have a meaning in the format and without invisible ones."""
    if token[0] == "\n":
        return f"<newline+{len(token.expandtabs()) - 1}>"
    if token == ":":
        return "<colon>"
    if token == "|":
        return "<bar>"
    return token if token.isprintable() else "".join(f"<u{ord(c):04x}>" for c in token)


def write_examples(path: Path, files: list[list[str]], number: dict[str, int], name: dict[str, str]) -> int:
    """Write one example per token and return how many; `number` and `name` leave out what is rare."""
    rare = number[RARE]
    count = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for tokens in files:
            names = [OUTSIDE] * CONTEXT + [name.get(token, RARE) for token in tokens]
            labels = [number.get(token, rare) for token in tokens]
            before = (names[CONTEXT - k :] for k in range(1, CONTEXT + 1))
            file.writelines(map(LINE.__mod__, zip(labels, *before)))  # noqa: B905 - the first is the shortest
            count += len(tokens)
    return count


def write_stream(out: TextIO, limit: int | None, seed: int, root: Path | None = None) -> None:
    """Write the examples of one file after the other, `limit` in all; classes are numbered as their tokens come."""
    number: dict[str, int] = {}
    remaining = sys.maxsize if limit is None else limit
    for path in library_files(root or Path(sysconfig.get_path("stdlib")), seed):
        tokens = tokens_of(path)[:remaining]
        remaining -= len(tokens)
        names = [OUTSIDE] * CONTEXT + [written(token) for token in tokens]
        labels = [number.setdefault(token, len(number) + 1) for token in tokens]
        before = (names[CONTEXT - k :] for k in range(1, CONTEXT + 1))
        out.writelines(map(LINE.__mod__, zip(labels, *before)))  # noqa: B905 - the first is the shortest
        if not remaining:
            return


def pairs(files: list[list[int]]) -> Counter:
    """Count (previous class, class)."""
    counts = Counter()
    for labels in files:
        counts.update(zip([0, *labels], labels))  # noqa: B905 - the second is the shorter
    return counts


def simple_guesses(train: list[list[int]], test: list[list[int]]) -> dict[str, float]:
    """Return the test errors of two guesses: always class 1, and what most often followed the previous token."""
    follower: dict[int, tuple[int, int]] = {}
    for (previous, label), n in pairs(train).items():
        follower[previous] = max(follower.get(previous, (0, 0)), (n, -label))
    test_pairs = pairs(test)
    total = max(1, sum(test_pairs.values()))
    right = sum(n for (_, label), n in test_pairs.items() if label == 1)
    right_after = sum(n for (previous, label), n in test_pairs.items() if -follower.get(previous, (0, -1))[1] == label)
    return {"majority_error": 1 - right / total, "previous_token_error": 1 - right_after / total}


def make(folder: Path, limit: int | None = None, seed: int = 1, root: Path | None = None) -> dict:
    """Write the stream and return its facts.

    Parameters
    ----------
    limit : training examples, or None for all there are.
    root : folder of source files; the library of the Python that runs this, unless given.
    """
    root = root or Path(sysconfig.get_path("stdlib"))
    train, test = read_tokens(library_files(root, seed), limit)
    if not train or not test:
        raise SystemExit(
            f"make_stream: there is too little Python source in {root}; try a Python with its library unpacked"
        )
    seen = Counter()
    for tokens in train:
        seen.update(tokens)
    once = sum(1 for n in seen.values() if n == 1)
    counts = {token: n for token, n in seen.items() if n > 1}
    counts[RARE] = once
    order = sorted(counts, key=lambda token: (-counts[token], token))
    number = {token: i for i, token in enumerate(order, 1)}
    name = {token: token if token == RARE else written(token) for token in order}

    folder.mkdir(parents=True, exist_ok=True)
    n_train = write_examples(folder / "train.vw", train, number, name)
    n_test = write_examples(folder / "test.vw", test, number, name)
    with open(folder / "labels.txt", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{i}\t{name[token]}\n" for token, i in number.items())
    rare = number[RARE]
    labelled = [[[number.get(token, rare) for token in tokens] for tokens in files] for files in (train, test)]
    facts = {
        "classes": len(number),
        "train": n_train,
        "train_files": len(train),
        "test": n_test,
        "test_files": len(test),
        "majority": name[order[0]],
        **simple_guesses(*labelled),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def main() -> None:
    """Read the command line, make the stream, say what it is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to write; - for standard output")
    parser.add_argument("--limit", type=int, metavar="N", help="training examples (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the order of files (default: 1)")
    options = parser.parse_args()
    if options.limit is not None and options.limit < 1:
        parser.error("--limit: at least 1")
    if str(options.folder) == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        try:
            write_stream(sys.stdout, options.limit, options.seed)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    start = time.perf_counter()
    facts = make(options.folder, options.limit, options.seed)
    print(
        f"train  {facts['train']:>9,} examples from {facts['train_files']} files\n"
        f"test   {facts['test']:>9,} examples from {facts['test_files']} other files\n"
        f"       {facts['classes']:>9,} classes\n"
        f"error  {facts['majority_error']:>9.4f} always saying {facts['majority']}, the most frequent\n"
        f"error  {facts['previous_token_error']:>9.4f} saying what most often followed the previous token\n"
        f"made in {time.perf_counter() - start:.1f} s by Python {sys.version.split()[0]}"
    )


if __name__ == "__main__":
    main()
