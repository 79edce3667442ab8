"""Detect from the first labels of the data whether they are classes, and whether they are names.

If the first labels are whole numbers from 1 on and at least three of them differ, they are classes. Other numbers (-1
and 1, 0, fractions) are real-valued labels for the binary learner without a reduction, as in VW. If none of the first
three labels is a number, labels are names. So are whole numbers that classes cannot have: those with leading zeros,
which would not be printed as they are written, and those above the largest class, which are identifiers. A label with a
comma is a list of labels, and the labels in lists are names if one of the first list is.
"""

from __future__ import annotations

import re

from ..data import class_names
from ..data.batch import HIGHEST_LABEL

MAX_LABELS, MAX_LINES = 100, 1000  # detection ends after this many labels or lines
MIN_NAMES = 3  # labels are names once the first three are; a single name may be a heading
SHOWN_LENGTH = 40  # characters of a name in a message
MIN_CLASSES = 3  # number of different whole numbers that are taken for classes; two may be binary labels, or counts
NUMBER_LIKE = re.compile(rb"[+-]?\.?[0-9].*|[+-]?(nan|inf|infinity)", re.IGNORECASE)
NOT_NAMES = (b"shared",)  # words that begin lines in other formats of VW
NUMBERS_INSTEAD = "; to predict numbers instead, give --loss_function squared"


class LabelDetector:
    """Examine lines of text until it is known whether their labels are classes.

    With `read_on`, more lines are read where they improve the result: after a label 0, which is not a class, for a more
    precise message, after an unlabelled line, to find names, and after names, to find lists. It is False for a pipe,
    where the user would wait. With `only_names`, labels are known to be classes, and only names are to be detected,
    and lists if `lists` is True; without `lists` the first label of a list stands for it.
    `classes` says whether labels are classes, None until that is known, `name` is the first label if labels are names,
    `list` the first label that is a list, else empty, and `names_in_list` says whether its labels are names.
    """

    def __init__(self, read_on: bool = False, only_names: bool = False, lists: bool | None = None) -> None:
        self._read_on, self._only_names = read_on, only_names
        self._lists = not only_names if lists is None else lists
        self.classes: bool | None = None
        self.name = self.list = ""
        self.names_in_list = False
        self._seen: set[int] = set()  # numbers so far
        self._identifier = self._signed = ""  # the first number that only a name can be, and the first one with a +
        self._has_zero = self._has_negative = self._fraction = self._settled = False
        self._labels = self._names = self._lines = 0

    @property
    def outside(self) -> bool:
        """Return whether some of the numbers, 0 and negative ones, are no numbers of classes."""
        return self._has_zero or self._has_negative

    @property
    def silent(self) -> bool:
        """Return whether there is no label."""
        return not (self.name or self._labels or self._fraction or self.list.strip(","))

    def add(self, line: bytes) -> None:
        """Examine one line of VW text, without its newline."""
        head, bar, _ = line.removeprefix(b"\xef\xbb\xbf").partition(b"|")  # the parser skips the byte order mark, too
        words = head.split()
        if bar and words and not head[-1:].isspace():
            words.pop()  # a word that touches the bar is a tag
        self.add_label(words[0] if words and not words[0].startswith(b"'") else b"", bool(bar))

    def add_label(self, label: bytes, may_be_name: bool = True) -> None:
        """Examine the label of one example, empty for none."""
        if self.classes is not None:
            return
        self._lines += 1
        if self._lists and label == b",":  # a list without labels, which does not tell what labels are
            self.list = ","
        elif self._lists and b"," in label:
            self.add_list(label, bool(self.name) or any(map(_is_name, label.split(b","))))
            return
        label = label.partition(b",")[0]
        if label:
            is_name = not NUMBER_LIKE.fullmatch(label) and label not in NOT_NAMES
            if may_be_name and not self._labels and is_name:
                self.name = self.name or label.decode("utf-8", "replace")
                self._count_name(1)
                return
            if self.name and self._names < MIN_NAMES:  # a number: the names before were headings or mistakes
                self.name, self.classes = "", self._only_names
                return
            if not self.name:
                self._add_number(label.decode("utf-8", "replace"))
        if self._labels == MAX_LABELS or self._lines == MAX_LINES or (self._only_names and not self._read_on):
            self.end()

    def add_list(self, label: bytes, names: bool) -> None:
        """Examine a label that is a list, whose labels are names or numbers."""
        if self._lists and self.classes is None:
            self.list, self.names_in_list, self.classes = label.decode("utf-8", "replace"), names, True

    def _count_name(self, least: int) -> None:
        """Count a name; labels are names after MIN_NAMES, but if there is more to read, later labels may be lists."""
        self._names = max(self._names + 1, least)
        if self._names >= (MAX_LABELS if self._read_on and self._lists else MIN_NAMES):
            self.classes = True

    def _add_number(self, label: str) -> None:
        number, value = class_names.number_of(label), class_names.whole_number(label)
        if value is None:
            self.classes, self._fraction = self._only_names, True
            return
        self._labels += 1
        negative = label.startswith("-")
        self._has_negative = self._has_negative or negative
        self._has_zero = self._has_zero or number == 0
        if number > HIGHEST_LABEL or (number == class_names.OTHER_FORM and label[0] == "0"):
            self._identifier = self._identifier or label
        elif number == class_names.OTHER_FORM and not negative:
            self._signed = self._signed or label
        self._seen.add(value)
        if (negative or number == 0) and not self._read_on:
            self.end()

    def settle(self, name: bytes) -> None:
        """Decide that labels are names, because `name` is one, whatever it looks like, such as text in JSON."""
        if self.classes is not None:
            return
        if self._lists and b"," in name:
            self.add_list(name, True)
            return
        if not self._settled:
            self.name, self._settled = name.partition(b",")[0].decode("utf-8", "replace"), True
        self._count_name(MIN_NAMES)

    def end(self) -> None:
        if self.classes is not None:
            return
        if self.list:
            self.names_in_list, self.classes = bool(self.name), True
            return
        several = len(self._seen) >= MIN_CLASSES
        if not self._has_negative and not self.name:
            self.name = self._identifier or (self._signed if several or self._only_names else "")
        classes = several and not self.outside
        self.classes = classes or self._only_names or bool(self.name)

    def note(self) -> str:
        """Return the message about what was detected, or an empty string if labels are plainly numbers."""
        if self.name:
            action = "numbered in order of appearance, as with --learn_names"
            if not self._only_names:
                action = "learning classes, as with --multiclass --learn_names"
            name = shown(self.name)
            if not self._labels:
                return f"labels are names, the first of them {name!r}: {action}"
            why = "would lose its zeros or sign as the number of a class"
            if self._settled:
                why = "is text, not a number"
            elif class_names.number_of(self.name) > HIGHEST_LABEL:
                why = f"is above {HIGHEST_LABEL}, the largest number of a class"
            return f"labels are names, because {name!r} {why}: {action}{'' if self._only_names else NUMBERS_INSTEAD}"
        if self._only_names or not self._labels:
            return ""
        if self.classes:
            return (
                f"labels are whole numbers ({len(self._seen)} different among the first {self._labels}): learning "
                f"classes, as with --multiclass{NUMBERS_INSTEAD}"
            )
        doubt = "" if self._fraction else self._doubt()
        return f"the first labels are {doubt}" if doubt else ""

    def _doubt(self) -> str:
        """Return why whole numbers are not taken for classes, and a cure; empty where numbers are plainly meant."""
        if self._has_negative:
            if self._seen <= {-1, 1}:
                return ""
            return (
                "whole numbers, some of them negative: learning numbers, as VW does; to learn classes, give "
                "--multiclass --learn_names"
            )
        if self._has_zero and len(self._seen) != 2 and (len(self._seen) > 1 or not self._read_on):
            return (
                "whole numbers, one of them 0: learning numbers, as VW does; classes are counted from 1: to learn "
                "classes, add 1 to every label, or give --multiclass and --named_labels 0,1,2,..."
            )
        if len(self._seen) == 1 and self._labels == MAX_LABELS:
            return "all the same: learning numbers, as VW does; to learn classes that follow, give --multiclass"
        if len(self._seen) == 2 and not self._seen <= {0, 1}:
            return "two whole numbers: learning numbers, as VW does; to learn two classes, give --multiclass"
        return ""


def shown(label: str) -> str:
    return label if len(label) <= SHOWN_LENGTH else label[:SHOWN_LENGTH] + "..."


def _is_name(label: bytes) -> bool:
    """Return whether a label of a list can only be a name."""
    number = class_names.number_of(label.decode("utf-8", "replace"))
    identifier = number > HIGHEST_LABEL or (number == class_names.OTHER_FORM and label[:1] == b"0")
    return bool(label) and (identifier or not NUMBER_LIKE.fullmatch(label))
