"""Tell from the first labels whether data are of classes, and whether labels are names.

Whole numbers from 1, three different ones among the first, are classes. Other numbers (-1 and 1, 0, with a fraction)
are for the learner alone, as they are in VW. Where the first three labels are no numbers, labels are names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..data.batch import HIGHEST_LABEL

LABELS, LINES = 100, 1000  # labels that are looked at, in so many lines
NAMES = 3  # labels that have to be names before labels are taken for names; a first line may be a heading
MOST_SHOWN = 40  # characters of a name in a message
DIFFERENT = 3  # of them make classes; two may be what VW users have for two classes, or counts
LABEL = re.compile(rb"0*[1-9][0-9]{0,9}")
MEANT_AS_NUMBER = re.compile(rb"[+-]?\.?[0-9].*|[+-]?(nan|inf|infinity)", re.IGNORECASE)
OTHERS = (b"shared",)  # words of formats of VW that are not for classes


class Labels:
    """Looks at lines of text until it can tell whether their labels are classes.

    Parameters
    ----------
    patient : go on looking after a label 0, which is no class, to tell the user what the others are, and behind a line
        without a label for names; from a pipe nobody should have to wait for that
    only_names : that they are classes is known; look whether they are names

    Attributes
    ----------
    classes : True or False once that is known, None before.
    name : the first label where labels are names, else empty
    """

    def __init__(self, patient: bool = False, only_names: bool = False) -> None:
        self._patient, self._only_names, self._zero = patient, only_names, False
        self.classes: bool | None = None
        self.name = ""
        self.from_zero = self.two = False  # what may have been meant as classes, and is not taken for them
        self._seen: set[int] = set()
        self._labels = self._names = self._lines = 0

    def add(self, line: bytes) -> None:
        """Look at one line."""
        if self.classes is not None:
            return
        head, bar, _ = line.partition(b"|")
        words = head.split()
        if bar and words and not head[-1:].isspace():
            words.pop()  # it touches the bar: a tag
        self._lines += 1
        if words and not words[0].startswith(b"'"):
            if bar and not self._labels and _is_name(words[0]):
                self.name = self.name or words[0].decode("utf-8", "replace")
                self._names += 1
                self.classes = True if self._names == NAMES else None
                return
            if self.name or self._only_names:  # a line or two that are wrong, such as a heading, or numbers
                self.name, self.classes = "", self._only_names
                return
            self._zero = self._zero or not words[0].strip(b"0")
            whole = not words[0].strip(b"0") or (LABEL.fullmatch(words[0]) and int(words[0]) <= HIGHEST_LABEL)
            if not whole or (self._zero and not self._patient):
                self.from_zero = bool(whole) and len(self._seen) >= DIFFERENT - 1
                self.classes = False
                return
            self._labels += 1
            self._seen.add(int(words[0]))
        if self._labels == LABELS or self._lines == LINES or (self._only_names and not self._patient):
            self.end()

    def end(self) -> None:
        """No more lines are looked at."""
        if self.classes is None and (self._only_names or self.name):
            self.classes = True
        if self.classes is None:
            several = len(self._seen) >= DIFFERENT
            self.classes, self.from_zero = several and not self._zero, several and self._zero
            self.two = len(self._seen) == DIFFERENT - 1 and not self._zero

    def note(self) -> str:
        """What the user is told; nothing where it is plain that labels are numbers."""
        if self.from_zero:
            return (
                "the first labels are whole numbers, one of them 0: learning numbers, as VW does; classes are counted "
                "from 1: to learn them add 1 to every label, or give --multiclass and --named_labels 0,1,2,..."
            )
        if self.two:
            return (
                "the first labels are two whole numbers: learning numbers, as VW does; to learn two classes give "
                "--multiclass"
            )
        if self.name:
            what = "numbered as they come, as with --learn_names"
            if not self._only_names:
                what = "learning classes, as with --multiclass --learn_names"
            name = self.name if len(self.name) <= MOST_SHOWN else self.name[:MOST_SHOWN] + "..."
            return f"labels are names, the first of them {name!r}: {what}"
        if not self.classes or self._only_names:
            return ""
        return (
            f"labels are whole numbers ({len(self._seen)} different among the first {self._labels}): learning classes, "
            "as with --multiclass; for a number to be predicted give --loss_function squared"
        )


def _is_name(word: bytes) -> bool:
    """Whether a label cannot be meant as a number."""
    return not MEANT_AS_NUMBER.fullmatch(word) and word not in OTHERS


def wanted(
    given: Mapping[str, object],
    owners: Mapping[str, set[str]],
    reductions: set[str],
    proposed: str,
    common: set[str],
    look: Callable[[Labels], None],
    patient: bool,
) -> tuple[dict[str, object], str]:
    """What a command line asks for without saying so: --multiclass where it names no reduction, --learn_names.

    Parameters
    ----------
    given : field -> value, what the user typed.
    owners : field -> the groups that declare it.
    reductions : names of the reductions.
    proposed : the reduction that `multiclass` stands for.
    common : options of the binary learner that it takes too; another one asks for the learner alone.
    look : shows the first lines of the data to a `Labels`.
    patient : see `Labels`.

    Returns
    -------
    wanted : field -> value, by what options say or, where they say nothing, labels.
    note : what the user is told about it, or nothing.
    """
    if any(name in given for name in ("initial_regressor", "testonly", "vw_exact")):
        return {}, ""
    groups = [owners[name] for name in given]
    chosen: dict[str, object] = {}
    known = bool((reductions | {"multiclass", "hsm"}) & given.keys())
    if not known:
        if any(reductions & group and proposed not in group for group in groups):
            return {}, ""  # of another reduction: an error that says so, or the learner alone
        known = any(proposed in group or "answers" in group for group in groups)
        known = known or "named_labels" in given or "learn_names" in given
        if known:
            chosen["multiclass"] = 0
        elif any("learner" in owners[name] and name not in common for name in given):
            return {}, ""
        elif any(name in given for name in ("readable_model", "invert_hash", "audit")):
            return {}, ""  # they show the tables of the learner alone
    if known and ("named_labels" in given or "learn_names" in given):
        return chosen, ""
    labels = Labels(patient, only_names=known)
    look(labels)
    labels.end()
    if labels.classes and not known:
        chosen["multiclass"] = 0
    if labels.name:
        chosen["learn_names"] = True
    return chosen, labels.note()
