"""Make small streams of examples for tests. The same seed gives the same stream on every machine."""

import random

import numpy as np

from xclass.checks import with_rows

COLOURS = ("red", "green", "blue", "grey")
GROUPS = ("a", "b", "abc", "", "c:0.5", "wide", "é", " x")


def multiclass(
    seed: int,
    k: int,
    n: int,
    *,
    lowest: int = 1,
    noise: float = 0.1,
    tags: bool = False,
    weights: tuple[float, ...] = (),
    unlabelled: float = 0.0,
    popular: float = 1.0,
) -> str:
    """Return n lines with classes lowest .. lowest + k - 1 and words that mostly depend on the class.

    Parameters
    ----------
    seed : seed of the random numbers
    k, n : numbers of classes and of lines
    lowest : the lowest class
    noise : probability that a word is that of a random class
    tags : whether every third example has a tag
    weights : importance weights to choose from, 0 allowed; empty for lines without weights
    unlabelled : probability that a line has no label
    popular : 1 for equally frequent classes; the higher, the more frequent are the first classes
    """
    rng = random.Random(f"multiclass {seed} {k} {n}")
    lines = []
    for i in range(n):
        y = int(k * rng.random() ** popular)
        words = []
        for place in range(3):
            source_class = y if rng.random() >= noise else rng.randrange(k)
            words.append(f"p{place}_{(source_class * 7 + place * 3) % (k + 2 * place)}")
        rng.shuffle(words)
        label = _head(rng, f"{y + lowest}", weights, unlabelled)
        tag = f" tag{i}" if tags and i % 3 == 0 else " "
        lines.append(
            f"{label}{tag}|w {' '.join(words)} |n size:{rng.choice((0.5, 1, 2, -1.5, 3)):g} {rng.choice(COLOURS)}"
        )
    return "".join(line + "\n" for line in lines)


def multilabel(
    seed: int, k: int, n: int, *, lowest: int = 0, noise: float = 0.1, tags: bool = False,
    weights: tuple[float, ...] = (), unlabelled: float = 0.0,
) -> str:  # fmt: skip
    """Return n lines with lists of up to three labels lowest .. lowest + k - 1, and words that depend on the labels."""
    rng = random.Random(f"multilabel {seed} {k} {n}")
    lines = []
    for i in range(n):
        own = sorted(rng.sample(range(k), min(k, rng.choice((0, 1, 1, 2, 3)))))
        words = [f"y{y if rng.random() >= noise else rng.randrange(k)}_{rng.randrange(2)}" for y in own for _ in "ab"]
        label = _head(rng, ",".join(str(y + lowest) for y in own) or ",", weights, unlabelled)
        tag = f" tag{i}" if tags and i % 3 == 0 else " "
        lines.append(f"{label}{tag}|w {' '.join(words)} |n size:{rng.choice((0.5, 1, 2)):g} {rng.choice(COLOURS)}")
    return "".join(line + "\n" for line in lines)


def _head(rng: random.Random, label: str, weights: tuple[float, ...], unlabelled: float) -> str:
    """Return a label with one of the weights, or nothing with this probability."""
    if weights:
        label += f" {rng.choice(weights):g}"
    return "" if rng.random() < unlabelled else label


def of_kind(labels: str, seed: int, k: int, n: int, **more) -> str:
    """Return n lines for reductions whose records have these `labels`, with k of them or with signs.

    The lines for "rows" are those for "multiclass", with rows of numbers.
    """
    if labels == "rows":
        return "".join(f"{with_rows(line)}\n" for line in multiclass(seed, k, n, **more).splitlines())
    if labels == "simple":
        return real(seed, n, signs=True, **more)
    return (multilabel if labels == "multilabel" else multiclass)(seed, k, n, **more)


def real(
    seed: int, n: int, *, signs: bool = False, tags: bool = False, weights: tuple[float, ...] = (), unlabelled=0.0
) -> str:
    """Return n lines whose label is a linear function of the features, or with `signs` its sign (-1 or 1)."""
    rng = random.Random(f"real {seed} {n}")
    worth = {word: rng.choice((-2, -1, 0.5, 1)) for word in (f"w{j}" for j in range(12))}
    lines = []
    for i in range(n):
        words = rng.sample(sorted(worth), 4)
        size = rng.choice((0.25, 0.5, 1, 2))
        y = 0.25 * (sum(worth[word] for word in words) + size)
        if signs:
            y = 1 if y >= 0 else -1
        label = _head(rng, f"{y:g}", weights, unlabelled)
        tag = f" 't{i}" if tags and i % 4 == 0 else ""
        lines.append(f"{label}{tag} |a {' '.join(words)} |b size:{size:g} {rng.choice(COLOURS)}")
    return "".join(line + "\n" for line in lines)


def namespaces(seed: int, n: int, labels: tuple[str, ...]) -> str:
    """Return n lines with a few namespaces of a few features: named, anonymous, and with numbers or words as values."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        line = rng.choice(labels)
        for _ in range(rng.randrange(1, 5)):
            line += "|" + rng.choice(GROUPS)
            for _ in range(rng.randrange(5)):
                value = rng.choice(["", "", f":{rng.uniform(-2, 3):.3f}", ":0", ":red"])
                line += " " + rng.choice([f"w{rng.randrange(12)}", f"w{rng.randrange(12)}", "7"]) + value
            line += rng.choice([" ", " :2", ""])
        lines.append(line)
    return "".join(line + "\n" for line in lines)


def all_sizes(seed: int, n: int) -> str:
    """Return n lines of four classes with values from 1e-22 to 1e25; some repeat features, and some have none."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        words = [f"w{j}:{rng.normal():g}" for j in rng.permutation(12)[: rng.integers(0, 9)]]
        if i % 11 == 0:
            words += ["tiny:1e-22", "large:1e15"]
        if i % 13 == 0:
            words.append("huge:1e25")
        if i % 5 == 0:
            words += ["w3", "w3:2"]
        lines.append(f"{1 + i % 4} |f {' '.join(words)}\n")
    return "".join(lines)


def noisy(seed: int, n: int = 300) -> str:
    """Return n lines whose labels do not depend on the words, so that the best pass is not the last."""
    rng = random.Random(seed)
    return "".join(
        f"{rng.randrange(1, 5)} |a w{rng.randrange(40)} w{rng.randrange(40)} w{rng.randrange(40)}\n" for _ in range(n)
    )
