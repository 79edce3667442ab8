"""Define what `Learner.explain` returns, and what `--explain` writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

Label: TypeAlias = int | float | str | None  # number or name of a class, or a predicted number


class Share(NamedTuple):
    """Hold what a feature, or something else with a name, adds to a score.

    Attributes
    ----------
    name : str
        Name of the feature, or the number that its name is hashed to if the name is not known.
    share : float
        What it adds; negative if it speaks against the class.
    part : str
        Part of the learner that it comes from, such as "scorer"; empty if there is only one.
    """

    name: str
    share: float
    part: str = ""


@dataclass(frozen=True)
class Turn:
    """Hold a decision on the way through a tree.

    Attributes
    ----------
    node : str
        The node, by the name that `--print_tree` gives it; for `ect`, a match by the number that `-r` gives it.
    side : str
        Where the example went: "left", "right", "branch B", or "stays" if it went no further. A regressor of a node
        of many branches is "odd" or "even".
    score : float or None
        Score of the regressor that decided, the sum of `shares`.
    probability : float or None
        Probability of this side, None if the tree does not estimate it.
    shares : tuple of Share
        The largest first, by their absolute value.
    tree : int
        Number of the tree.
    """

    node: str
    side: str
    score: float | None
    probability: float | None
    shares: tuple[Share, ...]
    tree: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        fixed = {"tree": self.tree, "node": self.node, "side": self.side, **_numbers(self.score, self.probability)}
        return {**fixed, "shares": _listed(self.shares)} if self.shares else fixed


@dataclass(frozen=True)
class ExplainedClass:
    """Hold why a class has its score.

    Attributes
    ----------
    label : int, float or str
        Number or name of the class, or the predicted number.
    score : float or None
        Score by which classes are compared, the sum of `shares`; None if the class has none, because it was not
        considered or because a tree without scorers decided.
    probability : float or None
        Probability of the class, None if the reduction does not estimate it.
    shares : tuple of Share
        The largest first, by their absolute value.
    path : tuple of Turn
        The way through each tree to the class, or as far as the example went.
    by_path : bool
        Whether the path alone decides, so that no share is that of a feature; those of the turns are.
    """

    label: Label
    score: float | None
    probability: float | None
    shares: tuple[Share, ...] = ()
    path: tuple[Turn, ...] = ()
    by_path: bool = False

    @property
    def needs_turns(self) -> bool:
        """Return whether only the turns tell why: the path alone decides, or the class was not compared."""
        return self.by_path or self.score is None

    @property
    def parts(self) -> dict[str, float]:
        """Return the sum of the shares of each part of the learner; empty if there is only one."""
        sums: dict[str, float] = {}
        for share in self.shares:
            if share.part:
                sums[share.part] = sums.get(share.part, 0.0) + share.share
        return sums

    def as_dict(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        fixed = {"class": self.label, **_numbers(self.score, self.probability), "parts": _finite(self.parts)}
        return {**fixed, "shares": _listed(self.shares), "path": [turn.as_dict() for turn in self.path]}


@dataclass(frozen=True)
class Explanation:
    """Hold the explanation of one prediction.

    Attributes
    ----------
    prediction : int, float, str or None
        The predicted class or number, None if there is no class to predict yet.
    label : int, float, str or None
        The label of the example, None if it is not known.
    classes : tuple of ExplainedClass
        The first k classes, the prediction first; then the label, if it is none of them.
    others : tuple of ExplainedClass
        The next classes, without shares.
    considered : int
        Number of classes that were compared.
    formula : str
        Python expression that gives the probability of a class from `score` and the sums of its parts; empty if the
        reduction does not estimate probabilities.
    uses_features : bool
        False if no feature of the example but the constant has a share in the score or the path of a class that is
        explained, although it has others.
    """

    prediction: Label
    label: Label
    classes: tuple[ExplainedClass, ...]
    others: tuple[ExplainedClass, ...]
    considered: int
    formula: str
    uses_features: bool = True

    def limited(self, most: int, most_of_turn: int) -> Explanation:
        """Return the same with the largest shares only; a last share has the sum of the others.

        Parameters
        ----------
        most : number of shares of a class
        most_of_turn : number of shares of a turn; none are kept where scorers, and not the trees, have decided
        """
        return replace(
            self,
            classes=tuple(
                replace(
                    explained,
                    shares=_largest(explained.shares, most),
                    path=tuple(
                        replace(turn, shares=_largest(turn.shares, most_of_turn) if explained.needs_turns else ())
                        for turn in explained.path
                    ),
                )
                for explained in self.classes
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {
            "prediction": self.prediction,
            "label": self.label,
            "considered": self.considered,
            "formula": self.formula,
            "uses_features": self.uses_features,
            "classes": [explained.as_dict() for explained in self.classes],
            "others": [{"class": c.label, **_numbers(c.score, c.probability)} for c in self.others],
        }


def notes(explanations: Sequence[Explanation]) -> list[str]:
    """Return a note if there are examples whose features have no share."""
    count = sum(not one.uses_features for one in explanations)
    if not count:
        return []
    of = "" if len(explanations) == 1 else f" in {count} of {len(explanations)} examples"
    return [
        f"no feature adds to the scores of the classes explained{of}; check that names and namespaces of features are "
        "those of training"
    ]


def by_size(shares: Mapping[tuple[str, str], float]) -> tuple[Share, ...]:
    """Return the shares of parts and names, the largest absolute value first."""
    listed = [Share(name, share, part) for (part, name), share in shares.items()]
    return tuple(sorted(listed, key=lambda share: -abs(share.share)))


def _largest(shares: tuple[Share, ...], most: int) -> tuple[Share, ...]:
    """Return the first shares, and for each part one with the sum of its others, or its only other one."""
    rest: dict[str, list[Share]] = {}
    for share in shares[most:]:
        rest.setdefault(share.part, []).append(share)
    others = [
        of_part[0]
        if len(of_part) == 1
        else Share(f"({len(of_part)} more)", math.fsum(share.share for share in of_part), part)
        for part, of_part in rest.items()
    ]
    return (*shares[:most], *others)


def _numbers(score: float | None, probability: float | None) -> dict[str, float | None]:
    """Return a score and a probability by their names."""
    return _finite({"score": score, "probability": probability})


def _listed(shares: tuple[Share, ...]) -> list[dict[str, Any]]:
    """Return shares as values that JSON has."""
    return [
        {"name": share.name, **_finite({"share": share.share}), **({"part": share.part} if share.part else {})}
        for share in shares
    ]


def _finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return numbers by their names, None for those that are not finite, which JSON does not have."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in values.items()}
