"""Describe one-against-all."""

from __future__ import annotations

from ...binary import in_words
from ...reductions.oaa.reduction import SLOT_BYTES, OneAgainstAll


def banner(learner: OneAgainstAll) -> list[str]:
    sampled = [f"Negative classes: {learner.sampled} learn from each example"] if learner.sampled else []
    return [*sampled, in_words.table(learner.learner_options.bits, SLOT_BYTES), *learner.crowding]


def vw_banner(learner: OneAgainstAll) -> list[str]:
    return [f"memory: {learner.memory / 2**20:.0f} MB of weights", *learner.crowding]


def summary(learner: OneAgainstAll) -> list[str]:
    """Return the lines that this reduction adds to the summary of a run."""
    if not learner.needs_probabilities:
        return []
    return learner.report.lines()


def figures(learner: OneAgainstAll) -> dict[str, float]:
    """Return the figures of the summary by name."""
    return learner.report.figures() if learner.needs_probabilities else {}
