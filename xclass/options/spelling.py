"""Spell the options in a message as an interface names them, and find the name that was probably meant.

A message names options by their flags, as the command line does. Another interface, such as `Learner`, tells the errors
that leave it how it names them (`XclassError.spelling`). The error keeps its message: the outermost interface decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from ..errors import XclassError

OF_OTHERS = {  # options and losses by the names that other programs have for them
    "alpha": "l2", "weight_decay": "l2", "reg_lambda": "l2",
    "eta": "learning_rate", "eta0": "learning_rate", "lr": "learning_rate",
    "epoch": "passes", "epochs": "passes", "max_iter": "passes", "n_iter": "passes",
    "loss": "loss_function", "objective": "loss_function", "seed": "random_seed", "random_state": "random_seed",
    "n_features": "bits", "bucket": "bits", "n_jobs": "threads", "thread": "threads",
    "wordngrams": "text_ngram", "ngram_range": "text_ngram",
    "log": "logistic", "log_loss": "logistic", "cross_entropy": "logistic",
    "squared_error": "squared", "mse": "squared",
}  # fmt: skip
# a place at the beginning; quotations of data and commands; then, as groups, a flag that is no path, K, and a number
FLAG = re.compile(
    r"""\A(?!-)(?:[^'"]|(?<=\w)['"])*?:\s|(?<!\w)b?(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|['"].*?\.\.\.)|`[^`]*`"""
    r"""|(?<![\w/'-])(--?[A-Za-z]\w*)(?![./-]?\w)( K\b)?(?=( \d)?)"""
)


class Spelling:
    """Replace flags in messages by names; in a `with` block, do so in the errors that are raised there.

    `make_names` returns the names by flag, and those of flags that are followed by a number by the flag and ` N`, and
    those that replace a flag and ` K` by both. It is called with False first, for those that take no time to find, and
    with True for all when a message has another flag.
    """

    def __init__(self, make_names: Callable[[bool], Mapping[str, str]]) -> None:
        self._make_names, self._complete = make_names, False
        self._names: Mapping[str, str] | None = None

    def __call__(self, message: str) -> str:
        return FLAG.sub(self._name, message)

    def _name(self, match: re.Match[str]) -> str:
        flag, of_k = match[1], match[2] or ""
        names = self._make_names(False) if self._names is None else self._names
        if flag and flag not in names and not self._complete:
            names, self._complete = self._make_names(True), True
        self._names = names
        name = names.get(f"{flag}{of_k}") or (names[flag] + of_k if flag in names else match[0])
        return names.get(f"{flag} N", name) if match[3] else name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, XclassError):
            error.spelling = self


def suggestion(word: str, known: Iterable[str], shown: str = "{!r}", otherwise: str = "") -> str:
    """Return the end of an error: the name that other programs call by a word, or else the most similar known one.

    `shown` is the format in which the name is written; `otherwise` is said if no name is similar.
    """
    names, lower = list(known), word.lower()
    if lower in OF_OTHERS:
        close = [OF_OTHERS[lower]] if OF_OTHERS[lower] in names else []
    else:
        import difflib  # takes time, and few words are unknown

        close = difflib.get_close_matches(lower, names, n=1)
    text = f"did you mean {shown.format(close[0])}?" if close else otherwise
    return text and f"; {text}"
