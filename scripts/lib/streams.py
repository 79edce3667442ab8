"""Generate streams with any number of classes and features."""

from __future__ import annotations

from operator import getitem
from pathlib import Path

import numpy as np

VOCABULARY = 2000  # number of different words at each position of a line of `write_stream`
NOISE = 0.1
EXPONENT = 0.8  # of the power law of `write_power_law`
OWN = 30  # words of a class
SHARED = 400_000  # words that these are drawn from
PIECE = 10_000  # lines generated at a time
LABELS, LABEL_WORDS = 3, 6  # labels of an example of `write_lists`, and words of a label


def write_stream(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Write a stream of examples to a file.

    The vocabulary does not depend on the number of classes, and neither does the memory of the weights of one
    regressor.
    """
    random = np.random.default_rng([seed, classes])
    words = [[f"{place}_{v}" for v in range(VOCABULARY)] for place in range(features)]
    place = np.arange(features, dtype=np.uint64)
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, examples, PIECE):
            n = min(PIECE, examples - start)
            label = random.integers(0, classes, n)
            other = random.integers(0, classes, (n, features))
            source_class = np.where(random.random((n, features)) < NOISE, other, label[:, None]).astype(np.uint64)
            word = (source_class * (2 * place + 1) * np.uint64(2654435761) >> 7 + place) % np.uint64(VOCABULARY)
            for y, row in zip(label.tolist(), word.tolist(), strict=True):
                file.write(f"{y + 1} | {' '.join(map(getitem, words, row))}\n")


def write_power_law(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Write a stream in which class i has a frequency of i^-.8 and classes share words.

    A third of the words of an example are from its class. The others do not depend on the class, and few of them are
    frequent. As in `write_stream`, streams with different seeds have the same classes.
    """
    random = np.random.default_rng([seed, classes])
    own = np.random.default_rng(classes).integers(0, SHARED, (classes, OWN), np.int32)
    cumulative = np.cumsum(np.arange(1, classes + 1) ** -EXPONENT)
    telling = max(1, features // 3)
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, examples, PIECE):
            n = min(PIECE, examples - start)
            label = np.searchsorted(cumulative, random.random(n) * cumulative[-1])
            words = own[label[:, None], random.integers(0, OWN, (n, telling))]
            common = (SHARED * random.random((n, features - telling)) ** 3).astype(np.int32)
            for y, row, others in zip(label.tolist(), words.tolist(), common.tolist(), strict=True):
                file.write(f"{y + 1} | {' '.join(map(str, row))} {' '.join(f'z{word}' for word in others)}\n")


def write_lists(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Write a stream of examples with several labels, whose frequencies follow a power law.

    An example has half of the words of each of its labels; others do not depend on them. As in `write_stream`, streams
    with different seeds have the same labels.
    """
    random = np.random.default_rng([seed, classes])
    cumulative = np.cumsum(np.arange(1, classes + 1) ** -EXPONENT)
    with open(path, "w", encoding="ascii") as file:
        for _ in range(examples):
            labels: dict[int, None] = {}
            while len(labels) < min(LABELS, classes):
                labels[int(np.searchsorted(cumulative, random.random() * cumulative[-1]))] = None
            own = [
                LABEL_WORDS * y + word for y in labels for word in random.permutation(LABEL_WORDS)[: LABEL_WORDS // 2]
            ]
            others = (SHARED * random.random(max(0, features - len(own))) ** 3).astype(int).tolist()
            words = [f"w{word}" for word in own] + [f"z{word}" for word in others]
            file.write(f"{','.join(map(str, labels))} | {' '.join(words)}\n")


KINDS = {"even": write_stream, "power_law": write_power_law, "lists": write_lists}


def folder_of(work: Path, kind: str, classes: int, examples: int, features: int) -> Path:
    """Return a folder with streams of a kind as train.vw and test.vw, which are written if they are not there."""
    folder = work / f"{kind}_{classes}_{examples}_{features}"
    folder.mkdir(exist_ok=True)
    if not (folder / "test.vw").exists():
        for seed, part in enumerate(("train.vw", "test.vw")):
            KINDS[kind](folder / part, seed, classes, examples, features)
    return folder
