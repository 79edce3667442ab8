"""How lines are to be read, as kernels take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import class_names


class Rules(NamedTuple):
    """How to read; made by `Parser`."""

    multiclass: bool
    mask: np.uint32  # of a feature's index
    hash_all: bool
    hash_seed: np.uint32
    unnamed: np.uint32  # hash of the namespace without a name
    constant: bool
    treatment: int
    lowest: int  # classes allowed
    highest: int  # -1: every class
    names: class_names.Table
    names_come: bool  # labels are names that are numbered later; `names` is empty
