"""Examine the first labels that are learned, and warn where they seem to mean something else than the user thinks.

    runs     nearly every label repeats the one before, as in data that are sorted by class
    own      each example has another label, and these are numbers without gaps, or texts
    names    they are lists of labels with a separator, or lists as Python writes them, or have the prefix of another
             format, or look like other names

The labels of files and of programs pass here, so the warnings reach every interface as notes of the examples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..data.alike_names import AlikeNames
from ..data.batch import Batch
from ..system.printable import short_repr

FEWEST, LABELS = 40, 1000  # labels that are examined first, and all unless they repeat one another
MOST_LABELS = 1 << 17  # that are examined until several classes have occurred, or one occurs again
REPEATED, MORE = 0.9, 0.15  # least share of labels that repeat the one before, and by how much more than by chance
DOMINANT, RUNS = 0.75, 1.5  # share of labels of one class from which more runs of it for each class are usual
WORDS_OF_TEXT = 4  # words of a label that is a text
SEPARATORS = ";|"
WRITTEN_LIST = re.compile(r"\[\s*['\"].*|.*['\"]\s*\]")  # or its first or last item, where a comma or blank divides it
PREFIX = "__label__"
GIVE_LISTS = "give a list of labels for each example, which --multilabel learns"


class LabelCheck:
    """Examine the labels of batches in their order.

    `names` are those of the classes, which grow ahead of learning, and `ordered` says whether the learner depends on
    the order of the examples.
    """

    def __init__(self, names: list[str], ordered: bool) -> None:
        self._names, self._first, self._ordered = names, len(names), ordered
        self._alike = AlikeNames()
        self._count: Counter[float] = Counter()  # of labels
        self._n = self._repeated = 0
        self._last = np.nan
        self._due = FEWEST  # labels after which they are examined again
        self._named = False  # whether a warning about the names was given
        self.doubted = False  # whether a warning has said that another column may have the labels, or none can

    def check(self, batch: Batch, of_file: bool = True) -> list[str]:
        """Return warnings about the labels of a batch, which a program has given if it is not `of_file`.

        Few examples that a program gives at once are a stream, in which runs are usual.
        """
        self._ordered = self._ordered and (of_file or batch.n >= FEWEST)
        self.doubted = self.doubted or not of_file  # a program has given labels by themselves
        notes = [self._alike.check(self._names)]
        if self._due and self._add(batch) and self._n >= self._due:
            notes += [self._about_names(of_file), self._about_runs(of_file)]
        return list(filter(None, notes))

    def _add(self, batch: Batch) -> bool:
        """Count the labels of a batch, those in lists without their order; return whether there are some."""
        label = batch.labels if batch.has_lists else batch.label[~np.isnan(batch.label)]
        given = label[: LABELS if self._n < LABELS else None].tolist()
        self._ordered = self._ordered and not batch.has_lists
        if not given:
            return False
        self._count.update(given)
        self._n += len(given)
        self._repeated += sum(map(float.__eq__, given, [self._last, *given]))
        self._last = given[-1]
        return True

    def _about_runs(self, of_file: bool) -> str:
        n = self._n
        excess = self._repeated / n - sum(count**2 for count in self._count.values()) / n**2
        repeats = self._ordered and self._repeated >= REPEATED * n
        going_on = repeats or len(self._count) == n
        self._due = n + n // 4 if n < LABELS or (going_on and n < MOST_LABELS) else 0
        classes = len(self._count)
        dominant = max(self._count.values()) > DOMINANT * n and (classes < 3 or n - self._repeated > RUNS * classes)
        if not repeats or dominant or excess < max(MORE, 2.5 / n**0.5):
            return ""
        self._ordered = False
        return (
            f"the labels are grouped: {self._repeated / n:.0%} of the first ones equal the label before them, as in "
            "data sorted by class. Each class is then forgotten while the next is learned, and the loss measured "
            f"before learning is misleading; learn the examples in random order{', as --shuffle 100000 does' * of_file}"
        )

    def at_end(self) -> str:
        """Return a warning at the end of the data if each label has occurred once and they are no classes, or nothing.

        With classes of one example each nothing can be said about other examples.
        """
        n, self._n, self._due = self._n, 0, 0
        if self.doubted or not FEWEST <= n == len(self._count) < MOST_LABELS:
            return ""
        names = [self._names[int(label) - 1] for label in self._count if 0 < label <= len(self._names)]
        numbers = sorted(map(int, names if all(map(str.isdecimal, names)) and names else self._count))
        are_texts = sum(len(name.split()) for name in names) > WORDS_OF_TEXT * n
        if not are_texts and ((names and not all(map(str.isdecimal, names))) or numbers[-1] - numbers[0] >= n):
            return ""
        kind = "are texts" if are_texts else "are numbers without gaps, as identifiers are"
        first = names[0] if names else str(numbers[0])
        return (
            f"each of the {n} examples has another label, such as {short_repr(first)}, and these {kind}; if another "
            "column or key has the labels, name it by --label_column"
        )

    def _about_names(self, of_file: bool) -> str:
        names = self._names[self._first : self._first + LABELS]
        if self._named or not names:
            return ""
        note = _about_form(names, of_file) or _about_separator(names, of_file)
        self._named = bool(note)
        return note


def _about_form(names: Sequence[str], of_file: bool) -> str:
    """Return a warning about names that are written as in another format."""
    if all(name.startswith(PREFIX) for name in names):
        cure = "lines of fastText have no bar, and --format fasttext reads them" if of_file else "leave it out"
        return f"labels such as {short_repr(names[0])} begin with {PREFIX}, which is a part of their names here; {cure}"
    for name in names:
        if name[:1] == "[" and WRITTEN_LIST.fullmatch(name):
            cure = "write commas alone between its labels, as in tea,hot" if of_file else GIVE_LISTS
            return f"the label {short_repr(name)} is a list as Python writes it; {cure}"
    return ""


def _about_separator(names: Sequence[str], of_file: bool) -> str:
    """Return a warning if names seem to be lists of labels with a separator other than a comma."""
    for separator in SEPARATORS:
        several = [name for name in names if separator in name]
        if len(several) >= max(3, len(names) / 5) and _recombined(names, separator):
            cure = GIVE_LISTS
            if of_file:
                read = "reads them from CSV and JSON lines, and elsewhere a comma separates labels"
                cure = f"--label_separator {separator!r} {read}"
            return (
                f"labels hold {separator!r} and share the parts between, such as {short_repr(several[0])}; if they are "
                f"lists of labels, {cure}"
            )
    return ""


def _recombined(names: Sequence[str], separator: str) -> bool:
    """Return whether names consist of parts that occur in other names, too, as lists of labels do.

    The first part of a name may be that of a group. In names with levels, each part keeps its position.
    """
    if separator == "|":  # a name without it may be that of a group
        names = [name for name in names if separator in name]
    parts = [[part.strip() for part in name.split(separator)] for name in names]
    count = Counter(part for own in parts for part in {*own})
    later = [part for own in parts for part in own[1:]]
    moves = len({place for own in parts for place in enumerate(own)}) > len(count)
    return moves and sum(count[part] > 1 for part in later) >= 0.5 * len(later)
