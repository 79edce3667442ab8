"""Define what `Learner.explain` returns, and what `--explain` writes: text for readers, or JSON lines for programs.

    Explanation -> ExplainedClass, ...  -> Share, ...   the shares of a score, which is their sum
                                        -> Turn, ...    the way through a tree -> Share, ...

A learner knows a feature by its position in the example only and returns `Reasons` (`abilities.describe`);
`explanation` gives features and classes their names.
"""

from __future__ import annotations

import functools
import html
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..array_types import Float64s
from ..data import class_names
from ..data.batch import CONSTANT, Batch
from ..system.printable import printable
from ..system.steps import pause

if TYPE_CHECKING:
    from .feature_names import NamedFeature

SMALLEST = 5e-7  # shares that text does not show, because they would be 0.000000
SHARES, SHARES_OF_TURN = 10, 3  # shares of a class and of a turn that are printed
Label: TypeAlias = int | float | str | None  # number or name of a class, or a predicted number
Naming: TypeAlias = Callable[[Any], Label]  # from a label as a learner has it to that which users see


class Share(NamedTuple):
    """Hold what a feature, or something else with a name, adds to a score.

    Attributes
    ----------
    name : str
        Name of the feature, or the number that its name is hashed to if the name is not known. What a part of the
        learner adds without a feature is named by the part, as "(trees)".
    share : float
        What it adds; negative if it speaks against the class.
    part : str
        Part of the learner that it comes from, such as "scorer"; empty if there is only one, and in an explanation,
        where a feature has one share.
    feature : int
        Position of the feature in the example, of the first of several with the same name; -1 if it is no feature, or
        the constant.
    parts : dict of str to float
        What the share is the sum of: for a feature, what it adds in each part of the learner; for a part, what it says
        without a feature. Empty if there is only one part.
    others : int
        Number of features whose sum this is, 0 for a single one, see `Explanation.limited`.
    """

    name: str
    share: float
    part: str = ""
    feature: int = -1
    parts: Mapping[str, float] = {}
    others: int = 0


class OfFeatures(Share):
    """Stand for the shares of all features until they have names: `values` returns them, float64[s], 0 for none."""

    values: Callable[[], Float64s]


@dataclass(frozen=True)
class Turn:
    """Hold a decision on the way through a tree.

    A node of more than two branches has a turn without a score for its branch, and then a turn for each of its
    regressors.

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
        Those of features, the largest absolute value first; then the others.
    tree : int
        Number of the tree.
    """

    node: str
    side: str
    score: float | None = None
    probability: float | None = None
    shares: tuple[Share, ...] = ()
    tree: int = 0

    def as_dict(self) -> dict[str, Any]:
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
        Those of features, the largest absolute value first; then the others.
    path : tuple of Turn
        The way through each tree to the class, or as far as the example went.
    parts : dict of str to float
        The sum of the shares of each part of the learner; empty if there is only one.
    by_path : bool
        Whether the path alone decides, so that no share is that of a feature; those of the turns are.
    """

    label: Label
    score: float | None = None
    probability: float | None = None
    shares: tuple[Share, ...] = ()
    path: tuple[Turn, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    by_path: bool = False

    @property
    def needs_turns(self) -> bool:
        """Return whether only the turns tell why: the path alone decides, or the class was not compared."""
        return self.by_path or self.score is None

    def as_dict(self) -> dict[str, Any]:
        fixed = {"class": self.label, **_numbers(self.score, self.probability), "parts": _finite(self.parts)}
        return {**fixed, "shares": _listed(self.shares), "path": [turn.as_dict() for turn in self.path]}


@dataclass(frozen=True, repr=False)
class Explanation:
    """Hold the explanation of one prediction.

    Attributes
    ----------
    prediction : int, float, str or None
        The predicted class or number, None if there is no class to predict yet.
    label : int, float, str, list of them or None
        The label or the list of labels of the example, None if it is not known.
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
    label: Label | list[Label]
    classes: tuple[ExplainedClass, ...]
    others: tuple[ExplainedClass, ...]
    considered: int
    formula: str
    uses_features: bool = True

    def __str__(self) -> str:
        """Return the explanation as the command prints it, with the largest shares."""
        return self.as_text()

    def __repr__(self) -> str:
        return (
            f"<Explanation: prediction {self.prediction!r}, label {self.label!r}, {self.considered} classes compared; "
            "print it to read why>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def as_text(self, with_parts: bool = False) -> str:
        """Return the explanation as the command prints it, with the largest shares, and with their parts if wanted."""
        return "\n".join(map(printable, lines_of(self.limited(SHARES, SHARES_OF_TURN), with_parts)))

    def limited(self, most: int, most_of_turn: int) -> Explanation:
        """Return the same with the largest features of classes and turns only; a last share has the sum of the others.

        Turns keep none where scorers, and not the trees, have decided.
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


class Reasons(NamedTuple):
    """Hold the explanation of a prediction as a learner gives it, without the names of features and classes.

    A label is a class as written in the file, or a predicted number. The share of a feature has an empty name.
    """

    classes: list[ExplainedClass]  # the first k classes, the prediction first, and the label if it is none of them
    others: list[ExplainedClass]  # the next classes, without shares
    considered: int  # number of classes that were compared
    formula: str = ""  # see Explanation


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


def _largest(shares: tuple[Share, ...], most: int) -> tuple[Share, ...]:
    """Return the first shares of features, those of all else, and one with the sum of the other features."""
    of_features = [share for share in shares if share.feature >= 0]
    if len(of_features) <= most + 1:
        return shares
    rest = of_features[most:]
    parts = functools.reduce(added, (share.parts for share in rest))
    summed = sum_of_rest(len(rest), math.fsum(share.share for share in rest), parts)
    return (*of_features[:most], *(share for share in shares if share.feature < 0), summed)


def sum_of_rest(count: int, total: float, parts: Mapping[str, float]) -> Share:
    """Return the share with the sum of `count` features that are not listed."""
    return Share(f"(rest: {count} features)", total, parts=parts, others=count)


def added(sums: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """Return the sums of values of the same name."""
    return {**sums, **{name: sums.get(name, 0.0) + value for name, value in values.items()}}


def _numbers(score: float | None, probability: float | None) -> dict[str, float | None]:
    return _finite({"score": score, "probability": probability})


def _listed(shares: tuple[Share, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": share.name,
            **_finite({"share": share.share}),
            **({"parts": _finite(share.parts)} if share.parts else {}),
            **({"others": share.others} if share.others else {}),
        }
        for share in shares
    ]


def _finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return numbers by their names, None for those that are not finite, which JSON does not have."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in values.items()}


# names


def naming_of(names: Sequence[Any] | None, multiclass: bool) -> Naming:
    """Return the function that gives labels the form that users see; `names` is None if classes are numbers."""

    def shown(label: Any) -> Label:
        if not multiclass:
            return float(label)
        name: Label = class_names.name_of(label, names)
        return int(label) if name is None else name

    return shown


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
        without = most is not None and not one.needs_turns
        path = (replace(turn, shares=() if without else named(turn.shares)) for turn in one.path)
        return replace(one, shares=named(one.shares), path=tuple(path))

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


# as text


def lines_of(
    explanation: Explanation, with_parts: bool = False, line: int | None = None, tag: str = ""
) -> Iterator[str]:
    """Yield the lines of an explanation; `line` is None for an example that is in no file."""
    head = "" if line is None else f"line {line}" + (f" '{tag}" if tag else "") + ": "
    head += f"prediction {_shown(explanation.prediction)}"
    if explanation.label is not None:
        head += f", label {_shown(explanation.label)}"
    compared = explanation.considered
    unused = "" if explanation.uses_features else ", no feature adds to the scores (check names and namespaces)"
    yield f"{head}, {compared} {'class' if compared == 1 else 'classes'} compared{unused}"
    for explained in explanation.classes:
        yield from _of_class(explained, with_parts)
    if explanation.others:
        yield "  next: " + ", ".join(f"{_shown(c.label)} ({_brief(c)})" for c in explanation.others)


def as_json(explanation: Explanation, line: int, tag: str) -> str:
    return json.dumps({"line": line, "tag": tag, **explanation.as_dict()}, allow_nan=False)


def _of_class(explained: ExplainedClass, with_parts: bool) -> Iterator[str]:
    yield f"  {_shown(explained.label)}: {_scores(explained)}" + (_summands(explained.parts) if with_parts else "")
    if explained.by_path:
        yield from (f"    {_turn(turn)}" for turn in explained.path)
        return
    for share in explained.shares:
        if abs(share.share) >= SMALLEST:
            yield f"    {share.share:+12.6f}  {share.name}" + (_summands(share.parts) if with_parts else "")
    if with_parts or explained.needs_turns or not explained.parts:
        yield from _path(explained.path)


def _summands(parts: Mapping[str, float]) -> str:
    shown = ", ".join(f"{part} {value:.6g}" for part, value in parts.items() if abs(value) >= SMALLEST)
    return f" = {shown}" if shown else ""


def _path(path: tuple[Turn, ...]) -> Iterator[str]:
    """Yield a line for each tree with the least probable turn, or one line with all turns that have no probability."""
    sure = [turn for turn in path if turn.probability is not None]
    if path and not sure:
        yield "    path: " + ", ".join(f"{turn.node} {turn.side} {_how_sure(turn)}" for turn in path)
    for tree, of_tree in itertools.groupby(sure, lambda turn: turn.tree):
        turns = list(of_tree)
        probability = math.prod(turn.probability or 0.0 for turn in turns)
        least = min(turns, key=lambda turn: turn.probability or 0.0)
        yield (
            f"    tree {tree}: probability {probability:.3g}, {len(turns)} turn{'s' * (len(turns) != 1)}, "
            f"the least sure {_turn(least)}"
        )


def _turn(turn: Turn) -> str:
    shares = ", ".join(f"{share.name} {share.share:+.4g}" for share in turn.shares)
    return f"{turn.node} {turn.side} {_how_sure(turn)}" + (f": {shares}" if shares else "")


def _how_sure(turn: Turn) -> str:
    if turn.probability is not None:
        return f"{turn.probability:.3g}"
    return f"(score {turn.score:.4g})"


def _scores(explained: ExplainedClass) -> str:
    if explained.score is None and explained.probability is not None:
        return f"probability {explained.probability:.6g}, not compared"
    if explained.score is None:
        return "at the end of the path"
    if explained.probability is None:
        return f"score {explained.score:.6g}"
    return f"probability {explained.probability:.6g}, score {explained.score:.6g}"


def _brief(explained: ExplainedClass) -> str:
    return f"{explained.score:.4g}" if explained.probability is None else f"{explained.probability:.4g}"


def _shown(label: object) -> str:
    if isinstance(label, list):
        return ",".join(map(_shown, label)) or ","
    if label is None:
        return "none"
    return f"{label:g}" if isinstance(label, float) else str(label)
