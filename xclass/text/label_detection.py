"""Detect from the first labels of the data whether they are classes, and whether they are names.

If the first labels are whole numbers from 1 on and at least three of them differ, they are classes. Other numbers (-1
and 1, 0, fractions) are real-valued labels for the binary learner without a reduction, as in VW. If none of the first
three labels is a number, labels are names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..data.batch import HIGHEST_LABEL
from ..errors import UsageError

MAX_LABELS, MAX_LINES = 100, 1000  # detection ends after this many labels or lines
MIN_NAMES = 3  # labels are names once the first three are; a single name may be a heading
SHOWN_LENGTH = 40  # characters of a name in a message
MIN_CLASSES = 3  # number of different whole numbers that are taken for classes; two may be binary labels, or counts
CLASS_NUMBER = re.compile(rb"0*[1-9][0-9]{0,9}")
NUMBER_LIKE = re.compile(rb"[+-]?\.?[0-9].*|[+-]?(nan|inf|infinity)", re.IGNORECASE)
NOT_NAMES = (b"shared",)  # words that begin lines in other formats of VW
NUMBERS_ANYWAY = (
    "labels look like classes, and --{option} without a reduction means learning numbers; to learn classes, give "
    "--multiclass or another reduction"
)

BINARY_CLASSES = (
    "--binary predicts -1 or 1, and the labels look like classes; to learn classes, leave it out; to learn from the "
    "labels as numbers, give --loss_function squared as well"
)
LOSSES_OF_TWO = ("logistic", "hinge")  # losses of labels -1 and 1; any other one of --loss_function asks for numbers


class LabelDetector:
    """Examine lines of text until it is known whether their labels are classes.

    Parameters
    ----------
    read_on : whether to read on where more lines improve the result: after a label 0, which is not a class, for a more
        precise message, and after an unlabelled line, to find names. False for a pipe, where the user would wait
    only_names : whether labels are known to be classes, and only names are to be detected

    Attributes
    ----------
    classes : whether labels are classes; None until that is known
    name : the first label if labels are names, else empty
    counted_from_zero : whether labels look like classes counted from 0, which are learned as numbers
    two_labels : whether labels are two different whole numbers, which are learned as numbers
    """

    def __init__(self, read_on: bool = False, only_names: bool = False) -> None:
        self._read_on, self._only_names, self._has_zero = read_on, only_names, False
        self.classes: bool | None = None
        self.name = ""
        self.counted_from_zero = self.two_labels = False
        self._seen: set[int] = set()
        self._labels = self._names = self._lines = 0

    def add(self, line: bytes) -> None:
        """Examine one line of text, without its newline."""
        if self.classes is not None:
            return
        head, bar, _ = line.removeprefix(b"\xef\xbb\xbf").partition(b"|")  # the parser skips the byte order mark, too
        words = head.split()
        if bar and words and not head[-1:].isspace():
            words.pop()  # a word that touches the bar is a tag
        self._lines += 1
        if words and not words[0].startswith(b"'"):
            if bar and not self._labels and _is_name(words[0]):
                self.name = self.name or words[0].decode("utf-8", "replace")
                self._names += 1
                self.classes = True if self._names == MIN_NAMES else None
                return
            if self.name or self._only_names:  # a number after names: the names were headings or mistakes
                self.name, self.classes = "", self._only_names
                return
            self._has_zero = self._has_zero or not words[0].strip(b"0")
            is_whole = not words[0].strip(b"0") or (CLASS_NUMBER.fullmatch(words[0]) and int(words[0]) <= HIGHEST_LABEL)
            if not is_whole or (self._has_zero and not self._read_on):
                self.counted_from_zero = bool(is_whole) and len(self._seen) >= MIN_CLASSES - 1
                self.classes = False
                return
            self._labels += 1
            self._seen.add(int(words[0]))
        if self._labels == MAX_LABELS or self._lines == MAX_LINES or (self._only_names and not self._read_on):
            self.end()

    def settle(self, name: bytes) -> None:
        """Decide that labels are names, the first of them `name`."""
        self.classes, self.name = True, name.decode("utf-8", "replace")

    def end(self) -> None:
        """Decide by the lines examined so far, because there are no more."""
        if self.classes is None and (self._only_names or self.name):
            self.classes = True
        if self.classes is None:
            several = len(self._seen) >= MIN_CLASSES
            self.classes, self.counted_from_zero = several and not self._has_zero, several and self._has_zero
            self.two_labels = len(self._seen) == MIN_CLASSES - 1 and not self._has_zero

    def note(self) -> str:
        """Return the message about what was detected, or an empty string if labels are plainly numbers."""
        if self.counted_from_zero:
            return (
                "the first labels are whole numbers, one of them 0: learning numbers, as VW does; classes are counted "
                "from 1: to learn classes, add 1 to every label, or give --multiclass and --named_labels 0,1,2,..."
            )
        if self.two_labels:
            return (
                "the first labels are two whole numbers: learning numbers, as VW does; to learn two classes, give "
                "--multiclass"
            )
        if self.name:
            action = "numbered in order of appearance, as with --learn_names"
            if not self._only_names:
                action = "learning classes, as with --multiclass --learn_names"
            name = self.name if len(self.name) <= SHOWN_LENGTH else self.name[:SHOWN_LENGTH] + "..."
            return f"labels are names, the first of them {name!r}: {action}"
        if not self.classes or self._only_names:
            return ""
        return (
            f"labels are whole numbers ({len(self._seen)} different among the first {self._labels}): learning classes, "
            "as with --multiclass; to predict numbers instead, give --loss_function squared"
        )


def _is_name(word: bytes) -> bool:
    """Return whether a label cannot be meant as a number."""
    return not NUMBER_LIKE.fullmatch(word) and word not in NOT_NAMES


def implied_options(
    given: Mapping[str, object],
    owners: Mapping[str, set[str]],
    reductions: set[str],
    multiclass_reduction: str,
    common: set[str],
    examine_lines: Callable[[LabelDetector], None],
    read_on: bool,
) -> tuple[dict[str, object], str]:
    """Return the options that a command line implies: --multiclass if no reduction is given, and --learn_names.

    Parameters
    ----------
    given : the options that the user typed, field -> value
    owners : field -> the option groups that declare it
    reductions : names of the reductions
    multiclass_reduction : the reduction that `multiclass` stands for
    common : options of the binary learner that `multiclass` accepts, too; any other one implies the binary learner
        without a reduction
    examine_lines : passes the first lines of the data to a `LabelDetector`; called only if the options do not decide
    read_on : see `LabelDetector`

    Returns
    -------
    wanted : field -> value, implied by the options, or by the labels if the options do not decide
    note : message about what was detected, or an empty string
    """
    if any(name in given for name in ("initial_regressor", "testonly", "vw_exact")):
        return {}, ""
    groups = [owners[name] for name in given]
    implied: dict[str, object] = {}
    classes_known = bool((reductions | {"multiclass", "hsm"}) & given.keys())
    if not classes_known:
        if any(reductions & group and multiclass_reduction not in group for group in groups):
            if "binary" in given and given.get("loss_function") in (None, *LOSSES_OF_TWO):
                labels = LabelDetector(read_on)
                examine_lines(labels)
                labels.end()
                if labels.classes:
                    raise UsageError(BINARY_CLASSES)
            return {}, ""  # an option of another reduction, or of the binary learner alone
        classes_known = any(multiclass_reduction in group or "listing_options" in group for group in groups)
        classes_known = classes_known or "named_labels" in given or "learn_names" in given
        if classes_known:
            implied["multiclass"] = 0
        elif given.get("loss_function") not in (None, *LOSSES_OF_TWO):
            return {}, ""
        elif numeric := [
            name for name in given if "learner" in owners[name] and name not in common | {"loss_function"}
        ]:
            labels = LabelDetector(read_on)
            examine_lines(labels)
            labels.end()
            return {}, NUMBERS_ANYWAY.format(option=numeric[0]) if labels.classes else ""
    if classes_known and ("named_labels" in given or "learn_names" in given):
        return implied, ""
    labels = LabelDetector(read_on, only_names=classes_known)
    examine_lines(labels)
    labels.end()
    if labels.classes and not classes_known:
        implied["multiclass"] = 0
    if labels.name:
        implied["learn_names"] = True
    return implied, labels.note()
