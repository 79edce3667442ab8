"""Match the classes of models by their names, because models that learned apart may have numbered them differently."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array_types import Int64s
from ..data.class_names import key_of


def merged_names(names: Sequence[Sequence[str]], base: Sequence[str]) -> list[str]:
    """Return the names of all classes: those of the base, then the others in the order of the models.

    A class that is spelled in several ways has its first spelling.

    Parameters
    ----------
    names : names of the classes of each model
    base : names of the classes of the base
    """
    spellings: dict[str, str] = {}
    for name in [*base, *(name for model in names for name in model)]:
        spellings.setdefault(key_of(name), name)
    return list(spellings.values())


def new_numbers(names: Sequence[str], merged: Sequence[str]) -> Int64s | None:
    """Return the number that each class of a model has in the merged model.

    Parameters
    ----------
    names : names of the classes of the model, all different
    merged : names of all classes

    Returns
    -------
    int64[classes + 1], 0 for number 0; None if all classes keep their numbers
    """
    place = {key_of(name): number for number, name in enumerate(merged, 1)}
    numbers = [0, *(place[key_of(name)] for name in names)]
    return None if numbers == list(range(len(numbers))) else np.array(numbers, np.int64)
