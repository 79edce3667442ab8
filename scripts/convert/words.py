"""Text -> VW text in which the next word is the label.

    python -m scripts.convert.words --train articles.txt --context 6 --vocabulary 80000 --out FOLDER
    python -m scripts.convert.words --train ptb.train.txt --test ptb.test.txt --join --least 10 --rare drop --out FOLDER

Namespace a holds the previous word, b the one before, and so on. Every line stands for itself, and its first example is
the word that has --context words before it; with --join all lines are one text with <eos> after each of them, and at
the beginning. Without --test, lines are drawn for testing.

Classes are the --vocabulary most frequent words of the training text, or those seen --least times there, the most
frequent first; with --letters, only words of the letters a to z. All other words are one class, <oov>, the last one;
with --rare drop they are not asked for; with --rare skip neither they nor the words just after them are, so that an
example consists of classes alone. As features all words stay as they are; with --vectors FILE, of lines `word number
...` as of GloVe, a word is its vector, and a word that the file lacks is nothing.
"""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from scripts.convert.source import SHARE, Example, line_error, lines, options, plain_name, say, settings, write
from scripts.lib.command_line import run
from scripts.lib.processes import BenchError

RARE = b"<oov>"
END = b"<eos>"
LETTERS = re.compile(b"[a-z]+")
PLACES = b"abcdefghijklmnopqrstuvwxyz"

Text = Callable[[], Iterable[bytes]]


def text_of(paths: list[Path], limit: int | None, keep: Callable[[int], bool] = lambda i: True) -> Text:
    """Return what gives, anew at every call, the lines with words, of the first `limit` those to keep."""

    def text() -> Iterator[bytes]:
        full = (line for path in paths for _, line in lines(path) if line.strip())
        return (line for i, line in enumerate(islice(full, limit)) if keep(i))

    return text


def vocabulary(text: Text, most: int | None, least: int, join: bool, letters: bool) -> list[bytes]:
    """Return the words that are classes, the most frequent first, those of equal frequency by their bytes."""
    counts: Counter[bytes] = Counter()
    for line in text():
        counts.update(line.split())
        if join:
            counts[END] += 1
    words = [word for word, n in counts.items() if n >= least and (not letters or LETTERS.fullmatch(word))]
    return sorted(words, key=lambda word: (-counts[word], word))[:most]


def vectors(path: Path) -> dict[bytes, bytes]:
    """Return word -> its vector as features `1:number 2:number ...`."""
    by_word, size = {}, None
    for number, line in lines(path):
        word, *values = line.split(b" ")
        size = size or len(values)
        if len(values) != size:
            raise line_error(path, number, f"{len(values)} numbers, {size} in the lines before")
        try:
            by_word[word] = b" ".join(b"%d:%.6g" % (i, float(value)) for i, value in enumerate(values, 1))
        except ValueError:
            raise line_error(path, number, "what follows the word are not all numbers") from None
    if not by_word:
        raise BenchError(f"{path}: no vectors in it")
    return by_word


def examples(text: Text, known: set[bytes], rare: str, context: int, join: bool, vector) -> Iterator[Example]:
    """Yield an example for every word that is a label."""
    names = [b"|%c " % PLACES[i] for i in range(context)]
    texts: dict[bytes, bytes] = {}

    def feature(word: bytes) -> bytes:
        text = texts.get(word)
        if text is None:
            text = texts[word] = (
                vector.get(word, b"") if vector is not None else plain_name(word.decode("utf-8", "replace")).encode()
            )
        return text

    before: deque[bytes] = deque(maxlen=context)
    for line in text():
        tokens = line.split()
        if join:
            tokens.append(END)
            if not before:
                before.extend([feature(END)] * context)
        else:
            before.clear()
        for word in tokens:
            if rare == "skip" and word not in known:
                before.clear()
                continue
            if len(before) == context and (word in known or rare == "class"):
                rest = b" ".join(name + text for name, text in zip(names, reversed(before), strict=True))
                yield (word if word in known else RARE), rest
            before.append(feature(word))


def main() -> None:
    """Execute the conversion that the command line requests."""
    parser = options(__doc__, several=False)
    parser.add_argument(
        "--context", type=int, default=6, metavar="N", help="words before the one asked for (default: 6)"
    )
    parser.add_argument("--vocabulary", type=int, metavar="N", help="most frequent words that are classes")
    parser.add_argument("--least", type=int, default=1, metavar="N", help="times a word is seen to be a class")
    parser.add_argument("--letters", action="store_true", help="classes are words of the letters a to z")
    parser.add_argument(
        "--rare", choices=("class", "drop", "skip"), default="class", help="what becomes of other words"
    )
    parser.add_argument("--join", action="store_true", help="lines are one text")
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="vectors of words to use as features")
    given = parser.parse_args()
    if not 1 <= given.context <= len(PLACES):
        raise BenchError(f"--context {given.context}: must be in 1..{len(PLACES)}")
    wanted = settings(given)
    limit = wanted.pop("limit")  # of lines, not of examples
    if given.test:
        train, test = text_of(given.train, limit), text_of(given.test, limit)
    else:
        n = sum(1 for _ in text_of(given.train, limit)())
        if n < 2:
            raise BenchError(f"{n} lines cannot be split into training and test lines")
        test_indices = set(random.Random(given.seed).sample(range(n), max(1, round(n * SHARE))))
        train = text_of(given.train, limit, lambda i: i not in test_indices)
        test = text_of(given.train, limit, lambda i: i in test_indices)
    known = vocabulary(train, given.vocabulary, given.least, given.join, given.letters)
    if RARE in known:
        raise BenchError(f"the text has the word {RARE.decode()}, which is to be the class of rare words")
    word_vectors = vectors(given.vectors) if given.vectors else None
    text_options = (set(known), given.rare, given.context, given.join, word_vectors)
    labels = known + ([RARE] if given.rare == "class" else [])
    facts = write(
        given.out,
        lambda: examples(train, *text_options),
        lambda: examples(test, *text_options),
        labels=labels,
        **wanted,
    )
    say(facts)


if __name__ == "__main__":
    run(main)
