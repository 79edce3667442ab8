"""Give the features and classes of an explanation their names."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..array_types import Float64s
from ..data import class_names
from ..data.batch import CONSTANT, Batch
from ..system.steps import pause
from .feature_names import NamedFeature
from .records import ExplainedClass, Explanation, Label, OfFeatures, Reasons, Share, added, sum_of_rest, with_shares

Naming = Callable[[Any], Label]  # from a label as a learner has it to that which users see


def naming_of(names: Sequence[Any] | None, multiclass: bool) -> Naming:
    """Return the function that gives labels the form that users see; `names` is None if classes are numbers."""

    def shown(label: Any) -> Label:
        if not multiclass:
            return float(label)
        name: Label = class_names.name_of(label, names)
        return int(label) if name is None else name

    return shown


def without_unknown_label(batch: Batch) -> Batch:
    """Return the only example of a batch without its label if that is a name of no class."""
    return batch._replace(label=np.array([np.nan])) if batch.label[0] == class_names.UNKNOWN else batch


def explanation(
    reasons: Reasons, batch: Batch, features: Iterable[NamedFeature], naming: Naming, most: int | None = None
) -> Explanation:
    """Return the explanation of the prediction for the only example of a batch, with names.

    With `most`, it is what `Explanation.limited(most, most)` makes of it, which takes a fraction of the time.
    A feature that is not among `features`, or whose name is empty, is named by its index.
    """
    text = {}
    for feature in features:
        pause()
        text[feature.hash] = feature.text.decode("utf-8", "surrogateescape")
    numbers: dict[tuple[bool, str], int] = {}  # of the names of features, the constant apart
    number, names, first = np.empty(len(batch.index), np.int64), list[str](), list[int]()
    for f, hashed in enumerate(batch.index.tolist()):
        pause()
        name = text.get(hashed) or str(hashed)
        number[f] = known = numbers.setdefault((hashed == CONSTANT, name), len(names))
        if known == len(names):
            names.append(name)
            first.append(f)
    is_constant = np.zeros(len(names), bool)
    is_constant[number[batch.index == CONSTANT]] = True

    def named(shares: Iterable[Share]) -> tuple[Share, ...]:
        """Name shares, add up those of a feature and those of a part without a feature, and put features first."""
        of_part: dict[str, Float64s] = {}  # what the features of each name add
        others: dict[str, Share] = {}

        def add(name: str, summand: str, share: Share) -> None:
            known = others.get(name) or Share(name, 0.0)
            parts = added(known.parts, {summand: share.share}) if share.part else known.parts
            others[name] = known._replace(share=known.share + share.share, parts=parts)

        for share in shares:
            pause()
            if isinstance(share, OfFeatures):
                values = share.values()
                sums = np.bincount(number[: len(values)], values, len(names))
                for i in np.flatnonzero(is_constant & (sums != 0)).tolist():
                    add(names[i], share.part, share._replace(share=float(sums[i])))
                of_part[share.part] = of_part.get(share.part, 0.0) + np.where(is_constant, 0.0, sums)
            elif share.part:
                add(f"({share.part})", share.name, share)
            else:
                add(share.name, "", share)
        listed = [*of_features(of_part)]
        rest = [share for share in listed if share.others]
        return (*(share for share in listed if not share.others), *sorted(others.values(), key=_size), *rest)

    def of_features(of_part: dict[str, Float64s]) -> Iterator[Share]:
        total = sum(of_part.values(), np.zeros(len(names)))
        order = np.argsort(-np.abs(total), kind="stable")
        order = order[: np.count_nonzero(total)]
        shown = len(order) if most is None or len(order) <= most + 1 else most
        for i in order[:shown].tolist():
            pause()
            parts = {part: float(sums[i]) for part, sums in of_part.items() if part and sums[i]}
            yield Share(names[i], float(total[i]), feature=first[i], parts=parts)
        if shown < len(order):
            rest = order[shown:]
            parts = {part: math.fsum(sums[rest]) for part, sums in of_part.items() if part and sums[rest].any()}
            yield sum_of_rest(len(rest), math.fsum(total[rest]), parts)

    def parts_of(shares: Iterable[Share]) -> dict[str, float]:
        return functools.reduce(added, ({share.part: share.share} for share in shares if share.part), {})

    any_score = any(one.score is not None for one in reasons.classes)

    def explained(one: ExplainedClass) -> ExplainedClass:
        by_path = bool(one.path) and all(share.feature < 0 for share in one.shares)
        by_path = by_path and (one.score is not None or not any_score)
        one = replace(one, label=naming(one.label), by_path=by_path, parts=parts_of(one.shares))
        if most is not None and not one.needs_turns:
            one = replace(one, path=tuple(replace(turn, shares=()) for turn in one.path))
        return with_shares(one, named)

    label: Label | list[Label] = None
    if not math.isnan(batch.label[0]):
        label = [naming(y) for y in batch.labels.tolist() if y != class_names.UNKNOWN]
        label = label if batch.has_lists else naming(float(batch.label[0]))
    return Explanation(
        prediction=naming(reasons.classes[0].label) if reasons.considered and reasons.classes else None,
        label=label,
        classes=tuple(map(explained, reasons.classes)),
        others=tuple(replace(one, label=naming(one.label)) for one in reasons.others),
        considered=reasons.considered,
        formula=reasons.formula,
        uses_features=not reasons.classes or _any_share(reasons.classes, batch),
    )


def _any_share(classes: Sequence[ExplainedClass], batch: Batch) -> bool:
    """Return whether a feature of an example other than the constant adds to a score, or it has no other features."""
    features = batch.index != CONSTANT
    if not features.any():
        return True
    return any(
        isinstance(share, OfFeatures) and bool(share.values()[features[: len(share.values())]].any())
        for one in classes
        for own in (one.shares, *(turn.shares for turn in one.path))
        for share in own
    )


def _size(share: Share) -> float:
    return -abs(share.share)
