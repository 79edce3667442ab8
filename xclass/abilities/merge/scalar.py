"""Merge the weights of binary learners."""

from __future__ import annotations

from ...binary import merging
from ...reductions.scalar.reduction import Scalar
from .sources import Sources, check_continued


def merge(learner: Scalar, sources: Sources) -> list[str]:
    tables = sources.of("table")
    learner.table, k = merging.merge_tables(
        learner.table, tables.learners, tables.base, learner.rule.adaptive, sources.examples, sources.live
    )
    learner.tables = [learner.table]
    check_continued(k, sources)
    return []
