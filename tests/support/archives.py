"""Save and restore a part of the state of a learner by its function `serialize`, whose first argument is an archive."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xclass.model.archive import Archive


def saved(serialize: Callable[..., object], *arguments: object, predict_only: bool = False) -> dict[str, np.ndarray]:
    """Return a copy of the arrays of a part."""
    archive = Archive(predict_only=predict_only)
    serialize(archive, *arguments)
    return {name: np.array(array) for name, array in archive.arrays.items()}


def restored(
    arrays: Mapping[str, Any], serialize: Callable[..., Any], *arguments: object, predict_only: bool = False
) -> Any:
    """Return what a function returns that restores a part from arrays."""
    return serialize(Archive(arrays, {}, predict_only), *arguments)
