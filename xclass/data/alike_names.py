"""Find names of classes that are probably mistakes.

    AlikeNames     look like others: capitals or forms of Unicode differ, or characters are invisible
    NameWeights    occur with different weights, so they are probably names of several words. A line is
                   `name weight | features`, so `class 2 | ...` is class `class` with weight 2. Data with importance
                   weights look the same, so this is only a warning, given once: when a name has another weight than in
                   its first line. Lines are compared in the order of the file, whatever the blocks and threads

Cost      About 1 us a name, for the first MOST_COMPARED. Of weights, one comparison per example with 1 as long as all
          are 1, then access to a table until two differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from ..array_types import Float32s, Float64s
from ..system.printable import short_repr
from .class_names import key_of

INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe0f\ufeff]")
MOST_COMPARED = 100_000  # names that are compared with one another
MOST_UNKNOWN = 100  # unknown names that are compared with those of a model


class AlikeNames:
    """Compare names, which grow, with those before, until two are alike (`has_warned`)."""

    def __init__(self) -> None:
        self.has_warned = False
        self._seen = self._unknown = 0
        self._known: dict[str, str] = {}  # folded name -> name

    def check(self, names: Sequence[str]) -> str:
        """Return a warning if one of the names that are new looks like another one, else nothing."""
        if len(names) == self._seen or self.has_warned:
            return ""
        new, self._seen = names[self._seen : MOST_COMPARED], len(names)
        for name in new:
            other = self._known.setdefault(folded(name), name)
            if other != name:
                self.has_warned = True
                return (
                    f"the labels {short_repr(other)} and {short_repr(name)} look alike and are two classes; if they "
                    f"should be one, {CURE}"
                )
        return ""

    def unknown(self, name: str, names: Sequence[str]) -> str:
        """Return a warning if a name that is none of `names` looks like one of them, else nothing."""
        self._unknown += 1
        if self._unknown > MOST_UNKNOWN or not names:
            return ""
        self._known = self._known or {folded(known): known for known in names[:MOST_COMPARED]}
        other = self._known.get(folded(name), "")
        if not other or key_of(other) == name:
            return ""
        self.has_warned = True
        return (
            f"the label {short_repr(name)} is no class of the model, and looks like its class {short_repr(other)}; "
            f"if they should be one, {CURE}"
        )


CURE = "write both in the same form, such as lower case in Unicode NFC without invisible characters"


def folded(name: str) -> str:
    """Return what names that look alike have in common."""
    return key_of(name if name.isascii() else INVISIBLE.sub("", unicodedata.normalize("NFKC", name))).casefold()


class NameWeights:
    """Compare the weights of the examples of each class name, until `differs`, because two of a name differ.

    `initial_count` is the number of names known before the data are read.
    """

    def __init__(self, initial_count: int) -> None:
        self.differs = False
        self._initial_count = initial_count
        # weight with which each name was first seen, NaN before; None until the first weight that is not 1
        self._first_weight: Float32s | None = None

    def can_skip(self, weight: Float32s) -> bool:
        """Return whether a batch with these weights has nothing to compare."""
        return self.differs or (self._first_weight is None and not (weight != 1).any())

    def compare(self, label: Float64s, weight: Float32s, count_before: int, count: int) -> tuple[int, float]:
        """Return the first row whose name occurred with another weight before, or -1, and that weight.

        `label` is float64[n], the number of each name from 1, NaN for none; `weight` is float32[n]; the counts are the
        numbers of names known before this batch, and now.
        """
        begin = 0
        if self._first_weight is None:
            begin = int(np.argmax(weight != 1))
            # all new names up to here had weight 1; listed names may not have occurred yet
            seen_names = int(np.fmax.reduce(label[:begin], initial=count_before))
            self._first_weight = np.full(count, np.nan, np.float32)
            self._first_weight[self._initial_count : seen_names] = 1
        elif len(self._first_weight) < count:
            larger = np.full(max(count, 2 * len(self._first_weight)), np.nan, np.float32)
            larger[: len(self._first_weight)] = self._first_weight
            self._first_weight = larger
        rows = begin + np.flatnonzero(~np.isnan(label[begin:]))
        name = label[rows].astype(np.int64) - 1
        new = np.flatnonzero(np.isnan(self._first_weight[name]))[::-1]  # the first row of a name is assigned last
        self._first_weight[name[new]] = weight[rows[new]]
        earlier = self._first_weight[name]
        differing = np.flatnonzero(earlier != weight[rows])
        self.differs = len(differing) > 0
        return (int(rows[differing[0]]), float(earlier[differing[0]])) if self.differs else (-1, 0.0)
