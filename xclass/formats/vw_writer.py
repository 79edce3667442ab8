"""Write matrices as VW text.

VW reads most decimal numbers with a small error, because it accumulates their digits in float32. A number with the
exponent `e+0` is left to C's strtof, which rounds correctly (see `text.vw_numbers`), so all numbers but small whole
ones are written with it: reading the text gives exactly the values that were written, in xclass and in VW.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..array_types import Float32s, Int64s
from ..data import array_input, class_names
from ..errors import DataError
from ..system.printable import short_repr

EXACT = 1 << 24  # whole numbers below this are read exactly without an exponent


def number(value: np.float32) -> str:
    """Return a finite number as text that is read as exactly this number."""
    if abs(value) < EXACT and value == int(value):
        return str(int(value))
    return np.format_float_positional(value, unique=True, trim="-") + "e+0"


def label_word(label: Any, place: str) -> str:
    """Return a label, or a list of labels, as the first word of a line; an empty text for a missing one."""
    if isinstance(label, list):
        return ",".join(label_word(part, f"{place}[{j}]") for j, part in enumerate(label)) or ","
    if array_input.is_missing(label):
        return ""
    if isinstance(label, (float, np.floating)) and not label.is_integer():
        if not -array_input.LARGEST <= label <= array_input.LARGEST:
            raise DataError(f"{place} is {label:g}; {array_input.FINITE}")
        return number(np.float32(label))
    word = class_names.key_of(label)
    if fault := class_names.fault_of(word):
        raise DataError(f"{place} is {short_repr(label)}; {fault}")
    if "|" in word or word[0] == "'":
        raise DataError(f"{place} is {short_repr(label)}; in VW text a label has no bar, and no ' at its beginning")
    return word


def lines(
    start: Int64s, column: Int64s, value: Float32s, labels: Sequence[Any] | None, weights: Float32s | None
) -> Iterator[str]:
    """Yield the n rows of a sparse matrix as lines of VW text; entries of 0 are left out.

    `start`, `column` and `value`, int64[n + 1], int64[z] and float32[z], are compressed sparse rows. A label, or a list
    of labels, is None or NaN for no label. `weights` is float32[n]; None for weights of 1. A weight is written after a
    label only.
    """
    for row, (begin, end) in enumerate(pairwise(start.tolist())):
        words = [label_word(labels[row], f"y[{row}]")] if labels is not None else [""]
        if weights is not None and words[0] and weights[row] != 1:
            words.append(number(weights[row]))
        words.append("|")
        for j, x in zip(column[begin:end].tolist(), value[begin:end], strict=True):
            if x != 0:
                words.append(str(j) if x == 1 else f"{j}:{number(x)}")
        yield " ".join(words).lstrip() + "\n"
