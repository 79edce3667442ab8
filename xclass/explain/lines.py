"""Write explanations as text for readers, or as JSON lines for programs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator

from .records import ExplainedClass, Explanation, Turn

SMALLEST = 5e-7  # shares that text does not show, because they would be 0.000000


def as_text(explanation: Explanation, line: int, tag: str) -> Iterator[str]:
    """Yield the lines of an explanation.

    Parameters
    ----------
    line : number of the example's line
    tag : tag of the example, empty for none
    """
    head = f"line {line}" + (f" '{tag}" if tag else "")
    head += f": prediction {_shown(explanation.prediction)}"
    if explanation.label is not None:
        head += f", label {_shown(explanation.label)}"
    compared = explanation.considered
    unused = "" if explanation.uses_features else ", no feature adds to the scores (check names and namespaces)"
    yield f"{head}, {compared} {'class' if compared == 1 else 'classes'} compared{unused}"
    for explained in explanation.classes:
        yield from _of_class(explained)
    if explanation.others:
        yield "  next: " + ", ".join(f"{_shown(c.label)} ({_brief(c)})" for c in explanation.others)
    if explanation.formula:
        yield f"  probability = {explanation.formula}"


def as_json(explanation: Explanation, line: int, tag: str) -> str:
    """Return an explanation as a line of JSON; the parameters are those of `as_text`."""
    return json.dumps({"line": line, "tag": tag, **explanation.as_dict()}, allow_nan=False)


def _of_class(explained: ExplainedClass) -> Iterator[str]:
    """Yield the lines about a class: its scores, its shares, and its path."""
    parts = ", ".join(f"{part} {value:.6g}" for part, value in explained.parts.items())
    yield f"  {_shown(explained.label)}: {_scores(explained)}" + (f" = {parts}" if parts else "")
    if explained.by_path:
        yield from (f"    {_turn(turn)}" for turn in explained.path)
        return
    width = max((len(share.part) + 2 for share in explained.shares if share.part), default=0)
    for share in explained.shares:
        if abs(share.share) < SMALLEST:
            continue
        yield f"    {share.share:+12.6f}  {share.part:{width}}{share.name}"
    yield from _path(explained.path)


def _path(path: tuple[Turn, ...]) -> Iterator[str]:
    """Yield a line for each tree with the least probable turn, or one line with all turns that have no probability."""
    sure = [turn for turn in path if turn.probability is not None]
    if path and not sure:
        yield "    path: " + ", ".join(f"{turn.node} {turn.side} {_how_sure(turn)}" for turn in path)
    for tree, of_tree in itertools.groupby(sure, lambda turn: turn.tree):
        turns = list(of_tree)
        probability = math.prod(turn.probability or 0.0 for turn in turns)
        least = min(turns, key=lambda turn: turn.probability or 0.0)
        yield f"    tree {tree}: probability {probability:.3g}, {_turns(len(turns))}, the least sure {_turn(least)}"


def _turns(count: int) -> str:
    """Return a number of turns as text."""
    return f"{count} turn{'' if count == 1 else 's'}"


def _turn(turn: Turn) -> str:
    """Return a turn with its shares as text."""
    shares = ", ".join(f"{share.name} {share.share:+.4g}" for share in turn.shares)
    return f"{turn.node} {turn.side} {_how_sure(turn)}" + (f": {shares}" if shares else "")


def _how_sure(turn: Turn) -> str:
    """Return the probability of a turn, or else its score."""
    if turn.probability is not None:
        return f"{turn.probability:.3g}"
    return f"(score {turn.score:.4g})"


def _scores(explained: ExplainedClass) -> str:
    """Return the probability and the score of a class."""
    if explained.score is None and explained.probability is not None:
        return f"probability {explained.probability:.6g}, not compared"
    if explained.score is None:
        return "at the end of the path"
    if explained.probability is None:
        return f"score {explained.score:.6g}"
    return f"probability {explained.probability:.6g}, score {explained.score:.6g}"


def _brief(explained: ExplainedClass) -> str:
    """Return the probability of a class, or else its score."""
    return f"{explained.score:.4g}" if explained.probability is None else f"{explained.probability:.4g}"


def _shown(label: object) -> str:
    """Return a label as text."""
    if label is None:
        return "none"
    return f"{label:g}" if isinstance(label, float) else str(label)
