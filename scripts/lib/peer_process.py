"""Train and test with another program or in the library, in a process that `runner` measures.

    python scripts/lib/peer_process.py napkin|fasttext train|test FILE MODEL WORDS
    python scripts/lib/peer_process.py estimator|reading|calls TRAINING TEST WORDS

The last line that it writes to standard error is a record: error, and seconds without the start and the reading.

napkin      napkinXC: a kind of model and its arguments; fasttext: arguments, or `autotune=SECONDS`, for which the last
            tenth of the training file is held out
estimator   an expression, such as `XClassifier(passes=5)` or `KNeighborsClassifier()`, on LIBSVM text, arrays or CSV
            with texts; kernels are compiled before
reading     reads the training file by xclass, in a format with options such as `text_split=spaces`, or by `sklearn`
calls       learns the training file by `Learner` of xclass or `Workspace` of VW, named by the first word, and then
            learns and predicts single examples of the test file: `xclass text|dict REDUCTION K`, `VW text OPTIONS`
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from itertools import islice
from statistics import median

FEW = 500  # examples that compile the kernels
CALLED = 1000  # examples of the test file that are learned and predicted one by one
TIMES = 3  # that a file is read; the fastest counts


def arguments(words: list[str], kinds: dict[str, type]) -> dict:
    """Return the arguments that words such as `lr=0.5` name; they are whole numbers unless `kinds` says otherwise."""
    pairs = [word.partition("=")[::2] for word in words]
    return {name: kinds.get(name, int if value.isdigit() else str)(value) for name, value in pairs}


def say(**record: float) -> None:
    print(json.dumps(record), file=sys.stderr)


def napkin(task: str, file: str, folder: str, *words: str) -> None:
    from napkinxc import models
    from napkinxc.datasets import load_libsvm_file

    given = arguments(list(words[1:]), {"eta": float})
    model = getattr(models, words[0])(folder, threads=2, verbose=0, **given)
    rows, labels = load_libsvm_file(file, labels_format="list")
    if task == "train":
        model.fit(rows, labels if words[0] == "PLT" else [label[0] for label in labels])
        return say()
    model.load()
    model.predict(rows[:50], top_k=1)
    start = time.perf_counter()
    predictions = model.predict(rows, top_k=1)
    seconds = time.perf_counter() - start
    wrong = sum(not own or own[0] != label[0] for own, label in zip(predictions, labels, strict=True))
    say(seconds=seconds, test=seconds, error=wrong / len(labels))


def fasttext(task: str, file: str, model: str, *words: str) -> None:
    import fasttext

    if task == "test":
        loaded = fasttext.load_model(model)
        start = time.perf_counter()
        _, right, _ = loaded.test(file)
        seconds = time.perf_counter() - start
        return say(seconds=seconds, test=seconds, error=1 - right)
    given = arguments(list(words), {"lr": float})
    if "autotune" in given:
        with open(file, "rb") as whole, open("learn.words", "wb") as learn, open("valid.words", "wb") as valid:
            lines = whole.readlines()
            learn.writelines(lines[: len(lines) - len(lines) // 10])
            valid.writelines(lines[len(lines) - len(lines) // 10 :])
        given = {"autotuneValidationFile": "valid.words", "autotuneDuration": given.pop("autotune"), **given}
        file = "learn.words"
    fasttext.train_supervised(file, thread=2, verbose=0, **given).save_model(model)
    say()


def loaded(train: str, test: str) -> tuple:
    """Return rows and labels of both files."""
    import numpy as np

    if train.endswith(".npy"):
        return tuple(np.load(name.replace(".npy", kind)) for name in (train, test) for kind in (".npy", ".labels.npy"))
    if train.endswith(".csv"):
        found: list = []
        for name in (train, test):
            with open(name, newline="", encoding="utf-8") as file:
                labels, texts = zip(*[*csv.reader(file)][1:], strict=True)
            found += [list(texts), np.array(labels)]
        return tuple(found)
    from sklearn.datasets import load_svmlight_file

    rows, labels = load_svmlight_file(train, dtype=np.float32)
    new, true = load_svmlight_file(test, n_features=rows.shape[1], dtype=np.float32)
    for matrix in (rows, new):  # SGDClassifier accepts no others
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return rows, labels.astype(int), new, true.astype(int)


def estimator(train: str, test: str, expression: str) -> None:
    import numpy as np
    from sklearn import feature_extraction, linear_model, neighbors, pipeline, svm

    known: dict = {}
    for module in (linear_model, neighbors, pipeline, svm, feature_extraction.text):
        known |= {name: getattr(module, name) for name in module.__all__}
    if "XClassifier" in expression:
        from xclass.sklearn import XClassifier

        known["XClassifier"] = XClassifier
    if "VWMultiClassifier" in expression:
        from vowpalwabbit.sklearn_vw import VWMultiClassifier

        known["VWMultiClassifier"] = VWMultiClassifier
    rows, labels, new, true = loaded(train, test)
    if "XClassifier" in expression:
        eval(expression, known).fit(rows[:FEW], labels[:FEW]).predict(new[:FEW])  # the experiments' own text
    begin, cpu = time.perf_counter(), time.process_time()
    model = eval(expression, known).fit(rows, labels)
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    wrong = float(np.mean(np.asarray(model.predict(new)) != true))
    ended, ended_cpu = time.perf_counter(), time.process_time()
    say(
        error=wrong, train=fitted - begin, train_cpu=fitted_cpu - cpu, test=ended - fitted,
        test_cpu=ended_cpu - fitted_cpu, start_cpu=0.0, test_start_cpu=0.0,
    )  # fmt: skip


def reading(train: str, test: str, *words: str) -> None:
    from xclass.formats import detect
    from xclass.kernels import jit
    from xclass.text import parser, reader

    form = words[0] if words else "auto"
    given = arguments(list(words[1:]), {})

    def read() -> None:
        if form == "sklearn":
            from sklearn.datasets import load_svmlight_file

            load_svmlight_file(train)
            return
        source = reader.ReaderOptions(data=(train,), format=form)
        rules = parser.ParserOptions(learn_names=form != "libsvm", **given)
        for _ in reader.Reader(source, parser.Parser(rules, 24, "multiclass"), choose=detect.chooser(source)):
            pass

    jit.activate(hide_scipy=False)
    times = []
    for _ in range(TIMES):
        begin = time.process_time()
        read()
        times.append(time.process_time() - begin)
    say(read_cpu=min(times), file_bytes=os.path.getsize(train))


def calls(train: str, test: str, program: str, form: str, *words: str) -> None:
    with open(train, encoding="utf-8") as file, open(test, encoding="utf-8") as more:
        lines = [line.rstrip("\n") for line in file]
        examples = [line.rstrip("\n") for line in islice(more, CALLED)]
    if program == "VW":
        from vowpalwabbit import Workspace

        model = Workspace(f"{' '.join(words)} --quiet")
        for line in lines:
            model.learn(line)
    else:
        import xclass

        model = xclass.Learner(words[0], **({"classes": int(words[1])} if len(words) > 1 else {}))
        model.learn_many(lines)
    learned, predicted = [], []
    for line in examples:
        label, features = line.split("|")
        example = (dict.fromkeys(features.split(), 1.0), int(label)) if form == "dict" else (line,)
        begin = time.perf_counter()
        model.learn(*example)
        middle = time.perf_counter()
        model.predict(example[0])
        learned.append(middle - begin)
        predicted.append(time.perf_counter() - middle)
    say(learn_us=1e6 * median(learned), predict_us=1e6 * median(predicted))


if __name__ == "__main__":
    TOOLS = {"napkin": napkin, "fasttext": fasttext, "estimator": estimator, "reading": reading, "calls": calls}
    TOOLS[sys.argv[1]](*sys.argv[2:])
