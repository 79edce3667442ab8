"""Find the name that was probably meant by a word that names nothing."""

from __future__ import annotations

from collections.abc import Iterable

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
