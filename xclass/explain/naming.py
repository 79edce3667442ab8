"""Give the features and classes of an explanation their names."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import class_names
from ..data.batch import CONSTANT, Batch
from ..system.steps import pause
from .feature_names import NamedFeature
from .records import ExplainedClass, Explanation, Label, Reasons, Share, added, with_shares

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
    reasons: Reasons, batch: Batch, features: Iterable[NamedFeature], naming: Naming, all_turns: bool = True
) -> Explanation:
    """Return the explanation of the prediction for the only example of a batch, with names.

    Without `all_turns`, turns have shares only where they tell why, see `Explanation.limited`, which saves much time.
    A feature that is not among `features`, or whose name is empty, is named by its index.
    """
    text = {feature.hash: feature.text.decode("utf-8", "surrogateescape") for feature in features}
    names = [text.get(hashed) or str(hashed) for hashed in batch.index.tolist()]

    def named(shares: Iterable[Share]) -> tuple[Share, ...]:
        """Name shares, add up those of a feature and those of a part without a feature, and put features first."""
        sums: dict[tuple[bool, str], Share] = {}
        for share in shares:
            pause()
            is_feature = share.feature >= 0 and batch.index[share.feature] != CONSTANT
            own = names[share.feature] if share.feature >= 0 else share.name
            of_part = bool(share.part) and share.feature < 0
            name, summand = (f"({share.part})", own) if of_part else (own, share.part)
            known = sums.get((is_feature, name)) or Share(name, 0.0, feature=share.feature if is_feature else -1)
            parts = added(known.parts, {summand: share.share}) if share.part else known.parts
            sums[is_feature, name] = known._replace(share=known.share + share.share, parts=parts)
        return tuple(sorted(sums.values(), key=lambda share: (share.feature < 0, -abs(share.share))))

    def parts_of(shares: Iterable[Share]) -> dict[str, float]:
        return functools.reduce(added, ({share.part: share.share} for share in shares if share.part), {})

    any_score = any(one.score is not None for one in reasons.classes)

    def explained(one: ExplainedClass) -> ExplainedClass:
        by_path = bool(one.path) and all(share.feature < 0 for share in one.shares)
        by_path = by_path and (one.score is not None or not any_score)
        one = replace(one, label=naming(one.label), by_path=by_path, parts=parts_of(one.shares))
        if not (all_turns or one.needs_turns):
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
    if (batch.index == CONSTANT).all():
        return True
    return any(
        share.share != 0 and share.feature >= 0 and batch.index[share.feature] != CONSTANT
        for one in classes
        for own in (one.shares, *(turn.shares for turn in one.path))
        for share in own
    )
