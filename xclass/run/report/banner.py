"""Make the lines at the start of a run, before the progress table: in plain words, or with VW's names.

Lines have at most 80 columns, except warnings and those with names of files, which are not broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...abilities.find import described
from ...api import progress_table
from ...api.configuration import Config, chosen_name, grows
from ...api.learner import Learner
from ...binary import in_words
from ...options.resolve import SCALAR
from ...reductions.core import base
from ..passes import HeldOutLines
from ..passes import Options as Passes

WIDTH = 80  # columns
NAMING = ("Data: ", "Cache: ")  # beginnings of lines of a source with names of files


def plain(c: Config, model: Learner, source: Sequence[str], namespaces: Sequence[str]) -> list[str]:
    """Return the lines in plain words.

    Parameters
    ----------
    c : options of the run
    model : the learner
    source : lines about data and cache
    namespaces : lines about namespaces and n-grams
    """
    learner, o = model.reduction, c.run
    lines = [_reduction(c, model), *described(c.reduction, "banner", learner, []), *namespaces]
    crosses = [*c.interactions.quadratic, *c.interactions.cubic, *c.interactions.interactions]
    if crosses:
        lines.append(f"Interactions: {' '.join(crosses)}")
    if o.testonly:
        lines.append("Learning: none, only predictions")
    else:
        lines += described(c.reduction, "learning_lines", learner, in_words.learning(c.learner), c.learner)
    lines += _passes(c.passes, c.learner.decay_learning_rate, not o.testonly)
    if learner.lists_scores:
        listed = "probabilities" if c.listing_options.probabilities else "scores"
        lines.append(f"Predictions: the {listed} of all classes")
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


def as_vw(c: Config, learner: base.Learner, source: Sequence[str], namespaces: Sequence[str], data: str) -> list[str]:
    """Return VW's lines.

    Parameters
    ----------
    c : options of the run
    learner : the reduction's learner
    source : lines about cache and data
    namespaces : lines about ignored namespaces
    data : name of the data
    """
    o = c.run
    labels = "SIMPLE" if c.reduction.labels == "simple" else "MULTICLASS"
    output = {"SIMPLE": "SCALAR", "MULTICLASS": "MULTICLASS"}[labels]
    if learner.lists_scores:
        output = "SCALARS"
    return progress_table.vw_banner(
        quadratic=c.interactions.quadratic,
        cubic=c.interactions.cubic,
        interactions=c.interactions.interactions,
        source=source,
        decay=c.learner.decay_learning_rate if c.passes.passes > 1 else None,
        namespaces=namespaces,
        testing=o.testonly,
        l1=c.learner.l1,
        l2=c.learner.l2,
        model=o.final_regressor,
        predictions=o.predictions,
        raw_predictions=o.raw_predictions,
        learner=described(c.reduction, "vw_banner", learner, []),
        data=data,
        bits=c.learner.bits,
        learning_rate=c.learner.learning_rate,
        initial_t=c.learner.initial_t,
        power_t=c.learner.power_t,
        enabled=learner.enabled or c.reduction.enabled,
        labels=labels,
        output=output,
    )


def _reduction(c: Config, model: Learner) -> str:
    """Return the line about the reduction and its classes."""
    name, title = c.reduction.name, c.reduction.title
    if name == SCALAR:
        return f"Reduction: none; one regressor learns {'labels -1 and 1' if c.scalar.binary else 'numbers'}"
    if title[1:2].islower():  # no abbreviation
        title = title[0].lower() + title[1:]
    seen, given = model.reduction.classes_seen, getattr(getattr(c, name), name)
    if seen:
        classes = f"{_counted(seen, 'class', 'classes')} so far"
    elif given:
        about = "about " if grows(c.reduction) else ""
        classes = f"{about}{_counted(given, 'class', 'classes')}"
    else:
        classes = "any number of classes"
    names = ", labels are names" if model.names.class_list is not None else ""
    return f"Reduction: {title} (--{chosen_name(c)}), {classes}{names}"


def _passes(options: Passes, decay: float, learning: bool) -> list[str]:
    """Return the lines about passes and lines that are held out."""
    lines = []
    if options.passes > 1:
        decayed = f", the learning rate times {decay:g} after each" if learning and decay != 1 else ""
        lines.append(f"Passes: {options.passes}{decayed}")
    if learning and HeldOutLines(options).enabled:
        which = f"those after line {options.holdout_after:,}"
        if not options.holdout_after:
            which = f"1 in {options.holdout_period:,}"
        lines.append(f"Held-out lines: {which}, which are predicted but not learned")
    return lines


def _counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with a noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _broken(line: str) -> list[str]:
    """Return a line in pieces of at most 80 columns, of which those after the first are indented."""
    if line.startswith("warning:"):
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
