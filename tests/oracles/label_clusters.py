"""Oracle of the clustering of labels, which orders them for the leaves of a tree.

Idea     The prototype of a label is the sum of its examples, scaled by inverse label frequencies of the features.
         Prototypes are dense float64 rows. They are split recursively into two halves of similar rows.
Differs  from xclass in rounding only; the pairs of labels that splits start from are drawn by the same formula.
"""

import numpy as np

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def prototypes(examples) -> tuple[list[int], np.ndarray]:
    """Return the labels in rising order, and the prototype of each as a row of length 1.

    Examples are (features, label, weight), where features are {index: value}.
    """
    labels = sorted({label for features, label, _ in examples if any(features.values())})
    columns = sorted({index for features, _, _ in examples for index in features})
    table = np.zeros((len(labels), len(columns)))
    has = np.zeros(table.shape, bool)
    for features, label, weight in examples:
        if label in labels:
            length = np.sqrt(sum(x * x for x in features.values()))
            for index, x in features.items():
                table[labels.index(label), columns.index(index)] += weight * x / length
                has[labels.index(label), columns.index(index)] = True
    table = table * np.log((1 + len(labels)) / has.sum(axis=0))
    length = np.linalg.norm(table, axis=1, keepdims=True)
    return labels, np.divide(table, length, out=np.zeros_like(table), where=length > 0)


def split(table: np.ndarray, order: list[int], offset: int, seed: int, tries: int, rounds: int = 30):
    """Return two halves of the rows `order`, the best of `tries` results of balanced two-means clustering.

    `first` is the position of the first of these rows in the order of all labels; the random pairs depend on it.
    """
    n = len(order)
    most, best = -1.0, None
    for t in range(tries):
        drawn = mix((seed + t) & WORD) ^ (offset << 32 | (offset + n))
        first = mix(drawn) % n
        second = (first + 1 + mix((drawn + GOLDEN) & WORD) % (n - 1)) % n
        halves = [[order[first]], [order[second]]]
        alike = 0.0
        for turn in range(rounds):
            vector_sums = [table[half].sum(axis=0) for half in halves]
            lengths = [np.linalg.norm(vector) for vector in vector_sums]
            before, alike = alike, sum(lengths) / n
            if turn > 1 and alike - before < 1e-5:
                break
            centres = [
                vector / length if length > 0 else vector for vector, length in zip(vector_sums, lengths, strict=True)
            ]
            nearer = table @ (centres[0] - centres[1])
            ranked = sorted(order, key=lambda r: (-nearer[r], r))
            old, halves = halves, [sorted(ranked[: (n + 1) // 2]), sorted(ranked[(n + 1) // 2 :])]
            if halves == old:
                break
        if alike > most:
            most, best = alike, halves
    return best


def order(examples, seed: int, tries: int) -> list[int]:
    """Return the labels in the order of the leaves."""
    labels, table = prototypes(examples)

    def leaf_order(rows: list[int], offset: int) -> list[int]:
        if len(rows) <= 2:
            return rows
        first, second = split(table, rows, offset, seed, tries)
        return leaf_order(first, offset) + leaf_order(second, offset + len(first))

    return [labels[r] for r in leaf_order(list(range(len(labels))), 0)]
