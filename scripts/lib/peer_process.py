"""Train or test with napkinXC, fastText or scikit-learn, in a process whose time and memory `peers` measures."""

from __future__ import annotations

import csv
import json
import sys
import time


def napkin(words: list[str]) -> int:
    """Train or test with napkinXC; the words are train or test, data file, model folder, kind of model, options."""
    from napkinxc import models
    from napkinxc.datasets import load_libsvm_file

    task, file, folder, kind, *options = words
    given = {name: value for name, _, value in (option.partition("=") for option in options)}
    for name, value in given.items():
        given[name] = float(value) if name == "eta" else int(value) if value.isdigit() else value
    model = getattr(models, kind)(folder, threads=2, verbose=0, **given)
    rows, labels = load_libsvm_file(file, labels_format="list")
    if task == "train":
        model.fit(rows, labels if kind == "PLT" else [label[0] for label in labels])
        return 0
    model.load()
    model.predict(rows[:50], top_k=1)
    start = time.perf_counter()
    predictions = model.predict(rows, top_k=1)
    seconds = time.perf_counter() - start
    wrong = sum(
        not prediction or prediction[0] != label[0] for prediction, label in zip(predictions, labels, strict=True)
    )
    print(json.dumps({"seconds": seconds, "error": wrong / len(labels)}), file=sys.stderr)
    return 0


def fasttext(words: list[str]) -> int:
    """Train or test with fastText; the words are train or test, data file, model file, options."""
    import fasttext

    task, file, folder, *options = words
    if task == "train":
        given = {name: value for name, _, value in (option.partition("=") for option in options)}
        kinds = {"loss": str, "lr": float, "autotuneValidationFile": str}
        given = {name: kinds.get(name, int)(value) for name, value in given.items()}
        fasttext.train_supervised(file, thread=2, verbose=0, **given).save_model(folder)
        return 0
    model = fasttext.load_model(folder)
    start = time.perf_counter()
    _, right, _ = model.test(file)
    print(json.dumps({"seconds": time.perf_counter() - start, "error": 1 - right}), file=sys.stderr)
    return 0


def linear(words: list[str]) -> int:
    """Train or test logistic regression of scikit-learn with an L2 penalty, one-vs-rest or multinomial.

    The words are train or test, LIBSVM file, model file, `rest` or `multinomial`, and C=10.
    """
    import pickle

    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    task, file, path, *options = words
    if task == "train":
        rows, labels = load_svmlight_file(file)
        single = LogisticRegression(C=float(options[1].partition("=")[2]), max_iter=1000)
        model = (OneVsRestClassifier(single) if options[0] == "rest" else single).fit(rows, labels)
        with open(path, "wb") as out:
            pickle.dump((model, rows.shape[1]), out)
        return 0
    with open(path, "rb") as stored:
        model, columns = pickle.load(stored)
    rows, labels = load_svmlight_file(file, n_features=columns)
    start = time.perf_counter()
    predictions = model.predict(rows)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "error": float((predictions != labels).mean())}), file=sys.stderr)
    return 0


def tfidf(words: list[str]) -> int:
    """Train TfidfVectorizer and LinearSVC of scikit-learn on a CSV file with labels and texts, and test on another."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    parts = []
    for name in words:
        with open(name, newline="", encoding="utf-8") as file:
            parts.append([*zip(*[*csv.reader(file)][1:], strict=True)])
    (train_labels, train_texts), (labels, texts) = parts
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(train_texts, train_labels)
    print(json.dumps({"error": 1 - model.score(texts, labels)}), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit({"napkin": napkin, "fasttext": fasttext, "linear": linear, "tfidf": tfidf}[sys.argv[1]](sys.argv[2:]))
