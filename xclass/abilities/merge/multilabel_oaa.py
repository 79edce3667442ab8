"""Merge one-against-all for lists of labels as that for one label, and add up how often each label was learned."""

from __future__ import annotations

import numpy as np

from ...reductions.multilabel_oaa.reduction import MultilabelOaa
from .oaa import merge_scorers
from .sources import Sources


def merge(learner: MultilabelOaa, sources: Sources) -> list[str]:
    """Fill a new learner with the merged state of others; return notes for the user."""
    base = sources.base.counts.copy()
    learner.counts[:] = base
    for one, columns in zip(sources.learners, merge_scorers(learner, sources), strict=True):
        learner.counts += (one.counts if columns is None else one.counts[np.append(columns, -1)]) - base
    return learner.merge_threshold(sources.learners)
