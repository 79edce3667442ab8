"""Read the label of an example in a format other than VW text."""

from __future__ import annotations

import math

import numpy as np

from ..array_types import Int, UInt8s
from ..data import class_names
from ..kernels.jit import jit
from ..text import label_words, numbers
from ..text.label_words import UNLABELLED
from ..text.malformed import LABEL_NAME, OUTSIDE, REAL_LABEL, UNLISTED
from ..text.rules import Rules

COMMA, SPACE = 44, 32


@jit
def read_label(text: UInt8s, begin: int, end: int, rules: Rules) -> tuple[float, int]:
    """Return the label `text[begin:end]`, as in a Batch, and the number of the problem in `malformed` or 0.

    The label is not empty, and a byte of at most 32 follows it. With `rules.learn_names` the result is its position.
    """
    if not rules.multiclass:
        real, p, digits = numbers.read_number(text, begin)
        if p != end or digits == 0 or not math.isfinite(real):
            return np.nan, REAL_LABEL
        return np.float64(real), 0
    if rules.learn_names:
        for p in range(begin, end):
            if text[p] == COMMA or text[p] <= SPACE:
                return np.nan, LABEL_NAME
        return np.float64(begin), 0
    number: Int
    if len(rules.names.hash) > 0:
        number = class_names.class_of(text, begin, end, rules.names)
        if number == 0:
            return np.nan, UNLISTED
    else:
        number = class_names.class_number(text, begin, end)
        if number < 0:
            return np.nan, label_words.problem_of(number)
    if number == UNLABELLED:
        return np.nan, 0
    if number > UNLABELLED or (rules.highest >= 0 and (number < rules.lowest or number > rules.highest)):
        return np.nan, OUTSIDE
    return np.float64(number), 0
