"""Find the functions of an ability of a reduction."""

from __future__ import annotations

import importlib
from typing import Any

from ..reductions.core.base import Learner, Reduction


def ability(record: Reduction, name: str) -> Any:
    """Return the module with the functions of an ability, None if the reduction lacks it."""
    return importlib.import_module(f".{name}.{record.name}", __package__) if name in record.abilities else None


def described(record: Reduction, what: str, learner: Learner, default: Any, *more: Any) -> Any:
    """Return what function `what` of the ability `describe` says about a learner, `default` without such a function."""
    function = getattr(ability(record, "describe"), what, None)
    return default if function is None else function(learner, *more)
