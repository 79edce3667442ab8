"""Make the lines at the start of a run, before the progress table: in plain words, or with VW's names.

Lines have at most 80 columns, except warnings and those with names of files, which are not broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...abilities.find import described
from ...api.configuration import Config, chosen_name, grows
from ...api.learner_core import LearnerCore
from ...binary import in_words
from ...options.resolve import SCALAR
from ...reductions.core import base, probabilities
from ..passes import PassOptions as Passes

WIDTH = 80  # columns
NAMING = ("Data: ", "Cache: ")  # beginnings of lines of a source with names of files


def plain(c: Config, model: LearnerCore, source: Sequence[str], namespaces: Sequence[str]) -> list[str]:
    """Return the lines in plain words; `source` has those about data and cache."""
    learner, o = model.reduction, c.run
    lines = [_reduction(c, model), *described(c.reduction, "banner", learner, []), *namespaces]
    crosses = [*c.interactions.quadratic, *c.interactions.cubic, *c.interactions.interactions]
    if crosses:
        lines.append(f"Interactions: {' '.join(crosses)}")
    if o.testonly:
        lines.append("Learning: none, only predictions")
    else:
        applies = c.reduction.learner_options
        of_rule = in_words.learning(c.learner) if applies is None or "learning_rate" in applies else []
        lines += described(c.reduction, "learning_lines", learner, of_rule, c.learner)
    lines += _passes(c.passes, c.learner.decay_learning_rate, not o.testonly)
    if learner.lists_scores:
        listed = "probabilities" if c.listing_options.probabilities else "scores"
        lines.append(f"Predictions: the {listed} of all classes")
        if c.listing_options.probabilities == probabilities.RAW:
            lines[-1] += ", not divided by their sum"
    files = []
    if o.initial_regressor:
        files.append(f"Model: {o.initial_regressor}, which has learned {_counted(model.examples, 'example')}")
    files += [part for line in source for part in ([line] if line.startswith(NAMING) else _broken(line))]
    for words, name in (
        ("Model saved to", o.final_regressor),
        ("Predictions written to", o.predictions),
        ("Scores written to", o.raw_predictions),
    ):
        if name:
            files.append(f"{words}: {name}")
    return [*(part for line in lines for part in _broken(line)), *files]


def as_vw(c: Config, learner: base.Reduction, source: Sequence[str], namespaces: Sequence[str], data: str) -> list[str]:
    """Return VW's lines; `data` is named if there are no lines about cache and data (`source`)."""
    o, crossed = c.run, c.interactions
    kind = c.reduction.labels
    output = {"simple": "SCALAR", "multilabel": "MULTILABELS"}.get(kind, "MULTICLASS")
    if kind == "multilabel" and c.listing_options.probabilities:
        output = "SCALARS"
    lines = []
    for words, names in (
        ("quadratic features for pairs", crossed.quadratic),
        ("cubic features for triples", crossed.cubic),
        ("features for following interactions", crossed.interactions),
    ):
        if names:
            lines.append(f"creating {words}: {' '.join(names)}")
    lines += [*namespaces, *(["only testing"] if o.testonly else [])]
    for number, strength in ((1, c.learner.l1), (2, c.learner.l2)):
        if strength:
            lines.append(f"using l{number} regularization = {strength:g}")
    for words, name in (
        ("final_regressor", o.final_regressor),
        ("predictions", o.predictions),
        ("raw predictions", o.raw_predictions),
    ):
        if name:
            lines.append(f"{words} = {name}")
    return [
        *lines,
        *described(c.reduction, "vw_banner", learner, []),
        *(source or ("using no cache", f"Reading datafile = {data}")),
        "num sources = 1",
        f"Num weight bits = {c.learner.bits}",
        f"learning rate = {c.learner.learning_rate:g}",
        f"initial_t = {c.learner.initial_t:g}",
        f"power_t = {c.learner.power_t:g}",
        *([f"decay_learning_rate = {c.learner.decay_learning_rate:g}"] if c.passes.passes > 1 else []),
        f"Enabled learners: {learner.enabled or c.reduction.enabled}",
        f"Input label = {kind.upper()}",
        f"Output pred = {'SCALARS' if learner.lists_scores else output}",
    ]


def _reduction(c: Config, model: LearnerCore) -> str:
    """Return the line about the reduction and its classes."""
    name, title = c.reduction.name, c.reduction.title
    if name == SCALAR:
        return f"Reduction: none; one regressor learns {'labels -1 and 1' if c.scalar.binary else 'numbers'}"
    if title[1:2].islower():  # no abbreviation
        title = title[0].lower() + title[1:]
    seen, given = model.reduction.classes_seen, model.spec.classes
    words = ("label", "labels") if c.reduction.labels == "multilabel" else ("class", "classes")
    if seen:
        classes = f"{_counted(seen, *words)} so far"
    elif given:
        about = "about " if grows(c.reduction) else ""
        classes = f"{about}{_counted(given, *words)}"
    else:
        classes = f"any number of {words[1]}"
    names = ", labels are names" if model.names.class_list is not None else ""
    return f"Reduction: {title} (--{chosen_name(c)}), {classes}{names}"


def _passes(options: Passes, decay: float, learning: bool) -> list[str]:
    """Return the lines about passes and lines that are held out."""
    lines = []
    if options.passes > 1:
        decayed = f", the learning rate times {decay:g} after each" if learning and decay != 1 else ""
        lines.append(f"Passes: {options.passes}{decayed}")
    if learning and options.holds_out:
        which = f"those after line {options.holdout_after:,}"
        if not options.holdout_after:
            which = f"1 in {options.holdout_period:,}"
        lines.append(f"Held-out lines: {which}, which are predicted but not learned")
    return lines


def _counted(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _broken(line: str) -> list[str]:
    """Return a line in pieces of at most 80 columns, of which those after the first are indented."""
    if line.startswith("warning:"):
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
