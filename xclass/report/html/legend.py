"""Explain in words what stands in the lists of shares, and in the names of weight tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..examples import Reason
from . import markup
from .markup import Html, element

NAMES = {  # share that is not one of a feature -> what it is
    "(trees)": "how probable the class is for the trees",
    "(index)": "whether the index of features has proposed the class, and how much all features together speak for it",
    "(path)": "what the way through the tree adds",
    "(scorer)": "a number that is added for each class",
    "Constant": "the feature that every example has",
    "intercept": "a number that is added for each class",
}
TABLES = {  # beginning of the name of a table -> what it has
    "tree": "the regressors of the nodes of a tree; the number is that of the tree",
    "scorers": "the regressors of the classes, which choose among the classes that trees and index propose",
    "weights": "the regressors",
}
SEPARATOR = "^"  # between a namespace and a feature


def of_shares(reasons: Iterable[Reason]) -> Html:
    """Return a list that explains the words which occur in the shares of these reasons, empty if there are none."""
    names = dict.fromkeys(name for reason in reasons for name, _ in [*reason.shares, *reason.instead])
    if not names:
        return Html("")
    entries = {
        "+ and −": "what speaks for the class and against it; the score of a class is the sum of its shares, of which "
        "the largest are listed"
    }
    with_space = next((name for name in names if SEPARATOR in name.strip(SEPARATOR)), None)
    if with_space is not None:
        space, _, feature = with_space.partition(SEPARATOR)
        entries[with_space] = f"the feature {feature} of the namespace {space}"
    entries |= {name: meaning for name, meaning in NAMES.items() if name in names}
    return markup.details("What the words in the lists mean", _listed(entries))


def of_tables(names: Sequence[str]) -> Html:
    """Return a list that explains the names of weight tables, empty if they need no explanation."""
    found = {text: meaning for text, meaning in TABLES.items() if any(name.startswith(text) for name in names)}
    return _listed(found) if len(names) > 1 and found else Html("")


def _listed(entries: dict[str, str]) -> Html:
    return element(
        "dl",
        *(element("div", element("dt", word), element("dd", f"{meaning}.")) for word, meaning in entries.items()),
        class_="legend",
    )
