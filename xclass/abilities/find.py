"""Find the functions of an ability of a reduction."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import class_names
from ..data.batch import Batch
from ..errors import UsageError
from ..kernels import jit
from ..reductions.core.base import Reduction, ReductionRecord
from .describe import views

if TYPE_CHECKING:
    from ..explain import records
    from ..explain.feature_names import NamedFeature


def ability(record: ReductionRecord, name: str) -> Any:
    """Return the module with the functions of an ability, None without one, which a foreign reduction may lack."""
    if name == "merge" and record.not_merged:
        return None
    module = f"{__package__}.{name}.{record.name}"
    with jit.importing():
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None


def described(record: ReductionRecord, what: str, learner: Reduction, default: Any, *more: Any) -> Any:
    """Return what function `what` of the ability `describe` says about a learner, `default` without such a function."""
    function = getattr(ability(record, "describe"), what, None)
    return default if function is None else function(learner, *more)


def explanation(
    record: ReductionRecord, learner: Reduction, batch: Batch, features: Iterable[NamedFeature], naming: records.Naming,
    k: int, most: int | None = None,
) -> records.Explanation:  # fmt: skip
    """Explain the prediction for the only example of a batch, with k classes, see `records.explanation`."""
    from ..explain import records

    if batch.label[0] == class_names.UNKNOWN:
        batch = batch._replace(label=np.array([np.nan]))
    explains = ability(record, "describe")
    if explains is None:
        raise UsageError(
            f"--{record.name}: its predictions cannot be explained, because there is no module "
            f"{__package__}.describe.{record.name}; write it, as Adding a reduction says"
        )
    reasons = explains.explain(learner, batch, k)
    return records.explanation(reasons, batch, features, naming, most)


def figures(record: ReductionRecord, learner: Reduction) -> dict[str, float]:
    """Return the figures of the summary by name: what `describe` says, or else those of the report."""
    known = learner.report.figures() if learner.report else {}
    figures: dict[str, float] = described(record, "figures", learner, known)
    return figures


def summary(record: ReductionRecord, learner: Reduction) -> list[str]:
    """Return the lines of the summary: what `describe` says, or else those of the report and about the tree."""
    known = [*(learner.report.lines() if learner.report else []), *views.lines(figures(record, learner))]
    lines: list[str] = described(record, "summary", learner, known)
    return lines
