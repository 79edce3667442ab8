"""Explain in words what stands in the lists of shares, beside the weight tables and at the nodes of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..examples import Reason
from . import markup
from .markup import Html, element

PARTS = {  # part of a score -> what its shares are
    "scorer": "weight times value of the feature, in the regressor of the class",
    "trees": "how probable the class is for the trees",
    "index": "what the index of features says. It knows for each feature the classes in whose training examples it "
    "occurred: with the name of a feature, how much the feature speaks for the class",
    "path": "what the way through the tree adds",
}
NAMES = {  # share that is not one of a feature -> what it is
    "mean log probability": "the logarithm of the probability of the class, averaged over the trees",
    "largest log probability": "the same of the tree that finds the class most probable",
    "share of the trees that propose it": "the share of the trees that have proposed the class",
    "proposed": "the index has proposed the class",
    "naive Bayes": "the log odds of the class by naive Bayes, from the counts in the index",
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
    texts = list(dict.fromkeys(text for reason in reasons for text, _ in [*reason.shares, *reason.instead]))
    if not texts:
        return Html("")
    entries = {
        "+ and −": "what speaks for the class and against it; the score of a class is the sum of its shares, of which "
        "the largest are listed"
    }
    pairs = [(part, name) if found else ("", part) for part, found, name in (text.partition(": ") for text in texts)]
    with_space = next((name for _, name in pairs if SEPARATOR in name.strip(SEPARATOR)), None)
    if with_space is not None:
        space, _, feature = with_space.partition(SEPARATOR)
        entries[with_space] = f"the feature {feature} of the namespace {space}"
    entries |= {f"{part}: …": PARTS[part] for part in PARTS if part in {part for part, _ in pairs}}
    entries |= {name: NAMES[name] for name in NAMES if name in {name for _, name in pairs}}
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
