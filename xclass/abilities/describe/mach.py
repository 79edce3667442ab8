"""Describe MACH."""

from __future__ import annotations

from ...binary import in_words
from ...reductions.mach.reduction import Mach
from ...reductions.oaa.scorers import SLOT_BYTES


def banner(learner: Mach) -> list[str]:
    sizes = f"Buckets: {learner.buckets} in each of {learner.repetitions} repetitions"
    return [sizes, in_words.table(learner.learner_options.bits, SLOT_BYTES)]
