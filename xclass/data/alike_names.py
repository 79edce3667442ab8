"""Find names of classes that look like others: capitals or forms of Unicode differ, or characters are invisible.

Cost      About 1 us a name, for the first MOST_COMPARED.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

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
