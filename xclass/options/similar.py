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


def similar(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that other programs call by a word, or else the most similar one, None if none is."""
    names, lower = list(known), word.lower()
    if lower in OF_OTHERS:
        return OF_OTHERS[lower] if OF_OTHERS[lower] in names else None
    import difflib  # takes time, and few words are unknown

    return next(iter(difflib.get_close_matches(lower, names, n=1)), None)
