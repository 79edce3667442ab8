"""Offer a method of an estimator only where the reduction can do what it needs, as scikit-learn expects (`hasattr`).

The error says why; that of `sklearn.utils.metaestimators.available_if` names only the method.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from ..api import configuration
from ..reductions import registry

Method = Callable[..., Any]


class AvailableMethod:
    """Hold a method that an estimator may lack; `reason_against` returns why, or an empty text."""

    def __init__(self, method: Method, reason_against: Callable[[Any], str]) -> None:
        self._method, self._reason_against = method, reason_against
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type) -> Method:
        if estimator is None:
            return self._method
        reason = self._reason_against(estimator)
        if reason:
            raise AttributeError(f"{owner.__name__} has no {self._method.__name__} here: {reason}")
        return MethodType(self._method, estimator)


def _reason_against_probabilities(estimator: Any) -> str:
    record = configuration.record_of(estimator.reduction)
    if record is None:
        return f"{estimator.reduction!r} is no reduction"
    if record.probabilities:
        return ""
    names = registry.listed(lambda other: other.probabilities and other.labels == record.labels)
    return f"{estimator.reduction} does not estimate probabilities; choose one of {names}"


def _reason_against_pieces(estimator: Any) -> str:
    record = configuration.record_of(estimator.reduction)
    if record is not None and record.learns_at_end:
        return f"{estimator.reduction} learns from all examples at once, not piece by piece; call fit"
    return ""


with_probabilities = functools.partial(AvailableMethod, reason_against=_reason_against_probabilities)
piece_by_piece = functools.partial(AvailableMethod, reason_against=_reason_against_pieces)
