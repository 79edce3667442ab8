"""Define the record of parser options that is passed to kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data import class_names


class Rules(NamedTuple):
    """Hold what kernels need to know to parse a line; `Parser` derives it from its options."""

    multiclass: bool  # whether labels are classes
    mask: np.uint32  # the bits of a hash that make the index of a feature
    hash_all: bool  # whether names that are numbers are hashed, too
    hash_seed: np.uint32  # seed of the hash
    unnamed: np.uint32  # hash of the namespace without a name
    constant: bool  # whether the constant feature is added
    treatment: int  # what to do at malformed lines: STOP, SKIP or VW, see `malformed`
    vw_numbers: bool  # whether numbers are read by `vw_numbers`
    lowest: int  # lowest class allowed
    highest: int  # highest class allowed; -1 if every class is
    names: class_names.Table  # names of classes listed in advance
    learn_names: bool  # whether labels are names that are numbered later; `names` is empty then
