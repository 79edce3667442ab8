"""Merge probabilistic label trees, whose labels must have the same numbers in all models."""

from __future__ import annotations

from ...binary import merging, weight_table
from ...errors import ModelError
from ...reductions.plt.vw_learner import VwLabelTree
from .sources import Sources, check_continued


def listed_tables(learner: VwLabelTree) -> dict[str, tuple[str, ...]]:
    return {"weights": weight_table.COLUMNS}


def merge(learner: VwLabelTree, sources: Sources) -> list[str]:
    for keys, path in zip(sources.keys, sources.paths, strict=True):
        if list(keys) != list(sources.merged_keys[: len(keys)]):
            raise ModelError(
                f"{path} has the names of its labels in another order than {sources.paths[0]}, so that they are in "
                "other places of the tree; train all with the same --named_labels"
            )
    learners, base = sources.learners, sources.base
    learner.table, k = merging.merge_tables(
        learner.table, [one.table for one in learners], base.table, learner.rule.adaptive, sources.examples,
        sources.changes_of("weights"),
    )  # fmt: skip
    learner.tables = [learner.table]
    check_continued(k, sources)
    for name in ("updated", "counts"):
        own = getattr(base, name)
        getattr(learner, name)[:] = own + sum(getattr(one, name) - own for one in learners)
    return learner.merge_threshold(learners)
