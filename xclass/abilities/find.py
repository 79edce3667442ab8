"""Find the functions of an ability of a reduction."""

from __future__ import annotations

import importlib
from typing import Any

from ..reductions.core.base import Reduction


def ability(record: Reduction, name: str) -> Any:
    """Return the module with the functions of an ability, None if the reduction lacks it."""
    return importlib.import_module(f".{name}.{record.name}", __package__) if name in record.abilities else None
