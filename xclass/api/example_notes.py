"""Warn of what a user may want to know about examples: their labels, features that are unknown, skipped updates.

`ExampleNotes` counts labels that are missing or unknown, and updates that are skipped because they would have made a
number infinite (`binary.finite`).

`LabelCheck` examines the first labels that are learned, and warns where they seem to mean something else than the user
thinks:

    runs     nearly every label repeats the one before, as in data that are sorted by class
    own      each example has another label, and these are numbers without gaps, or texts
    names    they are lists of labels with a separator, or lists as Python writes them, or have the prefix of another
             format, or look like other names

`UnknownFeatures` finds examples none of whose features was learned before. If it is predicted, such an example gets the
answer of one without features, whatever it says. If a model learns on from such examples, what it has learned is of no
use for them. Most often they were written in another form than those learned: in another namespace, as columns that
count from another number, or as words instead of numbers.

The examples of files and of programs pass here, so the warnings reach every interface.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..array_types import Bools, Int64s
from ..binary import finite
from ..data import class_names, feature_names
from ..data.alike_names import AlikeNames
from ..data.batch import Batch
from ..data.feature_names import Hashing
from ..reductions.core.contract import BatchTask
from ..system.printable import short_repr

Core = Any  # `learner_core.LearnerCore`, which imports this module

# of LabelCheck
FEWEST_LABELS, LABELS = 40, 1000  # labels that are examined first, and all unless they repeat one another
MOST_LABELS = 1 << 17  # that are examined until several classes have occurred, or one occurs again
REPEATED, MORE = 0.9, 0.15  # least share of labels that repeat the one before, and by how much more than by chance
DOMINANT, RUNS = 0.75, 1.5  # share of labels of one class from which more runs of it for each class are usual
WORDS_OF_TEXT = 4  # words of a label that is a text
SEPARATORS = ";|"
WRITTEN_LIST = re.compile(r"\[\s*['\"].*|.*['\"]\s*\]")  # or its first or last item, where a comma or blank divides it
PREFIX = "__label__"
GIVE_LISTS = "give a list of labels for each example, which --multilabel learns"

# of UnknownFeatures
MOST = 256  # examples that are looked at, the first ones of a call or run
FEWEST = 16  # examples, learned and to learn from, without which nothing is said when a model learns on
MOST_KEPT = 1 << 16  # features of which it is kept that they were learned, and columns that are sought in a model
WIDEST_GAP = 16  # columns in a row that a model may lack before the last one
LEARNED = np.zeros(1, bool)  # of an example with a feature that was learned


class ExampleNotes:
    """Count the examples that passed the stages, for warnings and for the summary.

    `labels` is that of the reduction's record, `named` says whether labels are names, and `before` are the counts that
    skipped updates continue from. `skipped_steps` is the number of examples with skipped updates, of which each counts
    once in every pass, and `first_skipped` the warning about the first one, empty if there is none.
    """

    def __init__(self, labels: str, named: bool, before: ExampleNotes | None = None) -> None:
        self._kind, self._named = labels, named
        self.skipped_steps: int = before.skipped_steps if before else 0
        self.first_skipped: str = before.first_skipped if before else ""
        self._examples = self._unlabelled = self._labels = self._unknown = 0
        self._with_labels = self._without = 0  # predicted examples that have labels, those to which none is given
        self._first_unknown = ""  # place of the first unknown label
        self._held_out: set[float] = set()  # labels of examples that were held out, and of those that were learned
        self._learned: set[float] = set()

    def count_labels(self, task: BatchTask) -> None:
        """Count the labels of a task."""
        batch = task.batch
        label, row = batch.label, np.arange(batch.n)
        self._examples += batch.n
        self._unlabelled += int(np.count_nonzero(np.isnan(label)))
        if task.label_lists is not None and task.class_lists is None and not task.learn:
            with_labels = label > 0
            self._with_labels += int(np.count_nonzero(with_labels))
            self._without += int(np.count_nonzero(with_labels & (np.diff(task.label_lists.chosen.start) == 0)))
        if batch.has_lists:
            label, row = batch.labels, np.repeat(row, np.diff(batch.label_start))
        unknown, labelled = label == class_names.UNKNOWN, ~np.isnan(label)
        self._labels += int(np.count_nonzero(labelled))
        if task.held_out is not None:
            held_out = task.held_out[row]
            self._held_out.update(np.unique(label[labelled & held_out]).tolist())
            self._learned.update(np.unique(label[labelled & ~held_out]).tolist())
        if self._named and unknown.any():
            self._first_unknown = self._first_unknown or f"{task.read.file}:{batch.line[row[int(np.argmax(unknown))]]}"
            self._unknown += int(np.count_nonzero(unknown))

    def count_skipped(self, task: BatchTask) -> list[str]:
        """Count the skipped updates of a learned task; return a warning if the first one is among them."""
        batch, skipped = task.batch, task.guard.skipped
        if not np.count_nonzero(skipped):
            return []
        empty = np.diff(batch.start) == 0  # an example without features has no update to skip
        rows = np.flatnonzero((skipped == finite.EXAMPLE_SKIPPED) | ((skipped != 0) & ~empty))
        before = self.skipped_steps
        self.skipped_steps += len(rows)
        if before or not len(rows):
            return []
        i = rows[0]
        values = np.abs(np.append(batch.value[batch.start[i] : batch.start[i + 1]], batch.dense[i : i + 1]))
        largest = values.max(initial=0)  # NaN if any value is NaN
        smallest = values.min(initial=largest)
        weight = f"weight {batch.weight[i]:g}" if batch.weight[i] > 0 else "a weight that is not finite"
        reason = (
            f"as it would make a weight or a sum infinite (values from {smallest:g} to {largest:g}, {weight}, label "
            f"{batch.label[i]:g}); scale values to between 1e-15 and 1e+15 and weights to between 1e-30 and 1e+6, or "
            "lower --learning_rate"
        )
        if 0 < batch.weight[i] < finite.LEAST_WEIGHT:
            reason = (
                f"because its {weight} is below {finite.LEAST_WEIGHT:g}, the least that is learned; give a larger "
                "weight, or 0 to leave the example out"
            )
        place = f"{task.read.file or 'batch'}:{batch.line[i]}"
        self.first_skipped = f"{place}: the update of this example is skipped, {reason}"
        return [self.first_skipped]

    def add(self, other: ExampleNotes) -> None:
        """Add what was counted in the examples that follow."""
        self.skipped_steps += other.skipped_steps
        self._examples += other._examples
        self._unlabelled += other._unlabelled
        self._labels += other._labels
        self._unknown += other._unknown
        self._with_labels += other._with_labels
        self._without += other._without
        self._first_unknown = self._first_unknown or other._first_unknown
        self._held_out |= other._held_out
        self._learned |= other._learned

    def summary(self, exact: bool) -> list[str]:
        """Return the lines of the summary about skipped updates, and about labels that only some examples lack.

        VW (`exact`) says nothing of the latter.
        """
        lines = []
        if self.skipped_steps > 1:
            skipped = f"which would have made a number infinite = {self.skipped_steps}"
            lines.append(f"examples with skipped updates, {skipped}")
        if 0 < self._unlabelled < self._examples and not exact:
            lines.append(f"examples without a label = {self._unlabelled}")
        return lines

    def warnings(self) -> list[str]:
        """Return warnings: of classes that were never learned, examples without predictions, and unknown names."""
        lines = []
        never_learned = len(self._held_out - self._learned)
        if self._kind != "simple" and never_learned:
            lines.append(
                f"classes that occur only in held-out lines, and so were not learned = {never_learned}; --holdout_off "
                "learns from all lines"
            )
        if 2 * self._without > self._with_labels:
            lines.append(
                f"{self._without} of {self._with_labels} examples that have labels are given none, because no "
                "probability is above the threshold; with a lower --threshold more labels are predicted"
            )
        if not self._unknown:
            return lines
        effect = "they are never predicted" if self._kind == "multilabel" else "their examples count as errors"
        return [
            *lines,
            f"{self._first_unknown}: {self._unknown} of {self._labels} labels are not names of classes of the model, "
            f"this is the first; {effect}",
        ]


# -- labels


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
        self._due = FEWEST_LABELS  # labels after which they are examined again
        self._named = False  # whether a warning about the names was given
        self.doubted = False  # whether a warning has said that another column may have the labels, or none can

    def check(self, batch: Batch, of_file: bool = True) -> list[str]:
        """Return warnings about the labels of a batch, which a program has given if it is not `of_file`.

        Few examples that a program gives at once are a stream, in which runs are usual.
        """
        self._ordered = self._ordered and (of_file or batch.n >= FEWEST_LABELS)
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
        if self.doubted or not FEWEST_LABELS <= n == len(self._count) < MOST_LABELS:
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


# -- features


class UnknownFeatures:
    """Look at the first examples that a learner predicts in a run, or since `begin` was called."""

    def __init__(self) -> None:
        # bool[n], whether no feature of each example of the last task was learned; None if that was not looked for
        self.found: Bools | None = None
        self._learned: set[int] = set()  # features that were learned, so that single examples cost no time
        self.begin()

    def begin(self, looks_at_all: bool = False) -> None:
        """Begin with the examples that come; with `looks_at_all`, look at each of them, and have no message."""
        self._examples = self._unknown = 0
        self._most = math.inf if looks_at_all else MOST

    def look(self, core: Core, task: BatchTask) -> None:
        """Set `found` if the examples of a task are among the first, and count them."""
        batch, self.found = task.batch, None
        if self._examples >= self._most or task.learn or not batch.n:
            return
        if batch.n == 1 and not self._learned.isdisjoint(batch.index.tolist()):
            self.found = LEARNED
            self._examples += 1
            return
        self.found = self._find(core, batch)
        if self.found is None or (batch.n == 1 and core.learns_singly):
            self._most = 0
            return
        self._examples += batch.n
        self._unknown += int(np.count_nonzero(self.found))

    def messages(self, core: Core, ended: bool = True) -> list[str]:
        """Return the message, once, if no feature of most of the examples was learned.

        Unless the examples have `ended`, there is none before all of the first ones were looked at.
        """
        examples, unknown = self._examples, self._unknown
        if self._most > MOST or (examples < self._most and not ended):
            return []
        self._most = self._unknown = 0
        return [message(core, unknown, examples)] if 2 * unknown > examples else []

    def when_continuing(self, core: Core, task: BatchTask) -> list[str]:
        """Return a message if no feature of most of the first examples was learned before the task is learned from."""
        unknown = self._find(core, task.batch, MOST)
        examples = min(task.batch.n, MOST)
        number = 0 if unknown is None else int(np.count_nonzero(unknown))
        if 2 * number <= examples or examples < FEWEST or core.examples < FEWEST:
            return []
        return [
            f"{number} of the first {examples} examples to learn from have no feature that the model has learned, so "
            f"what it has learned is of no use for them{_cure(core, None)}"
        ]

    def _find(self, core: Core, batch: Batch, most: int | None = None) -> Bools | None:
        """Return bool[n], whether each example has features, none of which was learned; None if it is not known.

        False stands for all examples behind the first `most`.
        """
        if core.spec.vw_exact or not core.examples:
            return None
        constants = int(core.spec.constant)
        has_features = np.diff(batch.start) > constants
        if batch.columns:
            has_features &= ~batch.dense.any(axis=1)
        rows = np.flatnonzero(has_features[:most])
        first = batch.index[batch.start[rows]]
        found = core.reduction.find(first)
        if found is None:
            return None
        self._keep(first[found])
        unknown = np.zeros(batch.n, bool)
        for i in rows[~found].tolist():
            others = batch.index[batch.start[i] + 1 : batch.start[i + 1] - constants]
            known = others[core.reduction.find(others)]
            unknown[i] = not len(known)
            self._keep(known)
        return unknown

    def _keep(self, features: np.ndarray) -> None:
        if len(self._learned) < MOST_KEPT:
            self._learned.update(features.tolist())


def shifted(core: Core, columns: Int64s, rule: Hashing, given: str, advice: str, model: str = "the model") -> str:
    """Return the note of `feature_names.shift_note` about columns, int64[c], that `given` has, or nothing."""
    if not core.examples:
        return ""

    def known(among: Int64s) -> Bools | None:
        found: Bools | None = core.reduction.find(feature_names.column_indices(among, rule))
        return found

    return feature_names.shift_note(columns, known, f"{model} has learned from", given, advice)


def learned_columns(core: Core, rule: Hashing) -> Int64s:
    """Return the numbers of the columns that a model seems to have learned from, int64[c], rising; none if unknown.

    The features of names that are no numbers may share places with columns, so the search ends at a gap.
    """
    found = core.reduction.find(feature_names.column_indices(np.arange(MOST_KEPT), rule))
    columns = np.flatnonzero(found if found is not None else ())
    gaps = np.flatnonzero(np.diff(columns, prepend=-1) > WIDEST_GAP)
    return columns[: gaps[0]] if len(gaps) else columns


def message(core: Core, unknown: int, examples: int, text: str | None = None) -> str:
    """Return the message that none of the features of `unknown` of some examples was learned.

    `text` is the first of them, None for the last text that was converted.
    """
    which, verb, pronoun = f"{unknown} of the first {examples} examples", "have", "they get"
    if examples == 1:
        which, verb, pronoun = "the example", "has", "it gets"
    return (
        f"{which} {verb} no feature that the model has learned, so {pronoun} the answer of an example without "
        f"features{_cure(core, text)}"
    )


def _cure(core: Core, text: str | None) -> str:
    space = core.namespace_of_words(text)
    if space is not None:
        where = f"in the namespace {short_repr(space)}" if space else "without a namespace"
        return f"; it has learned these words {where}: write `|{space} words of the text`"
    if core.schema.width:
        return f"; it has learned from rows of {core.schema.width} numbers"
    return ""
