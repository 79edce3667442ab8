"""Oracle of merged weights: the average by the squared gradients that each model has added since the base.

Source   Agarwal, Chapelle, Dudik, Langford, "A Reliable Effective Terascale Linear Learning System", JMLR 15 (2014).
Names    w weight | G sum of squared gradients | dG what a model has added to G | word, line, lane as in `tagged_words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from . import tagged_words
from .tagged_words import FOR_G, FOR_W, TAG, Line, decode_g, decode_w, encode_g, encode_w, random_bits

Slot = tuple[float, float]  # w and G
LANES = 16
FLOOR = Fraction(1, 16)  # least dG of a word that has changed, as a share of the base's G
MIX = 0x9E3779B1


def merged_slot(models: Sequence[Slot], base: Slot) -> Slot:
    """Return w and G of a slot of float32s, by exact arithmetic."""
    added = [max(Fraction(g) - Fraction(base[1]), Fraction(0)) for _, g in models]
    mass = sum(added, Fraction(0))
    if mass > 0:
        w = sum((d * Fraction(model[0]) for d, model in zip(added, models, strict=True)), Fraction(0)) / mass
    else:  # what was added to G is lost in rounding
        changed = [Fraction(model[0]) for model in models if model[0] != base[0]]
        w = sum(changed, Fraction(0)) / len(changed) if changed else Fraction(base[0])
    return float(w), float(Fraction(base[1]) + mass)


def merged_without_g(models: Sequence[float], base: float, examples: Sequence[float]) -> float:
    """Return the weight of a slot that has no G: the average over the models that have changed it."""
    changed = [(Fraction(e), Fraction(w)) for w, e in zip(models, examples, strict=True) if w != base]
    total = sum((e for e, _ in changed), Fraction(0))
    return float(sum((e * w for e, w in changed), Fraction(0)) / total) if changed else base


def merged_word(models: Sequence[int], base: int, number: int) -> int:
    """Return the word that results from the words of one tag, 0 where a table has none.

    Parameters
    ----------
    number : number of the line
    """
    changed = [word for word in models if word not in (0, base)]
    if not changed:
        return base
    if len(changed) == 1:
        return changed[0]
    before = Fraction(float(decode_g(base))) if base else Fraction(0)
    added = [Fraction(float(decode_g(word))) - before for word in changed]
    masses = [max(d, FLOOR * before) for d in added]
    if not any(masses):  # G code 0 in all of them
        masses = [Fraction(1)] * len(changed)
    w = sum((m * Fraction(float(decode_w(word))) for m, word in zip(masses, changed, strict=True)), Fraction(0))
    g = before + sum((max(d, Fraction(0)) for d in added), Fraction(0))
    tag = changed[0] & TAG
    key = number * MIX + tag
    g_bits = encode_g(np.float32(float(g)), random_bits(key, 0, FOR_G) >> 10)
    w_bits = encode_w(np.float32(float(w / sum(masses))), random_bits(key, 0, FOR_W) >> 16)
    return g_bits | w_bits | tag


def merged_line(models: Sequence[Line], base: Line, number: int) -> tuple[Line, int]:
    """Return a merged line, and how many words found no place in it."""
    if all(line == base for line in models):
        return list(base), 0
    lanes: dict[int, int] = {}  # tag -> the lane where it is first met
    for line in models:
        for lane, word in enumerate(line):
            if word:
                lanes.setdefault(word & TAG, lane)

    def word_of(line: Line, tag: int) -> int:
        return next((word for word in line if tagged_words.belongs(word, tag)), 0)

    words = {tag: merged_word([word_of(line, tag) for line in models], word_of(base, tag), number) for tag in lanes}
    dropped = 0
    while len(words) > LANES:
        least = min(decode_g(word) for word in words.values())
        del words[[tag for tag, word in words.items() if decode_g(word) == least][-1]]
        dropped += 1
    result, waiting = [0] * LANES, []
    for tag, word in words.items():
        if result[lanes[tag]]:
            waiting.append((tag, word))
        else:
            result[lanes[tag]] = word
    rest = []
    for tag, word in waiting:
        if result[lanes[tag] ^ 8]:
            rest.append(word)
        else:
            result[lanes[tag] ^ 8] = word
    for word in rest:
        result[result.index(0)] = word
    return result, dropped
