"""Give the features and classes of an explanation their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..abilities.explain.reasons import Candidate, Reasons, Term, Turn
from ..data import class_names
from ..data.batch import CONSTANT, Batch
from . import records
from .feature_names import NamedFeature
from .records import ExplainedClass, Explanation, Label, Share

Naming = Callable[[float], Label]  # from a label as a learner has it to that which users see


def naming_of(names: Sequence[str] | None, multiclass: bool) -> Naming:
    """Return the function that gives labels the form that users see.

    Parameters
    ----------
    names : names of the classes 1, 2, ...; None if classes are numbers
    multiclass : whether labels are classes
    """

    def shown(label: float) -> Label:
        if not multiclass:
            return float(label)
        return class_names.name_of(label, names) or int(label)

    return shown


def without_unknown_label(batch: Batch) -> Batch:
    """Return the only example of a batch without its label if that is a name of no class."""
    return batch._replace(label=np.array([np.nan])) if batch.label[0] == class_names.UNKNOWN else batch


def explanation(reasons: Reasons, batch: Batch, features: Iterable[NamedFeature], naming: Naming) -> Explanation:
    """Return the explanation of a prediction with names.

    Parameters
    ----------
    batch : the only example that was explained
    features : names of features; one that is missing, or whose name is empty, is named by its index
    naming : function of a label
    """
    text = {feature.hash: feature.text.decode("utf-8", "surrogateescape") for feature in features}
    names = [text.get(hashed) or str(hashed) for hashed in batch.index.tolist()]

    def turn(way: Turn) -> records.Turn:
        return records.Turn(way.node, way.side, way.score, way.probability, _shares(way.terms, names), way.tree)

    any_score = any(candidate.score is not None for candidate in reasons.candidates)

    def explained(candidate: Candidate) -> ExplainedClass:
        shares, path = _shares(candidate.terms, names), tuple(map(turn, candidate.path))
        by_path = bool(path) and all(term.feature < 0 for term in candidate.terms)
        by_path = by_path and (candidate.score is not None or not any_score)
        return ExplainedClass(naming(candidate.label), candidate.score, candidate.probability, shares, path, by_path)

    label = float(batch.label[0])
    first = reasons.candidates[0].label if reasons.considered and reasons.candidates else None
    return Explanation(
        prediction=None if first is None else naming(first),
        label=None if math.isnan(label) else naming(label),
        classes=tuple(map(explained, reasons.candidates)),
        others=tuple(map(explained, reasons.others)),
        considered=reasons.considered,
        formula=reasons.formula,
        uses_features=not reasons.candidates or _any_share(reasons.candidates, batch),
    )


def _any_share(candidates: Sequence[Candidate], batch: Batch) -> bool:
    """Return whether a feature of an example other than the constant adds to a score, or it has no other features."""
    if (batch.index == CONSTANT).all():
        return True
    terms = [term for one in candidates for own in (one.terms, *(way.terms for way in one.path)) for term in own]
    return any(term.share != 0 and term.feature >= 0 and batch.index[term.feature] != CONSTANT for term in terms)


def _shares(terms: Iterable[Term], names: Sequence[str]) -> tuple[Share, ...]:
    """Return the shares of terms; those of the same name and part are one share."""
    sums: dict[tuple[str, str], float] = {}
    for term in terms:
        key = term.part, names[term.feature] if term.feature >= 0 else term.name
        sums[key] = sums.get(key, 0.0) + term.share
    return records.by_size(sums)
