"""Find the functions of an ability of a reduction."""

from __future__ import annotations

import importlib
from typing import Any

from ..kernels import jit
from ..reductions.core.base import Learner, Reduction
from .describe import tree_view


def ability(record: Reduction, name: str) -> Any:
    """Return the module with the functions of an ability, None if the reduction lacks it."""
    if name not in record.abilities:
        return None
    module = importlib.import_module(f".{name}.{record.name}", __package__)
    jit.include_later()
    return module


def described(record: Reduction, what: str, learner: Learner, default: Any, *more: Any) -> Any:
    """Return what function `what` of the ability `describe` says about a learner, `default` without such a function."""
    function = getattr(ability(record, "describe"), what, None)
    return default if function is None else function(learner, *more)


def figures(record: Reduction, learner: Learner) -> dict[str, float]:
    """Return the figures of the summary by name: what `describe` says, or else those of the report."""
    known = learner.report.figures() if learner.report else {}
    figures: dict[str, float] = described(record, "figures", learner, known)
    return figures


def summary(record: Reduction, learner: Learner) -> list[str]:
    """Return the lines of the summary: what `describe` says, or else those of the report and about the tree."""
    known = [*(learner.report.lines() if learner.report else []), *tree_view.lines(figures(record, learner))]
    lines: list[str] = described(record, "summary", learner, known)
    return lines
