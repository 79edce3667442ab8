"""List the types of predictions and labels by VW's numbers, and hold the labels of an example."""

from __future__ import annotations

import enum
from typing import NamedTuple


class PredictionType(enum.IntEnum):
    """List the types of predictions, by VW's numbers."""

    SCALAR = 0
    SCALARS = 1
    ACTION_PROBS = 3
    MULTICLASS = 4
    MULTILABELS = 5


class LabelType(enum.IntEnum):
    """List the types of labels, by VW's numbers."""

    SIMPLE = 1
    MULTICLASS = 2
    MULTILABEL = 10


class SimpleLabel(NamedTuple):
    """Hold the real-valued label of an example."""

    label: float
    weight: float
    initial: float
    prediction: float


class MulticlassLabel(NamedTuple):
    """Hold the class of an example."""

    label: int
    weight: float
    prediction: int


class MultilabelLabel(NamedTuple):
    """Hold the list of labels of an example."""

    labels: list[int]
